"""Places: where a server keeps objects of the kinds this program knows.

The version asked for is the one whose form is known here, not the one the server prefers. So
nothing needs to be discovered: a server that lacks a kind says so each time, until it has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from spinney.api.kinds import Kind
from spinney.kube import client
from spinney.kube.kubeconfig import BadKubeconfig
from spinney.kube.resources import Resource
from spinney.meta.documents import Document, string_at
from spinney.meta.errors import BadRequest, NotFound, Unauthorized, json_string
from spinney.meta.references import GroupKind, Ref


class Places:
    """The resources of some kinds."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        """Know these kinds, and no other."""
        self._resources = {kind.names.group_kind: _resource(kind) for kind in kinds}

    def resource(self, kind: GroupKind) -> Resource:
        """Return how a kind is served; raises NotFound for one that is not known."""
        found = self._resources.get(kind)
        if found is None:
            raise NotFound(f"the server could not find the requested resource: {kind} is not known")
        return found

    def resource_of(self, document: Document) -> Resource:
        """Return how documents such as this are served; raises BadRequest."""
        api_version, kind = string_at(document, ["apiVersion"]), string_at(document, ["kind"])
        group = api_version.rpartition("/")[0]
        found = self._resources.get(GroupKind(group=group, kind=kind))
        if found is None or found.api_version != api_version:
            raise BadRequest(
                f"no kind {json_string(kind)} is registered for version {json_string(api_version)}"
            )
        return found

    def of(self, target: Ref, subresource: str = "") -> str:
        """Return the path of an object, or of a part of it; raises NotFound, BadRequest."""
        resource = self.resource(target.kind)
        namespace = namespace_of(resource, target.namespace)
        return client.place(resource, namespace, target.name, subresource)


def namespace_of(resource: Resource, namespace: str) -> str:
    """Return the namespace a path carries; raises BadRequest where one is needed, and not given."""
    if not resource.namespaced:
        return ""
    if not namespace:
        raise BadRequest(f"metadata.namespace: Required value: {resource.full_name} have one")
    return namespace


@contextmanager
def refused_without_credentials() -> Iterator[None]:
    """Turn credentials that cannot be had just now into Unauthorized, which is tried again."""
    try:
        yield
    except BadKubeconfig as error:
        raise Unauthorized(str(error)) from error


def _resource(kind: Kind) -> Resource:
    names = kind.names
    return Resource(
        group=names.group,
        version=names.version,
        plural=names.plural,
        kind=names.kind,
        singular=names.singular,
        namespaced=kind.namespaced,
    )
