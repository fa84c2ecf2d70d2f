"""Requesting: what a pod asks of the node it goes to, its containers taken together.

Kubernetes' rule. Containers and sidecars run at once, so they add up; init containers run one
after the other beside the sidecars started before them, so the largest counts; the larger of the
two is what the pod asks. What it asks as a whole overrides that, and its overhead comes on top.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from spinney.api.core.pod import PodSpec
from spinney.decisions.placement import amounts
from spinney.decisions.placement.amounts import Amounts
from spinney.meta.documents import Document, list_at, object_at, string_at
from spinney.meta.records import Record

EVERY_ADDRESS = "0.0.0.0"
_OF_PODS = (amounts.CPU, amounts.MEMORY)
"""What a pod may ask for as a whole, besides huge pages."""


class HostPort(Record, order=True):
    """A port of the node itself that a pod listens on."""

    port: int
    protocol: str = "TCP"
    address: str = EVERY_ADDRESS

    def meets(self, other: HostPort) -> bool:
        """Whether two pods cannot have both on one node."""
        if (self.port, self.protocol) != (other.port, other.protocol):
            return False
        return self.address == other.address or EVERY_ADDRESS in (self.address, other.address)


def requests(spec: PodSpec) -> Amounts:
    """Return what a pod asks of a node, one of its places for pods among it."""
    running: Counter[str] = Counter()
    peak: Counter[str] = Counter()
    for container in spec.init_containers:
        asked = _requests(container)
        if string_at(container, ["restartPolicy"]) == "Always":
            running.update(asked)
            peak |= running
        else:
            peak |= running + asked
    for container in spec.containers:
        running.update(_requests(container))
    wanted = running | peak
    _override(wanted, spec.resources)
    wanted.update(_parsed(spec.overhead or {}))
    wanted[amounts.PODS] = 1
    return amounts.amounts(wanted)


def _requests(container: Document) -> Counter[str]:
    """Return what a container asks for: what it says, else the most it may use."""
    limits = _parsed(object_at(container, ["resources", "limits"]))
    requests = _parsed(object_at(container, ["resources", "requests"]))
    return Counter({**limits, **requests})


def _override(wanted: Counter[str], resources: Document | None) -> None:
    """Let what a pod asks as a whole stand for what its containers ask."""
    if resources is None:
        return
    asked = _parsed(object_at(resources, ["requests"]))
    for name, most in _parsed(object_at(resources, ["limits"])).items():
        if name not in asked and not wanted[name]:
            asked[name] = most
    for name, value in asked.items():
        if name in _OF_PODS or name.startswith("hugepages-"):
            wanted[name] = value


def _parsed(values: Mapping[str, object]) -> Counter[str]:
    found: Counter[str] = Counter()
    for name, value in values.items():
        if isinstance(value, (str, int)):
            found[name] = amounts.asked(value, name)
    return found


def host_ports(spec: PodSpec) -> tuple[HostPort, ...]:
    """Return the ports of the node a pod listens on, in order, once each."""
    sidecars = (
        container
        for container in spec.init_containers
        if string_at(container, ["restartPolicy"]) == "Always"
    )
    return tuple(sorted({*_host_ports((*spec.containers, *sidecars))}))


def _host_ports(containers: Iterable[Document]) -> Iterator[HostPort]:
    for container in containers:
        for found in list_at(container, ["ports"]):
            port = found.get("hostPort") if isinstance(found, dict) else None
            if isinstance(port, int) and port > 0:
                yield HostPort(
                    port=port,
                    protocol=string_at(found, ["protocol"]) or "TCP",
                    address=string_at(found, ["hostIP"]) or EVERY_ADDRESS,
                )
