"""Cluster: machines and what occupies them, kept up to date as they change."""

from __future__ import annotations

from collections.abc import Iterator

from spinney.decisions.placement.machines import Machine, Resident
from spinney.meta.references import Ref


class Cluster:
    """A snapshot that is kept up to date: a change costs what it changes, not what there is.

    It is the one thing in `decisions` that changes in place: copies of 5,000 machines would cost
    more than all placing. Whoever is given one leaves it as it was.
    """

    def put_machine(self, machine: Machine) -> None:
        """Take in a machine, or what has become of it."""
        raise NotImplementedError

    def remove_machine(self, name: str) -> None:
        """Forget a machine. Its residents are remembered, should it come back."""
        raise NotImplementedError

    def put_resident(self, node: str, resident: Resident) -> None:
        """Take in a pod on a node, or what has become of it; the node need not be known yet."""
        raise NotImplementedError

    def remove_resident(self, uid: str) -> None:
        """Forget a pod."""
        raise NotImplementedError

    @property
    def machines(self) -> Iterator[Machine]:
        """The machines there are, by name."""
        raise NotImplementedError

    def residents(self, gang: Ref | None = None) -> Iterator[tuple[str, Resident]]:
        """Yield what is where, in order; of one gang if asked for."""
        raise NotImplementedError
