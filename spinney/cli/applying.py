"""`spinney apply`: makes objects as manifests say, by server-side apply."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from datetime import timedelta

from spinney.cli import connecting, failing, manifests, printing, screen, targets
from spinney.cli.connecting import Session
from spinney.cli.manifests import Found
from spinney.cli.targets import Item, Target
from spinney.cli.usage import Usage
from spinney.kube.client import Write
from spinney.kube.resources import NoSuchResource
from spinney.meta.documents import (
    Document,
    Json,
    leaves,
    list_at,
    same,
    string_at,
    value_at,
    with_value,
    without,
)
from spinney.meta.errors import Invalid, NotFound, SpinneyError

_UNKNOWN_FIELD = re.compile(r'field "([^"]+)"')

DEFINITION_WAIT = timedelta(seconds=10)
"""How long a kind that was just defined may take until it is served."""

DEFINITION_PERIOD = timedelta(milliseconds=100)


def run(arguments: argparse.Namespace) -> int:
    """Apply manifests; returns the exit code."""
    refuse_kustomize(arguments)
    if not arguments.files:
        raise Usage("say which manifests: -f FILE, -f DIR, or -f - for standard input")
    given = manifests.read(arguments.files)
    if arguments.dry_run == "client":
        return _check_here(arguments, given)
    items = targets.items_of(given)
    return connecting.talk(arguments, lambda session: _apply(session, arguments, items))


def refuse_kustomize(arguments: argparse.Namespace) -> None:
    """Refuse `-k`, and say what to do; raises Usage."""
    if arguments.kustomize:
        raise Usage(
            "-k is not done here: "
            f"kubectl kustomize {arguments.kustomize} | spinney {arguments.verb} -f -"
        )


def _check_here(arguments: argparse.Namespace, given: Sequence[Found]) -> int:
    """Check as `spinney validate` does, and show what would be sent."""
    from spinney.cli import validating

    results = validating.check(given, ())
    output = screen.for_call(arguments)
    if not all(result.is_valid for result in results):
        validating.write_faults(results, output.aside)
        return failing.NO
    if arguments.output in ("yaml", "json"):
        documents = (item.document for item in targets.items_of(given))
        printing.write_documents(documents, arguments.output, output.out)
        return 0
    for result in results:
        output.line(f"{result.ref.kind}/{result.ref.name} valid (client dry run)".lower())
    return 0


async def _apply(session: Session, arguments: argparse.Namespace, items: Sequence[Item]) -> int:
    """Apply each object; what fails is told with its file and line, the rest is done."""
    write = Write(
        manager=arguments.field_manager,
        dry_run=arguments.dry_run == "server",
        force=arguments.force_conflicts,
    )
    defined = {_defined_kind(item.document) for item in items} - {("", "")}
    code = 0
    shown: list[Document] = []
    for item in items:
        try:
            target = await _target(session, item, defined)
            done, document = await _apply_one(session, target, item, write)
        except SpinneyError as error:
            session.screen.note(located(error, item))
            code = max(code, failing.exit_code(error))
            continue
        title = target.resource.title(string_at(document, ["metadata", "name"]))
        if arguments.output == "text":
            session.screen.line(f"{title} {done}{' (server dry run)' if write.dry_run else ''}")
        elif arguments.output == "name":
            session.screen.line(title)
        else:
            shown.append(without(document, ["metadata", "managedFields"]))
    if shown:
        printing.write_documents(shown, arguments.output, session.screen.out)
    return code


def _defined_kind(document: Document) -> tuple[str, str]:
    """Return group and kind that a CustomResourceDefinition defines, empty for other objects."""
    if string_at(document, ["kind"]) != "CustomResourceDefinition":
        return "", ""
    return string_at(document, ["spec", "group"]), string_at(document, ["spec", "names", "kind"])


async def _target(session: Session, item: Item, defined: set[tuple[str, str]]) -> Target:
    """Return what an object is; waits for a kind that the same call defined."""
    group = string_at(item.document, ["apiVersion"]).rpartition("/")[0]
    is_defined_here = (group, string_at(item.document, ["kind"])) in defined
    give_up = session.clock.elapsed() + DEFINITION_WAIT
    while True:
        try:
            return await targets.of_item(session, item)
        except NoSuchResource:
            if not is_defined_here or session.clock.elapsed() > give_up:
                raise
        await session.clock.sleep(DEFINITION_PERIOD)
        await session.client.resources(anew=True)


async def _apply_one(
    session: Session, target: Target, item: Item, write: Write
) -> tuple[str, Document]:
    """Apply one object; returns what was done, and the object."""
    resource, namespace = target.resource, target.namespace
    if not item.name:
        raise Usage(
            f"{item.place}: metadata.name: Required value: apply finds an object by its name; "
            "one with generateName can only be created (kubectl create)"
        )
    document = prepared(item.document, namespace)
    try:
        before = await session.client.get(resource, namespace, item.name)
    except NotFound:
        before = {}
    answer = await session.client.apply(resource, namespace, document, write)
    if not before:
        return "created", answer.document
    is_same = _says_the_same(before, answer.document, document, write.manager)
    return "unchanged" if is_same else "configured", answer.document


def _says_the_same(before: Document, after: Document, applied: Document, manager: str) -> bool:
    """Whether an apply changed nothing; what others wrote meanwhile does not count."""
    return _claimed(before, manager) == _claimed(after, manager) and all(
        same(value_at(before, path), value_at(after, path)) for path, _ in leaves(applied)
    )


def _claimed(document: Document, manager: str) -> list[Json]:
    """Return the fields that a manager holds of an object by applying it."""
    return [
        value_at(entry, ["fieldsV1"])
        for entry in list_at(document, ["metadata", "managedFields"])
        if string_at(entry, ["manager"]) == manager and string_at(entry, ["operation"]) == "Apply"
    ]


def prepared(document: Document, namespace: str) -> Document:
    """Return a manifest as a server takes it for an apply: without what only servers write."""
    document = without(document, ["metadata", "managedFields"])
    if namespace:
        document = with_value(document, ["metadata", "namespace"], namespace)
    return document


def located(error: SpinneyError, item: Item) -> str:
    """Return what is wrong with an object of a manifest, each fault with file and line."""
    causes = list_at(error.details, ["causes"]) if isinstance(error, Invalid) else []
    if causes:
        kind, name = string_at(item.document, ["kind"]), item.name
        return "\n".join(
            f"{item.place_of(string_at(cause, ['field']))}: {kind} {name}: "
            f"{string_at(cause, ['field'])}: {string_at(cause, ['message'])}"
            for cause in causes
        )
    told = failing.text(error)
    if item.place in told:
        return told
    named = _UNKNOWN_FIELD.search(told)
    return f"{item.place_of(named[1]) if named else item.place}: {told}"
