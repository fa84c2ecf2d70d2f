"""exec and attach: commands in containers, over WebSockets and over SPDY."""

from __future__ import annotations

import asyncio
import contextlib
import json
import struct
import urllib.parse

import aiohttp
import pytest

from spinney.ports import Window
from spinney.server import spdy
from spinney.server.consoles import Remote
from tests.server import manned as ground
from tests.server.manned import (
    ENDED,
    SocketClient,
    manned,
    place,
    spdy_client,
    until,
    waiting,
)
from tests.server.served import PODS, READER

V4, V5 = "v4.channel.k8s.io", "v5.channel.k8s.io"
WAYS = ("socket", "spdy")


def path_of(*command, part="exec", **flags):
    words = [f"command={urllib.parse.quote(word)}" for word in command]
    flags = {"stdout": "true", "stderr": "true", **flags}
    return f"{PODS}/web/{part}?" + "&".join([*words, *(f"{k}={v}" for k, v in flags.items())])


class SpdyConsole:
    """What `SocketClient` does, over SPDY."""

    def __init__(self, spoken, channels):
        self.spoken = spoken
        self.streams = {name: spoken.open(streamType=name) for name in channels}

    async def type(self, data):
        self.spoken.write(self.streams["stdin"], data)

    async def end_input(self):
        self.spoken.write(self.streams["stdin"], b"", is_last=True)

    async def resize(self, columns, rows):
        size = json.dumps({"Width": columns, "Height": rows}) + "\n"
        self.spoken.write(self.streams["resize"], size.encode())

    async def read_until(self, text):
        await self.spoken.until(lambda: text in self.output)

    async def status(self):
        """Return how the command ended; every stream ends before the connection does."""
        streams = {self.streams[name] for name in ("error", "stdout") if name in self.streams}
        await self.spoken.until(lambda: streams <= self.spoken.over.keys())
        said = self.spoken.received[self.streams["error"]]
        await self.spoken.until(lambda: self.spoken.is_away)
        return json.loads(said) if said else None

    async def leave(self):
        await self.spoken.close()

    @property
    def output(self):
        return self.spoken.received[self.streams["stdout"]]

    @property
    def errors(self):
        return self.spoken.received[self.streams["stderr"]]


@contextlib.asynccontextmanager
async def console(client, way, *command, part="exec", **flags):
    path = path_of(*command, part=part, **flags)
    if way == "socket":
        async with ground.socket(client, path, V5, V4) as opened:
            assert opened.protocol == V5
            yield SocketClient(opened)
        return
    channels = ["error", *(name for name in ("stdin", "stdout") if flags.get(name) != "false")]
    if flags.get("stdin") != "true" and "stdin" in channels:
        channels.remove("stdin")
    channels.append("resize" if flags.get("tty") == "true" else "stderr")
    async with spdy_client(client, path, V4, "v3.channel.k8s.io") as spoken:
        yield SpdyConsole(spoken, channels)


@pytest.mark.parametrize("way", WAYS)
@manned
async def test_output_errors_and_the_exit_code_come_apart(client, machine, way):
    await place(client)
    script = "echo out; echo wrong >&2; exit 3"
    async with console(client, way, "sh", "-c", script) as talk:
        status = await talk.status()
        assert (talk.output, talk.errors) == (b"out\n", b"wrong\n")
        assert (status["status"], status["reason"]) == ("Failure", "NonZeroExitCode")
        assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "3"}]


@pytest.mark.parametrize("way", WAYS)
@manned
async def test_a_command_that_ends_well_is_a_success(client, machine, way):
    await place(client)
    async with console(client, way, "true") as talk:
        assert (await talk.status())["status"] == "Success"


@pytest.mark.parametrize("way", WAYS)
@manned
async def test_input_reaches_a_command_and_ends(client, machine, way):
    """Three megabytes go in and out, while neither side waits for the other to be done."""
    await place(client)
    typed = bytes(range(256)) * 12_000
    async with console(client, way, "cat", stdin="true") as talk:

        async def type_all():
            for at in range(0, len(typed), 50_000):
                await talk.type(typed[at : at + 50_000])
            await talk.end_input()

        typing = asyncio.create_task(type_all())
        assert (await talk.status())["status"] == "Success"
        await typing
        assert talk.output == typed


