"""What the server says of itself: discovery, OpenAPI, its version. Made anew when kinds change."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Mapping

import spinney
from spinney.meta.documents import Document, Json
from spinney.registry import requests
from spinney.registry.catalog import Catalog
from spinney.server import discovery, negotiation, openapi, openapi_v2, replies
from spinney.server.asking import Asked
from spinney.server.discovery import Resource
from spinney.server.replies import Reply

MAJOR, MINOR = "1", "33"
"""The version of Kubernetes whose API this is."""

VERSION: Document = {
    "major": MAJOR,
    "minor": MINOR,
    "gitVersion": f"v{MAJOR}.{MINOR}.0+spinney-{spinney.__version__}",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "none",
    "compiler": "python",
    "platform": "linux/amd64",
}

Make = Callable[[], "Document | None"]


class Described:
    """Answers discovery and OpenAPI of a catalog's kinds."""

    def __init__(self, catalog: Catalog, others: tuple[Resource, ...] = ()) -> None:
        """Describe the kinds of a catalog, as they come and go, and what else is served."""
        self._catalog = catalog
        self._others = others
        self._made_of = -1
        self._resources: tuple[Resource, ...] = ()
        self._kept: dict[tuple[str, ...], tuple[bytes, str]] = {}

    @property
    def resources(self) -> tuple[Resource, ...]:
        """All that is served."""
        self._look()
        return self._resources

    def _look(self) -> None:
        if self._made_of != self._catalog.changes:
            self._made_of = self._catalog.changes
            self._resources = discovery.resources(self._catalog, self._others)
            self._kept.clear()

    def answer(self, asked: Asked) -> Reply | None:
        """Answer a request about what is served, None where it is about something else."""
        parts = tuple(part for part in asked.target.path.split("/") if part)
        self._look()
        if parts == ("version",):
            return replies.of(VERSION)
        if parts in (("api",), ("apis",)):
            return self._root(asked, parts[0])
        if parts[:2] == ("openapi", "v3"):
            return self._openapi(asked, parts[2:])
        if parts == ("openapi", "v2"):
            return self._openapi_v2(asked)
        if parts[:1] == ("api",) and len(parts) == 2:
            return self._legacy(asked, ("list", "", parts[1]))
        if parts[:1] == ("apis",) and len(parts) == 2:
            return self._legacy(asked, ("group", parts[1]))
        if parts[:1] == ("apis",) and len(parts) == 3:
            return self._legacy(asked, ("list", parts[1], parts[2]))
        if not parts:
            return replies.of({"paths": _paths(self._resources)})
        return None

    def _root(self, asked: Asked, which: str) -> Reply:
        version = negotiation.discovery_version(asked.request.headers.get("Accept", ""))
        if version:
            media = (
                f"{negotiation.JSON};g={negotiation.DISCOVERY};v={version};as=APIGroupDiscoveryList"
            )
            return self._tagged(
                asked,
                ("aggregated", which, version),
                lambda: discovery.aggregated(self._resources, version, core=which == "api"),
                media,
            )
        if which == "api":
            return replies.of(discovery.api_versions(asked.request.host or ""))
        return self._legacy(asked, ("groups",))

    def _legacy(self, asked: Asked, key: tuple[str, ...]) -> Reply:
        _ = asked.form
        makes: Mapping[str, Make] = {
            "groups": lambda: discovery.group_list(self._resources),
            "group": lambda: discovery.group(self._resources, key[-1]),
            "list": lambda: discovery.resource_list(self._resources, *key[1:3]),
        }
        return self._tagged(asked, key, makes[key[0]])

    def _openapi_v2(self, asked: Asked) -> Reply:
        if not openapi_v2.is_asked_for(asked.request.headers.get("Accept", "")):
            _ = asked.form
            return self._tagged(
                asked,
                ("openapi v2",),
                lambda: openapi_v2.document(self._catalog, spinney.__version__),
            )
        body = openapi_v2.encoded(self._catalog, spinney.__version__)
        return Reply(body=body, media=openapi_v2.MEDIA)

    def _openapi(self, asked: Asked, parts: tuple[str, ...]) -> Reply:
        if not parts:
            return self._tagged(asked, ("openapi",), self._openapi_index)
        group = parts[1] if parts[0] == "apis" and len(parts) == 3 else ""
        if len(parts) != (3 if group else 2) or (group == "") != (parts[0] == "api"):
            raise requests.no_such_resource()
        return self._tagged(
            asked, ("openapi", group, parts[-1]), lambda: self._openapi_document(group, parts[-1])
        )

    def _openapi_index(self) -> Document:
        paths: Document = {}
        for group, version in sorted({(item.group, item.version) for item in self._resources}):
            path = openapi.path_of(group, version)
            make = functools.partial(self._openapi_document, group, version)
            _, tag = self._bytes(("openapi", group, version), make)
            paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={tag}"}
        return {"paths": paths}

    def _openapi_document(self, group: str, version: str) -> Document | None:
        if not any((item.group, item.version) == (group, version) for item in self._resources):
            return None
        return openapi.document(self._catalog, group, version, spinney.__version__)

    def _bytes(self, key: tuple[str, ...], make: Make) -> tuple[bytes, str]:
        kept = self._kept.get(key)
        if kept is None:
            made = make()
            if made is None:
                raise requests.no_such_resource()
            body = replies.encoded(made)
            kept = self._kept[key] = (body, hashlib.sha256(body).hexdigest().upper())
        return kept

    def _tagged(
        self, asked: Asked, key: tuple[str, ...], make: Make, media: str = negotiation.JSON
    ) -> Reply:
        """Answer with a document and its tag, or with its tag alone where that is known."""
        body, tag = self._bytes(key, make)
        headers = (("ETag", f'"{tag}"'), ("Vary", "Accept"))
        if f'"{tag}"' in asked.request.headers.get("If-None-Match", ""):
            return Reply(status=304, media=media, headers=headers)
        return Reply(body=body, media=media, headers=headers)


def _paths(resources: tuple[Resource, ...]) -> list[Json]:
    groups = {item.group for item in resources if item.group}
    versions = {f"/apis/{item.group}/{item.version}" for item in resources if item.group}
    return [
        "/api",
        "/api/v1",
        "/apis",
        *sorted({*versions, *(f"/apis/{group}" for group in groups)}),
        "/healthz",
        "/livez",
        "/openapi/v2",
        "/openapi/v3",
        "/readyz",
        "/version",
    ]
