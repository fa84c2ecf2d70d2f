"""`spinney top`: how much processor time and memory pods and nodes use."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence

from spinney.api import groupkinds, labels
from spinney.cli import connecting, failing, finding
from spinney.cli.connecting import Session
from spinney.cli.finding import Found
from spinney.cli.tables import Table
from spinney.cli.usage import Usage
from spinney.decisions.causes import scenes
from spinney.kube.client import Selection
from spinney.kube.resources import Resource
from spinney.meta.documents import Document, Json, object_at, string_at, value_at
from spinney.meta.errors import ApiError, NotFound
from spinney.meta.quantities import NANO, parse_quantity
from spinney.meta.records import Record
from spinney.meta.references import GroupKind

_GROUP, _VERSION = "metrics.k8s.io", "v1beta1"
PODS = Resource(group=_GROUP, version=_VERSION, plural="pods", kind="PodMetrics")
NODES = Resource(
    group=_GROUP, version=_VERSION, plural="nodes", kind="NodeMetrics", namespaced=False
)
NO_SUCH_API = "could not find the requested resource"
MEBIBYTE = 1 << 20


class Used(Record):
    """What something uses."""

    title: tuple[str, ...]
    cpu: int
    """In billionths of a core."""

    memory: int
    """In bytes."""


def run(arguments: argparse.Namespace) -> int:
    """Show; returns the exit code."""
    words = arguments.objects or ["pods"]
    if words[0] in ("node", "nodes", "no") and (arguments.containers or arguments.all_namespaces):
        raise Usage("nodes have neither containers nor namespaces: leave --containers and -A out")
    return connecting.talk(arguments, lambda session: _top(session, arguments, words))


async def _top(session: Session, arguments: argparse.Namespace, words: Sequence[str]) -> int:
    sort, rest = words[0].casefold(), words[1:]
    try:
        if sort in ("node", "nodes", "no"):
            return await _nodes(session, arguments, rest)
        if sort in ("pod", "pods", "po"):
            return await _pods(session, arguments, rest, None)
        found = await finding.meant(session, words)
        if found.ref.kind == groupkinds.NODE:
            return await _nodes(session, arguments, [found.ref.name])
        if found.ref.kind == groupkinds.POD:
            return await _pods(session, arguments, [found.ref.name], None)
        return await _pods(session, arguments, [], found)
    except NotFound as error:
        if NO_SUCH_API not in error.message:
            raise
        session.screen.note(
            f"spinney: the server has no measurements: {error.message}\n"
            "On a cluster, metrics-server gives them; here, a node that runs pods does."
        )
        return failing.NO


async def _pods(
    session: Session, arguments: argparse.Namespace, names: Sequence[str], of: Found | None
) -> int:
    namespace = "" if arguments.all_namespaces else session.namespace
    selection = Selection(namespace=namespace, labels=arguments.selector or "")
    if of is not None:
        key = _KEYS.get(of.ref.kind)
        if key is None:
            raise Usage(f"{of.resource.title(of.ref.name)} has no pods of its own")
        terms = [f"{key}={of.ref.name}", *([arguments.selector] if arguments.selector else [])]
        selection = Selection(namespace=of.ref.namespace, labels=",".join(terms))
    found = await _measured(session, PODS, selection, names)
    headings = ["NAME", "CPU(cores)", "MEMORY(bytes)"]
    rows = [used for document in found for used in _used_by_pod(document, arguments.containers)]
    if arguments.containers:
        headings.insert(0, "POD")
    if arguments.all_namespaces:
        headings.insert(0, "NAMESPACE")
    else:
        rows = [Used(title=row.title[1:], cpu=row.cpu, memory=row.memory) for row in rows]
    if not rows:
        session.screen.note(await _nothing(session, selection))
        return 0
    rows = _sorted(rows, arguments.sort_by)
    cells = [(*row.title, _cores(row.cpu), _mebibytes(row.memory)) for row in rows]
    if of is not None and not arguments.no_headers and len(rows) > 1:
        filler = ("",) * (len(rows[0].title) - 1)
        total = (_cores(sum(r.cpu for r in rows)), _mebibytes(sum(r.memory for r in rows)))
        cells.append((f"{len(found)} pods", *filler, *total))
    is_headed = not arguments.no_headers
    Table(headings, session.screen, is_headed=is_headed, keeps_case=True).print(cells)
    return 0


_KEYS: dict[GroupKind, str] = {
    groupkinds.SET: labels.PART_OF,
    groupkinds.SCALING_GROUP: labels.SCALING_GROUP,
    groupkinds.CLIQUE: labels.PODCLIQUE,
    groupkinds.GANG: labels.PODGANG,
}


async def _measured(
    session: Session, resource: Resource, selection: Selection, names: Sequence[str]
) -> list[Document]:
    if not names:
        return await session.client.objects(resource, selection)
    return [await session.client.get(resource, selection.namespace, name) for name in names]


def _used_by_pod(document: Document, has_containers: bool) -> Iterable[Used]:
    place, name = scenes.namespace_of(document), scenes.name_of(document)
    parts = scenes.objects_at(document, "containers")
    if has_containers:
        for part in parts:
            cpu, memory = _usage(part)
            yield Used(title=(place, name, string_at(part, ["name"])), cpu=cpu, memory=memory)
        return
    usages = [_usage(part) for part in parts]
    yield Used(
        title=(place, name), cpu=sum(cpu for cpu, _ in usages), memory=sum(m for _, m in usages)
    )


def _usage(part: Json) -> tuple[int, int]:
    return (
        _quantity(value_at(part, ["usage", "cpu"])),
        _quantity(value_at(part, ["usage", "memory"])) // NANO,
    )


def _quantity(value: Json) -> int:
    if not isinstance(value, str | int):
        return 0
    try:
        return parse_quantity(value)
    except ValueError:
        return 0


async def _nodes(session: Session, arguments: argparse.Namespace, names: Sequence[str]) -> int:
    selection = Selection(labels=arguments.selector or "")
    found = await _measured(session, NODES, selection, names)
    nodes = (await session.client.resources()).named("nodes")
    have = {
        scenes.name_of(node): object_at(node, ["status", "allocatable"])
        for node in await session.client.objects(nodes, Selection())
    }
    rows = []
    for document in found:
        cpu, memory = _usage(document)
        rows.append(Used(title=(scenes.name_of(document),), cpu=cpu, memory=memory))
    if not rows:
        session.screen.note(
            "Nothing has been measured of nodes yet." if have else "There is no node."
        )
        return 0
    cells = [
        (
            *row.title,
            _cores(row.cpu),
            _share(row.cpu, _quantity(have.get(row.title[0], {}).get("cpu"))),
            _mebibytes(row.memory),
            _share(row.memory, _quantity(have.get(row.title[0], {}).get("memory")) // NANO),
        )
        for row in _sorted(rows, arguments.sort_by)
    ]
    headings = ("NAME", "CPU(cores)", "CPU(%)", "MEMORY(bytes)", "MEMORY(%)")
    is_headed = not arguments.no_headers
    Table(headings, session.screen, is_headed=is_headed, keeps_case=True).print(cells)
    return 0


async def _nothing(session: Session, selection: Selection) -> str:
    """Return why nothing is shown."""
    pods = (await session.client.resources()).named("pods")
    try:
        there = await session.client.objects(pods, selection)
    except ApiError:
        there = []
    place = f" in namespace {selection.namespace}" if selection.namespace else ""
    if not there:
        return f"There are no pods{place}."
    return f"Nothing has been measured yet of {len(there)} pods{place}."


def _sorted(rows: Sequence[Used], by: str) -> list[Used]:
    if by == "cpu":
        return sorted(rows, key=lambda row: (-row.cpu, row.title))
    if by == "memory":
        return sorted(rows, key=lambda row: (-row.memory, row.title))
    return sorted(rows, key=lambda row: row.title)


def _cores(nanos: int) -> str:
    """Return processor time in thousandths of a core, rounded up as kubectl does."""
    return f"{-(-nanos * 1000 // NANO)}m"


def _mebibytes(count: int) -> str:
    return f"{count // MEBIBYTE}Mi"


def _share(part: int, whole: int) -> str:
    return f"{100 * part // whole}%" if whole else "<unknown>"
