"""Turns: which pods may start, where some start after others (rule 2.3).

Kept up to date from what is seen of pods, one by one: only of those PodCliques that somebody waits
for is it known how many of their pods are ready.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from spinney.api import groupkinds, labels
from spinney.api.core.pod import ContainerStateWaiting, Pod
from spinney.decisions import pods
from spinney.meta.references import Ref
from spinney.nodes.agent import waiting
from spinney.ports import Reader

_Clique: TypeAlias = tuple[str, str]
"""A PodClique: its namespace and its name."""


class Turns:
    """Knows who waits for whom."""

    def __init__(self, reader: Reader) -> None:
        """See in a reader how PodCliques stand that come to be waited for."""
        self._reader = reader
        self._cliques: dict[_Clique, _Followed] = {}
        self._waits: dict[Ref, tuple[tuple[_Clique, int], ...]] = {}
        self._clique_of: dict[Ref, _Clique] = {}

    def __len__(self) -> int:
        """How many pods wait."""
        return len(self._waits)

    def held(self, ref: Ref, pod: Pod) -> ContainerStateWaiting | None:
        """Return why a pod may not start yet, None where it may."""
        wanted = [((ref.namespace, clique), count) for clique, count in waiting.cliques(pod)]
        if not wanted:
            return None
        before = self._waits.get(ref, ())
        missing = tuple(
            (clique, count) for clique, count in wanted if len(self._follow(clique).ready) < count
        )
        self._waits[ref] = missing
        for clique, count in missing:
            self._cliques[clique].waiting.setdefault(count, set()).add(ref)
        self._drop(ref, (each for each in (*before, *wanted) if each not in missing))
        if not missing:
            del self._waits[ref]
            return None
        told = ", ".join(f"{clique[1]} ({count} pods ready)" for clique, count in missing)
        return ContainerStateWaiting(
            reason=waiting.REASON, message=f"starts after PodClique {told}"
        )

    def _follow(self, clique: _Clique) -> _Followed:
        """Know from now on which pods of a PodClique are ready."""
        found = self._cliques.get(clique)
        if found is None:
            found = self._cliques[clique] = _Followed()
            namespace, name = clique
            by = (f"label:{labels.PODCLIQUE}", name)
            for pod in self._reader.list(Pod, namespace=namespace, by=by):
                if pods.is_ready(pod):
                    ref = Ref(kind=groupkinds.POD, namespace=namespace, name=pod.metadata.name)
                    found.ready.add(ref)
                    self._clique_of[ref] = clique
        return found

    def forget(self, ref: Ref) -> None:
        """Let a pod wait no longer."""
        self._drop(ref, self._waits.pop(ref, ()))

    def _drop(self, ref: Ref, waits: Iterable[tuple[_Clique, int]]) -> None:
        for clique, count in waits:
            followed = self._cliques.get(clique)
            if followed is None:
                continue
            those = followed.waiting.get(count, set())
            those.discard(ref)
            if not those:
                followed.waiting.pop(count, None)
            if not followed.waiting:
                for each in self._cliques.pop(clique).ready:
                    self._clique_of.pop(each, None)

    def seen(self, ref: Ref, pod: Pod | None) -> Iterable[Ref]:
        """Take note of a pod as it is now; returns whose turn it may have become."""
        if not self._cliques:
            return ()
        clique = self._clique_of.get(ref)
        if clique is None and pod is not None:
            clique = (ref.namespace, pod.metadata.labels.get(labels.PODCLIQUE, ""))
        followed = None if clique is None else self._cliques.get(clique)
        if clique is None or followed is None:
            return ()
        if pod is None or not pods.is_ready(pod):
            followed.ready.discard(ref)
            self._clique_of.pop(ref, None)
            return ()
        if ref in followed.ready:
            return ()
        followed.ready.add(ref)
        self._clique_of[ref] = clique
        return sorted(followed.waiting.get(len(followed.ready), ()))


class _Followed:
    """A PodClique that somebody waits for."""

    def __init__(self) -> None:
        self.ready: set[Ref] = set()
        self.waiting: dict[int, set[Ref]] = {}
        """Who waits, by how many of its pods must be ready."""
