"""PodCliqueSet: a whole system, declared as one object, and run in as many copies as wanted."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated

from spinney.api import backends, mnnvl, template_rules, templates, training
from spinney.api.kinds import Column, Kind, Names, ScalePaths, object_schema
from spinney.api.status import AGE, LastError
from spinney.api.surroundings import Surroundings
from spinney.api.templates import INFERENCE, TRAINING, PodCliqueSetTemplateSpec
from spinney.api.topology import no_pack_domain
from spinney.api.training import TrainingSpec
from spinney.meta.conditions import Condition
from spinney.meta.cursors import Cursor
from spinney.meta.documents import Document, string_at
from spinney.meta.errors import FieldError
from spinney.meta.metadata import ObjectMeta, metadata_faults
from spinney.meta.quantities import IntOrString, parse_int_or_percent
from spinney.meta.records import Field, Record

ROLLING_RECREATE = "RollingRecreate"
ON_DELETE = "OnDelete"
COHERENT = "Coherent"


class RollingRecreate(Record):
    """How many may be down at once in a rolling update."""

    max_unavailable: Annotated[
        IntOrString | None,
        Field(
            "How many group replicas, and how many pods of a clique, may be down at once, as a "
            "count or as a percentage of them (rounded down, at least 1). Further ones than the "
            "first are taken only while more than minAvailable are ready. Default: 1.",
            ours=True,
            example="25%",
        ),
    ] = None


class UpdateStrategy(Record):
    """How a changed template reaches what already runs."""

    type: Annotated[
        str,
        Field(
            "RollingRecreate: one replica after the other, by itself. OnDelete: pods take the new "
            "template when they are deleted. Coherent: within a set replica, changed cliques "
            "and groups move in lock-step, in as many steps as leave each at least minAvailable "
            "a step, so that versions never have to talk to each other. A replica with "
            "replicas = minAvailable somewhere is replaced in one step; maxUnavailable does "
            "not count.",
            enum=(ROLLING_RECREATE, ON_DELETE, COHERENT),
        ),
    ] = ROLLING_RECREATE
    progress_deadline_seconds: Annotated[
        int,
        Field(
            "After how long without progress an update is called stuck: condition Progressing "
            "becomes False and names what blocks it.",
            minimum=1,
            ours=True,
        ),
    ] = 600
    paused: Annotated[
        bool,
        Field("Whether an update takes nothing further for now.", ours=True),
    ] = False
    rolling_recreate: Annotated[
        RollingRecreate | None, Field("How many may be down at once.", ours=True)
    ] = None


class PodCliqueSetSpec(Record, kw_only=True):
    """What the system is made of, in how many copies, and how it changes."""

    RULES = (
        no_pack_domain(".template.topologyConstraint"),
        no_pack_domain(".template.cliques", each="c"),
        no_pack_domain(".template.podCliqueScalingGroups", each="g"),
    )

    replicas: Annotated[
        int,
        Field(
            "How many copies of the whole system run. 0 stops it and keeps the object "
            "(not for Training).",
            minimum=0,
        ),
    ] = 0
    workload_type: Annotated[
        str,
        Field(
            "Inference runs until it is deleted; Training runs to its end. Immutable.",
            enum=(INFERENCE, TRAINING),
            ours=True,
        ),
    ] = INFERENCE
    training_spec: Annotated[
        TrainingSpec | None,
        Field("How a Training workload restarts and ends.", ours=True),
    ] = None
    update_strategy: Annotated[
        UpdateStrategy, Field("How a changed template reaches what already runs.")
    ] = UpdateStrategy()
    template: Annotated[PodCliqueSetTemplateSpec, Field("What one copy is made of.", required=True)]


class SetReplicaUpdateProgress(Record):
    """The set replica in update."""

    replica_index: Annotated[int, Field("Which replica.")] = 0
    update_started_at: Annotated[datetime | None, Field("When its turn came.")] = None
    step: Annotated[
        int,
        Field(
            "For Coherent: in which step its changed cliques and groups are, all of them; 0 while "
            "they tell whether they change.",
            ours=True,
        ),
    ] = 0
    steps: Annotated[int, Field("For Coherent: how many steps there are.", ours=True)] = 0


class PodCliqueSetUpdateProgress(Record):
    """How far the update of a set has come."""

    update_started_at: Annotated[datetime | None, Field("When the update began.")] = None
    update_ended_at: Annotated[
        datetime | None, Field("When it was complete; absent while it runs.")
    ] = None
    pod_clique_set_generation_hash: Annotated[
        str, Field("The generation hash this update leads to.")
    ] = ""
    currently_updating: Annotated[
        SetReplicaUpdateProgress | None, Field("The replica in update; one at most.")
    ] = None
    updated_pod_cliques: Annotated[
        tuple[str, ...],
        Field("The cliques that are updated in the replica in update.", atomic=True),
    ] = ()
    updated_pod_clique_scaling_groups: Annotated[
        tuple[str, ...],
        Field("The groups that are updated in the replica in update.", atomic=True),
    ] = ()
    updated_pod_cliques_count: Annotated[
        int, Field("Cliques outside groups that are updated, in all replicas.")
    ] = 0
    total_pod_cliques_count: Annotated[int, Field("Cliques outside groups, in all replicas.")] = 0
    updated_pod_clique_scaling_groups_count: Annotated[
        int, Field("Groups that are updated, in all replicas.")
    ] = 0
    total_pod_clique_scaling_groups_count: Annotated[int, Field("Groups, in all replicas.")] = 0
    last_progress_at: Annotated[
        datetime | None, Field("When something was last newly complete.", ours=True)
    ] = None


class PodGangStatusSummary(Record):
    """What a set's status tells of one gang."""

    name: Annotated[str, Field("The PodGang.", required=True)]
    phase: Annotated[str, Field("Its phase.")] = "Pending"
    conditions: Annotated[tuple[Condition, ...], Field("Its conditions.", list_keys=("type",))] = ()


