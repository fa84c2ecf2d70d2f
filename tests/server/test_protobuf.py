"""Protobuf bodies: what kubectl sent, what a client could send, and what nobody should."""

from __future__ import annotations

import base64
import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.meta.errors import DecodeError
from spinney.server import protobuf

RECORDED = json.loads((Path(__file__).parent / "recorded/protobuf.json").read_text())


@pytest.mark.parametrize("row", RECORDED, ids=lambda row: row["document"]["kind"])
def test_what_kubectl_sent(row):
    """Bodies of `kubectl create …` and `kubectl auth …`, version 1.33, as they came."""
    assert protobuf.decode(bytes.fromhex(row["body"])) == row["document"]


def test_the_recorded_documents_say_what_was_typed():
    documents = {row["document"]["kind"]: row["document"] for row in RECORDED}
    assert documents["ConfigMap"]["data"] == {"color": "blue"}
    assert documents["Secret"]["data"] == {"a": "Yg=="}
    assert documents["Service"]["spec"]["ports"] == [
        {"name": "80-8080", "protocol": "TCP", "port": 80, "targetPort": 8080}
    ]
    assert documents["PriorityClass"]["value"] == 0
    assert documents["Role"]["rules"][0]["apiGroups"] == [""]


# A small encoder, so that any message can be sent


def varint(number):
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, str):
        value = value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + value


def enveloped(api_version, kind, raw):
    named = field(1, api_version) + field(2, kind)
    return protobuf.MAGIC + field(1, named) + field(2, raw)


def pod_with(spec):
    return enveloped("v1", "Pod", field(1, field(1, "web")) + field(2, spec))


def decoded_spec(spec):
    return protobuf.decode(pod_with(spec))["spec"]


def test_fields_that_json_folds_into_the_object_around_them():
    volume = field(1, "data") + field(2, field(2, b""))
    assert decoded_spec(field(1, volume)) == {"volumes": [{"name": "data", "emptyDir": {}}]}
    probe = field(1, field(2, field(1, "/ready") + field(2, field(1, 0) + field(2, 80)))) + field(
        2, 5
    )
    container = field(1, "main") + field(10, probe)
    assert decoded_spec(field(2, container))["containers"] == [
        {
            "name": "main",
            "livenessProbe": {"httpGet": {"path": "/ready", "port": 80}, "initialDelaySeconds": 5},
        }
    ]


@pytest.mark.parametrize(
    ("port", "expected"),
    [(field(1, 0) + field(2, 80), 80), (field(1, 1) + field(3, "http"), "http")],
)
def test_numbers_or_texts(port, expected):
    service = enveloped("v1", "Service", field(2, field(1, field(3, 1) + field(4, port))))
    assert protobuf.decode(service)["spec"]["ports"] == [{"port": 1, "targetPort": expected}]


def test_quantities_times_and_negative_numbers():
    limits = field(1, "cpu") + field(2, field(1, "500m"))
    container = field(1, "main") + field(8, field(1, limits))
    assert decoded_spec(field(2, container) + field(4, -3)) == {
        "containers": [{"name": "main", "resources": {"limits": {"cpu": "500m"}}}],
        "terminationGracePeriodSeconds": -3,
    }
    spec = field(1, "me") + field(4, field(1, 1_700_000_000) + field(2, 123_456_000))
    lease = protobuf.decode(enveloped("coordination.k8s.io/v1", "Lease", field(2, spec)))
    assert lease["spec"] == {
        "holderIdentity": "me",
        "renewTime": "2023-11-14T22:13:20.123456Z",
    }
    metadata = field(1, "web") + field(9, field(1, 0) + field(2, 0))
    empty_time = protobuf.decode(enveloped("v1", "Pod", field(1, metadata)))
    assert empty_time["metadata"] == {"name": "web"}


def test_json_within_protobuf():
    revision = field(1, field(1, "r")) + field(2, field(1, b'{"a":[1]}')) + field(3, 4)
    document = protobuf.decode(enveloped("apps/v1", "ControllerRevision", revision))
    assert document["data"] == {"a": [1]}
    assert document["revision"] == 4


def test_options_of_a_deletion():
    raw = field(1, 0) + field(4, "Background") + field(5, "All") + field(2, field(1, "u"))
    assert protobuf.decode(enveloped("v1", "DeleteOptions", raw)) == {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "gracePeriodSeconds": 0,
        "propagationPolicy": "Background",
        "dryRun": ["All"],
        "preconditions": {"uid": "u"},
    }


