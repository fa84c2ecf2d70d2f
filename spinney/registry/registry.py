"""The registry: the embedded write path, without HTTP.

Every write is one step: read the head, work out the whole new object, check it, queue it in the
store. Nothing waits in between, so no two writes see the same object and both win; what is waited
for is only that the store made it durable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

import msgspec

from spinney.api import kinds, labels
from spinney.api.kinds import KINDS, Kind
from spinney.api.surroundings import NOTHING_KNOWN, Surroundings
from spinney.meta import errors
from spinney.meta.documents import (
    Document,
    Json,
    is_integer,
    is_list,
    list_at,
    object_at,
    same,
    string_at,
    value_at,
    with_value,
    without,
)
from spinney.meta.errors import BadRequest, FieldError, Invalid, UnsupportedMediaType
from spinney.meta.patches import apply as server_side_apply
from spinney.meta.patches import json_patch, merge_patch, strategic
from spinney.meta.records import Record
from spinney.meta.references import GroupKind, Precondition, Ref
from spinney.meta.times import format_time, parse_time
from spinney.ports import Clock, Entropy
from spinney.registry import pods, requests, scaling, strategies
from spinney.registry.protection import SET, Protection
from spinney.registry.requests import DeleteOptions, Outcome, Request
from spinney.store.store import Moved, Store, Stored

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"

SCALE_SUBRESOURCE = "scale"
BINDING_SUBRESOURCE = "binding"
"""A bound pod is checked as a new one: nothing else may give it a node."""

GENERATED_LENGTH = 5
GENERATED_TRIES = 8

BINDING = GroupKind(group="grove.io", kind="ClusterTopologyBinding")
SCALED_KINDS = frozenset(
    {
        GroupKind(group="grove.io", kind="PodClique"),
        GroupKind(group="grove.io", kind="PodCliqueScalingGroup"),
    }
)

_SERVER_GIVEN = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "selfLink",
)


class Patch(Record):
    """A patch of one of four sorts, named by its content type."""

    type: str
    body: Json
    force: bool = False
    """For an apply: whether to take fields that others hold."""


class Registry:
    """Creates, reads, changes and deletes objects, as an API server does."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        entropy: Entropy,
        *,
        surroundings: Surroundings = NOTHING_KNOWN,
        exempt_users: frozenset[str] = frozenset(),
    ) -> None:
        """Write to a store; what rules know of the installation is in `surroundings`."""
        self.store = store
        self._clock = clock
        self._entropy = entropy
        self._surroundings = surroundings
        self.protection = Protection(self._find_set, exempt_users)

    # Reading

    def get(self, kind: Kind, namespace: str, name: str) -> Stored:
        """Return an object; raises NotFound."""
        stored = self.store.get(ref_of(kind, namespace, name))
        if stored is None:
            raise requests.not_found(kind, name)
        return stored

    def _head(self, kind: Kind, namespace: str, name: str) -> Stored:
        stored = self.store.head(ref_of(kind, namespace, name))
        if stored is None:
            raise requests.not_found(kind, name)
        return stored

    def _find_set(self, namespace: str, name: str) -> Document | None:
        stored = self.store.head(Ref(kind=SET, namespace=namespace, name=name))
        return None if stored is None else stored.document()

    # Creating

    async def create(
        self,
        kind: Kind,
        document: Document,
        request: Request,
        *,
        duplicates: tuple[FieldError, ...] = (),
    ) -> Outcome:
        """Make an object. A name is generated where only the beginning of one is given."""
        tries = 1 if string_at(document, ["metadata", "name"]) else GENERATED_TRIES
        while True:
            named = self._named(document)
            try:
                return await self._create(kind, named, request, duplicates)
            except errors.AlreadyExists:
                tries -= 1
                if tries <= 0:
                    raise

    def _named(self, document: Document) -> Document:
        prefix = string_at(document, ["metadata", "generateName"])
        if string_at(document, ["metadata", "name"]) or not prefix:
            return document
        name = prefix + self._entropy.suffix(GENERATED_LENGTH)
        return with_value(document, ["metadata", "name"], name)

    async def _create(
        self,
        kind: Kind,
        document: Document,
        request: Request,
        duplicates: tuple[FieldError, ...],
    ) -> Outcome:
        document, warnings = self._born(kind, document, request, duplicates)
        document = server_side_apply.track_update(
            kind.schema,
            {},
            document,
            request.manager,
            api_version=kind.names.api_version,
            now=self._clock.now(),
        )
        return await self._store_new(kind, document, request, warnings)

    def _born(
        self,
        kind: Kind,
        document: Document,
        request: Request,
        duplicates: tuple[FieldError, ...],
    ) -> tuple[Document, tuple[str, ...]]:
        """Return a new object with all the server gives it, checked; raises what is wrong."""
        name = string_at(document, ["metadata", "name"])
        if string_at(document, ["metadata", "resourceVersion"]):
            raise BadRequest("resourceVersion should not be set on objects to be created")
        self._check_namespace(kind, string_at(document, ["metadata", "namespace"]), name)
        given = value_at(document, ["metadata", "managedFields"])
        for field in _SERVER_GIVEN:
            document = without(document, ["metadata", field])
        document = strategies.prepare_create(kind, document)
        document, warnings = self._admitted(kind, document, None, request, duplicates)
        self._refuse_protected(kind, request, None, document)
        metadata: Document = {
            **object_at(document, ["metadata"]),
            "uid": self._entropy.uid(),
            "creationTimestamp": format_time(self._clock.now()),
            "generation": 1,
        }
        if given is None:
            metadata.pop("managedFields", None)
        return {**document, "metadata": metadata}, warnings

    async def _store_new(
        self, kind: Kind, document: Document, request: Request, warnings: tuple[str, ...]
    ) -> Outcome:
        name = string_at(document, ["metadata", "name"])
        ref = ref_of(kind, string_at(document, ["metadata", "namespace"]), name)
        if self.store.head(ref) is not None:
            raise requests.already_exists(kind, name)
        if request.dry_run:
            return Outcome(document=document, warnings=warnings, created=True)
        try:
            stored = await self.store.put(ref, document, expects=0)
        except Moved as moved:
            raise requests.already_exists(kind, name) from moved
        return Outcome(document=stored.document(), warnings=warnings, created=True)

    def _check_namespace(self, kind: Kind, namespace: str, name: str) -> None:
        if not kind.namespaced:
            return
        ref = Ref(kind=strategies.NAMESPACE, namespace="", name=namespace)
        stored = self.store.head(ref)
        if stored is None:
            raise requests.not_found(KINDS[strategies.NAMESPACE], namespace)
        if string_at(stored.document(), ["metadata", "deletionTimestamp"]):
            raise requests.forbidden(
                kind,
                name,
                f"unable to create new content in namespace {namespace} because it is being "
                "terminated",
            )

    # Checking

    def _admitted(
        self,
        kind: Kind,
        document: Document,
        old: Document | None,
        request: Request,
        duplicates: tuple[FieldError, ...] = (),
    ) -> tuple[Document, tuple[str, ...]]:
        """Return a document with its defaults and what to warn of; raises Invalid or BadRequest."""
        known = self._known_around(document)
        document, faults = kinds.admit(kind, document, old, known)
        unknown = [*duplicates, *(fault for fault in faults if fault.reason in _STRICT_REASONS)]
        real = [fault for fault in faults if fault.reason not in _STRICT_REASONS]
        warnings: tuple[str, ...] = ()
        if unknown and request.field_validation == requests.STRICT:
            told = ", ".join(_strictly(fault) for fault in unknown)
            raise BadRequest(
                f"{kind.names.kind} in version {errors.json_string(kind.names.version)} cannot be "
                f"handled as a {kind.names.kind}: strict decoding error: {told}"
            )
        if request.field_validation == requests.WARN:
            warnings = tuple(_strictly(fault) for fault in unknown)
        if real:
            name = string_at(document, ["metadata", "name"])
            raise Invalid(real, group=kind.names.group, kind=kind.names.kind, name=name)
        return document, (*warnings, *kinds.advice(kind, document, old, known))

    def _known_around(self, document: Document) -> Surroundings:
        """Return what rules may know: topologies there are, and what a child's root set is."""
        group_kind = kinds.group_kind_of(document)
        if group_kind in SCALED_KINDS:
            root = string_at(document, ["metadata", "labels", labels.PART_OF])
            owner = self._find_set(string_at(document, ["metadata", "namespace"]), root)
            workload = string_at(owner or {}, ["spec", "workloadType"])
            return msgspec.structs.replace(self._surroundings, root_workload_type=workload)
        if group_kind.group not in ("grove.io", "spinney.dev"):
            return self._surroundings
        topologies: Mapping[str, tuple[str, ...]] = {
            stored.ref.name: tuple(
                string_at(level, ["domain"])
                for level in list_at(stored.document(), ["spec", "levels"])
            )
            for stored in self.store.heads(BINDING)
        }
        return msgspec.structs.replace(self._surroundings, topologies=topologies)

    def _refuse_protected(
        self, kind: Kind, request: Request, old: Document | None, new: Document | None
    ) -> None:
        refusal = self.protection.refusal(kind, request.who, old, new)
        if refusal is not None:
            raise refusal

    # Changing

    async def update(
        self,
        kind: Kind,
        document: Document,
        request: Request,
        *,
        subresource: str = "",
        duplicates: tuple[FieldError, ...] = (),
    ) -> Outcome:
        """Replace an object, or its status."""
        namespace = string_at(document, ["metadata", "namespace"])
        name = string_at(document, ["metadata", "name"])
        head = self._head(kind, namespace, name)
        return await self._change(
            kind, head, lambda _: document, request, subresource=subresource, duplicates=duplicates
        )

    async def patch(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        patch: Patch,
        request: Request,
        *,
        subresource: str = "",
        duplicates: tuple[FieldError, ...] = (),
    ) -> Outcome:
        """Change part of an object; an apply makes it where it is not there."""
        if patch.type == APPLY_PATCH:
            return await self._apply(kind, namespace, name, patch, request, subresource, duplicates)
        head = self._head(kind, namespace, name)

        def change(before: Document) -> Document:
            return _patched(kind, before, patch)

        return await self._change(
            kind, head, change, request, subresource=subresource, duplicates=duplicates
        )

    async def change(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        change: Callable[[Document], Document],
        request: Request,
        *,
        subresource: str = "",
    ) -> Outcome:
        """Change an object by a function of what it is now."""
        head = self._head(kind, namespace, name)
        return await self._change(kind, head, change, request, subresource=subresource)

    async def _change(
        self,
        kind: Kind,
        head: Stored,
        change: Callable[[Document], Document],
        request: Request,
        *,
        subresource: str = "",
        duplicates: tuple[FieldError, ...] = (),
    ) -> Outcome:
        before = head.document()
        after = self._kept(kind, before, change(before), subresource)
        after, warnings = self._checked_change(
            kind, before, after, request, subresource, duplicates
        )
        after = server_side_apply.track_update(
            kind.schema,
            before,
            after,
            request.manager,
            api_version=kind.names.api_version,
            now=self._clock.now(),
            subresource=subresource,
        )
        return await self._store_changed(kind, head, after, request, warnings)

    async def _apply(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        patch: Patch,
        request: Request,
        subresource: str,
        duplicates: tuple[FieldError, ...],
    ) -> Outcome:
        if not isinstance(patch.body, dict):
            raise BadRequest("an apply patch must be an object")
        wanted = _applied(kind, namespace, name, patch.body, subresource)
        head = self.store.head(ref_of(kind, namespace, name))
        if head is None and subresource:
            raise requests.not_found(kind, name)
        before: Document = {} if head is None else head.document()
        after = server_side_apply.apply(
            kind.schema,
            before,
            wanted,
            request.manager,
            force=patch.force,
            api_version=kind.names.api_version,
            now=self._clock.now(),
            subresource=subresource,
        )
        if head is None:
            uid = string_at(wanted, ["metadata", "uid"])
            if uid:
                raise requests.conflict(kind, name, f"there is no object with uid {uid}")
            born, warnings = self._born(kind, after, request, duplicates)
            return await self._store_new(kind, born, request, warnings)
        after = self._kept(kind, before, after, subresource, keeps_managers=True)
        after, warnings = self._checked_change(
            kind, before, after, request, subresource, duplicates
        )
        return await self._store_changed(kind, head, after, request, warnings)

    def _kept(
        self,
        kind: Kind,
        before: Document,
        after: Document,
        subresource: str,
        *,
        keeps_managers: bool = False,
    ) -> Document:
        """Return the new object with all its writer may not change as it was."""
        self._check_same(kind, before, after)
        given = object_at(after, ["metadata"])
        was = object_at(before, ["metadata"])
        if subresource == "status":
            metadata: Document = {**was}
            if keeps_managers or given.get("managedFields") is not None:
                metadata["managedFields"] = given.get("managedFields")
            after = {**before, "metadata": metadata, "status": after.get("status")}
            return after if after["status"] is not None else without(after, ["status"])
        metadata = {key: value for key, value in given.items() if key not in _SERVER_GIVEN}
        for key in (*_SERVER_GIVEN, "name", "namespace", "resourceVersion", "generateName"):
            if key in was:
                metadata[key] = was[key]
        after = {**after, "metadata": metadata}
        for key in ("apiVersion", "kind"):
            after[key] = before.get(key)
        if kind.has_status and subresource != BINDING_SUBRESOURCE:
            status = before.get("status")
            after = without(after, ["status"]) if status is None else {**after, "status": status}
        return after

    @staticmethod
    def _check_same(kind: Kind, before: Document, after: Document) -> None:
        """Raise Conflict where the writer meant another object, or another version of it."""
        name = string_at(before, ["metadata", "name"])
        for field in ("name", "namespace"):
            said = string_at(after, ["metadata", field])
            if said and said != string_at(before, ["metadata", field]):
                raise BadRequest(
                    f"the {field} of the object ({said}) does not match the {field} on the "
                    f"request ({string_at(before, ['metadata', field])})"
                )
        version = string_at(after, ["metadata", "resourceVersion"])
        if version and version != string_at(before, ["metadata", "resourceVersion"]):
            raise requests.modified(kind, name)
        uid = string_at(after, ["metadata", "uid"])
        if uid and uid != string_at(before, ["metadata", "uid"]):
            raise requests.conflict(
                kind,
                name,
                f"Precondition failed: UID in precondition: {uid}, UID in object meta: "
                f"{string_at(before, ['metadata', 'uid'])}",
            )

    def _checked_change(
        self,
        kind: Kind,
        before: Document,
        after: Document,
        request: Request,
        subresource: str,
        duplicates: tuple[FieldError, ...],
    ) -> tuple[Document, tuple[str, ...]]:
        if not subresource:
            self._refuse_protected(kind, request, before, after)
        old = None if subresource == BINDING_SUBRESOURCE else before
        after, warnings = self._admitted(kind, after, old, request, duplicates)
        _refuse_new_finalizers(kind, before, after)
        if _content_changed(before, after):
            count = value_at(before, ["metadata", "generation"])
            generation = count + 1 if is_integer(count) else 1
            after = with_value(after, ["metadata", "generation"], generation)
        return after, warnings

    async def _store_changed(
        self,
        kind: Kind,
        head: Stored,
        after: Document,
        request: Request,
        warnings: tuple[str, ...],
    ) -> Outcome:
        before = head.document()
        if same(_unstamped(before), _unstamped(after)):
            return Outcome(document=before, warnings=warnings)
        if request.dry_run:
            return Outcome(document=after, warnings=warnings)
        try:
            if _is_done_with(after):
                stored = await self.store.remove(head.ref, expects=head.version, document=after)
            else:
                stored = await self.store.put(head.ref, after, expects=head.version)
        except Moved as moved:
            raise requests.modified(kind, head.ref.name) from moved
        return Outcome(document=stored.document(), warnings=warnings)

    # Subresources

    async def scale(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        change: Callable[[Document], Document],
        request: Request,
    ) -> Outcome:
        """Change an object's replicas by a function of its Scale; gives the Scale back."""

        def scaled(before: Document) -> Document:
            return scaling.scaled(kind, before, change(scaling.scale_of(kind, before)))

        outcome = await self.change(
            kind, namespace, name, scaled, request, subresource=SCALE_SUBRESOURCE
        )
        document = scaling.scale_of(kind, outcome.document)
        return Outcome(document=document, warnings=outcome.warnings)

    async def bind(
        self, namespace: str, name: str, node: str, only_if: Precondition, request: Request
    ) -> Outcome:
        """Give a pod its node."""
        kind = pods.pod_kind()

        def bound(before: Document) -> Document:
            self._check_preconditions(kind, before, DeleteOptions(only_if=only_if))
            return pods.bound(before, node, self._clock.now())

        return await self.change(
            kind, namespace, name, bound, request, subresource=BINDING_SUBRESOURCE
        )

    async def evict(
        self, namespace: str, name: str, options: DeleteOptions, request: Request
    ) -> Outcome:
        """Delete a pod if its disruption budgets allow it; raises TooManyRequests."""
        kind = pods.pod_kind()
        pod = self._head(kind, namespace, name).document()
        budgets = [
            stored.document() for stored in self.store.heads(pods.BUDGET, namespace=namespace)
        ]
        pods.refuse_eviction(pod, budgets)
        return await self.delete(kind, namespace, name, options, request)

    # Deleting

    async def delete(
        self, kind: Kind, namespace: str, name: str, options: DeleteOptions, request: Request
    ) -> Outcome:
        """Delete an object, or mark it for those who must act before it is gone."""
        head = self._head(kind, namespace, name)
        document = head.document()
        self._check_preconditions(kind, document, options)
        self._refuse_protected(kind, request, document, None)
        marked = self._marked(kind, document, options)
        if request.dry_run:
            return Outcome(document=marked, gone=_is_done_with(marked))
        if same(document, marked):
            return Outcome(document=document)
        try:
            if _is_done_with(marked):
                gone = await self.store.remove(head.ref, expects=head.version, document=marked)
                return Outcome(document=gone.document(), gone=True)
            stored = await self.store.put(head.ref, marked, expects=head.version)
        except Moved as moved:
            raise requests.modified(kind, name) from moved
        return Outcome(document=stored.document())

    @staticmethod
    def _check_preconditions(kind: Kind, document: Document, options: DeleteOptions) -> None:
        name = string_at(document, ["metadata", "name"])
        for title, field, wanted in (
            ("UID", "uid", options.only_if.uid),
            ("ResourceVersion", "resourceVersion", options.only_if.resource_version),
        ):
            found = string_at(document, ["metadata", field])
            if wanted and wanted != found:
                raise requests.conflict(
                    kind,
                    name,
                    f"Precondition failed: {title} in precondition: {wanted}, "
                    f"{title} in object meta: {found}",
                )

    def _marked(self, kind: Kind, document: Document, options: DeleteOptions) -> Document:
        """Return an object marked as to be deleted; unchanged where nothing is left to mark."""
        metadata = object_at(document, ["metadata"])
        finalizers = [item for item in list_at(metadata, ["finalizers"]) if isinstance(item, str)]
        wanted = {"Foreground": FOREGROUND, "Orphan": ORPHAN}.get(options.propagation)
        if options.propagation:
            finalizers = [item for item in finalizers if item not in (FOREGROUND, ORPHAN)]
        if wanted is not None and not _is_marked(document):
            finalizers.append(wanted)
        grace = strategies.grace_seconds(kind, document, options.grace_seconds)
        marked: Document = {**metadata}
        if finalizers:
            marked["finalizers"] = [*finalizers]
        else:
            marked.pop("finalizers", None)
        now = self._clock.now()
        if not _is_marked(document):
            marked["deletionTimestamp"] = format_time(now + timedelta(seconds=grace))
            marked["deletionGracePeriodSeconds"] = grace
            count = metadata.get("generation")
            if is_integer(count):
                marked["generation"] = count + 1
        else:
            left = metadata.get("deletionGracePeriodSeconds")
            if is_integer(left) and grace < left:
                marked["deletionTimestamp"] = format_time(_shortened(metadata, left, grace))
                marked["deletionGracePeriodSeconds"] = grace
        return {**document, "metadata": marked}


