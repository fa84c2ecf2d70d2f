"""Templates: what one replica of a system is made of. Shared by PodCliqueSets and deployments."""

from collections.abc import Callable, Mapping
from typing import Annotated

from spinney.api.autoscaling import AutoScalingConfig, with_min_replicas
from spinney.api.podclique import PodCliqueSpec
from spinney.api.resourcesharing import (
    GroupResourceSharing,
    ResourceClaimTemplateConfig,
    ResourceSharing,
    SetResourceSharing,
)
from spinney.api.topology import TopologyConstraint
from spinney.meta.documents import Document, Json, is_integer, is_list
from spinney.meta.durations import Duration
from spinney.meta.records import Field, Record

ANY_ORDER = "CliqueStartupTypeAnyOrder"
IN_ORDER = "CliqueStartupTypeInOrder"
EXPLICIT = "CliqueStartupTypeExplicit"

INFERENCE = "Inference"
TRAINING = "Training"

GRACE_SECONDS_DEFAULT = 30


class HeadlessServiceConfig(Record):
    """The headless Service through which the pods of one set replica find each other."""

    publish_not_ready_addresses: Annotated[
        bool, Field("Whether pods can be found before they are ready.")
    ] = True


class PodCliqueTemplateSpec(Record, kw_only=True):
    """One clique of the system: pods of one role."""

    name: Annotated[
        str,
        Field(
            "The clique's name, unique within the set. Part of its pods' names: together with "
            "the set's and the group's name at most 45 characters.",
            required=True,
            example="decode",
        ),
    ]
    labels: Annotated[
        Mapping[str, str], Field("Labels of the PodClique and its pods. A change rolls the pods.")
    ] = {}
    annotations: Annotated[
        Mapping[str, str],
        Field("Annotations of the PodClique and its pods. A change rolls the pods."),
    ] = {}
    topology_constraint: Annotated[
        TopologyConstraint | None, Field("How close together the clique's pods must be.")
    ] = None
    resource_sharing: Annotated[
        tuple[ResourceSharing, ...], Field("Claims the clique's pods share. Immutable.")
    ] = ()
    spec: Annotated[
        PodCliqueSpec, Field("What the pods are, and how many there are.", required=True)
    ]


class PodCliqueScalingGroupConfig(Record):
    """Cliques that are scaled, placed and replaced together: a multi-node model instance."""

    name: Annotated[str, Field("The group's name, unique within the set.", required=True)]
    clique_names: Annotated[
        tuple[str, ...],
        Field(
            "The cliques of the group; each belongs to one group at most. Immutable.",
            required=True,
        ),
    ]
    annotations: Annotated[
        Mapping[str, str], Field("Annotations of the PodCliqueScalingGroup.")
    ] = {}
    replicas: Annotated[
        int,
        Field(
            "How many copies of the group there are in one set replica. 0 stops the group "
            "(not for Training). A change reaches groups made from then on; existing ones are "
            "scaled by their scale subresource."
        ),
    ] = 1
    min_available: Annotated[
        int,
        Field(
            "How many copies must be placed for the set replica to start; they share its base "
            "gang, every further one is a gang of its own. From 1 to replicas. Immutable."
        ),
    ] = 1
    scale_config: Annotated[AutoScalingConfig | None, Field("How the group scales by itself.")] = (
        None
    )
    resource_sharing: Annotated[
        tuple[GroupResourceSharing, ...], Field("Claims the group's pods share. Immutable.")
    ] = ()
    topology_constraint: Annotated[
        TopologyConstraint | None,
        Field("How close together the pods of one copy must be."),
    ] = None
    termination_delay: Annotated[
        Duration | None,
        Field(
            "How long this group may lack copies before its gang is torn down and rebuilt; the "
            "template's terminationDelay by default, and only where that is given.",
            ours=True,
            example="2h",
        ),
    ] = None


class PodCliqueSetTemplateSpec(Record):
    """What one replica of the system is made of."""

    cliques: Annotated[
        tuple[PodCliqueTemplateSpec, ...],
        Field(
            "The cliques. None can be added or taken away later; with InOrder and Explicit "
            "start-up their order is fixed too.",
            required=True,
            list_keys=("name",),
        ),
    ]
    clique_startup_type: Annotated[
        str,
        Field(
            "In which order cliques start: all at once, each after the one before it in the "
            "list, or as their startsAfter says. Immutable.",
            enum=(ANY_ORDER, IN_ORDER, EXPLICIT),
        ),
    ] = ANY_ORDER
    priority_class_name: Annotated[
        str, Field("The PriorityClass of every gang of the set. A change rolls the pods.")
    ] = ""
    headless_service_config: Annotated[
        HeadlessServiceConfig,
        Field("The headless Service of each set replica."),
    ] = HeadlessServiceConfig()
    topology_constraint: Annotated[
        TopologyConstraint | None,
        Field("How close together the pods of one set replica must be."),
    ] = None
    termination_delay: Annotated[
        Duration | None,
        Field(
            "How long fewer than minAvailable may be ready before the gang is torn down and "
            "rebuilt. Not given: never (gang termination is off). Training: 0s by default.",
            example="4h",
        ),
    ] = None
    resource_claim_templates: Annotated[
        tuple[ResourceClaimTemplateConfig, ...],
        Field("Claim templates for the sharing entries. Immutable."),
    ] = ()
    resource_sharing: Annotated[
        tuple[SetResourceSharing, ...], Field("Claims pods of the whole set share. Immutable.")
    ] = ()
    pod_clique_scaling_groups: Annotated[
        tuple[PodCliqueScalingGroupConfig, ...],
        Field("Cliques that are scaled, placed and replaced together."),
    ] = ()


def defaulted(template: Document, workload_type: str) -> Document:
    """Return a template with what its schema's own defaults cannot say filled in."""
    training = workload_type == TRAINING
    filled: Document = {**template}
    cliques, groups = template.get("cliques"), template.get("podCliqueScalingGroups")
    if is_list(cliques):
        filled["cliques"] = _each(cliques, lambda item: _with_clique_defaults(item, training))
    if is_list(groups):
        filled["podCliqueScalingGroups"] = _each(
            groups, lambda item: with_min_replicas(item, "scaleConfig")
        )
    if template.get("headlessServiceConfig") is None:
        filled["headlessServiceConfig"] = {"publishNotReadyAddresses": True}
    if training and template.get("terminationDelay") is None:
        filled["terminationDelay"] = "0s"
    return filled


def _each(items: list[Json], fill: Callable[[Document], Document]) -> list[Json]:
    return [fill(item) if isinstance(item, dict) else item for item in items]


def _with_clique_defaults(clique: Document, training: bool) -> Document:
    spec = clique.get("spec")
    if not isinstance(spec, dict):
        return clique
    filled: Document = {**spec}
    pod_spec = spec.get("podSpec")
    if isinstance(pod_spec, dict):
        policy = pod_spec.get("restartPolicy")
        if policy in (None, ""):
            policy = "Never" if training else "Always"
        grace = pod_spec.get("terminationGracePeriodSeconds")
        filled["podSpec"] = {
            **pod_spec,
            "restartPolicy": policy,
            "terminationGracePeriodSeconds": GRACE_SECONDS_DEFAULT if grace is None else grace,
        }
    replicas = spec.get("replicas")
    if is_integer(replicas) and replicas == 0:
        filled["replicas"] = replicas = 1
    if spec.get("minAvailable") is None and is_integer(replicas) and replicas > 0:
        filled["minAvailable"] = replicas
    return {**clique, "spec": with_min_replicas(filled, "autoScalingConfig")}
