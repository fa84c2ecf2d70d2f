"""Metadata: the rules and the words of Kubernetes."""

from collections.abc import Callable

import pytest
from hypothesis import given

from spinney.meta import errors, metadata, records
from spinney.meta.cursors import Cursor
from spinney.meta.metadata import METADATA, ObjectMeta
from spinney.meta.shapes import Shape
from tests.meta.values import ANY_JSON


def faults(document: object, *, namespaced: bool = True) -> list[str]:
    return list(
        map(str, metadata.metadata_faults(Cursor(document, "metadata"), namespaced=namespaced))
    )


GOOD = {"name": "a", "namespace": "b"}


def test_good_metadata_has_no_faults() -> None:
    full = {
        **GOOD,
        "generateName": "a-",
        "labels": {"app.kubernetes.io/name": "", "A_b": "c.d"},
        "annotations": {"Example.org/x": "\n anything"},
        "finalizers": ["example.org/wait"],
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "1", "controller": True},
            {"apiVersion": "v1", "kind": "Pod", "name": "b", "uid": "2"},
        ],
    }
    assert faults(full) == []
    assert Shape(METADATA).faults(full) == []
    assert Shape(METADATA).fill_defaults(GOOD) is GOOD


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ({"namespace": "b"}, "metadata.name: Required value: name or generateName is required"),
        (
            {**GOOD, "name": "A"},
            'metadata.name: Invalid value: "A": a lowercase RFC 1123',
        ),
        ({**GOOD, "name": "a" * 254}, "must be no more than 253 characters"),
        ({**GOOD, "name": "a\n"}, "a lowercase RFC 1123 subdomain must consist of"),
        ({"namespace": "b", "generateName": "-"}, "metadata.generateName: Invalid value"),
        ({"name": "a"}, "metadata.namespace: Required value"),
        ({"name": "a", "namespace": "a.b"}, "a lowercase RFC 1123 label must consist of"),
        ({**GOOD, "labels": {"-": "x"}}, 'metadata.labels: Invalid value: "-": name part must'),
        ({**GOOD, "labels": {"a": "x y"}}, 'metadata.labels: Invalid value: "x y": a valid label'),
        ({**GOOD, "labels": {"A.b/c": ""}}, "prefix part a lowercase RFC 1123 subdomain"),
        ({**GOOD, "annotations": {"/": ""}}, "metadata.annotations: Invalid value"),
        (
            {**GOOD, "annotations": {"a": "é" * 131072}},
            "metadata.annotations: Too long: may not be more than 262144 bytes",
        ),
        ({**GOOD, "finalizers": ["a b"]}, "metadata.finalizers[0]: Invalid value"),
        (
            {**GOOD, "ownerReferences": [{"uid": ""}]},
            'metadata.ownerReferences[0].uid: Invalid value: "": must not be empty',
        ),
        (
            {**GOOD, "ownerReferences": [{"controller": True}] * 2},
            "metadata.ownerReferences: Invalid value: null: Only one reference can have",
        ),
    ],
)
def test_a_fault_is_worded_as_kubernetes_words_it(document: object, told: str) -> None:
    (fault,) = faults(document)
    assert told in fault


@pytest.mark.parametrize(
    ("fault", "longest"),
    [
        (metadata.dns_label_fault, "a" * 63),
        (metadata.label_value_fault, "a" * 63),
        (metadata.qualified_name_fault, "a" * 63),
        (metadata.qualified_name_fault, f"{'a' * 253}/{'a' * 63}"),
        (metadata.dns_subdomain_fault, "a" * 253),
    ],
)
def test_a_name_may_be_so_long_and_no_longer(fault: Callable[[str], str], longest: str) -> None:
    assert fault(longest) == ""
    told = fault(f"a{longest}")
    assert told.endswith(f"must be no more than {len(longest.split('/')[0])} characters")


@pytest.mark.parametrize(
    ("holds", "good", "bad"),
    [
        (metadata.is_dns_label, "a-1", "a.b"),
        (metadata.is_dns_subdomain, "a.b", "a_b"),
        (metadata.is_qualified_name, "a.b/C_d", "/c"),
        (metadata.is_label_value, "", "-"),
    ],
)
def test_a_name_can_be_asked_for_its_form(
    holds: Callable[[str], bool], good: str, bad: str
) -> None:
    assert holds(good)
    assert not holds(bad)


def test_annotations_may_hold_so_much_and_no_more() -> None:
    most = metadata.ANNOTATION_BYTES_MAX
    assert faults({**GOOD, "annotations": {"a": "x" * (most - 2), "b": ""}}) == []
    assert len(faults({**GOOD, "annotations": {"a": "x" * (most - 1), "b": ""}})) == 1


def test_an_object_of_cluster_scope_has_no_namespace() -> None:
    assert faults({"name": "a"}, namespaced=False) == []
    assert faults(GOOD, namespaced=False) == [
        "metadata.namespace: Forbidden: not allowed on this type"
    ]


def test_owners_must_be_whole_and_unlike() -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "1"}
    found = Shape(METADATA).faults({"ownerReferences": [owner, owner, {"uid": "2"}]})
    assert [(fault.path, fault.reason) for fault in found] == [
        ("ownerReferences[2].apiVersion", errors.REQUIRED),
        ("ownerReferences[2].kind", errors.REQUIRED),
        ("ownerReferences[2].name", errors.REQUIRED),
        ("ownerReferences[1].uid", errors.DUPLICATE),
    ]


def test_metadata_is_read_whatever_the_server_added() -> None:
    found = records.decode(
        ObjectMeta,
        {
            **GOOD,
            "creationTimestamp": "2026-11-19T08:30:00Z",
            "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}],
        },
    )
    assert found.name == "a"
    assert records.encode(found)["creationTimestamp"] == "2026-11-19T08:30:00Z"


@pytest.mark.law
@given(ANY_JSON)
def test_faults_of_any_metadata_can_be_told(value: object) -> None:
    for document in (value, {**GOOD, "labels": value, "annotations": value, "finalizers": [value]}):
        for told in faults(document):
            told.encode()