_STRICT_REASONS = (errors.UNKNOWN_FIELD, errors.DUPLICATE_FIELD)


def ref_of(kind: Kind, namespace: str, name: str) -> Ref:
    """Return the reference an object of a kind is stored under."""
    return Ref(
        kind=kind.names.group_kind, namespace=namespace if kind.namespaced else "", name=name
    )


def _strictly(fault: FieldError) -> str:
    word = "unknown" if fault.reason == errors.UNKNOWN_FIELD else "duplicate"
    return f'{word} field "{fault.path}"'


def _patched(kind: Kind, before: Document, patch: Patch) -> Document:
    if patch.type == JSON_PATCH:
        return json_patch.apply(before, patch.body)
    if not isinstance(patch.body, dict):
        raise BadRequest("a patch must be an object")
    if patch.type == MERGE_PATCH:
        return merge_patch.apply(before, patch.body)
    if patch.type == STRATEGIC_PATCH:
        if not kind.is_builtin:
            raise UnsupportedMediaType(
                "the body of the request was in an unknown format - accepted media types "
                f"include: {JSON_PATCH}, {MERGE_PATCH}, {APPLY_PATCH}"
            )
        return strategic.apply(kind.schema, before, patch.body)
    raise UnsupportedMediaType(
        "the body of the request was in an unknown format - accepted media types include: "
        f"{JSON_PATCH}, {MERGE_PATCH}, {STRATEGIC_PATCH}, {APPLY_PATCH}"
    )


