"""Golden manifests: sets as users write them, and every object there is once all is at rest.

Before pods run: nobody places them here. `golden/<case>.yaml` is what a user applies,
`golden/<case>.expected.yaml` what is there then: objects as Spinney writes them, without what
admission fills in. Uids are told by name, conditions and owners in one line each. After a change
that is meant, write them anew and read the diff:

    SPINNEY_REGENERATE=1 pytest tests/controllers/test_golden.py
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pytest
import yaml

from spinney.api import groupkinds, kinds
from spinney.api.kinds import KINDS, OUR_KINDS
from spinney.controllers import podclique, podcliquescalinggroup, podcliqueset, podgang
from spinney.decisions import cliques, gangs, groups, sets
from spinney.decisions.actions import Action, Create, Decision, Patch
from spinney.decisions.settings import Settings
from spinney.meta.documents import Document, Json, object_at, string_at, with_value
from spinney.meta.patches import merge_patch
from spinney.meta.references import GroupKind, Ref
from tests.decisions.worlds import World

FOLDER = Path(__file__).parent / "golden"
CASES = sorted(path.stem for path in FOLDER.glob("*.yaml") if ".expected" not in path.name)
SETTINGS: Mapping[str, Settings] = {
    "order-on-a-cluster": Settings(wait_image="example/spinney:1"),
    "topology-disabled": Settings(topology_aware=False),
}
ROUNDS_MAX = 12
Look = Callable[[World, Ref], Decision | None]


def looks(settings: Settings) -> dict[GroupKind, Look]:
    """Return how controllers of an installation look and decide."""

    def decided(observe, decide, world: World, key: Ref) -> Decision | None:  # type: ignore[no-untyped-def]
        seen = observe(world, key, world.now)
        return None if seen is None else decide(seen)

    told = partial(podcliqueset.observe, settings=settings)
    return {
        groupkinds.SET: partial(decided, told, sets.decide),
        groupkinds.SCALING_GROUP: partial(decided, podcliquescalinggroup.observe, groups.decide),
        groupkinds.CLIQUE: partial(
            decided, partial(podclique.observe, settings=settings), cliques.decide
        ),
        groupkinds.GANG: partial(
            decided, partial(podgang.observe, settings=settings), gangs.decide
        ),
    }


class Written(World):
    """A world that keeps what was written, as it was written."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.written: dict[Ref, Document] = {}
        self._looks = looks(settings)

    def look(self, key: Ref) -> bool:
        before = self.version
        decision = self._looks[key.kind](self, key)
        assert decision is not None
        decision.check()
        self.carry_out(key, decision)
        return self.version != before

    def act(self, action: Action) -> None:
        super().act(action)
        if isinstance(action, Create):
            metadata = object_at(action.document, ["metadata"])
            ref = Ref(
                kind=kinds.group_kind_of(action.document),
                namespace=string_at(metadata, ["namespace"]),
                name=string_at(metadata, ["name"]),
            )
            self.written[ref] = action.document
        elif isinstance(action, Patch):
            held = self.written.get(action.target, {})
            self.written[action.target] = merge_patch.apply(held, action.merge)


def outcome(case: str) -> list[Json]:
    """Return everything there is once a case's objects were applied and all is at rest."""
    world = Written(SETTINGS.get(case, Settings()))
    for document in yaml.safe_load_all((FOLDER / f"{case}.yaml").read_text()):
        kind = KINDS[kinds.group_kind_of(document)]
        if kind.namespaced and not string_at(document, ["metadata", "namespace"]):
            document = with_value(document, ["metadata", "namespace"], "default")
        world.apply(document)
    assert world.settle() <= ROUNDS_MAX
    uids = {
        string_at(document, ["metadata", "uid"]): f"uid of {ref.kind.kind} {ref.name}"
        for ref, document in world.documents.items()
    }
    found: list[Json] = []
    for ref in sorted(world.documents):
        written = world.written.get(ref, {})
        status = object_at(world.documents[ref], ["status"])
        status = status if ref.kind in OUR_KINDS else {}
        if not written and not status:
            continue
        head: Document = {"apiVersion": KINDS[ref.kind].names.api_version, "kind": ref.kind.kind}
        named = with_value({**head, **written}, ["metadata", "name"], ref.name)
        whole: Document = {**named, "status": status} if status else named
        found.append(_plain(whole, uids))
    events = sorted({f"{e.type} {e.reason} about {e.about}: {e.note}" for e in world.events})
    return [*found, {"events": [*events]}] if events else found


def _plain(value: Json, uids: Mapping[str, str]) -> Json:
    """Return a value by which two runs can be compared, and which a person can read."""
    if isinstance(value, dict):
        short = _condition(value) or _owner(value, uids)
        return short or {key: _plain(below, uids) for key, below in sorted(value.items())}
    if isinstance(value, list):
        return [_plain(below, uids) for below in value]
    return uids.get(value, value) if isinstance(value, str) else value


def _condition(value: Document) -> str:
    needed = {"type", "status", "reason", "message", "lastTransitionTime"}
    if not needed <= value.keys() <= {*needed, "observedGeneration"}:
        return ""
    of = f" of generation {value['observedGeneration']}" if "observedGeneration" in value else ""
    return f"{value['type']}={value['status']}/{value['reason']}{of}: {value['message']}"


def _owner(value: Document, uids: Mapping[str, str]) -> str:
    """Return an owner reference in one line, if it is a controller's in every detail."""
    name = f"{value.get('kind')} {value.get('name')}"
    api_version = value.get("apiVersion")
    whole: Document = {
        "apiVersion": "grove.io/v1alpha1",
        "kind": value.get("kind"),
        "name": value.get("name"),
        "uid": value.get("uid"),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    uid = value.get("uid")
    is_owner = api_version == whole["apiVersion"] and isinstance(uid, str) and value == whole
    return f"controlled by {name}" if is_owner and uids.get(str(uid)) == f"uid of {name}" else ""


@pytest.mark.rule("1.2")
@pytest.mark.rule("2.1")
@pytest.mark.parametrize("case", CASES)
def test_a_set_becomes_exactly_these_objects(case: str) -> None:
    expected = FOLDER / f"{case}.expected.yaml"
    found = outcome(case)
    if os.environ.get("SPINNEY_REGENERATE"):
        expected.write_text(
            yaml.safe_dump_all(found, width=140, sort_keys=False, default_flow_style=None)
        )
    assert found == [*yaml.safe_load_all(expected.read_text())]


@pytest.mark.rule("2.4")
def test_a_token_is_made_only_where_somebody_waits_and_blocks_nobody() -> None:
    """Nobody fills the token here, and all pods are there nevertheless."""
    with_token = {
        case
        for case in CASES
        for found in yaml.safe_load_all((FOLDER / f"{case}.expected.yaml").read_text())
        if string_at(found, ["kind"]) == "Secret"
    }
    assert with_token == {"order-on-a-cluster"}
    found = outcome("order-on-a-cluster")
    names = [string_at(each, ["metadata", "name"]) for each in found]
    assert {"waits-ic-sat", "waits-0-a-0", "waits-0-a-1", "waits-0-b-0"} <= {*names}


def test_there_are_enough_cases_and_none_is_left_over() -> None:
    assert len(CASES) >= 25
    assert {path.name for path in FOLDER.iterdir()} == {
        name for case in CASES for name in (f"{case}.yaml", f"{case}.expected.yaml")
    }
