"""PodClique: pods of one role, all made from one pod spec."""

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated

from spinney.api.autoscaling import AutoScalingConfig
from spinney.api.kinds import Column, Kind, Names, ScalePaths, object_schema
from spinney.api.status import AGE, MIN_BREACHED, LastError
from spinney.api.surroundings import Surroundings
from spinney.meta.conditions import Condition
from spinney.meta.cursors import Cursor
from spinney.meta.documents import Document, same_content
from spinney.meta.errors import FieldError, shown
from spinney.meta.metadata import ObjectMeta, metadata_faults
from spinney.meta.records import Field, Record


class PodCliqueSpec(Record):
    """What one clique is made of, how many pods it has, and how many of them it needs."""

    role_name: Annotated[
        str,
        Field(
            "The role of these pods, unique within the set: what they are called where people "
            "read. Immutable.",
            required=True,
            example="decode",
        ),
    ]
    pod_spec: Annotated[
        Document,
        Field(
            "What every pod of the clique is, as in a Kubernetes Pod. `nodeName` and "
            "`topologySpreadConstraints` must not be given; scheduling gates are replaced by "
            "Spinney's own. restartPolicy: Always by default, Never for Training.",
            core="PodSpec",
            required=True,
        ),
    ]
    replicas: Annotated[
        int,
        Field(
            "How many pods the clique has. 0 in a template counts as not given. A change in a "
            "template reaches cliques made from then on; existing ones are scaled by their "
            "scale subresource.",
            example="4",
        ),
    ] = 1
    min_available: Annotated[
        int | None,
        Field(
            "How many pods must be placed together for any to start, and below how many ready "
            "ones the clique counts as broken. From 1 to replicas. Immutable. "
            "Default: replicas.",
        ),
    ] = None
    starts_after: Annotated[
        tuple[str, ...],
        Field(
            "With start-up type Explicit: the cliques whose minAvailable pods must be ready "
            "before these start. Immutable. In a PodClique made by Spinney: full names."
        ),
    ] = ()
    auto_scaling_config: Annotated[
        AutoScalingConfig | None,
        Field("How the clique scales by itself; not for cliques in a group."),
    ] = None


class PodsSelectedToUpdate(Record):
    """Which ready pods an update took."""

    current: Annotated[str, Field("The pod being replaced now.")] = ""
    others: Annotated[
        tuple[str, ...],
        Field("Further pods being replaced now, where maxUnavailable allows it.", ours=True),
    ] = ()
    completed: Annotated[tuple[str, ...], Field("Pods replaced before.")] = ()


class PodCliqueUpdateProgress(Record):
    """How far the update of a clique has come."""

    update_started_at: Annotated[datetime | None, Field("When the update began here.")] = None
    update_ended_at: Annotated[
        datetime | None, Field("When it was complete; absent while it runs.")
    ] = None
    pod_clique_set_generation_hash: Annotated[
        str, Field("The generation hash of the set this update leads to.")
    ] = ""
    pod_template_hash: Annotated[
        str, Field("The template hash every pod has when the update is complete.")
    ] = ""
    replicas_at_start: Annotated[
        int,
        Field(
            "How many pods there were when the update began here; those that came later do not "
            "hold it up.",
            ours=True,
        ),
    ] = 0
    ready_pods_selected_to_update: Annotated[
        PodsSelectedToUpdate | None, Field("Which ready pods were taken, one at a time.")
    ] = None
    last_progress_at: Annotated[
        datetime | None, Field("When something was last newly complete.", ours=True)
    ] = None


class FailedPod(Record):
    """A pod of a training clique that ended badly."""

    index: Annotated[int, Field("The pod's index.")] = 0
    exit_code: Annotated[int | None, Field("The exit code, where a container ended.")] = None
    reason: Annotated[str, Field("Why: `Error`, `OOMKilled`, `Evicted`, `NodeLost` …")] = ""


