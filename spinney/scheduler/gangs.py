"""Gangs, as the ledger knows them: how they stand, what they ask for, how important they are."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from spinney.api import groupkinds
from spinney.api.podgang import PodGang
from spinney.decisions import standing
from spinney.decisions.placement.demands import GangDemand
from spinney.decisions.standing import Standing
from spinney.meta.references import Ref
from spinney.ports import Reader
from spinney.scheduler.demanding import Demanding

if TYPE_CHECKING:
    from spinney.scheduler.ledger import Ledger


class Gangs:
    """Looks at gangs; a pod outside any is one by itself."""

    def __init__(self, reader: Reader, ledger: Ledger, demanding: Demanding) -> None:
        """Look through a ledger."""
        self._reader = reader
        self._ledger = ledger
        self._demanding = demanding

    def get(self, whole: Ref) -> PodGang | None:
        """Return a gang as it is seen now; None for a pod outside any."""
        if whole.kind != groupkinds.GANG:
            return None
        return self._reader.get(PodGang, whole.namespace, whole.name)

    def standing(self, whole: Ref) -> Standing | None:
        """Return how a gang stands; None where it is gone."""
        ledger = self._ledger
        members = ledger.members(whole)
        gang = self.get(whole)
        if gang is not None:
            return standing.of_gang(
                gang, members, ledger.is_own, lambda pod: bool(ledger.node_of(pod))
            )
        pod = members.get(whole.name) if whole.kind == groupkinds.POD else None
        if pod is None:
            return None
        return standing.of_pod(pod, is_own=ledger.is_own(pod), is_placed=bool(ledger.node_of(pod)))

    def is_partial(self, whole: Ref) -> bool:
        """Whether a gang has nodes for some of the pods it needs, and others wait."""
        if not (self._ledger.is_running(whole) and self._ledger.has_waiting(whole)):
            return False
        found = self.standing(whole)
        return found is not None and found.is_partial

    def demand(self, whole: Ref, found: Standing) -> GangDemand:
        """Return what a gang that stands so asks for."""
        gang = self.get(whole)
        if gang is None:
            return self._demanding.of_one(found.waiting[0])
        placed = (pod for group in found.groups for pod in group.placed)
        nodes = {pod.metadata.uid: self._ledger.node_of(pod) for pod in placed}
        return self._demanding.of_gang(gang, found, nodes)

    def levels(self, whole: Ref) -> tuple[str, ...]:
        """Return the node labels of the network a gang is placed by, broadest first."""
        return self._demanding.levels(self.get(whole))

    def rank(self, whole: Ref) -> tuple[int, datetime | None]:
        """Return how important a gang of which pods wait is, and when it was made."""
        entries = self._ledger.waiting_entries(whole)
        best = max(entries, key=lambda entry: entry.priority, default=None)
        return (0, None) if best is None else (best.priority, best.created)

    def may_preempt(self, whole: Ref, demand: GangDemand) -> bool:
        """Whether others may be taken away for a gang: there must be some less important."""
        least = self._ledger.lowest_priority
        if not demand.can_preempt or least is None or least >= demand.priority:
            return False
        return self._demanding.class_may_preempt(whole)
