"""What a CustomResourceDefinition must say, and how."""

from __future__ import annotations

import pytest

from spinney.meta.documents import Document, Json
from spinney.testing.build import changed
from tests.api.cases import said_of
from tests.api.core.objects import OBJECTS

BASE = OBJECTS["CustomResourceDefinition"]
ROOT = "spec.versions[0].schema.openAPIV3Schema"
SPEC = f"{ROOT}.properties[spec]"
_1035 = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "
    "regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)
VERSION: Json = BASE["spec"]["versions"][0]  # type: ignore[index,call-overload]
assert isinstance(VERSION, dict)

WHOLE: tuple[tuple[str, dict[str, Json], list[str]], ...] = (
    (
        "another name",
        {"metadata.name": "widgets.other.com"},
        [
            'metadata.name: Invalid value: "widgets.other.com": must be '
            'spec.names.plural+"."+spec.group'
        ],
    ),
    (
        "a group without dots",
        {"spec.group": "example", "metadata.name": "widgets.example"},
        ['spec.group: Invalid value: "example": should be a domain with at least one dot'],
    ),
    ("no scope", {"spec.scope": None}, ["spec.scope: Required value"]),
    (
        "another scope",
        {"spec.scope": "Global"},
        ['spec.scope: Unsupported value: "Global": supported values: "Cluster", "Namespaced"'],
    ),
    (
        "a kind that is no name",
        {"spec.names.kind": "Wid get"},
        [
            'spec.names.kind: Invalid value: "Wid get": may have mixed case, but should otherwise '
            f"match: {_1035}",
            f'spec.names.listKind: Invalid value: "Wid getList": may have mixed case, but should '
            f"otherwise match: {_1035}",
            f'spec.names.singular: Invalid value: "wid get": {_1035}',
        ],
    ),
    (
        "a list called as its items",
        {"spec.names.listKind": "Widget"},
        ['spec.names.listKind: Invalid value: "Widget": kind and listKind may not be the same'],
    ),
    (
        "a short name that is none",
        {"spec.names.shortNames": ["W"]},
        [f'spec.names.shortNames[0]: Invalid value: "W": {_1035}'],
    ),
    (
        "nothing stored",
        {"spec.versions[0].storage": False},
        [
            "spec.versions: Invalid value: []: must have exactly one version marked as storage "
            "version"
        ],
    ),
    (
        "two versions stored",
        {"spec.versions": [VERSION, {**VERSION, "name": "v2"}]},
        [
            'spec.versions: Invalid value: ["v1","v2"]: must have exactly one version marked as '
            "storage version"
        ],
    ),
    (
        "one version twice",
        {"spec.versions": [VERSION, {**VERSION, "storage": False}]},
        ['spec.versions[1].name: Duplicate value: "v1": must contain unique version names'],
    ),
    (
        "no versions",
        {"spec.versions": []},
        [
            "spec.versions: Invalid value: []: must have exactly one version marked as storage "
            "version"
        ],
    ),
    (
        "no schema",
        {"spec.versions[0].schema": None},
        ["spec.versions[0].schema.openAPIV3Schema: Required value: schemas are required"],
    ),
    (
        "all kept",
        {"spec.preserveUnknownFields": True},
        [
            "spec.preserveUnknownFields: Invalid value: true: must be false: use "
            "x-kubernetes-preserve-unknown-fields where fields are to be kept"
        ],
    ),
    (
        "scaled elsewhere",
        {
            "spec.versions[0].subresources": {
                "scale": {
                    "specReplicasPath": ".status.replicas",
                    "statusReplicasPath": ".status.replicas[0]",
                    "labelSelectorPath": ".meta.selector",
                }
            }
        },
        [
            "spec.versions[0].subresources.scale.labelSelectorPath: Invalid value: "
            '".meta.selector": '
            "should be a json path under either .spec or .status",
            "spec.versions[0].subresources.scale.specReplicasPath: Invalid value: "
            '".status.replicas": '
            "should be a json path under .spec, without brackets",
            "spec.versions[0].subresources.scale.statusReplicasPath: Invalid value: "
            '".status.replicas[0]": should be a json path under .status, without brackets',
        ],
    ),
    (
        "a column of no type",
        {
            "spec.versions[0].additionalPrinterColumns": [
                {"name": "A", "type": "text", "jsonPath": "spec.a"}
            ]
        },
        [
            'spec.versions[0].additionalPrinterColumns[0].jsonPath: Invalid value: "spec.a": '
            "must be "
            'a simple json path starting with "."',
            'spec.versions[0].additionalPrinterColumns[0].type: Invalid value: "text": must be '
            "one of "
            "boolean,date,integer,number,string",
        ],
    ),
    (
        "a webhook without address",
        {"spec.conversion": {"strategy": "Webhook"}},
        [
            "spec.conversion.webhook.clientConfig: Required value: required when strategy is set "
            "to "
            "Webhook",
            "spec.conversion.webhook.conversionReviewVersions: Required value",
        ],
    ),
)


