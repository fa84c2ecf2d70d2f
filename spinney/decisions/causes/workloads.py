"""Why a set, a scaling group or a PodClique is not as it should be."""

from __future__ import annotations

from collections.abc import Iterable

from spinney.api import groupkinds, labels
from spinney.decisions import deadlines
from spinney.decisions.causes import gangs, looks, scenes
from spinney.decisions.causes.looks import IDLE, Link, Look
from spinney.meta import durations
from spinney.meta.documents import Document, list_at, object_at, string_at, value_at
from spinney.meta.references import GroupKind, Ref

_COUNTED = {"PodCliqueSet": "replicas", "PodCliqueScalingGroup": "replicas", "PodClique": "pods"}


def explain_set(look: Look, set_: Document) -> Link:
    """Return what keeps a set from having all its replicas whole."""
    phase = string_at(set_, ["status", "phase"])
    ended = scenes.condition(set_, "Failed")
    if scenes.is_deleted(set_):
        return looks.ending(set_, _leaving(look, set_, labels.PART_OF))
    if phase == "Failed" or ended.get("status") == "True":
        return _ended(set_, ended)
    if phase == "Succeeded":
        return looks.well(set_, "has succeeded")
    common = _common(set_)
    if common is not None:
        return common
    related = look.scene.related
    cliques = related(groupkinds.CLIQUE, set_, labels.PART_OF)
    groups = related(groupkinds.SCALING_GROUP, set_, labels.PART_OF)
    lone = [clique for clique in cliques if not scenes.label(clique, labels.SCALING_GROUP)]
    unplaced = gangs.unplaced(look, cliques)
    below = (
        *looks.complaints(set_),
        *unplaced,
        *_beside(look.unwell(lone), unplaced),
        *_beside(look.unwell(groups), unplaced),
    )
    there = related(groupkinds.GANG, set_, labels.PART_OF)
    below = (*(below or look.unwell(there)), *_update(set_))
    below = (*below, *_topology(set_, below))
    return _counted(
        look, set_, "availableReplicas", "available", below, bool(cliques or groups or there)
    )


def explain_group(look: Look, group: Document) -> Link:
    """Return what keeps a scaling group from having all its replicas whole."""
    if scenes.is_deleted(group):
        return looks.ending(group, _leaving(look, group, labels.SCALING_GROUP))
    common = _common(group)
    if common is not None:
        return common
    cliques = look.scene.related(groupkinds.CLIQUE, group, labels.SCALING_GROUP)
    unplaced = gangs.unplaced(look, cliques)
    own = _beside(look.unwell(cliques), unplaced)
    below = (*looks.complaints(group), *unplaced, *own)
    return _counted(look, group, "availableReplicas", "available", below, bool(cliques))


def _beside(links: Iterable[Link], unplaced: tuple[Link, ...]) -> tuple[Link, ...]:
    """Return the links that have more to tell than that some gang is not placed."""
    return tuple(link for link in links if not link.below or not set(link.below) <= set(unplaced))


def explain_clique(look: Look, clique: Document) -> Link:
    """Return what keeps a PodClique from having all its pods ready."""
    if scenes.is_deleted(clique):
        return looks.ending(clique, _leaving(look, clique, labels.PODCLIQUE))
    common = _common(clique)
    if common is not None:
        return common
    there = look.scene.related(groupkinds.POD, clique, labels.PODCLIQUE)
    unplaced = gangs.unplaced(look, (clique,))
    if unplaced:
        return _counted(look, clique, "readyReplicas", "ready", unplaced, bool(there))
    missing = gangs.missing_pods(look, clique)
    unwell = look.unwell(there)
    if missing is not None:
        own = missing.below or (missing,)
        unwell = (*own, *(link for link in unwell if link not in own))
    below = (*(() if missing is not None else looks.complaints(clique)), *unwell)
    return _counted(look, clique, "readyReplicas", "ready", below, bool(there))


