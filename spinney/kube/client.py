"""The client of a Kubernetes API server: the embedded one's and a cluster's alike."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from types import TracebackType
from typing import Self

import msgspec

from spinney.kube import resources
from spinney.kube.resources import Resource, Resources
from spinney.kube.transport import JSON, Answer, Query, Transport
from spinney.meta.documents import Document, Json, list_at, object_at, string_at
from spinney.meta.errors import BadRequest, json_string
from spinney.meta.records import Record

TABLE = (
    "application/json;as=Table;v=v1;g=meta.k8s.io,"
    "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
)
"""Asks for a list as a table, as the server thinks people want to see it."""

DISCOVERY = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
)
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
PAGE_SIZE = 500


class Selection(Record):
    """Which objects of a resource are meant; no namespace is all of them."""

    namespace: str = ""
    labels: str = ""
    fields: str = ""

    @property
    def query(self) -> Query:
        """The selection as a server takes it."""
        pairs = (("labelSelector", self.labels), ("fieldSelector", self.fields))
        return [(key, value) for key, value in pairs if value]


class Write(Record):
    """How a write is to be done."""

    manager: str = "spinney"
    dry_run: bool = False
    validation: str = "Strict"
    force: bool = False
    """For an apply: take the fields that other managers hold."""

    @property
    def query(self) -> Query:
        """The options as a server takes them."""
        pairs = [("fieldManager", self.manager), ("fieldValidation", self.validation)]
        if self.dry_run:
            pairs.append(("dryRun", "All"))
        if self.force:
            pairs.append(("force", "true"))
        return pairs


class Client:
    """Reads and writes objects of one server."""

    def __init__(self, carrier: Transport) -> None:
        """Ask over a transport; the client closes it."""
        self.transport = carrier
        self._resources: Resources | None = None

    async def __aenter__(self) -> Self:
        """Open nothing: the first request does."""
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        """Close the connections."""
        await self.transport.close()

    # What there is

    async def resources(self, *, anew: bool = False) -> Resources:
        """Return what the server serves; asked once, and again with `anew`."""
        if self._resources is None or anew:
            self._resources = Resources([*await self._served("/api"), *await self._served("/apis")])
        return self._resources

    async def _served(self, root: str) -> list[Resource]:
        found = (await self.transport.request("GET", root, accept=DISCOVERY)).document
        if string_at(found, ["kind"]) == "APIGroupDiscoveryList":
            return resources.from_aggregated(found)
        paths = [f"{root}/{version}" for version in list_at(found, ["versions"])]
        for group in list_at(found, ["groups"]):
            preferred = string_at(group, ["preferredVersion", "groupVersion"])
            versions = [string_at(item, ["groupVersion"]) for item in list_at(group, ["versions"])]
            paths += [f"{root}/{version}" for version in _first(preferred, versions)]
        lists = [(await self.transport.request("GET", path)).document for path in paths]
        return [
            resource for document in lists for resource in resources.from_resource_list(document)
        ]

    # Reading

    async def get(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        *,
        subresource: str = "",
        form: str = JSON,
    ) -> Document:
        """Return an object; raises NotFound."""
        path = place(resource, namespace, name, subresource)
        return (await self.transport.request("GET", path, accept=form)).document

    async def page(
        self,
        resource: Resource,
        selection: Selection,
        *,
        limit: int = PAGE_SIZE,
        token: str = "",
        form: str = JSON,
        version: str = "",
    ) -> Document:
        """Return a page of a list."""
        query = [*selection.query, ("limit", str(limit))]
        query += [("continue", token)] if token else []
        query += [("resourceVersion", version)] if version else []
        path = resource.path(selection.namespace)
        return (await self.transport.request("GET", path, query=query, accept=form)).document

    async def pages(
        self, resource: Resource, selection: Selection, *, form: str = JSON, size: int = PAGE_SIZE
    ) -> AsyncIterator[Document]:
        """Yield a list, page by page; raises Expired where it is kept no more."""
        token = ""
        while True:
            page = await self.page(resource, selection, limit=size, token=token, form=form)
            yield page
            token = string_at(page, ["metadata", "continue"])
            if not token:
                return

    async def objects(self, resource: Resource, selection: Selection) -> list[Document]:
        """Return all objects meant, with the kind and version a list leaves out."""
        found: list[Document] = []
        async for page in self.pages(resource, selection):
            found += [
                {"apiVersion": resource.api_version, "kind": resource.kind, **object_at(item, [])}
                for item in list_at(page, ["items"])
            ]
        return found

    # Writing

    async def create(
        self, resource: Resource, namespace: str, document: Document, write: Write
    ) -> Answer:
        """Make an object; raises AlreadyExists."""
        path = collection(resource, namespace)
        return await self._write("POST", path, document, JSON, write.query)

    async def replace(
        self,
        resource: Resource,
        namespace: str,
        document: Document,
        write: Write,
        *,
        subresource: str = "",
    ) -> Answer:
        """Replace an object; raises Conflict where it carries another version than the stored."""
        name = string_at(document, ["metadata", "name"])
        path = place(resource, namespace, name, subresource)
        return await self._write("PUT", path, document, JSON, write.query)

    async def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: Json,
        write: Write,
        *,
        form: str = MERGE_PATCH,
        subresource: str = "",
    ) -> Answer:
        """Patch an object; `form` is one of the content types above."""
        path = place(resource, namespace, name, subresource)
        return await self._write("PATCH", path, body, form, write.query)

    async def apply(
        self, resource: Resource, namespace: str, document: Document, write: Write
    ) -> Answer:
        """Say how an object should be, by server-side apply; raises ApplyConflict."""
        name = string_at(document, ["metadata", "name"])
        return await self.patch(resource, namespace, name, document, write, form=APPLY_PATCH)

    async def delete(
        self, resource: Resource, namespace: str, name: str, options: Document
    ) -> Answer:
        """Delete an object; `options` are those of a `DeleteOptions`."""
        body: Document = {"apiVersion": "v1", "kind": "DeleteOptions", **options}
        return await self._write("DELETE", place(resource, namespace, name), body, JSON, ())

    async def _write(
        self, method: str, path: str, body: Json, form: str, query: Sequence[tuple[str, str]]
    ) -> Answer:
        data = msgspec.json.encode(body)
        return await self.transport.request(method, path, query=query, body=data, content_type=form)

    async def raw(self, path: str) -> Document:
        """Return what a path answers, such as `/version`."""
        return (await self.transport.request("GET", path)).document


def place(resource: Resource, namespace: str, name: str, subresource: str = "") -> str:
    """Return where an object is; raises BadRequest for a name that would lead elsewhere.

    Without one, or with "..", a request for an object would be one for all of them, or for their
    namespace.
    """
    if not name:
        raise BadRequest(f"resource name may not be empty ({resource.full_name})")
    _check_part(name)
    _check_part(namespace)
    return resource.path(namespace, name, subresource)


def collection(resource: Resource, namespace: str) -> str:
    """Return where all objects of a namespace are; raises as `place` does."""
    _check_part(namespace)
    return resource.path(namespace)


def _check_part(text: str) -> None:
    if text in (".", "..") or "/" in text or "%" in text:
        raise BadRequest(
            f"invalid resource name {json_string(text)}: "
            "must not be '.' or '..', nor contain '/' or '%'"
        )


def _first(preferred: str, versions: list[str]) -> list[str]:
    return sorted(versions, key=lambda version: version != preferred)
