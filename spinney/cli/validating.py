"""Checking manifests offline, exactly as a server would."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TextIO

import msgspec

from spinney.api import kinds, topology
from spinney.api.kinds import KINDS, OUR_KINDS, Kind
from spinney.api.surroundings import NOTHING_KNOWN, Surroundings
from spinney.cli import printing
from spinney.cli.manifests import Found
from spinney.cli.usage import Usage
from spinney.meta import errors, shapes
from spinney.meta.cursors import Cursor
from spinney.meta.documents import Document, Json, list_at, object_at, string_at
from spinney.meta.errors import FieldError
from spinney.meta.records import Record
from spinney.meta.references import GroupKind, Ref

BINDING = GroupKind(group="grove.io", kind="ClusterTopologyBinding")

_NEW = "checked as a new object: none of this kind and name is among the stored ones"


class Told(Record):
    """One fault, with the line it stands on."""

    line: int
    fault: FieldError


class Result(Record):
    """What came of one document."""

    file: str
    line: int
    document: Document
    ref: Ref
    api_version: str = ""
    told: tuple[Told, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def is_valid(self) -> bool:
        """Whether a server would take it."""
        return not self.told

    @property
    def title(self) -> str:
        """The document, as people call it."""
        return str(self.ref) if self.ref.name else self.ref.kind.kind or "document"


def check(given: Sequence[Found], against: Sequence[Found]) -> tuple[Result, ...]:
    """Return what is to be said of each document.

    `against` are stored objects: a document of the same kind and name is an update of it. Raises
    Usage where they cannot be read.
    """
    documents = [item for found in given for item in _unlisted(found)]
    stored = _stored(against)
    bindings = _bindings((*stored.values(), *(item.document for item in documents)))
    results: list[Result] = []
    seen: dict[Ref, Result] = {}
    for item in documents:
        result = _checked(item, stored, bindings)
        if against and result.is_valid and result.ref not in stored:
            result = msgspec.structs.replace(result, warnings=(*result.warnings, _NEW))
        twin = seen.get(result.ref) if result.ref.name else None
        if twin is not None and result.ref.kind.kind:
            fault = FieldError(
                path="metadata.name",
                reason=errors.DUPLICATE,
                message=f"already at {twin.file}:{twin.line}",
                found=result.ref.name,
            )
            line = item.line_of("metadata.name")
            told = (*result.told, Told(line=line, fault=fault))
            result = msgspec.structs.replace(result, told=told)
        else:
            seen[result.ref] = result
        results.append(result)
    return tuple(results)


class _Item:
    """One object of a file: a document, or an item of a List."""

    __slots__ = ("_prefix", "document", "found")

    def __init__(self, found: Found, document: Json, prefix: str = "") -> None:
        self.found = found
        self.document = document
        self._prefix = prefix

    def line_of(self, path: str) -> int:
        return self.found.manifest.line_of(f"{self._prefix}.{path}" if self._prefix else path)

    @property
    def line(self) -> int:
        return self.found.manifest.line_of(self._prefix) if self._prefix else self.first_line

    @property
    def first_line(self) -> int:
        return self.found.manifest.line

    @property
    def duplicates(self) -> Iterable[FieldError]:
        """The duplicate keys of the document, as far as they are within this item."""
        prefix = f"{self._prefix}." if self._prefix else ""
        for fault in self.found.manifest.duplicates:
            if fault.path.startswith(prefix):
                yield FieldError(
                    path=fault.path.removeprefix(prefix),
                    reason=fault.reason,
                    message=fault.message,
                    found=fault.found,
                )


def _unlisted(found: Found) -> Iterable[_Item]:
    document = found.manifest.document
    if isinstance(document, dict) and _is_list(document):
        for index, item in enumerate(list_at(document, ["items"])):
            yield _Item(found, item, f"items[{index}]")
    else:
        yield _Item(found, document)


def _is_list(document: Document) -> bool:
    return (
        document.get("apiVersion") == "v1"
        and document.get("kind") == "List"
        and isinstance(document.get("items"), list)
    )


def _stored(against: Sequence[Found]) -> Mapping[Ref, Document]:
    stored: dict[Ref, Document] = {}
    for item in (item for found in against for item in _unlisted(found)):
        where = f"--against {item.found.file}"
        if (unread := item.found.manifest.error) is not None:
            raise Usage(f"{where}: {unread}")
        if not isinstance(item.document, dict):
            raise Usage(f"{where}: line {item.line}: must be an object with apiVersion and kind")
        ref = _ref(item.document)
        if ref in stored:
            raise Usage(
                f"{where}: line {item.line}: {ref} is given twice: which of them is stored?"
            )
        if ref.name:
            stored[ref] = item.document
    return stored


def _ref(document: Json) -> Ref:
    if not isinstance(document, dict):
        return Ref(kind=GroupKind(group="", kind=""), namespace="", name="")
    group_kind = kinds.group_kind_of(document)
    kind = KINDS.get(group_kind)
    namespace = string_at(document, ["metadata", "namespace"])
    if kind is not None and kind.namespaced:
        namespace = namespace or "default"
    return Ref(kind=group_kind, namespace=namespace, name=string_at(document, ["metadata", "name"]))


def _bindings(documents: Iterable[Json]) -> Mapping[str, tuple[str, ...]]:
    """Return the topologies among the documents: sets that name one are checked against it."""
    found: dict[str, tuple[str, ...]] = {}
    for document in documents:
        if isinstance(document, dict) and kinds.group_kind_of(document) == BINDING:
            levels = list_at(document, ["spec", "levels"])
            found[string_at(document, ["metadata", "name"])] = tuple(
                string_at(level, ["domain"]) for level in levels
            )
    return found


def _checked(
    item: _Item, stored: Mapping[Ref, Document], bindings: Mapping[str, tuple[str, ...]]
) -> Result:
    ref = _ref(item.document)
    unread = item.found.manifest.error
    if unread is not None:
        fault = FieldError(path=unread.path, reason=errors.INVALID, message=unread.message)
        told = Told(line=unread.line or item.first_line, fault=fault)
        return Result(file=item.found.file, line=told.line, document={}, ref=ref, told=(told,))
    if not isinstance(item.document, dict):
        fault = Cursor(item.document).ill_typed("must be an object with apiVersion and kind")
        return Result(
            file=item.found.file,
            line=item.line,
            document={},
            ref=ref,
            told=(Told(line=item.line, fault=fault),),
        )
    kind = _kind_of(item.document)
    if isinstance(kind, FieldError):
        faults: tuple[FieldError, ...] = (kind, *item.duplicates)
        document = item.document
        warnings: tuple[str, ...] = ()
    else:
        old = stored.get(ref)
        if old is not None:
            old, _ = kinds.admit(kind, old)
        known = _surroundings(item.document, bindings)
        document, found = kinds.admit(kind, item.document, old, known)
        faults = (*item.duplicates, *found)
        warnings = () if faults else kinds.advice(kind, document, old, known)
    return Result(
        file=item.found.file,
        line=item.line,
        document=document,
        ref=ref,
        api_version=string_at(item.document, ["apiVersion"]),
        told=tuple(Told(line=item.line_of(fault.path), fault=fault) for fault in faults),
        warnings=warnings,
    )


def _surroundings(document: Document, bindings: Mapping[str, tuple[str, ...]]) -> Surroundings:
    """Return what the other documents tell; a topology that is not among them is not judged."""
    for path in (["spec", "template"], ["spec", "template", "spec"]):
        name = topology.topology_name(Cursor(object_at(document, path)))
        if name in bindings:
            return Surroundings(topologies=bindings)
    return NOTHING_KNOWN


def _kind_of(document: Document) -> Kind | FieldError:
    """Return the kind a document says it is of, or what is wrong with what it says."""
    cursor = Cursor(document)
    for field in ("apiVersion", "kind"):
        if not cursor[field].string():
            if cursor[field]:
                return cursor[field].ill_typed("must be a string")
            return cursor[field].required(
                "every object says of which group, version and kind it is"
            )
    group_kind = kinds.group_kind_of(document)
    kind = KINDS.get(group_kind)
    if kind is not None:
        if kind.names.api_version == document["apiVersion"]:
            return kind
        return cursor["apiVersion"].invalid(
            f'{group_kind.kind} is served as "{kind.names.api_version}"'
        )
    if group_kind.kind == "PodGangSet":
        return cursor["kind"].invalid('this kind is called "PodCliqueSet" now')
    for other in KINDS:
        if other.kind == group_kind.kind:
            return cursor["apiVersion"].invalid(
                f'{other.kind} is served as "{KINDS[other].names.api_version}"'
            )
    hint = shapes.did_you_mean(group_kind.kind, [known.kind for known in KINDS])
    listed = ", ".join(sorted(known.kind for known in OUR_KINDS))
    checked = f"; checked are: {listed}, and what is built into Kubernetes"
    return cursor["kind"].invalid(f'no such kind in "{document["apiVersion"]}"{hint or checked}')


def write_text(results: Sequence[Result], out: TextIO, aside: TextIO) -> None:
    """Write a line for each fault, warning and valid document, and a last line that counts."""
    for result in results:
        if result.is_valid:
            _write_line(out, result, result.line, "valid")
        for warning in result.warnings:
            _write_line(out, result, result.line, f"warning: {warning}")
        _write_result_faults(result, out)
    aside.write(_summary(results))


def write_faults(results: Sequence[Result], out: TextIO) -> None:
    """Write a line for each fault."""
    for result in results:
        _write_result_faults(result, out)


def _write_result_faults(result: Result, out: TextIO) -> None:
    for told in result.told:
        _write_line(out, result, told.line, _sentence(told.fault))


def _write_line(out: TextIO, result: Result, line: int, said: str) -> None:
    out.write(printing.one_line(f"{result.file}:{line}: {result.title}: {said}") + "\n")


def _sentence(fault: FieldError) -> str:
    return str(fault) if fault.path else fault.message


def _summary(results: Sequence[Result]) -> str:
    bad = [result for result in results if not result.is_valid]
    total = _count(len(results), "document")
    if not results:
        return "no documents found\n"
    if not bad:
        return f"{total}, all valid\n"
    faults = sum(len(result.told) for result in bad)
    return f"{total}, {len(results) - len(bad)} valid, {_count(faults, 'error')}\n"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def write_json(results: Sequence[Result], out: TextIO, _aside: TextIO) -> None:
    """Write everything as one JSON document, for programs."""
    items: list[Json] = [_json(result) for result in results]
    valid = all(result.is_valid for result in results)
    out.write(printing.json_text({"valid": valid, "documents": items}))


def _json(result: Result) -> Document:
    faults: list[Json] = [
        {
            "line": told.line,
            "path": told.fault.path,
            "reason": told.fault.reason,
            "message": told.fault.text if told.fault.path else told.fault.message,
            "found": told.fault.found,
        }
        for told in result.told
    ]
    warnings: list[Json] = [*result.warnings]
    return {
        "file": result.file,
        "line": result.line,
        "apiVersion": result.api_version,
        "kind": result.ref.kind.kind,
        "namespace": result.ref.namespace,
        "name": result.ref.name,
        "valid": result.is_valid,
        "errors": faults,
        "warnings": warnings,
    }
