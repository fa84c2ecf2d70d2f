"""ModelDeployment: revisions of a system behind one endpoint, rolled out under a budget."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated

from spinney.api import backends, mnnvl, template_rules, templates
from spinney.api.kinds import Column, Kind, Names, ScalePaths, object_schema
from spinney.api.status import AGE
from spinney.api.surroundings import Surroundings
from spinney.api.templates import INFERENCE, PodCliqueSetTemplateSpec
from spinney.meta import metadata, schemas
from spinney.meta.conditions import Condition
from spinney.meta.cursors import Cursor
from spinney.meta.documents import Document, object_at, string_at
from spinney.meta.errors import FieldError, listed, shown
from spinney.meta.metadata import ObjectMeta, metadata_faults
from spinney.meta.quantities import IntOrString, parse_int_or_percent
from spinney.meta.records import Field, Record

ROLLING_UPDATE = "RollingUpdate"
BLUE_GREEN = "BlueGreen"

ROUTE_SUFFIX_LENGTH = 12
"""What a route's name adds to the deployment's: two hyphens, a revision, an ordinal."""


class TemplateMetadata(Record):
    """Labels and annotations of every route's PodCliqueSet."""

    labels: Annotated[Mapping[str, str], Field("Labels.")] = {}
    annotations: Annotated[Mapping[str, str], Field("Annotations.")] = {}


class RevisionTemplate(Record, kw_only=True):
    """What a revision is: the same content is the same revision."""

    metadata: Annotated[
        TemplateMetadata, Field("Labels and annotations of every route's PodCliqueSet.")
    ] = TemplateMetadata()
    spec: Annotated[
        PodCliqueSetTemplateSpec,
        Field("What one route is made of, as in a PodCliqueSet's template.", required=True),
    ]


class RollingUpdate(Record):
    """The budget of a rolling update."""

    max_surge: Annotated[
        IntOrString,
        Field(
            "How many routes there may be above replicas, as a count or as a percentage of it, "
            "rounded up."
        ),
    ] = "25%"
    max_unavailable: Annotated[
        IntOrString,
        Field(
            "How many ready routes there may be below replicas, as a count or as a percentage "
            "of it, rounded down. Where both come to 0, this counts as 1."
        ),
    ] = 0


class BlueGreen(Record):
    """How a whole new version takes over from the old one."""

    auto_promote: Annotated[
        bool,
        Field("Whether the new version takes over by itself, or waits for `rollout promote`."),
    ] = True
    promote_delay_seconds: Annotated[
        int,
        Field("How long the whole new version must have been healthy before it.", minimum=0),
    ] = 0
    retain_seconds: Annotated[
        int,
        Field("How long the old version is kept afterwards, for an instant undo.", minimum=0),
    ] = 0


class DeploymentStrategy(Record):
    """How a new revision takes the place of the old one."""

    type: Annotated[
        str,
        Field(
            "RollingUpdate: a few routes at a time. BlueGreen: all at once, when all are healthy.",
            enum=(ROLLING_UPDATE, BLUE_GREEN),
        ),
    ] = ROLLING_UPDATE
    rolling_update: Annotated[RollingUpdate | None, Field("The budget of a rolling update.")] = None
    blue_green: Annotated[BlueGreen | None, Field("How the new version takes over.")] = None


class HealthCheck(Record):
    """How it is asked whether a route can serve; without it, availability is health."""

    path: Annotated[
        str, Field("What is requested with HTTP GET; 200 to 399 is healthy.", example="/health")
    ] = "/"
    interval_seconds: Annotated[int, Field("How often.", minimum=1)] = 10
    timeout_seconds: Annotated[int, Field("How long an answer may take.", minimum=1)] = 5
    failure_threshold: Annotated[
        int, Field("After how many failures in a row a route is unhealthy.", minimum=1)
    ] = 3
    initial_delay_seconds: Annotated[
        int, Field("How long after its start failures are not counted.", minimum=0)
    ] = 60


