"""Running: what is asked of pods that run, answered through their nodes.

A request is about a container; which one, and whether it can be asked, says `containers`. How the
client speaks say `links`, `consoles` and `forwarding`; how long it goes on, `lifetimes`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from aiohttp import web

from spinney.api.kinds import Kind
from spinney.meta.documents import Document, string_at
from spinney.meta.errors import ApiError, BadRequest, Internal, MethodNotAllowed, Unavailable
from spinney.ports import LogOptions, PodRuntime
from spinney.server import consoles, containers, forwarding, links, logs, parameters, replies
from spinney.server.asking import LOG, Asked, NotImplementedHere, Services
from spinney.server.consoles import Remote, Talk
from spinney.server.containers import Place
from spinney.server.forwarding import Channels, Forwarder
from spinney.server.lifetimes import Lifetimes, ended
from spinney.server.links import Taken
from spinney.server.multiplexing import Session
from spinney.server.replies import Reply

STOP_SECONDS = 1.0
"""How long a client may take to learn that the server stops."""

Answer = Reply | web.StreamResponse


class Running:
    """Answers log, exec, attach and portforward of pods."""

    def __init__(self, services: Services) -> None:
        """Answer through the nodes of these services, where there are any."""
        self._services = services
        self._registry = services.world.registry
        self._lifetimes = Lifetimes(services.world.store)

    def __len__(self) -> int:
        """How much goes on."""
        return len(self._lifetimes)

    def stop(self) -> None:
        """End all that goes on."""
        self._lifetimes.stop()

    async def answer(self, asked: Asked, kind: Kind) -> Answer:
        """Answer a request about a running pod."""
        target = asked.target
        allowed = ("get",) if target.subresource == "log" else ("get", "create")
        if target.verb not in allowed or asked.request.method == "HEAD":
            raise MethodNotAllowed(
                "the server does not allow this method on the requested resource"
            )
        stored = self._registry.get(kind, target.namespace, target.name)
        pod = stored.document()
        node = string_at(pod, ["spec", "nodeName"])
        if target.subresource == "log":
            container = containers.chosen(pod, asked.query.get("container", ""))
            if not node:
                return replies.text("")
        elif not node:
            raise BadRequest(f"pod {target.name} does not have a host assigned")
        nodes = self._services.nodes
        if nodes is None:
            raise Unavailable(
                f"there is no node yet that could answer {target.subresource} of pod "
                f"{target.name}: nothing runs here"
            )
        if target.subresource == "proxy":
            raise NotImplementedHere("HTTP is not proxied to pods: use kubectl port-forward")
        place = Place(
            pod=target.name, uid=stored.uid, node=node, version=self._services.world.store.version
        )
        with self._lifetimes.counted():
            if target.subresource == "portforward":
                return await self._forward(asked, place, nodes.runtime(node))
            container = containers.chosen(pod, asked.query.get("container", ""))
            place = Place(
                pod=place.pod, uid=place.uid, node=node, version=place.version, container=container
            )
            if target.subresource == "log":
                return await self._log(asked, pod, place, nodes.runtime(node))
            containers.check_runs(pod, container)
            if target.subresource == "exec":
                return await self._exec(asked, place, nodes.runtime(node))
            return await self._attach(asked, place, nodes.runtime(node))

    # Logs

    async def _log(
        self, asked: Asked, pod: Document, place: Place, runtime: PodRuntime
    ) -> web.StreamResponse:
        options = logs.options_of(asked.query, self._services.clock.now(), place.pod)
        options = LogOptions(
            follow=options.follow,
            previous=containers.is_previous(pod, place.container, previous=options.previous),
            timestamps=options.timestamps,
            tail_lines=options.tail_lines,
            since=options.since,
            limit_bytes=options.limit_bytes,
        )
        return await logs.send(
            asked,
            place,
            self._lifetimes,
            runtime.logs(place.uid, place.container, options),
            limit_bytes=options.limit_bytes,
            stall_seconds=self._services.stall_seconds,
        )

    # Commands

    async def _exec(self, asked: Asked, place: Place, runtime: PodRuntime) -> web.StreamResponse:
        command = parameters.every(asked.request.raw_path.partition("?")[2], "command")
        if not command:
            raise BadRequest("you must specify at least one command for the container")
        wanted = consoles.wanted_of(asked.query)

        async def run(console: Remote) -> Document:
            code = await runtime.exec(
                place.uid, place.container, command, console, terminal=wanted.terminal
            )
            return ended_with(code)

        talk, response = await consoles.begin(asked, wanted, self._services.stall_seconds)
        await self._converse(talk, place, run)
        return response

    async def _attach(self, asked: Asked, place: Place, runtime: PodRuntime) -> web.StreamResponse:
        wanted = consoles.wanted_of(asked.query)
        if wanted.stdin:
            raise BadRequest(
                f"container {place.container} of pod {place.pod} has no standard input to attach "
                "to: containers run here without one. Leave --stdin out to see its output, or run "
                "a command in it with kubectl exec --stdin"
            )

        async def follow(console: Remote) -> Document:
            options = LogOptions(follow=True, tail_lines=0)
            async for chunk in runtime.logs(place.uid, place.container, options):
                await console.write(chunk)
            return ended_with(0)

        talk, response = await consoles.begin(asked, wanted, self._services.stall_seconds)
        await self._converse(talk, place, follow)
        return response

    async def _converse(self, talk: Talk, place: Place, work: consoles.Work) -> None:
        listening = asyncio.create_task(talk.listen())

        async def done() -> Document:
            await talk.begin()
            try:
                return await work(talk.console)
            except ApiError as error:
                return error.to_status()

        try:
            try:
                status = await self._lifetimes.spend(done(), place, listening)
            except ApiError as error:
                status = error.to_status()
            except ConnectionError:
                return
            except Exception:  # noqa: BLE001 whatever went wrong, the client is told
                LOG.exception("a command in a container failed", extra={"object": place.pod})
                status = Internal("an error of the server's own: see its log").to_status()
            await self._until_closed(listening, talk.conclude(status))
        finally:
            talk.close()
            await ended(listening)

    async def _until_closed(
        self, listening: asyncio.Task[None], conclude: Coroutine[Any, Any, None]
    ) -> None:
        """Tell how it ended, and let the client read to the end."""
        is_stopping = self._lifetimes.is_stopping
        seconds = STOP_SECONDS if is_stopping else self._services.stall_seconds
        try:
            async with asyncio.timeout(seconds):
                await conclude
                await asyncio.wait({listening})
        except (TimeoutError, ConnectionError):
            LOG.debug("a client left before it had read everything")

    # Ports

    async def _forward(self, asked: Asked, place: Place, runtime: PodRuntime) -> web.StreamResponse:
        stall = self._services.stall_seconds
        if not links.is_socket(asked):
            raw, _ = links.open_raw(asked, forwarding.SPDY_PROTOCOLS)
            try:
                await self._forward_session(Session(raw, stall), place, runtime)
            finally:
                raw.close()
            return Taken()
        ports = asked.request.raw_path.partition("?")[2]
        offered = asked.request.headers.get("Sec-WebSocket-Protocol", "")
        if forwarding.TUNNEL in offered:
            socket = await links.open_socket(asked, (forwarding.TUNNEL,), stall)
            await self._forward_session(Session(socket, stall), place, runtime)
            return socket.response
        found = forwarding.ports_of(ports)
        socket = await links.open_socket(asked, (forwarding.CHANNELS,), stall)
        channels = Channels(socket, found)
        listening = asyncio.create_task(channels.listen())
        try:
            await self._lifetimes.spend(channels.run(runtime, place), place, listening)
        except (ApiError, ConnectionError) as error:
            LOG.debug("forwarding ended", extra={"object": place.pod, "reason": error})
        finally:
            await self._until_closed(listening, socket.close())
            await ended(listening)
        return socket.response

    async def _forward_session(self, session: Session, place: Place, runtime: PodRuntime) -> None:
        listening = asyncio.create_task(session.run())
        forwarder = Forwarder(session, runtime, place)
        try:
            await self._lifetimes.spend(forwarder.run(), place, listening)
        except (ApiError, ConnectionError) as error:
            LOG.debug("forwarding ended", extra={"object": place.pod, "reason": error})
        finally:
            await ended(listening)


def ended_with(code: int) -> Document:
    """Return the `Status` that tells how a command ended."""
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }
