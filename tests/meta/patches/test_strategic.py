"""Strategic merge patch. Laws: a diff applied gives its target; nothing is changed in place."""

from __future__ import annotations

import copy

import pytest
import recorded
from hypothesis import given
from made import SCHEMA, hostile, hostile_objects, objects, outcome

from spinney.meta.documents import same
from spinney.meta.errors import BadRequest
from spinney.meta.patches import strategic
from spinney.meta.patches.failures import PatchFailed
from spinney.meta.schemas import ANY

CASES = recorded.by_name("strategic")


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if "live" in case])
def test_gives_what_kubernetes_gives(name):
    case = CASES[name]
    schema = recorded.schema_of(case["kind"])
    try:
        result = strategic.apply(schema, case["live"], case["patch"])
    except (BadRequest, PatchFailed):
        assert "error" in case
    else:
        assert result == case.get("result")


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if "modified" in case])
def test_computes_what_kubectl_computes(name):
    case = CASES[name]
    schema = recorded.schema_of(case["kind"])
    try:
        patch = strategic.three_way(schema, case["original"], case["modified"], case["current"])
    except (BadRequest, PatchFailed):
        assert "error" in case
    else:
        assert patch == case.get("patch")
        assert strategic.apply(schema, case["current"], patch) == case["result"]


@pytest.mark.law
@given(objects(), objects())
def test_diff_applied_gives_the_target(before, after):
    patch = strategic.diff(SCHEMA, before, after)
    assert same(strategic.apply(SCHEMA, before, patch), after)


@pytest.mark.law
@given(objects(), objects(), objects())
def test_three_ways_change_nothing_in_place(original, modified, current):
    kept = copy.deepcopy((original, modified, current))
    patch = strategic.three_way(SCHEMA, original, modified, current)
    sent = copy.deepcopy(patch)
    strategic.apply(SCHEMA, current, patch)
    assert (original, modified, current, patch) == (*kept, sent)


@pytest.mark.law
@given(objects(), objects(), objects())
def test_three_ways_settle(original, modified, current):
    """Applied twice in a row, the second time changes nothing."""
    patch = strategic.three_way(SCHEMA, original, modified, current)
    result = strategic.apply(SCHEMA, current, patch)
    again = strategic.three_way(SCHEMA, modified, modified, result)
    assert same(strategic.apply(SCHEMA, result, again), result)


@pytest.mark.law
@given(hostile_objects(), hostile())
def test_refuses_anything_else_with_our_own_errors(document, patch):
    kept = copy.deepcopy((document, patch))
    for schema in (SCHEMA, ANY):
        outcome(strategic.apply, schema, document, patch)
        if isinstance(patch, dict):
            outcome(strategic.three_way, schema, document, patch, document)
    assert (document, patch) == kept


def test_says_where_the_merge_key_is_missing():
    with pytest.raises(BadRequest, match=r"\.spec\.items: an item does not contain its merge key"):
        strategic.apply(SCHEMA, {"spec": {"items": []}}, {"spec": {"items": [{"image": "x"}]}})


def test_drops_directives_and_nulls_where_nothing_was():
    """kube-apiserver drops them when it decodes the object; a document must lose them here."""
    patch = {"spec": {"items": [{"name": "a", "image": None, "$retainKeys": ["name"]}]}}
    assert strategic.apply(SCHEMA, {}, patch) == {"spec": {"items": [{"name": "a"}]}}


def test_replaces_a_list_whose_merge_key_stands_twice():
    """Two ports of one number: kubectl patches the first of them twice and loses the other."""
    before = {"spec": {"items": [{"name": "a", "image": "1"}, {"name": "a", "image": "2"}]}}
    after = {"spec": {"items": [{"name": "a", "image": "1"}, {"name": "a", "image": "3"}]}}
    patch = strategic.diff(SCHEMA, before, after)
    assert strategic.apply(SCHEMA, before, patch) == after