@pytest.mark.parametrize(
    ("changes", "expected"), [row[1:] for row in WHOLE], ids=[row[0] for row in WHOLE]
)
def test_a_definition_is_refused(changes: dict[str, Json], expected: list[str]) -> None:
    assert said_of(changed(BASE, changes)) == expected


KEYED: Document = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string"}},
    },
}
PLACES: tuple[tuple[str, Document, list[str]], ...] = (
    ("no type", {}, ["type: Required value: must not be empty for specified object fields"]),
    (
        "an unknown type",
        {"type": "text"},
        [
            'type: Unsupported value: "text": supported values: "object", "array", "string", '
            '"integer", "number", "boolean"'
        ],
    ),
    ("a reference", {"type": "object", "$ref": "#/a"}, ["$ref: Forbidden: $ref is not supported"]),
    (
        "unique items",
        {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        [
            "uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime "
            "complexity "
            "becomes quadratic"
        ],
    ),
    ("a list of nothing", {"type": "array"}, ["items: Required value: must be specified"]),
    (
        "items without type",
        {"type": "array", "items": {}},
        ["items.type: Required value: must not be empty for specified array items"],
    ),
    (
        "fields and values",
        {
            "type": "object",
            "properties": {"a": {"type": "string"}},
            "additionalProperties": {"type": "string"},
        },
        [
            "additionalProperties: Forbidden: additionalProperties and properties are mutual "
            "exclusive"
        ],
    ),
    (
        "a map without keys",
        {**KEYED, "x-kubernetes-list-map-keys": []},
        [
            "x-kubernetes-list-map-keys: Required value: must not be empty if "
            "x-kubernetes-list-type "
            "is map"
        ],
    ),
    (
        "a key that is no field",
        {**KEYED, "x-kubernetes-list-map-keys": ["id"]},
        [
            'x-kubernetes-list-map-keys[0]: Invalid value: "id": must refer to a property of the '
            "items"
        ],
    ),
    (
        "a key that may be absent",
        {**KEYED, "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
        [
            "items.properties[name].default: Required value: this property is in "
            "x-kubernetes-list-map-keys, so it must have a default or be a required property"
        ],
    ),
    (
        "a set of objects",
        {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object"}},
        [
            "items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list "
            "that "
            "is a set"
        ],
    ),
    (
        "keys of a set",
        {
            **KEYED,
            "x-kubernetes-list-type": "set",
            "items": {"type": "string"},
        },
        [
            'x-kubernetes-list-type: Invalid value: "set": must be map if '
            "x-kubernetes-list-map-keys "
            "is non-empty"
        ],
    ),
    (
        "int or string with a type",
        {"type": "string", "x-kubernetes-int-or-string": True},
        ['type: Invalid value: "string": must be empty if x-kubernetes-int-or-string is true'],
    ),
    (
        "an object in a text",
        {
            "type": "string",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
        ['type: Invalid value: "string": must be object if x-kubernetes-embedded-resource is true'],
    ),
    (
        "types below anyOf",
        {
            "type": "object",
            "properties": {"a": {"type": "string"}},
            "anyOf": [{"properties": {"a": {"type": "string", "minLength": 1}}}],
        },
        ["anyOf[0].properties[a].type: Forbidden: must be empty to be structural"],
    ),
    (
        "a field only below anyOf",
        {"type": "object", "anyOf": [{"properties": {"b": {}}}]},
        [f"properties[b]: Required value: because it is defined in {SPEC}.anyOf[0].properties[b]"],
    ),
    (
        "a default that does not fit",
        {"type": "integer", "default": "x"},
        ['default: Invalid value: "x": must be an integer'],
    ),
    (
        "a default with an unknown field",
        {
            "type": "object",
            "properties": {"a": {"type": "string"}},
            "default": {"b": 1},
        },
        ["default.b: Unknown field: the kind has no such field"],
    ),
    (
        "a rule that says nothing",
        {"type": "object", "x-kubernetes-validations": [{"rule": " "}]},
        ["x-kubernetes-validations[0].rule: Required value: rule is not specified"],
    ),
)


@pytest.mark.parametrize(
    ("place", "expected"), [row[1:] for row in PLACES], ids=[row[0] for row in PLACES]
)
def test_a_schema_that_is_not_structural_is_refused(place: Document, expected: list[str]) -> None:
    version = changed(VERSION, {"schema.openAPIV3Schema.properties": {"spec": place}})
    said = said_of(changed(BASE, {"spec.versions": [version]}))
    assert said == [f"{SPEC}.{fault}" for fault in expected]


@pytest.mark.parametrize(
    ("root", "expected"),
    [
        ({"type": ""}, "type: Required value: must not be empty at the root"),
        (
            {"type": "array", "items": {"type": "string"}},
            ('type: Invalid value: "array": must be object at the root'),
        ),
        (
            {"type": "object", "nullable": True},
            ("nullable: Forbidden: nullable cannot be true at the root"),
        ),
        ({"type": "object", "default": {}}, "default: Forbidden: must not be set at the root"),
        (
            {
                "type": "object",
                "properties": {
                    "metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}
                },
            },
            "properties[metadata]: Forbidden: must not specify anything other than name and "
            "generateName, but metadata is implicitly specified",
        ),
    ],
    ids=str,
)
def test_the_root_of_a_schema_is_an_object(root: Document, expected: str) -> None:
    version = changed(VERSION, {"schema.openAPIV3Schema": root})
    said = said_of(changed(BASE, {"spec.versions": [version]}))
    assert said == [f"{ROOT}.{expected}"]


@pytest.mark.parametrize(
    "place",
    [
        {"x-kubernetes-preserve-unknown-fields": True},
        {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        {
            "x-kubernetes-int-or-string": True,
            "allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"minimum": 1}],
        },
        {"type": "object", "additionalProperties": True},
        KEYED,
        {
            "type": "array",
            "x-kubernetes-list-type": "set",
            "items": {"type": "object", "x-kubernetes-map-type": "atomic"},
        },
        {"type": "object", "properties": {"a": {"type": "integer", "default": 1}}, "default": {}},
    ],
    ids=str,
)
def test_a_structural_schema_is_taken(place: Document) -> None:
    version = changed(VERSION, {"schema.openAPIV3Schema.properties": {"spec": place}})
    assert said_of(changed(BASE, {"spec.versions": [version]})) == []


def test_names_stay_once_a_definition_is_established() -> None:
    ready: Document = {"conditions": [{"type": "Established", "status": "True"}]}
    old = changed(BASE, {"status": ready})
    kind = changed(old, {"spec.names.kind": "Gadget", "spec.scope": "Cluster"})
    assert said_of(kind, old) == [
        'spec.names.kind: Invalid value: "Gadget": field is immutable',
        'spec.scope: Invalid value: "Cluster": field is immutable',
    ]
    assert said_of(changed(BASE, {"spec.scope": "Cluster"}), BASE) == []


def test_a_version_objects_are_stored_in_cannot_be_taken_away() -> None:
    stored = changed(BASE, {"status": {"storedVersions": ["v1", "v0"]}})
    assert said_of(stored) == [
        'status.storedVersions[1]: Invalid value: "v0": must appear in spec.versions'
    ]