class ReplicaAttempt(Record):
    """How often one replica of a Training workload was restarted."""

    index: Annotated[int, Field("The set replica.", required=True)]
    attempt: Annotated[int, Field("Its attempt now; the first is 0.", required=True)]
    reason: Annotated[str, Field("Why the attempt before it ended.")] = ""
    restarted_at: Annotated[datetime | None, Field("When it ended.")] = None


class PodCliqueSetStatus(Record):
    """What is observed of a set."""

    observed_generation: Annotated[
        int | None, Field("The generation this status speaks of.", format="int64")
    ] = None
    conditions: Annotated[
        tuple[Condition, ...],
        Field(
            "`TopologyLevelsUnavailable`, `Progressing`, `NameConflict`; for Training "
            "`Failing`, `Failed`.",
            list_keys=("type",),
        ),
    ] = ()
    last_errors: Annotated[
        tuple[LastError, ...], Field("What went wrong in the last look, if anything did.")
    ] = ()
    replicas: Annotated[int, Field("Set replicas there are.")] = 0
    updated_replicas: Annotated[
        int, Field("Set replicas that are complete on the current template.")
    ] = 0
    available_replicas: Annotated[
        int, Field("Set replicas whose every clique and group has minAvailable ready.")
    ] = 0
    hpa_pod_selector: Annotated[str, Field("Selects the set's pods, for autoscalers.")] = ""
    phase: Annotated[
        str,
        Field(
            "Pending: nothing runs yet. Running: some pod runs. Succeeded and Failed, for "
            "Training only, are final.",
            enum=("Pending", "Running", "Succeeded", "Failed"),
            ours=True,
        ),
    ] = ""
    restart_count: Annotated[
        int, Field("For Training: restarts used up, over all replicas.", ours=True)
    ] = 0
    start_time: Annotated[
        datetime | None,
        Field("For Training: when something first ran; maxRuntime counts from it.", ours=True),
    ] = None
    replica_attempts: Annotated[
        tuple[ReplicaAttempt, ...],
        Field("For Training: replicas that were restarted.", list_keys=("index",), ours=True),
    ] = ()
    pod_gang_statuses: Annotated[
        tuple[PodGangStatusSummary, ...],
        Field("The newest 50 gangs that are not Running.", list_keys=("name",)),
    ] = ()
    pod_gang_counts: Annotated[
        Mapping[str, int], Field("How many gangs there are in each phase.", ours=True)
    ] = {}
    current_generation_hash: Annotated[
        str, Field("The hash of what the template says now: what an update leads to.")
    ] = ""
    rolling_update_progress: Annotated[
        PodCliqueSetUpdateProgress | None,
        Field("How far an update has come, or the last one came."),
    ] = None