class RouteEndpoint(Record):
    """Whose pods of a route serve, where, and how their health is asked. Part of a revision."""

    clique: Annotated[str, Field("The clique whose pods serve.", required=True)]
    port: Annotated[int, Field("The port they serve on.", minimum=1, maximum=65535, required=True)]
    health_check: Annotated[
        HealthCheck | None, Field("How their health is asked; availability alone without it.")
    ] = None


class Endpoint(RouteEndpoint):
    """How requests come in."""

    drain_seconds: Annotated[
        int, Field("How long requests in flight may go on when a route goes.", minimum=0)
    ] = 30


class ModelDeploymentSpec(Record, kw_only=True):
    """Which system is to serve, in how many routes, and how new revisions come in."""

    replicas: Annotated[
        int, Field("How many routes serve: each one copy of the system. 0 stops it.", minimum=0)
    ] = 1
    template: Annotated[RevisionTemplate, Field("What a route is made of.", required=True)]
    strategy: Annotated[
        DeploymentStrategy, Field("How a new revision takes the place of the old one.")
    ] = DeploymentStrategy()
    min_ready_seconds: Annotated[
        int, Field("How long a route must be healthy before it counts.", minimum=0)
    ] = 0
    progress_deadline_seconds: Annotated[
        int,
        Field("How long a rollout may go without progress before it is given up.", minimum=1),
    ] = 600
    max_failed_routes: Annotated[
        int,
        Field("How many new routes may fail before a rollout is given up.", minimum=1),
    ] = 3
    auto_rollback: Annotated[
        bool, Field("Whether a rollout that is given up goes back, or stops and says so.")
    ] = True
    paused: Annotated[bool, Field("Whether a rollout does nothing further for now.")] = False
    revision_history_limit: Annotated[
        int, Field("How many revisions are kept besides those in use.", minimum=0)
    ] = 10
    endpoint: Annotated[Endpoint | None, Field("How requests come in.")] = None


class FailedRoute(Record):
    """A new route that failed, and what was seen of it."""

    name: Annotated[str, Field("The route.", required=True)]
    uid: Annotated[str, Field("The route's uid.")] = ""
    reason: Annotated[str, Field("Why it counts as failed.")] = ""
    evidence: Annotated[str, Field("Pod, exit code, last lines of its log.")] = ""


class RolloutBudget(Record):
    """What was frozen when the rollout began."""

    strategy: Annotated[str, Field("RollingUpdate or BlueGreen.")] = ROLLING_UPDATE
    max_surge: Annotated[IntOrString | None, Field("As written then.")] = None
    max_unavailable: Annotated[IntOrString | None, Field("As written then.")] = None


class RolloutStatus(Record):
    """The rollout that is going on, or the last one."""

    number: Annotated[int, Field("Which rollout of this deployment.")] = 0
    from_revision: Annotated[int | None, Field("The revision that served before.")] = None
    to_revision: Annotated[int | None, Field("The revision that is to serve.")] = None
    budget: Annotated[RolloutBudget | None, Field("What was frozen when it began.")] = None
    routes: Annotated[
        Mapping[str, int],
        Field("How many routes are in each bucket: new_ready, old_ready, draining …"),
    ] = {}
    started_at: Annotated[datetime | None, Field("When it began.")] = None
    progressed_at: Annotated[datetime | None, Field("When it last came further.")] = None
    ended_at: Annotated[datetime | None, Field("When it was over.")] = None
    ready_most: Annotated[
        int, Field("The most new routes that were ready at once: progress is a new maximum.")
    ] = 0
    old_least: Annotated[
        int | None, Field("The fewest live old routes seen: progress is a new minimum.")
    ] = None
    failed_routes: Annotated[
        tuple[FailedRoute, ...], Field("New routes that failed.", list_keys=("name",))
    ] = ()
    reason: Annotated[str, Field("What it waits for, as a sentence.")] = ""


class HistoryRow(Record):
    """One step of one rollout; equal ones that follow each other are one row."""

    rollout: Annotated[int, Field("Which rollout.")] = 0
    from_revision: Annotated[int | None, Field("From which revision.")] = None
    to_revision: Annotated[int | None, Field("To which revision.")] = None
    phase: Annotated[str, Field("The deployment's phase then.")] = ""
    sub_step: Annotated[str, Field("The sub-step then.")] = ""
    result: Annotated[str, Field("How it came out.")] = ""
    reason: Annotated[str, Field("Why.")] = ""
    attempts: Annotated[int, Field("How often it was looked at.")] = 1
    started_at: Annotated[datetime | None, Field("When it began.")] = None
    ended_at: Annotated[datetime | None, Field("When it ended.")] = None