@pytest.mark.parametrize("way", WAYS)
@manned
async def test_input_that_nobody_asked_for_is_at_its_end(client, machine, way):
    await place(client)
    async with console(client, way, "cat") as talk:
        assert (await talk.status())["status"] == "Success"


@pytest.mark.parametrize("way", WAYS)
@manned
async def test_a_terminal_has_its_clients_size(client, machine, way):
    await place(client)
    script = "echo ready; until stty size | grep 43; do sleep 0.01; done; exit 4"
    async with console(client, way, "sh", "-c", script, stdin="true", tty="true") as talk:
        await talk.read_until(b"ready")
        await talk.resize(0, 10)
        await talk.resize(132, 43)
        await talk.read_until(b"43 132")
        assert (await talk.status())["details"]["causes"][0]["message"] == "4"


@pytest.mark.parametrize("way", WAYS)
@manned
async def test_what_is_typed_reaches_a_terminal(client, machine, way):
    await place(client)
    async with console(client, way, "sh", stdin="true", tty="true") as talk:
        await talk.type(b"echo $((6 * 7))\nexit 5\n")
        assert (await talk.status())["details"]["causes"][0]["message"] == "5"
        assert b"42" in talk.output


@pytest.mark.parametrize("way", WAYS)
@manned
async def test_a_client_that_leaves_ends_its_command(client, machine, way):
    await place(client)
    async with console(client, way, "sh", "-c", "echo begun; exec sleep 1000") as talk:
        await talk.read_until(b"begun")
        assert machine.running == 1
        await talk.leave()
        await until(lambda: not machine.running)


@pytest.mark.parametrize("way", WAYS)
@manned
async def test_a_client_that_vanishes_ends_its_command(client, machine, way):
    """Its connection breaks in the midst of what it typed, which the command does not read."""
    await place(client)
    script = "echo begun; exec sleep 1000"
    async with console(client, way, "sh", "-c", script, stdin="true") as talk:
        await talk.read_until(b"begun")
        await talk.type(b"x" * 100_000)
        if way == "socket":
            talk.socket._response.connection.transport.abort()
        else:
            talk.spoken._writer.transport.abort()
        await until(lambda: not machine.running)


@pytest.mark.parametrize("way", WAYS)
@manned(stall_seconds=0.05)
async def test_a_client_that_reads_nothing_is_cut(client, machine, way):
    await place(client)
    async with console(client, way, "cat", "/dev/zero"):
        await until(lambda: machine.running)
        await until(lambda: not machine.running)


@pytest.mark.parametrize("way", WAYS)
@manned
async def test_a_server_that_stops_ends_commands_and_says_so(client, machine, way):
    await place(client)
    async with console(client, way, "sh", "-c", "echo begun; exec sleep 1000") as talk:
        await talk.read_until(b"begun")
        stopping = asyncio.create_task(client.server.stop())
        assert (await talk.status())["message"] == "the server is stopping"
        await talk.leave()
        await stopping
        assert not machine.running


@manned
async def test_a_pod_that_is_gone_ends_its_commands(client, machine, monkeypatch):
    monkeypatch.setattr("spinney.server.lifetimes.LINGER_SECONDS", 0)
    await place(client)
    async with console(client, "socket", "sh", "-c", "echo begun; exec sleep 1000") as talk:
        await talk.read_until(b"begun")
        await client.do("DELETE", f"{PODS}/web", {"gracePeriodSeconds": 0})
        assert (await talk.status())["message"] == 'pod "web" is gone'


@manned
async def test_input_cannot_end_in_the_fourth_protocol(client, machine):
    await place(client)
    path = path_of("cat", stdin="true")
    async with ground.socket(client, path, V4) as opened:
        talk = SocketClient(opened)
        await opened.send_str("\0typed as text")
        await talk.read_until(b"typed as text")
        await talk.end_input()
        await talk.type(b", and more")
        await talk.read_until(b", and more")
        await talk.leave()


