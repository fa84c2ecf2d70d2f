"""Requests to a Kubernetes API server: connections, credentials, errors, safe retries.

A request is repeated only where the server cannot have acted on it: it said so (429, or 503, with
`Retry-After`), or it refused a credential that can be renewed.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from datetime import timedelta
from typing import Any

import aiohttp
import msgspec

import spinney
from spinney.kube.credentials import Credential, Credentials
from spinney.kube.kubeconfig import BadKubeconfig, Connection
from spinney.meta.documents import Document, is_object
from spinney.meta.errors import ApiError, SpinneyError, Unauthorized
from spinney.meta.records import Record
from spinney.ports import Clock

JSON = "application/json"
CONNECT_TIMEOUT_SECONDS = 10
CLOSING_TAKES = timedelta(milliseconds=50)
"""How long connections that were given up are waited for in the end."""

ANSWER_TIMEOUT_SECONDS = 60
ATTEMPTS_MAX = 5
IN_FLIGHT_MAX = 50
"""How many requests are under way at once; streams do not count, as each lasts."""

RETRY_AFTER_SECONDS_MAX = 30
SHOWN_BODY_CHARACTERS = 200

Query = Sequence[tuple[str, str]]


class Unreachable(SpinneyError, ConnectionError):
    """The network or the server: no answer came. Whether a write was done is not known."""


class Answer(Record):
    """What a server said."""

    code: int
    document: Document
    warnings: tuple[str, ...] = ()


class Transport:
    """One server, one user, and the connections between them."""

    def __init__(
        self,
        connection: Connection,
        clock: Clock,
        *,
        on_warning: Callable[[str], None] = lambda _text: None,
    ) -> None:
        """Nothing is opened before the first request."""
        self.connection = connection
        self._clock = clock
        self._on_warning = on_warning
        self._credentials = Credentials(connection, clock)
        self._session: aiohttp.ClientSession | None = None
        self._certificate: bytes | None = None
        self._room = asyncio.Semaphore(IN_FLIGHT_MAX)
        self._was_cut = False
        """Whether some request was given up before its answer: its TLS ends a moment later."""

    async def close(self) -> None:
        """Close the connections, and let the loop see them closed."""
        if self._session is not None:
            await self._session.close()
            self._session = None
            await self._clock.sleep(CLOSING_TAKES if self._was_cut else timedelta())
            self._was_cut = False

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        body: bytes | None = None,
        content_type: str = JSON,
        accept: str = JSON,
        attempts_max: int = ATTEMPTS_MAX,
    ) -> Answer:
        """Ask, and return the answer; raises ApiError where it is not success, and Unreachable.

        With one attempt, a server that says "later" is not waited for: whoever asks decides.
        """
        limits = aiohttp.ClientTimeout(
            total=ANSWER_TIMEOUT_SECONDS, sock_connect=CONNECT_TIMEOUT_SECONDS
        )
        headers = {"Accept": accept}
        if body is not None:
            headers["Content-Type"] = content_type
        attempt = 1
        while True:
            try:
                async with (
                    self._room,
                    self._answering(method, path, query, body, headers, limits) as answer,
                ):
                    data = await self._read(answer)
                    return Answer(
                        code=answer.status,
                        document=_document(data, method, path),
                        warnings=self._warned(answer),
                    )
            except Unauthorized:
                if attempt > 1 or not self._credentials.can_be_renewed:
                    raise
                self._credentials.forget()
            except ApiError as error:
                pause = error.retry_after_seconds
                if error.code not in (429, 503) or pause is None or attempt >= attempts_max:
                    raise
                await self._clock.sleep(timedelta(seconds=min(pause, RETRY_AFTER_SECONDS_MAX)))
            attempt += 1

    @asynccontextmanager
    async def lines(
        self, path: str, *, query: Query, accept: str = JSON, silence_seconds: int
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a stream of lines, such as a watch; it fails after so long a silence."""
        limits = aiohttp.ClientTimeout(
            total=None, sock_connect=CONNECT_TIMEOUT_SECONDS, sock_read=silence_seconds
        )
        async with self._answering("GET", path, query, None, {"Accept": accept}, limits) as answer:
            self._warned(answer)
            async with aclosing(self._split(answer)) as lines:
                yield lines

    @asynccontextmanager
    async def stream(
        self, path: str, *, query: Query, silence_seconds: int | None = ANSWER_TIMEOUT_SECONDS
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a stream of bytes as they come, such as a log.

        It fails after so long a silence; with None it may be silent for ever.
        """
        limits = aiohttp.ClientTimeout(
            total=None, sock_connect=CONNECT_TIMEOUT_SECONDS, sock_read=silence_seconds
        )
        async with self._answering("GET", path, query, None, {"Accept": "*/*"}, limits) as answer:
            self._warned(answer)
            async with aclosing(self._parts(answer)) as parts:
                yield parts

    async def _parts(self, answer: aiohttp.ClientResponse) -> AsyncGenerator[bytes]:
        with self._translated():
            async for data in answer.content.iter_any():
                yield data

    @asynccontextmanager
    async def socket(
        self, path: str, *, query: Query, protocols: Sequence[str]
    ) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        """Open a WebSocket that speaks one of some protocols, as exec and port-forward need it.

        Raises ApiError where the server refuses, and Unreachable.
        """
        credential = await self._credentials.current()
        session = await self._ready(credential)
        with self._translated():
            async with (
                aiohttp.ClientSession(
                    connector=session.connector,
                    connector_owner=False,
                    headers=session.headers,
                    raise_for_status=_check_switched,
                    timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_SECONDS),
                ) as own,
                own.ws_connect(
                    self.connection.server + path,
                    params=query,
                    headers=[*self._credentials.headers(credential)],
                    protocols=protocols,
                    max_msg_size=0,
                    server_hostname=self.connection.server_name or None,
                ) as opened,
            ):
                connection = opened._response.connection
                carrier = None if connection is None else connection.transport
                try:
                    yield opened
                    await opened.close()
                finally:
                    if carrier is not None:  # to close TLS well would take as long as the peer does
                        carrier.abort()

    async def _split(self, answer: aiohttp.ClientResponse) -> AsyncGenerator[bytes]:
        """Yield whole lines; a last one that is cut off is dropped."""
        with self._translated():
            rest: list[bytes] = []
            async for data in answer.content.iter_any():
                *whole, last = data.split(b"\n")
                for line in whole:
                    rest.append(line)
                    yield b"".join(rest)
                    rest = []
                rest.append(last)

    @asynccontextmanager
    async def _answering(
        self,
        method: str,
        path: str,
        query: Query,
        body: bytes | None,
        headers: Mapping[str, str],
        limits: aiohttp.ClientTimeout,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request and give the answer if it is success; raises its error if not."""
        credential = await self._credentials.current()
        session = await self._ready(credential)
        is_answered = False
        try:
            with self._translated():
                answer = await session.request(
                    method,
                    self.connection.server + path,
                    params=query,
                    data=body,
                    headers=[*headers.items(), *self._credentials.headers(credential)],
                    timeout=limits,
                    allow_redirects=False,
                    server_hostname=self.connection.server_name or None,
                )
            is_answered = True
        finally:
            self._was_cut |= not is_answered
        try:
            if answer.status >= 300:
                data = await self._read(answer)
                raise _error(answer, data, f"{method} {path}")
            yield answer
        finally:
            _leave(answer)

    async def _read(self, answer: aiohttp.ClientResponse) -> bytes:
        with self._translated():
            return await answer.read()

    async def _ready(self, credential: Credential) -> aiohttp.ClientSession:
        """Return the session; a new one where a plugin gave another certificate."""
        if self._session is not None and credential.certificate != self._certificate:
            await self.close()
        if self._session is None:
            self._certificate = credential.certificate
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=_tls(self.connection, credential), limit=0),
                headers={"User-Agent": f"spinney/{spinney.__version__}"},
                auto_decompress=True,
            )
        return self._session

    def _warned(self, answer: aiohttp.ClientResponse) -> tuple[str, ...]:
        texts = tuple(map(_warning_text, answer.headers.getall("Warning", ())))
        for text in texts:
            self._on_warning(text)
        return texts

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn what the network says into Unreachable."""
        try:
            yield
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise Unreachable(f"{self.connection.server}: {_told(error)}") from error


def _leave(answer: aiohttp.ClientResponse) -> None:
    """Give a connection back; one in the midst of an answer, as of a watch, is cut.

    To close it well would take until the server agrees, which nobody waits for.
    """
    connection = answer.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
    answer.close()


def _told(error: Exception) -> str:
    """Return what a network error says, for people."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"its certificate is not believed: {error.certificate_error}"
    if isinstance(error, aiohttp.ClientConnectorSSLError):
        return f"no TLS with it: {error.os_error.strerror or error.os_error}"
    if isinstance(error, aiohttp.ClientConnectorError):
        return os.strerror(error.os_error.errno).lower() if error.os_error.errno else str(error)
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    if isinstance(error, aiohttp.ServerDisconnectedError | ConnectionResetError):
        return "it closed the connection"
    return str(error) or type(error).__name__