class ModelDeploymentStatus(Record):
    """What is observed of a deployment."""

    observed_generation: Annotated[
        int | None, Field("The generation this status speaks of.", format="int64")
    ] = None
    phase: Annotated[
        str,
        Field(
            "Whether revisions are changing.",
            enum=("Pending", "Deploying", "Ready", "Failed"),
        ),
    ] = ""
    sub_step: Annotated[
        str,
        Field(
            "What a rollout is doing.",
            enum=(
                "Provisioning",
                "Progressing",
                "AwaitingPromotion",
                "Paused",
                "RollingBack",
                "RolledBack",
            ),
        ),
    ] = ""
    replicas: Annotated[int, Field("Routes there are, terminated ones left out.")] = 0
    ready_replicas: Annotated[int, Field("Routes that run and are healthy.")] = 0
    updated_replicas: Annotated[int, Field("Live routes of the revision aimed at.")] = 0
    selector: Annotated[str, Field("Selects the serving pods, for autoscalers.")] = ""
    current_revision: Annotated[int | None, Field("The last revision that completed.")] = None
    deploying_revision: Annotated[int | None, Field("The revision being rolled out.")] = None
    serving_revision: Annotated[int | None, Field("The revision requests go to.")] = None
    failed_revision: Annotated[
        int | None, Field("A revision that failed and is not tried again by itself.")
    ] = None
    rollout: Annotated[RolloutStatus | None, Field("The rollout going on, or the last.")] = None
    history: Annotated[
        tuple[HistoryRow, ...], Field("The newest 20 steps of rollouts.", atomic=True)
    ] = ()
    conditions: Annotated[
        tuple[Condition, ...],
        Field("`Available`, `Progressing`, `RolledBack`.", list_keys=("type",)),
    ] = ()


class ModelDeployment(Record):
    """Revisions of a system behind one endpoint, rolled out under a budget, with rollback."""

    metadata: Annotated[ObjectMeta, Field("Name, labels and what all objects have.")]
    spec: Annotated[ModelDeploymentSpec, Field("What should serve.", required=True)]
    status: Annotated[ModelDeploymentStatus, Field("What serves.")] = ModelDeploymentStatus()


def default_revision(spec: Document) -> Document:
    """Return a deployment's or route's spec with its template's defaults filled in."""
    template = spec.get("template")
    if not isinstance(template, dict) or not isinstance(template.get("spec"), dict):
        return spec
    inner = templates.defaulted(object_at(template, ["spec"]), INFERENCE)
    return {**spec, "template": {**template, "spec": inner}}


def _default(document: Document) -> Document:
    spec = document.get("spec")
    if not isinstance(spec, dict):
        return document
    return {**document, "spec": _with_strategy(default_revision(spec))}


_BLOCKS = {ROLLING_UPDATE: "rollingUpdate", BLUE_GREEN: "blueGreen"}


def _with_strategy(spec: Document) -> Document:
    strategy = spec.get("strategy", {})
    if not isinstance(strategy, dict):
        return spec
    kind = string_at(strategy, ["type"]) or ROLLING_UPDATE
    filled: Document = {**strategy, "type": strategy.get("type", kind)}
    block = _BLOCKS.get(kind)
    if block is not None and filled.get(block) is None:
        filled[block] = schemas.defaults_of(_STRATEGY_SCHEMA.properties[block])
    return {**spec, "strategy": filled}


