"""Port-forward: over SPDY, over SPDY in a WebSocket, and over a WebSocket's channels."""

from __future__ import annotations

import asyncio
import contextlib
import struct

import aiohttp
import pytest

from spinney.server import forwarding, spdy
from tests.server import manned as ground
from tests.server.manned import SpdyClient, manned, place, spdy_client, until
from tests.server.served import PODS

PATH = f"{PODS}/web/portforward"
WAYS = ("raw", "tunnel")


@contextlib.asynccontextmanager
async def echoing(machine=None):
    """Listen; what comes is sent back, and a last word after its end. Gives the port."""

    async def echo(reader, writer):
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
            writer.write(b"!")
        writer.close()

    listening = await asyncio.start_server(echo, "127.0.0.1", 0)
    try:
        yield listening.sockets[0].getsockname()[1]
    finally:
        listening.close()


class Tunnel:
    """A WebSocket's messages as a stream of bytes, for a SPDY client."""

    def __init__(self, socket):
        self._socket = socket
        self._waiting = []
        self._sender = None

    async def read(self, _most):
        message = await self._socket.receive()
        return message.data if message.type is aiohttp.WSMsgType.BINARY else b""

    def write(self, data):
        self._waiting.append(data)
        if self._sender is None or self._sender.done():
            self._sender = asyncio.create_task(self._send())

    async def _send(self):
        while self._waiting:
            data, self._waiting = b"".join(self._waiting), []
            for at in range(0, len(data), 100_000):
                await self._socket.send_bytes(data[at : at + 100_000])


@contextlib.asynccontextmanager
async def forwarded(client, way):
    if way == "raw":
        async with spdy_client(client, PATH, "portforward.k8s.io") as spoken:
            yield spoken
        return
    async with ground.socket(client, PATH, forwarding.TUNNEL) as opened:
        assert opened.protocol == forwarding.TUNNEL
        tunnel = Tunnel(opened)
        yield SpdyClient(tunnel, tunnel)


def connect(spoken, port, number=0):
    """Open a connection; returns its streams, of data and of errors."""
    said = {"port": str(port), "requestID": str(number)}
    error = spoken.open(streamType="error", **said)
    return spoken.open(streamType="data", **said), error


@pytest.mark.parametrize("way", WAYS)
@manned
async def test_bytes_go_to_a_port_and_back(client, machine, way):
    """Two megabytes each on three connections at once; each ends by itself, in both directions."""
    await place(client)
    sent = bytes(range(256)) * 8000
    async with echoing() as port, forwarded(client, way) as spoken:
        streams = [connect(spoken, port, number) for number in range(3)]
        for data, _ in streams:
            for at in range(0, len(sent), 60_000):
                spoken.write(data, sent[at : at + 60_000])
        await spoken.until(lambda: all(len(spoken.received[d]) == len(sent) for d, _ in streams))
        assert machine.connected == 3
        spoken.write(streams[0][0], b"", is_last=True)
        await spoken.until(lambda: {*streams[0]} <= spoken.over.keys())
        assert spoken.received[streams[0][0]] == sent + b"!"
        assert [spoken.received[error] for _, error in streams] == [b"", b"", b""]
        await until(lambda: machine.connected == 2)
        again, _ = connect(spoken, port, 7)
        spoken.write(again, b"again")
        await spoken.until(lambda: spoken.received[again] == b"again")


@pytest.mark.parametrize("way", WAYS)
@manned
async def test_a_port_nobody_listens_on_is_told_and_others_go_on(client, machine, way):
    uid = await place(client)
    async with echoing() as port, forwarded(client, way) as spoken:
        data, error = connect(spoken, 1, 0)
        await spoken.until(lambda: {data, error} <= spoken.over.keys())
        assert spoken.received[error].decode() == (
            f"error forwarding port 1 to pod web, uid {uid}: nobody listens on port 1 of the pod"
        )
        good, _ = connect(spoken, port, 1)
        spoken.write(good, b"good")
        await spoken.until(lambda: spoken.received[good] == b"good")


@pytest.mark.parametrize("way", WAYS)
@manned
async def test_a_stream_that_is_reset_closes_its_connection(client, machine, way):
    await place(client)
    async with echoing() as port, forwarded(client, way) as spoken:
        data, _ = connect(spoken, port)
        spoken.write(data, b"there")
        await spoken.until(lambda: spoken.received[data] == b"there")
        spoken.send(spdy.reset(data, spdy.CANCEL))
        await until(lambda: not machine.connected)


@pytest.mark.parametrize("way", WAYS)
@manned
async def test_a_client_that_leaves_closes_its_connections(client, machine, way):
    await place(client)
    async with echoing() as port:
        async with forwarded(client, way) as spoken:
            for number in range(5):
                connect(spoken, port, number)
            await until(lambda: machine.connected == 5)
        await until(lambda: not machine.connected)


