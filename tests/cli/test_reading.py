"""Reading logs over connections that break."""

from __future__ import annotations

import asyncio
import io

from aiohttp import web

from spinney.app.real import SystemClock, SystemEntropy
from spinney.cli import reading
from spinney.cli.connecting import Session
from spinney.cli.screen import Screen
from spinney.cli.tails import Printer
from spinney.decisions.causes.scenes import Scene
from spinney.kube.client import Client
from spinney.kube.kubeconfig import Connection
from spinney.kube.transport import Transport

LINES = [f"2026-11-19T08:30:0{second}.5Z line {second}\n" for second in range(6)]
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "x", "namespace": "default", "uid": "u"},
    "spec": {"containers": [{"name": "main"}]},
    "status": {"containerStatuses": [{"name": "main", "state": {"running": {}}}]},
}


class Gathered:
    """What is known of pods: one, until it is gone."""

    def __init__(self):
        self.is_there = True

    def scene(self):
        return Scene([POD] if self.is_there else [], SystemClock().now())


class Server:
    """Sends a log, and breaks the connection in its midst; then what is newer than is asked."""

    def __init__(self, gathered):
        self.asked = []
        self._gathered = gathered

    async def answer(self, request):
        self.asked.append(dict(request.query))
        response = web.StreamResponse()
        await response.prepare(request)
        if len(self.asked) == 1:
            await response.write("".join(LINES[:3]).encode() + b"2026-11-19T08:30:03.5Z half")
            request.transport.abort()
            return response
        self._gathered.is_there = False
        await response.write("".join(LINES[2:]).encode())
        return response


def test_a_connection_that_breaks_is_taken_up_without_a_line_twice():
    async def story():
        gathered = Gathered()
        server = Server(gathered)
        app = web.Application()
        app.router.add_get("/api/v1/namespaces/default/pods/x/log", server.answer)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = site._server.sockets[0].getsockname()[1]
        connection = Connection(server=f"http://127.0.0.1:{port}")
        out, clock = io.StringIO(), SystemClock()
        screen = Screen(out, out)
        async with Client(Transport(connection, clock)) as client:
            session = Session(client, connection, "default", screen, clock, SystemEntropy())
            (tap,) = reading.taps_of(POD)
            taps = reading.Taps(session)
            taps.open(tap, Printer(screen, [tap], False, False), gathered)
            await taps.all_ended()
            await taps.close()
        await runner.cleanup()
        return out.getvalue(), server.asked

    printed, asked = asyncio.run(story())
    assert printed == "".join(line.partition(" ")[2] for line in LINES)
    assert "sinceTime" not in asked[0]
    assert asked[1]["sinceTime"] == "2026-11-19T08:30:02Z"
    assert asked[0]["follow"] == "true"