def revision_rules(
    metadata_cursor: Cursor, spec: Cursor, surroundings: Surroundings, *, suffix_length: int
) -> Iterator[FieldError]:
    """Yield what is wrong with the template and endpoint of a deployment or a route."""
    template = spec["template"]
    yield from metadata.label_faults(template["metadata"]["labels"])
    yield from metadata.annotation_faults(template["metadata"]["annotations"])
    name = metadata_cursor["name"]
    length = len((name.string() or "").encode("utf-8", "replace")) + suffix_length
    yield from template_rules.rules(
        template["spec"], name, INFERENCE, surroundings, name_length=length
    )
    yield from backends.rules(template["metadata"], template["spec"], surroundings)
    endpoint = spec["endpoint"]
    clique = endpoint["clique"].string()
    known = [item["name"].string() or "" for item in template["spec"]["cliques"]]
    if clique is not None and known and clique not in known:
        yield endpoint["clique"].not_found(
            f"no clique of this name in the template, which has: {listed(known)}"
        )
    path = endpoint["healthCheck"]["path"]
    if path.string() is not None and not (path.string() or "").startswith("/"):
        yield path.invalid('must begin with "/"')


def _rules(new: Cursor, surroundings: Surroundings) -> Iterator[FieldError]:
    yield from metadata_faults(new["metadata"], namespaced=True)
    spec = new["spec"]
    yield from revision_rules(
        new["metadata"], spec, surroundings, suffix_length=ROUTE_SUFFIX_LENGTH
    )
    yield from _budget_rules(spec["strategy"]["rollingUpdate"])
    ready, deadline = spec["minReadySeconds"].integer(), spec["progressDeadlineSeconds"]
    if ready is not None and 0 < (deadline.integer() or 0) <= ready:
        yield deadline.invalid(f"must be greater than minReadySeconds ({shown(ready)})")


def _budget_rules(budget: Cursor) -> Iterator[FieldError]:
    counts: list[int] = []
    for field in ("maxSurge", "maxUnavailable"):
        share = budget[field]
        value = share.value
        if not isinstance(value, (int, str)) or isinstance(value, bool):
            continue
        try:
            count, is_percent = parse_int_or_percent(value)
        except ValueError as error:
            yield share.invalid(str(error))
            continue
        counts.append(count)
        if count < 0:
            yield share.invalid("must be greater than or equal to 0")
        elif is_percent and count > 100:
            yield share.invalid("must be at most 100%")
    if counts == [0, 0]:
        yield budget["maxUnavailable"].invalid(
            f"must not be 0 while {budget['maxSurge'].path} is 0: nothing could ever be replaced"
        )


def _create_rules(new: Cursor, surroundings: Surroundings) -> Iterator[FieldError]:
    yield from _rules(new, surroundings)
    template = new["spec"]["template"]
    yield from template_rules.create_rules(template["spec"], surroundings)
    yield from mnnvl.create_rules(template["metadata"], template["spec"], surroundings)


def _update_rules(old: Cursor, new: Cursor, surroundings: Surroundings) -> Iterator[FieldError]:
    yield from _rules(new, surroundings)
    template = new["spec"]["template"]
    yield from mnnvl.create_rules(template["metadata"], template["spec"], surroundings)
    if template.value != old["spec"]["template"].value:
        yield from template_rules.create_rules(template["spec"], surroundings)


def _advise(new: Cursor, _old: Cursor | None, surroundings: Surroundings) -> Iterator[str]:
    template = new["spec"]["template"]["spec"]
    yield from template_rules.advice(template, None, INFERENCE, surroundings)


KIND = Kind(
    names=Names(
        group="spinney.dev",
        version="v1alpha1",
        kind="ModelDeployment",
        plural="modeldeployments",
        singular="modeldeployment",
        short=("mdep",),
        categories=("all",),
    ),
    record=ModelDeployment,
    schema=object_schema(ModelDeployment),
    default=_default,
    validate_create=_create_rules,
    validate_update=_update_rules,
    advise=_advise,
    columns=(
        Column(name="Desired", path=".spec.replicas"),
        Column(name="Ready", path=".status.readyReplicas"),
        Column(name="Updated", path=".status.updatedReplicas"),
        Column(name="Revision", path=".status.currentRevision"),
        Column(name="Phase", path=".status.phase", type="string"),
        Column(name="Step", path=".status.subStep", type="string"),
        AGE,
    ),
    scale=ScalePaths(selector=".status.selector"),
)

_STRATEGY_SCHEMA = KIND.schema.properties["spec"].properties["strategy"]
