"""`spinney wait`: waits until something holds of objects. It watches, and never polls."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable
from contextlib import aclosing
from datetime import timedelta
from functools import partial

from spinney.cli import connecting, failing, targets, templates
from spinney.cli.connecting import Session
from spinney.cli.progress import Progress
from spinney.cli.usage import Usage
from spinney.decisions.causes import readiness
from spinney.kube import watching
from spinney.kube.client import Selection
from spinney.kube.resources import Resource
from spinney.meta.documents import Document, Json, list_at, string_at, value_at
from spinney.meta.errors import Expired, NotFound, SpinneyError
from spinney.meta.records import Record
from spinney.server import jsonpaths

USUAL_TIMEOUT = timedelta(seconds=30)

Holds = Callable[[Document | None], bool]
"""Whether it holds of an object, None where it is not there."""

Lacks = Callable[[Document | None], str]
"""What an object lacks for it to hold, in a few words."""

Look = Callable[[Document | None], None]


class Wish(Record):
    """What is waited for."""

    holds: Holds
    told: str
    """What is printed when it holds."""

    lacks: Lacks
    may_be_missing: bool = False
    """Whether an object that is not there is waited for, too."""


def run(arguments: argparse.Namespace) -> int:
    """Wait; returns 0 where it holds of all, 1 where it did not in time."""
    wish = parse(arguments.condition)
    if bool(arguments.objects) == bool(arguments.files):
        raise Usage("say which objects: either KIND NAME..., or -f FILE")
    is_selecting = bool(arguments.selector or arguments.field_selector or arguments.all)
    words = arguments.objects
    if words and "/" not in words[0] and len(words) == 1 and not is_selecting:
        raise Usage("say which: NAME..., -l LABELS, --field-selector FIELDS, or --all")
    return connecting.talk(arguments, lambda session: _wait(session, arguments, wish))


def parse(text: str) -> Wish:
    """Return what a `--for` means; raises Usage."""
    sort, _, rest = text.partition("=")
    word = text.casefold()
    if word == "delete":
        return Wish(
            holds=lambda found: found is None,
            told="deleted",
            lacks=_still_there,
            may_be_missing=True,
        )
    if word == "create":
        return Wish(
            holds=lambda found: found is not None,
            told="created",
            lacks=lambda _found: "it is not there",
            may_be_missing=True,
        )
    if word == "ready":
        return Wish(
            holds=lambda found: found is not None and not readiness.lacks(found),
            told="ready",
            lacks=lambda found: readiness.lacks(found) if found is not None else "",
        )
    if sort.casefold() == "condition" and rest:
        kind, _, status = rest.partition("=")
        holds = _has_condition(kind, status or "True")
        return Wish(holds=holds, told="condition met", lacks=partial(_told_condition, kind))
    if sort.casefold() == "jsonpath" and rest:
        return _has_value(rest)
    raise Usage(
        f'--for "{text}": must be ready, condition=TYPE[=STATUS], jsonpath={{PATH}}[=VALUE], '
        "create or delete"
    )


def _still_there(found: Document | None) -> str:
    held = [str(name) for name in list_at(found, ["metadata", "finalizers"])]
    if not string_at(found, ["metadata", "deletionTimestamp"]):
        return "nobody has deleted it"
    return f"it is being deleted, and held by {', '.join(held)}" if held else "it is being deleted"


def _told_condition(kind: str, found: Document | None) -> str:
    for condition in list_at(found, ["status", "conditions"]):
        if string_at(condition, ["type"]).casefold() == kind.casefold():
            status, message = string_at(condition, ["status"]), string_at(condition, ["message"])
            return f"{kind} is {status}" + (f": {message}" if message else "")
    return f"it has no condition {kind} yet"


def _has_condition(kind: str, status: str) -> Holds:
    """A condition counts only if it is about the newest generation, where it says of which."""

    def holds(found: Document | None) -> bool:
        for condition in list_at(found, ["status", "conditions"]):
            if string_at(condition, ["type"]).casefold() != kind.casefold():
                continue
            observed = value_at(condition, ["observedGeneration"])
            observed = observed or value_at(found, ["status", "observedGeneration"])
            if _is_older(observed, value_at(found, ["metadata", "generation"])):
                return False
            return string_at(condition, ["status"]).casefold() == status.casefold()
        return False

    return holds


def _is_older(observed: Json, generation: Json) -> bool:
    return isinstance(observed, int) and isinstance(generation, int) and observed < generation


def _has_value(text: str) -> Wish:
    if text.startswith(("'", '"')):
        quoted, _, rest = text[1:].partition(text[0])
        text = quoted + rest
    path, closing, value = text.rpartition("}=") if "}=" in text else (text, "", "")
    path = templates.checked(path + "}" if closing else path)
    value = value.strip("'\"")

    def holds(found: Document | None) -> bool:
        if found is None:
            return False
        values = jsonpaths.find(path, found)
        if not closing:
            return bool(values)
        return len(values) == 1 and templates.shown(values[0]) == value

    def lacks(found: Document | None) -> str:
        values = [] if found is None else jsonpaths.find(path, found)
        shown = " ".join(map(templates.shown, values))
        return f"it is {shown}" if shown else "there is no such value yet"

    return Wish(holds=holds, told="condition met", lacks=lacks)


async def _wait(session: Session, arguments: argparse.Namespace, wish: Wish) -> int:
    limit = USUAL_TIMEOUT if arguments.timeout is None else arguments.timeout
    code = 0
    wanted = []
    if arguments.files:
        chosen = [await targets.of_item(session, item) for item in targets.items(arguments.files)]
    else:
        chosen = await targets.named(session, arguments.objects)
    for target in chosen:
        async for namespace, name in targets.names_of(session, arguments, target):
            wanted.append((target.resource, namespace, name))
    if not wanted and wish.told != "deleted":
        session.screen.note("no matching resources found")
        return failing.NO
    give_up = session.clock.elapsed() + limit
    progress = Progress(session.screen, session.clock, limit)
    progress.count = len(wanted)

    def look(found: Document | None) -> None:
        progress.lacks = wish.lacks(found)

    for resource, namespace, name in wanted:
        left = max(give_up - session.clock.elapsed(), timedelta())
        title = progress.subject = resource.title(name)
        try:
            async with progress.shown(), asyncio.timeout(left / timedelta(seconds=1)):
                await _until(session, resource, namespace, name, wish, look)
        except TimeoutError:
            lacks = f": {progress.lacks}" if progress.lacks else ""
            session.screen.note(f"timed out waiting for {arguments.condition} on {title}{lacks}")
            code = failing.NO
        except SpinneyError as error:
            session.screen.note(failing.text(error))
            code = max(code, failing.exit_code(error))
        else:
            session.screen.line(f"{title} {wish.told}")
        progress.done += 1
    return code


async def until_gone(
    session: Session, resource: Resource, namespace: str, name: str, uid: str
) -> None:
    """Wait until an object is gone, or another one has its name."""

    def is_gone(found: Document | None) -> bool:
        return found is None or (bool(uid) and string_at(found, ["metadata", "uid"]) != uid)

    wish = Wish(holds=is_gone, told="deleted", lacks=_still_there, may_be_missing=True)
    await _until(session, resource, namespace, name, wish)


async def _until(
    session: Session,
    resource: Resource,
    namespace: str,
    name: str,
    wish: Wish,
    look: Look = lambda _found: None,
) -> None:
    """Wait until a wish holds, and have each state before that looked at.

    Raises NotFound where the object is not there and must be.
    """
    selection = Selection(namespace=namespace, fields=f"metadata.name={name}")
    while True:
        page = await session.client.page(resource, selection)
        items = list_at(page, ["items"])
        found = items[0] if items and isinstance(items[0], dict) else None
        if wish.holds(found):
            return
        look(found)
        if found is None and not wish.may_be_missing:
            raise NotFound(f'{resource.full_name} "{name}" not found')
        since = string_at(page, ["metadata", "resourceVersion"])
        try:
            async with aclosing(session.watch(resource, selection).events(since)) as events:
                async for event in events:
                    if event.type == watching.BOOKMARK:
                        continue
                    now = None if event.type == watching.DELETED else event.object
                    if wish.holds(now):
                        return
                    look(now)
                    if now is None and not wish.may_be_missing:
                        raise NotFound(f'{resource.full_name} "{name}" was deleted meanwhile')
        except Expired:
            continue
