"""`spinney edit`: changes objects in an editor.

Only what was changed is sent, as a merge patch that holds for the version it was made on. If the
object moved meanwhile, the change is laid over what it is now, and shown again where somebody else
changed more than status.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import tempfile
from pathlib import Path

from spinney.cli import connecting, failing, printing, targets
from spinney.cli.connecting import Session
from spinney.cli.usage import Usage
from spinney.kube.client import Write
from spinney.kube.resources import Resource
from spinney.meta import manifests
from spinney.meta.documents import Document, string_at, with_value, without
from spinney.meta.errors import ApiError, Conflict, SpinneyError
from spinney.meta.patches import merge_patch

EDITOR_VARIABLES = ("SPINNEY_EDITOR", "KUBE_EDITOR", "EDITOR")
ROUNDS_MAX = 50
HEADING = (
    "Change the object below, save and close: then it is sent.",
    "An empty file, or one that is not changed, leaves the object as it is.",
)
_VERSION = ("metadata", "resourceVersion")


def run(arguments: argparse.Namespace) -> int:
    """Edit objects; returns the exit code."""
    if not arguments.objects:
        raise Usage("say which objects: KIND NAME..., or KIND/NAME...")
    if len(arguments.objects) == 1 and "/" not in arguments.objects[0]:
        raise Usage(f"say which: {arguments.objects[0]} NAME...")
    return connecting.talk(arguments, lambda session: _edit(session, arguments))


async def _edit(session: Session, arguments: argparse.Namespace) -> int:
    code = 0
    for target in await targets.named(session, arguments.objects):
        for name in target.names:
            edit = _Edit(session, target.resource, target.namespace, name, arguments.output)
            try:
                code = max(code, await edit.run())
            except SpinneyError as error:
                session.screen.note(failing.text(error))
                code = max(code, failing.exit_code(error))
    return code


class _Edit:
    """The editing of one object, over as many rounds as it takes."""

    def __init__(
        self, session: Session, resource: Resource, namespace: str, name: str, form: str
    ) -> None:
        self._session = session
        self._resource = resource
        self._namespace = namespace
        self._name = name
        self._suffix = f".{form}"
        self._write = printing.yaml_text if form == "yaml" else printing.json_text

    async def run(self) -> int:
        """Edit until it is taken, or given up; returns the exit code."""
        before = await self._read()
        text = self._write(before)
        told: list[str] = []
        for _ in range(ROUNDS_MAX):
            edited = self._ask(text, told)
            if edited in (text, ""):
                return self._given_up(text, is_after_fault=bool(told))
            try:
                after = _parsed(edited)
                patch = merge_patch.diff(before, after)
                if not patch:
                    return self._given_up(text, is_after_fault=False)
                await self._send(patch, before)
            except Conflict as error:
                before = await self._read()
                text = self._write(merge_patch.apply(before, patch))
                told = [*error.message.splitlines(), "Below: your change on what it is now."]
            except SpinneyError as error:
                if isinstance(error, ApiError) and error.code in (401, 403, 404):
                    self._keep(edited)
                    raise
                text, told = edited, failing.text(error).splitlines()
            else:
                self._session.screen.line(f"{self._resource.title(self._name)} edited")
                return 0
        self._keep(text)
        return failing.NO

    async def _read(self) -> Document:
        found = await self._session.client.get(self._resource, self._namespace, self._name)
        return without(found, ["metadata", "managedFields"])

    async def _send(self, patch: Document, before: Document) -> None:
        """Send a change; where only status moved meanwhile, on what the object is now."""
        version = string_at(before, _VERSION)
        while True:
            try:
                await self._session.client.patch(
                    self._resource,
                    self._namespace,
                    self._name,
                    with_value(patch, _VERSION, version),
                    Write(manager="spinney-edit"),
                )
            except Conflict:
                now = await self._read()
                if string_at(now, _VERSION) == version or _chosen(now) != _chosen(before):
                    raise
                version = string_at(now, _VERSION)
            else:
                return

    def _ask(self, text: str, told: list[str]) -> str:
        """Return what the person made of a text, without our comments on top."""
        comments = "".join(f"# {line}\n" for line in (*HEADING, *(["", *told] if told else [])))
        with tempfile.TemporaryDirectory(prefix="spinney-edit-") as folder:
            file = Path(folder) / f"{self._name}{self._suffix}"
            file.write_text(f"{comments}#\n{text}", encoding="utf-8")
            _open_editor(file)
            edited = file.read_text(encoding="utf-8", errors="replace")
        lines = edited.splitlines(keepends=True)
        while lines and lines[0].startswith("#"):
            lines.pop(0)
        return "".join(lines) if "".join(lines).strip() else ""

    def _given_up(self, text: str, *, is_after_fault: bool) -> int:
        self._session.screen.note("Edit cancelled, no changes made.")
        if is_after_fault:
            self._keep(text)
        return failing.NO if is_after_fault else 0

    def _keep(self, text: str) -> None:
        """Leave a text that was not taken where its author finds it."""
        descriptor, name = tempfile.mkstemp(prefix="spinney-edit-", suffix=self._suffix)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        self._session.screen.note(f"What you wrote is kept in {name}")


def _chosen(document: Document) -> Document:
    """Return what people choose of an object: neither status nor what servers count."""
    for path in (_VERSION, ("metadata", "generation"), ("status",)):
        document = without(document, path)
    return document


def _parsed(text: str) -> Document:
    """Return the one document of a text; raises DecodeError, Usage."""
    found = list(manifests.load(text.encode()))
    if len(found) != 1:
        raise Usage(f"there must be one document, found {len(found)}")
    if found[0].error is not None:
        raise found[0].error
    for fault in found[0].duplicates:
        raise Usage(f"line {found[0].line_of(fault.path)}: {fault}")
    if not isinstance(found[0].document, dict):
        raise Usage("the document must be an object")
    return found[0].document


def _open_editor(file: Path) -> None:
    """Wait for an editor that was given a file."""
    given = [os.environ[name] for name in EDITOR_VARIABLES if os.environ.get(name)]
    command = [*shlex.split(given[0] if given else "vi"), os.fspath(file)]
    try:
        code = subprocess.run(command, check=False).returncode
    except OSError as error:
        raise Usage(
            f"the editor {command[0]} cannot be run: {error.strerror}: set $EDITOR"
        ) from error
    if code:
        raise Usage(f"the editor {command[0]} ended with exit code {code}: nothing is sent")
