"""Probes and hooks, over real connections where there are any."""

# ruff: noqa: ARG002 - the port has them

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from spinney.api.core.pod import Pod
from spinney.app import pki
from spinney.meta import records
from spinney.meta.documents import Document
from spinney.nodes.agent import hosts
from spinney.nodes.agent.prober import Prober
from spinney.nodes.agent.probes import ProbeKind, probe_specs
from spinney.nodes.agent.streams import Socket
from spinney.testing import loop
from spinney.testing.clock import START, VirtualClock
from spinney.testing.runtimes import ScriptedRuntime

POD = records.decode(
    Pod, {"metadata": {"name": "p", "uid": "u"}, "spec": {"containers": [{"name": "main"}]}}
)
IP = "127.0.0.1"


class Node(ScriptedRuntime):
    """A runtime whose pods listen on this machine, and whose commands print."""

    output = b""
    code = 0

    async def connect(self, pod_uid, port):
        return await Socket.open(IP, port)

    async def exec(self, pod_uid, container, command, console, *, terminal=False):
        if command == ("hang",):
            await asyncio.Event().wait()
        await console.write(self.output)
        return self.code


def look(handler: Document, runtime: Node | None = None, **container: object) -> tuple[bool, str]:
    """Carry out one probe in virtual time."""

    async def run() -> tuple[bool, str]:
        clock = VirtualClock()
        node = runtime or Node(clock)
        spec: Document = {"name": "main", "livenessProbe": {**handler}, **container}  # type: ignore[dict-item]
        found = await Prober(node, clock).look(POD, spec, probe_specs(spec)[ProbeKind.LIVENESS], IP)
        return found.is_success, found.message

    return loop.run(run())


def answered(
    answer: bytes, handler: Document, tls: ssl.SSLContext | None = None
) -> tuple[tuple[bool, str], bytes]:
    """Carry out one probe of a server that answers so; returns what it was asked, too."""
    asked = b""

    async def run() -> tuple[bool, str]:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal asked
            asked = await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            writer.close()

        server = await asyncio.start_server(serve, IP, 0, ssl=tls)
        port = server.sockets[0].getsockname()[1]
        clock = VirtualClock()
        get = {**handler, "port": "web"}
        spec: Document = {
            "name": "main",
            "ports": [{"name": "web", "containerPort": port}],
            "readinessProbe": {"httpGet": get, "timeoutSeconds": 5},
        }
        found = await Prober(Node(clock), clock).look(
            POD, spec, probe_specs(spec)[ProbeKind.READINESS], IP
        )
        server.close()
        return found.is_success, found.message

    return loop.run(run()), asked


@pytest.mark.parametrize(
    ("code", "finding"),
    [
        (200, (True, "")),
        (302, (True, "")),
        (399, (True, "")),
        (400, (False, "HTTP probe failed with statuscode: 400")),
        (503, (False, "HTTP probe failed with statuscode: 503")),
    ],
)
def test_an_http_probe_goes_by_the_status(code: int, finding: tuple[bool, str]) -> None:
    """From 200 to 399 is well."""
    found, asked = answered(
        f"HTTP/1.1 {code} Whatever\r\n\r\n".encode(),
        {"path": "/healthz?x=1", "httpHeaders": [{"name": "Host", "value": "shop"}]},
    )
    assert found == finding
    assert asked.startswith(b"GET /healthz?x=1 HTTP/1.1\r\n")
    assert b"host: shop\r\n" in asked


@pytest.mark.parametrize(
    ("answer", "fault"),
    [(b"", "the connection was closed: EOF"), (b"SSH-2.0\r\n", "the answer is not HTTP")],
)
def test_what_is_no_http_fails(answer: bytes, fault: str) -> None:
    """It says what was asked, and what came."""
    (is_success, message), _ = answered(answer, {"path": "/"})
    assert not is_success
    assert message.startswith('Get "http://127.0.0.1:')
    assert message.endswith(fault)


