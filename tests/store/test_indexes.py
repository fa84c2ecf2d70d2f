"""Indexes find what looking at every object finds, after every change, in the order of names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.meta.indexes import Objects, merged
from spinney.meta.versions import stored_from_document
from tests.store.stores import POD, SET, document, ref

NAMES = st.sampled_from(["a", "b", "c", "d", "e"])
CHANGES = st.lists(
    st.tuples(
        st.builds(ref, NAMES, st.sampled_from(["one", "two"])),
        st.none()
        | st.fixed_dictionaries(
            {
                "node": st.sampled_from(["", "n1", "n2"]),
                "owner": st.sampled_from(["", "o1", "o2"]),
                "labels": st.dictionaries(st.just("app"), st.sampled_from(["x", "y"])),
                "payload": st.sampled_from(["p", "q"]),
            }
        ),
    ),
    max_size=25,
)
LOOKS = [
    None,
    *(("node", value) for value in ("n1", "n2")),
    *(("owner", value) for value in ("o1", "o2")),
    *(("label:app", value) for value in ("x", "y")),
    *(("payload", value) for value in ("p", "q")),
]


def payload(stored):
    return [stored.document()["spec"]["payload"]]


def has(stored, by):
    name, value = by
    found = {
        "node": [stored.node],
        "owner": stored.owners,
        "label:app": [stored.labels.get("app")],
        "payload": payload(stored),
    }
    return value in found[name]


@pytest.mark.law
@given(changes=CHANGES)
def test_indexes_equal_brute_force_after_every_change(changes):
    objects = Objects()
    objects.register(POD, "payload", payload)
    there = {}
    for version, (target, contents) in enumerate(changes, 1):
        if contents is None:
            objects.drop(target)
            there.pop(target, None)
        else:
            stored = stored_from_document(target, document(target, **contents), version)
            objects.put(stored)
            there[target] = stored
        every = [there[found] for found in sorted(there)]
        for namespace in (None, "one", "two", "three"):
            for by in LOOKS:
                expected = [
                    stored
                    for stored in every
                    if namespace in (None, stored.ref.namespace) and (by is None or has(stored, by))
                ]
                assert objects.list(POD, namespace, by) == expected
                assert [item for item in every if objects.matches(item, namespace, by)] == expected
        assert len(objects) == len(there)
        assert objects.bytes == sum(len(stored.body) for stored in every)


def test_an_index_is_of_one_kind_and_known_by_its_name():
    objects = Objects()
    objects.register(POD, "payload", payload)
    with pytest.raises(AssertionError, match="has no index payload"):
        objects.list(SET, None, ("payload", "p"))
    with pytest.raises(AssertionError, match="is an index every kind has"):
        objects.register(POD, "owner", payload)
    with pytest.raises(AssertionError, match="has an index payload"):
        objects.register(POD, "payload", payload)


def test_a_merged_list_takes_newer_versions_in_and_keeps_its_order():
    old = [stored_from_document(ref(name), document(ref(name)), 1) for name in "ace"]
    new = {name: stored_from_document(ref(name), document(ref(name)), 2) for name in "bc"}
    queued = [(ref("b"), new["b"]), (ref("c"), new["c"]), (ref("e"), None), (ref("x"), None)]
    assert merged(old, queued) == [old[0], new["b"], new["c"]]
    assert merged(old, []) == old
