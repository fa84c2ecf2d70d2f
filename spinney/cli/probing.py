"""Asking a server of this machine whether it is ready, with nothing but a socket."""

from __future__ import annotations

import contextlib
import socket
import ssl
from pathlib import Path
from urllib.parse import urlsplit

from spinney.cli.usage import NoServer

TIMEOUT_SECONDS = 10


def wait_ready(address: str, authority: Path) -> None:
    """Return once `/readyz` answers 200; raises NoServer where it does not."""
    said = readiness(address, authority)
    if said != "200":
        raise NoServer(f"{address}/readyz answers {said}, not 200")


def readiness(address: str, authority: Path) -> str:
    """Return the status `/readyz` answers with, or why there is no answer."""
    where = urlsplit(address)
    try:
        context = ssl.create_default_context(cafile=authority)
        with (
            socket.create_connection((where.hostname, where.port), TIMEOUT_SECONDS) as plain,
            context.wrap_socket(plain, server_hostname=where.hostname) as secured,
        ):
            request = f"GET /readyz HTTP/1.1\r\nHost: {where.netloc}\r\nConnection: close\r\n\r\n"
            secured.sendall(request.encode())
            words = _first_line(secured).split()
    except OSError as error:
        return str(error.strerror or error)
    return words[1] if len(words) > 1 else "nothing"


def _first_line(connection: ssl.SSLSocket) -> str:
    received = b""
    with contextlib.suppress(ssl.SSLEOFError):
        while b"\r\n" not in received and (part := connection.recv(4096)):
            received += part
    return received.partition(b"\r\n")[0].decode("latin-1")
