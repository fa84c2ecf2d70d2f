"""Topologies: whether scheduler back ends see a cluster's levels as its binding tells them.

Our own scheduler reads the binding itself. A back end outside has a topology object of its own:
Spinney keeps it in line, unless the binding says that somebody else keeps it; then it is compared
and never touched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec

from spinney.api import groupkinds
from spinney.api.clustertopologybinding import (
    ClusterTopologyBinding,
    ClusterTopologyBindingStatus,
    SchedulerTopologyStatus,
)
from spinney.decisions.actions import Action, Create, Decision, Delete, Emit
from spinney.decisions.making import owning
from spinney.meta import conditions, records
from spinney.meta.conditions import FALSE, TRUE, UNKNOWN, Condition
from spinney.meta.documents import Document, Json
from spinney.meta.records import Record
from spinney.meta.references import GroupKind, Precondition, Ref

DRIFT = "SchedulerTopologyDrift"
READ_AS_IT_IS = "it reads this binding itself"


class Topology(Record):
    """A back end's topology object, as it stands."""

    uid: str
    keys: tuple[str, ...]
    """The node labels of its levels, broadest first."""

    generation: int = 0
    owner_uid: str = ""
    """The uid of the object that controls it."""

    is_going: bool = False
    """Whether it is being deleted."""


class Backend(Record):
    """A back end outside that places by topology."""

    name: str
    kind: GroupKind
    """Of its topology objects."""

    api_version: str
    topology: Topology | None = None
    """The object the binding names for it, else the one named like the binding."""

    error: str = ""
    """Why it could not be looked at; "" where it could."""


class Observation(Record):
    """What is seen of one binding."""

    now: datetime
    binding: ClusterTopologyBinding
    backends: tuple[Backend, ...] = ()
    """Those that are installed, sorted by name."""

    own: tuple[str, ...] = ("spinney-scheduler",)
    """Back ends that read the binding itself."""


def decide(seen: Observation) -> Decision:
    """Return what to do about one binding now."""
    if seen.binding.metadata.deletion_timestamp is not None:
        return Decision()
    actions = [*_mending(seen)]
    if actions:
        names = ", ".join(backend.name for backend in seen.backends)
        return Decision(
            actions=tuple(actions), reasons=(f"topologies are brought in line: {names}",)
        )
    told = tuple(_statuses(seen))
    status = _status(seen, told)
    changed = status != seen.binding.status
    return Decision(
        actions=tuple(_events(seen, status.conditions)) if changed else (),
        status=records.encode(status) if changed else None,
        reasons=tuple(f"{each.scheduler_name}: {each.message}" for each in told if each.message),
    )


def ref_of(binding: ClusterTopologyBinding) -> Ref:
    """Return how a binding is referred to."""
    return Ref(kind=groupkinds.TOPOLOGY, namespace="", name=binding.metadata.name)


def wanted_keys(binding: ClusterTopologyBinding) -> tuple[str, ...]:
    """Return the node labels of a binding's levels, broadest first."""
    return tuple(level.key for level in binding.spec.levels)


def bound(binding: ClusterTopologyBinding) -> dict[str, str]:
    """Return the topology objects that somebody else keeps, by back end."""
    entries = binding.spec.scheduler_topology_bindings
    return {entry.scheduler_name: entry.topology_reference for entry in entries}


# What Spinney keeps itself


def _mending(seen: Observation) -> Iterator[Action]:
    """Yield what brings our own topology objects in line.

    The levels of one that is there cannot be changed: it is deleted, and made anew once it is gone.
    """
    binding, elsewhere = seen.binding, bound(seen.binding)
    for backend in seen.backends:
        if backend.name in elsewhere or backend.error:
            continue
        there = backend.topology
        if there is None:
            yield Create(document=document(binding, backend))
        elif (
            there.owner_uid == binding.metadata.uid
            and there.keys != wanted_keys(binding)
            and not there.is_going
        ):
            target = Ref(kind=backend.kind, namespace="", name=binding.metadata.name)
            yield Delete(target=target, only_if=Precondition(uid=there.uid))


def document(binding: ClusterTopologyBinding, backend: Backend) -> Document:
    """Return a back end's topology object as it is made."""
    levels: list[Json] = [{"nodeLabel": key} for key in wanted_keys(binding)]
    return {
        "apiVersion": backend.api_version,
        "kind": backend.kind.kind,
        "metadata": {
            "name": binding.metadata.name,
            "ownerReferences": [owning.owner_reference(groupkinds.TOPOLOGY, binding.metadata)],
        },
        "spec": {"levels": levels},
    }