@pytest.mark.parametrize("way", WAYS)
@manned
async def test_a_pod_that_is_gone_ends_its_forwarding(client, machine, way, monkeypatch):
    monkeypatch.setattr("spinney.server.lifetimes.LINGER_SECONDS", 0)
    await place(client)
    async with echoing() as port, forwarded(client, way) as spoken:
        data, _ = connect(spoken, port)
        spoken.write(data, b"there")
        await spoken.until(lambda: spoken.received[data] == b"there")
        await client.do("DELETE", f"{PODS}/web", {"gracePeriodSeconds": 0})
        while await spoken.turn():
            pass
        assert not machine.connected


@pytest.mark.parametrize("way", WAYS)
@manned
async def test_a_server_that_stops_ends_its_forwarding(client, machine, way):
    await place(client)
    async with echoing() as port, forwarded(client, way) as spoken:
        data, _ = connect(spoken, port)
        spoken.write(data, b"there")
        await spoken.until(lambda: spoken.received[data] == b"there")
        stopping = asyncio.create_task(client.server.stop())
        while await spoken.turn():
            pass
        await stopping
        assert not machine.connected


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"streamType": "data", "port": "none"},
        {"streamType": "data", "port": "0"},
        {"streamType": "data", "port": "65536"},
        {"streamType": "other", "port": "80"},
    ],
)
@manned
async def test_a_stream_that_is_no_connections_is_reset(client, machine, way, headers):
    await place(client)
    async with forwarded(client, way) as spoken:
        stream = spoken.open(**headers)
        await spoken.until(lambda: stream in spoken.resets)


@manned
async def test_half_a_connection_is_reset(client, machine, monkeypatch):
    monkeypatch.setattr("spinney.server.forwarding.PAIR_SECONDS", 0.01)
    await place(client)
    async with forwarded(client, "raw") as spoken:
        stream = spoken.open(streamType="data", port="80", requestID="1")
        twin = spoken.open(streamType="data", port="80", requestID="1")
        await spoken.until(lambda: {stream, twin} <= spoken.resets.keys())


@manned
async def test_of_very_many_streams_the_last_are_refused(client, machine, monkeypatch):
    monkeypatch.setattr("spinney.server.multiplexing.STREAMS_MAX", 4)
    await place(client)
    async with echoing() as port, forwarded(client, "raw") as spoken:
        (one, _), (two, _), three = (connect(spoken, port, number) for number in range(3))
        await spoken.until(lambda: {*three} <= spoken.resets.keys())
        assert {spoken.resets[stream] for stream in three} == {spdy.REFUSED_STREAM}
        assert machine.connected <= 2
        for stream in (one, two):
            spoken.write(stream, b"on")
        await spoken.until(lambda: spoken.received[one] == spoken.received[two] == b"on")


@manned
async def test_a_node_that_fails_costs_one_connection(client, machine, monkeypatch):
    async def broken(*_arguments):
        raise RuntimeError("a fault")

    await place(client)
    async with forwarded(client, "raw") as spoken:
        with monkeypatch.context() as patched:
            patched.setattr(machine, "connect", broken)
            streams = connect(spoken, 80)
            await spoken.until(lambda: {*streams} <= spoken.resets.keys())
        async with echoing() as port:
            data, _ = connect(spoken, port, 2)
            spoken.write(data, b"on")
            await spoken.until(lambda: spoken.received[data] == b"on")


@pytest.mark.parametrize("garbage", [b"garbage" * 10, b"\0\0\0\x09\0\0\0\x01x", b"\xff" * 30])
@manned
async def test_garbage_in_a_tunnel_ends_it(client, machine, garbage):
    await place(client)
    async with ground.socket(client, PATH, forwarding.TUNNEL) as opened:
        with contextlib.suppress(ConnectionError):
            await opened.send_bytes(garbage)
            while (await opened.receive()).type is aiohttp.WSMsgType.BINARY:
                pass


@manned
async def test_channels_begin_with_their_port(client, machine):
    await place(client)
    async with echoing() as one, echoing() as two:
        path = f"{PATH}?ports={one},{two}&ports=1"
        async with ground.socket(client, path, forwarding.CHANNELS) as opened:
            received = dict.fromkeys(range(6), b"")

            async def read_until(channel, text):
                while text not in received[channel]:
                    message = await opened.receive()
                    assert message.type is aiohttp.WSMsgType.BINARY
                    received[message.data[0]] += message.data[1:]

            await read_until(5, b"nobody listens on port 1")
            for channel, port in enumerate((one, one, two, two, 1)):
                assert received[channel] == struct.pack("<H", port)
            for channel, text in ((0, b"first"), (2, b"second"), (9, b"nobody"), (1, b"wrong")):
                await opened.send_bytes(bytes([channel]) + text)
            await read_until(0, b"first")
            await read_until(2, b"second")
        await until(lambda: not machine.connected)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", 'query parameter "ports" is required'),
        ("?ports=0", 'port "0" must be between 1 and 65535'),
        ("?ports=80,http", 'port "http" must be'),
        ("?ports=" + ",".join(["80"] * 101), "at most 100"),
    ],
)
@manned
async def test_ports_that_are_none_are_refused(client, machine, query, message):
    await place(client)
    headers = {
        "Authorization": "Bearer admin-token",
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Protocol": forwarding.CHANNELS,
    }
    async with client.session.get(client.base + PATH + query, headers=headers) as response:
        assert response.status == 400
        assert message in (await response.json())["message"]
