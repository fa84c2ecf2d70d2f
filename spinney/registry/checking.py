"""Checking: what every write passes, whatever it does: its shape, its rules, and protection.

`kinds.admit` judges the document. Here it is given what it may know around it, and its faults are
told as an API server tells them: what is unknown or stands twice by the strictness asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from spinney.api import kinds, labels
from spinney.api.kinds import Kind
from spinney.api.surroundings import Surroundings
from spinney.meta import errors, shapes
from spinney.meta.documents import (
    Document,
    Json,
    is_list,
    list_at,
    same,
    string_at,
    value_at,
    with_value,
)
from spinney.meta.errors import FieldError
from spinney.meta.references import GroupKind, Ref
from spinney.registry import marking, requests
from spinney.registry.protection import SET, Protection
from spinney.registry.requests import Request
from spinney.store.store import Store

TOPOLOGY = GroupKind(group="grove.io", kind="ClusterTopologyBinding")
PLACED_KINDS = frozenset({SET, GroupKind(group="spinney.dev", kind="ModelDeployment")})
"""Kinds whose templates speak of topologies."""

CHILD_KINDS = frozenset(
    {
        GroupKind(group="grove.io", kind="PodClique"),
        GroupKind(group="grove.io", kind="PodCliqueScalingGroup"),
    }
)
"""Kinds whose size is the business of the set they were made for."""

_STRICT_REASONS = (errors.UNKNOWN_FIELD, errors.DUPLICATE_FIELD)
_OWNERS = ("metadata", "ownerReferences")
_FINALIZERS = ("metadata", "finalizers")
_STANDARD_FINALIZERS = ("kubernetes", marking.ORPHAN, marking.FOREGROUND)


class Checker:
    """Judges documents before they are stored."""

    def __init__(
        self, store: Store, surroundings: Surroundings, exempt_users: frozenset[str]
    ) -> None:
        """Look around in a store; what is known of the installation is given."""
        self._store = store
        self._surroundings = surroundings
        self._protection = Protection(self._find_set, exempt_users)

    def _find_set(self, namespace: str, name: str) -> Document | None:
        stored = self._store.head(Ref(kind=SET, namespace=namespace, name=name))
        return None if stored is None else stored.document()

    def refuse_protected(
        self, kind: Kind, request: Request, old: Document | None, new: Document | None
    ) -> None:
        """Raise Forbidden where a write is about what Spinney keeps itself (rule 1.9)."""
        refusal = self._protection.refusal(kind, request.who, old, new)
        if refusal is not None:
            raise refusal

    def admitted(
        self,
        kind: Kind,
        document: Document,
        old: Document | None,
        request: Request,
        *,
        subresource: str = "",
        duplicates: Sequence[FieldError] = (),
    ) -> tuple[Document, tuple[str, ...]]:
        """Return a document with its defaults, and warnings; raises Invalid or BadRequest.

        Of a status nothing else is judged: what is wrong elsewhere is not its writer's doing.
        """
        if subresource == "status" and not duplicates:
            status = kinds.admitted_status(kind, document)
            if status is not None:
                return {**document, "status": status}, ()
        document, warnings = _owned_once(document)
        known = self._known_around(kind, document, subresource)
        document, faults = kinds.admit(kind, document, old, known)
        if subresource == "status":
            faults = tuple(fault for fault in faults if fault.path.startswith("status"))
        if faults or duplicates:
            more = _judged(kind, document, old, request, [*duplicates, *faults])
            warnings = (*warnings, *more)
        if value_at(document, _FINALIZERS) and not subresource:
            warnings = (*warnings, *_finalizer_warnings(kind, document, old))
        return document, (*warnings, *kinds.advice(kind, document, old, known))

    def _known_around(self, kind: Kind, document: Document, subresource: str) -> Surroundings:
        """Return what rules may know: topologies there are, what a child's root set is."""
        known = self._surroundings
        group_kind = kind.names.group_kind
        if group_kind in CHILD_KINDS:
            owner = self._find_set(
                string_at(document, ["metadata", "namespace"]), labels.root_name(document)
            )
            workload = string_at(owner or {}, ["spec", "workloadType"])
            known = msgspec.structs.replace(known, root_workload_type=workload)
        elif group_kind in PLACED_KINDS:
            topologies = {
                stored.ref.name: tuple(
                    string_at(level, ["domain"])
                    for level in list_at(stored.document(), ["spec", "levels"])
                )
                for stored in self._store.list(TOPOLOGY)
            }
            known = msgspec.structs.replace(known, topologies=topologies)
        if subresource:
            known = msgspec.structs.replace(known, subresource=subresource)
        return known


