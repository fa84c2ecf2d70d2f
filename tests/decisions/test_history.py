"""The history of a set: what differs, and that going back restores what a revision holds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.api import groupkinds, kinds, labels
from spinney.api.kinds import KINDS
from spinney.api.podcliqueset import PodCliqueSet
from spinney.decisions import revisions
from spinney.decisions.updates import history
from spinney.decisions.updates.history import Difference, Edition
from spinney.meta import records
from spinney.meta.documents import Document, Json, list_at, object_at, string_at
from spinney.meta.patches import merge_patch
from tests.decisions.shapes import Clique, Small
from tests.decisions.test_updates import SET, change, living
from tests.decisions.worlds import World

SHAPE = Small(
    replicas=1,
    cliques=(
        Clique(name="a", replicas=2, min_available=1),
        Clique(name="b", replicas=1, min_available=1),
    ),
    groups=(),
)
WORDS = st.dictionaries(st.sampled_from(["x", "y", "z"]), st.sampled_from(["1", "2"]), max_size=2)


def a_set(clique_labels: Document, annotations: Document, image: str, priority: str) -> Document:
    document = SHAPE.document()
    first, second = map(dict, list_at(document, ["spec", "template", "cliques"]))  # type: ignore[arg-type]
    first |= {"labels": clique_labels, "annotations": annotations}
    container: Json = {"name": "main", "image": image}
    first["spec"] = {**first["spec"], "podSpec": {"containers": [container]}}
    spec = object_at(document, ["spec"])
    template: Document = {**object_at(spec, ["template"]), "cliques": [first, second]}
    if priority:
        template["priorityClassName"] = priority
    admitted, faults = kinds.admit(
        KINDS[groupkinds.SET], {**document, "spec": {**spec, "template": template}}
    )
    assert not faults
    return admitted


SETS = st.builds(
    a_set, WORDS, WORDS, st.sampled_from(["i:1", "i:2"]), st.sampled_from(["", "high"])
)


def view(document: Document) -> PodCliqueSet:
    return records.decode(PodCliqueSet, document)


@pytest.mark.law
@pytest.mark.rule("3.5")
@given(SETS, SETS)
def test_going_back_restores_what_a_revision_holds_and_nothing_else(
    old: Document, new: Document
) -> None:
    data = revisions.data_of(view(old).spec.template)
    merge: Document = {
        "spec": {"template": history.restored(object_at(new, ["spec", "template"]), data)}
    }
    back = view(merge_patch.apply(new, merge))
    wanted = revisions.generation_hash(view(old).spec.template)
    assert revisions.generation_hash(back.spec.template) == wanted
    assert back.spec.replicas == view(new).spec.replicas
    assert [each.spec.replicas for each in back.spec.template.cliques] == [2, 1]
    told = history.differences(data, revisions.data_of(back.spec.template))
    assert not told


@pytest.mark.law
@given(SETS, SETS)
def test_revisions_differ_exactly_where_their_hashes_do(old: Document, new: Document) -> None:
    before, after = view(old).spec.template, view(new).spec.template
    told = history.differences(revisions.data_of(before), revisions.data_of(after))
    is_same = revisions.generation_hash(before) == revisions.generation_hash(after)
    assert bool(told) != is_same


def test_a_restart_changes_every_clique_and_nothing_but_an_annotation() -> None:
    document = a_set({}, {"x": "1"}, "i:1", "")
    template = object_at(document, ["spec", "template"])
    merge: Document = {"spec": {"template": history.restarted(template, "now")}}
    after = merge_patch.apply(document, merge)
    told = history.differences(object_at(document, ["spec"]), object_at(after, ["spec"]))
    path = f'annotations["{labels.RESTARTED_AT}"]'
    assert told == tuple(
        Difference(path=f"template.cliques[{name}].{path}", before=None, after="now")
        for name in "ab"
    )


def test_the_one_before_is_the_newest_that_is_not_the_one_of_now() -> None:
    found = tuple(Edition(number=each, hash=f"h{each}", data={}) for each in (1, 4, 6))
    assert history.before(found, "h6") == found[1]
    assert history.before(found, "h4") == found[2]
    assert history.before(found[:1], "h1") is None
    assert history.numbered(found, 4) == found[1]
    assert history.numbered(found, 5) is None


def causes(world: World) -> list[tuple[Json, str]]:
    found = [world.at(groupkinds.REVISION, name) for name in world.names(groupkinds.REVISION)]
    return sorted(
        (
            each.get("revision"),
            string_at(each, ["metadata", "annotations", labels.CHANGE_CAUSE]),
        )
        for each in found
    )


@pytest.mark.rule("3.5")
def test_a_revision_keeps_why_its_set_was_changed() -> None:
    world = living(SHAPE)
    assert causes(world) == [(1, "")]
    world.change(SET, ["metadata", "annotations"], {labels.CHANGE_CAUSE: "faster"})
    change(world, 2)
    world.live()
    assert causes(world) == [(1, ""), (2, "faster")]
    world.change(SET, ["metadata", "annotations"], {labels.CHANGE_CAUSE: "back, it crashed"})
    change(world, 1)
    world.live()
    told = causes(world)
    assert told[-1][1] == "back, it crashed"
    assert ("faster" in dict(told).values()) is (len(told) == 2)