# What is told


def _statuses(seen: Observation) -> Iterator[SchedulerTopologyStatus]:
    """Yield what is so at each back end: those installed, then those only the binding names."""
    binding, elsewhere = seen.binding, bound(seen.binding)
    for backend in seen.backends:
        yield _judged(binding, backend, elsewhere.get(backend.name))
    installed = {backend.name for backend in seen.backends}
    for name in sorted(elsewhere.keys() - installed):
        is_own = name in seen.own
        yield SchedulerTopologyStatus(
            scheduler_name=name,
            topology_reference=elsewhere[name],
            in_sync=is_own,
            message=READ_AS_IT_IS
            if is_own
            else f'no back end "{name}" that places by topology is installed',
        )


def _judged(
    binding: ClusterTopologyBinding, backend: Backend, elsewhere: str | None
) -> SchedulerTopologyStatus:
    name = binding.metadata.name if elsewhere is None else elsewhere
    there, generation, message = backend.topology, None, backend.error
    if not message:
        message = _fault(binding, backend, name, is_ours=elsewhere is None)
        generation = None if elsewhere is None else (there.generation if there is not None else 0)
    return SchedulerTopologyStatus(
        scheduler_name=backend.name,
        topology_reference=name,
        in_sync=not message,
        scheduler_backend_topology_observed_generation=generation,
        message=message,
    )


def _fault(binding: ClusterTopologyBinding, backend: Backend, name: str, *, is_ours: bool) -> str:
    """Return what is wrong with a back end's topology object; "" where nothing is."""
    there, kind = backend.topology, backend.kind.kind
    if there is None:
        return f'{kind} "{name}" is not there: create it, or let Spinney keep one'
    if is_ours and there.owner_uid != binding.metadata.uid:
        return (
            f'{kind} "{name}" is somebody else\'s: name it in schedulerTopologyBindings, '
            "or delete it"
        )
    wanted = wanted_keys(binding)
    if there.keys != wanted:
        return f'{kind} "{name}" has levels {_listed(there.keys)}, the binding {_listed(wanted)}'
    if there.is_going:
        return f'{kind} "{name}" is being deleted'
    return ""


def _listed(keys: Sequence[str]) -> str:
    return ", ".join(keys) or "(none)"


def _status(
    seen: Observation, told: tuple[SchedulerTopologyStatus, ...]
) -> ClusterTopologyBindingStatus:
    binding = seen.binding
    generation = binding.metadata.generation
    failed = any(backend.error for backend in seen.backends)
    judged = _drift(seen, told)
    found = binding.status.conditions
    if judged is None:
        found = tuple(each for each in found if each.type != DRIFT)
    else:
        found = conditions.set_condition(found, DRIFT, *judged, seen.now, generation)
    return msgspec.structs.replace(
        binding.status,
        observed_generation=binding.status.observed_generation if failed else generation,
        conditions=found,
        scheduler_topology_statuses=told,
    )


def _drift(
    seen: Observation, told: tuple[SchedulerTopologyStatus, ...]
) -> tuple[str, str, str] | None:
    """Return whether any back end sees other levels; None where there is none to ask."""
    if not told:
        return None
    known = {*seen.own, *(backend.name for backend in seen.backends)}
    unknown = [each.scheduler_name for each in told if each.scheduler_name not in known]
    if unknown:
        names = ", ".join(unknown)
        return UNKNOWN, "TopologyNotFound", f"back ends that are not installed: {names}"
    apart = [each for each in told if not each.in_sync]
    if apart:
        text = "; ".join(f"{each.scheduler_name}: {each.message}" for each in apart)
        return TRUE, "Drift", text
    return FALSE, "InSync", f"every back end sees the same levels: {_names(told)}"


def _names(told: Sequence[SchedulerTopologyStatus]) -> str:
    return ", ".join(each.scheduler_name for each in told)


def _events(seen: Observation, after: tuple[Condition, ...]) -> Iterator[Emit]:
    """Yield what is told when back ends come to see other levels, and when they agree again."""
    was = conditions.find(seen.binding.status.conditions, DRIFT)
    now = conditions.find(after, DRIFT)
    if now is None or (was is not None and was.status == now.status):
        return
    sort, reason = "Warning", "TopologyDriftDetected"
    if now.status == FALSE:
        sort, reason = "Normal", "TopologyInSync"
    if now.status == UNKNOWN:
        return
    key = f"{seen.binding.metadata.uid}/{reason}"
    yield Emit(about=ref_of(seen.binding), type=sort, reason=reason, note=now.message, key=key)
