"""Kubeconfig files: which server, how to believe it, and as whom to ask.

Several files are read as one, as kubectl does: of entries with one name, and of current contexts,
the first wins; relative paths are relative to the file they stand in. What is not supported is
refused by name, never passed over.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from spinney.meta import manifests
from spinney.meta.documents import Document, Json
from spinney.meta.errors import SpinneyError
from spinney.meta.records import Record


class BadKubeconfig(SpinneyError):
    """The user: a kubeconfig that cannot be used; names the file and the field."""


class ExecPlugin(Record):
    """A program that gives credentials."""

    api_version: str
    command: str
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = {}
    interactive_mode: str = "IfAvailable"
    provide_cluster_info: bool = False
    install_hint: str = ""
    place: str = ""
    """The file and field it is from, for errors."""


class Connection(Record):
    """How to reach one server as one user, with every file named but none read."""

    server: str
    namespace: str = "default"
    origin: str = ""
    """Where all this is from, for people."""

    authority: bytes | None = None
    """PEM; None where the system's authorities are believed."""

    skip_verification: bool = False
    server_name: str = ""
    """The name the certificate must carry, where that is not the host's."""

    token: str = ""
    token_file: str = ""
    username: str = ""
    password: str = ""
    certificate: bytes | None = None
    key: bytes | None = None
    impersonate: str = ""
    impersonate_groups: tuple[str, ...] = ()
    exec: ExecPlugin | None = None

    def because(self, why: str) -> Connection:
        """Return the connection with why it was chosen, for people."""
        return msgspec.structs.replace(self, origin=f"{why}: {self.origin}")


class _Entry:
    """One object of a file, with its place."""

    __slots__ = ("fields", "file", "path")

    def __init__(self, file: Path, path: str, fields: Document) -> None:
        self.file = file
        self.path = path
        self.fields = fields

    def fault(self, field: str, message: str) -> BadKubeconfig:
        where = ".".join(part for part in (self.path, field) if part)
        return BadKubeconfig(f"{self.file}: {where}: {message}")

    def text(self, field: str) -> str:
        value = self.fields.get(field)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self.fault(field, f"must be a string, found {_word(value)}")
        return value

    def flag(self, field: str) -> bool:
        value = self.fields.get(field)
        if value is None:
            return False
        if not isinstance(value, bool):
            raise self.fault(field, f"must be true or false, found {_word(value)}")
        return value

    def texts(self, field: str) -> tuple[str, ...]:
        return tuple(
            self._text_item(field, index, item) for index, item in enumerate(self.items(field))
        )

    def _text_item(self, field: str, index: int, item: Json) -> str:
        if not isinstance(item, str):
            raise self.fault(f"{field}[{index}]", f"must be a string, found {_word(item)}")
        return item

    def items(self, field: str) -> list[Json]:
        value = self.fields.get(field)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.fault(field, f"must be a list, found {_word(value)}")
        return value

    def below(self, field: str) -> _Entry:
        value = self.fields.get(field)
        if value is None:
            value = {}
        if not isinstance(value, dict):
            raise self.fault(field, f"must be an object, found {_word(value)}")
        path = f"{self.path}.{field}" if self.path else field
        return _Entry(self.file, path, value)

    def named(self, field: str, name: str) -> _Entry | None:
        """Return the first entry of a list that has a name."""
        for index in range(len(self.items(field))):
            entry = self.item(field, index)
            if entry.text("name") == name:
                return entry
        return None

    def item(self, field: str, index: int) -> _Entry:
        """Return an item of a list, which must be an object."""
        item = self.items(field)[index]
        place = f"{field}[{index}]"
        if not isinstance(item, dict):
            raise self.fault(place, f"must be an object, found {_word(item)}")
        return _Entry(self.file, f"{self.path}.{place}" if self.path else place, item)

    def bytes_of(self, field: str) -> bytes | None:
        """Return what a field gives, inline (`…-data`, in base64) or in a file."""
        inline = self.text(f"{field}-data")
        if inline:
            try:
                return base64.b64decode(inline, validate=True)
            except binascii.Error as error:
                raise self.fault(f"{field}-data", f"is not base64: {error}") from error
        name = self.text(field)
        if not name:
            return None
        path = self.file.parent / name
        try:
            return path.read_bytes()
        except OSError as error:
            raise self.fault(field, f"{path} cannot be read: {error.strerror}") from error


def _word(value: Json) -> str:
    """Return a value as errors show it; secrets are strings, and are never shown."""
    if isinstance(value, (dict, list, str)):
        return {dict: "an object", list: "a list", str: "a string"}[type(value)]
    return str(value)