def _judged(
    kind: Kind,
    document: Document,
    old: Document | None,
    request: Request,
    faults: Sequence[FieldError],
) -> tuple[str, ...]:
    """Return warnings of faults that may be; raises what may not.

    A field the schema does not know that stands in the stored object already is nobody's fault:
    who wrote it knew more than we do. A new one is kept too, unless its kind prunes.
    """
    real = [fault for fault in faults if fault.reason not in _STRICT_REASONS]
    strict = [
        fault
        for fault in faults
        if fault.reason == errors.DUPLICATE_FIELD
        or (fault.reason == errors.UNKNOWN_FIELD and not _stands_in(old, fault.path))
    ]
    told = [_strictly(fault) for fault in strict]
    if told and request.field_validation == requests.STRICT:
        raise requests.not_strict(kind, string_at(document, ["apiVersion"]), told)
    if real:
        raise requests.invalid(kind, string_at(document, ["metadata", "name"]), *real)
    return tuple(told) if request.field_validation == requests.WARN else ()


def _stands_in(old: Document | None, path: str) -> bool:
    return old is not None and value_at(old, shapes.steps(path)) is not None


def _strictly(fault: FieldError) -> str:
    word = "unknown" if fault.reason == errors.UNKNOWN_FIELD else "duplicate"
    return f'{word} field "{fault.path}"'


def _owned_once(document: Document) -> tuple[Document, tuple[str, ...]]:
    """Return a document without owner references that say the same, and a warning of them."""
    owners = value_at(document, _OWNERS)
    if not is_list(owners) or len(owners) < 2:
        return document, ()
    kept: list[Json] = []
    twice: list[str] = []
    for owner in owners:
        if any(same(owner, other) for other in kept):
            twice.append(string_at(owner, ["uid"]))
        else:
            kept.append(owner)
    if not twice:
        return document, ()
    return with_value(document, _OWNERS, kept), (
        ".metadata.ownerReferences contains duplicate entries; API server dedups owner references "
        "in 1.20+, and may reject such requests as early as 1.24; please fix your requests; "
        f"duplicate UID(s) observed: {', '.join(dict.fromkeys(twice))}",
    )


def _finalizer_warnings(kind: Kind, document: Document, old: Document | None) -> Iterator[str]:
    """Yield warnings of finalizers that others may use too; raises Invalid for what cannot be."""
    found = [item for item in list_at(document, _FINALIZERS) if isinstance(item, str)]
    name = string_at(document, ["metadata", "name"])
    if marking.ORPHAN in found and marking.FOREGROUND in found:
        fault = FieldError(
            path="metadata.finalizers",
            reason=errors.INVALID,
            message="finalizer orphan and foregroundDeletion cannot be both set",
            found=[*found],
        )
        raise requests.invalid(kind, name, fault)
    had = list_at(old or {}, _FINALIZERS)
    for index, finalizer in enumerate(found):
        if "/" in finalizer or finalizer in _STANDARD_FINALIZERS or finalizer in had:
            continue
        if kind.is_builtin:
            fault = FieldError(
                path=f"metadata.finalizers[{index}]",
                reason=errors.INVALID,
                message="name is neither a standard finalizer name nor is it fully qualified",
                found=finalizer,
            )
            raise requests.invalid(kind, name, fault)
        if finalizer != marking.CLEANUP:
            yield (
                f'metadata.finalizers: "{finalizer}": prefer a domain-qualified finalizer name '
                "including a path (/) to avoid accidental conflicts with other finalizer writers"
            )
