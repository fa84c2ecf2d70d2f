"""Pacing: how fast a target may follow what its metrics ask for.

Two things hold an autoscaler back. A window: of all that was asked for within it, a target shrinks
to the most and grows to the least. And policies: by how many pods, or by what share, it may change
within a period. Both need a memory, which is kept with the autoscaler itself.

The memory holds what is asked for now and, of what was asked for before, until when; so as long as
the same is asked for, nothing has to be written down anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from spinney.meta import quantities, times
from spinney.meta.documents import Document, Json, is_integer, is_list, list_at, object_at
from spinney.meta.quantities import NANO
from spinney.meta.records import Record

DISABLED = "Disabled"
SHRINKS_OVER = 300
"""The window, in seconds, of shrinking where nothing is said; growing has none."""


class Policy(Record):
    """By how much a target may change within a period."""

    type: str
    value: int
    period: timedelta


class Rules(Record):
    """What holds a target back in one direction."""

    window: timedelta
    select: str
    policies: tuple[Policy, ...]
    tolerance: int = NANO // 10
    """In billionths."""


def _given(rules: Document, window_seconds: int, policies: tuple[Policy, ...]) -> Rules:
    seconds = rules.get("stabilizationWindowSeconds")
    chosen = rules.get("selectPolicy")
    return Rules(
        window=_seconds(seconds if is_integer(seconds) else window_seconds),
        select=chosen if isinstance(chosen, str) else "Max",
        policies=_policies(rules) or policies,
        tolerance=_tolerance(rules.get("tolerance")),
    )


def _seconds(value: Json) -> timedelta:
    return timedelta(seconds=min(max(value, 0), 3600)) if is_integer(value) else timedelta()


def _policies(rules: Document) -> tuple[Policy, ...]:
    found = []
    for item in list_at(rules, ["policies"]):
        entry = object_at(item, [])
        value, kind = entry.get("value"), entry.get("type")
        if is_integer(value) and isinstance(kind, str):
            period = _seconds(entry.get("periodSeconds"))
            found.append(Policy(type=kind, value=value, period=period))
    return tuple(found)


def _tolerance(value: Json) -> int:
    if isinstance(value, str) or is_integer(value):
        try:
            return max(0, quantities.parse_quantity(value))
        except ValueError:
            pass
    return NANO // 10


def rules_of(behavior: Document | None) -> tuple[Rules, Rules]:
    """Return how a target may grow and how it may shrink."""
    quarter = timedelta(seconds=15)
    doubling = Policy(type="Percent", value=100, period=quarter)
    by_four = Policy(type="Pods", value=4, period=quarter)
    given = behavior or {}
    return (
        _given(object_at(given, ["scaleUp"]), 0, (by_four, doubling)),
        _given(object_at(given, ["scaleDown"]), SHRINKS_OVER, (doubling,)),
    )


# What is remembered


class Asked(Record):
    """How many replicas were asked for, until when."""

    replicas: int
    until: datetime


class Change(Record):
    """One change of a target's replicas."""

    at: datetime
    before: int
    after: int


class Memory(Record):
    """What an autoscaler remembers."""

    asked: int
    """What was asked for last, and is since."""

    earlier: tuple[Asked, ...] = ()
    changes: tuple[Change, ...] = ()


def text_of(memory: Memory) -> str:
    """Return a memory as it is kept."""
    earlier = [[each.replicas, times.format_micro_time(each.until)] for each in memory.earlier]
    changes = [
        [times.format_micro_time(each.at), each.before, each.after] for each in memory.changes
    ]
    kept = {"asked": memory.asked, "earlier": earlier, "changes": changes}
    return json.dumps({key: value for key, value in kept.items() if value != []})


def memory_from(text: str) -> Memory | None:
    """Return a memory as it was kept; None where nothing was, or it cannot be read."""
    try:
        kept: Json = json.loads(text) if text else None
        asked = object_at(kept, []).get("asked")
        if not is_integer(asked):
            return None
        return Memory(
            asked=asked,
            earlier=tuple(
                Asked(replicas=_whole(count), until=_instant(until))
                for count, until in _rows(kept, "earlier", 2)
            ),
            changes=tuple(
                Change(at=_instant(at), before=_whole(before), after=_whole(after))
                for at, before, after in _rows(kept, "changes", 3)
            ),
        )
    except (ValueError, RecursionError):
        return None


def _rows(kept: Json, field: str, length: int) -> list[list[Json]]:
    rows = list_at(kept, [field])
    found = [row for row in rows if is_list(row) and len(row) == length]
    if len(found) != len(rows):
        raise ValueError(f"{field} must be lists of {length}")
    return found


