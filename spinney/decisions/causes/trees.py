"""The tree of a system: set, set replicas, groups, their replicas, PodCliques, pods.

Each branch has its state in a word, how much of it is ready, and why the rest is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

import msgspec

from spinney.api import groupkinds, labels
from spinney.decisions.causes import chains, containers, gangs, pods, scenes
from spinney.decisions.causes.looks import Link, Look
from spinney.decisions.causes.scenes import Scene
from spinney.meta.documents import Document, list_at, object_at, string_at
from spinney.meta.records import Record
from spinney.meta.references import Ref

READY, IDLE, DELETING, PENDING = "Ready", "Idle", "Terminating", "Pending"


class Branch(Record):
    """One object, or one replica that is no object of its own."""

    sort: str
    """What it is: `PodCliqueSet`, `replica`, `Pod` …"""

    name: str
    state: str
    about: Ref | None = None
    """The object; None for a replica."""

    ready: int | None = None
    wanted: int | None = None
    node: str = ""
    restarts: int = 0
    since: datetime | None = None
    """When it was made."""

    gang: str = ""
    """For a replica: the gang that is placed for it."""

    why: str = ""
    """Why it is not ready, in a sentence."""

    below: tuple[Branch, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether nothing is to be said against it."""
        return not self.why and self.state in (READY, IDLE, "Running", "Succeeded")


def tree(scene: Scene, about: Ref) -> Branch:
    """Return the tree of an object, whatever it is, and whether or not it is there."""
    return _Grower(scene).of(about)


def roots(scene: Scene, namespace: str | None = None) -> list[Ref]:
    """Return the objects that trees of all that is there begin with.

    These are sets, and whatever of their parts belongs to no set that is there.
    """
    there = {
        (scenes.namespace_of(set_), scenes.name_of(set_))
        for set_ in scene.of_kind(groupkinds.SET, namespace)
    }
    found = [scenes.ref_of(set_) for set_ in scene.of_kind(groupkinds.SET, namespace)]
    for kind in (groupkinds.SCALING_GROUP, groupkinds.CLIQUE, groupkinds.POD):
        for document in scene.of_kind(kind, namespace):
            place = scenes.namespace_of(document)
            if (place, scenes.label(document, labels.PART_OF)) in there:
                continue
            if not any(scene.get(ref) for ref in _owners(document)):
                found.append(scenes.ref_of(document))
    return found


def _owners(document: Document) -> Iterable[Ref]:
    place = scenes.namespace_of(document)
    for key, kind in (
        (labels.SCALING_GROUP, groupkinds.SCALING_GROUP),
        (labels.PODCLIQUE, groupkinds.CLIQUE),
    ):
        if name := scenes.label(document, key):
            yield Ref(kind=kind, namespace=place, name=name)


def pods_of(branch: Branch) -> list[Branch]:
    """Return the pods of a branch, in order."""
    if branch.about is not None and branch.about.kind == groupkinds.POD:
        return [branch]
    return [pod for below in branch.below for pod in pods_of(below)]


