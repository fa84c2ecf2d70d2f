"""`spinney logs`: what containers wrote, of one pod or of many at once.

Lines of several pods are put in the order in which they were written, each with its pod in front.
With `-f` pods are followed as they come, restart and go, across lost connections.
"""

from __future__ import annotations

import argparse

from spinney.api import groupkinds, labels
from spinney.cli import connecting, failing, finding, insight, reading
from spinney.cli.connecting import Session
from spinney.cli.gathering import Gathering, Part
from spinney.cli.reading import Query, Tap
from spinney.cli.tails import Printer
from spinney.cli.usage import Usage
from spinney.decisions.causes import scenes
from spinney.kube.client import Selection
from spinney.kube.resources import Resource
from spinney.meta.documents import Document, string_at
from spinney.meta.errors import SpinneyError
from spinney.meta.records import Record
from spinney.meta.references import GroupKind

MERGED_MOST = 64
"""Of how many containers lines are put in order; of more they are shown one after the other."""


class Meant(Record):
    """Whose logs are meant."""

    pods: Resource
    selection: Selection
    subject: finding.Found | None = None
    """The object that was named."""

    @property
    def is_one_pod(self) -> bool:
        """Whether it is a single pod."""
        return self.subject is not None and self.subject.ref.kind == groupkinds.POD


def run(arguments: argparse.Namespace) -> int:
    """Print logs; returns the exit code."""
    if bool(arguments.objects) == bool(arguments.selector):
        raise Usage("say whose logs: NAME of a set, group, clique, gang or pod, or -l LABELS")
    if arguments.follow and arguments.previous:
        raise Usage("-f and -p exclude each other: the run before has ended")
    if arguments.since is not None and arguments.since_time is not None:
        raise Usage("--since and --since-time exclude each other")
    if arguments.tail is not None and arguments.tail < -1:
        raise Usage(f"--tail {arguments.tail}: must be a number of lines, or -1 for all")
    return connecting.talk(arguments, lambda session: _logs(session, arguments))


async def _logs(session: Session, arguments: argparse.Namespace) -> int:
    meant = await _meant(session, arguments)
    if arguments.follow:
        return await _follow(session, arguments, meant)
    pods = await session.client.objects(meant.pods, meant.selection)
    if not pods:
        session.screen.note(_nothing(session, meant))
        return failing.NO
    taps = [tap for pod in sorted(pods, key=scenes.by_name) for tap in _taps(arguments, pod)]
    if not taps:
        raise Usage(_no_container(arguments, pods))
    is_single = len(taps) == 1
    if is_single and not arguments.prefix:
        query = _query(session, arguments, is_single=True)
        await reading.copy(session, taps[0], query, has_stamps=arguments.timestamps)
        return 0
    return await _merge(session, arguments, meant, taps)


async def _meant(session: Session, arguments: argparse.Namespace) -> Meant:
    pods = (await session.client.resources()).named("pods")
    if arguments.selector:
        selection = Selection(namespace=session.namespace, labels=arguments.selector)
        return Meant(pods=pods, selection=selection)
    found = await finding.meant(session, arguments.objects)
    name = found.ref.name
    if found.ref.kind == groupkinds.POD:
        selection = Selection(namespace=found.ref.namespace, fields=f"metadata.name={name}")
        return Meant(pods=pods, selection=selection, subject=found)
    key = _KEYS.get(found.ref.kind)
    if key is None:
        raise Usage(
            f"{found.resource.title(name)} has no pods of its own: name a set, group, clique, gang "
            "or pod, or give -l LABELS"
        )
    selection = Selection(namespace=found.ref.namespace, labels=f"{key}={name}")
    return Meant(pods=pods, selection=selection, subject=found)


_KEYS: dict[GroupKind, str] = {
    groupkinds.SET: labels.PART_OF,
    groupkinds.SCALING_GROUP: labels.SCALING_GROUP,
    groupkinds.CLIQUE: labels.PODCLIQUE,
    groupkinds.GANG: labels.PODGANG,
}


def _nothing(session: Session, meant: Meant) -> str:
    if meant.subject is None:
        return f"No pods found in {session.namespace} namespace."
    title = meant.subject.resource.title(meant.subject.ref.name)
    return f"{title} has no pods yet: spinney why {title} tells why"


def _taps(arguments: argparse.Namespace, pod: Document) -> list[Tap]:
    """Return what can be read of a pod."""
    found = reading.taps_of(pod)
    if arguments.container:
        return [tap for tap in found if tap.container == arguments.container]
    return [tap for tap in found if not tap.is_first]