def _applied(kind: Kind, namespace: str, name: str, body: Document, subresource: str) -> Document:
    """Return what a manager applies, without the part its request is not about."""
    said = string_at(body, ["metadata", "name"])
    if said and said != name:
        raise BadRequest(
            f"the name of the object ({said}) does not match the name on the request ({name})"
        )
    wanted = with_value(body, ["metadata", "name"], name)
    if kind.namespaced:
        wanted = with_value(wanted, ["metadata", "namespace"], namespace)
    if subresource == "status":
        return {key: wanted[key] for key in wanted if key in _APPLIED_TO_STATUS}
    return without(wanted, ["status"]) if kind.has_status else wanted


_APPLIED_TO_STATUS = ("apiVersion", "kind", "metadata", "status")


def _refuse_new_finalizers(kind: Kind, before: Document, after: Document) -> None:
    if not _is_marked(before):
        return
    had, has = (list_at(document, ["metadata", "finalizers"]) for document in (before, after))
    new = [item for item in has if item not in had]
    if new:
        fault = FieldError(
            path="metadata.finalizers",
            reason=errors.FORBIDDEN,
            message="no new finalizers can be added if the object is being deleted, found new "
            f"finalizers {new}",
        )
        name = string_at(before, ["metadata", "name"])
        raise Invalid([fault], group=kind.names.group, kind=kind.names.kind, name=name)


