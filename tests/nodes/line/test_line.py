"""The line between control plane and agent, over real sockets, in virtual time."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.api.core.pod import Pod
from spinney.decisions.usage import NodeUsage, PodUsage
from spinney.meta import records
from spinney.meta.errors import BadRequest, Conflict, NotFound, Unavailable
from spinney.nodes.line import calling, frames, serving, sockets
from spinney.nodes.line.calling import Line
from spinney.nodes.line.frames import Wire
from spinney.nodes.line.messages import Ask, Hello, Used
from spinney.nodes.line.serving import LineServer
from spinney.ports import ContainerPlan, LogOptions, Window
from spinney.testing import loop
from spinney.testing.clock import START, VirtualClock
from spinney.testing.runtimes import Script, ScriptedRuntime

POD = records.decode(
    Pod, {"metadata": {"name": "p", "uid": "u"}, "spec": {"containers": [{"name": "main"}]}}
)


class Service:
    """An agent's part of the line, with a runtime that is played."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.script = Script(output=b"one\ntwo\nthree\n")
        self.runtime = ScriptedRuntime(clock, lambda _pod, _plan: self.script)
        self.told: list[str] = []
        self.measured_at = START

    def hello(self) -> Hello:
        return Hello(node="local", process=7, version="1", since=START, about=("all is well",))

    def held(self, ask: Ask) -> None:
        serving.refuse_other(ask, "w", "1")
        self.told.append("held")

    def let_go(self) -> None:
        self.told.append("let go")

    async def measured(self) -> Used:
        usage = PodUsage(measured_at=self.measured_at, containers={"main": {"cpu": 5}})
        return Used(pods={"u": usage}, node=NodeUsage(measured_at=self.measured_at))

    async def leave(self, grace_seconds: int) -> None:
        await self.clock.sleep(timedelta(seconds=grace_seconds))
        self.told.append(f"left after {grace_seconds}")


class Console:
    """Types what it is given, keeps what it sees."""

    def __init__(self, *typed: bytes, windows: tuple[Window, ...] = ()) -> None:
        self.typed = [*typed]
        self.windows = [*windows]
        self.seen = b""
        self.errors = b""

    async def read(self) -> bytes:
        return self.typed.pop(0) if self.typed else b""

    async def write(self, data: bytes) -> None:
        self.seen += data

    async def write_error(self, data: bytes) -> None:
        self.errors += data

    async def resized(self) -> Window | None:
        return self.windows.pop(0) if self.windows else None


class World:
    """Both ends of a line."""

    def __init__(self, path: Path, service: Service, clock: VirtualClock) -> None:
        self.path = path
        self.service = service
        self.clock = clock
        self.line = Line("local", path, clock)

    async def rest(self, seconds: float = 1) -> None:
        await self.clock.sleep(timedelta(seconds=seconds))

    @asynccontextmanager
    async def held(self, world: str = "w") -> AsyncIterator[asyncio.Task[None]]:
        hellos: list[Hello] = []
        task = asyncio.create_task(self.line.hold(world, "1", hellos.append))
        await self.rest()
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await self.rest()


def on_line(path: Path, test: Callable[[World], Awaitable[None]]) -> None:
    """Run a test with an agent that listens, and one container that runs."""

    async def run() -> None:
        clock = VirtualClock()
        service = Service(clock)
        sandbox = await service.runtime.prepare(POD, {})
        await service.runtime.start(sandbox, ContainerPlan(name="main", attempt=0, command=("x",)))
        await clock.sleep(timedelta(seconds=1))
        async with LineServer(service, clock).listening(path):
            await test(World(path, service, clock))
        await service.runtime.close()

    loop.run(run())