def _common(document: Document) -> Link | None:
    """Return what is told of any of these kinds before its parts are looked at."""
    if not scenes.number_at(document, "spec", "replicas"):
        ref = scenes.ref_of(document)
        return Link(
            about=ref,
            reason=IDLE,
            sentence="is scaled to 0, and wants nothing",
            remedy=looks.command("scale", ref, " --replicas=1"),
        )
    unseen = looks.not_looked_at(document)
    complaints = looks.complaints(document)
    if unseen is None or not complaints:
        return unseen
    return Link(
        about=unseen.about, reason=unseen.reason, sentence=unseen.sentence, below=complaints
    )


def _counted(
    look: Look,
    document: Document,
    counter: str,
    word: str,
    below: tuple[Link, ...],
    has_parts: bool,
) -> Link:
    """Tell how many of an object's parts are as they should be, and what the others lack."""
    wanted = scenes.number_at(document, "spec", "replicas")
    there = scenes.number_at(document, "status", counter)
    noun = _COUNTED[string_at(document, ["kind"])]
    is_enough = there >= wanted
    if is_enough and not below:
        return looks.well(document, f"{there} of {wanted} {noun} are {word}, as it should be")
    breached = scenes.condition(document, "MinAvailableBreached")
    reason, since = f"Not{word.title()}", scenes.transition(breached)
    told = f"{there} of {wanted} {noun} are {word}"
    if breached.get("status") == "True":
        reason = "MinAvailableBreached"
        told = f"{told}, fewer than it needs, and it once had enough{_countdown(look, document)}"
    elif is_enough:
        reason, told = "NotWhole", f"{told}, but not all of it is as it should be"
    if not below and has_parts:
        return looks.lags(document, f"{told}; its parts have nothing to say against it")
    remedy = "" if below else _nothing_made(document)
    told = told if below else f"{told}: nothing has been made for it yet"
    return Link(
        about=scenes.ref_of(document),
        reason=reason if below else "NothingMade",
        sentence=told,
        since=since,
        remedy=remedy,
        below=below,
    )


def _countdown(look: Look, document: Document) -> str:
    """Return when a breach ends in gang termination, "" where it never does (rule 4.1)."""
    part_of = scenes.label(document, labels.PART_OF)
    ref = Ref(kind=groupkinds.SET, namespace=scenes.namespace_of(document), name=part_of)
    set_ = look.scene.get(ref) or {}
    template = object_at(set_, ["spec", "template"])
    since = scenes.transition(scenes.condition(document, "MinAvailableBreached"))
    delay = scenes.duration_at(template, "terminationDelay")
    if delay is None or since is None or value_at(set_, ["spec", "workloadType"]) == "Training":
        return ""
    group = scenes.label(document, labels.SCALING_GROUP) or scenes.name_of(document)
    for config in scenes.objects_at(template, "podCliqueScalingGroups"):
        index = scenes.label(document, labels.SET_REPLICA_INDEX)
        if group == f"{part_of}-{index}-{string_at(config, ['name'])}":
            own = scenes.duration_at(config, "terminationDelay")
            delay = delay if own is None else own
    try:
        left = deadlines.left(since, delay, look.scene.now)
    except OverflowError:
        return ""
    if not left:
        return "; it is being torn down and built anew"
    return f"; gang termination in {durations.format_duration(left)} unless it recovers"


def _nothing_made(document: Document) -> str:
    see = looks.describe(scenes.ref_of(document))
    return f"wait a moment; if it stays so, see whether controllers run: spinney status, {see}"


def _ended(set_: Document, condition: Document) -> Link:
    told = scenes.message_of(condition)
    ref = scenes.ref_of(set_)
    return Link(
        about=ref,
        reason=string_at(condition, ["reason"]) or "Failed",
        sentence=f"has failed: {told}" if told else "has failed",
        since=scenes.transition(condition),
        remedy=f"it stays so: mend it, delete it and apply it again; {looks.describe(ref)}",
    )


_PARTS: dict[str, tuple[GroupKind, ...]] = {
    labels.PART_OF: (groupkinds.SCALING_GROUP, groupkinds.CLIQUE, groupkinds.POD),
    labels.SCALING_GROUP: (groupkinds.CLIQUE,),
    labels.PODCLIQUE: (groupkinds.POD,),
}


