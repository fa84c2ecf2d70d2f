"""Discovery: what is served, told in the forms clients ask for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from spinney.api.kinds import Kind
from spinney.meta.documents import Document, Json
from spinney.meta.records import Record
from spinney.meta.references import GroupKind

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
PART_VERBS = ("get", "patch", "update")

POD = GroupKind(group="", kind="Pod")
NAMESPACE = GroupKind(group="", kind="Namespace")
SERVICE_ACCOUNT = GroupKind(group="", kind="ServiceAccount")


class Part(Record):
    """A subresource: a part of an object, or something done to it."""

    name: str
    group: str
    version: str
    kind: str
    verbs: tuple[str, ...] = PART_VERBS


class Resource(Record):
    """What is served under one path."""

    group: str
    version: str
    plural: str
    singular: str
    kind: str
    namespaced: bool
    verbs: tuple[str, ...] = VERBS
    short: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()

    @property
    def group_version(self) -> str:
        """The `apiVersion` of its objects."""
        return f"{self.group}/{self.version}" if self.group else self.version


_POD_PARTS = (
    Part(name="attach", group="", version="v1", kind="PodAttachOptions", verbs=("create", "get")),
    Part(name="binding", group="", version="v1", kind="Binding", verbs=("create",)),
    Part(name="eviction", group="policy", version="v1", kind="Eviction", verbs=("create",)),
    Part(name="exec", group="", version="v1", kind="PodExecOptions", verbs=("create", "get")),
    Part(name="log", group="", version="v1", kind="Pod", verbs=("get",)),
    Part(
        name="portforward",
        group="",
        version="v1",
        kind="PodPortForwardOptions",
        verbs=("create", "get"),
    ),
)
_PARTS = {
    POD: _POD_PARTS,
    NAMESPACE: (
        Part(name="finalize", group="", version="v1", kind="Namespace", verbs=("update",)),
    ),
    SERVICE_ACCOUNT: (
        Part(
            name="token",
            group="authentication.k8s.io",
            version="v1",
            kind="TokenRequest",
            verbs=("create",),
        ),
    ),
}


def parts_of(kind: Kind) -> tuple[Part, ...]:
    """Return the subresources of a kind."""
    names = kind.names
    found = list(_PARTS.get(names.group_kind, ()))
    if kind.has_status:
        found.append(Part(name="status", group=names.group, version=names.version, kind=names.kind))
    if kind.scale is not None:
        found.append(Part(name="scale", group="autoscaling", version="v1", kind="Scale"))
    return tuple(sorted(found, key=lambda part: part.name))


def resource_of(kind: Kind) -> Resource:
    """Return how a kind is served."""
    names = kind.names
    return Resource(
        group=names.group,
        version=names.version,
        plural=names.plural,
        singular=names.singular,
        kind=names.kind,
        namespaced=kind.namespaced,
        short=names.short,
        categories=names.categories,
        parts=parts_of(kind),
    )


def _review(group: str, plural: str, kind: str, *, namespaced: bool = False) -> Resource:
    return Resource(
        group=group,
        version="v1",
        plural=plural,
        singular=kind.lower(),
        kind=kind,
        namespaced=namespaced,
        verbs=("create",),
    )


AUTHORIZATION = "authorization.k8s.io"
AUTHENTICATION = "authentication.k8s.io"

ASKED: tuple[Resource, ...] = (
    _review(AUTHENTICATION, "selfsubjectreviews", "SelfSubjectReview"),
    _review(AUTHENTICATION, "tokenreviews", "TokenReview"),
    _review(
        AUTHORIZATION, "localsubjectaccessreviews", "LocalSubjectAccessReview", namespaced=True
    ),
    _review(AUTHORIZATION, "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
    _review(AUTHORIZATION, "selfsubjectrulesreviews", "SelfSubjectRulesReview"),
    _review(AUTHORIZATION, "subjectaccessreviews", "SubjectAccessReview"),
    _review("", "bindings", "Binding", namespaced=True),
)
"""What is answered and not kept."""


def resources(kinds: Iterable[Kind], others: Iterable[Resource] = ()) -> tuple[Resource, ...]:
    """Return all that is served, kinds and others, sorted; the core group first."""
    found = [*map(resource_of, kinds), *ASKED, *others]
    return tuple(sorted(found, key=lambda item: (item.group, item.version, item.plural)))


def _versions(items: Iterable[Resource]) -> dict[str, dict[str, list[Resource]]]:
    """Return resources by group and version."""
    found: dict[str, dict[str, list[Resource]]] = {}
    for item in items:
        found.setdefault(item.group, {}).setdefault(item.version, []).append(item)
    return {
        group: {version: versions[version] for version in sorted(versions, key=_preference)}
        for group, versions in found.items()
    }


def _preference(version: str) -> tuple[int, int, int, str]:
    """Sort `v2` before `v1` before `v1beta2` before `v1alpha1` before what is no such name."""
    digits, stage = "", ""
    rest = version.removeprefix("v")
    for index, letter in enumerate(rest):
        if not letter.isdigit():
            digits, stage = rest[:index], rest[index:]
            break
    else:
        digits = rest
    word = stage.rstrip("0123456789")
    if not digits.isascii() or not digits or word not in ("", "alpha", "beta"):
        return (3, 0, 0, version)
    minor = stage[len(word) :]
    rank = {"": 0, "beta": 1, "alpha": 2}[word]
    return (rank, -int(digits), -int(minor) if minor else 0, version)


# Aggregated


def aggregated(items: Iterable[Resource], version: str, *, core: bool) -> Document:
    """Return everything at once: of the core group, or of all others."""
    groups: list[Json] = [
        {
            "metadata": {"name": group, "creationTimestamp": None},
            "versions": [
                {
                    "version": name,
                    "resources": [_aggregated_resource(item) for item in found],
                    "freshness": "Current",
                }
                for name, found in versions.items()
            ],
        }
        for group, versions in _versions(items).items()
        if (group == "") == core
    ]
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": groups,
    }


def _aggregated_resource(item: Resource) -> Json:
    made: Document = {
        "resource": item.plural,
        "responseKind": _response_kind(item.group, item.version, item.kind),
        "scope": "Namespaced" if item.namespaced else "Cluster",
        "singularResource": item.singular,
        "verbs": list(item.verbs),
    }
    if item.short:
        made["shortNames"] = list(item.short)
    if item.categories:
        made["categories"] = list(item.categories)
    if item.parts:
        made["subresources"] = [
            {
                "subresource": part.name,
                "responseKind": _response_kind(part.group, part.version, part.kind),
                "verbs": list(part.verbs),
            }
            for part in item.parts
        ]
    return made


def _response_kind(group: str, version: str, kind: str) -> Json:
    return {"group": group, "version": version, "kind": kind}


# Legacy


def api_versions(address: str) -> Document:
    """Return what `/api` says."""
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def group_list(items: Iterable[Resource]) -> Document:
    """Return what `/apis` says."""
    groups: list[Json] = [
        _group(group, versions) for group, versions in _versions(items).items() if group
    ]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def group(items: Iterable[Resource], name: str) -> Document | None:
    """Return what `/apis/GROUP` says, None where there is no such group."""
    versions = _versions(items).get(name)
    if versions is None or not name:
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)}


def _group(name: str, versions: Iterable[str]) -> Document:
    told: list[Json] = [
        {"groupVersion": f"{name}/{version}", "version": version} for version in versions
    ]
    return {"name": name, "versions": told, "preferredVersion": told[0]}


def resource_list(items: Iterable[Resource], group: str, version: str) -> Document | None:
    """Return what `/apis/GROUP/VERSION` says, None where there is no such version."""
    found = [item for item in items if (item.group, item.version) == (group, version)]
    if not found:
        return None
    rows: list[Json] = [row for item in found for row in _rows(item)]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": found[0].group_version,
        "resources": rows,
    }


def _rows(item: Resource) -> Iterator[Document]:
    row: Document = {
        "name": item.plural,
        "singularName": item.singular,
        "namespaced": item.namespaced,
        "kind": item.kind,
        "verbs": list(item.verbs),
    }
    if item.short:
        row["shortNames"] = list(item.short)
    if item.categories:
        row["categories"] = list(item.categories)
    yield row
    for part in item.parts:
        below: Document = {
            "name": f"{item.plural}/{part.name}",
            "singularName": "",
            "namespaced": item.namespaced,
        }
        if (part.group, part.version) != (item.group, item.version):
            below |= {"group": part.group, "version": part.version}
        yield {**below, "kind": part.kind, "verbs": list(part.verbs)}