class _Grower:
    """Grows trees of one scene."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._look: Look = chains.look(scene)

    def of(self, ref: Ref) -> Branch:
        document = self._scene.get(ref)
        if document is None:
            why = self._look.at(ref).sentence
            return Branch(sort=ref.kind.kind, name=ref.name, about=ref, state="Absent", why=why)
        if ref.kind == groupkinds.SET:
            return self._set(document)
        if ref.kind == groupkinds.SCALING_GROUP:
            return self._group(document)
        if ref.kind == groupkinds.CLIQUE:
            return self._clique(document)
        if ref.kind == groupkinds.GANG:
            return self._gang(document)
        if ref.kind == groupkinds.POD:
            return self._pod(document)
        if ref.kind == groupkinds.NODE:
            return self._node(document)
        return self._branch(document)

    # One object

    def _branch(
        self,
        document: Document,
        *,
        state: str = "",
        counter: str = "",
        below: Sequence[Branch] = (),
    ) -> Branch:
        ref = scenes.ref_of(document)
        link = self._look.at(ref)
        wanted = scenes.number_at(document, "spec", "replicas") if counter else None
        ready = scenes.number_at(document, "status", counter) if counter else None
        return Branch(
            sort=ref.kind.kind,
            name=ref.name,
            about=ref,
            state=state or _state(document, link),
            ready=ready,
            wanted=wanted,
            since=scenes.instant_at(document, "metadata", "creationTimestamp"),
            why="" if link.is_well else self._why(link, below),
            below=tuple(below),
        )

    def _why(self, link: Link, below: Sequence[Branch]) -> str:
        """Return why an object is not ready, where nothing below it in the tree says so.

        Then it says only what it is kept by itself.
        """
        if any(map(_says_why, below)):
            own = [each for each in link.below if each.about == link.about]
            return own[0].sentence if own else ""
        return _sentence(link)

    def _set(self, set_: Document) -> Branch:
        related = self._scene.related
        cliques = [
            clique
            for clique in related(groupkinds.CLIQUE, set_, labels.PART_OF)
            if not scenes.label(clique, labels.SCALING_GROUP)
        ]
        groups = related(groupkinds.SCALING_GROUP, set_, labels.PART_OF)
        placed = {
            scenes.name_of(gang): gang for gang in related(groupkinds.GANG, set_, labels.PART_OF)
        }
        indexes = {scenes.label(part, labels.SET_REPLICA_INDEX) for part in (*cliques, *groups)}
        cliques = _in_order(cliques, set_, "cliques", _index)
        groups = _in_order(groups, set_, "podCliqueScalingGroups", _index)
        replicas = []
        for index in sorted(indexes, key=_numeric):
            parts = [
                *(self._clique(each) for each in cliques if _index(each) == index),
                *(self._group(each) for each in groups if _index(each) == index),
            ]
            gang = placed.get(f"{scenes.name_of(set_)}-{index}")
            replicas.append(self._replica(index, gang, parts, is_outer=True))
        return self._branch(set_, counter="availableReplicas", below=replicas)

    def _replica(
        self, index: str, gang: Document | None, parts: Sequence[Branch], *, is_outer: bool
    ) -> Branch:
        """Return a replica of a set or a group, with the gang that is placed for it.

        The outermost replica of a gang says why it is not placed.
        """
        why = ""
        if gang is not None and is_outer and not scenes.holds(gang, "Scheduled"):
            link = self._look.of(gang)
            why = "" if link.is_well else _sentence(link)
        whole = all(part.is_whole for part in parts)
        phase = string_at(gang, ["status", "phase"]) if gang is not None else ""
        return Branch(
            sort="replica",
            name=index or "?",
            state=phase or (READY if whole else PENDING),
            gang=scenes.name_of(gang) if gang is not None else "",
            since=min((part.since for part in parts if part.since), default=None),
            why=why,
            below=tuple(parts),
        )

    def _group(self, group: Document) -> Branch:
        cliques = self._scene.related(groupkinds.CLIQUE, group, labels.SCALING_GROUP)
        replicas = []
        indexes = {_group_index(each) for each in cliques}
        for index in sorted(indexes, key=_numeric):
            inside = [each for each in cliques if _group_index(each) == index]
            inside = _in_order(inside, group, "cliqueNames", _group_index)
            ref = Ref(
                kind=groupkinds.GANG,
                namespace=scenes.namespace_of(group),
                name=scenes.label(inside[0], labels.PODGANG),
            )
            gang = self._scene.get(ref)
            parts = [self._clique(each) for each in inside]
            is_scaled = any(scenes.label(each, labels.BASE_PODGANG) for each in inside)
            replicas.append(self._replica(index, gang, parts, is_outer=is_scaled))
        return self._branch(group, counter="availableReplicas", below=replicas)

    def _clique(self, clique: Document) -> Branch:
        there = self._scene.related(groupkinds.POD, clique, labels.PODCLIQUE)
        return self._branch(
            clique, counter="readyReplicas", below=[self._pod(pod) for pod in there]
        )

    def _gang(self, gang: Document) -> Branch:
        phase = string_at(gang, ["status", "phase"])
        return self._branch(
            gang, state=phase, below=[self.of(ref) for ref in gangs.member_names(gang)]
        )

    def _pod(self, pod: Document) -> Branch:
        found = self._branch(pod, state=pod_state(pod))
        told = [status for _, status in containers.statuses(pod)]
        own = len(scenes.objects_at(pod, "spec", "initContainers"))
        return msgspec.structs.replace(
            found,
            node=pods.node_of(pod),
            restarts=sum(scenes.number_at(status, "restartCount") for status in told),
            ready=sum(status.get("ready") is True for status in told[own:]),
            wanted=len(told) - own,
        )

    def _node(self, node: Document) -> Branch:
        on_it = [
            self._pod(pod)
            for pod in self._scene.of_kind(groupkinds.POD)
            if pods.node_of(pod) == scenes.name_of(node)
        ]
        return self._branch(node, below=on_it)


def _index(document: Document) -> str:
    return scenes.label(document, labels.SET_REPLICA_INDEX)


def _group_index(document: Document) -> str:
    return scenes.label(document, labels.GROUP_REPLICA_INDEX)


def _in_order(
    parts: Sequence[Document], whole: Document, field: str, index: Callable[[Document], str]
) -> list[Document]:
    """Return the parts of an object as its template has them in order."""
    path = ["spec", field] if field == "cliqueNames" else ["spec", "template", field]
    told = [
        each if isinstance(each, str) else string_at(each, ["name"])
        for each in list_at(whole, path)
    ]
    ranks = {name: rank for rank, name in enumerate(told)}

    def rank(part: Document) -> int:
        prefix = f"{scenes.name_of(whole)}-{index(part)}-"
        return ranks.get(scenes.name_of(part).removeprefix(prefix), len(ranks))

    return sorted(parts, key=rank)


def _numeric(text: str) -> tuple[int, str]:
    return (int(text), "") if text.isascii() and text.isdecimal() and len(text) < 19 else (-1, text)


def _state(document: Document, link: Link) -> str:
    if scenes.is_deleted(document):
        return DELETING
    if link.reason == IDLE:
        return IDLE
    phase = string_at(document, ["status", "phase"])
    if phase in ("Failed", "Succeeded"):
        return phase
    return READY if link.is_well else PENDING if not _has_begun(document) else "NotReady"


def _has_begun(document: Document) -> bool:
    return any(
        scenes.number_at(document, "status", counter)
        for counter in ("readyReplicas", "availableReplicas")
    ) or scenes.holds(document, "MinAvailableBreached")


def pod_state(pod: Document) -> str:
    """Return what a pod is doing, in the word kubectl has for it where it has one."""
    if scenes.is_deleted(pod):
        return DELETING
    if pods.gates_of(pod) and not pods.node_of(pod):
        return "Gated"
    for _, status in containers.statuses(pod):
        waiting = string_at(object_at(status, ["state", "waiting"]), ["reason"])
        ended = object_at(status, ["state", "terminated"])
        if waiting and waiting != "PodInitializing":
            return waiting
        if ended and scenes.number_at(ended, "exitCode"):
            return string_at(ended, ["reason"]) or "Error"
    return string_at(pod, ["status", "reason"]) or string_at(pod, ["status", "phase"]) or PENDING


def _says_why(branch: Branch) -> bool:
    return bool(branch.why) or any(map(_says_why, branch.below))


def _sentence(link: Link) -> str:
    """Return why an object is not ready in a few words; where it says little, with the root."""
    if link.brief:
        return link.brief
    here = link
    while here.below:
        here = here.below[0]
    if here is link:
        return link.sentence
    other = f"{here.about.kind.kind} {here.about.name} " if here.about != link.about else ""
    return f"{link.sentence}: {other}{here.sentence}"
