"""What schedulers say of gangs that wait."""

from __future__ import annotations

from spinney.decisions import schedulability
from spinney.decisions.causes import scenes
from spinney.meta.documents import Document, string_at

_OWN_REASONS = frozenset({"NotInitialized", "InsufficientScheduledPods", ""})
"""Reasons that tell how far a gang has come, not what a scheduler thinks of it."""


def of_gang(gang: Document) -> str:
    """Return what a scheduler says of a gang of which something waits, "" where it says nothing.

    Ours has a condition of its own for that; others write into the one that tells how far it is.
    """
    own = scenes.condition(gang, schedulability.SCHEDULABLE)
    if own and string_at(own, ["reason"]) != schedulability.PLACED:
        return scenes.message_of(own)
    for condition in scenes.conditions_of(gang):
        is_told = string_at(condition, ["reason"]) not in _OWN_REASONS
        is_against = condition.get("status") == "False"
        if condition.get("type") == "Scheduled" and is_told and is_against:
            return scenes.message_of(condition)
        if condition.get("type") == "Unschedulable" and condition.get("status") == "True":
            return scenes.message_of(condition)
    return ""