class PodCliqueStatus(Record):
    """What is observed of a clique."""

    observed_generation: Annotated[
        int | None, Field("The generation this status speaks of.", format="int64")
    ] = None
    last_errors: Annotated[
        tuple[LastError, ...], Field("What went wrong in the last look, if anything did.")
    ] = ()
    replicas: Annotated[int, Field("Pods there are, terminating ones left out.")] = 0
    ready_replicas: Annotated[int, Field("Pods that are ready, terminating ones left out.")] = 0
    updated_replicas: Annotated[int, Field("Pods made from the template aimed at.")] = 0
    schedule_gated_replicas: Annotated[int, Field("Pods held back by a scheduling gate.")] = 0
    scheduled_replicas: Annotated[int, Field("Pods that have a node.")] = 0
    hpa_pod_selector: Annotated[
        str, Field("Selects the clique's pods, for autoscalers; only outside groups.")
    ] = ""
    conditions: Annotated[
        tuple[Condition, ...],
        Field(
            "`PodCliqueScheduled`, `MinAvailableBreached`, for Training `Succeeded`.",
            list_keys=("type",),
        ),
    ] = ()
    current_pod_clique_set_generation_hash: Annotated[
        str, Field("The generation hash of the set that the clique's pods all follow.")
    ] = ""
    current_pod_template_hash: Annotated[
        str, Field("The template hash that the clique's pods all follow.")
    ] = ""
    rolling_update_progress: Annotated[
        PodCliqueUpdateProgress | None, Field("How far an update has come, or the last one came.")
    ] = None
    leaving_pods: Annotated[
        tuple[str, ...],
        Field(
            "Pods chosen to go in a scale-in, written before any is deleted.",
            ours=True,
            atomic=True,
        ),
    ] = ()
    was_available: Annotated[
        bool,
        Field(
            "Whether minAvailable pods were ever ready together. Stays true; gang termination "
            "never acts before it is.",
            ours=True,
        ),
    ] = False
    succeeded_indexes: Annotated[
        str,
        Field(
            "For Training: the indexes of the pods that ended with exit code 0, as ranges.",
            ours=True,
            example="0-3,5",
        ),
    ] = ""
    failed_pods: Annotated[
        tuple[FailedPod, ...],
        Field("For Training: the pods of this attempt that ended badly.", ours=True, atomic=True),
    ] = ()


class PodClique(Record):
    """Pods of one role, made by a PodCliqueSet or by one of its scaling groups."""

    metadata: Annotated[ObjectMeta, Field("Name, labels and what all objects have.")]
    spec: Annotated[PodCliqueSpec, Field("What the clique should be.", required=True)]
    status: Annotated[PodCliqueStatus, Field("What it is.")] = PodCliqueStatus()


def spec_rules(spec: Cursor) -> Iterator[FieldError]:
    """Yield what is wrong with the counts of a clique's spec, in a template or of its own."""
    replicas, floor = spec["replicas"], spec["minAvailable"]
    count, least = replicas.integer(), floor.integer()
    if count is not None and count <= 0:
        yield replicas.invalid("must be greater than 0")
    if least is not None and least <= 0:
        yield floor.invalid("must be greater than 0")
    if least is not None and count is not None and least > count > 0:
        yield floor.invalid(f"must be less than or equal to replicas ({shown(count)})")
    if not floor and count is not None and count > 0:
        yield floor.required("say how many pods are needed")


def _rules(new: Cursor, _surroundings: Surroundings) -> Iterator[FieldError]:
    yield from metadata_faults(new["metadata"], namespaced=True)
    yield from spec_rules(new["spec"])


def _update_rules(old: Cursor, new: Cursor, surroundings: Surroundings) -> Iterator[FieldError]:
    yield from metadata_faults(new["metadata"], namespaced=True)
    was, spec = old["spec"], new["spec"]
    yield from _scale_rules(was, spec, surroundings)
    for field in ("roleName", "minAvailable", "startsAfter"):
        if not same_content(was[field].value, spec[field].value):
            yield spec[field].invalid("field is immutable")


def _scale_rules(was: Cursor, spec: Cursor, surroundings: Surroundings) -> Iterator[FieldError]:
    replicas, floor = spec["replicas"], spec["minAvailable"].integer()
    count = replicas.integer()
    if count is None or count == was["replicas"].integer():
        return
    if surroundings.root_workload_type == "Training":
        yield replicas.forbidden("a Training workload has a fixed size")
    elif count <= 0 or (floor is not None and count < floor):
        yield replicas.invalid(
            f"must be greater than or equal to minAvailable ({shown(floor or 1)}); "
            "to stop a whole system, scale its PodCliqueSet to 0"
        )


KIND = Kind(
    names=Names(
        group="grove.io",
        version="v1alpha1",
        kind="PodClique",
        plural="podcliques",
        singular="podclique",
        short=("pclq",),
        categories=("all",),
    ),
    record=PodClique,
    schema=object_schema(PodClique),
    validate_create=_rules,
    validate_update=_update_rules,
    columns=(
        Column(name="MinAvail", path=".spec.minAvailable"),
        Column(name="Replicas", path=".spec.replicas"),
        Column(name="Ready", path=".status.readyReplicas"),
        Column(name="Scheduled", path=".status.scheduledReplicas"),
        Column(name="Updated", path=".status.updatedReplicas"),
        Column(name="Gated", path=".status.scheduleGatedReplicas", priority=1),
        MIN_BREACHED,
        AGE,
    ),
    scale=ScalePaths(),
)
