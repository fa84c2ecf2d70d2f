"""Credentials: what each request carries so that the server knows who asks.

A token of a file is read again each minute, as it is replaced there while it is in use. A plugin is
run when its credentials are first needed and when they have run out, or were refused.
"""

from __future__ import annotations

import asyncio
import base64
import os
import sys
from datetime import datetime, timedelta

import msgspec

from spinney.kube.kubeconfig import BadKubeconfig, Connection, ExecPlugin
from spinney.meta.documents import Document, object_at, string_at
from spinney.meta.records import Record
from spinney.meta.times import parse_time
from spinney.ports import Clock

TOKEN_FILE_PERIOD = timedelta(minutes=1)
PLUGIN_TIMEOUT = timedelta(minutes=5)
"""Long, as a plugin may wait for a person at a browser."""


class Credential(Record):
    """A token, or a certificate with its key, or nothing."""

    token: str = ""
    certificate: bytes | None = None
    key: bytes | None = None
    expires: datetime | None = None


class Credentials:
    """Gives the credential of the moment."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        """Give what a connection says; nothing is read or run yet."""
        self._connection = connection
        self._clock = clock
        self._held: Credential | None = None

    @property
    def can_be_renewed(self) -> bool:
        """Whether asking again may give another credential."""
        return self._connection.exec is not None or bool(self._connection.token_file)

    def forget(self) -> None:
        """Ask again next time: the server refused what was given."""
        self._held = None

    async def current(self) -> Credential:
        """Return the credential to use now; raises BadKubeconfig."""
        held = self._held
        if held is None or (held.expires is not None and held.expires <= self._clock.now()):
            held = self._held = await self._fetch()
        return held

    def headers(self, credential: Credential) -> list[tuple[str, str]]:
        """Return the headers that say who asks."""
        connection = self._connection
        headers = []
        if credential.token:
            headers.append(("Authorization", f"Bearer {credential.token}"))
        elif connection.username:
            pair = f"{connection.username}:{connection.password}".encode()
            headers.append(("Authorization", f"Basic {base64.b64encode(pair).decode()}"))
        if connection.impersonate:
            headers.append(("Impersonate-User", connection.impersonate))
            headers += [("Impersonate-Group", group) for group in connection.impersonate_groups]
        return headers

    async def _fetch(self) -> Credential:
        connection = self._connection
        if connection.token_file:
            return Credential(
                token=_token_in(connection.token_file),
                certificate=connection.certificate,
                key=connection.key,
                expires=self._clock.now() + TOKEN_FILE_PERIOD,
            )
        given = Credential(
            token=connection.token, certificate=connection.certificate, key=connection.key
        )
        has_none = not connection.token and connection.certificate is None
        if connection.exec is not None and has_none:
            return await _from_plugin(connection.exec, connection)
        return given


def _token_in(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not UTF-8"
        raise BadKubeconfig(f"tokenFile {path}: cannot be read: {reason}") from error


async def _from_plugin(plugin: ExecPlugin, connection: Connection) -> Credential:
    """Run a plugin; its words on standard error are for the person at the terminal."""
    is_interactive = plugin.interactive_mode != "Never" and sys.stdin.isatty()
    if plugin.interactive_mode == "Always" and not is_interactive:
        raise BadKubeconfig(f"{plugin.place}: {plugin.command} asks a person: run at a terminal")
    environment = {
        **os.environ,
        **plugin.environment,
        "KUBERNETES_EXEC_INFO": _request(plugin, connection, is_interactive),
    }
    try:
        process = await asyncio.create_subprocess_exec(
            plugin.command,
            *plugin.arguments,
            env=environment,
            stdin=None if is_interactive else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        hint = f": {plugin.install_hint}" if plugin.install_hint else ""
        raise BadKubeconfig(
            f"{plugin.place}: {plugin.command} cannot be run: {error.strerror}{hint}"
        ) from error
    try:
        async with asyncio.timeout(PLUGIN_TIMEOUT / timedelta(seconds=1)):
            out, _ = await process.communicate()
    except TimeoutError as error:
        process.kill()
        await process.wait()
        raise BadKubeconfig(f"{plugin.place}: {plugin.command} did not end in time") from error
    if process.returncode:
        raise BadKubeconfig(
            f"{plugin.place}: {plugin.command} ended with exit code {process.returncode}"
        )
    return _credential(plugin, out)


def _request(plugin: ExecPlugin, connection: Connection, is_interactive: bool) -> str:
    spec: Document = {"interactive": is_interactive}
    if plugin.provide_cluster_info:
        cluster: Document = {"server": connection.server}
        if connection.server_name:
            cluster["tls-server-name"] = connection.server_name
        if connection.skip_verification:
            cluster["insecure-skip-tls-verify"] = True
        if connection.authority is not None:
            authority = base64.b64encode(connection.authority).decode()
            cluster["certificate-authority-data"] = authority
        spec["cluster"] = cluster
    request: Document = {
        "apiVersion": plugin.api_version,
        "kind": "ExecCredential",
        "spec": spec,
    }
    return msgspec.json.encode(request).decode()


def _credential(plugin: ExecPlugin, out: bytes) -> Credential:
    where = f"{plugin.place}: what {plugin.command} printed"
    try:
        answer = msgspec.json.decode(out)
    except msgspec.DecodeError as error:
        raise BadKubeconfig(f"{where} is not JSON: {error}") from error
    if string_at(answer, ["kind"]) != "ExecCredential":
        raise BadKubeconfig(f"{where} must be an ExecCredential")
    if string_at(answer, ["apiVersion"]) != plugin.api_version:
        raise BadKubeconfig(f"{where}: apiVersion: must be {plugin.api_version}")
    status = object_at(answer, ["status"])
    token = string_at(status, ["token"])
    certificate = string_at(status, ["clientCertificateData"])
    key = string_at(status, ["clientKeyData"])
    if not token and not (certificate and key):
        raise BadKubeconfig(f"{where}: status: must give a token, or certificate and key")
    until = string_at(status, ["expirationTimestamp"])
    try:
        expires = parse_time(until) if until else None
    except ValueError as error:
        raise BadKubeconfig(f"{where}: status.expirationTimestamp: {error}") from error
    return Credential(
        token=token,
        certificate=certificate.encode() or None,
        key=key.encode() or None,
        expires=expires,
    )
