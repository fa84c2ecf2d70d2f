"""`spinney plan`: what applying changed sets would do, step by step, before anything is done."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence

from spinney.api import groupkinds, labels
from spinney.app.rehearsing import plans
from spinney.app.rehearsing.plans import Plan, Step
from spinney.cli import applying, connecting, failing, finding, printing, revising, screen, targets
from spinney.cli.connecting import Session
from spinney.cli.screen import BOLD, CYAN, DIM, GREEN, RED, YELLOW, Line
from spinney.cli.targets import Item
from spinney.cli.usage import Usage
from spinney.decisions.updates.history import Difference
from spinney.kube.client import Selection, Write
from spinney.meta.documents import Document, Json
from spinney.meta.errors import ApiError, NotFound, SpinneyError
from spinney.meta.references import GroupKind

_OF_THE_SET = (
    groupkinds.SCALING_GROUP,
    groupkinds.CLIQUE,
    groupkinds.GANG,
    groupkinds.SERVICE,
    groupkinds.SERVICE_ACCOUNT,
    groupkinds.ROLE,
    groupkinds.ROLE_BINDING,
    groupkinds.AUTOSCALER,
    groupkinds.REVISION,
    groupkinds.CLAIM,
)
_OF_THE_NAMESPACE = (groupkinds.CLAIM_TEMPLATE,)
_OF_ALL = (
    groupkinds.NODE,
    groupkinds.POD,
    groupkinds.TOPOLOGY,
    GroupKind(group="scheduling.k8s.io", kind="PriorityClass"),
)


def run(arguments: argparse.Namespace) -> int:
    """Plan; returns 0 where everything would come to its end, 1 where something would block."""
    if not arguments.files:
        raise Usage("say which manifests: -f FILE, -f DIR, or -f - for standard input")
    items = targets.items(arguments.files)
    return connecting.talk(arguments, lambda session: _plan(session, arguments, items))


async def _plan(session: Session, arguments: argparse.Namespace, items: Sequence[Item]) -> int:
    code, shown = 0, 0
    told: list[Json] = []
    for item in items:
        try:
            target = await targets.of_item(session, item)
            if target.resource.group_kind != groupkinds.SET:
                title = target.resource.title(item.name)
                session.screen.note(f"{title} is left out: only PodCliqueSets are planned")
                continue
            found = await _planned(session, arguments, item)
        except SpinneyError as error:
            session.screen.note(applying.located(error, item))
            code = max(code, failing.exit_code(error))
            continue
        shown += 1
        code = max(code, 0 if found.is_complete else failing.NO)
        if arguments.output == "json":
            told.append(as_document(found))
            continue
        if shown > 1:
            session.screen.line()
        for line in lines(found):
            session.screen.line(session.screen.parts(line))
    if told:
        whole: Json = told[0] if len(told) == 1 else {"plans": told}
        session.screen.write(printing.json_text(whole))
    if not shown and not code:
        raise Usage("no PodCliqueSet is among the manifests")
    return code


async def _planned(session: Session, arguments: argparse.Namespace, item: Item) -> Plan:
    """Return the plan of one set: as the server would store it, on the objects there are."""
    target = await targets.of_item(session, item)
    document = applying.prepared(item.document, target.namespace)
    write = Write(manager=arguments.field_manager, dry_run=True, force=arguments.force_conflicts)
    answer = await session.client.apply(target.resource, target.namespace, document, write)
    changed = _whole(target.resource.api_version, target.resource.kind, answer.document)
    there = await _world(session, target.namespace, item.name)
    try:
        now = await session.client.get(target.resource, target.namespace, item.name)
        there.append(_whole(target.resource.api_version, target.resource.kind, now))
    except NotFound:
        pass
    return plans.plan(there, changed, session.clock.now())


def _whole(api_version: str, kind: str, document: Document) -> Document:
    return {"apiVersion": api_version, "kind": kind, **document}


async def _world(session: Session, namespace: str, name: str) -> list[Document]:
    """Return all that matters to a set, as far as it may be read."""
    own = Selection(namespace=namespace, labels=f"{labels.PART_OF}={name}")
    found: list[Document] = []
    for kinds, selection in (
        (_OF_THE_SET, own),
        (_OF_THE_NAMESPACE, Selection(namespace=namespace)),
        (_OF_ALL, Selection()),
    ):
        for kind in kinds:
            found += await _objects(session, kind, selection)
    if not any(document["kind"] == groupkinds.POD.kind for document in found):
        found += await _objects(session, groupkinds.POD, own)
    return found


async def _objects(session: Session, kind: GroupKind, selection: Selection) -> list[Document]:
    resource = await finding.resource_of(session, kind)
    if resource is None:
        return []
    try:
        items = await session.client.objects(resource, selection)
    except ApiError as error:
        if error.code not in (401, 403, 404, 405):
            raise
        session.screen.note(f"{resource.full_name} cannot be read: the plan leaves them out")
        return []
    return [_whole(resource.api_version, resource.kind, item) for item in items]


# What is shown


def lines(plan: Plan) -> Iterator[Line]:
    """Yield a plan as people read it."""
    yield [(f"{plan.name}: ", BOLD), (_sentence(plan), "" if plan.is_complete else RED)]
    yield [("what rolls", DIM)]
    width = max((len(roll.clique) for roll in plan.rolls), default=0)
    for roll in plan.rolls:
        word = "rolls" if roll.is_replaced else "is made" if plan.is_new else "stays"
        yield [
            (f"  {roll.clique:<{width}}  ", ""),
            (f"{word:<7}", YELLOW if roll.is_replaced else GREEN),
            (f"  {roll.why}", ""),
        ]
        yield from _changes(roll.changes, "      ")
    if plan.other_changes:
        yield [("what else changes, and replaces no pod", DIM)]
        yield from _changes(plan.other_changes, "  ")
    if plan.steps:
        yield [("steps", DIM)]
        yield from _steps(plan.steps)
    if not plan.is_new:
        yield [("at the worst", DIM)]
        yield from _levels(plan)
    if plan.blocked:
        yield [("what would block", DIM)]
        for text in plan.blocked:
            yield [(f"  {screen.plain(text)}", RED)]
    if not plan.are_nodes_known:
        yield [("No node is known: whether there is room was not looked at.", YELLOW)]


def _sentence(plan: Plan) -> str:
    if plan.is_new:
        told = f"is new, and makes {plan.pods_made} pods"
    else:
        count = sum(step.sort == "pod" for step in plan.steps)
        cliques = sum(step.sort == "copy" for step in plan.steps)
        parts = []
        if count:
            parts.append(f"{count} pod{'s' if count != 1 else ''}")
        if cliques:
            parts.append(f"{cliques} clique{'s' if cliques != 1 else ''} of groups")
        told = f"replaces {' and '.join(parts)}" if parts else "replaces nothing"
    return told if plan.is_complete else f"{told}, and does not come to its end"


def _changes(found: Iterable[Difference], indent: str) -> Iterator[Line]:
    for difference in found:
        yield [(f"{indent}{revising.told(difference)}", CYAN)]


def _steps(steps: Sequence[Step]) -> Iterator[Line]:
    """Yield what goes, replica by replica; what stands on lines of its own goes side by side."""
    turns: list[tuple[int, dict[str, list[str]]]] = []
    for step in steps:
        if not turns or turns[-1][0] != step.replica:
            turns.append((step.replica, {}))
        if step.sort != "replica":
            turns[-1][1].setdefault(step.component, []).append(step.subject)
    for number, (replica, components) in enumerate(turns, 1):
        yield [(f"  {number}. replica {replica}", BOLD)]
        for component, subjects in components.items():
            yield [(f"     {component}: ", ""), (", ".join(subjects), CYAN)]


def _levels(plan: Plan) -> Iterator[Line]:
    for level in plan.levels:
        if level.sort != "set" and level.lowest >= level.before:
            continue
        needs = f", {level.needed} needed" if level.needed else ""
        is_low = level.lowest < level.needed or (level.sort == "set" and not level.lowest)
        text = f"  {level.sort} {level.name}: {level.lowest} of {level.before}{needs}"
        yield [(text, RED if is_low and level.before else "")]
    away = [f"{plan.pods_away_most} pod{'s' if plan.pods_away_most != 1 else ''}"]
    away += [f"{value} {name}" for name, value in plan.resources_away_most.items()]
    yield [(f"  away at once: {', '.join(away)}", "")]


def as_document(plan: Plan) -> Document:
    """Return a plan as programs read it."""
    rolls: list[Json] = [
        {
            "clique": roll.clique,
            "group": roll.group,
            "replaced": roll.is_replaced,
            "why": roll.why,
            "changes": [_change(each) for each in roll.changes],
        }
        for roll in plan.rolls
    ]
    steps: list[Json] = [
        {
            "sort": step.sort,
            "replica": step.replica,
            "subject": step.subject,
            "component": step.component,
            "why": step.why,
        }
        for step in plan.steps
    ]
    levels: list[Json] = [
        {
            "sort": level.sort,
            "name": level.name,
            "needed": level.needed,
            "before": level.before,
            "lowest": level.lowest,
        }
        for level in plan.levels
    ]
    return {
        "name": plan.name,
        "namespace": plan.namespace,
        "new": plan.is_new,
        "complete": plan.is_complete,
        "rolls": rolls,
        "otherChanges": [_change(each) for each in plan.other_changes],
        "steps": steps,
        "levels": levels,
        "podsMade": plan.pods_made,
        "podsAwayMost": plan.pods_away_most,
        "resourcesAwayMost": {**plan.resources_away_most},
        "blocked": [*plan.blocked],
        "nodesKnown": plan.are_nodes_known,
    }


def _change(difference: Difference) -> Json:
    return {"path": difference.path, "before": difference.before, "after": difference.after}
