"""Why a gang is not placed, or not ready; and why a node takes no pods."""

from __future__ import annotations

from collections.abc import Iterable

from spinney.api import groupkinds, labels
from spinney.decisions.causes import looks, pods, refusals, scenes
from spinney.decisions.causes.looks import Link, Look
from spinney.meta.documents import Document, string_at
from spinney.meta.references import Ref


def explain(look: Look, gang: Document) -> Link:
    """Return what keeps a gang from running."""
    ref = scenes.ref_of(gang)
    if scenes.is_deleted(gang):
        return looks.ending(gang)
    if not scenes.holds(gang, "Initialized"):
        return _unwhole(look, gang)
    if not scenes.holds(gang, "Scheduled"):
        return _unplaced(look, gang)
    if scenes.holds(gang, "Ready"):
        return looks.well(gang, "is placed, and enough of its pods are ready")
    ready = scenes.condition(gang, "Ready")
    below = look.unwell(members_of(look, gang))
    if not below:
        return looks.lags(gang, "is placed, and waits to be told that its pods are ready")
    return Link(
        about=ref,
        reason=string_at(ready, ["reason"]) or "NotReady",
        sentence="is placed, and too few of its pods are ready",
        since=scenes.transition(ready),
        below=below,
    )


def member_names(gang: Document) -> list[Ref]:
    """Return the PodCliques a gang consists of."""
    place = scenes.namespace_of(gang)
    names = (string_at(group, ["name"]) for group in scenes.objects_at(gang, "spec", "podgroups"))
    return [Ref(kind=groupkinds.CLIQUE, namespace=place, name=name) for name in names if name]


def members_of(look: Look, gang: Document) -> list[Document]:
    """Return the PodCliques a gang consists of, as far as they are there and its own."""
    found = (look.scene.get(ref) for ref in member_names(gang))
    name = scenes.name_of(gang)
    return [each for each in found if each and scenes.label(each, labels.PODGANG) == name]


def _unwhole(look: Look, gang: Document) -> Link:
    """Tell why a gang lacks pods: what keeps them, or their PodCliques, from being made."""
    condition = scenes.condition(gang, "Initialized")
    members = members_of(look, gang)
    lacking = (missing_pods(look, clique) for clique in members)
    below = tuple(link for link in lacking if link is not None)
    if len(members) < len(member_names(gang)):
        set_name = scenes.label(gang, labels.PART_OF)
        ref = Ref(kind=groupkinds.SET, namespace=scenes.namespace_of(gang), name=set_name)
        set_ = look.scene.get(ref)
        below += looks.complaints(set_) if set_ is not None else ()
    message = scenes.message_of(condition)
    ref = scenes.ref_of(gang)
    wait = "wait a moment; if it stays so, see whether controllers run: spinney status, "
    return Link(
        about=ref,
        reason="NotInitialized",
        sentence=f"is not whole yet: {message or 'nobody says why'}",
        since=scenes.transition(condition),
        remedy="" if below else wait + looks.describe(ref),
        below=below,
    )


def missing_pods(look: Look, clique: Document) -> Link | None:
    """Return why a PodClique has fewer pods than it wants, None where it has them."""
    wanted = scenes.number_at(clique, "spec", "replicas")
    there = look.scene.related(groupkinds.POD, clique, labels.PODCLIQUE)
    staying = [pod for pod in there if not scenes.is_deleted(pod)]
    if len(staying) >= wanted:
        return None
    complaints = looks.complaints(clique)
    leaving = look.unwell(pod for pod in there if scenes.is_deleted(pod))
    unseen = looks.not_looked_at(clique)
    below = complaints or leaving or ((unseen,) if unseen is not None else ())
    ref = scenes.ref_of(clique)
    event = look.scene.last_event(clique)
    remedy = f"wait a moment; if it stays so, see {looks.describe(ref)}"
    told = f"has {len(staying)} of {wanted} pods"
    if event is not None and not below:
        told = f"{told}: {scenes.one_line(string_at(event, ['message']))}"
        remedy = "do away with what it names; it is tried again by itself"
    return Link(
        about=ref,
        reason="PodsMissing",
        sentence=told,
        remedy="" if below else remedy,
        below=below,
    )