async def _check_switched(answer: aiohttp.ClientResponse) -> None:
    """Raise what a server says that does not switch to another protocol."""
    if answer.status >= 300:
        raise _error(answer, await answer.read(), f"{answer.method} {answer.url.path}")


def _error(answer: aiohttp.ClientResponse, data: bytes, asked: str) -> ApiError:
    """Return the error an answer tells of, whether or not it is a `Status`."""
    document: Any = None
    with suppress(msgspec.DecodeError):
        document = msgspec.json.decode(data)
    if is_object(document) and document.get("kind") == "Status":
        error = ApiError.from_status(document)
    else:
        text = " ".join(data.decode("utf-8", "replace").split())[:SHOWN_BODY_CHARACTERS]
        told = f"{asked}: {answer.status} {answer.reason or ''}".strip()
        error = ApiError.from_status(
            {"code": answer.status, "message": f"{told}: {text}" if text else told}
        )
    pause = answer.headers.get("Retry-After", "")
    if error.retry_after_seconds is None and pause.isdigit():
        error.retry_after_seconds = int(pause)
    return error


def _document(data: bytes, method: str, path: str) -> Document:
    try:
        document = msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        raise Unreachable(f"{method} {path}: the answer is not JSON: {error}") from error
    if not is_object(document):
        raise Unreachable(f"{method} {path}: the answer is JSON, but no object")
    return document


