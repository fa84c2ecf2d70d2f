"""PodGang: pods that are placed together or not at all; what a scheduler reads."""

from collections.abc import Iterator
from typing import Annotated

import msgspec

from spinney.api.kinds import Column, Kind, Names, object_schema
from spinney.api.status import AGE
from spinney.api.surroundings import Surroundings
from spinney.meta.conditions import Condition
from spinney.meta.cursors import Cursor
from spinney.meta.errors import FieldError
from spinney.meta.metadata import ObjectMeta, metadata_faults
from spinney.meta.records import Field, Record


class NamespacedName(Record, kw_only=True):
    """One object of a kind that is known from where this stands."""

    namespace: Annotated[str, Field("Its namespace.")] = ""
    name: Annotated[str, Field("Its name.", required=True)]


class TopologyPackConstraint(Record):
    """Node labels whose value the pods must, or should, share."""

    required: Annotated[
        str, Field("The label whose value all pods must share.", example="kubernetes.io/hostname")
    ] = ""
    preferred: Annotated[str, Field("The label whose value they share where possible.")] = ""


class PodGangTopologyConstraint(Record):
    """How close together pods must be, in node labels."""

    pack_constraint: Annotated[TopologyPackConstraint | None, Field("The labels to pack by.")] = (
        None
    )


class PodGroup(Record):
    """The pods of one PodClique in a gang."""

    name: Annotated[str, Field("The PodClique.", required=True)]
    pod_references: Annotated[
        tuple[NamespacedName, ...], Field("Its pods, sorted by name.", required=True, atomic=True)
    ]
    min_replicas: Annotated[
        int, Field("How many of them must fit for the gang to be placed.", required=True)
    ]
    topology_constraint: Annotated[
        PodGangTopologyConstraint | None, Field("How close together these pods must be.")
    ] = None


class TopologyConstraintGroupConfig(Record):
    """Pod groups that must be close together: one copy of a scaling group."""

    name: Annotated[str, Field("The scaling group and the copy.", required=True)]
    pod_group_names: Annotated[
        tuple[str, ...], Field("Its pod groups.", required=True, atomic=True)
    ]
    topology_constraint: Annotated[
        PodGangTopologyConstraint | None, Field("How close together they must be.")
    ] = None


class PodGangSpec(Record):
    """Which pods make up the gang, and how they are to be placed."""

    pod_groups: Annotated[
        tuple[PodGroup, ...],
        Field("The pods of the gang, by PodClique.", required=True, list_keys=("name",)),
    ] = msgspec.field(name="podgroups")
    topology_constraint: Annotated[
        PodGangTopologyConstraint | None, Field("How close together all pods must be.")
    ] = None
    topology_constraint_group_configs: Annotated[
        tuple[TopologyConstraintGroupConfig, ...],
        Field("How close together some of the pod groups must be.", list_keys=("name",)),
    ] = ()
    priority_class_name: Annotated[str, Field("The gang's PriorityClass.")] = ""
    reuse_reservation_ref: Annotated[
        NamespacedName | None,
        Field("A gang whose place this one may take over; for schedulers that know how."),
    ] = None


class GangMember(Record):
    """A PodClique of one incarnation of a gang."""

    name: Annotated[str, Field("The PodClique.", required=True)]
    uid: Annotated[str, Field("Which one of that name.", required=True)]


class PodGangStatus(Record):
    """What is observed of a gang."""

    phase: Annotated[
        str,
        Field(
            "Pending: not placed. Starting: placed, not all ready. Running: enough are ready. "
            "For Training also Succeeded and Failed."
        ),
    ] = "Pending"
    conditions: Annotated[
        tuple[Condition, ...],
        Field(
            "`Initialized`, `Scheduled`, `Ready`, `Unhealthy`; `Schedulable` and "
            "`DisruptionTarget` are the scheduler's.",
            list_keys=("type",),
        ),
    ] = ()
    placement_score: Annotated[
        float | None,
        Field("How close together the gang was placed: 1.0 is as close as was preferred."),
    ] = None
    incarnation: Annotated[
        int,
        Field("Rises when the gang's PodCliques were replaced and it starts anew.", ours=True),
    ] = 0
    members: Annotated[
        tuple[GangMember, ...],
        Field("The PodCliques of this incarnation.", ours=True, list_keys=("name",)),
    ] = ()


class PodGang(Record):
    """Pods that are placed together or not at all."""

    metadata: Annotated[ObjectMeta, Field("Name, labels and what all objects have.")]
    spec: Annotated[PodGangSpec, Field("Which pods, and how to place them.", required=True)]
    status: Annotated[PodGangStatus, Field("How far they have come.")] = PodGangStatus()


def _rules(new: Cursor, _surroundings: Surroundings) -> Iterator[FieldError]:
    yield from metadata_faults(new["metadata"], namespaced=True)
    groups = new["spec"]["podgroups"]
    known = {group["name"].string() for group in groups}
    for group in groups:
        least = group["minReplicas"].integer()
        if least is not None and least < 0:
            yield group["minReplicas"].invalid("must be greater than or equal to 0")
    for config in new["spec"]["topologyConstraintGroupConfigs"]:
        for name in config["podGroupNames"]:
            if name.string() is not None and name.string() not in known:
                yield name.not_found("no pod group of this name in the gang")


def _update_rules(_old: Cursor, new: Cursor, surroundings: Surroundings) -> Iterator[FieldError]:
    return _rules(new, surroundings)


KIND = Kind(
    names=Names(
        group="scheduler.grove.io",
        version="v1alpha1",
        kind="PodGang",
        plural="podgangs",
        singular="podgang",
        short=("pg",),
        categories=("all",),
    ),
    record=PodGang,
    schema=object_schema(PodGang),
    validate_create=_rules,
    validate_update=_update_rules,
    columns=(Column(name="Phase", path=".status.phase", type="string"), AGE),
)
