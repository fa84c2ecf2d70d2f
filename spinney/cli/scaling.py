"""`spinney scale`: sets how many replicas objects have, through their scale subresource."""

from __future__ import annotations

import argparse

from spinney.cli import connecting, failing, targets
from spinney.cli.connecting import Session
from spinney.cli.targets import Target
from spinney.cli.usage import Usage
from spinney.kube.client import Write
from spinney.kube.resources import Resource
from spinney.meta.documents import Document, object_at, string_at, value_at
from spinney.meta.errors import Conflict, SpinneyError

SCALE = "scale"


def run(arguments: argparse.Namespace) -> int:
    """Scale objects; returns the exit code."""
    if bool(arguments.objects) == bool(arguments.files):
        raise Usage("say which objects: either KIND NAME..., or -f FILE")
    words = arguments.objects
    if len(words) == 1 and "/" not in words[0] and not (arguments.selector or arguments.all):
        raise Usage("say which: NAME..., -l LABELS, or --all")
    if arguments.replicas < 0:
        raise Usage(f"--replicas: must be 0 or more, found {arguments.replicas}")
    return connecting.talk(arguments, lambda session: _scale(session, arguments))


async def _scale(session: Session, arguments: argparse.Namespace) -> int:
    code, count = 0, 0
    for target in await targets.chosen(session, arguments):
        _check_can_be_scaled(target)
        async for namespace, name in targets.names_of(session, arguments, target):
            count += 1
            try:
                await _scale_one(session, arguments, target.resource, namespace, name)
            except SpinneyError as error:
                session.screen.note(failing.text(error))
                code = max(code, failing.exit_code(error))
            else:
                session.screen.line(f"{target.resource.title(name)} scaled")
    if not count:
        session.screen.note("No resources found")
    return code


def _check_can_be_scaled(target: Target) -> None:
    resource = target.resource
    if SCALE not in resource.subresources:
        raise Usage(f"{resource.full_name} cannot be scaled: the kind has no scale subresource")


async def _scale_one(
    session: Session, arguments: argparse.Namespace, resource: Resource, namespace: str, name: str
) -> None:
    body: Document = {"spec": {"replicas": arguments.replicas}}
    wanted = arguments.current_replicas
    if wanted is not None:
        scale = await session.client.get(resource, namespace, name, subresource=SCALE)
        now = value_at(scale, ["spec", "replicas"]) or 0
        if now != wanted:
            raise Conflict(f"{resource.title(name)} has {now} replicas, expected {wanted}")
        version = string_at(object_at(scale, ["metadata"]), ["resourceVersion"])
        body["metadata"] = {"resourceVersion": version}
    await session.client.patch(resource, namespace, name, body, Write(), subresource=SCALE)