def _whole(value: Json) -> int:
    if not is_integer(value):
        raise ValueError("must be a whole number")
    return value


def _instant(value: Json) -> datetime:
    if not isinstance(value, str):
        raise ValueError("must be a time")
    return times.parse_time(value)


def _is_within(instant: datetime, span: timedelta, now: datetime) -> bool:
    return now - instant < span


def noted(memory: Memory, asked: int, rules: Sequence[Rules], now: datetime) -> Memory:
    """Return a memory that knows what is asked for now; the same one if it knew."""
    if asked == memory.asked:
        return memory
    longest = max(each.window for each in rules)
    earlier = [*memory.earlier, Asked(replicas=memory.asked, until=now)]
    return Memory(
        asked=asked,
        earlier=_needed([each for each in earlier if _is_within(each.until, longest, now)]),
        changes=_recent(memory.changes, rules, now),
    )


def _needed(earlier: Sequence[Asked]) -> tuple[Asked, ...]:
    """Return what can still be the most or the least asked for, oldest first."""
    kept: list[Asked] = []
    most: int | None = None
    least: int | None = None
    for each in reversed(earlier):
        if most is None or each.replicas > most or least is None or each.replicas < least:
            kept.append(each)
        most = each.replicas if most is None else max(most, each.replicas)
        least = each.replicas if least is None else min(least, each.replicas)
    return tuple(reversed(kept))


def _recent(changes: Sequence[Change], rules: Sequence[Rules], now: datetime) -> tuple[Change, ...]:
    periods = [policy.period for each in rules for policy in each.policies]
    longest = max(periods, default=timedelta())
    return tuple(each for each in changes if _is_within(each.at, longest, now))


def changed(
    memory: Memory, before: int, after: int, rules: Sequence[Rules], now: datetime
) -> Memory:
    """Return a memory that knows of one more change of a target."""
    changes = _recent(memory.changes, rules, now)
    return Memory(
        asked=memory.asked,
        earlier=memory.earlier,
        changes=(*changes, Change(at=now, before=before, after=after)),
    )


def without_undone(memory: Memory, current: int) -> Memory:
    """Return a memory without a last change that was noted and then did not happen."""
    if memory.changes and memory.changes[-1].before == current:
        return Memory(asked=memory.asked, earlier=memory.earlier, changes=memory.changes[:-1])
    return memory


# What holds a target back


def steadied(memory: Memory, current: int, up: Rules, down: Rules, now: datetime) -> int:
    """Return how many replicas there should be, by all that was asked for within the windows."""
    least = min(_asked_within(memory, up.window, now))
    most = max(_asked_within(memory, down.window, now))
    return min(max(current, least), most)


def _asked_within(memory: Memory, window: timedelta, now: datetime) -> list[int]:
    recent = [each.replicas for each in memory.earlier if _is_within(each.until, window, now)]
    return [memory.asked, *recent]


def growth_limit(rules: Rules, current: int, changes: Sequence[Change], now: datetime) -> int:
    """Return the most replicas a target may grow to now."""
    if rules.select == DISABLED:
        return current
    limits = [_grown(policy, _start(policy, current, changes, now)) for policy in rules.policies]
    return max(current, _chosen(rules, max, min)(limits)) if limits else current


def shrinking_limit(rules: Rules, current: int, changes: Sequence[Change], now: datetime) -> int:
    """Return the fewest replicas a target may shrink to now."""
    if rules.select == DISABLED:
        return current
    limits = [_shrunk(policy, _start(policy, current, changes, now)) for policy in rules.policies]
    return min(current, _chosen(rules, min, max)(limits)) if limits else current


Choice = Callable[[list[int]], int]


def _chosen(rules: Rules, boldest: Choice, meekest: Choice) -> Choice:
    return meekest if rules.select == "Min" else boldest


def _start(policy: Policy, current: int, changes: Sequence[Change], now: datetime) -> int:
    """Return how many replicas there were when a policy's period began."""
    return current - sum(
        each.after - each.before for each in changes if _is_within(each.at, policy.period, now)
    )


def _grown(policy: Policy, start: int) -> int:
    if policy.type == "Pods":
        return start + policy.value
    return -(-start * (100 + policy.value) // 100)


def _shrunk(policy: Policy, start: int) -> int:
    if policy.type == "Pods":
        return start - policy.value
    return max(0, start * (100 - policy.value) // 100)