@manned
async def test_messages_on_channels_there_are_not_are_passed_over(client, machine):
    await place(client)
    async with console(client, "socket", "cat", stdin="true") as talk:
        for channel in (1, 3, 7, 200):
            await talk.send(channel, b"what")
        await talk.socket.send_bytes(b"")
        for size in (b"", b"{", b'{"Width":"a"}', b'{"Width":70000,"Height":1}', b"\xff"):
            await talk.send(4, size)
        await talk.type(b"read")
        await talk.read_until(b"read")
        await talk.end_input()
        assert (await talk.status())["status"] == "Success"
        assert talk.output == b"read"


@manned
async def test_a_message_without_end_ends_the_connection(client, machine):
    await place(client)
    async with console(client, "socket", "cat", stdin="true") as talk:
        with contextlib.suppress(ConnectionError):
            await talk.send(0, b"x" * 5_000_000)
            await talk.status()


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\0" * 100,
        b"\xff" * 100,
        struct.pack(">II", 0x80030001, 20) + b"\0\0\0\1" + b"\xff" * 16,
        spdy.Encoder().opened(2, {"streamType": "error"}),
        spdy.Encoder().opened(3, {}) + struct.pack(">II", 0x80030001, 10) + b"\0\0\0\1" + b"\0" * 6,
    ],
)
@manned
async def test_garbage_instead_of_spdy_ends_the_connection(client, machine, garbage):
    await place(client)
    async with spdy_client(client, path_of("cat"), V4) as spoken:
        spoken.send(garbage)
        with contextlib.suppress(ConnectionError):
            while await spoken.turn():
                pass
    assert not machine.running


@manned
async def test_a_client_that_opens_no_streams_is_cut(client, machine, monkeypatch):
    monkeypatch.setattr("spinney.server.consoles.BEGIN_SECONDS", 0.01)
    await place(client)
    async with spdy_client(client, path_of("cat"), V4) as spoken:
        spoken.open(streamType="error")
        spoken.open(streamType="unknown")
        with contextlib.suppress(ConnectionError):
            while await spoken.turn():
                pass


@manned
async def test_pings_come_back(client, machine):
    await place(client)
    async with spdy_client(client, path_of("cat"), V4) as spoken:
        spoken.send(spdy.ping(7))
        await spoken.until(lambda: spoken.pings == [7])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("state", "query", "message"),
    [
        (None, "container=other&stdout=true&command=ls", "container other is not valid for pod"),
        (None, "stdout=true", "you must specify at least one command"),
        (None, "command=ls&stdout=False", "at least 1 of stdin, stdout, stderr"),
        (ENDED, "command=ls&stdout=true", 'not found ("main"): it ended with exit code 3'),
        (
            waiting("CrashLoopBackOff"),
            "command=ls&stdout=true",
            'container not found ("main"): it is waiting to start: CrashLoopBackOff',
        ),
    ],
)
@manned
async def test_what_cannot_be_run_is_refused_before_the_upgrade(
    client, machine, way, state, query, message
):
    await place(client, state=state or ground.RUNNING)
    answer = await refused(client, way, f"{PODS}/web/exec?{query}")
    assert (answer["code"], answer["reason"]) == (400, "BadRequest")
    assert message in answer["message"]


async def refused(client, way, path, token="admin-token"):
    """Return the Status a client gets instead of an upgrade."""
    if way == "spdy":
        async with spdy_client(client, path, V4, token=token) as answer:
            assert isinstance(answer, dict), "it was not refused"
            return answer
    headers = {
        "Authorization": f"Bearer {token}",
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
        "Sec-WebSocket-Protocol": V5,
    }
    async with client.session.get(client.base + path, headers=headers) as response:
        assert response.status != 101
        return await response.json()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("part", ["exec", "attach", "portforward"])
