"""One HTTP request over a connection, for probes and hooks: only its status is of interest.

The connection may be any, as the runtime makes it, so that a pod with a network of its own is asked
the same way. Certificates are not checked, as Kubernetes does not.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from typing import Final

from spinney.meta.errors import SpinneyError
from spinney.ports import Streams

HEAD_BYTES_MAX: Final = 64 * 1024
USER_AGENT: Final = "kube-probe/spinney"


class NoHttp(SpinneyError, OSError):
    """The pod: what came back is no answer of HTTP."""


async def status_of(
    streams: Streams,
    *,
    host: str,
    path: str,
    headers: Iterable[tuple[str, str]] = (),
    is_tls: bool = False,
) -> int:
    """Return the status a GET is answered with; raises OSError."""
    given = {"host": host, "user-agent": USER_AGENT, "accept": "*/*", "connection": "close"}
    for name, value in headers:
        given[name.lower()] = value
    lines = [f"GET {path or '/'} HTTP/1.1", *(f"{name}: {text}" for name, text in given.items())]
    request = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")
    over = await _Tls.begin(streams, host) if is_tls else streams
    await over.write(request)
    head = b""
    while b"\r\n" not in head and len(head) < HEAD_BYTES_MAX:
        part = await over.read()
        if not part:
            break
        head += part
    words = head.partition(b"\r\n")[0].split()
    if len(words) < 2 or not words[0].startswith(b"HTTP/") or not words[1].isdigit():
        raise NoHttp("the answer is not HTTP" if head else "the connection was closed: EOF")
    return int(words[1])


class _Tls:
    """TLS over any connection."""

    def __init__(self, below: Streams, host: str) -> None:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        self._below = below
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        name = host.rpartition(":")[0].strip("[]")
        self._tls = context.wrap_bio(self._in, self._out, server_hostname=name or None)

    @classmethod
    async def begin(cls, below: Streams, host: str) -> _Tls:
        """Shake hands."""
        made = cls(below, host)
        while True:
            try:
                made._tls.do_handshake()
            except ssl.SSLWantReadError:
                await made._exchange()
            else:
                await made._flush()
                return made

    async def write(self, data: bytes) -> None:
        self._tls.write(data)
        await self._flush()

    async def read(self) -> bytes:
        while True:
            try:
                return self._tls.read(65536)
            except ssl.SSLWantReadError:
                await self._exchange()
            except ssl.SSLZeroReturnError:
                return b""

    async def close(self) -> None:
        await self._below.close()

    async def _exchange(self) -> None:
        await self._flush()
        part = await self._below.read()
        if not part:
            raise NoHttp("the connection was closed: EOF")
        self._in.write(part)

    async def _flush(self) -> None:
        if data := self._out.read():
            await self._below.write(data)
