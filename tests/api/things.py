"""A kind that has one of everything a field can be; what the tests of CRDs and texts speak of."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal

from spinney.api.kinds import Column, Kind, Names, ScalePaths, object_schema
from spinney.meta.documents import Document
from spinney.meta.durations import Duration
from spinney.meta.records import Field, Record, Rule


class Part(Record):
    """One part of a thing."""

    RULES = (
        Rule(
            rule="self.replicas >= 1 || has(self.labels)",
            message="a part without replicas must have labels",
            field_path=".replicas",
            reason="FieldValueRequired",
        ),
    )

    name: Annotated[str, Field("What it is called.", required=True, min_length=1, max_length=63)]
    labels: Annotated[Mapping[str, str], Field("Its labels.", atomic=True)] = {}
    replicas: Annotated[int, Field("How many of it.", minimum=0, maximum=9, example="3")] = 1
    pod_spec: Annotated[Document, Field("What its pods are.", core="PodSpec", required=True)]
    metrics: Annotated[tuple[Document, ...], Field("What to scale by.", core="MetricSpec")] = ()


class ThingSpec(Record):
    """What a thing should be."""

    RULES = (
        Rule(
            rule="oldSelf.hasValue() || self.parts.all(p, p.name != 'x')",
            message="new things have no part named x",
            field_path=".parts",
            optional_old_self=True,
        ),
    )

    parts: Annotated[
        tuple[Part, ...],
        Field("What it is made of.", list_keys=("name",), required=True, min_items=1),
    ]
    order: Annotated[Literal["Any", "Given"], Field("In which order parts start.")] = "Any"
    delay: Annotated[
        Duration | None,
        Field("How long it waits, from the moment that its last part was last seen to be ready."),
    ] = None
    most: Annotated[int | str | None, Field("How many at once, or a share.", ours=True)] = None
    names: Annotated[tuple[str, ...], Field("Other names.", set_list=True)] = ()
    free: Annotated[Document | None, Field("Whatever.", core="RawExtension")] = None
    zone: Annotated[str, Field("Where.", pattern="^[a-z]+$")] = ""


class ThingStatus(Record):
    """What is observed of a thing."""

    observed_generation: Annotated[int | None, Field("What this is of.", format="int64")] = None
    seen_at: Annotated[datetime | None, Field("When it was last seen.")] = None


class Thing(Record):
    """A thing with parts."""

    spec: Annotated[ThingSpec, Field("What it should be.", required=True)]
    status: Annotated[ThingStatus | None, Field("What it is.")] = None


THING = Kind(
    names=Names(
        group="test.dev",
        version="v1",
        kind="Thing",
        plural="things",
        singular="thing",
        short=("th",),
        categories=("all",),
    ),
    record=Thing,
    schema=object_schema(Thing),
    columns=(
        Column(name="Parts", path=".status.parts", doc="How many parts there are."),
        Column(name="Zone", path=".spec.zone", type="string", priority=1),
        Column(name="Age", path=".metadata.creationTimestamp", type="date"),
    ),
    scale=ScalePaths(),
)
