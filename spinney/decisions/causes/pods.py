"""Why a pod is not ready."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from spinney.api import groupkinds, labels
from spinney.decisions.causes import containers, looks, refusals, scenes
from spinney.decisions.causes.looks import Link, Look
from spinney.decisions.making.pods import STARTS_AFTER
from spinney.meta.documents import Document, Json, list_at, string_at, strings, value_at
from spinney.meta.references import Ref


def explain(look: Look, pod: Document) -> Link:
    """Return what keeps a pod from being ready."""
    phase = string_at(pod, ["status", "phase"])
    if scenes.is_deleted(pod):
        return _ending(look, pod)
    if phase == "Succeeded":
        return looks.well(pod, "has ended, and ended well")
    if scenes.holds(pod, "Ready"):
        return looks.well(pod, "is ready")
    if phase == "Failed":
        return _failed(pod)
    if list_at(pod, ["spec", "schedulingGates"]) and not node_of(pod):
        return _gated(look, pod)
    if not node_of(pod):
        return _unplaced(look, pod)
    return _not_started(look, pod)


def node_of(pod: Document) -> str:
    """Return the node a pod has, "" where it has none."""
    return string_at(pod, ["spec", "nodeName"])


def _link(
    pod: Document,
    reason: str,
    sentence: str,
    remedy: str = "",
    *,
    below: tuple[Link, ...] = (),
    since: datetime | None = None,
    brief: str = "",
) -> Link:
    return Link(
        about=scenes.ref_of(pod),
        reason=reason,
        sentence=sentence,
        remedy=remedy,
        below=below,
        since=since or _since(pod),
        brief=brief,
    )


def _since(pod: Document) -> datetime | None:
    ready = scenes.transition(scenes.condition(pod, "Ready"))
    return ready or scenes.instant_at(pod, "metadata", "creationTimestamp")


def _ending(look: Look, pod: Document) -> Link:
    due = scenes.instant_at(pod, "metadata", "deletionTimestamp")
    grace = scenes.number_at(pod, "metadata", "deletionGracePeriodSeconds")
    node = _node_trouble(look, pod)
    if scenes.finalizers_of(pod):
        return looks.ending(pod)
    if node:
        force = looks.command("delete", scenes.ref_of(pod), " --force")
        return _link(
            pod,
            "Deleting",
            "is being deleted, and its node does not say that it has ended",
            f"bring the node back, or forget the pod: {force}",
            below=node,
            since=due,
        )
    if due is not None and look.scene.now - due > timedelta(seconds=1):
        force = looks.command("delete", scenes.ref_of(pod), " --force")
        return _link(
            pod,
            "Deleting",
            f"is being deleted, and has not ended in the {grace} s it was given",
            f"see whether its node's agent runs; forget the pod: {force}",
            since=due,
        )
    return _link(
        pod,
        "Deleting",
        f"is being deleted, and has {grace} s to end",
        "wait until it has ended; its successor follows by itself",
        since=due,
    )


def _failed(pod: Document) -> Link:
    reason = string_at(pod, ["status", "reason"])
    message = scenes.one_line(string_at(pod, ["status", "message"]))
    ended = next(iter(containers.ended_badly(pod)), None)
    told = ": ".join(part for part in (reason, message) if part)
    if ended is not None and not told:
        return Link(
            about=scenes.ref_of(pod),
            reason=ended.reason,
            sentence=f"has failed: {ended.sentence}",
            since=ended.since or _since(pod),
            remedy=ended.remedy,
            container=ended.container,
        )
    remedy = f"mend what it says; what it said last: {looks.command('logs', scenes.ref_of(pod))}"
    sentence = f"has failed: {told}" if told else "has failed, and no reason is given"
    return _link(pod, reason or "Failed", sentence, remedy)


# Held back


def gates_of(pod: Document) -> list[str]:
    """Return the names of the gates that hold a pod back."""
    return [string_at(gate, ["name"]) for gate in list_at(pod, ["spec", "schedulingGates"])]


def _gated(look: Look, pod: Document) -> Link:
    others = [gate for gate in gates_of(pod) if gate != labels.GATE]
    if others:
        return _link(
            pod,
            "SchedulingGated",
            f"is held back by the scheduling gates of others: {', '.join(others)}",
            "whoever put a gate there takes it away: find out what it waits for",
        )
    gang = gang_of(pod)
    if gang is None:
        return _link(
            pod,
            "SchedulingGated",
            f"is held back by the gate {labels.GATE}, and names no gang to wait for",
            "make pods by a PodCliqueSet: its gangs open the gate of their pods",
        )
    document = look.scene.get(gang)
    if document is None or not scenes.holds(document, "Initialized"):
        below = look.at(gang)
        sentence = "is held back until its gang is whole"
        return _link(
            pod,
            "GangNotWhole",
            sentence,
            _late(below),
            below=_unwell(below),
            brief="its gang is not whole",
        )
    base = base_gang_of(pod)
    if base is not None and not scenes.holds(look.scene.get(base) or {}, "Scheduled"):
        sentence = "is held back until the base gang of its set replica is placed"
        below = look.at(base)
        return _link(
            pod,
            "BaseGangNotPlaced",
            sentence,
            _late(below),
            below=_unwell(below),
            brief="its base gang is not placed",
        )
    return looks.lags(pod, "its gang is whole, and its gate is about to be opened")


def gang_of(pod: Document) -> Ref | None:
    """Return the gang a pod belongs to."""
    return _named_by(pod, labels.PODGANG)


def base_gang_of(pod: Document) -> Ref | None:
    """Return the gang that must be placed before a pod's own, where there is one."""
    return _named_by(pod, labels.BASE_PODGANG)


