"""The roster: which nodes this process can reach, and through whom.

A host answers for one node or many: the connection to an agent, a fleet of simulated nodes. Nodes
come and go with their hosts.
"""

from __future__ import annotations

from typing import Protocol

from spinney.decisions.usage import NodeUsage, PodUsage
from spinney.meta.errors import Unavailable
from spinney.ports import PodRuntime


class Host(Protocol):
    """Who answers for some nodes."""

    def runtime(self, node: str) -> PodRuntime | None:
        """Return what runs a node's pods; None where the node is not one of its own.

        Raises Unavailable where it is, and cannot be reached.
        """

    def usage(self, pod_uid: str) -> PodUsage | None:
        """Return what was last measured of a pod, None where nothing is known."""

    def node_usage(self, node: str) -> NodeUsage | None:
        """Return what was last measured of a node, None where nothing is known."""


class Roster:
    """The hosts of this process, asked one after another; fills `ports.Nodes`."""

    def __init__(self, *hosts: Host) -> None:
        """Begin with some hosts."""
        self._hosts = [*hosts]

    def add(self, host: Host) -> None:
        """Ask one more."""
        self._hosts.append(host)

    def runtime(self, node: str) -> PodRuntime:
        """Return what runs a node's pods; raises Unavailable."""
        for host in self._hosts:
            if (found := host.runtime(node)) is not None:
                return found
        raise Unavailable(
            f'node "{node}" is not run by this control plane: nothing can be asked of its pods'
        )

    def usage(self, pod_uid: str) -> PodUsage | None:
        """Return what was last measured of a pod."""
        found = (host.usage(pod_uid) for host in self._hosts)
        return next((usage for usage in found if usage is not None), None)

    def node_usage(self, node: str) -> NodeUsage | None:
        """Return what was last measured of a node."""
        found = (host.node_usage(node) for host in self._hosts)
        return next((usage for usage in found if usage is not None), None)