def _is_marked(document: Document) -> bool:
    return bool(string_at(document, ["metadata", "deletionTimestamp"]))


def _is_done_with(document: Document) -> bool:
    """Whether nothing holds a marked object any more."""
    metadata = object_at(document, ["metadata"])
    if not _is_marked(document) or metadata.get("finalizers"):
        return False
    if list_at(document, ["spec", "finalizers"]) and document.get("kind") == "Namespace":
        return False
    return not metadata.get("deletionGracePeriodSeconds")


def _shortened(metadata: Document, left: int, grace: int) -> datetime:
    marked_at = parse_time(string_at(metadata, ["deletionTimestamp"])) - timedelta(seconds=left)
    return marked_at + timedelta(seconds=grace)


def _content_changed(before: Document, after: Document) -> bool:
    """Whether anything changed besides metadata and status."""
    keys = {*before, *after} - {"metadata", "status", "apiVersion", "kind"}
    return any(not same(before.get(key), after.get(key)) for key in keys)


def _unstamped(document: Document) -> Document:
    """Return a document to compare: without the times in its managed fields."""
    entries = value_at(document, ["metadata", "managedFields"])
    if not is_list(entries):
        return document
    bare: list[Json] = [
        {key: value for key, value in entry.items() if key != "time"}
        for entry in entries
        if isinstance(entry, dict)
    ]
    return with_value(document, ["metadata", "managedFields"], bare)