def _leaving(look: Look, document: Document, key: str) -> tuple[Link, ...]:
    """Return what is told of the parts that keep an object that is being deleted.

    Of parts within parts only the outer ones: they tell of the inner.
    """
    for kind in _PARTS[key]:
        found = look.scene.related(kind, document, key)
        if found:
            return look.unwell(each for each in found if scenes.is_deleted(each))
    return ()


def _update(set_: Document) -> Iterable[Link]:
    """Yield what is told of an update that does not go on."""
    ref = scenes.ref_of(set_)
    progress = object_at(set_, ["status", "rollingUpdateProgress"])
    is_open = bool(progress) and not string_at(progress, ["updateEndedAt"])
    if is_open and value_at(set_, ["spec", "updateStrategy", "paused"]) is True:
        yield Link(
            about=ref,
            reason="Paused",
            sentence="its update is paused",
            since=scenes.transition(scenes.condition(set_, "Progressing")),
            remedy="set spec.updateStrategy.paused to false, and it goes on",
        )
        return
    progressing = scenes.condition(set_, "Progressing")
    if progressing.get("status") == "False":
        yield Link(
            about=ref,
            reason=string_at(progressing, ["reason"]) or "NotProgressing",
            sentence=f"its update is stuck: {scenes.message_of(progressing) or 'no word why'}",
            since=scenes.transition(progressing),
            remedy="mend what blocks it, or apply what ran before",
        )


def _topology(set_: Document, below: tuple[Link, ...]) -> Iterable[Link]:
    """Yield that constraints cannot be honoured; of a set that is well otherwise it is no cause."""
    condition = scenes.condition(set_, "TopologyLevelsUnavailable")
    if not below or condition.get("status", "False") == "False":
        return
    if string_at(condition, ["reason"]) == "TopologyAwareSchedulingDisabled":
        return
    yield Link(
        about=scenes.ref_of(set_),
        reason=string_at(condition, ["reason"]) or "TopologyLevelsUnavailable",
        sentence=f"its topology is not known: {scenes.message_of(condition) or 'no word why'}",
        since=scenes.transition(condition),
        remedy="create the ClusterTopologyBinding, add its levels, or take the constraint away",
    )


def explain_other(look: Look, document: Document) -> Link:
    """Tell of an object of any other kind, by the conditions that most kinds have."""
    ref = scenes.ref_of(document)
    if scenes.is_deleted(document):
        return looks.ending(document)
    bad = [
        condition
        for condition in scenes.conditions_of(document)
        if (condition.get("type") in _GOOD and condition.get("status") in ("False", "Unknown"))
        or (condition.get("type") in _BAD and condition.get("status") == "True")
    ]
    if bad:
        below = tuple(
            Link(
                about=ref,
                reason=string_at(condition, ["reason"]) or string_at(condition, ["type"]) or "No",
                sentence=f"{condition.get('type')} is {condition.get('status')}"
                + (f": {message}" if (message := scenes.message_of(condition)) else ""),
                since=scenes.transition(condition),
                remedy=f"do what it says; see {looks.describe(ref)}",
            )
            for condition in bad
        )
        return below[0] if len(below) == 1 else _several(document, below)
    unseen = looks.not_looked_at(document) if object_at(document, ["status"]) else None
    if unseen is not None:
        return unseen
    event = look.scene.last_event(document)
    if event is not None and not list_at(document, ["status", "conditions"]):
        return Link(
            about=ref,
            reason=string_at(event, ["reason"]) or looks.UNKNOWN,
            sentence=scenes.one_line(string_at(event, ["message"])) or "something was warned of",
            since=scenes.event_time(event),
            remedy=f"do what it says; see {looks.describe(ref)}",
        )
    return looks.well(document, "nothing speaks against it")


def _several(document: Document, below: tuple[Link, ...]) -> Link:
    return Link(
        about=scenes.ref_of(document),
        reason="NotReady",
        sentence=f"{len(below)} conditions speak against it",
        below=below,
    )


_GOOD = frozenset(
    {
        "Ready",
        "Available",
        "Healthy",
        "Established",
        "NamesAccepted",
        "AbleToScale",
        "ScalingActive",
    }
)
_BAD = frozenset({"Failed", "Failing", "Degraded", "Stalled", "NameConflict"})