def test_a_definition_with_its_schema():
    number = field(5, "integer") + field(8, field(1, b"3"))
    anything = field(2, field(5, "string"))
    schema = (
        field(5, "object")
        + field(29, field(1, "size") + field(2, number))
        + field(30, field(1, 1) + anything)
    )
    version = field(1, "v1") + field(2, 1) + field(3, 1) + field(4, field(1, schema))
    spec = field(1, "example.com") + field(7, version)
    document = protobuf.decode(
        enveloped("apiextensions.k8s.io/v1", "CustomResourceDefinition", field(2, spec))
    )
    assert document["spec"]["versions"][0]["schema"]["openAPIV3Schema"] == {
        "type": "object",
        "properties": {"size": {"type": "integer", "default": 3}},
        "additionalProperties": {"type": "string"},
    }


def test_fields_that_are_not_known_are_passed_over():
    assert decoded_spec(field(9999, "new") + field(3, "Never")) == {"restartPolicy": "Never"}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "does not appear to be a protobuf message"),
        (b"{}", "does not appear to be a protobuf message"),
        (enveloped("v1", "Toy", b""), 'no kind "Toy" of "v1" can be read from protobuf'),
        (enveloped("v1", "Pod", b"\x0a\xff"), "does not end"),
        (enveloped("v1", "Pod", b"\x0a\x05a"), "ends beyond its message"),
        (enveloped("v1", "Pod", b"\x0b"), "wire type of 3"),
        (enveloped("v1", "Pod", b"\x02\x00"), "the number 0"),
        (enveloped("v1", "Pod", field(1, 5)), "a number where bytes are expected"),
        (enveloped("v1", "Pod", field(1, field(1, b"\xff"))), "not UTF-8"),
        (enveloped("v1", "Pod", field(1, field(8, field(1, 2**62)))), "beyond the years 1 to 9999"),
        (enveloped("apps/v1", "ControllerRevision", field(2, field(1, b"{"))), "holds JSON"),
    ],
)
def test_what_is_wrong_with_a_body(body, message):
    with pytest.raises(DecodeError, match=message):
        protobuf.decode(body)


def test_schemas_within_schemas_end():
    schema = field(5, "object")
    for _ in range(400):
        schema = field(5, "object") + field(28, schema)
    version = field(1, "v1") + field(4, field(1, schema))
    body = enveloped(
        "apiextensions.k8s.io/v1", "CustomResourceDefinition", field(2, field(7, version))
    )
    with pytest.raises(DecodeError, match="nests more than"):
        protobuf.decode(body)


def test_every_field_refers_to_something_known():
    tables = protobuf._tables()
    for rows in tables.messages.values():
        for row in rows:
            assert (
                row.type in protobuf._SCALARS
                or row.type.removeprefix("=") in protobuf._WELL_KNOWN
                or row.type in tables.messages
            ), row
    assert set(tables.kinds.values()) <= set(tables.messages)


_KINDS = sorted(protobuf._tables().kinds)


@pytest.mark.law
@given(st.sampled_from(_KINDS), st.binary(max_size=80))
def test_any_bytes_are_a_document_or_a_fault(key, raw):
    """Nothing but a DecodeError is raised, whatever the bytes."""
    api_version, _, kind = key.rpartition("/")
    for body in (enveloped(api_version, kind, raw), protobuf.MAGIC + raw):
        try:
            protobuf.decode(body, api_version, kind)
        except DecodeError:
            continue


@pytest.mark.law
@given(st.data())
def test_recorded_bodies_with_bytes_changed_are_a_document_or_a_fault(data):
    row = data.draw(st.sampled_from(RECORDED))
    body = bytearray(bytes.fromhex(row["body"]))
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(4, len(body) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(DecodeError):
        json.dumps(protobuf.decode(bytes(body)))


@pytest.mark.law
@given(
    st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=4),
    st.dictionaries(st.text(max_size=5), st.binary(max_size=5), max_size=4),
)
def test_maps_are_read_as_they_were_written(texts, binaries):
    raw = field(1, field(1, "c"))
    for key, value in texts.items():
        raw += field(2, field(1, key) + field(2, value))
    for key, value in binaries.items():
        raw += field(3, field(1, key) + field(2, value))
    document = protobuf.decode(enveloped("v1", "ConfigMap", raw))
    assert document.get("data", {}) == texts
    encoded = {key: base64.b64encode(value).decode() for key, value in binaries.items()}
    assert document.get("binaryData", {}) == encoded
