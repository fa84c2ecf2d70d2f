"""Pictures: trees of objects and chains of causes as lines of text, for people.

The same lines are printed once, redrawn in place, or written to a file: nothing here knows where.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from datetime import datetime

from spinney.api import groupkinds
from spinney.cli import screen
from spinney.cli.screen import BOLD, CYAN, DIM, GREEN, RED, YELLOW, Line
from spinney.decisions.causes.chains import Cause
from spinney.decisions.causes.trees import Branch
from spinney.server import ages

STEM, LAST, DOWN, EMPTY = "├─ ", "└─ ", "│  ", "   "
GAP = "   "
HEADINGS = ("NAME", "STATE", "READY", "NODE", "AGE", "WHY")
NAMES_SHOWN = 3
WRAPPED_AT_LEAST = 40

_WORDS = {
    "PodCliqueSet": "set",
    "PodCliqueScalingGroup": "group",
    "PodClique": "clique",
    "PodGang": "gang",
    "Node": "node",
    "replica": "replica",
    "Pod": "",
}
"""What branches are called: the glossary's words."""


class _Row:
    """A line of a tree before its columns are aligned."""

    def __init__(self, stem: str, title: Line, cells: tuple[str, ...], why: str) -> None:
        self.stem = stem
        self.title = title
        self.cells = cells
        self.why = why

    @property
    def width(self) -> int:
        return screen.columns_of(self.stem + "".join(text for text, _ in self.title))


# Trees


def tree(branches: Sequence[Branch], now: datetime, *, is_folded: bool = True) -> list[Line]:
    """Return trees as a table; `is_folded` draws pods of which the same is true as one line."""
    parts = _folds(branches) if is_folded else [(branch,) for branch in branches]
    rows = [row for part in parts for row in _part(part, now, "", "", is_folded)]
    first = max((row.width for row in rows), default=0)
    widths = [
        max(len(HEADINGS[index + 1]), *(screen.columns_of(row.cells[index]) for row in rows))
        if rows
        else 0
        for index in range(4)
    ]
    headed = [(HEADINGS[0].ljust(first) + GAP, BOLD)]
    for heading, width in zip(HEADINGS[1:5], widths, strict=True):
        headed.append((heading.ljust(width) + GAP, BOLD))
    has_why = any(row.why for row in rows)
    headed.append((HEADINGS[5], BOLD)) if has_why else None
    return [_stripped(headed), *(_stripped(_aligned(row, first, widths)) for row in rows)]


def _aligned(row: _Row, first: int, widths: Sequence[int]) -> list[tuple[str, str]]:
    line = [(row.stem, DIM), *row.title, (" " * (first - row.width) + GAP, "")]
    for index, (cell, width) in enumerate(zip(row.cells, widths, strict=True)):
        room = " " * (width - screen.columns_of(cell)) + GAP
        line += [(cell, screen.colour_of(cell) if index == 0 else ""), (room, "")]
    return [*line, (row.why, YELLOW)]


def _stripped(line: Sequence[tuple[str, str]]) -> Line:
    """Return a line without the empty parts and spaces at its end."""
    kept = [part for part in line if part[0]]
    while kept and not kept[-1][0].strip():
        kept.pop()
    if kept:
        text, colour = kept[-1]
        kept[-1] = (text.rstrip(), colour)
    return kept


def _rows(
    branch: Branch, now: datetime, stem: str, below_stem: str, is_folded: bool
) -> Iterator[_Row]:
    yield _Row(stem, _title(branch), _cells(branch, now), screen.plain(branch.why))
    parts = _folds(branch.below) if is_folded else [(each,) for each in branch.below]
    for index, part in enumerate(parts):
        is_last = index == len(parts) - 1
        own = below_stem + (LAST if is_last else STEM)
        down = below_stem + (EMPTY if is_last else DOWN)
        yield from _part(part, now, own, down, is_folded)


def _part(
    part: Sequence[Branch], now: datetime, stem: str, below_stem: str, is_folded: bool
) -> Iterator[_Row]:
    if len(part) == 1:
        yield from _rows(part[0], now, stem, below_stem, is_folded)
    else:
        yield _folded(part, now, stem)


def _title(branch: Branch) -> Line:
    word = _WORDS.get(branch.sort, branch.sort)
    title = [(f"{word} ", DIM)] if word else []
    title.append((branch.name, BOLD if branch.sort == "PodCliqueSet" else ""))
    if branch.gang:
        title.append((f" (gang {branch.gang})", DIM))
    return title


def _cells(branch: Branch, now: datetime) -> tuple[str, str, str, str]:
    ready = "" if branch.wanted is None else f"{branch.ready or 0}/{branch.wanted}"
    return branch.state, ready, branch.node, _age(branch.since, now)


def _age(since: datetime | None, now: datetime) -> str:
    return "" if since is None else ages.duration(max(0, int((now - since).total_seconds())))


def _folds(branches: Sequence[Branch]) -> list[tuple[Branch, ...]]:
    """Return branches, with pods side by side together of which the same is true."""
    found: list[list[Branch]] = []
    for branch in branches:
        if found and branch.sort == "Pod" and _same(found[-1][0]) == _same(branch):
            found[-1].append(branch)
        else:
            found.append([branch])
    return [tuple(part) for part in found]


