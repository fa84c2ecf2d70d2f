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
from spinney.controllers import podclique, podcliquescalinggroup, podcliqueset, podgang, waking
from spinney.decisions import cliques, gangs, groups, sets
from spinney.decisions.settings import DEFAULTS, Settings
from spinney.engine.controller import Controller
from spinney.engine.wakes import Wake
from spinney.ports import Reader


def controllers(reader: Reader, settings: Settings = DEFAULTS) -> tuple[Controller[Any], ...]:
    """Return every controller, to be run over a reader."""
    return (
        _sets(reader, settings),
        _groups(reader),
        _cliques(reader, settings),
        _gangs(reader, settings),
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
                keys=waking.WhenSpecChanges(reader, kind, record),
            ),
            Wake(kind=groupkinds.GANG, record=PodGang, keys=waking.groups_of_gang(reader)),
            Wake(kind=groupkinds.REVISION, record=ControllerRevision, keys=waking.nobody),
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
                keys=waking.WhenSpecChanges(reader, kind, record),
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
            Wake(kind=groupkinds.SCALING_GROUP, record=PodCliqueScalingGroup, keys=waking.nobody),
            Wake(kind=groupkinds.REVISION, record=ControllerRevision, keys=waking.nobody),
            Wake(
                kind=groupkinds.TOPOLOGY,
                record=ClusterTopologyBinding,
                keys=waking.gangs_of_topology(reader),
            ),
        ),
    )
