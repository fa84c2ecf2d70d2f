"""Manifests: scalars as kubectl has them, faults by line, bounds, and fuzzing."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from spinney.meta import composing, manifests
from spinney.meta.documents import DEPTH_MAX, same
from spinney.meta.errors import DUPLICATE_FIELD, DecodeError
from tests.meta.values import JSON, nested

MANIFEST = b"""# a comment
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata:
  name: chat
  labels:
    app.kubernetes.io/name: chat
    "odd]key": x
spec:
  template:
    cliques:
      - name: leader
        spec: {replicas: 1}
      -
        name: worker
"""


def values(data: bytes) -> list:
    found = list(manifests.load(data))
    assert [manifest.error for manifest in found] == [None] * len(found)
    return [manifest.document for manifest in found]


def error_of(data: bytes) -> str:
    (manifest,) = manifests.load(data)
    assert manifest.document is None
    return str(manifest.error)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(
            (word, True)
            for word in ["y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE"]
        ),
        *(
            (word, False)
            for word in ["n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE"]
        ),
        *((word, None) for word in ("~", "null", "Null", "NULL", "", "!!null ''")),
        *(
            (word, word)
            for word in [
                "yEs",
                "tRUE",
                "nULL",
                "Nope",
                "1:30",
                "2026-11-19",
                "09a",
                "1.2.3",
                ".",
                ".e5",
                "_1",
            ]
        ),
        ("2026-11-19T08:30:00Z", "2026-11-19T08:30:00Z"),
        ("017", 15),
        ("0o17", 15),
        ("0x1F", 31),
        ("-0x1f", -31),
        ("0b101", 5),
        ("1_000", 1000),
        ("0_17", 15),
        ("+7", 7),
        ("08", 8),
        ("3.0", 3),
        ("1e3", 1000),
        ("-0.0", 0),
        ("1.5", 1.5),
        (".5", 0.5),
        ("+.5e1", 5),
        ("0x", "0x"),
        ("0b102", "0b102"),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("'1'", "1"),
        ('"true"', "true"),
        ("!!str 1", "1"),
        ('!!int "3"', 3),
        ("!!float 3", 3),
        ("!!bool y", True),
        ("! 12", "12"),
        ("!!timestamp 2026-11-19", "2026-11-19"),
        ("!!binary aGk=", "hi"),
    ],
)
def test_scalars_are_read_as_kubectl_reads_them(text: str, value: object) -> None:
    (document,) = values(f"a: {text}\n".encode())
    assert same(document["a"], value)


@pytest.mark.parametrize(
    ("text", "key"),
    [("1", "1"), ("true", "true"), ("on", "true"), ("1.5", "1.5"), ("0x10", "16"), ("'y'", "y")],
)
def test_keys_become_strings(text: str, key: str) -> None:
    assert values(f"{text}: a".encode()) == [{key: "a"}]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"a: .inf", "line 1: .inf has no form in JSON: write it in quotes, or give a number"),
        (b"b: 1\na: 1e999", "line 2: number 1e999 is too large: write it in quotes"),
        (b'{\n"a": 1e999}', "line 2: number 1e999 is too large: write it in quotes"),
        (b'{"a": NaN}', "line 1: not JSON: NaN is no number of JSON: write it in quotes"),
        (b'{"a": -Infinity}', "line 1: not JSON: -Infinity is no number of JSON"),
        (b'{"a":\n"\\ud83d"}', r"line 2: a string holds half of a surrogate pair such as \ud83d"),
        (b'{"a": "\x01"}', r"a string holds a control character: write \u0001"),
        (b'{"a" 1}', 'line 1: not JSON: expected ":", found 1}'),
        (b"a: " + b"9" * 5000, "line 1: integer 9999"),
        (b'{"a": ' + b"9" * 5000 + b"}", "does not fit in 64 bits: write it in quotes"),
        (b"a: 9223372036854775808", "does not fit in 64 bits"),
        (b"a:\n- \x00", "line 2: control character 0x00 is not allowed"),
        (b"a: \xff", "line 1: byte 0xff is not UTF-8: save the text as UTF-8"),
        ("a: 1".encode("utf-16"), "line 1: the text is UTF-16 or UTF-32, or binary"),
        ("a: 1".encode("utf-16-le"), "line 1: the text is UTF-16 or UTF-32, or binary"),
        ("a: 1".encode("utf-32-be"), "line 1: the text is UTF-16 or UTF-32, or binary"),
        (b"a: !mine x", "line 1: tag !mine is not known: leave it out"),
        (b"a: !!set {b}", "line 1: tag !!set is not known"),
        (b"a: !!int b", "line 1: 'b' cannot be read as !!int"),
        (b"a: !!binary '*'", "!!binary must be base64"),
        (b"~: a", "line 1: a key must be a string, found null"),
        (b"? [a]\n: b", "line 1: a key must be a string, found an object or a list"),
        (b"a: *b", "line 1: *b names nothing: there is no &b above it"),
        (b"a: &b [*b]", "line 1: *b stands within &b itself"),
        (b"a: {<<: 1}", 'line 1: "<<" must name an object or a list of objects'),
        (b"a:\n\tb: 1", "line 2: found a tab: indent with spaces"),
        (b"a:1\nb: 2", "line 2: mapping values are not allowed here: b: 2: is a space missing"),
        (b"a: b: c", "line 1: mapping values are not allowed here: a: b: c: write a value"),
        (b"a: 1\nb: 'x\nc: 2", "line 2: the quote opened here is not closed"),
        (b"a: @b", 'line 1: found "@", with which no value starts: write the value in quotes'),
        (b"a: [1, 2", 'expected "," or "]": is a bracket not closed?'),
        (b"- a\nb: 1", 'line 2: an item with "- " is expected here'),
    ],
)
def test_an_error_says_where_and_what_to_do(text: bytes, told: str) -> None:
    assert told in error_of(text)


def test_documents_are_split_and_faults_stay_in_theirs() -> None:
    text = b"""\xef\xbb\xbf# only a comment\r
