"""CRDs: that a kind is said the way a cluster takes it.

Law: the pattern for durations takes exactly what `parse_duration` takes.
"""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from things import THING

from spinney.api import core, crds
from spinney.meta.documents import value_at
from spinney.meta.durations import parse_duration
from spinney.meta.schemas import Schema
from tools.crds import structural_faults

CRD = crds.crd(THING)
VERSION = CRD["spec"]["versions"][0]
ROOT = VERSION["schema"]["openAPIV3Schema"]


def field(*path):
    steps = []
    for step in path:
        steps += ["items"] if step == "*" else ["properties", step]
    return value_at(ROOT, steps)


def test_it_is_named_as_a_cluster_asks():
    assert CRD["apiVersion"] == "apiextensions.k8s.io/v1"
    assert CRD["metadata"] == {"name": "things.test.dev"}
    assert CRD["spec"]["names"] == {
        "kind": "Thing",
        "listKind": "ThingList",
        "plural": "things",
        "singular": "thing",
        "shortNames": ["th"],
        "categories": ["all"],
    }
    assert CRD["spec"]["scope"] == "Namespaced"


def test_its_one_version_is_served_and_stored():
    assert (VERSION["name"], VERSION["served"], VERSION["storage"]) == ("v1", True, True)


def test_subresources_are_those_the_kind_has():
    assert VERSION["subresources"] == {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.hpaPodSelector",
        },
    }


def test_columns_stand_in_the_kinds_order():
    assert VERSION["additionalPrinterColumns"] == [
        {
            "name": "Parts",
            "type": "integer",
            "jsonPath": ".status.parts",
            "description": "How many parts there are.",
        },
        {"name": "Zone", "type": "string", "jsonPath": ".spec.zone", "priority": 1},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]


def test_the_root_leaves_metadata_to_the_api_server():
    assert field("apiVersion")["type"] == field("kind")["type"] == "string"
    assert field("metadata") == {"type": "object"}
    assert ROOT["required"] == ["spec"]


def test_lists_say_how_they_merge():
    parts = field("spec", "parts")
    assert parts["x-kubernetes-list-type"] == "map"
    assert parts["x-kubernetes-list-map-keys"] == ["name"]
    assert parts["minItems"] == 1
    assert field("spec", "names")["x-kubernetes-list-type"] == "set"
    assert field("spec", "parts", "*", "labels")["x-kubernetes-map-type"] == "atomic"
    assert "x-kubernetes-list-type" not in field("spec", "parts", "*", "metrics")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (
            ("spec", "order"),
            {
                "description": "In which order parts start.",
                "type": "string",
                "default": "Any",
                "enum": ["Any", "Given"],
            },
        ),
        (
            ("spec", "parts", "*", "replicas"),
            {
                "description": "How many of it.",
                "type": "integer",
                "default": 1,
                "format": "int32",
                "minimum": 0,
                "maximum": 9,
            },
        ),
        (
            ("spec", "parts", "*", "name"),
            {
                "description": "What it is called.",
                "type": "string",
                "minLength": 1,
                "maxLength": 63,
            },
        ),
        (
            ("spec", "zone"),
            {"description": "Where.", "type": "string", "pattern": "^[a-z]+$"},
        ),
        (
            ("status", "observedGeneration"),
            {"description": "What this is of.", "type": "integer", "format": "int64"},
        ),
        (
            ("status", "seenAt"),
            {"description": "When it was last seen.", "type": "string", "format": "date-time"},
        ),
        (
            ("spec", "most"),
            {
                "description": "How many at once, or a share.",
                "anyOf": [{"type": "integer"}, {"type": "string"}],
                "x-kubernetes-int-or-string": True,
            },
        ),
        (
            ("spec", "free"),
            {
                "description": "Whatever.",
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": True,
            },
        ),
    ],
)
def test_a_field_is_said(path, expected):
    assert field(*path) == expected


def test_a_quantity_is_said_as_controller_gen_says_it():
    assert crds.structural(core.resolve("Quantity")) == {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": True,
        "pattern": crds.QUANTITY_PATTERN,
    }


def test_what_takes_anything_has_no_type():
    assert crds.structural(Schema(open=True)) == {"x-kubernetes-preserve-unknown-fields": True}


def test_defaults_of_list_keys_of_kubernetes_types_are_there():
    container = ("spec", "parts", "*", "podSpec", "containers", "*")
    assert field(*container, "ports", "*", "protocol")["default"] == "TCP"
    assert field("spec", "parts", "*", "podSpec", "imagePullSecrets", "*", "name")["default"] == ""


def test_rules_are_said_with_all_they_have():
    assert field("spec")["x-kubernetes-validations"] == [
        {
            "rule": "oldSelf.hasValue() || self.parts.all(p, p.name != 'x')",
            "message": "new things have no part named x",
            "reason": "FieldValueInvalid",
            "fieldPath": ".parts",
            "optionalOldSelf": True,
        }
    ]
    assert field("spec", "parts", "*")["x-kubernetes-validations"][0]["reason"] == (
        "FieldValueRequired"
    )


def test_what_is_made_is_structural():
    assert list(structural_faults(CRD)) == []


def accepted(text):
    try:
        parse_duration(text)
    except ValueError as error:
        return "292" in str(error)
    return True


@pytest.mark.law
@given(st.text(alphabet="0159.+-hmsnuµμ d", max_size=12))
@example("0")
@example("-0")
@example("00")
@example("1h30m")
@example(".5s")
@example("1.s")
@example(".s")
@example("+1m")
@example("1d")
@example("")
def test_the_pattern_of_durations_is_what_is_parsed(text):
    assert bool(re.search(crds.DURATION_PATTERN, text)) == accepted(text)


@pytest.mark.parametrize("text", ["1", "500m", "4Gi", "1e3", "-1.5", "0.1", "12E"])
def test_the_pattern_of_quantities_takes_quantities(text):
    assert re.search(crds.QUANTITY_PATTERN, text)


@pytest.mark.parametrize("text", ["", "4gb", "1 Gi", "Gi", "1ki"])
def test_the_pattern_of_quantities_refuses_others(text):
    assert not re.search(crds.QUANTITY_PATTERN, text)
