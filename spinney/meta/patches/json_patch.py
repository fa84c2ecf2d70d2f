"""JSON patch (RFC 6902): operations carried out one after the other, all of them or none.

Containers are copied the first time an operation touches them and changed in place from then on,
so ten thousand operations on one long list do not copy it ten thousand times.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from spinney.meta import documents
from spinney.meta.documents import DEPTH_MAX, Document, Json
from spinney.meta.errors import BadRequest, TooLarge, shown
from spinney.meta.patches.failures import PatchFailed

OPERATIONS_MAX = 10_000
"""How many operations one patch may have, as in kube-apiserver."""

COPIED_MAX = 3 * 2**20
"""How many characters `copy` and `move` may carry in all, so that no patch grows without bound."""

_WITH_VALUE = ("add", "replace", "test")
_WITH_SOURCE = ("move", "copy")
_INDEX = re.compile(r"0|[1-9][0-9]{0,17}")
_BROKEN_ESCAPE = re.compile(r"~(?![01])")


def apply(document: Document, patch: Json) -> Document:
    """Return the document with all operations of a patch carried out.

    Raises BadRequest for what is no JSON patch, PatchFailed naming the operation that does not fit.
    """
    if not isinstance(patch, list):
        raise BadRequest(f"a JSON patch must be a list of operations, found {shown(patch)}")
    if len(patch) > OPERATIONS_MAX:
        raise TooLarge(
            f"a JSON patch may have at most {OPERATIONS_MAX} operations, found {len(patch)}"
        )
    operations = [_Operation(step, index) for index, step in enumerate(patch)]
    draft = _Draft(document)
    for operation in operations:
        operation.carry_out(draft)
    if not isinstance(draft.root, dict):
        raise PatchFailed(f"the patched document must be an object, found {shown(draft.root)}")
    return draft.root


def diff(before: Document, after: Document) -> list[Json]:
    """Return a patch that makes `after` of `before`; an empty one where they are the same."""
    operations: list[Json] = []
    _tell_difference(before, after, "", operations)
    return operations


class _Operation:
    """One operation, decoded: what it does, where, and what to call it in a message."""

    __slots__ = ("index", "kind", "path", "pointer", "source", "value")

    def __init__(self, step: Json, index: int) -> None:
        self.index = index
        if not isinstance(step, dict):
            raise BadRequest(f"operation {index}: must be an object, found {shown(step)}")
        kind = step.get("op")
        if not isinstance(kind, str) or kind not in (*_WITH_VALUE, *_WITH_SOURCE, "remove"):
            raise BadRequest(
                f"operation {index}: op must be one of add, remove, replace, move, copy, test, "
                f"found {shown(kind)}"
            )
        if kind in _WITH_VALUE and "value" not in step:
            raise BadRequest(f"operation {index}: {kind} must have a value")
        self.kind = kind
        self.pointer, self.path = _pointer(step, "path", index)
        self.source = _pointer(step, "from", index)[1] if kind in _WITH_SOURCE else ()
        self.value = step.get("value")

    def carry_out(self, draft: _Draft) -> None:
        if self.kind == "add":
            self._add(draft, self.value)
        elif self.kind == "remove":
            self._remove(draft, self.path)
        elif self.kind == "replace":
            self._replace(draft, self.value)
        elif self.kind == "test":
            found = self._found(draft, self.path)
            if not documents.same(found, self.value):
                raise self._failed(f"must be {shown(self.value)}, found {shown(found)}")
        elif self.kind == "copy":
            self._add(draft, self._carried(draft, self._found(draft, self.source)))
        else:
            self._move(draft)

    def _move(self, draft: _Draft) -> None:
        found = self._found(draft, self.source)
        if self.path == self.source:
            return
        if self.path[: len(self.source)] == self.source:
            raise self._failed("a value cannot be moved into itself")
        if len(self.path) > len(self.source):
            found = self._carried(draft, found)
        self._remove(draft, self.source)
        self._add(draft, found)

    def _carried(self, draft: _Draft, value: Json) -> Json:
        copied, size = _copy(value, COPIED_MAX - draft.carried)
        draft.carried += size
        if draft.carried > COPIED_MAX:
            raise self._failed(f"a patch may carry at most {COPIED_MAX} characters")
        return copied

    def _add(self, draft: _Draft, value: Json) -> None:
        if len(self.path) + _depth(value) > DEPTH_MAX:
            raise self._failed(f"must not nest deeper than {DEPTH_MAX}")
        if not self.path:
            draft.root = value
            return
        *above, last = self.path
        parent = self._container(draft, above)
        if isinstance(parent, dict):
            parent[last] = value
        elif last == "-":
            parent.append(value)
        else:
            parent.insert(self._index(last, len(parent)), value)

    def _replace(self, draft: _Draft, value: Json) -> None:
        self._found(draft, self.path)
        if len(self.path) + _depth(value) > DEPTH_MAX:
            raise self._failed(f"must not nest deeper than {DEPTH_MAX}")
        if not self.path:
            draft.root = value
            return
        *above, last = self.path
        parent = self._container(draft, above)
        if isinstance(parent, dict):
            parent[last] = value
        else:
            parent[int(last)] = value

    def _remove(self, draft: _Draft, path: Sequence[str]) -> None:
        self._found(draft, path)
        if not path:
            draft.root = None
            return
        *above, last = path
        parent = self._container(draft, above)
        if isinstance(parent, dict):
            del parent[last]
        else:
            del parent[int(last)]

    def _found(self, draft: _Draft, path: Sequence[str]) -> Json:
        here = draft.root
        for depth, step in enumerate(path):
            if isinstance(here, dict):
                if step not in here:
                    raise self._failed(f"there is nothing at {_pointer_text(path[: depth + 1])}")
                here = here[step]
            elif isinstance(here, list):
                here = here[self._index(step, len(here) - 1)]
            else:
                raise self._failed(
                    f"{_pointer_text(path[:depth])} must be an object or a list, "
                    f"found {shown(here)}"
                )
        return here

    def _container(self, draft: _Draft, path: Sequence[str]) -> Document | list[Json]:
        """Return the container at a path, made ready to be changed with all above it."""
        here = draft.open_root()
        for depth, step in enumerate(path):
            if isinstance(here, dict):
                if step not in here:
                    raise self._failed(f"there is nothing at {_pointer_text(path[: depth + 1])}")
                below = here[step] = draft.opened(here[step])
            elif isinstance(here, list):
                index = self._index(step, len(here) - 1)
                below = here[index] = draft.opened(here[index])
            else:
                below = None
            here = below
        if not isinstance(here, (dict, list)):
            raise self._failed(
                f"{_pointer_text(path)} must be an object or a list, found {shown(here)}"
            )
        return here

    def _index(self, step: str, index_max: int) -> int:
        if _INDEX.fullmatch(step) is None:
            raise self._failed(f"an index of a list must be a number, found {shown(step)}")
        if int(step) > index_max:
            raise self._failed(f"the list ends before index {step}")
        return int(step)

    def _failed(self, message: str) -> PatchFailed:
        return PatchFailed(f"operation {self.index}: {self.kind} {self.pointer}: {message}")


class _Draft:
    """The document on its way: which of its containers are ours to change."""

    __slots__ = ("_ours", "carried", "root")

    def __init__(self, root: Json) -> None:
        self.root = root
        self.carried = 0
        self._ours: dict[int, Json] = {}

    def open_root(self) -> Json:
        self.root = self.opened(self.root)
        return self.root

    def opened(self, value: Json) -> Json:
        """Return a container that is ours: itself, or a copy of its first level."""
        if not isinstance(value, (dict, list)) or self._ours.get(id(value)) is value:
            return value
        copied = value.copy()
        self._ours[id(copied)] = copied
        return copied


def _pointer(step: Document, name: str, index: int) -> tuple[str, tuple[str, ...]]:
    text = step.get(name)
    if not isinstance(text, str):
        raise BadRequest(f"operation {index}: {name} must be a string, found {shown(text)}")
    if text and not text.startswith("/"):
        raise BadRequest(f"operation {index}: {name} must start with a slash, found {shown(text)}")
    if _BROKEN_ESCAPE.search(text):
        raise BadRequest(f"operation {index}: {name} must escape ~ as ~0, found {shown(text)}")
    steps = text.split("/")[1:]
    return shown(text), tuple(part.replace("~1", "/").replace("~0", "~") for part in steps)


def _pointer_text(path: Sequence[str]) -> str:
    return shown("".join(f"/{_escaped(step)}" for step in path))


def _escaped(step: str) -> str:
    return step.replace("~", "~0").replace("/", "~1")


def _copy(value: Json, size_max: int) -> tuple[Json, int]:
    """Return a deep copy and about how many characters it has, cut off once there are too many."""
    size = 2
    if isinstance(value, dict):
        copied: Document = {}
        for key, below in value.items():
            copied[key], more = _copy(below, size_max - size)
            size += len(key) + more
            if size > size_max:
                break
        return copied, size
    if isinstance(value, list):
        items: list[Json] = []
        for below in value:
            item, more = _copy(below, size_max - size)
            items.append(item)
            size += more
            if size > size_max:
                break
        return items, size
    return value, size + len(value) if isinstance(value, str) else size


def _depth(value: Json) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(_depth, value), default=0)
    return 0


def _tell_difference(before: Json, after: Json, pointer: str, operations: list[Json]) -> None:
    if isinstance(before, dict) and isinstance(after, dict):
        for key, old in before.items():
            where = f"{pointer}/{_escaped(key)}"
            if key in after:
                _tell_difference(old, after[key], where, operations)
            else:
                operations.append({"op": "remove", "path": where})
        for key, new in after.items():
            if key not in before:
                where = f"{pointer}/{_escaped(key)}"
                operations.append({"op": "add", "path": where, "value": new})
    elif isinstance(before, list) and isinstance(after, list):
        _tell_list_difference(before, after, pointer, operations)
    elif not documents.same(before, after):
        operations.append({"op": "replace", "path": pointer, "value": after})


def _tell_list_difference(
    before: list[Json], after: list[Json], pointer: str, operations: list[Json]
) -> None:
    """Keep what both lists begin and end with; change, then add or remove, what lies between."""
    shorter = min(len(before), len(after))
    head = 0
    while head < shorter and documents.same(before[head], after[head]):
        head += 1
    tail = 0
    while tail < shorter - head and documents.same(before[-1 - tail], after[-1 - tail]):
        tail += 1
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    shared = min(len(old), len(new))
    for index in range(shared):
        _tell_difference(old[index], new[index], f"{pointer}/{head + index}", operations)
    where = f"{pointer}/{head + shared}"
    operations.extend({"op": "remove", "path": where} for _ in old[shared:])
    for index in range(shared, len(new)):
        where = f"{pointer}/{head + index}"
        operations.append({"op": "add", "path": where, "value": new[index]})
