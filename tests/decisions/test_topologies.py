"""Bindings of topologies: what is kept in line, what is compared, what is told and when.

Laws: whatever back ends say is decided; once carried out nothing is left to do; what somebody else
keeps is never touched.
"""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.api import groupkinds
from spinney.api.clustertopologybinding import ClusterTopologyBinding, ClusterTopologyBindingStatus
from spinney.controllers import clustertopologybinding
from spinney.decisions import topologies
from spinney.decisions.actions import Create, Decision, Delete, Emit
from spinney.decisions.topologies import Backend, Observation, Topology
from spinney.meta import conditions, records
from spinney.meta.documents import list_at, object_at, string_at, value_at, with_value
from spinney.meta.references import GroupKind, Ref
from spinney.testing import build
from tests.decisions.worlds import START, World

KEYS = ("example.com/zone", "example.com/rack")
KIND = GroupKind(group="kai.scheduler", kind="Topology")


def binding(**bound: str) -> ClusterTopologyBinding:
    """Return a binding of two levels; `bound` are the objects somebody else keeps."""
    made = build.clustertopologybinding("racks").with_level("zone", KEYS[0])
    made = made.with_level("rack", KEYS[1])
    document = made.admitted()
    document = with_value(document, ["metadata", "uid"], "uid-racks")
    document = with_value(document, ["metadata", "generation"], 3)
    entries = [{"schedulerName": k, "topologyReference": v} for k, v in bound.items()]
    if entries:
        document = with_value(document, ["spec", "schedulerTopologyBindings"], [*entries])
    return records.decode(ClusterTopologyBinding, document)


def topology(
    *keys: str, owner: str = "uid-racks", generation: int = 7, going: bool = False
) -> Topology:
    return Topology(
        uid="uid-topology", keys=keys, owner_uid=owner, generation=generation, is_going=going
    )


def backend(there: Topology | None = None, error: str = "", name: str = "kai") -> Backend:
    api_version = "kai.scheduler/v1alpha1"
    return Backend(name=name, kind=KIND, api_version=api_version, topology=there, error=error)


def seen(of: ClusterTopologyBinding, *backends: Backend) -> Observation:
    return Observation(now=START, binding=of, backends=backends)


def after(found: Observation, decision: Decision) -> Observation:
    """Return what is seen once a decision is carried out."""
    held = found.binding
    if decision.status is not None:
        status = records.decode(ClusterTopologyBindingStatus, decision.status)
        held = msgspec.structs.replace(held, status=status)
    return msgspec.structs.replace(found, binding=held)


def drift(found: Observation) -> tuple[str, str] | None:
    held = conditions.find(found.binding.status.conditions, topologies.DRIFT)
    return None if held is None else (held.status, held.reason)


@pytest.mark.parametrize(
    ("bound", "backends", "wanted", "synced"),
    [
        # nobody outside: nothing to say
        ({}, [], None, []),
        # what Spinney keeps
        ({}, [backend(topology(*KEYS))], ("False", "InSync"), [True]),
        ({}, [backend(topology(*KEYS, owner="another"))], ("True", "Drift"), [False]),
        ({}, [backend(topology(KEYS[0], going=True))], ("True", "Drift"), [False]),
        ({}, [backend(error="the API server does not answer")], ("True", "Drift"), [False]),
        # what somebody else keeps
        ({"kai": "mine"}, [backend(topology(*KEYS, owner=""))], ("False", "InSync"), [True]),
        ({"kai": "mine"}, [backend(topology(*KEYS[::-1]))], ("True", "Drift"), [False]),
        ({"kai": "mine"}, [backend(topology(KEYS[0]))], ("True", "Drift"), [False]),
        ({"kai": "mine"}, [backend()], ("True", "Drift"), [False]),
        # named and not installed
        ({"kai": "mine"}, [], ("Unknown", "TopologyNotFound"), [False]),
        (
            {"moon": "mine"},
            [backend(topology(*KEYS))],
            ("Unknown", "TopologyNotFound"),
            [True, False],
        ),
        # our own reads the binding
        ({"spinney-scheduler": "racks"}, [], ("False", "InSync"), [True]),
        # one of two
        (
            {},
            [backend(topology(*KEYS)), backend(topology("x", owner=""), name="other")],
            ("True", "Drift"),
            [True, False],
        ),
    ],
)
def test_drift_is_told(
    bound: dict[str, str],
    backends: list[Backend],
    wanted: tuple[str, str] | None,
    synced: list[bool],
) -> None:
    found = seen(binding(**bound), *backends)
    decision = topologies.decide(found)
    done = after(found, decision)
    assert drift(done) == wanted
    told = done.binding.status.scheduler_topology_statuses
    assert [each.in_sync for each in told] == synced
    assert all(each.in_sync or each.message for each in told)
    failed = any(each.error for each in backends)
    assert done.binding.status.observed_generation == (None if failed else 3)