class PodCliqueSet(Record):
    """A whole system made of gangs of pods: an inference service, or a training job."""

    metadata: Annotated[ObjectMeta, Field("Name, labels and what all objects have.")]
    spec: Annotated[PodCliqueSetSpec, Field("What the system should be.", required=True)]
    status: Annotated[PodCliqueSetStatus, Field("What it is.")] = PodCliqueSetStatus()


def _default(document: Document) -> Document:
    spec = document.get("spec")
    if not isinstance(spec, dict):
        return document
    template = spec.get("template")
    if not isinstance(template, dict):
        return document
    workload_type = string_at(spec, ["workloadType"])
    filled = {**spec, "template": templates.defaulted(template, workload_type)}
    return {**document, "spec": filled}


def _workload_type(set_: Cursor) -> str:
    return set_["spec"]["workloadType"].string() or INFERENCE


def _create_rules(new: Cursor, surroundings: Surroundings) -> Iterator[FieldError]:
    template = new["spec"]["template"]
    yield from _rules(new, surroundings)
    yield from template_rules.create_rules(template, surroundings)
    yield from mnnvl.create_rules(new["metadata"], template, surroundings)


def _rules(new: Cursor, surroundings: Surroundings) -> Iterator[FieldError]:
    metadata, spec = new["metadata"], new["spec"]
    workload_type = _workload_type(new)
    yield from metadata_faults(metadata, namespaced=True)
    yield from training.rules(spec)
    yield from _strategy_rules(spec["updateStrategy"])
    template = spec["template"]
    yield from template_rules.rules(template, metadata["name"], workload_type, surroundings)
    yield from backends.rules(metadata, template, surroundings)


def _strategy_rules(strategy: Cursor) -> Iterator[FieldError]:
    most = strategy["rollingRecreate"]["maxUnavailable"]
    value = most.value
    if not isinstance(value, (int, str)) or isinstance(value, bool):
        return
    try:
        count, is_percent = parse_int_or_percent(value)
    except ValueError as error:
        yield most.invalid(str(error))
        return
    if count < 1:
        yield most.invalid("must be at least 1, or at least 1%")
    elif is_percent and count > 100:
        yield most.invalid("must be at most 100%")


def _update_rules(old: Cursor, new: Cursor, surroundings: Surroundings) -> Iterator[FieldError]:
    was, template = old["spec"]["template"], new["spec"]["template"]
    yield from _rules(new, surroundings)
    yield from template_rules.update_rules(was, template, surroundings)
    yield from mnnvl.update_rules(old["metadata"], was, new["metadata"], template)
    yield from training.update_rules(old, new)


def _advise(new: Cursor, old: Cursor | None, surroundings: Surroundings) -> Iterator[str]:
    spec = new["spec"]
    yield from training.advice(spec)
    yield from _strategy_advice(spec["updateStrategy"])
    yield from template_rules.advice(
        spec["template"],
        None if old is None else old["spec"]["template"],
        _workload_type(new),
        surroundings,
    )


def _strategy_advice(strategy: Cursor) -> Iterator[str]:
    most, type_ = strategy["rollingRecreate"]["maxUnavailable"], strategy["type"].string()
    if most.value is not None and type_ in (COHERENT, ON_DELETE):
        yield f"{most.path}: does not count with type {type_}"


def _progress(name: str, field: str) -> Column:
    return Column(name=name, path=f".status.rollingUpdateProgress.{field}")


KIND = Kind(
    names=Names(
        group="grove.io",
        version="v1alpha1",
        kind="PodCliqueSet",
        plural="podcliquesets",
        singular="podcliqueset",
        short=("pcs", "pgs"),
        categories=("all",),
    ),
    record=PodCliqueSet,
    schema=object_schema(PodCliqueSet),
    default=_default,
    validate_create=_create_rules,
    validate_update=_update_rules,
    advise=_advise,
    columns=(
        Column(name="Replicas", path=".spec.replicas"),
        Column(name="Available", path=".status.availableReplicas"),
        Column(name="Updated", path=".status.updatedReplicas"),
        _progress("PCLQs-Updated", "updatedPodCliquesCount"),
        _progress("PCLQs-Total", "totalPodCliquesCount"),
        _progress("PCSGs-Updated", "updatedPodCliqueScalingGroupsCount"),
        _progress("PCSGs-Total", "totalPodCliqueScalingGroupsCount"),
        Column(name="Phase", path=".status.phase", type="string"),
        Column(name="Restarts", path=".status.restartCount"),
        AGE,
    ),
    scale=ScalePaths(),
)
