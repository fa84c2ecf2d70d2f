"""`spinney status`: whether a control plane is up, and where its things are."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator

from spinney.app.datafolder import DataFolder, Holder
from spinney.app.real import SystemClock
from spinney.cli import failing, folders, printing, probing, screen
from spinney.meta.documents import Document, Json
from spinney.meta.errors import SpinneyError
from spinney.meta.times import format_time
from spinney.nodes.line import calling
from spinney.nodes.line.messages import Hello
from spinney.server import ages

AGENT_SECONDS_MAX = 2


def run(arguments: argparse.Namespace) -> int:
    """Tell; returns 0 where it is up and ready, 1 where it is not."""
    folder = folders.data(arguments)
    output = screen.for_call(arguments)
    holder = folder.holder()
    ready = ""
    if holder is not None and holder.address:
        ready = probing.readiness(holder.address, folder.pki / "ca.crt")
    if arguments.output == "json":
        output.write(printing.json_text(_document(folder, holder, ready)))
    else:
        for name, value in _lines(folder, holder, ready):
            output.line(f"{name:<13}{value}")
    return 0 if ready == "200" else failing.NO


def _lines(folder: DataFolder, holder: Holder | None, ready: str) -> Iterator[tuple[str, str]]:
    if holder is None:
        yield "state", "down"
        yield "data", _data(folder)
        return
    if not holder.address:
        yield "state", "starting"
        return
    is_ready = ready == "200"
    yield "state", "up" if is_ready else f"up, but not ready: /readyz answers {ready}"
    age = ages.age(format_time(holder.since), SystemClock().now())
    yield "process", f"{holder.pid}, since {format_time(holder.since)} ({age})"
    yield "address", holder.address
    yield "version", holder.version
    yield "data", _data(folder)
    yield "durability", holder.durability
    yield "kubeconfig", str(folder.kubeconfig)
    yield "log", str(folder.log)
    yield "nodes", " ".join(holder.nodes) or "none"
    if "local" in holder.nodes:
        yield from _agent_lines(folder)


def _agent_lines(folder: DataFolder) -> Iterator[tuple[str, str]]:
    """Yield what the agent of this machine's node says of itself."""
    hello = _hello(folder)
    if hello is None:
        yield "agent", f"not connected: see {folder.agent_log}"
        return
    yield "agent", f"process {hello.process}, since {format_time(hello.since)}"
    for sentence in hello.about:
        yield "", sentence


def _hello(folder: DataFolder) -> Hello | None:
    async def ask() -> Hello:
        async with asyncio.timeout(AGENT_SECONDS_MAX):
            return await calling.about(folder.agent_socket)

    try:
        return asyncio.run(ask())
    except (OSError, SpinneyError):
        return None


def _data(folder: DataFolder) -> str:
    size = _store_bytes(folder)
    return str(folder.root) if size is None else f"{folder.root} ({size / 2**20:.1f} MiB)"


def _store_bytes(folder: DataFolder) -> int | None:
    """Return how large the journal is, with what is not yet copied into it."""
    parts = [folder.store, folder.store.with_name(f"{folder.store.name}-wal")]
    sizes = [part.stat().st_size for part in parts if part.exists()]
    return sum(sizes) if sizes else None


def _document(folder: DataFolder, holder: Holder | None, ready: str) -> Document:
    document: Document = {
        "state": "down" if holder is None else "up" if holder.address else "starting",
        "ready": ready == "200",
        "data": str(folder.root),
        "storeBytes": _store_bytes(folder),
    }
    if holder is not None and holder.address:
        document |= {
            "pid": holder.pid,
            "since": format_time(holder.since),
            "address": holder.address,
            "version": holder.version,
            "durability": holder.durability,
            "kubeconfig": str(folder.kubeconfig),
            "log": str(folder.log),
            "nodes": [*holder.nodes],
        }
        if "local" in holder.nodes and (hello := _hello(folder)) is not None:
            about: list[Json] = [*hello.about]
            document["agent"] = {
                "pid": hello.process,
                "since": format_time(hello.since),
                "about": about,
            }
    return document