def _same(pod: Branch) -> tuple[object, ...]:
    why = pod.why.replace(pod.name, "@")
    clique = pod.name.rpartition("-")[0]
    return pod.sort, clique, pod.state, pod.ready, pod.wanted, pod.restarts, why


def _folded(pods: Sequence[Branch], now: datetime, stem: str) -> _Row:
    """Return the line of several pods."""
    first, last = pods[0], pods[-1]
    end = last.name.rpartition("-")[2]
    title = [(f"{first.name} … {end}", ""), (f" ({len(pods)} pods)", DIM)]
    nodes = list(dict.fromkeys(pod.node for pod in pods if pod.node))
    shown = ",".join(nodes[:NAMES_SHOWN])
    if len(nodes) > NAMES_SHOWN:
        shown = f"{nodes[0]} and {len(nodes) - 1} more"
    ready = sum(pod.ready or 0 for pod in pods)
    wanted = sum(pod.wanted or 0 for pod in pods)
    since = min((pod.since for pod in pods if pod.since), default=None)
    cells = (first.state, f"{ready}/{wanted}", shown, _age(since, now))
    return _Row(stem, title, cells, screen.plain(first.why))


# Chains


def chain(
    causes: Sequence[Cause],
    now: datetime,
    *,
    columns: int | None = None,
    said: Sequence[Sequence[str]] = (),
) -> list[Line]:
    """Return a chain of causes, wrapped where `columns` are given.

    `said` are the last lines the container of each cause wrote, in the order of the causes.
    """
    found: list[Line] = []
    for index, cause in enumerate(causes):
        lead, under = _stems(causes, index)
        found += _cause(causes, index, now, lead, under, columns)
        for text in said[index] if index < len(said) else ():
            found.append([(under, DIM), ("| ", DIM), (screen.plain(text), DIM)])
        if cause.remedy:
            found += _wrapped([(under, DIM), ("→ ", CYAN)], cause.remedy, CYAN, under, columns)
        if cause.left_out:
            more = f"and {cause.left_out} more, not told here"
            found.append([(under, DIM), (more, DIM)])
    return found


def _stems(causes: Sequence[Cause], index: int) -> tuple[str, str]:
    """Return what a cause's first line begins with, and what those under it do."""
    depth = causes[index].depth
    lead = ""
    for level in range(1, depth + 1):
        goes_on = _goes_on(causes, index, level)
        if level == depth:
            lead += STEM if goes_on else LAST
        else:
            lead += DOWN if goes_on else EMPTY
    under = lead.replace(STEM, DOWN).replace(LAST, EMPTY)
    has_below = index + 1 < len(causes) and causes[index + 1].depth > depth
    return lead, under + (DOWN if has_below else EMPTY)


def _goes_on(causes: Sequence[Cause], index: int, level: int) -> bool:
    """Whether another cause of a level follows under the same one."""
    for cause in causes[index + 1 :]:
        if cause.depth < level:
            return False
        if cause.depth == level:
            return True
    return False


def _cause(
    causes: Sequence[Cause], index: int, now: datetime, lead: str, under: str, columns: int | None
) -> list[Line]:
    cause = causes[index]
    colour = GREEN if cause.is_well else RED if cause.is_root else ""
    start: list[tuple[str, str]] = [(lead, DIM)]
    if not _is_about_the_same(causes, index):
        start.append((_subject(cause), BOLD))
        if cause.alike:
            start.append((f" (and {len(cause.alike)} alike)", DIM))
        start.append((": ", ""))
    text = screen.plain(cause.sentence)
    if cause.since is not None and not cause.is_well:
        text = f"{text} [{_age(cause.since, now)}]"
    if cause.is_repeated:
        return _wrapped(start, "told above", DIM, under, columns)
    return _wrapped(start, text, colour, under, columns)


def _is_about_the_same(causes: Sequence[Cause], index: int) -> bool:
    depth = causes[index].depth
    above = (cause for cause in reversed(causes[:index]) if cause.depth < depth)
    return next((cause.about for cause in above), None) == causes[index].about


def _subject(cause: Cause) -> str:
    about = cause.about
    is_far = cause.depth == 0 and about.namespace and about.kind != groupkinds.NODE
    place = f" in {about.namespace}" if is_far and about.namespace != "default" else ""
    return f"{about.kind.kind} {about.name}{place}"


def _wrapped(
    start: Sequence[tuple[str, str]], text: str, colour: str, under: str, columns: int | None
) -> list[Line]:
    """Return a text after its beginning, on as many lines as it needs."""
    if columns is None:
        return [[*start, (text, colour)]]
    begun = screen.columns_of("".join(part for part, _ in start))
    room = max(columns - screen.columns_of(under), WRAPPED_AT_LEAST)
    filler = "\0" * min(begun - screen.columns_of(under), room - 1)
    wrapped = textwrap.wrap(filler + text, room, break_on_hyphens=False) or [""]
    first, *rest = (line.replace("\0", "") for line in wrapped)
    return [[*start, (first, colour)], *([(under, DIM), (line, colour)] for line in rest)]
