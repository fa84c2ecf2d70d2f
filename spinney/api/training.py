"""Training: how a finite workload restarts, what it may cost, and how it ends."""

from collections.abc import Iterator
from typing import Annotated

from spinney.api.templates import TRAINING
from spinney.meta.cursors import Cursor
from spinney.meta.documents import Json, same_content
from spinney.meta.durations import Duration, format_duration
from spinney.meta.errors import FieldError
from spinney.meta.records import Field, Record

RESTART_REPLICA = "RestartReplica"
RESTART_WITHOUT_COUNTING = "RestartReplicaWithoutCounting"
FAIL_WORKLOAD = "FailWorkload"


class RestartBackoff(Record):
    """How long to wait before a replica is restarted: doubled each time, up to a cap."""

    initial_delay: Annotated[
        Duration, Field("Before the first restart. Default: 10s.", example="10s")
    ] = Duration(seconds=10)
    max_delay: Annotated[Duration, Field("The longest wait. Default: 5m.", example="5m")] = (
        Duration(minutes=5)
    )


class FailureRule(Record):
    """What to do when a container ends with one of some exit codes."""

    exit_codes: Annotated[
        tuple[int, ...],
        Field("From 1 to 255; 128 + n for signal n.", required=True, set_list=True),
    ]
    action: Annotated[
        str,
        Field(
            "RestartReplica counts against maxRestarts, RestartReplicaWithoutCounting does not, "
            "FailWorkload ends the whole workload at once.",
            enum=(FAIL_WORKLOAD, RESTART_REPLICA, RESTART_WITHOUT_COUNTING),
            required=True,
        ),
    ]


class FailurePolicy(Record):
    """What to do on which failure; without a matching rule, RestartReplica."""

    rules: Annotated[
        tuple[FailureRule, ...], Field("The first rule that matches decides.", required=True)
    ]


class TrainingSpec(Record):
    """How a Training workload restarts and ends."""

    max_runtime: Annotated[
        Duration | None,
        Field(
            "How long the workload may take, by the clock, from when something first ran; "
            "restarts do not reset it. Not given: no limit.",
            example="24h",
        ),
    ] = None
    max_restarts: Annotated[
        int,
        Field(
            "How many restarts of replicas there may be, over all of them, before the workload "
            "fails.",
            minimum=0,
        ),
    ] = 0
    ttl_seconds_after_finished: Annotated[
        int | None,
        Field("After how long an ended workload is deleted. Not given: never.", minimum=0),
    ] = None
    suspend: Annotated[
        bool,
        Field(
            "Whether to stop all pods and keep the budgets; the gang is placed again when this "
            "is taken back. Suspended time does not count as runtime, see countSuspendedTime."
        ),
    ] = False
    count_suspended_time: Annotated[
        bool, Field("Whether suspended time counts towards maxRuntime.")
    ] = False
    restart_backoff: Annotated[
        RestartBackoff | None,
        Field("How long to wait before a restart. Not given: no wait."),
    ] = None
    failure_policy: Annotated[FailurePolicy | None, Field("What to do on which exit code.")] = None
    rendezvous: Annotated[
        str,
        Field(
            "With torch, pods get MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE and NODE_RANK, so "
            "that torchrun-style jobs need no wrapper.",
            enum=("torch",),
        ),
    ] = ""


def rules(spec: Cursor) -> Iterator[FieldError]:
    """Yield what is wrong with the training part of a set's spec."""
    training = spec["trainingSpec"]
    if spec["workloadType"].string() != TRAINING:
        if training:
            yield training.forbidden(
                f'only with workloadType "Training", {spec["workloadType"].path} is '
                f'"{spec["workloadType"].string()}"'
            )
        return
    replicas = spec["replicas"].integer()
    if replicas == 0:
        yield spec["replicas"].invalid("must be greater than 0 for Training")
    yield from _positive(training["maxRuntime"])
    backoff = training["restartBackoff"]
    yield from _positive(backoff["initialDelay"])
    yield from _positive(backoff["maxDelay"])
    first, most = backoff["initialDelay"].duration(), backoff["maxDelay"].duration()
    least = RestartBackoff().initial_delay if first is None else first
    cap = RestartBackoff().max_delay if most is None else most
    if backoff and Duration() < cap < least:
        at = backoff["maxDelay"] if most is not None else backoff["initialDelay"]
        yield at.invalid(
            f"initialDelay ({format_duration(least)}) must not be longer than "
            f"maxDelay ({format_duration(cap)})"
        )
    if training["failurePolicy"]["rules"].value == []:
        yield training["failurePolicy"]["rules"].required("must have at least one rule")
    for rule in training["failurePolicy"]["rules"]:
        codes = rule["exitCodes"]
        if codes.value == []:
            yield codes.required("name at least one exit code")
        for code in codes:
            number = code.integer()
            if number is not None and not 1 <= number <= 255:
                yield code.invalid("must be an exit code of a failure, from 1 to 255")