def _named_by(pod: Document, key: str) -> Ref | None:
    name = scenes.label(pod, key)
    if not name:
        return None
    return Ref(kind=groupkinds.GANG, namespace=scenes.namespace_of(pod), name=name)


def _unwell(link: Link) -> tuple[Link, ...]:
    return () if link.is_well else (link,)


def _late(link: Link) -> str:
    """Return what to do where an object waits for one that is well."""
    return "wait a moment: what it waited for has come" if link.is_well else ""


# Not placed


def _unplaced(look: Look, pod: Document) -> Link:
    condition = scenes.condition(pod, "PodScheduled")
    since = scenes.transition(condition)
    gang = gang_of(pod)
    document = look.scene.get(gang) if gang is not None else None
    if gang is not None and document is not None and not scenes.holds(document, "Scheduled"):
        below = _unwell(look.at(gang))
        if below:
            sentence = "has no node: its gang is placed as a whole, or not at all"
            brief = "its gang is not placed"
            return _link(pod, "GangNotPlaced", sentence, below=below, since=since, brief=brief)
    trouble = no_nodes(look, scenes.ref_of(pod))
    if trouble is not None:
        return trouble
    message = scenes.message_of(condition) if condition.get("status") == "False" else ""
    if document is not None and condition.get("reason") == "Unschedulable":
        message = refusals.of_gang(document) or message
    if message:
        return _link(
            pod,
            string_at(condition, ["reason"]) or "Unschedulable",
            f"has no node: {message}",
            "make room, add nodes, or ask for less; it is tried again by itself",
            since=since,
        )
    scheduler = string_at(pod, ["spec", "schedulerName"]) or "default-scheduler"
    return _link(
        pod,
        "NoScheduler",
        f"has no node, and no scheduler has said why (its schedulerName is {scheduler})",
        f"see whether a scheduler of that name runs; {looks.describe(scenes.ref_of(pod))}",
        since=since,
    )


def no_nodes(look: Look, about: Ref) -> Link | None:
    """Return that no node takes pods, None where some does or it is not known."""
    if not look.scene.knows(groupkinds.NODE):
        return None
    nodes = look.scene.of_kind(groupkinds.NODE)
    if not nodes:
        return Link(
            about=about,
            reason="NoNodes",
            sentence="there is no node at all",
            remedy="bring up nodes: spinney up --nodes local, or --nodes sim:4 to simulate some",
        )
    below = look.unwell(nodes)
    if len(below) < len(nodes):
        return None
    count = "the only node takes" if len(nodes) == 1 else f"none of {len(nodes)} nodes takes"
    return Link(about=about, reason="NoNodes", sentence=f"{count} pods", below=below)


