"""Serving: the Kubernetes API over HTTP, for kubectl and whatever speaks to a cluster.

A request is taken apart (`paths`, `parameters`, `bodies`), its caller is found (`access`), and it
is answered by `described`, `objects`, `parts` or `reviews`, all over one world. What goes wrong
becomes a `Status` here, and here alone; a client never sees where in the code it went wrong.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from ssl import SSLContext
from typing import TypeAlias

import msgspec
from aiohttp import web

from spinney.meta.errors import ApiError, Internal, NotFound
from spinney.ports import Clock, Nodes
from spinney.registry import requests
from spinney.registry.world import World
from spinney.server import (
    access,
    bodies,
    connections,
    discovery,
    health,
    measured,
    objects,
    parameters,
    paths,
    replies,
    reviews,
)
from spinney.server.access import ANONYMOUS, PUBLIC_PATHS, Access
from spinney.server.asking import LOG, READ_SECONDS, STALL_SECONDS, Asked, Services
from spinney.server.described import Described
from spinney.server.health import Check
from spinney.server.measured import Measured
from spinney.server.objects import Objects
from spinney.server.parts import Parts
from spinney.server.paths import Target
from spinney.server.replies import Reply
from spinney.server.running import Running
from spinney.server.watching import Watches

STOP_SECONDS = 5
"""How long requests may take to end when the server stops."""

_ASKED = {(item.group, item.version, item.plural): item for item in discovery.ASKED}


Page: TypeAlias = Callable[[], tuple[bytes, str]]
"""Gives a body and its content type."""


class Server:
    """Serves a world."""

    def __init__(
        self,
        world: World,
        access: Access,
        clock: Clock,
        *,
        backlog_bytes_max: int | None = None,
        header_seconds: float = connections.HEADER_SECONDS,
        read_seconds: float = READ_SECONDS,
        compresses_locally: bool = False,
        checks: Mapping[str, Check] | None = None,
        pages: Mapping[str, Page] | None = None,
        nodes: Nodes | None = None,
        stall_seconds: float = STALL_SECONDS,
    ) -> None:
        """Serve to those who have access; nothing listens before `start`.

        `nodes` answer what is asked of running pods, and measure what is asked by `top`.
        `checks` are asked by `/readyz` beside the server's own; `pages` are served under their
        paths to whoever may read.
        """
        self._checks = checks or {}
        self._pages = pages or {}
        services = Services(
            world, access, clock, read_seconds, compresses_locally, nodes, stall_seconds
        )
        self._services = services
        self._watches = (
            Watches(services)
            if backlog_bytes_max is None
            else Watches(services, backlog_bytes_max=backlog_bytes_max)
        )
        self._measured = Measured(services)
        self._described = Described(world.catalog, self._measured.resources)
        self._objects = Objects(services, self._watches)
        self._running = Running(services)
        self._parts = Parts(services, self._objects, self._running)
        self._header_seconds = header_seconds
        self._connections: connections.Connections | None = None
        self._listener: asyncio.Server | None = None
        self._bookmarks: asyncio.Task[None] | None = None
        self.is_ready = False

    @property
    def watch_count(self) -> int:
        """How many watches are open."""
        return len(self._watches)

    @property
    def conversation_count(self) -> int:
        """How many logs, commands and forwarded ports are open."""
        return len(self._running)

    @property
    def watches_cut(self) -> int:
        """How many watches were cut because their client did not read."""
        return self._watches.cut_count

    async def start(
        self, host: str, port: int, tls_context: SSLContext | None = None
    ) -> tuple[str, int]:
        """Listen; returns where. Port 0 is any that is free."""
        self._connections = connections.Connections(self._handle, self._header_seconds)
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(
            self._connections.new, host, port, ssl=tls_context, backlog=1024
        )
        self._bookmarks = loop.create_task(self._watches.run(), name="server-bookmarks")
        self.is_ready = True
        name = self._listener.sockets[0].getsockname()
        return name[0], name[1]

    async def stop(self) -> None:
        """Listen no more, end the watches, let requests end, and close what is left."""
        self.is_ready = False
        if self._listener is None or self._connections is None or self._bookmarks is None:
            return
        self._accept_no_more(self._listener)
        self._bookmarks.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._bookmarks
        self._listener.close()
        self._watches.stop()
        self._running.stop()
        await self._connections.close(STOP_SECONDS)
        await self._listener.wait_closed()
        self._listener = None

    @staticmethod
    def _accept_no_more(listener: asyncio.Server) -> None:
        """Leave newcomers to the kernel, while those just accepted get their protocol.

        asyncio before 3.12 loses, and never closes, a connection it accepted in the moment before
        its server is closed.
        """
        loop = asyncio.get_running_loop()
        for listening in listener.sockets:
            loop.remove_reader(listening.fileno())

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            reply = await self._answer(request)
        except ApiError as error:
            reply = replies.of_error(error)
        except (ConnectionError, asyncio.CancelledError):
            raise
        except Exception:  # noqa: BLE001 whatever went wrong, the client gets an answer
            LOG.exception("a request failed", extra={"object": request.path})
            reply = replies.of_error(Internal("an error of the server's own: see its log"))
        if isinstance(reply, Reply):
            return self._sent(request, reply)
        return reply

    def _sent(self, request: web.BaseRequest, reply: Reply) -> web.StreamResponse:
        response = web.Response(body=reply.body, status=reply.status)
        headers = response.headers
        headers["Content-Type"] = reply.media
        headers["Cache-Control"] = "no-cache, private"
        for name, value in reply.headers:
            headers.add(name, value)
        if len(reply.body) >= replies.GZIP_BYTES_MIN and self._services.compresses(request):
            response.enable_compression(web.ContentCoding.gzip)
        if reply.status >= 400 and not request.content.is_eof():
            response.force_close()
        return response

    async def _answer(self, request: web.BaseRequest) -> Reply | web.StreamResponse:
        try:
            target = paths.parse(request.method, request.raw_path.partition("?")[0])
        except paths.NoSuchPath as error:
            raise requests.no_such_resource() from error
        is_public = target.path in PUBLIC_PATHS or target.path.startswith(("/livez/", "/readyz/"))
        if is_public and not request.headers.get("Authorization"):
            caller = ANONYMOUS
        else:
            caller = self._services.access.caller(request.headers)
        query = parameters.parse(request.raw_path.partition("?")[2])
        asked = Asked(request=request, target=target, query=query, caller=caller)
        if not target.plural:
            return self._about_itself(asked)
        if target.verb == "list" and (target.watched or parameters.flag(query, "watch")):
            access.check(caller, _as_watch(target))
        else:
            access.check(caller, target)
        return await self._about_resource(asked)

    def _about_itself(self, asked: Asked) -> Reply:
        target = asked.target
        checked = health.answer(asked, is_ready=self.is_ready, others=self._checks)
        if checked is not None:
            return checked
        access.check(asked.caller, target)
        if asked.request.method not in ("GET", "HEAD"):
            raise requests.no_such_resource()
        page = self._pages.get(target.path)
        if page is not None:
            body, media = page()
            return Reply(body=body, media=media)
        told = self._described.answer(asked)
        if told is None:
            raise requests.no_such_resource()
        return told

    async def _about_resource(self, asked: Asked) -> Reply | web.StreamResponse:
        target = asked.target
        review = _ASKED.get((target.group, target.version, target.plural))
        if review is not None and not target.name:
            return await self._review(asked, review.kind)
        if target.group == measured.GROUP:
            return self._measured.answer(asked)
        kind = self._services.world.catalog.resource(target.group, target.version, target.plural)
        if kind is None:
            raise requests.no_such_resource()
        if target.subresource and target.subresource != "status":
            if not self._parts.knows(kind, target.subresource):
                raise requests.no_such_resource()
            return await self._parts.answer(asked, kind)
        return await self._objects.answer(asked, kind)

    async def _review(self, asked: Asked, kind: str) -> Reply:
        target = asked.target
        if kind == "Binding":
            pod = self._services.world.catalog.resource("", "v1", "pods")
            if pod is None or not target.namespace:
                raise NotFound("the server could not find the requested resource")
            return await self._parts.bind(asked, pod)
        if target.verb != "create":
            raise objects.not_allowed()
        version = f"{target.group}/{target.version}"
        body = await asked.body(api_version=version, kind=kind)
        document = body.value
        if not isinstance(document, dict):
            raise bodies.not_an_object(kind)
        bodies.check_kind(document, version, kind, whole=False)
        document = {**document, "apiVersion": version, "kind": kind}
        answered = reviews.answer(kind, document, asked.caller, self._services.access)
        return replies.of(answered, status=201)


def _as_watch(target: Target) -> Target:
    return msgspec.structs.replace(target, verb="watch")
