"""JSON patch. Laws: a diff applied gives its target; all or nothing; the document is never changed;
`jsonpatch`, which others wrote, agrees."""

from __future__ import annotations

import copy

import hypothesis.strategies as st
import jsonpatch
import pytest
import recorded
from hypothesis import given
from made import documents, hostile, json_values, outcome

from spinney.meta.documents import same
from spinney.meta.errors import BadRequest, TooLarge
from spinney.meta.patches import json_patch
from spinney.meta.patches.failures import PatchFailed

CASES = recorded.by_name("json")

KNOWN_DIFFERENCES = {
    "tests a null that is not there": "the RFC wants the target to be there; theirs takes absence",
    "replaces nothing": "the RFC wants the target to be there; theirs adds it",
    "copies nothing": "the RFC wants the source to be there; theirs copies null",
    "counts from the end": "the RFC knows no negative indexes",
    "has a leading zero": "the RFC knows no leading zeros",
    "adds without a value": "the RFC wants a value; theirs adds null",
}


@pytest.mark.parametrize("name", CASES)
def test_gives_what_kubernetes_gives(name):
    case = CASES[name]
    try:
        result = json_patch.apply(case["live"], case["patch"])
    except (BadRequest, PatchFailed):
        agrees = "error" in case
    else:
        agrees = "result" in case and same(result, case["result"])
    assert agrees is (name not in KNOWN_DIFFERENCES)


@pytest.mark.law
@given(documents(), documents())
def test_diff_applied_gives_the_target(before, after):
    patch = json_patch.diff(before, after)
    assert same(json_patch.apply(before, patch), after)
    assert (patch == []) is same(before, after)


POINTERS = st.lists(
    st.sampled_from(["a", "b", "0", "1", "2", "-", "~0", "~1", ""]), max_size=3
).map(lambda steps: "".join(f"/{step}" for step in steps))
OPERATIONS = st.one_of(
    st.fixed_dictionaries(
        {
            "op": st.sampled_from(["add", "replace", "test"]),
            "path": POINTERS,
            "value": json_values(),
        }
    ),
    st.fixed_dictionaries({"op": st.just("remove"), "path": POINTERS}),
    st.fixed_dictionaries(
        {"op": st.sampled_from(["move", "copy"]), "path": POINTERS, "from": POINTERS}
    ),
)
PATCHED = st.dictionaries(st.sampled_from(["a", "b", "0", "~", "/", ""]), json_values(), max_size=4)


@pytest.mark.law
@given(PATCHED, st.lists(OPERATIONS, max_size=4))
def test_agrees_with_jsonpatch(document, patch):
    """Where both take a patch they give the same; where only one does, it is a known difference."""
    kept = copy.deepcopy((document, patch))
    try:
        theirs = jsonpatch.apply_patch(copy.deepcopy(document), copy.deepcopy(patch))
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException, TypeError):
        theirs = None
    try:
        ours = json_patch.apply(document, patch)
    except (BadRequest, PatchFailed):
        ours = None
    assert same(document, kept[0])
    assert patch == kept[1]
    if ours is not None and isinstance(theirs, dict) and not _tells_numbers_apart(patch):
        assert same(ours, theirs)
    if not _is_peculiar(patch):
        assert (ours is None) is not isinstance(theirs, dict)


def _tells_numbers_apart(patch):
    return any(step["op"] == "test" for step in patch)


def _is_peculiar(patch):
    """Whether `jsonpatch` is known to differ: `1 == True`, whole documents, moves into itself."""
    return any(
        step["op"] in ("test", "move", "copy") or step["path"] == "" or "-" in step["path"]
        for step in patch
    )


@pytest.mark.law
@given(documents(), st.lists(OPERATIONS, max_size=5))
def test_leaves_the_document_as_it_was(document, patch):
    kept = copy.deepcopy(document)
    patch = [*patch, {"op": "add", "path": "/last", "value": 1}]
    result = outcome(json_patch.apply, document, patch)
    assert document == kept
    assert isinstance(result, PatchFailed) or result["last"] == 1


@pytest.mark.law
@given(documents(), hostile())
def test_refuses_anything_else_with_our_own_errors(document, patch):
    kept = copy.deepcopy((document, patch))
    outcome(json_patch.apply, document, patch)
    assert (document, patch) == kept


def test_says_which_operation_failed_and_what_was_found():
    patch = [
        {"op": "add", "path": "/spec/a", "value": 1},
        {"op": "test", "path": "/spec/replicas", "value": 2},
    ]
    with pytest.raises(PatchFailed) as caught:
        json_patch.apply({"spec": {"replicas": 3}}, patch)
    assert caught.value.code == 422
    assert str(caught.value) == 'operation 1: test "/spec/replicas": must be 2, found 3'


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ({}, "a JSON patch must be a list of operations, found {}"),
        ([1], "operation 0: must be an object, found 1"),
        ([{"op": "add", "path": "a", "value": 1}], 'path must start with a slash, found "a"'),
        ([{"op": "add", "path": "/~2", "value": 1}], "path must escape ~ as ~0"),
        ([{"op": "move", "path": "/a"}], "from must be a string, found null"),
        ([{"op": "add", "path": "/a"}], "add must have a value"),
    ],
)
def test_refuses_what_is_no_patch(patch, message):
    with pytest.raises(BadRequest) as caught:
        json_patch.apply({"a": 1}, patch)
    assert message in str(caught.value)


def test_takes_ten_thousand_operations_and_no_more():
    patch = [{"op": "add", "path": "/a/0", "value": index} for index in range(10_000)]
    result = json_patch.apply({"a": []}, patch)
    assert result["a"][:2] == [9999, 9998]
    with pytest.raises(TooLarge, match="at most 10000 operations, found 10001"):
        json_patch.apply({"a": []}, [*patch, patch[0]])


def test_does_not_let_copies_grow_without_bound():
    """Each copy doubles what the next one copies: twenty such would fill the memory."""
    patch = [{"op": "copy", "from": "/a", "path": f"/a/k{index}"} for index in range(60)]
    with pytest.raises(PatchFailed, match=r"may carry at most|nest deeper"):
        json_patch.apply({"a": {"x": "y" * 100}}, patch)
    flat = [{"op": "copy", "from": "/a", "path": "/b/-"} for _ in range(100)]
    with pytest.raises(PatchFailed, match="may carry at most"):
        json_patch.apply({"a": "y" * 100_000, "b": []}, flat)


def test_does_not_let_a_document_nest_too_deep():
    patch = [
        {"op": "move", "from": "/a", "path": "/b/c"},
        {"op": "move", "from": "/b", "path": "/a"},
    ]
    with pytest.raises(PatchFailed, match="must not nest deeper than 100"):
        json_patch.apply({"a": {}, "b": {}}, _nesting(120) + patch)


def _nesting(depth):
    return [{"op": "add", "path": "/a" * (step + 1), "value": {}} for step in range(depth)]


def test_does_not_change_the_values_of_the_patch():
    value = {"x": [1]}
    patch = [
        {"op": "add", "path": "/a", "value": value},
        {"op": "add", "path": "/b", "value": value},
        {"op": "add", "path": "/a/x/-", "value": 2},
    ]
    result = json_patch.apply({}, patch)
    assert result == {"a": {"x": [1, 2]}, "b": {"x": [1]}}
    assert value == {"x": [1]}
