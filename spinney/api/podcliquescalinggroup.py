"""PodCliqueScalingGroup: cliques that are scaled, placed and replaced together."""

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated

from spinney.api.kinds import Column, Kind, Names, ScalePaths, object_schema
from spinney.api.status import AGE, MIN_BREACHED, LastError
from spinney.api.surroundings import Surroundings
from spinney.api.templates import TRAINING
from spinney.meta.conditions import Condition
from spinney.meta.cursors import Cursor
from spinney.meta.documents import same_content
from spinney.meta.errors import FieldError, shown
from spinney.meta.metadata import ObjectMeta, metadata_faults
from spinney.meta.records import Field, Record


class PodCliqueScalingGroupSpec(Record, kw_only=True):
    """Which cliques the group has, and in how many copies."""

    replicas: Annotated[
        int, Field("How many copies of the group there are; 0 stops it.", minimum=0)
    ] = 1
    min_available: Annotated[
        int,
        Field("How many copies the set replica needs. Immutable.", minimum=1),
    ] = 1
    clique_names: Annotated[
        tuple[str, ...],
        Field("The group's cliques, by their names in the set's template.", required=True),
    ]


class GroupReplicasSelectedToUpdate(Record):
    """Which ready replicas an update took."""

    current: Annotated[int | None, Field("The replica being replaced now.")] = None
    others: Annotated[
        tuple[int, ...],
        Field("Further replicas being replaced now, where maxUnavailable allows it.", ours=True),
    ] = ()
    completed: Annotated[tuple[int, ...], Field("Replicas replaced before.")] = ()


class PodCliqueScalingGroupUpdateProgress(Record):
    """How far the update of a group has come."""

    update_started_at: Annotated[datetime | None, Field("When the update began here.")] = None
    update_ended_at: Annotated[
        datetime | None, Field("When it was complete; absent while it runs.")
    ] = None
    pod_clique_set_generation_hash: Annotated[
        str, Field("The generation hash of the set this update leads to.")
    ] = ""
    updated_pod_cliques_count: Annotated[int, Field("PodCliques that are updated.")] = 0
    total_pod_cliques_count: Annotated[int, Field("PodCliques there should be.")] = 0
    replicas_at_start: Annotated[
        int,
        Field(
            "How many replicas there were when the update began here; those that came later do "
            "not hold it up.",
            ours=True,
        ),
    ] = 0
    ready_replica_indices_selected_to_update: Annotated[
        GroupReplicasSelectedToUpdate | None,
        Field("Which ready replicas were taken, one at a time."),
    ] = None
    last_progress_at: Annotated[
        datetime | None, Field("When something was last newly complete.", ours=True)
    ] = None


class PodCliqueScalingGroupStatus(Record):
    """What is observed of a group."""

    observed_generation: Annotated[
        int | None, Field("The generation this status speaks of.", format="int64")
    ] = None
    last_errors: Annotated[
        tuple[LastError, ...], Field("What went wrong in the last look, if anything did.")
    ] = ()
    replicas: Annotated[int, Field("Copies there are.")] = 0
    scheduled_replicas: Annotated[
        int, Field("Copies whose every clique has minAvailable pods on nodes.")
    ] = 0
    available_replicas: Annotated[
        int, Field("Copies whose every clique has minAvailable ready.")
    ] = 0
    updated_replicas: Annotated[
        int, Field("Copies that are complete on the template aimed at.")
    ] = 0
    selector: Annotated[str, Field("Selects the group's pods, for autoscalers.")] = ""
    conditions: Annotated[
        tuple[Condition, ...],
        Field("`MinAvailableBreached`, `GangTerminationInProgress`.", list_keys=("type",)),
    ] = ()
    current_pod_clique_set_generation_hash: Annotated[
        str, Field("The generation hash of the set that the group's pods all follow.")
    ] = ""
    rolling_update_progress: Annotated[
        PodCliqueScalingGroupUpdateProgress | None,
        Field("How far an update has come, or the last one came."),
    ] = None


class PodCliqueScalingGroup(Record):
    """Cliques that are scaled together, made by a PodCliqueSet."""

    metadata: Annotated[ObjectMeta, Field("Name, labels and what all objects have.")]
    spec: Annotated[PodCliqueScalingGroupSpec, Field("What the group should be.", required=True)]
    status: Annotated[PodCliqueScalingGroupStatus, Field("What it is.")] = (
        PodCliqueScalingGroupStatus()
    )


def _rules(new: Cursor, _surroundings: Surroundings) -> Iterator[FieldError]:
    yield from metadata_faults(new["metadata"], namespaced=True)
    members = new["spec"]["cliqueNames"]
    if members.value == []:
        yield members.required("must have at least one clique")


def _update_rules(old: Cursor, new: Cursor, surroundings: Surroundings) -> Iterator[FieldError]:
    yield from _rules(new, surroundings)
    was, spec = old["spec"], new["spec"]
    replicas, floor = spec["replicas"], spec["minAvailable"].integer() or 1
    count = replicas.integer()
    if count is not None and count != was["replicas"].integer():
        if surroundings.root_workload_type == TRAINING:
            yield replicas.forbidden("a Training workload has a fixed size")
        elif 0 < count < floor:
            yield replicas.invalid(f"must be 0 or at least minAvailable ({shown(floor)})")
    for field in ("minAvailable", "cliqueNames"):
        if not same_content(was[field].value, spec[field].value):
            yield spec[field].invalid("field is immutable")


def _progress(name: str, field: str) -> Column:
    return Column(name=name, path=f".status.rollingUpdateProgress.{field}")


KIND = Kind(
    names=Names(
        group="grove.io",
        version="v1alpha1",
        kind="PodCliqueScalingGroup",
        plural="podcliquescalinggroups",
        singular="podcliquescalinggroup",
        short=("pcsg",),
        categories=("all",),
    ),
    record=PodCliqueScalingGroup,
    schema=object_schema(PodCliqueScalingGroup),
    validate_create=_rules,
    validate_update=_update_rules,
    columns=(
        Column(name="MinAvail", path=".spec.minAvailable"),
        Column(name="Replicas", path=".spec.replicas"),
        Column(name="Available", path=".status.availableReplicas"),
        Column(name="Scheduled", path=".status.scheduledReplicas"),
        Column(name="Updated", path=".status.updatedReplicas"),
        _progress("PCLQs-Updated", "updatedPodCliquesCount"),
        _progress("PCLQs-Total", "totalPodCliquesCount"),
        MIN_BREACHED,
        AGE,
    ),
    scale=ScalePaths(selector=".status.selector"),
)
