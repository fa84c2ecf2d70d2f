"""The one object a command is about, as people name it: `NAME`, `KIND/NAME`, `KIND NAME`."""

from __future__ import annotations

from collections.abc import Sequence

from spinney.api import groupkinds
from spinney.cli.connecting import Session
from spinney.cli.usage import Usage
from spinney.kube.client import Selection
from spinney.kube.resources import Resource
from spinney.meta import shapes
from spinney.meta.documents import Document, string_at
from spinney.meta.errors import ApiError, NotFound
from spinney.meta.records import Record
from spinney.meta.references import GroupKind, Ref

BY_NAME = (
    groupkinds.SET,
    groupkinds.SCALING_GROUP,
    groupkinds.CLIQUE,
    groupkinds.GANG,
    groupkinds.POD,
)
"""What a bare name may be of, the first that is there is meant."""

_CALLED = "set, group, clique, gang or pod"


class Found(Record):
    """An object, and what it is of."""

    resource: Resource
    document: Document

    @property
    def ref(self) -> Ref:
        """How it is referred to."""
        return Ref(
            kind=self.resource.group_kind,
            namespace=string_at(self.document, ["metadata", "namespace"]),
            name=string_at(self.document, ["metadata", "name"]),
        )


async def resource_of(session: Session, kind: GroupKind) -> Resource | None:
    """Return how a server serves a kind, None where it does not."""
    for resource in await session.client.resources():
        if resource.group_kind == kind:
            return resource
    return None


async def meant(session: Session, words: Sequence[str]) -> Found:
    """Return the object that words mean; raises Usage, NoSuchResource, NotFound."""
    if not all(words):
        raise Usage("a name is empty: is a variable of the shell not set?")
    kind, name = _kind_and_name(words)
    if not kind:
        return await _by_name(session, name)
    resource = (await session.client.resources()).named(kind)
    document = await session.client.get(resource, session.place(resource), name)
    return Found(resource=resource, document=_whole(resource, document))


def _kind_and_name(words: Sequence[str]) -> tuple[str, str]:
    if len(words) == 2 and "/" not in words[0] + words[1]:
        return words[0], words[1]
    if len(words) > 1:
        raise Usage(f"one object is meant, as NAME or KIND/NAME; given are: {' '.join(words)}")
    kind, slash, name = words[0].partition("/")
    if (slash and not (kind and name)) or "/" in name:
        raise Usage(f'"{words[0]}": must be NAME or KIND/NAME')
    return (kind, name) if slash else ("", kind)


def _whole(resource: Resource, document: Document) -> Document:
    return {"apiVersion": resource.api_version, "kind": resource.kind, **document}


async def _by_name(session: Session, name: str) -> Found:
    """Return the first object of a name; raises NotFound with what is there."""
    for kind in BY_NAME:
        resource = await resource_of(session, kind)
        if resource is None:
            continue
        try:
            document = await session.client.get(resource, session.namespace, name)
        except NotFound:
            continue
        return Found(resource=resource, document=_whole(resource, document))
    raise NotFound(
        f'no {_CALLED} is called "{name}" in namespace {session.namespace}'
        + await _hint(session, name)
    )


async def _hint(session: Session, name: str) -> str:
    """Return what may have been meant."""
    resource = await resource_of(session, groupkinds.SET)
    if resource is None:
        return ""
    try:
        sets = await session.client.objects(resource, Selection())
    except ApiError:
        return ""
    elsewhere = [
        string_at(each, ["metadata", "namespace"])
        for each in sets
        if string_at(each, ["metadata", "name"]) == name
    ]
    if elsewhere:
        return f"; there is a set of that name in namespace {elsewhere[0]}: -n {elsewhere[0]}"
    here = [
        string_at(each, ["metadata", "name"])
        for each in sets
        if string_at(each, ["metadata", "namespace"]) == session.namespace
    ]
    return shapes.did_you_mean(name, sorted(here))