def test_a_missing_topology_is_made_with_the_levels_in_order() -> None:
    (action,) = topologies.decide(seen(binding(), backend())).actions
    assert isinstance(action, Create)
    document = action.document
    assert document["apiVersion"] == "kai.scheduler/v1alpha1"
    assert string_at(document, ["metadata", "name"]) == "racks"
    assert [string_at(level, ["nodeLabel"]) for level in list_at(document, ["spec", "levels"])] == [
        *KEYS
    ]
    (owner,) = list_at(document, ["metadata", "ownerReferences"])
    assert string_at(owner, ["uid"]) == "uid-racks"
    assert value_at(owner, ["controller"]) is True


def test_a_topology_of_ours_with_other_levels_is_made_anew() -> None:
    (action,) = topologies.decide(seen(binding(), backend(topology("x")))).actions
    assert isinstance(action, Delete)
    assert action.only_if.uid == "uid-topology"
    going = seen(binding(), backend(topology("x", going=True)))
    assert not [a for a in topologies.decide(going).actions if not isinstance(a, Emit)]


def test_the_generation_of_what_others_keep_is_told() -> None:
    found = seen(binding(kai="mine"), backend(topology(*KEYS)))
    (told,) = after(found, topologies.decide(found)).binding.status.scheduler_topology_statuses
    assert told.scheduler_backend_topology_observed_generation == 7
    assert told.topology_reference == "mine"


def test_events_are_told_on_transitions_alone() -> None:
    """It agrees, drifts, drifts on, agrees again."""
    found = seen(binding(kai="mine"), backend(topology(*KEYS)))
    reasons: list[str] = []
    for keys in (KEYS, KEYS, ("x",), ("y",), KEYS, KEYS):
        found = msgspec.structs.replace(found, backends=(backend(topology(*keys)),))
        decision = topologies.decide(found)
        reasons += [f"{a.type} {a.reason}" for a in decision.actions if isinstance(a, Emit)]
        found = after(found, decision)
    assert reasons == [
        "Normal TopologyInSync",
        "Warning TopologyDriftDetected",
        "Normal TopologyInSync",
    ]


def test_the_condition_goes_with_the_last_back_end() -> None:
    found = seen(binding(), backend(topology(*KEYS)))
    found = after(found, topologies.decide(found))
    assert drift(found) == ("False", "InSync")
    found = msgspec.structs.replace(found, backends=())
    found = after(found, topologies.decide(found))
    assert drift(found) is None
    assert not found.binding.status.scheduler_topology_statuses


def test_without_back_ends_a_binding_is_observed_and_rests() -> None:
    world = World()
    key = world.apply(build.clustertopologybinding().with_level("rack", KEYS[1]).document())
    for written in (True, False):
        found = clustertopologybinding.observe(world, key, world.now)
        assert found is not None
        decision = topologies.decide(found)
        assert (decision.status is not None) is written
        world.carry_out(key, decision)
    assert object_at(world.documents[key], ["status"]) == {"observedGeneration": 1}
    gone = Ref(kind=groupkinds.TOPOLOGY, namespace="", name="gone")
    assert clustertopologybinding.observe(world, gone, world.now) is None


TOPOLOGIES = st.one_of(
    st.none(),
    st.builds(
        topology,
        st.sampled_from(["x", *KEYS]),
        st.sampled_from(["y", *KEYS]),
        owner=st.sampled_from(["", "uid-racks", "another"]),
        going=st.booleans(),
    ),
)
BACKENDS = st.builds(
    backend,
    TOPOLOGIES,
    error=st.sampled_from(["", "", "not reached"]),
    name=st.sampled_from(["kai", "volcano", "spinney-scheduler"]),
)


def _differs(each: Backend) -> bool:
    there = each.topology
    return there is not None and there.owner_uid == "uid-racks" and there.keys != KEYS


@pytest.mark.law
@given(
    st.lists(BACKENDS, max_size=3, unique_by=lambda each: each.name),
    st.dictionaries(st.sampled_from(["kai", "moon", "spinney-scheduler"]), st.just("mine")),
)
def test_it_comes_to_rest_and_touches_nothing_of_others(
    backends: list[Backend], bound: dict[str, str]
) -> None:
    found = seen(binding(**bound), *sorted(backends, key=lambda each: each.name))
    for _ in range(4):
        decision = topologies.decide(found)
        decision.check()
        made = list(found.backends)
        for action in decision.actions:
            for at, each in enumerate(made):
                mine = each.name not in bound and not each.error
                if isinstance(action, Create) and mine and each.topology is None:
                    made[at] = msgspec.structs.replace(each, topology=topology(*KEYS))
                elif isinstance(action, Delete) and mine and _differs(each):
                    made[at] = msgspec.structs.replace(each, topology=None)
        kept = [b for a, b in zip(made, found.backends, strict=True) if a is b]
        assert all(b in kept for b in found.backends if b.name in bound or b.error)
        found = after(msgspec.structs.replace(found, backends=tuple(made)), decision)
    assert topologies.decide(found).actions == ()
    assert topologies.decide(found).status is None
