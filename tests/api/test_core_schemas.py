"""The schemas of Kubernetes' own types: complete, linked, and safe to fill defaults by.

Laws: filling in defaults is idempotent, and keeps whatever a user wrote.
"""

from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.api import core
from spinney.meta.documents import leaves, same, value_at
from spinney.meta.records import Field, Record
from spinney.meta.schemas import at, schema_of
from spinney.meta.shapes import Shape

NAMES = core.names()

KEYS_NEITHER_REQUIRED_NOR_DEFAULTED = {
    ("DeploymentStatus", "conditions", "type"),
    ("ResourceClaimStatus", "devices", "shareID"),
    ("ServiceAccount", "secrets", "name"),
}
"""Kubernetes itself lets these be absent; none of them is a part of a kind of ours."""


def test_every_definition_resolves_with_all_it_refers_to():
    for name in NAMES:
        schema = core.resolve(name)
        assert schema.core == name
        for below in schema.properties.values():
            assert below.type or below.format or below.open, (name, below)
            assert below.type_name


def test_a_definition_is_read_once():
    assert core.resolve("PodSpec") is core.resolve("PodSpec")
    assert at(core.resolve("Pod"), ("spec",)) is core.resolve("PodSpec")


def test_a_definition_may_contain_itself():
    props = core.resolve("JSONSchemaProps")
    assert at(props, ("properties", "spec", "allOf", 0, "not", "allOf")) is not None


def test_an_unknown_definition_is_a_key_error():
    with pytest.raises(KeyError):
        core.resolve("NoSuchThing")


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("Event", "involvedObject"),
        ("events.k8s.io/Event", "regarding"),
        ("ResourceClaim", "spec"),
        ("core/ResourceClaim", "request"),
        ("HorizontalPodAutoscalerSpec", "metrics"),
        ("Scale", "spec"),
        ("Condition", "lastTransitionTime"),
        ("ResourceClaimTemplateSpec", "spec"),
    ],
)
def test_a_name_means_the_definition_that_has_the_field(name, field):
    assert field in core.resolve(name).properties


def merging(schema):
    return schema.list_type, schema.list_keys, schema.merge_key, schema.patch_strategy


@pytest.mark.parametrize(
    ("name", "path", "expected"),
    [
        ("PodSpec", ("containers",), ("map", ("name",), "name", ("merge",))),
        ("PodSpec", ("volumes",), ("map", ("name",), "name", ("merge", "retainKeys"))),
        ("PodSpec", ("tolerations",), ("atomic", (), "", ())),
        (
            "PodSpec",
            ("topologySpreadConstraints",),
            ("map", ("topologyKey", "whenUnsatisfiable"), "topologyKey", ("merge",)),
        ),
        (
            "Container",
            ("ports",),
            ("map", ("containerPort", "protocol"), "containerPort", ("merge",)),
        ),
        ("ServiceSpec", ("ports",), ("map", ("port", "protocol"), "port", ("merge",))),
        ("ObjectMeta", ("finalizers",), ("set", (), "", ("merge",))),
        ("DeploymentSpec", ("strategy",), ("atomic", (), "", ("retainKeys",))),
        ("Deployment", ("spec", "strategy"), ("atomic", (), "", ("retainKeys",))),
    ],
)
def test_merge_hints_are_those_published(name, path, expected):
    assert merging(at(core.resolve(name), path)) == expected


def test_patch_strategy_of_one_field_does_not_leak_to_its_type():
    assert core.resolve("DeploymentStrategy").patch_strategy == ()


@pytest.mark.parametrize(
    ("name", "path", "expected"),
    [
        ("PodSpec", ("hostNetwork",), ("boolean", "", "boolean")),
        ("PodSpec", ("priority",), ("integer", "int32", "integer")),
        ("PodSpec", ("activeDeadlineSeconds",), ("integer", "int64", "integer")),
        ("ObjectMeta", ("creationTimestamp",), ("string", "date-time", "Time")),
        ("LeaseSpec", ("renewTime",), ("string", "date-time", "MicroTime")),
        ("ServicePort", ("targetPort",), ("", "int-or-string", "IntOrString")),
        ("ResourceRequirements", ("limits",), ("object", "", "map[string]Quantity")),
        ("ResourceRequirements", ("limits", "cpu"), ("", "quantity", "Quantity")),
        ("Secret", ("data", "key"), ("string", "byte", "string")),
        ("PodSpec", ("containers",), ("array", "", "[]Container")),
        ("ManagedFieldsEntry", ("fieldsV1",), ("object", "", "FieldsV1")),
    ],
)
def test_types_and_formats_are_those_published(name, path, expected):
    schema = at(core.resolve(name), path)
    assert (schema.type, schema.format, schema.type_name) == expected


def test_free_objects_are_open():
    for name in ("FieldsV1", "RawExtension", "JSON", "JSONSchemaPropsOrBool"):
        assert core.resolve(name).open