def test_being_connected_is_being_alive(tmp_path: Path) -> None:
    """Held, the runtime is there; let go, it says why not."""

    async def story(world: World) -> None:
        with pytest.raises(Unavailable, match='agent of node "local" is not connected'):
            world.line.runtime("local")
        async with world.held():
            assert world.line.hello is not None
            assert world.line.hello.about == ("all is well",)
            assert world.line.runtime("local") is not None
            assert world.line.runtime("other") is None
            assert world.service.told == ["held"]
        assert world.service.told == ["held", "let go"]
        assert not world.line.is_connected

    on_line(tmp_path / "agent.sock", story)


def test_a_line_without_an_agent_is_told_at_once(tmp_path: Path) -> None:
    """There is no socket, or one nobody listens at."""

    async def story(world: World) -> None:
        line = Line("local", tmp_path / "none.sock", world.clock)
        with pytest.raises(FileNotFoundError):
            await line.hold("w", "1", lambda _: None)

    on_line(tmp_path / "agent.sock", story)


def test_an_agent_that_ends_is_noticed_at_once(tmp_path: Path) -> None:
    """`hold` returns; nothing polls."""

    async def run() -> None:
        clock = VirtualClock()
        service = Service(clock)
        path = tmp_path / "agent.sock"
        line = Line("local", path, clock)
        server = await asyncio.start_unix_server(
            LineServer(service, clock)._serve, sock=sockets.listen(path)
        )
        connections: list[Hello] = []
        task = asyncio.create_task(line.hold("w", "1", connections.append))
        await clock.sleep(timedelta(seconds=1))
        before = clock.elapsed()
        for other in asyncio.all_tasks():
            if other is not task and other is not asyncio.current_task():
                other.cancel()
        await task
        assert connections
        assert clock.elapsed() == before
        server.close()

    loop.run(run())


def test_a_control_plane_of_another_world_is_refused(tmp_path: Path) -> None:
    """Its pods would not be these."""

    async def story(world: World) -> None:
        with pytest.raises(Conflict, match="serves world w, not v"):
            await world.line.hold("v", "1", lambda _: None)
        with pytest.raises(Conflict, match="serves version 1, not 2"):
            await world.line.hold("w", "2", lambda _: None)
        assert world.service.told == []

    on_line(tmp_path / "agent.sock", story)


def test_a_second_control_plane_takes_the_place_of_the_first(tmp_path: Path) -> None:
    """The first is gone, though the kernel may not have said so yet."""

    async def story(world: World) -> None:
        second = Line("local", world.path, world.clock)
        async with world.held() as first:
            task = asyncio.create_task(second.hold("w", "1", lambda _: None))
            await world.rest()
            assert first.done()
            assert second.is_connected
            assert world.service.told == ["held", "held"]
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    on_line(tmp_path / "agent.sock", story)


def test_usage_is_told_while_it_is_fresh(tmp_path: Path) -> None:
    """Measured every 15 seconds; a minute old, it is told no more."""

    async def story(world: World) -> None:
        async with world.held():
            usage = world.line.usage("u")
            assert usage is not None
            assert usage.containers == {"main": {"cpu": 5}}
            assert world.line.node_usage("local") is not None
            assert world.line.node_usage("other") is None
            await world.rest(100)
            assert world.line.usage("u") is None
            world.service.measured_at = world.clock.now()
            await world.rest(16)
            assert world.line.usage("u") is not None
        assert world.line.usage("u") is None

    on_line(tmp_path / "agent.sock", story)


async def read(world: World, options: LogOptions, container: str = "main") -> bytes:
    """Return a log, as it comes over the line."""
    runtime = calling.RemoteRuntime("local", world.path)
    return b"".join([chunk async for chunk in runtime.logs("u", container, options)])


def test_logs_come_over_the_line(tmp_path: Path) -> None:
    """Whole, in part, and following until the container ends; errors stay what they are."""

    async def story(world: World) -> None:
        assert await read(world, LogOptions()) == b"one\ntwo\nthree\n"
        assert await read(world, LogOptions(tail_lines=1)) == b"three\n"
        following = asyncio.create_task(read(world, LogOptions(follow=True)))
        await world.rest()
        assert not following.done()
        world.service.runtime.kill("u", "main")
        assert await following == b"one\ntwo\nthree\n"
        with pytest.raises(NotFound, match='container "none"'):
            await read(world, LogOptions(), "none")

    on_line(tmp_path / "agent.sock", story)


