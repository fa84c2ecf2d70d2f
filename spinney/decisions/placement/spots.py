"""Spots: one machine each, with what occupies it and what is left."""

from __future__ import annotations

from spinney.decisions.placement.demands import PodShape
from spinney.decisions.placement.machines import Machine, Resident
from spinney.decisions.placement.requesting import HostPort


class Spot:
    """The place of a machine, known or not, and the pods there."""

    __slots__ = ("free", "machine", "name", "ports", "residents")

    def __init__(self, name: str) -> None:
        self.name = name
        self.machine: Machine | None = None
        self.free: dict[str, int] = {}
        """What is left; less than nothing where more was promised than there is."""

        self.residents: dict[str, Resident] = {}
        self.ports: list[HostPort] = []

    def settle(self, machine: Machine | None) -> None:
        """Let this be the place of a machine, or of none."""
        self.machine = machine
        self.free = dict(machine.allocatable) if machine is not None else {}
        for resident in self.residents.values():
            for name, amount in resident.requests:
                self.free[name] = self.free.get(name, 0) - amount

    def add(self, resident: Resident) -> None:
        """Let a pod in."""
        self.residents[resident.uid] = resident
        self.ports += resident.host_ports
        free = self.free
        for name, amount in resident.requests:
            free[name] = free.get(name, 0) - amount

    def drop(self, uid: str) -> None:
        """Let a pod go."""
        resident = self.residents.pop(uid)
        for port in resident.host_ports:
            self.ports.remove(port)
        free = self.free
        for name, amount in resident.requests:
            free[name] += amount

    def take(self, shape: PodShape, count: int) -> None:
        """Set aside room for pods; with a count below 0, give it back."""
        free = self.free
        for name, amount in shape.requests:
            free[name] = free.get(name, 0) - amount * count
        for port in shape.host_ports:
            if count > 0:
                self.ports.append(port)
            else:
                self.ports.remove(port)

    def capacity(self, shape: PodShape) -> int:
        """Return for how many pods of a shape there is room, whether they may come or not."""
        free, least = self.free, -1
        for name, amount in shape.requests:
            count = free.get(name, 0) // amount
            if count <= 0:
                return 0
            if count < least or least < 0:
                least = count
        if shape.host_ports:
            return min(1, least) if self.has_ports(shape) else 0
        return least

    def has_ports(self, shape: PodShape) -> bool:
        """Whether the ports of the node that a pod wants are free."""
        return not any(port.meets(taken) for port in shape.host_ports for taken in self.ports)
