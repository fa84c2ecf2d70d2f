"""What tests of the server share: a served world, and short ways to speak to it over a socket."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import inspect
import json
from datetime import timedelta

import aiohttp

from spinney.registry.world import open_world
from spinney.server.access import Access, Grant
from spinney.server.serving import Server
from spinney.store.journals import MemoryJournal
from spinney.store.store import Limits, Store
from spinney.testing.clock import ManualClock
from spinney.testing.entropy import SeededEntropy

ADMIN, READER = "admin-token", "reader-token"
GRANTS = (
    Grant(token=ADMIN),
    Grant(token=READER, user="reader", groups=(), read_only=True),
)
PODS = "/api/v1/namespaces/default/pods"
CONFIGS = "/api/v1/namespaces/default/configmaps"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
MERGE = "application/merge-patch+json"


class Answer:
    """An answer that was read whole."""

    def __init__(self, response, body):
        self.status = response.status
        self.headers = response.headers
        self.body = body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def warnings(self):
        return self.headers.getall("Warning", [])


class Client:
    """Speaks to a served world as the admin, unless it says otherwise."""

    def __init__(self, session, server, world, clock, base):
        self.session = session
        self.server = server
        self.world = world
        self.store = world.store
        self.clock = clock
        self.base = base
        self.host, self.port = base.removeprefix("http://").split(":")

    def ask(self, method, path, body=None, *, token=ADMIN, content_type=None, **headers):
        """Begin a request; use with `async with`."""
        sent = {key.replace("_", "-"): value for key, value in headers.items()}
        if token:
            sent["Authorization"] = f"Bearer {token}"
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
        if body is not None:
            sent["Content-Type"] = content_type or "application/json"
        return self.session.request(method, self.base + path, data=body, headers=sent)

    async def do(self, method, path, body=None, **options):
        """Return the whole answer."""
        async with self.ask(method, path, body, **options) as response:
            return Answer(response, await response.read())

    async def get(self, path, **options):
        return await self.do("GET", path, **options)

    async def post(self, path, body, **options):
        return await self.do("POST", path, body, **options)

    @contextlib.asynccontextmanager
    async def watch(self, path, **options):
        """Begin a watch; gives a function that returns the next event."""
        async with self.ask("GET", path, **options) as response:
            yield Watch(response)

    async def raw(self, data):
        """Send bytes as they are; return all that comes back until the server closes."""
        reader, writer = await asyncio.open_connection(self.host, int(self.port))
        answer = b""
        with contextlib.suppress(ConnectionError):
            writer.write(data)
            await writer.drain()
            answer = await asyncio.wait_for(reader.read(), 20)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        return answer


class Watch:
    """A watch as a client sees it."""

    def __init__(self, response):
        self.response = response
        self.status = response.status
        self._rest = b""

    async def next(self):
        """Return the next event, None after the last; a line may be as long as it likes."""
        while b"\n" not in self._rest:
            part = await asyncio.wait_for(self.response.content.readany(), 10)
            if not part:
                assert not self._rest, "the stream ended within a line"
                return None
            self._rest += part
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line)

    async def take(self, count):
        return [await self.next() for _ in range(count)]


@contextlib.asynccontextmanager
async def served(*, limits=None, grants=GRANTS, **options):
    """Serve a world in memory, whose clock stands still."""
    clock = ManualClock()
    store = await Store.open(MemoryJournal(), clock, limits=limits or Limits())
    world = await open_world(store, clock, SeededEntropy("server"))
    server = Server(world, Access(grants), clock, **options)
    host, port = await server.start("127.0.0.1", 0)
    connector = aiohttp.TCPConnector(limit=0)
    try:
        async with aiohttp.ClientSession(connector=connector) as session:
            yield Client(session, server, world, clock, f"http://{host}:{port}")
    finally:
        await server.stop()
        await store.close()


def story(test=None, **options):
    """Make a test of a coroutine that is given a client."""

    def decorate(function):
        @functools.wraps(function)
        def run(*arguments, **named):
            async def main():
                async with served(**options) as client:
                    await function(client, *arguments, **named)

            asyncio.run(main())
            gc.collect()

        del run.__wrapped__
        run.__signature__ = _without_client(function)
        return run

    return decorate if test is None else decorate(test)


def _without_client(function):
    signature = inspect.signature(function)
    kept = [each for name, each in signature.parameters.items() if name != "client"]
    return signature.replace(parameters=kept)


def pod(name="web", **metadata):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **metadata},
        "spec": {"containers": [{"name": "main", "image": "app"}]},
    }


def config(name="settings", data=None, **metadata):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, **metadata},
        "data": data or {},
    }


def minutes(count):
    return timedelta(minutes=count)