def test_commands_run_over_the_line(tmp_path: Path) -> None:
    """What is typed goes there, what is printed comes back, and so does the exit code."""

    async def story(world: World) -> None:
        runtime = calling.RemoteRuntime("local", world.path)
        large = b"x" * 300_000
        console = Console(b"a", large)
        assert await runtime.exec("u", "main", ("cat",), console) == 0
        assert console.seen == b"a" + large
        assert await runtime.exec("u", "main", ("exit", "7"), Console()) == 7
        assert await runtime.exec("u", "main", ("check",), console) == 0
        world.service.script = Script(ready_after=None)
        with pytest.raises(BadRequest, match="is not running"):
            await runtime.exec("u", "none", ("true",), Console())

    on_line(tmp_path / "agent.sock", story)


def test_errors_of_a_command_stay_apart(tmp_path: Path) -> None:
    """They come by a way of their own."""

    async def story(world: World) -> None:
        runtime = calling.RemoteRuntime("local", world.path)
        await world.service.runtime.remove("u")
        world.service.script = Script(ready_after=None)
        sandbox = await world.service.runtime.prepare(POD, {})
        plan = ContainerPlan(name="main", attempt=0, command=("x",))
        await world.service.runtime.start(sandbox, plan)
        await world.rest()
        console = Console(windows=(Window(columns=80, rows=24),))
        assert await runtime.exec("u", "main", ("check",), console, terminal=True) == 1
        assert (console.seen, console.errors) == (b"", b"not ready")

    on_line(tmp_path / "agent.sock", story)


def test_a_command_ends_with_whoever_asked_for_it(tmp_path: Path) -> None:
    """Ctrl-C of `kubectl exec`: nothing runs on unseen."""

    async def story(world: World) -> None:
        ended = asyncio.Event()

        async def hang(*_: object, **__: object) -> int:
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()
            return 0

        world.service.runtime.exec = hang  # type: ignore[method-assign]
        runtime = calling.RemoteRuntime("local", world.path)
        asking = asyncio.create_task(runtime.exec("u", "main", ("sleep",), Console()))
        await world.rest()
        asking.cancel()
        await world.rest()
        assert ended.is_set()

    on_line(tmp_path / "agent.sock", story)


def test_connections_go_over_the_line(tmp_path: Path) -> None:
    """Both ways; a refusal is told as one."""

    async def story(world: World) -> None:
        runtime = calling.RemoteRuntime("local", world.path)
        streams = await runtime.connect("u", 80)
        await streams.write(b"GET / HTTP/1.1\r\n\r\n")
        assert (await streams.read()).startswith(b"HTTP/1.1 200")
        assert await streams.read() == b""
        await streams.close()
        with pytest.raises(BadRequest, match="Connection refused"):
            await runtime.connect("none", 80)

    on_line(tmp_path / "agent.sock", story)


def test_only_its_agent_starts_and_ends_containers(tmp_path: Path) -> None:
    """There are never two who do."""

    async def story(world: World) -> None:
        runtime = calling.RemoteRuntime("local", world.path)
        with pytest.raises(Unavailable, match="only the agent"):
            await runtime.remove("u")
        with pytest.raises(Unavailable):
            runtime.events()

    on_line(tmp_path / "agent.sock", story)


def test_leaving_is_answered_when_it_is_done(tmp_path: Path) -> None:
    """`spinney down` waits for it."""

    async def story(world: World) -> None:
        before = world.clock.elapsed()
        await calling.leave(world.path, 3)
        assert world.clock.elapsed() - before == timedelta(seconds=3)
        assert world.service.told == ["left after 3"]

    on_line(tmp_path / "agent.sock", story)


