"""The objects a call means: `KIND`, `KIND NAME…`, `KIND/NAME…`, lists of kinds, and manifests."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Sequence

from spinney.cli import manifests
from spinney.cli.connecting import Session
from spinney.cli.manifests import Found
from spinney.cli.usage import Usage
from spinney.kube.client import Selection
from spinney.kube.resources import NoSuchResource, Resource
from spinney.meta.documents import Document, list_at, string_at
from spinney.meta.errors import DecodeError
from spinney.meta.records import Record

_FIRST = {
    "Namespace": 0,
    "CustomResourceDefinition": 1,
    "ClusterTopologyBinding": 2,
    "PriorityClass": 3,
}


class Target(Record):
    """Objects of one resource: those of some names, or with none those a selection means."""

    resource: Resource
    names: tuple[str, ...] = ()
    namespace: str = ""
    """Of the names; "" in cluster scope."""


class Item(Record):
    """One object of a manifest, and where it stands."""

    found: Found
    document: Document
    prefix: str = ""
    """The path of the object in its document: "" or that of an item of a list."""

    @property
    def name(self) -> str:
        """The object's name."""
        return string_at(self.document, ["metadata", "name"])

    @property
    def place(self) -> str:
        """File and line."""
        return self.place_of("")

    def place_of(self, path: str) -> str:
        """Return the file and line of a field."""
        whole = ".".join(part for part in (self.prefix, path) if part)
        manifest = self.found.manifest
        return f"{self.found.file}:{manifest.line_of(whole) if whole else manifest.line}"


async def named(session: Session, words: Sequence[str]) -> list[Target]:
    """Return what words mean; raises Usage, NoSuchResource."""
    resources = await session.client.resources()
    if not words:
        raise Usage("say which kind is meant, such as podcliquesets (or pcs), or `all`")
    if not all(words):
        raise Usage("a kind or name is empty: is a variable of the shell not set?")
    if any("/" in word for word in words):
        pairs = [word.partition("/") for word in words]
        for word, (kind, slash, name) in zip(words, pairs, strict=True):
            if not (kind and slash and name):
                raise Usage(f'"{word}": with KIND/NAME, all must be of that form')
        found = [(resources.named(kind), name) for kind, _, name in pairs]
        return [_target(session, resource, (name,)) for resource, name in found]
    kinds: list[Resource] = []
    for word in words[0].split(","):
        group = resources.in_category(word)
        kinds += group or [resources.named(word)]
    return [_target(session, resource, tuple(words[1:])) for resource in dict.fromkeys(kinds)]


def _target(session: Session, resource: Resource, names: tuple[str, ...]) -> Target:
    return Target(resource=resource, names=names, namespace=session.place(resource))


def selection(session: Session, arguments: argparse.Namespace, resource: Resource) -> Selection:
    """Return which objects of a resource a call selects."""
    everywhere = getattr(arguments, "all_namespaces", False) or not resource.namespaced
    return Selection(
        namespace="" if everywhere else session.namespace,
        labels=arguments.selector or "",
        fields=getattr(arguments, "field_selector", None) or "",
    )


def items(files: Sequence[str]) -> list[Item]:
    """Return the objects of manifests; raises DecodeError with file and line.

    In the order they stand in, but what others lean on comes first: namespaces, definitions of
    kinds, topologies and priorities.
    """
    return items_of(manifests.read(files))


def items_of(given: Sequence[Found]) -> list[Item]:
    """Return the objects of manifests that are read already."""
    found = [item for manifest in given for item in _unlisted(manifest)]
    if not found:
        raise Usage("no objects found in the manifests")
    return sorted(found, key=_rank)


def _rank(item: Item) -> int:
    return _FIRST.get(string_at(item.document, ["kind"]), len(_FIRST))


def _unlisted(found: Found) -> list[Item]:
    manifest = found.manifest
    if manifest.error is not None:
        raise DecodeError(f"{found.file}: {manifest.error}")
    for fault in manifest.duplicates:
        raise DecodeError(f"{found.file}:{manifest.line_of(fault.path)}: {fault}")
    document = manifest.document
    if not isinstance(document, dict):
        raise DecodeError(
            f"{found.file}:{manifest.line}: must be an object with apiVersion and kind"
        )
    if document.get("kind") == "List" and isinstance(document.get("items"), list):
        return [
            Item(found=found, document=item, prefix=f"items[{index}]")
            for index, item in enumerate(list_at(document, ["items"]))
            if isinstance(item, dict)
        ]
    return [Item(found=found, document=document)]


async def of_item(session: Session, item: Item) -> Target:
    """Return what an object of a manifest is; raises NoSuchResource with its place, Usage."""
    api_version, kind = string_at(item.document, ["apiVersion"]), string_at(item.document, ["kind"])
    for field, value in (("apiVersion", api_version), ("kind", kind), ("metadata.name", item.name)):
        if not value and not (field == "metadata.name" and _is_generated(item.document)):
            raise Usage(f"{item.place}: {field}: Required value: a string")
    resources = await session.client.resources()
    try:
        resource = resources.of(api_version, kind)
    except NoSuchResource as error:
        raise NoSuchResource(f"{item.place}: {error}") from error
    given = string_at(item.document, ["metadata", "namespace"])
    return Target(
        resource=resource,
        names=(item.name,),
        namespace=(given or session.namespace) if resource.namespaced else "",
    )


def _is_generated(document: Document) -> bool:
    return bool(string_at(document, ["metadata", "generateName"]))


async def chosen(session: Session, arguments: argparse.Namespace) -> list[Target]:
    """Return the objects a command is about: those of its manifests, else those it names."""
    if arguments.files:
        return [await of_item(session, item) for item in items(arguments.files)]
    return await named(session, arguments.objects)


async def names_of(
    session: Session, arguments: argparse.Namespace, target: Target
) -> AsyncIterator[tuple[str, str]]:
    """Yield namespace and name of every object a target means."""
    if target.names:
        for name in target.names:
            yield target.namespace, name
        return
    wanted = selection(session, arguments, target.resource)
    for document in await session.client.objects(target.resource, wanted):
        metadata = ["metadata"]
        yield (
            string_at(document, [*metadata, "namespace"]),
            string_at(document, [*metadata, "name"]),
        )
