"""The ledger: nodes, pods and gangs as they were last seen, and the snapshot made of them.

It is kept up to date change by change, so a change costs what it changes. Every pod has an entry,
worked out anew whenever something it depends on changes: the pod, its gang, what was decided about
it. What differs from the entry before is carried into the snapshot.

What was decided and is not seen yet is *assumed*: the pod counts as being on its node until it is
seen there, or is seen to need none any more, or its write was refused for good. An answer that was
lost, or a write that lost against another, leaves the assumption: it is sent again, or what came
instead is still to be seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TypeVar

import msgspec

from spinney.api import groupkinds, labels
from spinney.api.core.node import Node
from spinney.api.core.pod import Pod
from spinney.api.podgang import PodGang
from spinney.decisions import disruption, pods, standing
from spinney.decisions.placement import machines
from spinney.decisions.placement.cluster import Cluster
from spinney.decisions.placement.demands import GangDemand
from spinney.decisions.placement.machines import Machine
from spinney.decisions.placement.outcomes import Binding
from spinney.decisions.standing import Standing
from spinney.meta import conditions
from spinney.meta.errors import InvariantViolation
from spinney.meta.records import Record
from spinney.meta.references import GroupKind, Ref
from spinney.ports import Reader
from spinney.scheduler.demanding import Demanding
from spinney.scheduler.settings import Settings

FOLLOWED = (groupkinds.NODE, groupkinds.GANG, groupkinds.POD)
"""The kinds whose changes are taken in."""


class Effect(Record):
    """What a change came to."""

    concerned: tuple[Ref, ...] = ()
    """Gangs, and pods outside any, that are to be looked at."""

    made_room: bool = False
    """Whether something that had no place before may have one now."""


NOTHING = Effect()
K = TypeVar("K")


class _Entry(msgspec.Struct, frozen=True, gc=False):
    """What matters of a pod."""

    uid: str
    whole: Ref
    """Its gang, or itself."""

    node: str
    """Where it takes up room; "" where it takes none."""

    is_leaving: bool
    waits: bool
    """Whether it could be given a node."""

    priority: int = 0


class Ledger:
    """What is known of the world."""

    def __init__(self, reader: Reader, settings: Settings) -> None:
        """Know nothing yet."""
        self._reader = reader
        self._settings = settings
        self.forget()

    def forget(self) -> None:
        """Know nothing any more."""
        self.cluster = Cluster()
        self.demanding = Demanding(self._reader)
        self._machines: dict[str, Machine] = {}
        self._entries: dict[Ref, _Entry] = {}
        self._named: dict[Ref, tuple[Ref, ...]] = {}
        self._namers: dict[Ref, Ref] = {}
        self._signs: dict[Ref, tuple[object, ...]] = {}
        self._waiting: dict[Ref, set[Ref]] = {}
        self._assumed: dict[str, tuple[Binding, Ref]] = {}
        self._assumed_of: dict[Ref, set[str]] = {}
        self._marked: set[Ref] = set()
        self._wanted: set[Ref] = set()
        self._placed: Counter[Ref] = Counter()
        self._priorities: Counter[int] = Counter()

    def there(self) -> Iterator[Ref]:
        """Yield all that is to be taken in at the start."""
        for node in self._reader.list(Node):
            yield ref_of(groupkinds.NODE, node)
        for gang in self._reader.list(PodGang):
            yield ref_of(groupkinds.GANG, gang)
        for pod in self._reader.list(Pod):
            yield ref_of(groupkinds.POD, pod)

    # Taking in changes

    def take_in(self, ref: Ref) -> Effect:
        """Take in an object as it is now."""
        if ref.kind == groupkinds.POD:
            return self._enter(ref)
        if ref.kind == groupkinds.GANG:
            return self._take_in_gang(ref)
        return self._take_in_node(ref)

    def _take_in_node(self, ref: Ref) -> Effect:
        node = self._reader.get(Node, "", ref.name)
        if node is None:
            if self._machines.pop(ref.name, None) is not None:
                self.cluster.remove_machine(ref.name)
            return NOTHING
        found = machines.machine(node)
        if self._machines.get(ref.name) == found:
            return NOTHING
        self._machines[ref.name] = found
        self.cluster.put_machine(found)
        return Effect(made_room=True)

    def _take_in_gang(self, ref: Ref) -> Effect:
        gang = self.gang(ref)
        sign = None if gang is None else _sign(gang)
        if sign == self._signs.get(ref):
            return NOTHING
        before = self._named.pop(ref, ())
        named: tuple[Ref, ...] = ()
        self.demanding.forget_gang(ref)
        if gang is None or sign is None:
            self._signs.pop(ref, None)
            self._marked.discard(ref)
        else:
            self._signs[ref] = sign
            named = self._named[ref] = tuple(
                Ref(kind=groupkinds.POD, namespace=ref.namespace, name=name)
                for group in gang.spec.pod_groups
                for name in standing.named_pods(gang, group)
            )
            if disruption.is_marked(gang):
                self._marked.add(ref)
            else:
                self._marked.discard(ref)
        for pod in before:
            if self._namers.get(pod) == ref:
                del self._namers[pod]
        for pod in named:
            self._namers.setdefault(pod, ref)
        return self._enter_all((*before, *named), ref)

    def _enter_all(self, refs: Iterable[Ref], *concerned: Ref) -> Effect:
        found = dict.fromkeys(concerned)
        made_room = False
        for ref in dict.fromkeys(refs):
            effect = self._enter(ref)
            found.update(dict.fromkeys(effect.concerned))
            made_room = made_room or effect.made_room
        return Effect(concerned=tuple(found), made_room=made_room)

    def _enter(self, ref: Ref) -> Effect:
        """Work out the entry of a pod anew, and carry over what differs."""
        pod = self._reader.get(Pod, ref.namespace, ref.name)
        before = self._entries.get(ref)
        now = None if pod is None else self._entry(ref, pod)
        if now == before:
            return NOTHING
        self._count(before, -1)
        self._count(now, 1)
        made_room = False
        if before is not None:
            self._unwait(before.whole, ref)
            is_gone = now is None or now.uid != before.uid
            if is_gone:
                self.demanding.forget_pod(before.uid)
                self._unassume(before.uid)
            if before.node and (is_gone or not (now and now.node)):
                self.cluster.remove_resident(before.uid)
                made_room = True
            elif before.node and now is not None and now.node != before.node:
                made_room = True
        if now is None or pod is None:
            del self._entries[ref]
        else:
            self._entries[ref] = now
            if now.waits:
                self._waiting.setdefault(now.whole, set()).add(ref)
            if now.node:
                self._put_resident(pod, now)
        concerned = dict.fromkeys(each.whole for each in (before, now) if each is not None)
        return Effect(concerned=tuple(concerned), made_room=made_room)

    def _entry(self, ref: Ref, pod: Pod) -> _Entry:
        uid, whole = pod.metadata.uid, self._whole(ref, pod)
        could = pods.is_active(pod) and self.is_own(pod) and standing.may_be_placed(pod)
        if not could:
            self._unassume(uid)
        assumed = self._assumed.get(uid)
        node = pod.spec.node_name if disruption.holds_place(pod) else ""
        if assumed is not None:
            node = assumed[0].node
        return _Entry(
            uid=uid,
            whole=whole,
            node=node,
            is_leaving=bool(node) and (pods.is_terminating(pod) or self.is_going(whole)),
            waits=could and assumed is None,
            priority=self.demanding.priority(whole, pod) if node else 0,
        )

    def _whole(self, ref: Ref, pod: Pod) -> Ref:
        """Return the gang a pod is of: the one it says, else the one that names it; or itself."""
        label = pod.metadata.labels.get(labels.PODGANG)
        if label:
            return Ref(kind=groupkinds.GANG, namespace=ref.namespace, name=label)
        return self._namers.get(ref, ref)

    def _count(self, entry: _Entry | None, by: int) -> None:
        if entry is not None and entry.node:
            _count(self._placed, entry.whole, by)
            _count(self._priorities, entry.priority, by)

    def _put_resident(self, pod: Pod, entry: _Entry) -> None:
        is_alone = entry.whole.kind == groupkinds.POD
        found = machines.resident(
            self.demanding.of_pod(pod),
            gang=None if is_alone else entry.whole,
            created=self.demanding.created(entry.whole, pod),
            is_leaving=entry.is_leaving,
        )
        if found.priority != entry.priority:
            found = msgspec.structs.replace(found, priority=entry.priority)
        self.cluster.put_resident(entry.node, found)

    def _unwait(self, whole: Ref, pod: Ref) -> None:
        waiting = self._waiting.get(whole)
        if waiting is not None:
            waiting.discard(pod)
            if not waiting:
                del self._waiting[whole]

    # What was decided

    def assume(self, whole: Ref, bindings: Iterable[Binding]) -> None:
        """Count pods of a gang as being on the nodes they were given."""
        for binding in bindings:
            self._assumed[binding.uid] = (binding, whole)
            self._assumed_of.setdefault(whole, set()).add(binding.uid)
            self._enter(binding.pod)

    def withdraw(self, binding: Binding) -> Effect:
        """Count a pod as waiting again: its write was refused for good."""
        self._unassume(binding.uid)
        return self._enter(binding.pod)

    def _unassume(self, uid: str) -> None:
        found = self._assumed.pop(uid, None)
        if found is not None:
            of_whole = self._assumed_of[found[1]]
            of_whole.discard(uid)
            if not of_whole:
                del self._assumed_of[found[1]]

    def assumed(self, whole: Ref) -> tuple[Binding, ...]:
        """Return the pods of a gang that were given a place which is not seen yet."""
        return tuple(sorted(self._assumed[uid][0] for uid in self._assumed_of.get(whole, ())))

    @property
    def assumed_count(self) -> int:
        """How many pods were given a place which is not seen yet."""
        return len(self._assumed)

    def want_gone(self, whole: Ref) -> None:
        """Count a gang as leaving before it is seen to be marked."""
        self._wanted.add(whole)
        self._enter_all(self.member_refs(whole))

    def want_no_more(self, whole: Ref) -> None:
        """Count a gang as leaving only if it is seen to be marked."""
        self._wanted.discard(whole)
        self._enter_all(self.member_refs(whole))

    def is_going(self, whole: Ref) -> bool:
        """Whether a gang is marked to be taken away, or is about to be."""
        return whole in self._marked or whole in self._wanted

    # Looking at it

    def is_own(self, pod: Pod) -> bool:
        """Whether a pod is this scheduler's to place."""
        names = self._settings.scheduler_names
        return names is None or pod.spec.scheduler_name in names

    def gang(self, whole: Ref) -> PodGang | None:
        """Return a gang as it is seen now; None for a pod outside any."""
        if whole.kind != groupkinds.GANG:
            return None
        return self._reader.get(PodGang, whole.namespace, whole.name)

    def member_refs(self, whole: Ref) -> tuple[Ref, ...]:
        """Return the pods a gang names, or the pod outside any."""
        return self._named.get(whole, ()) if whole.kind == groupkinds.GANG else (whole,)

    def members(self, whole: Ref) -> dict[str, Pod]:
        """Return the pods of a gang that are there, by name."""
        found: dict[str, Pod] = {}
        for ref in self.member_refs(whole):
            entry = self._entries.get(ref)
            pod = self._reader.get(Pod, ref.namespace, ref.name)
            if pod is not None and (entry is None or entry.whole == whole):
                found[ref.name] = pod
        return found

    def node_of(self, pod: Pod) -> str:
        """Return the node a pod has, or is being given; "" where it has none."""
        assumed = self._assumed.get(pod.metadata.uid)
        return pod.spec.node_name or ("" if assumed is None else assumed[0].node)

    def waits(self, pod: Pod) -> bool:
        """Whether a pod could be given a node, and was not."""
        entry = self._entries.get(ref_of(groupkinds.POD, pod))
        return entry is not None and entry.uid == pod.metadata.uid and entry.waits

    def has_waiting(self, whole: Ref) -> bool:
        """Whether some pod of a gang could be given a place."""
        return whole in self._waiting

    def standing(self, whole: Ref) -> Standing | None:
        """Return how a gang stands; None where it is gone."""
        members = self.members(whole)
        if whole.kind == groupkinds.GANG:
            gang = self.gang(whole)
            if gang is None:
                return None
            return standing.of_gang(gang, members, self.is_own, lambda pod: bool(self.node_of(pod)))
        pod = members.get(whole.name)
        if pod is None:
            return None
        return standing.of_pod(pod, is_own=self.is_own(pod), is_placed=bool(self.node_of(pod)))

    def demand(self, whole: Ref, found: Standing) -> GangDemand:
        """Return what a gang that stands so asks for."""
        gang = self.gang(whole)
        if gang is None:
            return self.demanding.of_one(found.waiting[0])
        placed = (pod for group in found.groups for pod in group.placed)
        nodes = {pod.metadata.uid: self.node_of(pod) for pod in placed}
        return self.demanding.of_gang(gang, found, nodes)

    def levels(self, whole: Ref) -> tuple[str, ...]:
        """Return the node labels of the network a gang is placed by, broadest first."""
        return self.demanding.levels(self.gang(whole))

    def may_preempt(self, whole: Ref, demand: GangDemand) -> bool:
        """Whether others may be taken away for a gang: there must be some less important."""
        least = min(self._priorities, default=demand.priority)
        if not demand.can_preempt or least >= demand.priority:
            return False
        return self.demanding.class_may_preempt(whole)

    def rank(self, whole: Ref) -> tuple[int, datetime | None]:
        """Return how important a gang is, and when it was made."""
        ref = next(iter(self._waiting.get(whole, ())), None)
        pod = None if ref is None else self._reader.get(Pod, ref.namespace, ref.name)
        if pod is None:
            return 0, None
        return self.demanding.priority(whole, pod), self.demanding.created(whole, pod)

    def is_partial(self, whole: Ref) -> bool:
        """Whether a gang has nodes for some of the pods it needs, and others wait."""
        if not self._placed.get(whole) or whole not in self._waiting:
            return False
        found = self.standing(whole)
        return found is not None and found.is_partial

    def holders(self, whole: Ref) -> tuple[Ref, ...]:
        """Return the pods of a gang that have nodes, or are being given some."""
        found = []
        for ref in self.member_refs(whole):
            entry = self._entries.get(ref)
            if entry is not None and entry.node and entry.whole == whole:
                found.append(ref)
        return tuple(found)

    def __len__(self) -> int:
        """How many pods are known."""
        return len(self._entries)

    @property
    def waiting_count(self) -> int:
        """How many gangs, and pods outside any, have pods that could be given a place."""
        return len(self._waiting)

    def validate(self) -> None:
        """Check what is kept against each other; raises InvariantViolation."""
        for whole, waiting in self._waiting.items():
            for ref in waiting:
                entry = self._entries.get(ref)
                if entry is None or not entry.waits or entry.whole != whole:
                    raise InvariantViolation(f"{ref} counts as waiting with {whole}, and does not")
        for uid, (binding, whole) in self._assumed.items():
            entry = self._entries.get(binding.pod)
            if entry is None or entry.uid != uid or entry.node != binding.node:
                raise InvariantViolation(f"{binding.pod} of {whole} is assumed, and not entered so")
        there = {each.uid: node for node, each in self.cluster.residents()}
        entered = {each.uid: each.node for each in self._entries.values() if each.node}
        if not entered.items() <= there.items():
            raise InvariantViolation("the snapshot lacks pods that have nodes")


def ref_of(kind: GroupKind, view: Node | PodGang | Pod) -> Ref:
    """Return how an object is referred to."""
    return Ref(kind=kind, namespace=view.metadata.namespace or "", name=view.metadata.name)


def _count(counter: Counter[K], key: K, by: int) -> None:
    counter[key] += by
    if not counter[key]:
        del counter[key]


def _sign(gang: PodGang) -> tuple[object, ...]:
    """Return what of a gang bears on where its pods go."""
    metadata, found = gang.metadata, gang.status.conditions
    return (
        metadata.uid,
        metadata.generation,
        metadata.deletion_timestamp is not None,
        metadata.annotations.get(labels.TOPOLOGY_NAME),
        disruption.is_marked(gang),
        conditions.is_true(found, "Initialized"),
        conditions.find(found, "Initialized") is None,
    )
