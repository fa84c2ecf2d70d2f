"""Server-side apply. Laws: applying again changes nothing; what its only owner gives up goes; force
leaves no other owner; conflicts name the manager; managed fields are fields that are there."""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime, timedelta

import hypothesis.strategies as st
import pytest
import recorded
from hypothesis import given
from made import SCHEMA, hostile_objects, objects, outcome

from spinney.meta.documents import same
from spinney.meta.errors import ApplyConflict, BadRequest, SpinneyError
from spinney.meta.patches import apply, managers
from spinney.meta.patches.fields import NONE, fields_of, path_text, places_of
from spinney.meta.patches.metadata import with_metadata
from spinney.meta.schemas import ANY

CASES = recorded.by_name("apply")
NOW = datetime(2026, 11, 19, 8, 30, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)


def applied(live, wanted, manager="a", *, force=False, now=NOW, schema=SCHEMA, version="v1"):
    return apply.apply(schema, live, wanted, manager, force=force, api_version=version, now=now)


def updated(before, after, manager="u", *, now=NOW, schema=SCHEMA, **named):
    return apply.track_update(schema, before, after, manager, api_version="v1", now=now, **named)


def entries(document):
    """Return the managed fields of a document as what each manager owns."""
    return {
        f"{who.manager}/{who.operation}": entry.fields
        for who, entry in managers.entries_of(document).items()
    }


def bare(document):
    """Return a document without managed fields, and without metadata where that was all."""
    left = apply.without_managed_fields(document)
    return {key: value for key, value in left.items() if (key, value) != ("metadata", {})}


KNOWN_DIFFERENCES = {
    "refuses an item without keys": "theirs takes a container of no name; validation refuses it",
}


@pytest.mark.parametrize("name", CASES)
def test_gives_what_kubernetes_gives(name):
    case = CASES[name]
    schema, live = recorded.schema_of(case["kind"]), case.get("live", {})
    version = case["steps"][0]["object"]["apiVersion"]
    version = "v1" if version == "v2" else version
    for number, step in enumerate(case["steps"]):
        now = NOW + timedelta(minutes=number)
        named = {"api_version": version, "now": now, "subresource": step.get("subresource", "")}
        if step["operation"] == "Apply":
            named["force"] = step.get("force", False)
        call = apply.apply if step["operation"] == "Apply" else apply.track_update
        after = outcome(call, schema, live, step["object"], step["manager"], **named)
        if isinstance(after, SpinneyError):
            assert ("error" in step) is (name not in KNOWN_DIFFERENCES), after
            assert isinstance(after, ApplyConflict) is ("conflicts" in step)
            assert told_conflicts(after) == conflicts_of(step)
            continue
        assert "error" not in step
        result = step["result"]
        if "None" in repr(result):  # theirs leaves null where the last item went
            assert without_empties(bare(after)) == without_empties(result)
        else:
            assert bare(after) == result
        assert told_entries(after) == step["managed"]
        live = after


def told_conflicts(error):
    if not isinstance(error, ApplyConflict):
        return []
    return sorted((cause["message"], cause["field"]) for cause in error.details["causes"])


def conflicts_of(step):
    """Return the recorded conflicts: a message, and a field."""
    found = []
    for conflict in step.get("conflicts", []):
        message, _, path = conflict.rpartition(": ")
        found.append((message, path))
    return sorted(found)


def told_entries(document):
    items = [
        {key: value for key, value in entry.items() if key != "time"}
        for entry in document.get("metadata", {}).get("managedFields", [])
    ]
    keys = ("operation", "manager", "apiVersion", "subresource")
    return sorted(items, key=lambda item: "/".join(item.get(key, "") for key in keys))


@pytest.mark.law
@given(objects())
def test_applying_again_changes_nothing(wanted):
    first = applied({}, wanted)
    assert applied(first, copy.deepcopy(wanted), now=LATER) is first


@pytest.mark.law
@given(objects(), objects())
def test_applying_something_else_gives_that_and_no_more(before, after):
    """One manager alone: what it no longer wants goes, what it wants is there."""
    second = applied(applied({}, before), after)
    assert without_empties(bare(second)) == without_empties(after)


def without_empties(value):
    """Return a value without empty containers, lists sorted: their order is not applied again."""
    if isinstance(value, dict):
        inner = {key: without_empties(below) for key, below in value.items()}
        return {key: below for key, below in inner.items() if below not in ({}, [], None)}
    if isinstance(value, list):
        return sorted(
            map(without_empties, value), key=lambda item: json.dumps(item, sort_keys=True)
        )
    return value


@pytest.mark.law
@given(objects(), objects())
def test_force_leaves_no_other_owner_of_what_it_takes(one, other):
    live = applied(applied({}, one, "a"), other, "b", force=True)
    conflicts = outcome(applied, applied({}, one, "a"), other, "b")
    taken = set()
    if isinstance(conflicts, ApplyConflict):
        taken = {cause["field"] for cause in conflicts.details["causes"]}
    left = {path_text(path) for path in entries(live).get("a/Apply", NONE).paths()}
    assert not taken & left
    wanted = fields_of(with_metadata(SCHEMA), other) - apply.UNTRACKED
    assert entries(live).get("b/Apply", NONE) == wanted