def test_an_https_probe_believes_any_certificate(tmp_path: Path) -> None:
    """As Kubernetes' does."""
    certificates = pki.prepare(tmp_path, (), START)
    tls = pki.server_context(certificates)
    found, _ = answered(b"HTTP/1.1 200 OK\r\n\r\n", {"path": "/", "scheme": "HTTPS"}, tls)
    assert found == (True, "")


def test_a_closed_port_refuses() -> None:
    """In the words kubectl users know."""
    handler: Document = {"httpGet": {"port": 1, "path": "/x"}}
    told = 'Get "http://127.0.0.1:1/x": connect: connection refused'
    assert look(handler) == (False, told)
    assert look({"tcpSocket": {"port": 1}}) == (
        False,
        "dial tcp 127.0.0.1:1: connect: connection refused",
    )


def test_a_port_is_found_by_its_name_or_told_to_be_missing() -> None:
    """The container has no such port."""
    found = look({"tcpSocket": {"port": "web"}})
    assert found == (
        False,
        'dial tcp 127.0.0.1:web: couldn\'t find port "web" in container main',
    )


def test_a_command_that_hangs_is_given_its_time_and_no_more() -> None:
    """One second, unless it says otherwise."""
    assert look({"exec": {"command": ["hang"]}}) == (False, "no answer within 1s")


def commanded(output: bytes, code: int) -> tuple[bool, str]:
    """Carry out an exec probe."""

    async def run() -> tuple[bool, str]:
        clock = VirtualClock()
        node = Node(clock)
        node.output, node.code = output, code
        spec: Document = {"name": "main", "startupProbe": {"exec": {"command": ["x"]}}}
        found = await Prober(node, clock).look(POD, spec, probe_specs(spec)[ProbeKind.STARTUP], IP)
        return found.is_success, found.message

    return loop.run(run())


def test_a_command_goes_by_its_exit_code_and_tells_what_it_printed() -> None:
    """No more of it than people read."""
    assert commanded(b"fine", 0) == (True, "")
    assert commanded(b"no database\n", 2) == (False, "no database")
    assert commanded(b"", 2) == (False, "command ended with exit code 2")
    assert len(commanded(b"x" * 1_000_000, 1)[1]) == 800


def test_hooks_sleep_or_say_what_went_wrong() -> None:
    """A hook has no timeout of its own: the pod's grace is one."""

    async def run() -> None:
        clock = VirtualClock()
        prober = Prober(Node(clock), clock)
        assert await prober.run_hook(POD, {"name": "main"}, {"sleep": {"seconds": 7}}, IP) == ""
        assert clock.elapsed().seconds == 7
        hook: Document = {"httpGet": {"port": 1, "path": "/"}}
        fault = await prober.run_hook(POD, {"name": "main"}, hook, IP)
        assert fault.endswith("connection refused")
        assert "says neither" in await prober.run_hook(POD, {"name": "main"}, {}, IP)

    loop.run(run())


def member(name: str, namespace: str, subdomain: str, ip: str, phase: str = "Running") -> Pod:
    """Return a pod of a headless service."""
    return records.decode(
        Pod,
        {
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"hostname": name, "subdomain": subdomain},
            "status": {"podIP": ip, "phase": phase},
        },
    )


def test_names_are_those_of_kubernetes_dns() -> None:
    """Short ones only where they cannot be mistaken; ended pods have none."""
    names = hosts.names(
        [
            member("b", "x", "svc", "127.128.0.2"),
            member("a", "x", "svc", "127.128.0.1"),
            member("a", "y", "svc", "127.128.0.9"),
            member("c", "x", "svc", "127.128.0.3", "Succeeded"),
            member("d", "x", "", "127.128.0.4"),
        ]
    )
    assert names["a.svc.x.svc.cluster.local"] == ("127.128.0.1",)
    assert names["a.svc.x.svc"] == names["a.svc.x"] == ("127.128.0.1",)
    assert names["svc.x.svc.cluster.local"] == ("127.128.0.1", "127.128.0.2")
    assert names["b.svc"] == ("127.128.0.2",)
    assert "a.svc" not in names
    assert "svc" not in names
    assert not any(name.startswith(("c.", "d")) for name in names)
