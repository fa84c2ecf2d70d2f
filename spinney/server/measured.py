"""Measured: what pods and nodes use, as `metrics.k8s.io` tells it, for `kubectl top`.

Nothing of it is stored: a request is answered with what the nodes measured last. What nobody
measured is left out of lists, and is not there when it is asked for by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from spinney.api.kinds import Column, Kind
from spinney.meta import durations, errors, quantities, times
from spinney.meta.documents import Document, Json, list_at, string_at, value_at
from spinney.meta.errors import MethodNotAllowed, NotFound
from spinney.meta.references import Ref
from spinney.ports import Nodes
from spinney.registry import requests
from spinney.server import lists, negotiation, parameters, printers, replies, tables, watching
from spinney.server.asking import Asked, Services
from spinney.server.discovery import Resource
from spinney.server.replies import Reply
from spinney.server.tables import Printer
from spinney.store.store import Stored

GROUP, VERSION = "metrics.k8s.io", "v1beta1"
API_VERSION = f"{GROUP}/{VERSION}"

RESOURCES = (
    Resource(
        group=GROUP,
        version=VERSION,
        plural="nodes",
        singular="",
        kind="NodeMetrics",
        namespaced=False,
        verbs=("get", "list"),
    ),
    Resource(
        group=GROUP,
        version=VERSION,
        plural="pods",
        singular="",
        kind="PodMetrics",
        namespaced=True,
        verbs=("get", "list"),
    ),
)
_BY_PLURAL = {item.plural: item for item in RESOURCES}
_AMOUNTS = {"cpu": "decimal", "memory": "binary"}


class Measured:
    """Answers what is asked of usage."""

    def __init__(self, services: Services) -> None:
        """Answer through the nodes of these services, where there are any."""
        self._services = services
        self._world = services.world

    @property
    def resources(self) -> tuple[Resource, ...]:
        """What is served: nothing in a world without nodes."""
        return RESOURCES if self._services.nodes is not None else ()

    def answer(self, asked: Asked) -> Reply:
        """Answer a request about usage; raises NotFound where it is of something else."""
        target, nodes = asked.target, self._services.nodes
        item = _BY_PLURAL.get(target.plural)
        if nodes is None or item is None or target.version != VERSION or target.subresource:
            raise requests.no_such_resource()
        if target.watched or parameters.flag(asked.query, "watch"):
            raise _not_allowed()
        if (target.namespace and not item.namespaced) or (
            target.name and item.namespaced and not target.namespace
        ):
            raise requests.no_such_resource()
        if target.verb not in item.verbs:
            raise _not_allowed()
        kind = self._world.catalog.resource("", "v1", target.plural)
        assert kind is not None
        if target.name:
            return self._one(asked, nodes, kind, item)
        return self._all(asked, nodes, kind, item)

    def _one(self, asked: Asked, nodes: Nodes, kind: Kind, item: Resource) -> Reply:
        target = asked.target
        ref = Ref(kind=kind.names.group_kind, namespace=target.namespace, name=target.name)
        stored = self._world.store.get(ref)
        found = None if stored is None else self._document(nodes, stored, item)
        if found is None:
            name = f"{target.namespace}/{target.name}" if item.namespaced else target.name
            plural = item.kind.lower()
            raise NotFound(
                f'{plural}.{GROUP} "{name}" not found',
                details=errors.object_details(GROUP, plural, name),
            )
        form = asked.form
        if form.shape == negotiation.TABLE:
            return self._table(asked, [found])
        shown = tables.partial(found, form.version) if form.shape else found
        return replies.of(shown, media=form.media)

    def _all(self, asked: Asked, nodes: Nodes, kind: Kind, item: Resource) -> Reply:
        options = parameters.list_options(asked.query)
        selection = lists.selected(asked, options)
        found = [
            document
            for stored in self._world.lister.select(kind, selection)
            if (document := self._document(nodes, stored, item)) is not None
        ]
        form = asked.form
        if form.shape == negotiation.TABLE:
            return self._table(asked, found)
        if form.shape:
            listed = [tables.partial(document, form.version) for document in found]
            return replies.of(
                {
                    "kind": "PartialObjectMetadataList",
                    "apiVersion": f"meta.k8s.io/{form.version}",
                    "metadata": {},
                    "items": [*listed],
                },
                media=form.media,
            )
        made: Document = {
            "kind": f"{item.kind}List",
            "apiVersion": API_VERSION,
            "metadata": {},
            "items": [*found],
        }
        return replies.of(made, media=form.media)

    def _table(self, asked: Asked, found: list[Document]) -> Reply:
        version = asked.form.version
        include = watching.include_of(asked.query.get("includeObject", ""))
        now = self._services.clock.now()
        table = tables.head(_PRINTER, {}, version)
        table["rows"] = [tables.row(_PRINTER, row, now, include, version) for row in found]
        return replies.of(table, media=asked.form.media)

    def _document(self, nodes: Nodes, stored: Stored, item: Resource) -> Document | None:
        """Return what is known of a pod's or a node's usage, None where nothing is."""
        ref = stored.ref
        metadata: Document = {"name": ref.name}
        if item.namespaced:
            metadata["namespace"] = ref.namespace
        metadata["creationTimestamp"] = times.format_time(self._services.clock.now())
        if stored.labels:
            metadata["labels"] = dict(stored.labels)
        if not item.namespaced:
            of_node = nodes.node_usage(ref.name)
            if of_node is None:
                return None
            made = _head(item.kind, metadata, of_node.measured_at, of_node.window)
            return {**made, "usage": _amounts(of_node.values)}
        of_pod = nodes.usage(stored.uid)
        if of_pod is None:
            return None
        containers: list[Json] = [
            {"name": name, "usage": _amounts(used)} for name, used in of_pod.containers.items()
        ]
        return {
            **_head(item.kind, metadata, of_pod.measured_at, of_pod.window),
            "containers": containers,
        }


def _not_allowed() -> MethodNotAllowed:
    return MethodNotAllowed("the server does not allow this method on the requested resource")


def _head(kind: str, metadata: Document, at: datetime, window: timedelta) -> Document:
    return {
        "kind": kind,
        "apiVersion": API_VERSION,
        "metadata": metadata,
        "timestamp": times.format_time(at),
        "window": durations.format_duration(window),
    }


def _amounts(used: Mapping[str, int]) -> Document:
    return {
        name: quantities.format_quantity(used.get(name, 0), family)
        for name, family in _AMOUNTS.items()
    }


def _cells(document: Document, _now: datetime) -> list[Json]:
    usages = [value_at(container, ["usage"]) for container in list_at(document, ["containers"])]
    if "usage" in document:
        usages = [document["usage"]]
    summed: list[Json] = [
        quantities.format_quantity(
            sum(quantities.parse_quantity(string_at(used, [name])) for used in usages), family
        )
        for name, family in _AMOUNTS.items()
    ]
    return [string_at(document, ["metadata", "name"]), *summed, document["window"]]


_PRINTER = Printer(
    columns=(
        printers.NAME,
        Column(name="cpu", path="", type="string", doc="Processors' time used, in cores."),
        Column(name="memory", path="", type="string", doc="Memory used, in bytes."),
        Column(name="Window", path="", type="string", doc="How long it was measured for."),
    ),
    cells=_cells,
    conditions=lambda _document: [],
)