@pytest.mark.law
@given(objects(), objects())
def test_giving_up_takes_nothing_from_another_owner(one, other):
    """When the first leaves all it wanted, the second still has all it wants and nothing more."""
    live = applied(applied({}, one, "a"), other, "b", force=True)
    left = applied(live, {"apiVersion": "v1", "kind": "Thing"}, "a", now=LATER)
    assert "a/Apply" not in entries(left)
    again = applied(left, other, "b", now=LATER)
    assert without_empties(bare(again)) == without_empties(bare(left))
    alone = applied({"apiVersion": "v1", "kind": "Thing"}, other, "b")
    assert without_empties(bare(left)) == without_empties(bare(alone))


@pytest.mark.law
@given(objects(), objects())
def test_conflicts_name_the_manager_and_its_fields(one, other):
    live = applied({}, one, "owner")
    owned = {path_text(path) for path in entries(live).get("owner/Apply", NONE).paths()}
    result = outcome(applied, live, other, "thief")
    if isinstance(result, ApplyConflict):
        assert result.managers == ("owner",)
        assert {cause["field"] for cause in result.details["causes"]} <= owned
    else:
        assert bare(live).keys() <= bare(result).keys()


STEPS = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c"]), st.sampled_from(["apply", "update"]), objects()),
    min_size=1,
    max_size=5,
)


@pytest.mark.law
@given(STEPS)
def test_managed_fields_are_fields_that_are_there(steps):
    live = {}
    for number, (manager, how, wanted) in enumerate(steps):
        now = NOW + timedelta(minutes=number)
        kept = copy.deepcopy((live, wanted))
        if how == "apply":
            after = applied(live, wanted, manager, force=True, now=now)
        else:
            after = updated(live, wanted, manager, now=now)
        assert (live, wanted) == kept
        live = after
        schema = with_metadata(SCHEMA)
        there = places_of(schema, bare(live))
        for who, owned in entries(live).items():
            assert owned, who
            assert not owned - there, who


@pytest.mark.law
@given(objects(), objects())
def test_an_update_owns_what_it_changes_and_nobody_else_does(before, after):
    live = applied({}, before, "a")
    result = updated(live, after, "u", now=LATER)
    owned = entries(result)
    assert same(bare(result), bare(after))
    assert not owned.get("a/Apply", NONE) & owned.get("u/Update", NONE)
    if same(before, after):
        assert owned == entries(live)


@pytest.mark.law
@given(hostile_objects(), hostile_objects())
def test_refuses_anything_else_with_our_own_errors(live, wanted):
    wanted = {**wanted, "apiVersion": "v1"}
    kept = copy.deepcopy((live, wanted))
    for schema in (SCHEMA, ANY):
        outcome(applied, live, wanted, force=True, schema=schema)
        outcome(applied, {}, wanted, schema=schema)
        outcome(updated, live, wanted, schema=schema)
    assert (live, wanted) == kept


FIELDS_V1 = st.recursive(
    st.just({}),
    lambda below: st.dictionaries(
        st.sampled_from(
            [".", "f:spec", "f:metadata", "f:a", "f:", 'k:{"name":"a"}', "k:{}", 'k:{"a":[]}',
             "v:1", 'v:"\ud800"', "v:{}", "i:0", "z:", "k:1", "x"]
        ),
        below,
        max_size=3,
    ),
    max_leaves=6,
)  # fmt: skip
ENTRIES = st.lists(
    st.fixed_dictionaries(
        {
            "manager": st.sampled_from(["a", "b", "\ud800", ""]),
            "operation": st.sampled_from(["Apply", "Update"]),
            "apiVersion": st.sampled_from(["v1", "v2", "\x00"]),
            "fieldsType": st.just("FieldsV1"),
            "fieldsV1": FIELDS_V1,
        },
        optional={"time": st.sampled_from(["", "x", "2026-01-01T00:00:00Z"]), "extra": st.none()},
    ),
    max_size=13,
)


@pytest.mark.law
@given(objects(), objects(), ENTRIES, st.booleans())
def test_takes_any_managed_fields_or_refuses_them_with_our_own_errors(live, wanted, told, force):
    live = {**live, "metadata": {**live.get("metadata", {}), "managedFields": told}}
    brought = {**wanted, "metadata": {**wanted.get("metadata", {}), "managedFields": told}}
    kept = copy.deepcopy((live, wanted, brought))
    outcome(applied, live, wanted, force=force)
    for after in (wanted, brought):
        assert same(bare(updated(live, after)), bare(after))
    assert (live, wanted, brought) == kept