---\r
a: 1\r
---
b: {
--- text
...
%YAML 1.1
# above
---
c: "x"
---
# nothing
"""
    found = list(manifests.load(text))
    assert [(each.line, each.document) for each in found] == [
        (3, {"a": 1}),
        (5, None),
        (6, "text"),
        (11, {"c": "x"}),
    ]
    assert str(found[1].error) == "line 6: a value is expected here: is a bracket not closed?"


def test_a_marker_within_a_block_ends_the_document() -> None:
    assert values(b"a: |\n  x\n  ---\n---\nb: 1") == [{"a": "x\n---\n"}, {"b": 1}]


def test_json_values_follow_one_another() -> None:
    found = list(manifests.load(b'{"a": 1}\n{"b": 2} {"c": 3}\n{"d": }\n{"e": "\\ud83d\\ude00"}'))
    assert [each.document for each in found] == [{"a": 1}, {"b": 2}, {"c": 3}, None, {"e": "😀"}]
    assert [each.line for each in found] == [1, 2, 2, 3, 4]


def test_flow_yaml_is_not_taken_for_json() -> None:
    assert values(b"{a: 1, b: [x, z]} # end") == [{"a": 1, "b": ["x", "z"]}]
    assert values(b'{"a": yes,}') == [{"a": True}]


def test_a_body_must_be_one_json_value() -> None:
    assert manifests.load_json(b' {"a": 1.0} \n').document == {"a": 1.0}
    assert manifests.load_json(b"1").document == 1
    for body in (b"", b"a: 1", b"{a: 1}", b'{"a": 1,}', b'{"a": 1} {}', b"\xff", b"[" * 100_000):
        assert manifests.load_json(body).error is not None
    twice = manifests.load_json(b'{"a": {"b": 1, "b": 2}}')
    assert twice.document == {"a": {"b": 2}}
    assert [fault.path for fault in twice.duplicates] == ["a.b"]


def test_every_duplicate_key_is_told_with_its_path() -> None:
    (found,) = manifests.load(
        b"a: 1\nspec:\n  items:\n  - x: 1\n    x: 2\n    labels: {a.b/c: 1, a.b/c: 2}\na: 3\na: 4"
    )
    assert found.document == {"a": 4, "spec": {"items": [{"x": 2, "labels": {"a.b/c": 2}}]}}
    assert [fault.path for fault in found.duplicates] == [
        "spec.items[0].x",
        "spec.items[0].labels[a.b/c]",
        "a",
        "a",
    ]
    assert {fault.reason for fault in found.duplicates} == {DUPLICATE_FIELD}


def test_merged_keys_give_way_to_keys_of_the_object() -> None:
    text = b"base: &b {x: 1, z: 2}\na: {<<: *b, z: 3}\nc: {z: 4, <<: [{z: 5, q: 1}, *b]}"
    (found,) = manifests.load(text)
    assert found.document == {
        "base": {"x": 1, "z": 2},
        "a": {"x": 1, "z": 3},
        "c": {"z": 4, "q": 1, "x": 1},
    }
    assert not found.duplicates
    assert found.line_of("c.x") == 1


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("", 2),
        ("kind", 3),
        ("metadata.labels[app.kubernetes.io/name]", 7),
        ("metadata.labels.app.kubernetes.io/name", 7),
        ("metadata.labels[odd]key]", 8),
        ("metadata.annotations[x]", 4),
        ("spec.template.cliques[0].name", 12),
        ("spec.template.cliques[0].spec.replicas", 13),
        ("spec.template.cliques[0].spec.minAvailable", 13),
        ("spec.template.cliques[1].name", 15),
        ("spec.template.cliques[7].name", 11),
        ("nothing.of.this", 2),
    ],
)
def test_the_line_of_a_path_is_that_of_what_is_there(path: str, line: int) -> None:
    (found,) = manifests.load(MANIFEST)
    assert found.line_of(path) == line


def test_lines_count_through_the_whole_file() -> None:
    first, second = manifests.load(MANIFEST + b"---\n# here\nspec:\n  x: 1\n")
    assert (first.line, second.line, second.line_of("spec.x")) == (2, 18, 19)
    (found,) = manifests.load(b'\n{"a": {\n"b": [1,\n2]}}')
    assert [found.line_of(path) for path in ("a", "a.b[0]", "a.b[1]", "a.b[2]")] == [2, 3, 4, 3]


@pytest.mark.parametrize("unit", [b"[", b'{"a":', b"- ", b"{a: ", b"&a [", b"!!seq ["])
def test_a_hundred_thousand_levels_are_refused(unit: bytes) -> None:
    assert "nested more than 100 levels" in error_of(unit * 100_000)


def test_depth_is_bounded_in_text_and_through_aliases() -> None:
    exact = json.dumps(nested(DEPTH_MAX))
    assert values(exact.encode()) == [nested(DEPTH_MAX)]
    assert values(f"--- !!map\n{exact}".encode()) == [nested(DEPTH_MAX)]
    assert "100 levels" in error_of(json.dumps(nested(DEPTH_MAX + 1)).encode())
    chain = "".join(f"a{i}: &a{i} [[[[[[[[[[*a{i - 1}]]]]]]]]]]\n" for i in range(1, 11))
    assert "100 levels" in error_of(f"a0: &a0 []\n{chain}".encode())


def test_aliases_are_bounded() -> None:
    bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 10)
    )
    assert f"more than {composing.ALIASED_MAX} values" in error_of(bomb.encode())
    assert values(b"a: &a [x]\nb: *a\nc: &a 1\nd: *a") == [{"a": ["x"], "b": ["x"], "c": 1, "d": 1}]


@pytest.mark.parametrize(
    "data",
    [
        b'a: "not closed\n' + b"- xxxxxxx\n" * 400_000,
        b'{"a":[1 2' + b"1," * 2_000_000 + b"1]}",
        b"[\n 1 2" + b"[1],\n" * 800_000 + b"[1]]",
    ],
    ids=["yaml", "json", "many lines"],
)
def test_a_large_document_is_refused_before_it_is_parsed(data: bytes) -> None:
    """What is wrong in its first line is not seen, so nothing of it was read."""
    assert "larger than 3 MiB" in str(next(manifests.load(data)).error)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("unit", [b"---\nkind: A\n", b'{"kind": "A"}\n', b"...\n", b"---\n"])
def test_many_documents_are_read_in_linear_time(unit: bytes) -> None:
    """A second's work, and minutes of it if each document looked at all that follow."""
    documents = [each.document for each in manifests.load(unit * 50_000)]
    assert documents == ([{"kind": "A"}] * 50_000 if b"kind" in unit else [])


@pytest.mark.law
@given(st.binary(max_size=200))
def test_any_bytes_give_manifests_and_raise_nothing(data: bytes) -> None:
    _check(data)


@pytest.mark.law
@given(st.text(st.sampled_from("ab01:-?{}[]\"'&*!<>|#%@`,~ \n\t\r.\\u\u2028é"), max_size=60))
def test_any_text_of_signs_gives_manifests_and_raises_nothing(text: str) -> None:
    _check(text.encode())


@pytest.mark.law
@given(st.data())
def test_a_mutated_manifest_gives_manifests_and_raises_nothing(data: st.DataObject) -> None:
    (document,) = values(MANIFEST)
    original = data.draw(st.sampled_from([MANIFEST, json.dumps(document, indent=1).encode()]))
    at = data.draw(st.integers(0, len(original)))
    until = data.draw(st.integers(at, min(len(original), at + 5)))
    _check(original[:at] + data.draw(st.binary(max_size=4)) + original[until:])


def _check(data: bytes) -> None:
    for manifest in [*manifests.load(data), manifests.load_json(data)]:
        assert manifest.line >= 1
        assert manifest.error is None or isinstance(manifest.error, DecodeError)
        assert manifest.error is None or manifest.error.line >= 1
        assert manifest.line_of("a.b[0]") >= 1
        if manifest.error is None:
            json.dumps(manifest.document, allow_nan=False).encode()


@pytest.mark.law
@given(JSON)
def test_json_comes_back_as_it_was(value: object) -> None:
    body = json.dumps(value).encode()
    assert same(manifests.load_json(body).document, value)
    if isinstance(value, (dict, list)):
        assert all(same(each, value) for each in values(body))


@pytest.mark.law
@given(JSON)
def test_yaml_that_was_dumped_says_what_json_says(value: object) -> None:
    text = yaml.safe_dump({"a": value}, default_style='"', sort_keys=False)
    (document,) = values(text.encode())
    (expected,) = values(json.dumps({"a": value}).encode())
    assert json.dumps(document) == json.dumps(_whole(expected))


def _whole(value: object) -> object:
    """Return a value with whole numbers as integers, as YAML has them on kubectl's way."""
    if isinstance(value, dict):
        return {key: _whole(below) for key, below in value.items()}
    if isinstance(value, list):
        return [_whole(below) for below in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**63:
        return int(value)
    return value
