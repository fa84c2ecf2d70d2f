"""The committed CRDs: structural, and the checker of that sees what is planted."""

import copy

import pytest
import yaml

from spinney.api.crds import crd
from spinney.api.kinds import OUR_KINDS
from spinney.meta.documents import value_at
from tools import crds

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@pytest.fixture(scope="module")
def files():
    return crds.files()


@pytest.mark.parametrize("key", OUR_KINDS, ids=lambda key: key.kind)
def test_a_file_reads_back_as_the_crd_it_was_made_from(files, key):
    kind = OUR_KINDS[key]
    body = files[f"{crds.FOLDER}/{key.group}_{kind.names.plural}.yaml"]
    assert yaml.load(body, LOADER) == crd(kind)
    assert list(crds.structural_faults(crd(kind))) == []


def test_making_them_twice_gives_the_same_bytes(files):
    assert crds.files() == files


def test_no_value_is_broken_over_lines_or_named_by_an_anchor():
    shared = {"description": "a " * 200}
    text = crds.as_yaml({"one": shared, "two": shared, "list": [1]})
    assert text == (
        f"one:\n  description: '{'a ' * 200}'\ntwo:\n  description: '{'a ' * 200}'\nlist:\n  - 1\n"
    )


SOUND = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "metadata": {"type": "object"},
        "spec": {
            "type": "object",
            "required": ["name"],
            "default": {"name": "a"},
            "properties": {
                "name": {"type": "string", "enum": ["a", "b"], "default": "a"},
                "count": {"type": "integer", "format": "int32", "minimum": 0, "default": 1},
                "any": {"x-kubernetes-preserve-unknown-fields": True},
                "either": {"x-kubernetes-int-or-string": True, "default": 1},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "tags": {
                    "type": "array",
                    "x-kubernetes-list-type": "set",
                    "items": {"type": "string"},
                },
                "ports": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["port", "protocol"],
                    "items": {
                        "type": "object",
                        "required": ["port"],
                        "properties": {
                            "port": {"type": "integer"},
                            "protocol": {"type": "string", "default": "TCP"},
                        },
                    },
                },
            },
        },
    },
}
SPEC = ("properties", "spec")
PORTS = (*SPEC, "properties", "ports")


def faults_of(root):
    versions = [{"schema": {"openAPIV3Schema": root}}]
    return list(crds.structural_faults({"spec": {"versions": versions}}))


def test_a_sound_schema_has_no_fault():
    assert faults_of(SOUND) == []


@pytest.mark.parametrize(
    ("path", "change", "fault"),
    [
        (("properties", "metadata"), {"description": "x"}, ".metadata: must say its type"),
        ((*SPEC, "properties", "name"), {"type": ""}, ".spec.name: must have a type"),
        ((*SPEC, "properties", "name"), {"type": "text"}, ".spec.name: no type text"),
        ((*SPEC, "properties", "name"), {"default": 1}, ".spec.name default: must be of type"),
        ((*SPEC, "properties", "name"), {"default": "c"}, ".spec.name default: not one of"),
        ((*SPEC, "properties", "count"), {"default": -1}, ".spec.count default: less than"),
        ((*SPEC, "properties", "count"), {"default": True}, ".spec.count default: must be"),
        ((*SPEC, "properties", "count"), {"maximum": 0}, ".spec.count default: more than"),
        ((*SPEC, "properties", "count"), {"format": "int99"}, ".spec.count: no format int99"),
        ((*SPEC, "properties", "either"), {"type": "string"}, ".spec.either: an int-or-string"),
        ((*SPEC, "properties", "labels"), {"properties": {}}, ".spec.labels: properties and"),
        ((*SPEC, "properties", "tags"), {"items": {}}, ".spec.tags: a list must say its items"),
        (
            (*SPEC, "properties", "tags"),
            {"items": {"type": "object"}},
            ".spec.tags: the items of a set must be atomic",
        ),
        (SPEC, {"required": ["nme"]}, ".spec: requires nme"),
        (SPEC, {"default": {"nme": 1}}, ".spec default: nme would be pruned"),
        (SPEC, {"default": {"count": -1}}, ".spec default.count: less than"),
        (PORTS, {"x-kubernetes-list-type": "mop"}, ".spec.ports: no list type mop"),
        (PORTS, {"x-kubernetes-list-map-keys": []}, ".spec.ports: a list has keys"),
        (PORTS, {"x-kubernetes-list-map-keys": ["no"]}, ".spec.ports: its items have no field no"),
        (
            (*PORTS, "items"),
            {"required": []},
            ".spec.ports: its key port must be required or have a default",
        ),
        (
            (*PORTS, "items", "properties", "port"),
            {"type": "object"},
            ".spec.ports: its key port must be a scalar",
        ),
        ((*PORTS, "items"), {"default": {"port": 1}}, ".spec.ports[*]: an item must have no"),
    ],
)
def test_a_planted_fault_is_seen(path, change, fault):
    root = copy.deepcopy(SOUND)
    value_at(root, path).update(change)
    assert any(found.startswith(fault) for found in faults_of(root)), faults_of(root)


def test_a_default_that_lacks_a_required_field_is_seen():
    root = copy.deepcopy(SOUND)
    root["properties"]["spec"]["default"] = {}
    del root["properties"]["spec"]["properties"]["name"]["default"]
    assert faults_of(root) == [".spec default: lacks name"]