def test_gives_up_what_nobody_else_owns():
    """A team takes a label out of its manifest; the sidecar injector's label stays."""
    live = applied({}, thing(labels={"a": "1", "b": "2"}), "team")
    live = applied(live, thing(labels={"b": "2", "c": "3"}), "injector")
    live = applied(live, thing(labels={}), "team")
    assert live["metadata"]["labels"] == {"b": "2", "c": "3"}


def thing(labels=None, **spec):
    made = {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "t"}}
    if labels is not None:
        made["metadata"]["labels"] = labels
    return {**made, "spec": spec} if spec else made


def test_says_conflicts_as_kubectl_does():
    live = applied({}, thing(replicas=1, items=[{"name": "a", "image": "x"}]), "owner")
    with pytest.raises(ApplyConflict) as caught:
        applied(live, thing(replicas=2, items=[{"name": "a", "image": "y"}]), "thief")
    assert str(caught.value) == (
        'Apply failed with 2 conflicts: conflicts with "owner":\n'
        '- .spec.items[name="a"].image\n'
        "- .spec.replicas"
    )


def test_removes_items_in_place_and_keeps_the_order_of_the_others():
    live = applied({}, thing(items=[{"name": name} for name in "abc"]), "a")
    live = applied(live, thing(items=[{"name": "x"}, {"name": "c"}]), "b")
    names = [item["name"] for item in live["spec"]["items"]]
    live = applied(live, thing(items=[{"name": name} for name in "ac"]), "a")
    assert [item["name"] for item in live["spec"]["items"]] == [n for n in names if n != "b"]


def test_takes_a_null_for_nothing_said():
    live = applied({}, thing(replicas=3), "a")
    result = applied(live, {**thing(), "spec": {"replicas": None, "data": {"k": None}}}, "b")
    assert result["spec"] == {"replicas": 3, "data": {}}
    assert path_texts(result, "b/Apply") == [".spec.data"]


def path_texts(document, who):
    return [path_text(path) for path in entries(document)[who].paths()]


def test_moves_a_time_only_when_its_manager_changes_something():
    live = applied({}, thing(replicas=1, data={"k": "1"}), "a")
    live = updated(live, {**live, "status": {"phase": "x"}}, "u", now=LATER, subresource="status")
    assert times_of(live) == {"a": "2026-11-19T08:30:00Z", "u": "2026-11-19T09:30:00Z"}
    much_later = LATER + timedelta(hours=1)
    again = updated(live, {**live, "status": {"phase": "x"}}, "u", now=much_later)
    assert again["metadata"] == live["metadata"]
    taken = applied(live, thing(replicas=2), "b", force=True, now=much_later)
    assert times_of(taken)["a"] == "2026-11-19T08:30:00Z"
    changed = applied(live, thing(replicas=2, data={"k": "1"}), "a", now=much_later)
    assert times_of(changed)["a"] == "2026-11-19T10:30:00Z"
    assert entries(changed) == entries(live)


def times_of(document):
    return {item["manager"]: item["time"] for item in document["metadata"]["managedFields"]}


def test_tracks_the_status_under_its_subresource():
    live = updated({}, thing(replicas=1), "u")
    live = updated(live, {**live, "status": {"phase": "x"}}, "u", subresource="status")
    items = live["metadata"]["managedFields"]
    assert [item.get("subresource") for item in items] == [None, "status"]
    assert items[1]["fieldsV1"] == {"f:status": {".": {}, "f:phase": {}}}


def test_keeps_ten_updates_and_merges_the_oldest():
    live = {}
    for number in range(13):
        after = thing(data={f"k{index}": "v" for index in range(number + 1)})
        after["metadata"]["managedFields"] = live.get("metadata", {}).get("managedFields")
        live = updated(live, after, f"u{number:02}", now=NOW + timedelta(minutes=number))
    owned = entries(live)
    assert len(owned) == 10
    assert next(iter(owned)) == "ancient-changes/Update"
    data = [path for path in path_texts(live, "ancient-changes/Update") if ".data." in path]
    assert data == [f".spec.data.k{index}" for index in range(4)]


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"apiVersion": "v1", "metadata": {"managedFields": []}}, "managedFields must be nil"),
        ({"apiVersion": "v2"}, 'Specified patch version: "v2", expected: "v1"'),
        ({}, "Specified patch version: null"),
        ({"apiVersion": "v1", "metadata": 1}, "metadata: must be an object, found 1"),
    ],
)
def test_refuses_what_cannot_be_applied(wanted, message):
    with pytest.raises(BadRequest) as caught:
        applied({}, wanted)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([{"name": "a"}, {"name": "a"}], '.spec.items[name="a"]: two items have the same keys'),
        ([{"image": "a"}], ".spec.items: every item must have keys name"),
        ([1], ".spec.items: every item must have keys name"),
    ],
)
def test_refuses_items_that_cannot_be_told_apart(items, message):
    with pytest.raises(SpinneyError) as caught:
        applied({}, thing(items=items))
    assert str(caught.value) == message
