"""`spinney delete`: deletes objects, and waits until they are gone."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

from spinney.cli import connecting, failing, targets, waiting
from spinney.cli.connecting import Session
from spinney.cli.targets import Target
from spinney.cli.usage import Usage
from spinney.kube.resources import Resource
from spinney.meta.documents import Document, string_at
from spinney.meta.errors import NotFound, SpinneyError
from spinney.meta.records import Record


class Deleted(Record):
    """An object whose deletion was asked for."""

    resource: Resource
    namespace: str
    name: str
    uid: str


def run(arguments: argparse.Namespace) -> int:
    """Delete objects; returns the exit code."""
    if bool(arguments.objects) == bool(arguments.files):
        raise Usage("say which objects: either KIND NAME..., or -f FILE")
    is_selecting = bool(arguments.selector or arguments.field_selector or arguments.all)
    if arguments.objects and "/" not in arguments.objects[0]:
        names = arguments.objects[1:]
        if not names and not is_selecting:
            raise Usage("say which: NAME..., -l LABELS, --field-selector FIELDS, or --all")
        if names and is_selecting:
            raise Usage("a name does not go together with -l, --field-selector or --all")
        if names and arguments.all_namespaces:
            raise Usage("a name does not go together with -A: the same name may be in several")
    if arguments.force and arguments.grace_period:
        raise Usage("--force does not go together with a --grace-period above 0")
    return connecting.talk(arguments, lambda session: _delete(session, arguments))


async def _delete(session: Session, arguments: argparse.Namespace) -> int:
    screen = session.screen
    if arguments.force and arguments.dry_run == "none":
        screen.warn(
            "the objects are forgotten at once: what runs of them may go on running for a while."
        )
    code, deleted, count = 0, [], 0
    async for resource, namespace, name in _wanted(session, arguments):
        count += 1
        try:
            done = await _delete_one(session, arguments, resource, namespace, name)
        except NotFound as error:
            if arguments.ignore_not_found or not _is_named(arguments):
                continue
            code = _failed(session, error, code)
            continue
        except SpinneyError as error:
            code = _failed(session, error, code)
            continue
        deleted.append(done)
    if not count:
        screen.note("No resources found")
    if arguments.wait and deleted and arguments.dry_run == "none":
        code = max(code, await _wait_gone(session, deleted, arguments.timeout))
    return code


def _failed(session: Session, error: SpinneyError, code: int) -> int:
    session.screen.note(failing.text(error))
    return max(code, failing.exit_code(error))


def _is_named(arguments: argparse.Namespace) -> bool:
    return bool(arguments.files) or not (
        arguments.all or arguments.selector or arguments.field_selector
    )


async def _wanted(
    session: Session, arguments: argparse.Namespace
) -> AsyncIterator[tuple[Resource, str, str]]:
    """Yield resource, namespace and name of all that is to be deleted, manifests backwards."""
    wanted: list[Target] = []
    if arguments.files:
        for item in reversed(targets.items(arguments.files)):
            try:
                wanted.append(await targets.of_item(session, item))
            except SpinneyError as error:
                if not arguments.ignore_not_found:
                    raise
                session.screen.note(failing.text(error))
    else:
        wanted = await targets.named(session, arguments.objects)
    for target in wanted:
        async for namespace, name in targets.names_of(session, arguments, target):
            yield target.resource, namespace, name


async def _delete_one(
    session: Session,
    arguments: argparse.Namespace,
    resource: Resource,
    namespace: str,
    name: str,
) -> Deleted:
    title = resource.title(name).partition("/")[0]
    if arguments.dry_run == "client":
        await session.client.get(resource, namespace, name)
        uid = ""
    else:
        answer = await session.client.delete(resource, namespace, name, _options(arguments))
        document = answer.document
        uid = string_at(document, ["metadata", "uid"]) or string_at(document, ["details", "uid"])
    if arguments.output == "name":
        session.screen.line(resource.title(name))
    else:
        how = " force" if arguments.force else ""
        dry = "" if arguments.dry_run == "none" else f" ({arguments.dry_run} dry run)"
        session.screen.line(f'{title} "{name}"{how} deleted{dry}')
    return Deleted(resource=resource, namespace=namespace, name=name, uid=uid)


def _options(arguments: argparse.Namespace) -> Document:
    options: Document = {"propagationPolicy": arguments.cascade.capitalize()}
    grace = 0 if arguments.force else 1 if arguments.now else arguments.grace_period
    if grace is not None and grace >= 0:
        options["gracePeriodSeconds"] = grace
    if arguments.dry_run == "server":
        options["dryRun"] = ["All"]
    return options


async def _wait_gone(session: Session, deleted: list[Deleted], limit: timedelta | None) -> int:
    """Wait until all are gone, or replaced by others of their names."""
    left = list(deleted)
    try:
        async with asyncio.timeout(limit / timedelta(seconds=1) if limit else None):
            while left:
                one = left[0]
                await waiting.until_gone(session, one.resource, one.namespace, one.name, one.uid)
                left.pop(0)
    except TimeoutError:
        for one in left:
            session.screen.note(f"timed out: {one.resource.title(one.name)} is still there")
        return failing.NO
    return 0