def _unplaced(look: Look, gang: Document) -> Link:
    """Tell why a whole gang has no place."""
    ref = scenes.ref_of(gang)
    condition = scenes.condition(gang, "Scheduled")
    since = scenes.transition(condition)
    there = look.scene.related(groupkinds.POD, gang, labels.PODGANG)
    base = _base_waited_for(look, there)
    if base is not None:
        return Link(
            about=ref,
            reason="BaseGangNotPlaced",
            sentence="waits for the base gang of its set replica, which is placed first",
            brief="waits for its base gang",
            since=since,
            below=(base,),
        )
    trouble = pods.no_nodes(look, ref)
    if trouble is not None:
        return trouble
    told = _refusal(gang, there)
    if told:
        return Link(
            about=ref,
            reason="Unschedulable",
            sentence=f"is not placed: {told}",
            since=since,
            remedy="make room, add nodes, or ask for less; it is tried again by itself",
        )
    if there and all(pods.node_of(pod) for pod in there):
        return looks.lags(gang, "has a node for every pod, and waits to be told so")
    scheduler = scenes.label(gang, labels.SCHEDULER_NAME) or "default-scheduler"
    return Link(
        about=ref,
        reason="NoScheduler",
        sentence=f"is not placed, and no scheduler has said why (it is for {scheduler})",
        since=since,
        remedy=f"see whether a scheduler of that name runs; {looks.describe(ref)}",
    )


def unplaced(look: Look, documents: Iterable[Document]) -> tuple[Link, ...]:
    """Return what is told of the gangs of some objects that have no place yet.

    Nothing else need be told of pods that wait for one.
    """
    names = dict.fromkeys(
        (scenes.namespace_of(document), scenes.label(document, labels.PODGANG))
        for document in documents
    )
    found = []
    for namespace, name in names:
        ref = Ref(kind=groupkinds.GANG, namespace=namespace, name=name)
        gang = look.scene.get(ref)
        if gang is not None and not scenes.holds(gang, "Scheduled"):
            found.append(look.at(ref))
    return tuple(link for link in found if not link.is_well)


def _base_waited_for(look: Look, there: list[Document]) -> Link | None:
    for pod in there:
        base = pods.base_gang_of(pod)
        if base is not None and pods.gates_of(pod):
            link = look.at(base)
            document = look.scene.get(base) or {}
            if not link.is_well and not scenes.holds(document, "Scheduled"):
                return link
    return None


def _refusal(gang: Document, there: list[Document]) -> str:
    """Return what a scheduler says of a gang, or of its pods."""
    told = refusals.of_gang(gang)
    if told:
        return told
    for pod in there:
        condition = scenes.condition(pod, "PodScheduled")
        if condition.get("status") == "False" and string_at(condition, ["message"]):
            return scenes.message_of(condition)
    return ""


def explain_node(_look: Look, node: Document) -> Link:
    """Return what keeps a node from taking pods."""
    ref = scenes.ref_of(node)
    ready = scenes.condition(node, "Ready")
    if ready.get("status") != "True":
        told = scenes.message_of(ready)
        return Link(
            about=ref,
            reason=string_at(ready, ["reason"]) or "NodeNotReady",
            sentence="is not ready" + (f": {told}" if told else ", and does not say why"),
            since=scenes.transition(ready),
            remedy="see whether the node is up, and its agent runs (embedded: spinney status)",
        )
    if scenes.is_cordoned(node):
        return Link(
            about=ref,
            reason="Cordoned",
            sentence="is cordoned: it takes no new pods",
            remedy=f"kubectl uncordon {ref.name}, once it may take pods again",
        )
    return looks.well(node, "is ready")