def _warning_text(header: str) -> str:
    """Return the text of a `Warning: 299 - "text"` header."""
    _, quote, rest = header.partition('"')
    text, _, _ = rest.rpartition('"')
    return text.replace('\\"', '"').replace("\\\\", "\\") if quote else header


def _tls(connection: Connection, credential: Credential) -> ssl.SSLContext | bool:
    if connection.server.startswith("http://"):
        return True
    if connection.authority is None:
        context = ssl.create_default_context()
    else:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        try:
            context.load_verify_locations(cadata=connection.authority.decode("ascii", "replace"))
        except ssl.SSLError as error:
            raise BadKubeconfig(
                f"{connection.origin}: certificate-authority: holds no certificate in PEM"
            ) from error
    if connection.skip_verification:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if credential.certificate is not None and credential.key is not None:
        _load_pair(context, credential.certificate, credential.key, connection.origin)
    return context


def _load_pair(context: ssl.SSLContext, certificate: bytes, key: bytes, origin: str) -> None:
    """Load a certificate and key; OpenSSL takes them from a file only, which is gone at once."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(certificate.rstrip() + b"\n" + key)
        file.flush()
        try:
            context.load_cert_chain(file.name)
        except ssl.SSLError as error:
            raise BadKubeconfig(
                f"{origin}: client-certificate and client-key: are no pair in PEM"
            ) from error
