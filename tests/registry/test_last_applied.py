"""kubectl applies server-side what it applied client-side before, and the other way round."""

from __future__ import annotations

import json

import pytest
from registry_worlds import ANNA, config_map, story

from spinney.meta.errors import ApplyConflict
from spinney.ports import Identity
from spinney.registry import last_applied

CLIENT_SIDE = Identity(user="anna", manager="kubectl-client-side-apply")
CONTROLLER = Identity(user="bert", manager="bert")


def applied_client_side(**data):
    """A config map as `kubectl apply` makes it."""
    document = config_map("a", data=data)
    told = f"{json.dumps(document, separators=(',', ':'), sort_keys=True)}\n"
    return {**document, "metadata": {**document["metadata"], "annotations": annotation(told)}}


def annotation(text):
    return {last_applied.ANNOTATION: text}


def told_of(document):
    return document["metadata"]["annotations"][last_applied.ANNOTATION]


@story
async def test_kubectl_takes_back_what_it_applied_itself(world):
    await world.create(applied_client_side(x="1", y="1"), who=CLIENT_SIDE)
    outcome = await world.apply(config_map("a", data={"x": "2"}))
    assert outcome.document["data"] == {"x": "2", "y": "1"}
    assert json.loads(told_of(outcome.document))["data"] == {"x": "2"}
    assert told_of(outcome.document).endswith("}\n")
    version = world.store.version
    await world.apply(config_map("a", data={"x": "2"}))
    assert world.store.version == version, "applying again writes nothing"


@story
async def test_what_others_hold_still_conflicts(world):
    await world.create(applied_client_side(x="1"), who=CLIENT_SIDE)
    await world.patch("configmaps", "a", {"data": {"y": "1"}}, who=CONTROLLER)
    with pytest.raises(ApplyConflict, match=r"\.data\.y"):
        await world.apply(config_map("a", data={"x": "2", "y": "2"}))


@story
async def test_only_kubectl_has_that_right(world):
    await world.create(applied_client_side(x="1"), who=CLIENT_SIDE)
    with pytest.raises(ApplyConflict, match="kubectl-client-side-apply"):
        await world.apply(config_map("a", data={"x": "2"}), who=CONTROLLER)


@pytest.mark.parametrize("text", ["not json", "[]", '{"data": "none"}', ""])
@story
async def test_a_spoilt_annotation_gives_no_right(world, text):
    document = applied_client_side(x="1")
    document["metadata"]["annotations"] = annotation(text)
    await world.create(document, who=CLIENT_SIDE)
    with pytest.raises(ApplyConflict):
        await world.apply(config_map("a", data={"x": "2"}))


@story
async def test_no_annotation_is_made_where_there_was_none(world):
    outcome = await world.apply(config_map("a", data={"x": "1"}), who=ANNA)
    assert "annotations" not in outcome.document["metadata"]


def test_the_annotation_does_not_hold_itself_nor_more_than_annotations_may():
    before = applied_client_side(x="1")
    told = json.loads(told_of(last_applied.followed(before, before, last_applied.MANAGER)))
    assert "annotations" not in told["metadata"]
    large = config_map("a", data={"x": "y" * last_applied.BYTES_MAX})
    assert told_of(last_applied.followed(before, large, last_applied.MANAGER)) == ""