# On a node


def _not_started(look: Look, pod: Document) -> Link:
    node = _node_trouble(look, pod)
    if node:
        return _link(pod, "NodeNotReady", "runs on a node that is not ready", below=node)
    waits = tuple(_waits(look, pod))
    if waits and not containers.has_run(pod):
        below = tuple(link for link in waits if not link.is_well)
        sentence = "starts only after others of its gang are ready"
        if below:
            brief = f"starts after {', '.join(link.about.name for link in below)}"
            return _link(pod, "StartsLater", sentence, below=below, brief=brief)
    troubles = tuple(containers.troubles(look.scene, pod))
    if len(troubles) == 1:
        return troubles[0]
    if troubles:
        return _link(pod, "ContainersNotReady", "has containers not ready", below=troubles)
    return _unexplained(look, pod)


def _node_trouble(look: Look, pod: Document) -> tuple[Link, ...]:
    name = node_of(pod)
    if not name or not look.scene.knows(groupkinds.NODE):
        return ()
    ref = Ref(kind=groupkinds.NODE, namespace="", name=name)
    node = look.scene.get(ref)
    if node is not None and scenes.holds(node, "Ready"):
        return ()
    return (look.at(ref),)


def waits_of(pod: Document) -> dict[str, int]:
    """Return the PodCliques a pod starts after, with how many pods of each must be ready."""
    told = strings(value_at(pod, ["metadata", "annotations"])).get(STARTS_AFTER, "")
    pairs = [pair.partition("=") for pair in told.split(",")]
    for container in list_at(pod, ["spec", "initContainers"]):
        if string_at(container, ["name"]) == containers.ORDER_CONTAINER:
            words: Sequence[Json] = list_at(container, ["args"])
            texts = [text for text in words if isinstance(text, str)]
            pairs += [text.rpartition("=")[2].partition(":") for text in texts]
    return {
        name.strip(): int(count)
        for name, _, count in pairs
        if name.strip() and count.isascii() and count.isdecimal() and len(count) < 10
    }


def _waits(look: Look, pod: Document) -> Iterator[Link]:
    """Yield what is told of the PodCliques a pod waits for."""
    for name, count in waits_of(pod).items():
        ref = Ref(kind=groupkinds.CLIQUE, namespace=scenes.namespace_of(pod), name=name)
        clique = look.scene.get(ref) or {}
        if scenes.number_at(clique, "status", "readyReplicas") < count:
            yield look.at(ref)


def _unexplained(look: Look, pod: Document) -> Link:
    """Tell of a pod that runs nothing, and says nothing; its last event may say something."""
    ref = scenes.ref_of(pod)
    for condition_type in ("Ready", "ContainersReady", "Initialized"):
        message = string_at(scenes.condition(pod, condition_type), ["message"])
        if message:
            return _link(
                pod,
                string_at(scenes.condition(pod, condition_type), ["reason"]) or "NotReady",
                f"is not ready: {scenes.one_line(message)}",
                f"see {looks.describe(ref)}",
            )
    event = look.scene.last_event(pod)
    if event is not None:
        told = scenes.one_line(string_at(event, ["message"]))
        sentence = f"is not ready; the last it said: {told}"
        reason = string_at(event, ["reason"]) or looks.UNKNOWN
        return _link(pod, reason, sentence, f"see {looks.describe(ref)}")
    if not list_at(pod, ["status", "containerStatuses"]):
        return _link(
            pod,
            "NotStarted",
            f"has node {node_of(pod)}, and nothing has been started there yet",
            f"wait a moment; if it stays so, see whether the node's agent runs: "
            f"{looks.describe(Ref(kind=groupkinds.NODE, namespace='', name=node_of(pod)))}",
        )
    return _link(
        pod,
        looks.UNKNOWN,
        "is not ready, and nothing says why",
        f"look at {looks.describe(ref)} and {looks.command('logs', ref)}",
    )
