"""Readiness: whether all that is wanted of an object is there and serves, by its own status."""

from __future__ import annotations

from spinney.api import groupkinds, kinds
from spinney.decisions.causes import scenes
from spinney.meta.documents import Document, object_at, string_at

_COUNTERS = {
    groupkinds.SET: ("availableReplicas", "replicas are available"),
    groupkinds.SCALING_GROUP: ("availableReplicas", "replicas are available"),
    groupkinds.CLIQUE: ("readyReplicas", "pods are ready"),
}
_POSITIVE = ("Ready", "Available", "Established")


def lacks(document: Document) -> str:
    """Return what an object lacks to be ready, "" where it is."""
    if scenes.is_deleted(document):
        return "it is being deleted"
    generation = scenes.number_at(document, "metadata", "generation")
    observed = scenes.number_at(document, "status", "observedGeneration")
    kind = kinds.group_kind_of(document)
    if kind in _COUNTERS:
        if observed < generation:
            return f"nobody has looked at its generation {generation} yet"
        return _lacks_replicas(document, *_COUNTERS[kind])
    if kind == groupkinds.GANG:
        phase = string_at(document, ["status", "phase"]) or "Pending"
        return "" if phase in ("Running", "Succeeded") else _waits(document, phase)
    if kind == groupkinds.POD and string_at(document, ["status", "phase"]) == "Succeeded":
        return ""
    for condition_type in _POSITIVE:
        condition = scenes.condition(document, condition_type)
        if condition and condition.get("status") != "True":
            told = scenes.message_of(condition)
            return f"{condition_type} is {condition.get('status')}" + (f": {told}" if told else "")
        if condition:
            return ""
    return "it does not say whether it is ready"


def _lacks_replicas(document: Document, counter: str, told: str) -> str:
    wanted = scenes.number_at(document, "spec", "replicas")
    there = scenes.number_at(document, "status", counter)
    if there < wanted:
        return f"{there} of {wanted} {told}"
    gangs = object_at(document, ["status", "podGangCounts"])
    waiting = {phase: count for phase, count in gangs.items() if phase not in _GOOD_PHASES}
    return "; ".join(f"{count} gangs are {phase}" for phase, count in waiting.items() if count)


_GOOD_PHASES = ("Running", "Succeeded")


def _waits(gang: Document, phase: str) -> str:
    for condition_type in ("Initialized", "Schedulable", "Scheduled", "Ready"):
        condition = scenes.condition(gang, condition_type)
        if condition and condition.get("status") != "True":
            return f"it is {phase}: {scenes.message_of(condition)}"
    return f"it is {phase}"
