"""Bodies: whatever comes is a document or a 400."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.api.kinds import named
from spinney.meta.errors import BadRequest, UnsupportedMediaType
from spinney.server import bodies

POD, CLIQUES = named("pod"), named("podcliquesets")

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**62), 2**62)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=("Cs",)), max_size=6),
    lambda below: st.lists(below, max_size=4) | st.dictionaries(st.text(max_size=4), below),
    max_leaves=12,
)


@pytest.mark.law
@given(JSON_VALUES, st.booleans())
def test_json_is_read_as_it_is(value, compact):
    """Compact text takes the short way, spaced text the long one; both say the same."""
    separators = (",", ":") if compact else (", ", " : ")
    text = json.dumps(value, separators=separators, ensure_ascii=not compact)
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    assert bodies.read_json(text.encode()).value == value


@pytest.mark.law
@given(st.binary(max_size=60), st.sampled_from([*bodies.OBJECT_TYPES, "", "text/html", "a;b"]))
def test_any_bytes_are_read_or_refused(body, content_type):
    """Nothing but an answer of the API is raised, whatever the bytes and their type."""
    with contextlib.suppress(BadRequest, UnsupportedMediaType):
        bodies.read(body, content_type, api_version="v1", kind="Pod")


def test_keys_given_twice_are_told_and_the_last_counts():
    body = bodies.read_json(b'{"a":1,"b":{"c":1,"c":2}}')
    assert body.value == {"a": 1, "b": {"c": 2}}
    assert [fault.path for fault in body.duplicates] == ["b.c"]


def test_keys_given_twice_are_told_in_yaml():
    body = bodies.read(b"a: 1\na: 2\n", "application/yaml")
    assert body.value == {"a": 2}
    assert [fault.path for fault in body.duplicates] == ["a"]


@pytest.mark.parametrize(
    "text",
    [
        b"[" * 5000 + b"]" * 5000,
        b"[" * 200 + b"]" * 200,
        b"[" * 100_000,
        b'{"a":' * 150 + b"1" + b"}" * 150,
    ],
)
def test_deep_nesting_is_refused(text):
    with pytest.raises(BadRequest):
        bodies.read_json(text)


def test_deep_nesting_within_protobuf_is_refused():
    with pytest.raises(BadRequest, match="nests"):
        bodies._bounded(json.loads("[" * 150 + "]" * 150))


@pytest.mark.parametrize("body", [b"", b"  \n"])
def test_an_empty_body_is_told(body):
    with pytest.raises(BadRequest, match="the body of the request is empty"):
        bodies.read_json(body)


def test_two_documents_are_not_one():
    with pytest.raises(BadRequest, match="holds 2 documents"):
        bodies.read(b"a: 1\n---\na: 2\n", "application/yaml")


@pytest.mark.parametrize(
    ("content_type", "is_read"),
    [
        ("application/json", True),
        ("Application/JSON; charset=UTF-8", True),
        ('application/json; charset="utf8"', True),
        ("", True),
        ("application/json; charset=latin-1", False),
        ("text/plain", False),
        ("application/xml", False),
    ],
)
def test_content_types(content_type, is_read):
    if is_read:
        assert bodies.read(b"{}", content_type).value == {}
        return
    with pytest.raises(UnsupportedMediaType):
        bodies.read(b"{}", content_type)


def test_what_is_said_of_a_content_type_that_is_not_taken():
    with pytest.raises(UnsupportedMediaType) as refused:
        bodies.read(b"{}", "text/plain")
    assert refused.value.message == (
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    )


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "couldn't get version/kind; json parse error: expected an object of PodCliqueSet"),
        ({}, "Object 'Kind' is missing"),
        ({"kind": "PodCliqueSet"}, "Object 'apiVersion' is missing"),
        (
            {"kind": "PodCliqueSet", "apiVersion": "v1"},
            "the API version in the data (v1) does not match the expected API version "
            "(grove.io/v1alpha1)",
        ),
        (
            {"kind": "Pod", "apiVersion": "grove.io/v1alpha1"},
            'Pod in version "v1alpha1" cannot be handled as a PodCliqueSet: the kinds differ',
        ),
        (
            {
                "kind": "PodCliqueSet",
                "apiVersion": "grove.io/v1alpha1",
                "metadata": {"namespace": "b"},
            },
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (
            {"kind": "PodCliqueSet", "apiVersion": "grove.io/v1alpha1", "metadata": {"name": "b"}},
            "the name of the object (b) does not match the name on the URL (n)",
        ),
    ],
)
def test_an_object_that_is_not_what_its_path_says(document, message):
    with pytest.raises(BadRequest) as refused:
        bodies.placed(CLIQUES, document, "a", "n")
    assert refused.value.message == message


def test_typed_clients_need_not_say_the_kind_of_what_kubernetes_has():
    placed = bodies.placed(POD, {"metadata": {"name": "n"}}, "a", whole=False)
    assert placed == {
        "metadata": {"name": "n", "namespace": "a"},
        "apiVersion": "v1",
        "kind": "Pod",
    }