def _positive(cursor: Cursor) -> Iterator[FieldError]:
    span = cursor.duration()
    if span is not None and span <= Duration():
        yield cursor.invalid("must be greater than 0s")


def update_rules(old: Cursor, new: Cursor) -> Iterator[FieldError]:
    """Yield what changed in a set although it is, or would become, a Training workload."""
    was, now = old["spec"]["workloadType"], new["spec"]["workloadType"]
    if (was.string() or "Inference") != now.string():
        yield now.forbidden("field is immutable: make a new object")
        return
    if now.string() != TRAINING:
        return
    before, after = old["spec"], new["spec"]
    yield from _fixed(before, after, "replicas", "a Training workload has a fixed size")
    if old["status"]["phase"].string() in ("Succeeded", "Failed"):
        yield from _ended_rules(before, after)
    yield from _template_rules(before["template"], after["template"])


_ENDED = "the workload has ended"


def _ended_rules(before: Cursor, after: Cursor) -> Iterator[FieldError]:
    was, now = before["trainingSpec"], after["trainingSpec"]
    for field in dict.fromkeys((*(was.object() or {}), *(now.object() or {}))):
        if field != "ttlSecondsAfterFinished":
            yield from _fixed(was, now, field, _ENDED)
    yield from _fixed(before["template"], after["template"], "terminationDelay", _ENDED)
    for old, new in _pairs(before["template"], after["template"], "podCliqueScalingGroups"):
        yield from _fixed(old, new, "terminationDelay", _ENDED)


def _pairs(before: Cursor, after: Cursor, field: str) -> Iterator[tuple[Cursor, Cursor]]:
    by_name = {item["name"].string(): item for item in before[field]}
    for item in after[field]:
        if (was := by_name.get(item["name"].string())) is not None:
            yield was, item


_ROLLS = "would roll the pods, and a Training workload is not updated: make a new object"


def _template_rules(before: Cursor, after: Cursor) -> Iterator[FieldError]:
    yield from _fixed(before, after, "priorityClassName", _ROLLS)
    earlier = [clique["name"].string() for clique in before["cliques"]]
    order = [clique["name"].string() for clique in after["cliques"]]
    if order != earlier and sorted(map(str, order)) == sorted(map(str, earlier)):
        yield after["cliques"].forbidden(f"a changed order {_ROLLS}")
    for was, clique in _pairs(before, after, "cliques"):
        for field in ("labels", "annotations"):
            yield from _fixed(was, clique, field, _ROLLS)
        yield from _fixed(
            was["spec"], clique["spec"], "replicas", "a Training workload has a fixed size"
        )
        yield from _fixed(
            was["spec"], clique["spec"], "podSpec", _ROLLS, besides=("priorityClassName",)
        )
    for was, group in _pairs(before, after, "podCliqueScalingGroups"):
        yield from _fixed(was, group, "replicas", "a Training workload has a fixed size")


def _fixed(
    before: Cursor, after: Cursor, field: str, why: str, *, besides: tuple[str, ...] = ()
) -> Iterator[FieldError]:
    was, now = _compared(before[field].value, besides), _compared(after[field].value, besides)
    if not same_content(was, now):
        yield after[field].forbidden(why)


def _compared(value: Json, besides: tuple[str, ...]) -> Json:
    if isinstance(value, dict):
        return {key: below for key, below in value.items() if key not in besides}
    return value


def advice(spec: Cursor) -> Iterator[str]:
    """Yield warnings about a set's spec."""
    if spec["workloadType"].string() != TRAINING:
        return
    strategy = spec["updateStrategy"]
    if strategy["type"].string() not in (None, "RollingRecreate") or strategy["rollingRecreate"]:
        yield f"{strategy.path}: has no meaning for Training, which is not updated"
