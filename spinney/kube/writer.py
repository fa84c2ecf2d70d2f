"""The writer: one write a request, to a server of the Kubernetes API.

Nothing is sent twice here, even where the server says "later": what was decided may no longer hold
then, nor may whoever decided it still lead. The engine tries again, by its own rules.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from spinney.api.kinds import Kind
from spinney.kube import client, places
from spinney.kube.client import Write
from spinney.kube.transport import JSON, Query, Transport, Unreachable
from spinney.meta.documents import Document, Json, list_at, object_at, string_at
from spinney.meta.errors import Conflict, Invalid
from spinney.meta.references import GroupKind, Precondition, Ref
from spinney.ports import Written


class HttpWriter:
    """Implements `ports.Writer` over HTTP. No answer is an OSError: the write may have taken."""

    def __init__(self, transport: Transport, kinds: Iterable[Kind], manager: str) -> None:
        """Write these kinds under a field manager; the server knows who by the credentials."""
        self._transport = transport
        self._places = places.Places(kinds)
        self._manager = manager

    async def create(self, document: Document) -> Written:
        """Make an object."""
        resource = self._places.resource_of(document)
        said = string_at(document, ["metadata", "namespace"])
        path = client.collection(resource, places.namespace_of(resource, said))
        answer = await self._send("POST", path, document, JSON, self._query())
        return _written(resource.group_kind, answer)

    async def apply(self, document: Document, *, force: bool) -> Written:
        """Say how an object should be, by server-side apply."""
        target = Ref(
            kind=self._places.resource_of(document).group_kind,
            namespace=string_at(document, ["metadata", "namespace"]),
            name=string_at(document, ["metadata", "name"]),
        )
        path = self._places.of(target)
        query = self._query(force=force)
        answer = await self._send("PATCH", path, document, client.APPLY_PATCH, query)
        return _written(target.kind, answer)

    async def patch(
        self, target: Ref, merge: Document, only_if: Precondition, subresource: str = ""
    ) -> Written:
        """Merge-patch an object, or a part of it; the patch itself carries the precondition."""
        body = merge
        if held := _preconditions(only_if):
            body = {**merge, "metadata": {**object_at(merge, ["metadata"]), **held}}
        path = self._places.of(target, subresource)
        try:
            answer = await self._send("PATCH", path, body, client.MERGE_PATCH, self._query())
        except Invalid as error:
            if only_if.uid and _is_about_uid(error):
                raise Conflict(
                    f"{target} is another object of that name: its uid is not {only_if.uid}",
                    details=error.details,
                ) from error
            raise
        return _written(target.kind, answer)

    async def put_status(self, target: Ref, status: Document, resource_version: str) -> Written:
        """Replace the whole status of an object that is still of a version.

        A PUT of the status would need the whole object, and of some kinds takes its labels and
        annotations as well; this says the status alone.
        """
        body: Json = [
            {"op": "replace", "path": "/metadata/resourceVersion", "value": resource_version},
            {"op": "add", "path": "/status", "value": status},
        ]
        path = self._places.of(target, "status")
        answer = await self._send("PATCH", path, body, client.JSON_PATCH, self._query())
        return _written(target.kind, answer)

    async def delete(
        self,
        target: Ref,
        only_if: Precondition,
        *,
        grace_seconds: int | None,
        propagation: str,
    ) -> None:
        """Delete an object."""
        options = _delete_options(only_if)
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        if propagation:
            options["propagationPolicy"] = propagation
        await self._send("DELETE", self._places.of(target), options, JSON, ())

    async def evict(self, target: Ref, only_if: Precondition) -> None:
        """Delete a pod if its disruption budgets allow it."""
        body: Document = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": target.name, "namespace": target.namespace},
            "deleteOptions": _delete_options(only_if),
        }
        path = self._places.of(target, "eviction")
        await self._send("POST", path, body, JSON, self._query())

    async def bind(self, pod: Ref, node: str, only_if: Precondition) -> None:
        """Give a pod its node."""
        metadata = {"name": pod.name, "namespace": pod.namespace, **_preconditions(only_if)}
        body: Document = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": metadata,
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        path = self._places.of(pod, "binding")
        await self._send("POST", path, body, JSON, self._query())

    def _query(self, *, force: bool = False) -> Query:
        return Write(manager=self._manager, force=force).query

    async def _send(self, method: str, path: str, body: Json, form: str, query: Query) -> Document:
        with places.refused_without_credentials():
            answer = await self._transport.request(
                method,
                path,
                query=query,
                body=msgspec.json.encode(body),
                content_type=form,
                attempts_max=1,
            )
        return answer.document


def _preconditions(only_if: Precondition) -> Document:
    """Return what must hold as metadata, or as `preconditions`, say it."""
    pairs = (("uid", only_if.uid), ("resourceVersion", only_if.resource_version))
    return {key: value for key, value in pairs if value}


def _is_about_uid(error: Invalid) -> bool:
    """Whether a patch was refused as it would change the uid: that is how servers say it."""
    return any(
        string_at(cause, ["field"]) == "metadata.uid"
        for cause in list_at(error.details, ["causes"])
    )


def _delete_options(only_if: Precondition) -> Document:
    options: Document = {"apiVersion": "v1", "kind": "DeleteOptions"}
    if held := _preconditions(only_if):
        options["preconditions"] = held
    return options


def _written(kind: GroupKind, answer: Document) -> Written:
    metadata = object_at(answer, ["metadata"])
    uid, version = string_at(metadata, ["uid"]), string_at(metadata, ["resourceVersion"])
    if not uid or not version:
        raise Unreachable("the answer to a write names no uid and version: is it a Kubernetes API?")
    ref = Ref(
        kind=kind,
        namespace=string_at(metadata, ["namespace"]),
        name=string_at(metadata, ["name"]),
    )
    return Written(ref=ref, uid=uid, resource_version=version)
