"""Rules that a cluster checks by itself, in CEL, say the same as ours do in Python.

Law: for any constraints at any level of a template, new or changed, the rules of the schema refuse
exactly where admission does. They are run by cel-python, which knows no optional types: what was
stored before comes as a list of one or none, and `hasValue` is ours.
"""

from __future__ import annotations

from collections.abc import Iterator

import celpy
import pytest
from celpy import celtypes
from hypothesis import given
from hypothesis import strategies as st

from spinney.api import kinds, topology
from spinney.api.kinds import OUR_KINDS
from spinney.api.podcliqueset import PodCliqueSetSpec
from spinney.meta import errors, schemas
from spinney.meta.documents import Document, Json
from spinney.meta.records import Rule
from spinney.meta.schemas import Schema
from spinney.testing import build
from spinney.testing.build import changed

ENVIRONMENT = celpy.Environment()
PROGRAMS: dict[str, celpy.Runner] = {}


def has_value(optional: celtypes.ListType) -> celtypes.BoolType:
    return celtypes.BoolType(len(optional) > 0)


def passes(rule: Rule, value: Json, old: Json) -> bool:
    if rule.rule not in PROGRAMS:
        compiled = ENVIRONMENT.compile(rule.rule)
        PROGRAMS[rule.rule] = ENVIRONMENT.program(compiled, functions={"hasValue": has_value})
    before: list[Json] = [] if old is None else [old]
    known = {"self": celpy.json_to_cel(value), "oldSelf": celpy.json_to_cel(before)}
    return bool(PROGRAMS[rule.rule].evaluate(known))


def broken(
    schema: Schema, value: Json, old: Json, path: str = ""
) -> Iterator[tuple[str, str, Rule]]:
    """Yield (path of the object, path told, rule) of each rule a value breaks, at every depth."""
    if isinstance(value, list) and schema.items is not None:
        for index, below in enumerate(value):
            yield from broken(schema.items, below, _twin(schema, below, old), f"{path}[{index}]")
    if not isinstance(value, dict):
        return
    for rule in schema.rules:
        if not passes(rule, value, old):
            yield path, f"{path}{rule.field_path}", rule
    before = old if isinstance(old, dict) else {}
    for key, below in value.items():
        inner = schema.properties.get(key)
        if inner is not None:
            yield from broken(inner, below, before.get(key), f"{path}.{key}" if path else key)


def _twin(schema: Schema, item: Json, old: Json) -> Json:
    """Return the item of the old list that has the same keys, as an API server pairs them."""
    if not isinstance(item, dict) or not isinstance(old, list):
        return None
    keys = schema.list_keys or ("name",)
    wanted = [item.get(key) for key in keys]
    return next(
        (each for each in old if isinstance(each, dict) and wanted == [each.get(k) for k in keys]),
        None,
    )


DECLARED = {
    (kind.names.kind, ".".join(path), rule.rule)
    for kind in OUR_KINDS.values()
    for path, schema in (((), kind.schema), *schemas.walk(kind.schema))
    for rule in (schema.items or schema).rules
    if not schema.core
}
SET = next(kind for kind in OUR_KINDS.values() if kind.names.kind == "PodCliqueSet")


def test_every_rule_that_is_declared_is_known_here() -> None:
    """A new rule of the schema wants a law of its own."""
    assert {rule for _, _, rule in DECLARED} == {
        rule.rule
        for record in (topology.TopologyPack, topology.TopologyConstraint, PodCliqueSetSpec)
        for rule in record.RULES
    }
    constraints = {path for kind, path, _ in DECLARED if kind == "PodCliqueSet"}
    assert constraints == {
        "spec",
        *(
            f"spec.template.{level}topologyConstraint{part}"
            for level in ("", "cliques.", "podCliqueScalingGroups.")
            for part in ("", ".pack")
        ),
    }


DOMAINS = st.sampled_from(("zone", "rack", "host"))
PACKS = st.fixed_dictionaries({}, optional={"required": DOMAINS, "preferred": DOMAINS})
CONSTRAINTS = st.none() | st.fixed_dictionaries(
    {}, optional={"topologyName": st.just("racks"), "pack": PACKS, "packDomain": DOMAINS}
)
BASE = (
    build.podcliqueset("s")
    .with_clique("router")
    .with_clique("worker")
    .with_group("g", "worker")
    .document()
)
PLACES = (
    "spec.template.topologyConstraint",
    "spec.template.cliques[0].topologyConstraint",
    "spec.template.cliques[1].topologyConstraint",
    "spec.template.podCliqueScalingGroups[0].topologyConstraint",
)


@st.composite
def sets(draw: st.DrawFn) -> Document:
    drawn = {place: draw(CONSTRAINTS) for place in PLACES}
    return changed(BASE, {place: value for place, value in drawn.items() if value is not None})


def by_cel(document: Document, old: Document | None) -> set[tuple[str, str]]:
    """Return (path, reason) of what a cluster's own check says."""
    spec, before = document["spec"], None if old is None else old["spec"]
    schema = SET.schema.properties["spec"]
    return {(told, rule.reason) for _, told, rule in broken(schema, spec, before, "spec")}


MESSAGES = (
    "say pack.required, pack.preferred or both",
    "at least one of required and preferred must be given",
    "packDomain and pack.required must not both be given: keep pack.required",
    topology.DEPRECATED,
)


def by_us(document: Document, old: Document | None) -> set[tuple[str, str]]:
    """Return (path, reason) of what admission says, as far as a rule in CEL says it too."""
    _, faults = kinds.admit(SET, document, old)
    return {(fault.path, fault.reason) for fault in faults if fault.message in MESSAGES}


LISTS = ("spec.template.cliques", "spec.template.podCliqueScalingGroups")


def as_cel_tells(path: str, reason: str) -> tuple[str, str]:
    """Return where CEL tells a fault: on the list for its items, on the pack for its fields."""
    for listed in LISTS:
        if reason == errors.FORBIDDEN and path.startswith(f"{listed}["):
            return listed, reason
    return path, reason


@given(document=sets())
@pytest.mark.law
def test_both_say_the_same_of_a_new_set(document: Document) -> None:
    stored, _ = kinds.admit(SET, document)
    assert by_cel(stored, None) == {as_cel_tells(*each) for each in by_us(document, None)}


@given(document=sets(), old=sets())
@pytest.mark.law
def test_both_say_the_same_of_a_changed_set(document: Document, old: Document) -> None:
    """What was there before may stay: `packDomain` is forbidden on new objects alone."""
    stored, before = kinds.admit(SET, document)[0], kinds.admit(SET, old)[0]
    assert by_cel(stored, before) == {as_cel_tells(*each) for each in by_us(document, before)}


def test_the_law_would_see_a_difference() -> None:
    """The checker is not blind: it finds what is broken, and lets pass what was there before."""
    old = changed(BASE, {PLACES[1]: {"topologyName": "racks", "packDomain": "rack"}})
    listed = ("spec.template.cliques", "FieldValueForbidden")
    assert by_cel(old, None) == {listed}
    assert by_cel(old, BASE) == set()
    empty = changed(BASE, {PLACES[0]: {"pack": {}}, PLACES[3]: {}})
    assert by_cel(empty, None) == {
        ("spec.template.topologyConstraint.pack", "FieldValueRequired"),
        ("spec.template.podCliqueScalingGroups[0].topologyConstraint.pack", "FieldValueRequired"),
    }
