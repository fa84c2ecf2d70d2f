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
from spinney.decisions.placement.machines import Machine
from spinney.decisions.placement.outcomes import Binding
from spinney.meta import conditions
from spinney.meta.errors import InvariantViolation
from spinney.meta.records import Record
from spinney.meta.references import GroupKind, Ref
from spinney.ports import Reader
from spinney.scheduler.demanding import Demanding
from spinney.scheduler.gangs import Gangs
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
V = TypeVar("V")


class Entry(msgspec.Struct, frozen=True, gc=False):
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
    created: datetime | None = None
    """Of one that waits or takes up room: how important its gang is, and when that was made."""


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
        self._demanding = Demanding(self._reader)
        self.gangs = Gangs(self._reader, self, self._demanding)
        self._machines: dict[str, Machine] = {}
        self._entries: dict[Ref, Entry] = {}
        self._named: dict[Ref, tuple[Ref, ...]] = {}
        self._namers: dict[Ref, set[Ref]] = {}
        self._pods_of: dict[Ref, set[Ref]] = {}
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
        gang = self.gangs.get(ref)
        sign = None if gang is None else _sign(gang)
        if sign == self._signs.get(ref):
            return NOTHING
        before = self._named.pop(ref, ())
        named: tuple[Ref, ...] = ()
        self._demanding.forget_gang(ref)
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
            _take_out(self._namers, pod, ref)
        for pod in named:
            self._namers.setdefault(pod, set()).add(ref)
        return self._enter_all((*before, *named, *sorted(self._pods_of.get(ref, ()))), ref)

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
            _take_out(self._waiting, before.whole, ref)
            _take_out(self._pods_of, before.whole, ref)
            is_gone = now is None or now.uid != before.uid
            if is_gone:
                self._demanding.forget_pod(before.uid)
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
            self._pods_of.setdefault(now.whole, set()).add(ref)
            if now.waits:
                self._waiting.setdefault(now.whole, set()).add(ref)
            if now.node:
                self._put_resident(pod, now)
        concerned = dict.fromkeys(each.whole for each in (before, now) if each is not None)
        return Effect(concerned=tuple(concerned), made_room=made_room)

    def _entry(self, ref: Ref, pod: Pod) -> Entry:
        uid, whole = pod.metadata.uid, self._whole(ref, pod)
        could = pods.is_active(pod) and self.is_own(pod) and standing.may_be_placed(pod)
        if not could:
            self._unassume(uid)
        assumed = self._assumed.get(uid)
        node = pod.spec.node_name if disruption.holds_place(pod) else ""
        if assumed is not None:
            node = assumed[0].node
        waits = could and assumed is None
        return Entry(
            uid=uid,
            whole=whole,
            node=node,
            is_leaving=bool(node) and (pods.is_terminating(pod) or self.is_going(whole)),
            waits=waits,
            priority=self._demanding.priority(whole, pod) if node or waits else 0,
            created=self._demanding.created(whole, pod) if node or waits else None,
        )

    def _whole(self, ref: Ref, pod: Pod) -> Ref:
        """Return the gang a pod is of: the one it says, else the one that names it; or itself."""
        label = pod.metadata.labels.get(labels.PODGANG)
        if label:
            return Ref(kind=groupkinds.GANG, namespace=ref.namespace, name=label)
        return min(self._namers.get(ref, ()), default=ref)

    def _count(self, entry: Entry | None, by: int) -> None:
        if entry is not None and entry.node:
            _count(self._placed, entry.whole, by)
            _count(self._priorities, entry.priority, by)

    def _put_resident(self, pod: Pod, entry: Entry) -> None:
        is_alone = entry.whole.kind == groupkinds.POD
        found = machines.resident(
            self._demanding.of_pod(pod),
            gang=None if is_alone else entry.whole,
            created=entry.created,
            is_leaving=entry.is_leaving,
        )
        if found.priority != entry.priority:
            found = msgspec.structs.replace(found, priority=entry.priority)
        self.cluster.put_resident(entry.node, found)

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
            _take_out(self._assumed_of, found[1], uid)

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
        self._enter_all(self.pods_of(whole))

    def want_no_more(self, whole: Ref) -> None:
        """Count a gang as leaving only if it is seen to be marked."""
        self._wanted.discard(whole)
        self._enter_all(self.pods_of(whole))

    def is_going(self, whole: Ref) -> bool:
        """Whether a gang is marked to be taken away, or is about to be."""
        return whole in self._marked or whole in self._wanted

    # Looking at it

    def is_own(self, pod: Pod) -> bool:
        """Whether a pod is this scheduler's to place."""
        names = self._settings.scheduler_names
        return names is None or pod.spec.scheduler_name in names

    def whole_of(self, pod: Ref) -> Ref:
        """Return the gang a pod is of, or the pod itself."""
        entry = self._entries.get(pod)
        return pod if entry is None else entry.whole

    def member_refs(self, whole: Ref) -> tuple[Ref, ...]:
        """Return the pods a gang names, or the pod outside any."""
        return self._named.get(whole, ()) if whole.kind == groupkinds.GANG else (whole,)

    def pods_of(self, whole: Ref) -> tuple[Ref, ...]:
        """Return the pods that are of a gang, be they named by it or about to go; sorted."""
        return tuple(sorted(self._pods_of.get(whole, ())))

    def all_of(self, whole: Ref) -> list[Pod]:
        """Return the pods that are of a gang, as they are seen now."""
        found = (self._reader.get(Pod, ref.namespace, ref.name) for ref in self.pods_of(whole))
        return [pod for pod in found if pod is not None]

    def members(self, whole: Ref) -> dict[str, Pod]:
        """Return the pods a gang names that are there, by name."""
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

    def waiting_entries(self, whole: Ref) -> list[Entry]:
        """Return what matters of the pods of a gang that could be given a place."""
        return [self._entries[ref] for ref in self._waiting.get(whole, ())]

    @property
    def lowest_priority(self) -> int | None:
        """How important the least important pod is that has a node; None where none has."""
        return min(self._priorities, default=None)

    def is_running(self, whole: Ref) -> bool:
        """Whether some pod of a gang has a node, or is being given one."""
        return bool(self._placed.get(whole))

    def holders(self, whole: Ref) -> tuple[Ref, ...]:
        """Return the pods of a gang that have nodes, or are being given some."""
        return tuple(ref for ref in self.pods_of(whole) if self._entries[ref].node)

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


def _take_out(sets: dict[K, set[V]], key: K, value: V) -> None:
    """Take something out of one of many sets; none of them is kept empty."""
    found = sets.get(key)
    if found is not None:
        found.discard(value)
        if not found:
            del sets[key]


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
