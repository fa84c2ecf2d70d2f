"""Values out of a YAML parser's events: without recursion, within bounds, knowing their lines.

JSON comes by here too where something is amiss with it: `meta/tokens.py` makes events of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    CollectionStartEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    Event,
    MappingStartEvent,
    ScalarEvent,
)

from spinney.meta import errors, scalars
from spinney.meta.documents import DEPTH_MAX, Json
from spinney.meta.errors import DecodeError, FieldError

Events: TypeAlias = Callable[[], "Event | None"]
_Lines: TypeAlias = "dict[str | int, int]"

ALIASED_MAX = 100_000
"""How many values a document may hold through aliases, all in all."""

_TOO_DEEP = f"nested more than {DEPTH_MAX} levels deep: make it flatter"
_INDEX = re.compile(r"\[([0-9]{1,9})\]")
_KEY = re.compile(r"\[([^\]]*)\]|\.?([^.\[]+)")
_WORD = re.compile(r"[A-Za-z0-9_-]+")


class Composed:
    """The one value of a document, with the duplicate keys found in it and its lines."""

    __slots__ = ("_lines", "duplicates", "value")

    def __init__(
        self, value: Json, duplicates: tuple[FieldError, ...], lines: dict[int, _Lines]
    ) -> None:
        """Hold what a composer found; `lines` go by the identity of the containers of `value`."""
        self.value = value
        self.duplicates = duplicates
        self._lines = lines

    def line_of(self, path: str) -> int:
        """Return the line of a field, or of what it is missing in; 0 for the whole document."""
        here, line, at = self.value, 0, 0
        while at < len(path):
            found = _step_below(here, path, at)
            if found is None:
                break
            step, at = found
            line = self._lines[id(here)][step]
            here = here[step]  # type: ignore[index]
        return line


def _step_below(here: Json, path: str, at: int) -> tuple[str | int, int] | None:
    """Return which entry of a container a path goes on to from a position, and from where on.

    The document decides how a key that contains dots or brackets is to be read.
    """
    if isinstance(here, list):
        match = _INDEX.match(path, at)
        if match is None or int(match[1]) >= len(here):
            return None
        return int(match[1]), match.end()
    if not isinstance(here, dict):
        return None
    match = _KEY.match(path, at)
    if match is not None:
        key = match[1] if match[1] is not None else match[2]
        if key in here:
            return key, match.end()
    for key in sorted(here, key=len, reverse=True):
        for spelled in (f".{key}" if at else key, f"[{key}]"):
            end = at + len(spelled)
            if path.startswith(spelled, at) and path[end : end + 1] in ("", ".", "["):
                return key, end
    return None


def compose(events: Events, first_line: int, *, with_lines: bool = False) -> Composed:
    """Return the value of a document from its events; the later of duplicate keys counts.

    Raises DecodeError for what JSON cannot hold, and for too much of it.
    """
    composer = _Composer(first_line, with_lines)
    value = composer.value_of(events)
    return Composed(value, tuple(composer.duplicates), composer.lines)


def joined(path: str, key: str) -> str:
    """Return the path of an entry: `spec.replicas`, but `labels[app.kubernetes.io/name]`."""
    if _WORD.fullmatch(key):
        return f"{path}.{key}" if path else key
    return f"{path}[{key}]"


def shown(text: str) -> str:
    """Return the beginning of a text, as errors repeat it."""
    line = text[:40].splitlines()[0] if text else ""
    return line if len(text) < 40 else f"{line}…"


class _Frame:
    """A container still open."""

    __slots__ = ("anchor", "container", "depth", "key", "lines", "merged", "merging", "size")

    def __init__(self, container: dict[str, Json] | list[Json], anchor: str | None) -> None:
        self.container = container
        self.anchor = anchor
        self.key: str | None = None
        self.lines: _Lines = {}
        self.merging = False
        self.merged: set[str] = set()
        self.depth = 1
        self.size = 1


class _Anchor:
    """What an alias stands for: a value, how many values it holds, how deep it is."""

    __slots__ = ("depth", "size", "value")

    def __init__(self, value: Json, size: int, depth: int) -> None:
        self.value = value
        self.size = size
        self.depth = depth


class _Composer:
    __slots__ = (
        "_aliased",
        "_anchors",
        "_first_line",
        "_frames",
        "_with_lines",
        "duplicates",
        "lines",
    )

    def __init__(self, first_line: int, with_lines: bool) -> None:
        self._first_line = first_line
        self._with_lines = with_lines
        self._frames: list[_Frame] = []
        self._anchors: dict[str, _Anchor | None] = {}
        self._aliased = 0
        self.duplicates: list[FieldError] = []
        self.lines: dict[int, _Lines] = {}

    def value_of(self, events: Events) -> Json:
        """Take all events of one document; the loop is long because every value goes by here."""
        root: Json = None
        frames, special, plain = self._frames, scalars.SPECIAL, scalars.plain
        frame: _Frame | None = None
        ended = False
        value: Json
        while (event := events()) is not None:
            if isinstance(event, ScalarEvent):
                value = text = event.value
                if event.tag is not None or event.anchor is not None:
                    value = self._marked_scalar(event)
                elif event.implicit[0] and (not text or text[0] in special):
                    try:
                        value = plain(text)
                    except ValueError as error:
                        raise self._fault(event, str(error)) from error
            elif isinstance(event, CollectionStartEvent):
                frame = self._opened(event, frame)
                continue
            elif isinstance(event, CollectionEndEvent):
                value = self._closed()
                frame = frames[-1] if frames else None
            elif isinstance(event, AliasEvent):
                value = self._aliased_value(event, frame)
            else:
                if isinstance(event, DocumentStartEvent) and ended:
                    raise self._fault(event, 'a second document starts here: put "---" above it')
                ended = ended or isinstance(event, DocumentEndEvent)
                continue
            if frame is None:
                root = value
                continue
            frame.size += 1
            container = frame.container
            if type(container) is list:
                if self._with_lines:
                    frame.lines.setdefault(len(container), self._line(event))
                container.append(value)
            elif frame.key is not None:
                container[frame.key] = value  # type: ignore[call-overload]
                frame.key = None
            elif frame.merging:
                self._merge(frame, value, event)
            else:
                self._take_key(frame, value, event)
        return root

    def _line(self, event: Event) -> int:
        mark = event.start_mark
        return self._first_line + (0 if mark is None else mark.line)

    def _fault(self, event: Event, message: str) -> DecodeError:
        return DecodeError(message, line=self._line(event))

    def _path(self) -> str:
        path = ""
        for frame in self._frames:
            if isinstance(frame.container, list):
                path += f"[{len(frame.container)}]"
            elif frame.key is not None:
                path = joined(path, frame.key)
        return path

    def _take_key(self, frame: _Frame, value: Json, event: Event) -> None:
        if type(value) is not str:
            try:
                value = scalars.key(value)
            except ValueError as error:
                raise self._fault(event, str(error)) from error
        elif value == "<<" and type(event) is ScalarEvent and _is_merge(event):
            frame.merging = True
            return
        frame.key = value
        if value in frame.container:
            if value in frame.merged:
                frame.merged.discard(value)
            else:
                message = "must be given once; the last one counts"
                self.duplicates.append(
                    FieldError(path=self._path(), reason=errors.DUPLICATE_FIELD, message=message)
                )
        if self._with_lines:
            frame.lines[value] = self._line(event)

    def _merge(self, frame: _Frame, value: Json, event: Event) -> None:
        """Take the entries of `<<`; keys of the object itself count more, wherever they stand."""
        frame.merging = False
        target = frame.container
        for source in value if isinstance(value, list) else [value]:
            if not isinstance(source, dict) or not isinstance(target, dict):
                raise self._fault(event, '"<<" must name an object or a list of objects')
            for key, below in source.items():
                if key not in target:
                    target[key] = below
                    frame.merged.add(key)
                    if self._with_lines:
                        frame.lines[key] = self.lines[id(source)][key]

    def _opened(self, event: CollectionStartEvent, above: _Frame | None) -> _Frame:
        if len(self._frames) >= DEPTH_MAX:
            raise self._fault(event, _TOO_DEEP)
        is_map = type(event) is MappingStartEvent
        if above is not None:
            if type(above.container) is list:
                if self._with_lines:
                    above.lines[len(above.container)] = self._line(event)
            elif above.key is None and not above.merging:
                raise self._fault(event, "a key must be a string, found an object or a list")
        if event.tag is not None:
            try:
                scalars.check_collection_tag(event.tag, "map" if is_map else "seq")
            except ValueError as error:
                raise self._fault(event, str(error)) from error
        frame = _Frame({} if is_map else [], event.anchor)
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        self._frames.append(frame)
        return frame

    def _closed(self) -> Json:
        frame = self._frames.pop()
        container = frame.container
        if self._frames:
            above = self._frames[-1]
            above.depth = max(above.depth, frame.depth + 1)
            above.size += frame.size
        if self._with_lines:
            self.lines[id(container)] = frame.lines
        if frame.anchor is not None:
            self._anchors[frame.anchor] = _Anchor(container, frame.size, frame.depth)
        return container

    def _marked_scalar(self, event: ScalarEvent) -> Json:
        """Read a scalar with a tag, an anchor or both."""
        value: Json = event.value
        try:
            if event.tag is not None:
                value = scalars.tagged(event.tag, event.value)
            elif event.implicit[0]:
                value = scalars.plain(event.value)
        except ValueError as error:
            raise self._fault(event, str(error)) from error
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchor(value, 1, 0)
        return value

    def _aliased_value(self, event: AliasEvent, frame: _Frame | None) -> Json:
        name = event.anchor
        if name not in self._anchors:
            raise self._fault(event, f"*{name} names nothing: there is no &{name} above it")
        anchor = self._anchors[name]
        if anchor is None:
            raise self._fault(event, f"*{name} stands within &{name} itself")
        self._aliased += anchor.size
        if self._aliased > ALIASED_MAX:
            raise self._fault(
                event, f"aliases hold more than {ALIASED_MAX} values: write fewer of them"
            )
        if len(self._frames) + anchor.depth > DEPTH_MAX:
            raise self._fault(event, _TOO_DEEP)
        if frame is not None:
            frame.depth = max(frame.depth, anchor.depth + 1)
            frame.size += anchor.size
        return anchor.value


def _is_merge(event: ScalarEvent) -> bool:
    return bool(event.implicit[0]) or event.tag == scalars.MERGE_TAG
