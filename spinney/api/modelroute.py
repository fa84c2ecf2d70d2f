"""ModelRoute: one copy of one revision of a ModelDeployment, with its life, health and traffic."""

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated

from spinney.api import modeldeployment
from spinney.api.kinds import Column, Kind, Names, object_schema
from spinney.api.modeldeployment import RevisionTemplate, RouteEndpoint
from spinney.api.status import AGE
from spinney.api.surroundings import Surroundings
from spinney.meta.conditions import Condition
from spinney.meta.cursors import Cursor
from spinney.meta.documents import Document, same_content
from spinney.meta.errors import FieldError
from spinney.meta.metadata import ObjectMeta, metadata_faults
from spinney.meta.records import Field, Record

ACTIVE = "Active"
INACTIVE = "Inactive"


class ModelRouteSpec(Record):
    """Which revision the route runs, and whether requests should reach it."""

    deployment_name: Annotated[
        str, Field("The ModelDeployment it belongs to. Immutable.", required=True)
    ]
    revision: Annotated[int, Field("The revision it runs. Immutable.", minimum=1, required=True)]
    template: Annotated[RevisionTemplate, Field("What it is made of. Immutable.", required=True)]
    endpoint: Annotated[RouteEndpoint | None, Field("Whose pods serve, and where. Immutable.")] = (
        None
    )
    traffic: Annotated[
        str,
        Field(
            "Whether requests should reach it. The deployment decides.",
            enum=(ACTIVE, INACTIVE),
        ),
    ] = INACTIVE
    draining: Annotated[
        bool,
        Field("Whether it is to go: requests in flight end, then its pods do. Never taken back."),
    ] = False


class ModelRouteStatus(Record):
    """What is observed of a route: three facts, each by itself."""

    observed_generation: Annotated[
        int | None, Field("The generation this status speaks of.", format="int64")
    ] = None
    life: Annotated[
        str,
        Field(
            "Running begins with the first availability and lasts until the route is drained.",
            enum=("Provisioning", "Running", "Terminating", "Terminated", "FailedToStart"),
        ),
    ] = "Provisioning"
    health: Annotated[
        str,
        Field(
            "Degraded: there is no fresh answer.",
            enum=("NotChecked", "Healthy", "Unhealthy", "Degraded"),
        ),
    ] = "NotChecked"
    traffic: Annotated[str, Field("Whether requests reach it.", enum=(ACTIVE, INACTIVE))] = INACTIVE
    running_since: Annotated[datetime | None, Field("When it was first available.")] = None
    healthy_since: Annotated[
        datetime | None, Field("Since when it has been healthy without a break.")
    ] = None
    draining_since: Annotated[datetime | None, Field("When it began to drain.")] = None
    restarts: Annotated[int, Field("Restarts of its containers.")] = 0
    reason: Annotated[str, Field("Why it is not healthy, or why it failed.")] = ""
    evidence: Annotated[str, Field("Pod, exit code, last lines of its log.")] = ""
    conditions: Annotated[
        tuple[Condition, ...], Field("`Available`, `Healthy`.", list_keys=("type",))
    ] = ()


class ModelRoute(Record):
    """One copy of one revision of a ModelDeployment; owns one PodCliqueSet of its own name."""

    metadata: Annotated[ObjectMeta, Field("Name, labels and what all objects have.")]
    spec: Annotated[ModelRouteSpec, Field("What it runs.", required=True)]
    status: Annotated[ModelRouteStatus, Field("How it is.")] = ModelRouteStatus()


def _default(document: Document) -> Document:
    spec = document.get("spec")
    if not isinstance(spec, dict):
        return document
    return {**document, "spec": modeldeployment.default_revision(spec)}


def _rules(new: Cursor, surroundings: Surroundings) -> Iterator[FieldError]:
    yield from metadata_faults(new["metadata"], namespaced=True)
    yield from modeldeployment.revision_rules(
        new["metadata"], new["spec"], surroundings, suffix_length=0
    )


def _update_rules(old: Cursor, new: Cursor, surroundings: Surroundings) -> Iterator[FieldError]:
    yield from _rules(new, surroundings)
    was, spec = old["spec"], new["spec"]
    for field in ("deploymentName", "revision", "template", "endpoint"):
        if not same_content(was[field].value, spec[field].value):
            yield spec[field].invalid("field is immutable: a new revision is a new route")
    if was["draining"].boolean() and not spec["draining"].boolean():
        yield spec["draining"].forbidden("a draining route cannot come back")


KIND = Kind(
    names=Names(
        group="spinney.dev",
        version="v1alpha1",
        kind="ModelRoute",
        plural="modelroutes",
        singular="modelroute",
        short=("mroute",),
        categories=("all",),
    ),
    record=ModelRoute,
    schema=object_schema(ModelRoute),
    default=_default,
    validate_create=_rules,
    validate_update=_update_rules,
    columns=(
        Column(name="Deployment", path=".spec.deploymentName", type="string"),
        Column(name="Revision", path=".spec.revision"),
        Column(name="Life", path=".status.life", type="string"),
        Column(name="Health", path=".status.health", type="string"),
        Column(name="Traffic", path=".status.traffic", type="string"),
        AGE,
    ),
)