def test_selectors_are_replaced_as_a_whole():
    assert core.resolve("LabelSelector").atomic_map
    assert at(core.resolve("PodSpec"), ("nodeSelector",)).atomic_map
    assert not core.resolve("ObjectMeta").properties["labels"].atomic_map


def test_every_key_of_a_list_is_required_or_has_a_default():
    found = set()
    for name in NAMES:
        for field, schema in core.resolve(name).properties.items():
            for key in schema.list_keys:
                item = schema.items
                if key not in item.required and not item.properties[key].has_default:
                    found.add((name, field, key))
    assert found == KEYS_NEITHER_REQUIRED_NOR_DEFAULTED


def test_keys_that_are_absent_are_filled_in():
    pod = {"containers": [{"name": "a", "ports": [{"containerPort": 80}]}]}
    filled = Shape(core.resolve("PodSpec")).fill_defaults(pod)
    assert filled["containers"][0]["ports"] == [{"containerPort": 80, "protocol": "TCP"}]


def test_a_pod_of_everyday_life_has_no_fault():
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "labels": {"app": "a"}},
        "spec": {
            "containers": [
                {
                    "name": "a",
                    "image": "a:1",
                    "env": [
                        {"name": "X", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
                    ],
                    "readinessProbe": {"httpGet": {"path": "/", "port": "http"}},
                }
            ],
            "volumes": [{"name": "v", "emptyDir": {}}],
        },
    }
    assert Shape(core.resolve("Pod")).faults(pod) == []


def test_faults_are_told_at_every_depth():
    pod = {"containers": [{"name": 1, "imagee": "a", "ports": [{"containerPort": "80"}]}]}
    paths = [fault.path for fault in Shape(core.resolve("PodSpec")).faults(pod)]
    assert paths == [
        "containers[0].name",
        "containers[0].imagee",
        "containers[0].ports[0].containerPort",
    ]


def test_a_set_has_no_twins_whatever_its_items_are():
    rule = {"operator": "In", "values": [1, 2, 1]}
    faults = Shape(core.resolve("ContainerRestartRuleOnExitCodes")).faults(rule)
    assert [str(fault) for fault in faults] == ["values[2]: Duplicate value: 1"]


class Owner(Record):
    """A view of a Kubernetes type."""

    CORE = "OwnerReference"

    name: str = ""


class Owned(Record):
    """What is owned."""

    owner: Annotated[Owner | None, Field("By whom.")] = None


def test_a_record_that_is_a_view_of_a_kubernetes_type_has_its_schema():
    owner = schema_of(Owned, core.resolve).properties["owner"]
    assert owner.core == "OwnerReference"
    assert owner.doc == "By whom."
    assert "uid" in owner.required


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda below: (
        st.lists(below, max_size=2)
        | st.dictionaries(st.sampled_from(["name", "spec", "ports", "x"]), below, max_size=2)
    ),
    max_leaves=4,
)


@st.composite
def shaped(draw, schema, depth=7):
    """Values near a schema: mostly of its shape, now and then something else."""
    if depth == 0 or draw(st.integers(0, 9)) == 0:
        return draw(JUNK)
    if schema.properties:
        known = st.sampled_from(sorted(schema.properties))
        keys = draw(st.lists(known, max_size=4, unique=True))
        return {key: draw(shaped(schema.properties[key], depth - 1)) for key in keys}
    if schema.items is not None:
        count = draw(st.integers(0, 2))
        return [draw(shaped(schema.items, depth - 1)) for _ in range(count)]
    if schema.values is not None:
        return {"a": draw(shaped(schema.values, depth - 1))}
    return draw(JUNK)


@st.composite
def documents(draw, names=NAMES):
    """A definition, and a document near it."""
    schema = core.resolve(draw(st.sampled_from(names)))
    if not schema.properties:
        schema = core.resolve("PodSpec")
    keys = draw(st.lists(st.sampled_from(sorted(schema.properties)), max_size=5, unique=True))
    return schema, {key: draw(shaped(schema.properties[key])) for key in keys}


@pytest.mark.law
@given(documents())
def test_filling_defaults_is_idempotent(drawn):
    schema, document = drawn
    shape = Shape(schema)
    once = shape.fill_defaults(document)
    assert same(shape.fill_defaults(once), once)


@pytest.mark.law
@given(documents())
def test_filling_defaults_keeps_what_was_written(drawn):
    schema, document = drawn
    filled = Shape(schema).fill_defaults(document)
    for path, value in leaves(document):
        if value is None or isinstance(value, float) or value == {}:
            continue
        assert same(value_at(filled, path), value), path


@pytest.mark.law
@given(documents())
def test_telling_faults_never_raises(drawn):
    schema, document = drawn
    shape = Shape(schema)
    shape.faults(shape.fill_defaults(document))
