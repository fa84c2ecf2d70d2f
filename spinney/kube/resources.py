"""Resources: what a server serves, by its own account (discovery), and how people call it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import quote

from spinney.meta import shapes
from spinney.meta.documents import Document, Json, list_at, object_at, string_at
from spinney.meta.errors import SpinneyError
from spinney.meta.records import Record
from spinney.meta.references import GroupKind


class NoSuchResource(SpinneyError):
    """The user: the server serves nothing of that name."""


class Resource(Record):
    """One sort of object, as a server serves it."""

    group: str
    version: str
    plural: str
    kind: str
    singular: str = ""
    namespaced: bool = True
    short: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        """The `apiVersion` of its documents."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_kind(self) -> GroupKind:
        """The kind without its version."""
        return GroupKind(group=self.group, kind=self.kind)

    @property
    def full_name(self) -> str:
        """The plural with its group, as errors call it: `podcliquesets.grove.io`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def title(self, name: str) -> str:
        """Return an object as `-o name` calls it: `podcliqueset.grove.io/chat`."""
        singular = self.singular or self.kind.lower()
        return f"{singular}.{self.group}/{name}" if self.group else f"{singular}/{name}"

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return where objects are: all of them, those of a namespace, one, or a part of one."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        parts = [root]
        if namespace and self.namespaced:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(self.plural)
        if name:
            parts.append(quote(name, safe=":"))
        if subresource:
            parts.append(subresource)
        return "/".join(parts)


def from_aggregated(document: Document) -> list[Resource]:
    """Return the resources of an `APIGroupDiscoveryList`, the preferred version of each first."""
    return [
        _aggregated_resource(string_at(group, ["metadata", "name"]), version, item)
        for group in list_at(document, ["items"])
        for version in list_at(group, ["versions"])
        for item in list_at(version, ["resources"])
    ]


def _aggregated_resource(group: str, version: Json, item: Json) -> Resource:
    return Resource(
        group=group,
        version=string_at(version, ["version"]),
        plural=string_at(item, ["resource"]),
        kind=string_at(item, ["responseKind", "kind"]),
        singular=string_at(item, ["singularResource"]),
        namespaced=string_at(item, ["scope"]) == "Namespaced",
        short=_texts(item, "shortNames"),
        categories=_texts(item, "categories"),
        verbs=_texts(item, "verbs"),
        subresources=tuple(
            string_at(below, ["subresource"]) for below in list_at(item, ["subresources"])
        ),
    )


def from_resource_list(document: Document) -> list[Resource]:
    """Return the resources of an `APIResourceList`, as servers before 1.26 give them."""
    group, _, version = string_at(document, ["groupVersion"]).rpartition("/")
    items = list_at(document, ["resources"])
    below: dict[str, list[str]] = {}
    for item in items:
        plural, _, subresource = string_at(item, ["name"]).partition("/")
        below.setdefault(plural, []).extend([subresource] if subresource else [])
    return [
        Resource(
            group=group,
            version=version,
            plural=string_at(item, ["name"]),
            kind=string_at(item, ["kind"]),
            singular=string_at(item, ["singularName"]),
            namespaced=object_at(item, []).get("namespaced") is True,
            short=_texts(item, "shortNames"),
            categories=_texts(item, "categories"),
            verbs=_texts(item, "verbs"),
            subresources=tuple(below[string_at(item, ["name"])]),
        )
        for item in items
        if "/" not in string_at(item, ["name"])
    ]


def _texts(item: Json, field: str) -> tuple[str, ...]:
    return tuple(text for text in list_at(item, [field]) if isinstance(text, str))


class Resources:
    """All that a server serves, by what people call it."""

    def __init__(self, resources: Iterable[Resource]) -> None:
        """Hold resources; of several that have a name, the first is meant."""
        self._all = tuple(resources)

    def __iter__(self) -> Iterator[Resource]:
        """Every resource, in the server's order."""
        return iter(self._all)

    def named(self, word: str) -> Resource:
        """Return the resource a word means; raises NoSuchResource.

        A word is a plural, singular, kind or short name, in any case; a group, or a version and a
        group, may follow after a dot: `pods`, `podcliquesets.grove.io`, `leases.v1.coordination…`.
        """
        name, _, rest = word.casefold().partition(".")
        for is_short in (False, True):
            for resource in self._all:
                if name in _names(resource, is_short) and _is_in(resource, rest):
                    return resource
        raise NoSuchResource(f'the server doesn\'t have a resource type "{word}"{self._hint(name)}')

    def in_category(self, word: str) -> Sequence[Resource]:
        """Return the resources of a category, such as `all`, each in one version."""
        found: dict[GroupKind, Resource] = {}
        for resource in self._all:
            if word in resource.categories and "list" in resource.verbs:
                found.setdefault(resource.group_kind, resource)
        return tuple(found.values())

    def of(self, api_version: str, kind: str) -> Resource:
        """Return the resource that serves documents of a kind; raises NoSuchResource."""
        for resource in self._all:
            if resource.kind == kind and resource.api_version == api_version:
                return resource
        versions = sorted({item.api_version for item in self._all if item.kind == kind})
        other = f"; {kind} is served as {', '.join(versions)}" if versions else ""
        raise NoSuchResource(
            f'the server serves no kind "{kind}" in version "{api_version}"{other}'
        )

    def _hint(self, name: str) -> str:
        known = {text for resource in self._all for text in _names(resource, False)}
        return shapes.did_you_mean(name, sorted(known))


def _names(resource: Resource, is_short: bool) -> tuple[str, ...]:
    if is_short:
        return resource.short
    return (resource.plural, resource.singular, resource.kind.casefold())


def _is_in(resource: Resource, rest: str) -> bool:
    return not rest or rest in (resource.group, f"{resource.version}.{resource.group}".rstrip("."))