@manned
async def test_who_may_only_read_may_run_nothing(client, machine, way, part):
    await place(client)
    path = f"{PODS}/web/{part}?command=ls&stdout=true&ports=80"
    answer = await refused(client, way, path, token=READER)
    assert (answer["code"], answer["reason"]) == (403, "Forbidden")
    assert "the token is read-only" in answer["message"]


@manned
async def test_who_speaks_no_protocol_of_ours_is_told_which_there_are(client, machine):
    await place(client)
    async with spdy_client(client, path_of("ls"), "v1.channel.k8s.io") as answer:
        assert answer["code"] == 403
        assert "server accepts ['v4.channel.k8s.io']" in answer["message"]
    with pytest.raises(aiohttp.WSServerHandshakeError) as refusal:
        async with ground.socket(client, path_of("ls"), "binary.k8s.io"):
            pass
    assert refusal.value.status == 400


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Upgrade": "h2c", "Connection": "Upgrade"},
        {"Upgrade": "SPDY/3.1"},
        {"Upgrade": "websocket", "Connection": "Upgrade"},
        {
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec-WebSocket-Protocol": V5,
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "short",
        },
    ],
)
@manned
async def test_who_asks_for_no_upgrade_gets_none(client, machine, headers):
    await place(client)
    sent = {"Authorization": "Bearer admin-token", **headers}
    async with client.session.get(client.base + path_of("ls"), headers=sent) as response:
        assert response.status == 400
        assert (await response.json())["reason"] == "BadRequest"


@manned
async def test_a_body_is_no_part_of_an_upgrade(client, machine):
    await place(client)
    headers = {
        "Authorization": "Bearer admin-token",
        "Connection": "Upgrade",
        "Upgrade": "SPDY/3.1",
        "X-Stream-Protocol-Version": V4,
    }
    asked = client.session.post(client.base + path_of("ls"), headers=headers, data=b"1234567890")
    async with asked as response:
        assert response.status == 400
        assert "has no body" in (await response.json())["message"]


@pytest.mark.parametrize("way", WAYS)
@manned
async def test_attached_one_sees_what_is_printed_from_now_on(client, machine, way):
    log = machine.log(await place(client))
    log.add(b"before", client.clock.now())
    async with console(client, way, part="attach") as talk:
        await until(lambda: log.readers)
        log.add(b"now", client.clock.now())
        await talk.read_until(b"now\n")
        log.end()
        assert (await talk.status())["status"] == "Success"
        assert talk.output == b"now\n"


@manned
async def test_nobody_types_into_a_container_itself(client, machine):
    await place(client)
    answer = await refused(client, "socket", f"{PODS}/web/attach?stdin=true&stdout=true")
    assert answer["code"] == 400
    assert "has no standard input to attach to" in answer["message"]
    assert "kubectl exec --stdin" in answer["message"]


@manned
async def test_a_command_of_very_many_words(client, machine):
    await place(client)
    async with console(client, "socket", "echo", *(["x"] * 500)) as talk:
        await talk.status()
        assert talk.output == b" ".join([b"x"] * 500) + b"\n"


@manned
async def test_a_fault_of_the_node_is_told_and_not_shown(client, machine, monkeypatch):
    async def broken(*_arguments, **_named):
        raise RuntimeError("a secret of the code")

    await place(client)
    monkeypatch.setattr(machine, "exec", broken)
    async with console(client, "socket", "ls") as talk:
        status = await talk.status()
    assert (status["code"], "secret" in str(status)) == (500, False)


def test_of_sizes_nobody_looked_at_the_last_counts():
    async def main():
        remote = Remote(None, None)
        for columns in (80, 100):
            remote.take_size(json.dumps({"Width": columns, "Height": 24}).encode())
        remote.end_input()
        assert await remote.resized() == Window(columns=100, rows=24)
        assert await remote.resized() is None
        assert await remote.read() == b""
        await remote.write(b"nobody asked for it")
        await remote.write_error(b"nor for that")

    asyncio.run(main())
