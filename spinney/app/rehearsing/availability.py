"""Availability: how low each level of a set comes, and how much is away at once at most."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from spinney.api import groupkinds, labels
from spinney.api.core.pod import Pod
from spinney.api.podclique import PodClique
from spinney.api.podcliquescalinggroup import PodCliqueScalingGroup
from spinney.api.podcliqueset import PodCliqueSet
from spinney.app.rehearsing.objects import Objects
from spinney.decisions import places, pods
from spinney.decisions.making import cliques as clique_documents
from spinney.decisions.placement import amounts, requesting
from spinney.meta.records import Record
from spinney.meta.references import Ref
from spinney.ports import Change


class Level(Record):
    """One level of a set: how many of it serve, and how few at the worst moment."""

    sort: str
    """`set`, `group` or `clique`."""

    name: str
    needed: int
    """Below so many it counts as unavailable."""

    before: int
    lowest: int


class Watch:
    """Watches the pods of one set."""

    def __init__(self, objects: Objects, set_: PodCliqueSet) -> None:
        """Begin with the pods as they are."""
        self._objects = objects
        self._set = set_
        self._ready: dict[str, set[str]] = defaultdict(set)
        """The names of ready pods, by PodClique."""

        self._seen: dict[str, Pod] = {}
        self._away: dict[str, Pod] = {}
        self.pods_away_most = 0
        self.resources_away_most: Counter[str] = Counter()
        """Of what only some nodes have, such as GPUs: how much at most."""

        self._levels: dict[tuple[str, str], list[int]] = {}
        """How many serve: before, now, and at the worst."""

        self._needed: dict[tuple[str, str], int] = {}
        self._whole: dict[int, bool] = {}
        for pod in objects.list(Pod):
            if self._is_its(pod) and pods.is_ready(pod):
                self._enter(pod)
        for index in range(set_.spec.replicas):
            self._judge(index)
        objects.on_change(groupkinds.POD, self._changed)

    def _is_its(self, pod: Pod) -> bool:
        metadata = pod.metadata
        own = self._set.metadata
        return (metadata.namespace, metadata.labels.get(labels.PART_OF)) == (
            own.namespace,
            own.name,
        )

    def _enter(self, pod: Pod) -> None:
        name = pod.metadata.name
        self._ready[pod.metadata.labels.get(labels.PODCLIQUE, "")].add(name)
        self._seen[name] = pod
        self._away.pop(name, None)

    def _changed(self, ref: Ref, _change: Change) -> None:
        pod = self._objects.get(Pod, ref.namespace, ref.name)
        before = self._seen.get(ref.name)
        if pod is not None and not self._is_its(pod):
            return
        if pod is not None and pods.is_ready(pod):
            self._enter(pod)
            self._judge(labels.number(pod.metadata.labels, labels.SET_REPLICA_INDEX))
            return
        if before is None or ref.namespace != self._set.metadata.namespace:
            return
        ready = self._ready[before.metadata.labels.get(labels.PODCLIQUE, "")]
        index = labels.number(before.metadata.labels, labels.SET_REPLICA_INDEX)
        if ref.name not in ready:
            return
        ready.discard(ref.name)
        if index is not None and index < self._set.spec.replicas:
            self._away[ref.name] = before
            self._count_away()
        self._judge(index)

    def _count_away(self) -> None:
        self.pods_away_most = max(self.pods_away_most, len(self._away))
        held: Counter[str] = Counter()
        for pod in self._away.values():
            for name, value in requesting.requests(pod.spec):
                if amounts.is_extended(name):
                    held[name] += value
        self.resources_away_most |= held

    # Levels

    def _judge(self, index: int | None) -> None:
        """Take note of how much of a replica serves."""
        if index is None or index >= self._set.spec.replicas:
            return
        template, layout = self._set.spec.template, places.layout(self._set)
        is_whole = True
        for place in layout.standalone_places(index):
            clique = places.clique_of(template, place.clique)
            there = self._objects.get(PodClique, self._set.metadata.namespace, place.name)
            assert clique is not None, "a place is of a clique of its template"
            replicas = clique.spec.replicas if there is None else there.spec.replicas
            least = min(clique_documents.min_available(clique), replicas)
            count = len(self._ready[place.name])
            self._note(("clique", place.name), least, count)
            is_whole = is_whole and count >= least
        for group in layout.group_places(index):
            found = self._objects.get(
                PodCliqueScalingGroup, self._set.metadata.namespace, group.name
            )
            replicas = group.config.replicas if found is None else found.spec.replicas
            least = min(group.config.min_available, replicas)
            count = sum(self._is_whole_copy(group, copy) for copy in range(replicas))
            self._note(("group", group.name), least, count)
            is_whole = is_whole and count >= least
        self._whole[index] = is_whole
        if len(self._whole) == self._set.spec.replicas:
            name = self._set.metadata.name
            self._note(("set", name), 0, sum(self._whole.values()))

    def _is_whole_copy(self, group: places.GroupPlace, copy: int) -> bool:
        for place in places.grouped_places(group, [copy]):
            clique = places.clique_of(self._set.spec.template, place.clique)
            assert clique is not None, "a place is of a clique of its template"
            least = min(clique_documents.min_available(clique), clique.spec.replicas)
            if len(self._ready[place.name]) < least:
                return False
        return True

    def _note(self, key: tuple[str, str], needed: int, count: int) -> None:
        self._needed[key] = needed
        told = self._levels.setdefault(key, [count, count])
        told[1] = min(told[1], count)

    def levels(self) -> Iterator[Level]:
        """Yield every level, the set first."""
        order = {"set": 0, "group": 1, "clique": 2}
        for (sort, name), (before, lowest) in sorted(
            self._levels.items(), key=lambda item: (order[item[0][0]], item[0][1])
        ):
            needed = self._needed[sort, name]
            yield Level(sort=sort, name=name, needed=needed, before=before, lowest=lowest)