def test_only_its_owner_may_open_the_socket(tmp_path: Path) -> None:
    """The file says so, and the kernel is asked who it is."""

    async def story(world: World) -> None:
        assert stat.S_IMODE(os.stat(world.path).st_mode) == 0o600

    on_line(tmp_path / "agent.sock", story)


def test_a_path_longer_than_the_kernel_allows_works(tmp_path: Path) -> None:
    """Data folders may lie deep."""
    deep = tmp_path / ("d" * 100) / ("e" * 100)
    deep.mkdir(parents=True)

    async def story(world: World) -> None:
        assert (await calling.about(world.path)).node == "local"

    on_line(deep / "agent.sock", story)


def test_a_socket_left_behind_gives_way(tmp_path: Path) -> None:
    """The agent was killed: its socket is still there."""
    sockets.listen(tmp_path / "agent.sock").close()

    async def story(world: World) -> None:
        assert (await calling.about(world.path)).node == "local"

    on_line(tmp_path / "agent.sock", story)


@pytest.mark.law
@given(st.binary(max_size=64))
def test_no_bytes_break_the_agent(tmp_path_factory: pytest.TempPathFactory, stray: bytes) -> None:
    """Whatever somebody sends first, the next is answered."""

    async def story(world: World) -> None:
        wire = await sockets.connect(world.path)
        wire._writer.write(stray)
        await world.rest()
        wire.abort()
        assert (await calling.about(world.path)).process == 7

    on_line(tmp_path_factory.mktemp("line") / "agent.sock", story)


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (b"{}", "the agent cannot read what is asked"),
        (b'{"what":"fly"}', 'the agent does not know "fly"'),
        (b"[]", "no JSON object"),
        (b"{", "no JSON"),
    ],
)
def test_what_the_agent_does_not_know_is_refused(tmp_path: Path, body: bytes, fault: str) -> None:
    """With a sentence, where it is one of ours that asks."""

    async def story(world: World) -> None:
        wire = await sockets.connect(world.path)
        await wire.send(frames.JSON, body)
        with pytest.raises((BadRequest, ConnectionError)) as caught:
            await wire.receive_json()
        if isinstance(caught.value, BadRequest):
            assert fault in str(caught.value)
        wire.abort()

    on_line(tmp_path / "agent.sock", story)


@pytest.mark.law
@given(st.lists(st.tuples(st.sampled_from([frames.DATA, frames.ERRORS]), st.binary())))
def test_frames_arrive_as_they_were_sent(sent: list[tuple[bytes, bytes]]) -> None:
    """In order, and nothing added."""

    async def run() -> None:
        reader = asyncio.StreamReader()
        wire = Wire(reader, _Loop(reader))  # type: ignore[arg-type]
        for sort, body in sent:
            await wire.send(sort, body)
        assert [await wire.receive() for _ in sent] == sent

    asyncio.run(run())


class _Loop:
    """A writer whose bytes are read at once."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader

    def write(self, data: bytes) -> None:
        self._reader.feed_data(data)

    async def drain(self) -> None:
        return


def test_one_direction_of_a_connection_may_end_before_the_other(tmp_path: Path) -> None:
    """A client says that it is done, and reads what still comes."""

    class Echo:
        """Sends back what it was sent, once it is told that this was all."""

        def __init__(self) -> None:
            self.kept = b""
            self.over = asyncio.Event()

        async def read(self) -> bytes:
            await self.over.wait()
            kept, self.kept = self.kept, b""
            return kept

        async def write(self, data: bytes) -> None:
            self.kept += data

        async def end(self) -> None:
            self.over.set()

        async def close(self) -> None:
            self.over.set()

    async def story(world: World) -> None:
        async def connect(*_: object) -> Echo:
            return Echo()

        world.service.runtime.connect = connect  # type: ignore[method-assign, assignment]
        streams = await calling.RemoteRuntime("local", world.path).connect("u", 80)
        await streams.write(b"all of it")
        await streams.end()
        assert await streams.read() == b"all of it"
        assert await streams.read() == b""
        await streams.close()

    on_line(tmp_path / "agent.sock", story)