def _no_container(arguments: argparse.Namespace, pods: list[Document]) -> str:
    names = dict.fromkeys(tap.container for pod in pods for tap in reading.taps_of(pod))
    return f'no pod has a container "{arguments.container}"; there are: {", ".join(names)}'


def _query(session: Session, arguments: argparse.Namespace, *, is_single: bool) -> Query:
    since = arguments.since_time
    if arguments.since is not None:
        since = session.clock.now() - arguments.since
    tail = arguments.tail
    if tail is None:
        tail = -1 if is_single else insight.TAIL
    return Query(previous=arguments.previous, since=since, tail=None if tail == -1 else tail)


async def _merge(
    session: Session, arguments: argparse.Namespace, meant: Meant, taps: list[Tap]
) -> int:
    """Print the lines of several containers in the order they were written."""
    begun = [tap for tap in taps if tap.has_previous] if arguments.previous else taps
    begun = [tap for tap in begun if tap.has_begun]
    if len(begun) < len(taps):
        waiting = len({tap.pod for tap in taps if tap not in begun})
        what = "have no earlier run" if arguments.previous else "have not started yet"
        session.screen.note(f"{waiting} pods {what}")
    printer = Printer(session.screen, begun, arguments.prefix is not False, arguments.timestamps)
    query = _query(session, arguments, is_single=meant.is_one_pod)
    failures: list[SpinneyError] = []
    if len(begun) > MERGED_MOST:
        session.screen.note(f"{len(begun)} containers: their lines are not put in order of time")
        for tap in begun:
            failures += await reading.merge(session, [tap], query, printer)
    else:
        failures = await reading.merge(session, begun, query, printer)
    for error in failures:
        session.screen.note(failing.text(error))
    if failures and len(failures) == len(begun):
        return max(map(failing.exit_code, failures))
    return 0


async def _follow(session: Session, arguments: argparse.Namespace, meant: Meant) -> int:
    parts = [Part(resource=meant.pods, selection=meant.selection)]
    if meant.subject is not None and not meant.is_one_pod:
        own = Selection(
            namespace=meant.subject.ref.namespace, fields=f"metadata.name={meant.subject.ref.name}"
        )
        parts.append(Part(resource=meant.subject.resource, selection=own))
    follower = _Follower(session, arguments, meant)
    try:
        gathered = Gathering(session, parts)
        async with gathered.watched():
            while not await follower.look(gathered):
                await gathered.wait_for_news()
    finally:
        await follower.close()
    return 0


class _Follower:
    """Opens a tap for every run of every container, as they come."""

    def __init__(self, session: Session, arguments: argparse.Namespace, meant: Meant) -> None:
        self._session = session
        self._arguments = arguments
        self._meant = meant
        self._taps = reading.Taps(session)
        self._printer: Printer | None = None

    async def close(self) -> None:
        """Let go of everything."""
        await self._taps.close()

    async def look(self, gathered: Gathering) -> bool:
        """Open what is new; returns whether nothing more can come."""
        scene = gathered.scene()
        pods = scene.of_kind(groupkinds.POD)
        taps = [tap for pod in pods for tap in _taps(self._arguments, pod)]
        if self._printer is None:
            self._begin(pods, taps)
        assert self._printer is not None
        self._printer.widen(taps)
        for tap in taps:
            if tap.has_begun:
                self._taps.open(tap, self._printer, gathered)
        return self._is_over(pods, scene) and await self._taps.all_ended()

    def _begin(self, pods: list[Document], taps: list[Tap]) -> None:
        """Take what is there at first: of these not all that was ever written is told."""
        if self._arguments.container and pods and not taps:
            raise Usage(_no_container(self._arguments, pods))
        is_single = self._meant.is_one_pod and len(taps) <= 1
        has_prefix = self._arguments.prefix
        if has_prefix is None:
            has_prefix = not is_single
        stamps = self._arguments.timestamps
        self._printer = Printer(self._session.screen, taps, has_prefix, stamps)
        first = _query(self._session, self._arguments, is_single=is_single)
        self._taps.first = {tap.key for tap in taps}
        self._taps.query = first
        if not any(tap.has_begun for tap in taps):
            self._session.screen.note("nothing has started yet: waiting (Ctrl-C ends it)")

    def _is_over(self, pods: list[Document], scene: scenes.Scene) -> bool:
        subject = self._meant.subject
        if subject is None:
            return False
        if self._meant.is_one_pod:
            return all(_has_ended(pod) for pod in pods)
        there = scene.get(subject.ref)
        if there is None:
            return not pods
        phase = string_at(there, ["status", "phase"])
        return phase in ("Succeeded", "Failed") and all(map(_has_ended, pods))


def _has_ended(pod: Document) -> bool:
    return string_at(pod, ["status", "phase"]) in ("Succeeded", "Failed")
