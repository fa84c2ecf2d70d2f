"""The controllers of a world: what each looks at, and what wakes it."""

from __future__ import annotations

from functools import partial
from typing import Any

from spinney.api import groupkinds, labels
from spinney.api.clustertopologybinding import ClusterTopologyBinding
from spinney.api.core.configuration import Secret, ServiceAccount
from spinney.api.core.controllerrevision import ControllerRevision
from spinney.api.core.horizontalpodautoscaler import HorizontalPodAutoscaler
from spinney.api.core.pod import Pod
from spinney.api.core.resourceclaims import ResourceClaim, ResourceClaimTemplate
from spinney.api.core.roles import Role, RoleBinding
from spinney.api.core.services import Service
from spinney.api.podclique import PodClique
from spinney.api.podcliquescalinggroup import PodCliqueScalingGroup
from spinney.api.podcliqueset import PodCliqueSet
from spinney.api.podgang import PodGang
from spinney.controllers import (
    clustertopologybinding,
    horizontalpodautoscaler,
    podclique,
    podcliquescalinggroup,
    podcliqueset,
    podgang,
    waking,
)
from spinney.controllers.clustertopologybinding import Backends, none_outside
from spinney.decisions import autoscaling, cliques, gangs, groups, sets, topologies
from spinney.decisions.settings import DEFAULTS, Settings
from spinney.engine.controller import Controller
from spinney.engine.wakes import Wake
from spinney.ports import PodMetrics, Reader


def controllers(
    reader: Reader,
    settings: Settings = DEFAULTS,
    *,
    metrics: PodMetrics | None = None,
    backends: Backends = none_outside,
) -> tuple[Controller[Any], ...]:
    """Return every controller, to be run over a reader.

    Without `metrics` autoscalers are left to somebody else, as they are on Kubernetes; `backends`
    finds the scheduler back ends that have topologies of their own.
    """
    found: tuple[Controller[Any], ...] = (
        _sets(reader, settings),
        _groups(reader),
        _cliques(reader, settings),
        _gangs(reader, settings),
        _topologies(backends),
    )
    return found if metrics is None else (*found, _autoscalers(metrics))


def _topologies(backends: Backends) -> Controller[topologies.Observation]:
    return Controller(
        name="clustertopologybinding",
        kind=groupkinds.TOPOLOGY,
        observe=partial(clustertopologybinding.observe, backends=backends),
        decide=topologies.decide,
    )


def _autoscalers(metrics: PodMetrics) -> Controller[autoscaling.Observation]:
    """Look at autoscalers when they change, and at their period: usage wakes nobody."""
    return Controller(
        name="horizontalpodautoscaler",
        kind=groupkinds.AUTOSCALER,
        observe=partial(horizontalpodautoscaler.observe, metrics=metrics),
        decide=autoscaling.decide,
        wakes=(
            Wake(kind=groupkinds.SET, record=PodCliqueSet, keys=waking.nobody),
            Wake(kind=groupkinds.SCALING_GROUP, record=PodCliqueScalingGroup, keys=waking.nobody),
            Wake(kind=groupkinds.CLIQUE, record=PodClique, keys=waking.nobody),
            Wake(kind=groupkinds.POD, record=Pod, keys=waking.nobody),
        ),
    )


def _sets(reader: Reader, settings: Settings) -> Controller[sets.Observation]:
    owner = waking.its_owner(groupkinds.SET)
    return Controller(
        name="podcliqueset",
        kind=groupkinds.SET,
        observe=partial(podcliqueset.observe, settings=settings),
        decide=sets.decide,
        wakes=(
            Wake(kind=groupkinds.CLIQUE, record=PodClique, keys=owner),
            Wake(kind=groupkinds.SCALING_GROUP, record=PodCliqueScalingGroup, keys=owner),
            Wake(kind=groupkinds.GANG, record=PodGang, keys=owner),
            Wake(kind=groupkinds.SERVICE, record=Service, keys=owner),
            Wake(kind=groupkinds.POD, record=Pod, keys=waking.nobody),
            Wake(kind=groupkinds.AUTOSCALER, record=HorizontalPodAutoscaler, keys=owner),
            Wake(kind=groupkinds.REVISION, record=ControllerRevision, keys=owner),
            Wake(kind=groupkinds.SERVICE_ACCOUNT, record=ServiceAccount, keys=owner),
            Wake(kind=groupkinds.ROLE, record=Role, keys=owner),
            Wake(kind=groupkinds.ROLE_BINDING, record=RoleBinding, keys=owner),
            Wake(kind=groupkinds.SECRET, record=Secret, keys=owner),
            Wake(kind=groupkinds.CLAIM, record=ResourceClaim, keys=owner),
            Wake(
                kind=groupkinds.CLAIM_TEMPLATE,
                record=ResourceClaimTemplate,
                keys=waking.sharers(reader, groupkinds.SET, PodCliqueSet),
            ),
            Wake(
                kind=groupkinds.TOPOLOGY,
                record=ClusterTopologyBinding,
                keys=waking.sets_of_topology(reader),
            ),
        ),
    )


