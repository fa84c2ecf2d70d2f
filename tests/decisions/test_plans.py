"""What a large set makes, look by look: the first of what is missing, in order, each thing once."""

from __future__ import annotations

from spinney.api import groupkinds
from spinney.controllers import podcliqueset
from spinney.decisions import sets
from spinney.decisions.actions import ACTIONS_MAX, Create
from spinney.meta.documents import string_at
from spinney.meta.references import Ref
from spinney.testing import build
from tests.decisions.worlds import World

LARGE = Ref(kind=groupkinds.SET, namespace="default", name="large")


REPLICAS = 140


def large() -> World:
    world = World()
    made = build.podcliqueset("large").with_replicas(REPLICAS).with_clique("a").with_clique("b")
    world.apply(made.with_("metadata.namespace", "default").document())
    return world


def test_a_set_is_made_in_one_order_however_many_looks_it_takes() -> None:
    world = large()
    made: list[tuple[str, str]] = []
    for _ in range(8):
        seen = podcliqueset.observe(world, LARGE, world.now)
        assert seen is not None
        decision = sets.decide(seen)
        assert decision == sets.decide(seen)
        assert len(decision.actions) <= ACTIONS_MAX
        made += [
            (string_at(action.document, ["kind"]), string_at(action.document, ["metadata", "name"]))
            for action in decision.actions
            if isinstance(action, Create)
        ]
        world.carry_out(LARGE, decision)
    assert not decision.actions
    kinds = [kind for kind, _ in made]
    assert len(set(made)) == len(made)
    assert kinds.count("PodClique") == 2 * REPLICAS
    assert kinds.count("PodGang") == kinds.count("Service") == REPLICAS
    assert [name for kind, name in made if kind == "PodGang"] == [
        f"large-{index}" for index in range(REPLICAS)
    ]
