"""Resource sharing: claims on devices that several pods of a set hold together, and their rules."""

from collections.abc import Iterator
from typing import Annotated

from spinney.meta.cursors import Cursor
from spinney.meta.documents import Document
from spinney.meta.errors import FieldError, cut
from spinney.meta.records import Field, Record

ALL_REPLICAS = "AllReplicas"
PER_REPLICA = "PerReplica"


class ResourceClaimTemplateConfig(Record):
    """A claim template that the sharing entries of the same object refer to by name."""

    name: Annotated[
        str, Field("How sharing entries call it; unique.", required=True, example="nvlink")
    ]
    template_spec: Annotated[
        Document,
        Field(
            "The template, as in resource.k8s.io/v1.",
            core="ResourceClaimTemplateSpec",
            required=True,
        ),
    ]


class ResourceSharing(Record, kw_only=True):
    """A claim shared by pods of one clique."""

    name: Annotated[
        str,
        Field(
            "A template of this object, or a ResourceClaimTemplate beside it.",
            required=True,
        ),
    ]
    namespace: Annotated[
        str,
        Field(
            "Where a ResourceClaimTemplate of that name stands; the object's own by default. "
            "Must be empty for a template of this object."
        ),
    ] = ""
    scope: Annotated[
        str,
        Field(
            "Whether all replicas share one claim, or each replica has its own.",
            enum=(ALL_REPLICAS, PER_REPLICA),
            required=True,
        ),
    ]


class GroupSharingFilter(Record):
    """Which cliques of a group hold the claim."""

    child_clique_names: Annotated[
        tuple[str, ...], Field("Names of cliques of the group; at least one.")
    ] = ()


class GroupResourceSharing(ResourceSharing, kw_only=True):
    """A claim shared by pods of one group."""

    filter: Annotated[
        GroupSharingFilter | None, Field("Which cliques hold it; all where it is absent.")
    ] = None


class SetSharingFilter(Record):
    """Which cliques and groups of a set hold the claim."""

    child_clique_names: Annotated[
        tuple[str, ...], Field("Names of cliques of the set, grouped ones included.")
    ] = ()
    child_scaling_group_names: Annotated[tuple[str, ...], Field("Names of groups of the set.")] = ()


class SetResourceSharing(ResourceSharing, kw_only=True):
    """A claim shared by pods of a whole set."""

    filter: Annotated[
        SetSharingFilter | None,
        Field("Which cliques and groups hold it; all where it is absent."),
    ] = None


def rules(template: Cursor) -> Iterator[FieldError]:
    """Yield what is wrong with a template's claim templates and sharing entries."""
    internal: set[str] = set()
    for entry in template["resourceClaimTemplates"]:
        name = entry["name"].string()
        if name is not None and not name.strip():
            yield entry["name"].required("a claim template must have a name")
        elif name in internal:
            yield entry["name"].duplicate()
        elif name is not None:
            internal.add(name)
        requests = entry.at("templateSpec", "spec", "devices", "requests")
        if entry["templateSpec"].object() is not None and not requests.value:
            yield requests.required("at least one device request must be given")
    cliques = {clique["name"].string() or "" for clique in template["cliques"]}
    groups = {group["name"].string() or "" for group in template["podCliqueScalingGroups"]}
    yield from _list_rules(template["resourceSharing"], internal)
    for entry in template["resourceSharing"]:
        chosen = entry["filter"]
        if chosen.object() is None:
            continue
        by_clique, by_group = chosen["childCliqueNames"], chosen["childScalingGroupNames"]
        if not by_clique.value and not by_group.value:
            yield chosen.required("name at least one clique or group, or leave the filter out")
        yield from _unknown(by_clique, cliques, "no clique of this name in the set")
        yield from _unknown(by_group, groups, "no group of this name in the set")
    for clique in template["cliques"]:
        yield from _list_rules(clique["resourceSharing"], internal)
    for group in template["podCliqueScalingGroups"]:
        yield from _list_rules(group["resourceSharing"], internal)
        members = set(group["cliqueNames"].strings())
        for entry in group["resourceSharing"]:
            chosen = entry["filter"]
            if chosen.object() is None:
                continue
            if not chosen["childCliqueNames"].value:
                yield chosen.required("name at least one clique, or leave the filter out")
            yield from _unknown(
                chosen["childCliqueNames"], members, "no clique of this name in the group"
            )


def _list_rules(entries: Cursor, internal: set[str]) -> Iterator[FieldError]:
    seen: set[str] = set()
    for entry in entries:
        name = entry["name"].string()
        if name is None:
            continue
        if not name.strip():
            yield entry["name"].required("name the claim template to share")
            continue
        if name in seen:
            yield entry["name"].duplicate("a claim is shared once a list")
        seen.add(name)
        if name in internal and entry["namespace"].string():
            yield entry["namespace"].invalid(
                f'must be empty: "{cut(name)}" is a claim template of this object'
            )


def _unknown(names: Cursor, known: set[str], message: str) -> Iterator[FieldError]:
    for item in names:
        name = item.string()
        if name is not None and name not in known:
            yield item.not_found(message)
