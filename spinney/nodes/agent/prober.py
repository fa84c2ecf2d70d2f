"""Looks at containers, and runs their hooks: a command in them, a request to them, a connection.

Commands and connections go through the node's runtime, so whatever network a pod has, it is asked
there. What is found is told in the words kubectl users know.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

from spinney.api.core.pod import Pod
from spinney.meta.documents import Document, is_integer, list_at, object_at, string_at
from spinney.meta.errors import SpinneyError
from spinney.meta.records import Record
from spinney.nodes.agent import http
from spinney.nodes.agent.probes import ProbeSpec
from spinney.nodes.agent.streams import Listening, Socket
from spinney.ports import Clock, PodRuntime, Streams

MESSAGE_LENGTH_MAX: Final = 800


class Finding(Record):
    """What a look found."""

    is_success: bool
    message: str = ""


class Prober:
    """Looks at the containers of one node."""

    def __init__(self, runtime: PodRuntime, clock: Clock) -> None:
        """Ask through a runtime."""
        self._runtime = runtime
        self._clock = clock

    async def look(self, pod: Pod, container: Document, spec: ProbeSpec, ip: str) -> Finding:
        """Carry out one probe, within its timeout."""
        seconds = spec.timeout / timedelta(seconds=1)
        try:
            async with asyncio.timeout(seconds):
                fault = await self._ask(pod, container, spec.handler, ip)
        except TimeoutError:
            fault = f"{_subject(container, spec.handler, ip)}no answer within {seconds:g}s"
        return Finding(is_success=not fault, message=fault[:MESSAGE_LENGTH_MAX])

    async def run_hook(self, pod: Pod, container: Document, hook: Document, ip: str) -> str:
        """Run a hook; returns what went wrong, "" where nothing did."""
        if pause := object_at(hook, ["sleep"]):
            seconds = pause.get("seconds")
            await self._clock.sleep(timedelta(seconds=seconds if is_integer(seconds) else 0))
            return ""
        fault = await self._ask(pod, container, hook, ip)
        return fault[:MESSAGE_LENGTH_MAX]

    async def _ask(self, pod: Pod, container: Document, handler: Document, ip: str) -> str:
        for field, ask in self._asks.items():
            if how := object_at(handler, [field]):
                try:
                    return await ask(pod, container, how, ip)
                except (OSError, SpinneyError) as error:
                    return f"{_subject(container, handler, ip)}{_told(error)}"
        return "nothing to do: it says neither exec, nor httpGet, nor tcpSocket"

    @property
    def _asks(self) -> dict[str, Callable[[Pod, Document, Document, str], Awaitable[str]]]:
        return {"exec": self._exec, "httpGet": self._http, "tcpSocket": self._tcp}

    async def _exec(self, pod: Pod, container: Document, how: Document, _ip: str) -> str:
        command = tuple(part for part in list_at(how, ["command"]) if isinstance(part, str))
        console = Listening()
        name = string_at(container, ["name"])
        code = await self._runtime.exec(pod.metadata.uid, name, command, console)
        return "" if code == 0 else console.text or f"command ended with exit code {code}"

    async def _http(self, pod: Pod, container: Document, how: Document, ip: str) -> str:
        port = port_of(container, how)
        host = string_at(how, ["host"]) or ip
        headers = [
            (string_at(header, ["name"]), string_at(header, ["value"]))
            for header in list_at(how, ["httpHeaders"])
        ]
        streams = await self._connected(pod, how, port)
        try:
            code = await http.status_of(
                streams,
                host=f"{host}:{port}",
                path=string_at(how, ["path"]),
                headers=headers,
                is_tls=string_at(how, ["scheme"]) == "HTTPS",
            )
        finally:
            await streams.close()
        return "" if 200 <= code < 400 else f"HTTP probe failed with statuscode: {code}"

    async def _tcp(self, pod: Pod, container: Document, how: Document, _ip: str) -> str:
        streams = await self._connected(pod, how, port_of(container, how))
        await streams.close()
        return ""

    async def _connected(self, pod: Pod, how: Document, port: int) -> Streams:
        host = string_at(how, ["host"])
        if host:
            return await Socket.open(host, port)
        return await self._runtime.connect(pod.metadata.uid, port)


class NoPort(SpinneyError):
    """The user: a probe names a port its container does not have."""


def port_of(container: Document, how: Document) -> int:
    """Return the port a probe asks, by number or by its name in the container; raises NoPort."""
    wanted = how.get("port")
    if is_integer(wanted):
        return wanted
    if isinstance(wanted, str) and wanted.isdigit():
        return int(wanted)
    for port in list_at(container, ["ports"]):
        number = object_at(port, []).get("containerPort")
        if string_at(port, ["name"]) == wanted and is_integer(number):
            return number
    raise NoPort(f'couldn\'t find port "{wanted}" in container {string_at(container, ["name"])}')


def _subject(container: Document, handler: Document, ip: str) -> str:
    """Return how an error begins: what was asked."""
    if how := object_at(handler, ["httpGet"]):
        scheme = (string_at(how, ["scheme"]) or "HTTP").lower()
        host, path = string_at(how, ["host"]) or ip, string_at(how, ["path"])
        return f'Get "{scheme}://{host}:{_shown_port(container, how)}{path}": '
    if how := object_at(handler, ["tcpSocket"]):
        return f"dial tcp {string_at(how, ['host']) or ip}:{_shown_port(container, how)}: "
    return ""


def _shown_port(container: Document, how: Document) -> str:
    try:
        return str(port_of(container, how))
    except NoPort:
        return str(how.get("port"))


def _told(error: OSError | SpinneyError) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "connect: connection refused"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
