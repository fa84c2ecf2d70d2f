"""Schemas made of declarations."""

from collections.abc import Mapping
from typing import Annotated, Literal

import pytest

from spinney.meta import schemas
from spinney.meta.durations import Duration
from spinney.meta.quantities import IntOrString
from spinney.meta.records import Field, Record
from spinney.meta.schemas import Schema

POD_SPEC = Schema(type="object", type_name="PodSpec", open=True)


class Template(Record):
    """What is made.

    More of it.
    """

    name: Annotated[str, Field("Its name.", required=True, max_length=10)]
    mode: Literal["a", "b"] = "a"
    size: Annotated[IntOrString, Field("How large.")] = "25%"


class Spec(Record):
    replicas: Annotated[int, Field("How many.", minimum=0)] = 1
    paused: bool = False
    wait: Duration = Duration()
    templates: Annotated[tuple[Template, ...], Field("Several.", list_keys=("name",))] = ()
    names: Annotated[tuple[str, ...], Field("Names.", set_list=True)] = ()
    labels: Annotated[Mapping[str, str], Field("Labels.", atomic=True)] = {}
    pod_spec: Annotated[Mapping[str, str] | None, Field("Pods.", core="PodSpec")] = None


def _resolve(name: str) -> Schema:
    assert name == "PodSpec"
    return POD_SPEC


SCHEMA = schemas.schema_of(Spec, _resolve)


def test_a_schema_is_made_of_declarations() -> None:
    assert list(SCHEMA.properties) == [
        *("replicas", "paused", "wait", "templates", "names", "labels", "podSpec")
    ]
    replicas = SCHEMA.properties["replicas"]
    assert (replicas.type, replicas.format, replicas.minimum) == ("integer", "int32", 0)
    assert (replicas.default, replicas.doc) == (1, "How many.")
    assert SCHEMA.properties["wait"].format == "duration"
    templates = SCHEMA.properties["templates"]
    assert (templates.list_type, templates.list_keys) == ("map", ("name",))
    assert templates.items is not None
    assert templates.items.required == ("name",)
    assert templates.items.properties["mode"].enum == ("a", "b")
    assert templates.items.properties["size"].format == "int-or-string"
    assert SCHEMA.properties["names"].list_type == "set"
    assert SCHEMA.properties["labels"].atomic_map
    assert SCHEMA.properties["podSpec"].core == "PodSpec"
    assert SCHEMA.properties["podSpec"].open


def test_a_required_field_has_no_default() -> None:
    templates = SCHEMA.properties["templates"].items
    assert templates is not None
    assert not templates.properties["name"].has_default
    assert templates.properties["size"].default == "25%"


@pytest.mark.parametrize(
    ("path", "type_name"),
    [
        ((), "Spec"),
        (("templates",), "[]Template"),
        (("templates", 3), "Template"),
        (("templates", 0, "name"), "string"),
        (("labels", "any"), "string"),
    ],
)
def test_a_schema_is_found_by_path(path: tuple, type_name: str) -> None:
    found = schemas.at(SCHEMA, path)
    assert found is not None
    assert found.type_name == type_name


def test_a_path_that_is_not_there_has_no_schema() -> None:
    assert schemas.at(SCHEMA, ("nothing", "below")) is None
    assert schemas.at(SCHEMA, ("replicas", 0)) is None


def test_all_properties_are_walked() -> None:
    paths = [".".join(path) for path, _ in schemas.walk(SCHEMA)]
    assert paths[3:7] == ["templates", "templates.name", "templates.mode", "templates.size"]
