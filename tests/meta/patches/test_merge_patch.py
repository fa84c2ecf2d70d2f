"""Merge patch. Laws: a diff applied gives its target; nothing is changed in place; three ways give
what is wanted and keep what others added."""

from __future__ import annotations

import copy

import pytest
import recorded
from hypothesis import given
from made import documents, hostile, hostile_objects, outcome, without_nulls

from spinney.meta.documents import same
from spinney.meta.errors import BadRequest
from spinney.meta.patches import merge_patch

CASES = recorded.by_name("merge")


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if "live" in case])
def test_gives_what_kubernetes_gives(name):
    case = CASES[name]
    assert same(merge_patch.apply(case["live"], case["patch"]), case["result"])


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if "modified" in case])
def test_computes_what_kubectl_computes(name):
    case = CASES[name]
    patch = merge_patch.three_way(case["original"], case["modified"], case["current"])
    assert same(patch, case["patch"])
    assert same(merge_patch.apply(case["current"], patch), case["result"])


@pytest.mark.law
@given(documents(), without_nulls())
def test_diff_applied_gives_the_target(before, after):
    patch = merge_patch.diff(before, after)
    assert same(merge_patch.apply(before, patch), after)
    assert (patch == {}) is same(before, after)


@pytest.mark.law
@given(documents(), documents())
def test_diff_gives_the_target_or_says_that_none_can(before, after):
    try:
        patch = merge_patch.diff(before, after)
    except BadRequest:
        assert "None" in repr(after)
    else:
        assert same(merge_patch.apply(before, patch), after)


@pytest.mark.law
@given(documents(), documents())
def test_changes_neither_document_nor_patch(document, patch):
    kept = copy.deepcopy((document, patch))
    result = merge_patch.apply(document, patch)
    assert (document, patch) == kept
    assert merge_patch.apply(result, patch) is result


@pytest.mark.law
@given(without_nulls(), without_nulls(), without_nulls())
def test_three_ways_give_all_that_is_wanted(original, modified, current):
    patch = merge_patch.three_way(original, modified, current)
    result = merge_patch.apply(current, patch)
    assert _holds(result, modified)
    for key in current.keys() - original.keys() - modified.keys():
        assert same(result[key], current[key])
    for key in original.keys() - modified.keys():
        assert key not in result


def _holds(result, wanted):
    if isinstance(wanted, dict):
        return isinstance(result, dict) and all(
            key in result and _holds(result[key], below) for key, below in wanted.items()
        )
    return same(result, wanted)


@pytest.mark.law
@given(hostile_objects(), hostile())
def test_refuses_anything_else_with_our_own_errors(document, patch):
    kept = copy.deepcopy((document, patch))
    outcome(merge_patch.apply, document, patch)
    if isinstance(patch, dict):
        outcome(merge_patch.three_way, document, patch, document)
        outcome(merge_patch.diff, document, patch)
    assert (document, patch) == kept


def test_says_where_a_null_cannot_be_set():
    with pytest.raises(BadRequest, match=r'"spec.a": a merge patch cannot set a field to null'):
        merge_patch.diff({"spec": {}}, {"spec": {"a": None}})