class Kubeconfig:
    """One or several files, read as one."""

    def __init__(self, entries: Sequence[_Entry]) -> None:
        """Hold what the files say, the most important first."""
        self._files = tuple(entries)

    @property
    def current_context(self) -> str:
        """The context that is meant where none is named."""
        return next((text for file in self._files if (text := file.text("current-context"))), "")

    def contexts(self) -> tuple[str, ...]:
        """Return the names of all contexts."""
        found = (
            str(item["name"])
            for file in self._files
            for item in file.items("contexts")
            if isinstance(item, dict) and "name" in item
        )
        return tuple(dict.fromkeys(found))

    def connection(self, context: str = "") -> Connection:
        """Return how to reach the server of a context, of the current one where none is given."""
        name = context or self.current_context
        files = ", ".join(str(file.file) for file in self._files)
        if not name:
            raise BadKubeconfig(
                f"{files}: current-context: is not set: "
                f"choose one with --context{self._offered('contexts')}"
            )
        chosen = self._named("contexts", name)
        if chosen is None:
            offered = self._offered("contexts")
            raise BadKubeconfig(f'{files}: contexts: there is no context "{name}"{offered}')
        told = chosen.below("context")
        cluster = self._referred(told, "cluster", "clusters")
        user = self._referred(told, "user", "users") if told.text("user") else None
        return _connection(told, cluster, user, f"context {name} of {chosen.file}")

    def _named(self, field: str, name: str) -> _Entry | None:
        return next((entry for file in self._files if (entry := file.named(field, name))), None)

    def _referred(self, context: _Entry, field: str, among: str) -> _Entry:
        name = context.text(field)
        if not name:
            raise context.fault(field, f"is not set{self._offered(among)}")
        found = self._named(among, name)
        if found is None:
            raise context.fault(field, f'there is no {field} "{name}"{self._offered(among)}')
        return found.below(field)

    def _offered(self, field: str) -> str:
        names = sorted(
            str(item["name"])
            for file in self._files
            for item in file.items(field)
            if isinstance(item, dict) and "name" in item
        )
        return f"; there are: {', '.join(names)}" if names else f"; there are no {field}"


def read(paths: Sequence[Path], *, must_exist: bool = True) -> Kubeconfig:
    """Read files as one; those that are not there are passed over unless all must be."""
    entries = []
    for path in paths:
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            if must_exist:
                raise BadKubeconfig(f"{path}: there is no such file") from None
            continue
        except OSError as error:
            raise BadKubeconfig(f"{path}: cannot be read: {error.strerror}") from error
        entries.append(_parsed(path, data))
    return Kubeconfig(entries)


def _parsed(path: Path, data: bytes) -> _Entry:
    found = list(manifests.load(data))
    if len(found) > 1:
        raise BadKubeconfig(f"{path}: holds {len(found)} documents, must be one")
    if not found:
        return _Entry(path, "", {})
    if found[0].error is not None:
        raise BadKubeconfig(f"{path}: {found[0].error}")
    for fault in found[0].duplicates:
        raise BadKubeconfig(f"{path}: line {found[0].line_of(fault.path)}: {fault}")
    document = found[0].document
    if not isinstance(document, dict):
        raise BadKubeconfig(f"{path}: must be an object, found {_word(document)}")
    if document.get("kind", "Config") != "Config" or document.get("apiVersion", "v1") != "v1":
        said = f"{document.get('kind')} of {document.get('apiVersion')}"
        raise BadKubeconfig(f"{path}: kind: must be Config of v1, found {said}")
    return _Entry(path, "", document)


def _connection(context: _Entry, cluster: _Entry, user: _Entry | None, origin: str) -> Connection:
    server = cluster.text("server").rstrip("/")
    if not server:
        raise cluster.fault("server", "is not set: it must be such as https://127.0.0.1:7443")
    if not server.startswith(("https://", "http://")):
        raise cluster.fault("server", f'must begin with https:// or http://, found "{server}"')
    if cluster.text("proxy-url"):
        raise cluster.fault("proxy-url", "is not supported: reach the server without a proxy")
    authority = cluster.bytes_of("certificate-authority")
    skips = cluster.flag("insecure-skip-tls-verify")
    if skips and authority is not None:
        raise cluster.fault(
            "insecure-skip-tls-verify", "must not be given together with certificate-authority"
        )
    connection = Connection(
        server=server,
        namespace=context.text("namespace") or "default",
        origin=origin,
        authority=authority,
        skip_verification=skips,
        server_name=cluster.text("tls-server-name"),
    )
    return connection if user is None else _as_user(connection, user)


def _as_user(connection: Connection, user: _Entry) -> Connection:
    if user.fields.get("auth-provider") is not None:
        raise user.fault("auth-provider", "is not supported, as in kubectl since 1.26: use exec")
    certificate, key = user.bytes_of("client-certificate"), user.bytes_of("client-key")
    if (certificate is None) != (key is None):
        missing = "client-certificate" if certificate is None else "client-key"
        raise user.fault(missing, "is not set: certificate and key must be given together")
    token_file = user.text("tokenFile")
    return msgspec.structs.replace(
        connection,
        token=user.text("token"),
        token_file=str(user.file.parent / token_file) if token_file else "",
        username=user.text("username"),
        password=user.text("password"),
        certificate=certificate,
        key=key,
        impersonate=user.text("as"),
        impersonate_groups=user.texts("as-groups"),
        exec=_plugin(user),
    )


EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
INTERACTIVE_MODES = ("Never", "IfAvailable", "Always")


def _plugin(user: _Entry) -> ExecPlugin | None:
    if user.fields.get("exec") is None:
        return None
    told = user.below("exec")
    version = told.text("apiVersion")
    if version not in EXEC_VERSIONS:
        raise told.fault("apiVersion", f'must be {EXEC_VERSIONS[0]}, found "{version}"')
    command = told.text("command")
    if not command:
        raise told.fault("command", "is not set")
    mode = told.text("interactiveMode") or "IfAvailable"
    if mode not in INTERACTIVE_MODES:
        raise told.fault("interactiveMode", f'must be Never, IfAvailable or Always, found "{mode}"')
    environment = {}
    for index in range(len(told.items("env"))):
        entry = told.item("env", index)
        environment[entry.text("name")] = entry.text("value")
    return ExecPlugin(
        api_version=version,
        command=str(told.file.parent / command) if "/" in command else command,
        arguments=told.texts("args"),
        environment=environment,
        interactive_mode=mode,
        provide_cluster_info=told.flag("provideClusterInfo"),
        install_hint=told.text("installHint"),
        place=f"{told.file}: {told.path}",
    )