def _groups(reader: Reader) -> Controller[groups.Observation]:
    kind, record = groupkinds.SCALING_GROUP, PodCliqueScalingGroup
    owner = waking.its_owner(kind)
    return Controller(
        name="podcliquescalinggroup",
        kind=kind,
        observe=podcliquescalinggroup.observe,
        decide=groups.decide,
        wakes=(
            Wake(kind=groupkinds.CLIQUE, record=PodClique, keys=owner),
            Wake(
                kind=groupkinds.SET,
                record=PodCliqueSet,
                keys=waking.both(
                    waking.WhenSpecChanges(reader, kind, record), waking.WhenTurnComes(kind)
                ),
            ),
            Wake(kind=groupkinds.GANG, record=PodGang, keys=waking.groups_of_gang(reader)),
            Wake(
                kind=groupkinds.REVISION,
                record=ControllerRevision,
                keys=waking.groups_of_revision(reader),
            ),
            Wake(kind=groupkinds.CLAIM, record=ResourceClaim, keys=owner),
            Wake(
                kind=groupkinds.CLAIM_TEMPLATE,
                record=ResourceClaimTemplate,
                keys=waking.sharers(reader, kind, record),
            ),
        ),
    )


def _cliques(reader: Reader, settings: Settings) -> Controller[cliques.Observation]:
    kind, record = groupkinds.CLIQUE, PodClique
    owner = waking.its_owner(kind)
    return Controller(
        name="podclique",
        kind=kind,
        observe=partial(podclique.observe, settings=settings),
        decide=cliques.decide,
        wakes=(
            Wake(kind=groupkinds.POD, record=Pod, keys=owner),
            Wake(kind=groupkinds.GANG, record=PodGang, keys=waking.cliques_of_gang(reader)),
            Wake(
                kind=groupkinds.SET,
                record=PodCliqueSet,
                keys=waking.both(
                    waking.WhenSpecChanges(reader, kind, record), waking.WhenTurnComes(kind)
                ),
            ),
            Wake(
                kind=groupkinds.SCALING_GROUP,
                record=PodCliqueScalingGroup,
                keys=waking.cliques_of_updated_group(reader),
            ),
            Wake(kind=groupkinds.REVISION, record=ControllerRevision, keys=waking.nobody),
            Wake(kind=groupkinds.CLAIM, record=ResourceClaim, keys=owner),
            Wake(
                kind=groupkinds.CLAIM_TEMPLATE,
                record=ResourceClaimTemplate,
                keys=waking.sharers(reader, kind, record),
            ),
        ),
    )


def _gangs(reader: Reader, settings: Settings) -> Controller[gangs.Observation]:
    kind, record = groupkinds.GANG, PodGang
    gang = waking.by_label(kind, labels.PODGANG)
    return Controller(
        name="podgang",
        kind=kind,
        observe=partial(podgang.observe, settings=settings),
        decide=gangs.decide,
        wakes=(
            Wake(kind=groupkinds.CLIQUE, record=PodClique, keys=gang),
            Wake(kind=groupkinds.POD, record=Pod, keys=gang),
            Wake(
                kind=groupkinds.SET,
                record=PodCliqueSet,
                keys=waking.WhenSpecChanges(reader, kind, record),
            ),
            Wake(
                kind=groupkinds.SCALING_GROUP,
                record=PodCliqueScalingGroup,
                keys=waking.base_gang_of_group,
            ),
            Wake(kind=groupkinds.REVISION, record=ControllerRevision, keys=waking.nobody),
            Wake(
                kind=groupkinds.TOPOLOGY,
                record=ClusterTopologyBinding,
                keys=waking.gangs_of_topology(reader),
            ),
        ),
    )
