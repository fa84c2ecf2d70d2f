"""Kinds that users bring.

Laws: admitting never raises, whatever comes; defaults filled in twice are as filled in once, and
overwrite nothing that is kept; what is stored has no unknown fields. The definitions we publish
give kinds that take what our own kinds take, and say no more than they do.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.api import custom, kinds
from spinney.api.custom import AGE
from spinney.api.kinds import KINDS, OUR_KINDS, Column, ScalePaths
from spinney.meta.documents import Document, Json, object_at
from spinney.meta.errors import UNKNOWN_FIELD
from spinney.meta.metadata import METADATA
from spinney.meta.references import GroupKind
from spinney.testing.build import changed
from tests.api import samples

HERE = Path(__file__).parent
DEFINITIONS = KINDS[GroupKind(group="apiextensions.k8s.io", kind="CustomResourceDefinition")]


def admitted(definition: Document) -> Document:
    document, faults = kinds.admit(DEFINITIONS, definition)
    assert [str(fault) for fault in faults] == []
    return document


RAW = samples.documents(HERE / "definitions" / "trainers.yaml")[0]
DEFINITION = admitted(RAW)
TRAINER, OLD_TRAINER = custom.kinds_from_definition(DEFINITION)
GOOD: Document = {
    "apiVersion": "ml.example.com/v1",
    "kind": "Trainer",
    "metadata": {"name": "bert", "namespace": "default"},
    "spec": {
        "image": "trainer:1",
        "dataset": "s3://bucket/data",
        "memory": "4Gi",
        "mode": None,
        "stages": [{"name": "warm", "args": ["-v"]}, {"name": "main", "kind": "Eval"}],
        "zones": ["a", "b"],
        "limits": {"gpu": {"at": "2025-01-01T00:00:00Z"}},
        "free": {"known": {}, "extra": [1, {"deep": None}]},
        "anything": [1, None, {"a": "b"}],
        "template": {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "x", "labels": {"a": "b"}},
            "spec": {"containers": []},
        },
        "checkpoint": {"every": "1h30m", "keep": 3},
    },
}


def said(changes: dict[str, Json], base: Document = GOOD) -> list[str]:
    return [str(fault) for fault in kinds.admit(TRAINER, changed(base, changes))[1]]


def test_a_definition_says_how_its_kind_is_called_and_served() -> None:
    names = TRAINER.names
    assert (names.api_version, names.kind, names.plural) == (
        "ml.example.com/v1",
        "Trainer",
        "trainers",
    )
    assert (names.singular, names.list_kind) == ("trainer", "TrainerList")
    assert (names.short, names.categories) == (("tr",), ("all", "ml"))
    assert TRAINER.namespaced
    assert TRAINER.has_status
    assert not TRAINER.is_builtin
    assert TRAINER.selectable == ("spec.queue",)
    assert TRAINER.scale == ScalePaths(
        spec_replicas=".spec.replicas",
        status_replicas=".status.replicas",
        selector=".status.selector",
    )
    assert TRAINER.columns[0] == Column(
        name="Queue", path=".spec.queue", type="string", doc="Where it waits."
    )
    assert [column.type for column in TRAINER.columns] == ["string", "string", "number", "date"]
    assert [column.priority for column in TRAINER.columns] == [0, 0, 1, 0]


def test_the_definition_itself_gets_its_defaults() -> None:
    names = object_at(DEFINITION, ["spec", "names"])
    assert (names["singular"], names["listKind"]) == ("trainer", "TrainerList")
    assert object_at(DEFINITION, ["spec", "conversion"]) == {"strategy": "None"}


def test_defaults_are_filled_in_at_every_depth() -> None:
    stored, faults = kinds.admit(TRAINER, GOOD)
    assert [str(fault) for fault in faults] == []
    spec = object_at(stored, ["spec"])
    assert (spec["replicas"], spec["minReplicas"], spec["queue"], spec["share"]) == (
        1,
        0,
        "main",
        0.5,
    )
    assert spec["stages"] == [
        {"name": "warm", "args": ["-v"], "kind": "Train", "options": {"batch": 32}},
        {"name": "main", "kind": "Eval", "options": {"batch": 32}},
    ]
    assert spec["limits"] == {"gpu": {"at": "2025-01-01T00:00:00Z", "hard": True}}
    assert spec["free"] == {"known": {"a": "x"}, "extra": [1, {"deep": None}]}


def test_a_null_stays_where_it_may_and_is_nothing_elsewhere() -> None:
    stored, faults = kinds.admit(
        TRAINER, changed(GOOD, {"spec.pause": None, "spec.queue": None, "spec.seed": None})
    )
    assert not faults
    spec = object_at(stored, ["spec"])
    assert "mode" in spec
    assert "pause" in spec
    assert spec["pause"] is None
    assert spec["queue"] == "main"
    assert "seed" not in spec


def test_unknown_fields_are_told_of_and_dropped() -> None:
    document = changed(
        GOOD,
        {
            "spec.hue": 1,
            "spec.stages[0].x": 1,
            "spec.free.known.b": 2,
            "spec.free.more": 3,
            "spec.empty": {"a": 1},
            "more": {},
            "spec.limits.gpu.soft": True,
        },
    )
    stored, faults = kinds.admit(TRAINER, document)
    assert {fault.reason for fault in faults} == {UNKNOWN_FIELD}
    assert [fault.path for fault in faults] == [
        "spec.stages[0].x",
        "spec.limits[gpu].soft",
        "spec.free.known.b",
        "spec.empty.a",
        "spec.hue",
        "more",
    ]
    expected = changed(GOOD, {"spec.free.more": 3, "spec.empty": {}})
    assert stored == kinds.admit(TRAINER, expected)[0]


RULES: tuple[tuple[dict[str, Json], list[str]], ...] = (
    ({"spec.image": ""}, ['spec.image: Invalid value: "": must have at least 1 characters']),
    (
        {"spec.replicas": -1},
        ["spec.replicas: Invalid value: -1: must be greater than or equal to 0"],
    ),
    (
        {"spec.replicas": 1001},
        ["spec.replicas: Invalid value: 1001: must be less than or equal to 1000"],
    ),
    ({"spec.replicas": "1"}, ['spec.replicas: Invalid value: "1": must be an integer']),
    ({"spec.queue": "A"}, ['spec.queue: Invalid value: "A": must match ^[a-z]+(-[a-z]+)*$']),
    ({"spec.queue": "a\n"}, ['spec.queue: Invalid value: "a\\n": must match ^[a-z]+(-[a-z]+)*$']),
    ({"spec.share": 0}, ["spec.share: Invalid value: 0: must be greater than 0"]),
    (
        {"spec.share": 1.5},
        ["spec.share: Invalid value: 1.5: must be less than or equal to 1"],
    ),
    ({"spec.rate": 10}, ["spec.rate: Invalid value: 10: must be less than 10"]),
    ({"spec.rate": 0.3}, ["spec.rate: Invalid value: 0.3: must be a multiple of 0.25"]),
    ({"spec.step": 9}, ["spec.step: Invalid value: 9: must be a multiple of 8"]),
    ({"spec.level": 3}, ["spec.level: Unsupported value: 3: supported values: 1, 2, 4"]),
    (
        {"spec.level": True},
        [
            "spec.level: Invalid value: true: must be an integer",
        ],
    ),
    (
        {"spec.mode": "Slow"},
        ['spec.mode: Unsupported value: "Slow": supported values: "Fast", "Exact", null'],
    ),
    ({"spec.port": "A1"}, ['spec.port: Invalid value: "A1": must match ^[a-z]+$']),
    ({"spec.port": True}, ["spec.port: Invalid value: true: must be an integer or a string"]),
    (
        {"spec.dataset": "x"},
        ['spec.dataset: Invalid value: "x": must be a URI such as "https://example.com"'],
    ),
    ({"spec.zones": ["a", "a"]}, ['spec.zones[1]: Duplicate value: "a"']),
    ({"spec.stages": []}, ["spec.stages: Required value: must have at least one item"]),
    (
        {"spec.stages": [{"name": name} for name in "abcd"]},
        ["spec.stages: Too many: must have at most 3 items"],
    ),
    (
        {"spec.stages": [{"name": "a"}, {"name": "a", "kind": "Train"}]},
        [
            'spec.stages[1]: Duplicate value: {"name":"a","kind":"Train"}: name, kind together '
            "must be unique"
        ],
    ),
    (
        {"spec.stages[0].args": [None]},
        ["spec.stages[0].args[0]: Invalid value: null: must be a string"],
    ),
    ({"spec.limits.cpu": {}}, ["spec.limits[cpu].at: Required value"]),
    (
        {"spec.template.kind": ""},
        ["spec.template.kind: Required value: must not be empty"],
    ),
    (
        {"spec.template.metadata.labels": 1},
        ["spec.template.metadata.labels: Invalid value: 1: must be an object"],
    ),
    (
        {"metadata.name": "b" * 21},
        [f'metadata.name: Invalid value: "{"b" * 21}": must have at most 20 characters'],
    ),
    ({"metadata.name": "1"}, ['metadata.name: Invalid value: "1": must match ^[a-z]']),
    (
        {"status.conditions": [{"type": "Ready", "status": "Maybe"}]},
        [
            'status.conditions[0].status: Unsupported value: "Maybe": supported values: "True", '
            '"False", "Unknown"'
        ],
    ),
)


@pytest.mark.parametrize(("changes", "expected"), RULES, ids=lambda each: str(each)[:50])
def test_a_rule_of_a_schema_holds(changes: dict[str, Json], expected: list[str]) -> None:
    assert said(changes) == expected


JOINED: tuple[tuple[dict[str, Json], list[str]], ...] = (
    ({"spec.stream": "10.0.0.1"}, ["must validate one and only one schema (oneOf): found 2 valid"]),
    ({"spec.legacy": True}, ["must validate the schema (not)"]),
    ({"spec.checkpoint": {"keep": 1}}, ["spec.checkpoint.every: Required value"]),
    (
        {"spec.checkpoint": {"every": "1h", "keep": 0}},
        ["spec.checkpoint.keep: Invalid value: 0: must be greater than or equal to 1"],
    ),
    (
        {"spec.checkpoint": {"every": "1h", "policy": "Some"}},
        ["must validate at least one schema (anyOf)"],
    ),
)


@pytest.mark.parametrize(("changes", "expected"), JOINED, ids=lambda each: str(each)[:50])
def test_what_is_joined_is_evaluated(changes: dict[str, Json], expected: list[str]) -> None:
    faults = said(changes)
    assert len(faults) == len(expected)
    for fault, part in zip(faults, expected, strict=True):
        assert part.replace("must validate the", "must not validate the") in fault


@pytest.mark.parametrize(
    "changes",
    [
        {"spec.checkpoint": {"every": "1d", "policy": "All"}},
        {"spec.port": "http"},
        {"spec.port": 80},
        {"spec.rate": 9.75},
        {"spec.step": 16},
        {"spec.level": 4},
        {"spec.seed": 2**40},
        {"spec.mode": "Fast"},
        {"spec.share": 1},
        {"spec.anything": None},
    ],
    ids=str,
)
def test_what_a_schema_allows_is_taken(changes: dict[str, Json]) -> None:
    assert said(changes) == []


def test_rules_that_are_not_evaluated_are_named_and_never_passed_over_in_silence() -> None:
    [warning] = kinds.advice(TRAINER, kinds.admit(TRAINER, GOOD)[0])
    assert warning == (
        "CEL rules of trainers.ml.example.com are not evaluated here: "
        ".spec 'self.replicas >= self.minReplicas'"
    )
    assert kinds.advice(DEFINITIONS, DEFINITION) == (
        "not evaluated here, any value is taken: v1 .spec: CEL rule "
        "'self.replicas >= self.minReplicas'",
    )
    odd = changed(
        RAW,
        {
            "spec.versions[1].schema.openAPIV3Schema.properties.spec.properties": {
                "a": {"type": "string", "pattern": r"\pL"},
                "b": {"type": "string", "format": "isbn"},
            }
        },
    )
    told = kinds.advice(DEFINITIONS, admitted(odd))
    assert told[1:] == (
        r"not evaluated here, any value is taken: v1beta1 .spec.a: pattern '\\pL'",
        "not evaluated here, any value is taken: v1beta1 .spec.b: format 'isbn'",
    )


def test_another_version_is_the_same_objects_under_another_name() -> None:
    assert OLD_TRAINER.names.api_version == "ml.example.com/v1beta1"
    assert OLD_TRAINER.stored_kind == TRAINER.stored_kind == TRAINER.names.group_kind
    assert TRAINER.stored_as is None
    old = changed(GOOD, {"apiVersion": "ml.example.com/v1beta1", "spec": {"dataset": "/d"}})
    admitted_old, faults = kinds.admit(OLD_TRAINER, old)
    assert not faults
    stored = OLD_TRAINER.to_stored(admitted_old)
    assert stored["apiVersion"] == "ml.example.com/v1"
    assert object_at(stored, ["spec"])["queue"] == "main"
    assert object_at(stored, ["spec"])["image"] == "trainer:old"
    assert kinds.admit(TRAINER, stored)[1] == ()
    seen = OLD_TRAINER.from_stored(stored)
    assert seen == {**stored, "apiVersion": "ml.example.com/v1beta1"}
    assert OLD_TRAINER.columns == (AGE,)
    assert not OLD_TRAINER.has_status


def test_with_a_conversion_webhook_only_the_storage_version_is_served_and_that_is_said() -> None:
    webhook: Document = {
        "strategy": "Webhook",
        "webhook": {
            "conversionReviewVersions": ["v1"],
            "clientConfig": {"url": "https://example.com"},
        },
    }
    definition = admitted(changed(RAW, {"spec.conversion": webhook}))
    assert [kind.names.version for kind in custom.kinds_from_definition(definition)] == ["v1"]
    assert kinds.advice(DEFINITIONS, definition)[-1] == (
        "conversion webhooks are not called: only the storage version is served, not v1beta1"
    )


def test_a_storage_version_that_is_not_served_still_gives_the_stored_form() -> None:
    definition = admitted(changed(RAW, {"spec.versions[0].served": False}))
    [kind] = custom.kinds_from_definition(definition)
    assert kind.names.version == "v1beta1"
    assert kind.to_stored({"apiVersion": "ml.example.com/v1beta1"})["apiVersion"] == (
        "ml.example.com/v1"
    )
    assert custom.kind_from_definition(definition).names.version == "v1"


def test_how_lists_merge_is_what_the_definition_says() -> None:
    spec = TRAINER.schema.properties["spec"]
    assert spec.properties["stages"].list_keys == ("name", "kind")
    assert spec.properties["zones"].list_type == "set"
    assert spec.properties["limits"].atomic_map
    assert TRAINER.schema.properties["metadata"].properties == METADATA.properties


OURS = {
    kind.names.group_kind: custom.kind_from_definition(admitted(samples.documents(file)[0]))
    for kind in OUR_KINDS.values()
    for file in [samples.ROOT / f"deploy/crds/{kind.names.group}_{kind.names.plural}.yaml"]
}


@pytest.mark.parametrize("document", samples.ALL, ids=lambda each: str(each["metadata"])[:40])
def test_our_published_definitions_take_what_our_kinds_take(document: Document) -> None:
    group_kind = kinds.group_kind_of(document)
    stored, faults = kinds.admit(OURS[group_kind], document)
    assert [str(fault) for fault in faults] == []
    assert kinds.admit(KINDS[group_kind], stored) == kinds.admit(KINDS[group_kind], document)


@pytest.mark.law
@given(samples.mutated(GOOD))
def test_any_object_is_admitted_or_its_faults_are_told(document: Document) -> None:
    once, faults = kinds.admit(TRAINER, document)
    for fault in faults:
        str(fault).encode("utf-8", "surrogatepass")
    twice, again = kinds.admit(TRAINER, once)
    assert repr(twice) == repr(once)
    real = [str(fault) for fault in faults if fault.reason != UNKNOWN_FIELD]
    assert [str(fault) for fault in again] == real
    changes = kinds.admit(TRAINER, once, once)[1]
    assert [str(fault) for fault in changes] == real


@pytest.mark.law
@given(st.dictionaries(st.sampled_from(["spec", "metadata", "status", "x"]), samples.ANYTHING))
def test_nothing_breaks_admission(document: Document) -> None:
    for kind in (TRAINER, OLD_TRAINER):
        stored, _ = kinds.admit(kind, document)
        kinds.admit(kind, document, stored)
        kinds.advice(kind, stored, document)


@pytest.mark.law
@given(samples.mutated(RAW))
def test_any_definition_is_admitted_or_refused_and_gives_a_kind_all_the_same(
    definition: Document,
) -> None:
    """A definition stored long ago must not stop the server, whatever it says."""
    stored, _ = kinds.admit(DEFINITIONS, definition)
    kinds.admit(DEFINITIONS, definition, stored)
    kinds.advice(DEFINITIONS, stored)
    for kind in (*custom.kinds_from_definition(stored), custom.kind_from_definition(definition)):
        kinds.admit(kind, GOOD)
