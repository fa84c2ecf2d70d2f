"""Topology constraints: how close together the pods of one replica must be placed."""

from collections.abc import Iterator, Sequence
from typing import Annotated

from spinney.api.surroundings import Surroundings
from spinney.meta.cursors import Cursor
from spinney.meta.documents import Document, Json, same, string_at
from spinney.meta.errors import FieldError, cut, listed
from spinney.meta.records import Field, Record, Rule

DOMAIN_PATTERN = "^[a-z][a-z0-9-]*$"
WELL_KNOWN_DOMAINS = ("region", "zone", "datacenter", "block", "rack", "host", "numa")


class TopologyPack(Record):
    """Within which domain the pods of a replica are packed."""

    RULES = (
        Rule(
            rule="has(self.required) || has(self.preferred)",
            message="at least one of required and preferred must be given",
            reason="FieldValueRequired",
        ),
    )

    required: Annotated[
        str,
        Field(
            "The domain all pods of a replica must share, or the replica is not placed. One of "
            "the levels of the ClusterTopologyBinding.",
            min_length=1,
            max_length=63,
            pattern=DOMAIN_PATTERN,
            example="rack",
        ),
    ] = ""
    preferred: Annotated[
        str,
        Field(
            "The domain the pods of a replica share where that is possible.",
            min_length=1,
            max_length=63,
            pattern=DOMAIN_PATTERN,
            example="host",
        ),
    ] = ""


class TopologyConstraint(Record):
    """How close together pods must be. Holds for each replica by itself, never across replicas."""

    RULES = (
        Rule(
            rule="has(self.pack) || has(self.packDomain)",
            message="pack must be given",
            field_path=".pack",
            reason="FieldValueRequired",
        ),
        Rule(
            rule="!has(self.packDomain) || !has(self.pack) || !has(self.pack.required)",
            message="packDomain and pack.required must not both be given: keep pack.required",
            field_path=".pack.required",
        ),
    )

    topology_name: Annotated[
        str,
        Field(
            "The ClusterTopologyBinding whose levels are meant. Inherited from the level above "
            "where it is not given; all of one PodCliqueSet must be the same. Immutable."
        ),
    ] = ""
    pack: Annotated[TopologyPack | None, Field("Within which domain pods are packed.")] = None
    pack_domain: Annotated[
        str,
        Field(
            "Deprecated spelling of `pack.required`; refused on new objects.",
            min_length=1,
            max_length=63,
            pattern=DOMAIN_PATTERN,
        ),
    ] = ""

    @property
    def required_domain(self) -> str:
        """The domain that must hold, however it was spelt."""
        return (self.pack.required if self.pack else "") or self.pack_domain

    @property
    def preferred_domain(self) -> str:
        """The domain that holds where possible."""
        return self.pack.preferred if self.pack else ""


def no_pack_domain(path: str, each: str = "") -> Rule:
    """Return the CEL rule that refuses the deprecated spelling on new objects at a path."""
    field = path.removeprefix(".")
    if each:
        test = (
            f"!has(self.{field}) || self.{field}.all({each}, "
            f"!has({each}.topologyConstraint) || !has({each}.topologyConstraint.packDomain))"
        )
    else:
        test = f"!has(self.{field}) || !has(self.{field}.packDomain)"
        path = f"{path}.packDomain"
    return Rule(
        rule=f"oldSelf.hasValue() || {test}",
        message=DEPRECATED,
        field_path=path,
        reason="FieldValueForbidden",
        optional_old_self=True,
    )


DEPRECATED = "packDomain is deprecated and not taken on new objects: use pack.required"


def required_domain(constraint: Cursor) -> Cursor:
    """Return where a constraint names its required domain."""
    required = constraint["pack"]["required"]
    return required if required.string() else constraint["packDomain"]


def shape_rules(constraint: Cursor) -> Iterator[FieldError]:
    """Yield what is wrong with one constraint by itself."""
    if constraint.object() is None:
        return
    pack = constraint["pack"]
    if not pack and not constraint["packDomain"]:
        yield pack.required("say pack.required, pack.preferred or both")
    elif pack.object() is not None and not pack["required"] and not pack["preferred"]:
        yield pack.required("at least one of required and preferred must be given")
    if constraint["packDomain"] and pack["required"]:
        yield pack["required"].invalid(
            "packDomain and pack.required must not both be given: keep pack.required"
        )


class Level(Record):
    """One place of a set that may hold a constraint, and the one above it that it inherits from."""

    cursor: Cursor
    above: tuple[Cursor, ...] = ()
    """From the nearest up: the clique's group, then the set."""


def levels(template: Cursor) -> tuple[Level, ...]:
    """Return the places of a template that hold a constraint: the set, its groups, its cliques."""
    whole = template["topologyConstraint"]
    found = [Level(cursor=whole)]
    group_of: dict[str, Cursor] = {}
    for group in template["podCliqueScalingGroups"]:
        found.append(Level(cursor=group["topologyConstraint"], above=(whole,)))
        for name in group["cliqueNames"].strings():
            group_of.setdefault(name, group["topologyConstraint"])
    for clique in template["cliques"]:
        group_constraint = group_of.get(clique["name"].string() or "")
        above = (whole,) if group_constraint is None else (group_constraint, whole)
        found.append(Level(cursor=clique["topologyConstraint"], above=above))
    return tuple(level for level in found if level.cursor.object() is not None)


def _effective_name(level: Level) -> str:
    for constraint in (level.cursor, *level.above):
        name = constraint["topologyName"].string()
        if name:
            return name
    return ""


def topology_name(template: Cursor) -> str:
    """Return the topology a template's constraints mean: the first that is named."""
    for level in levels(template):
        name = level.cursor["topologyName"].string()
        if name:
            return name
    return ""


def create_rules(template: Cursor, surroundings: Surroundings) -> Iterator[FieldError]:
    """Yield what is wrong with a new template's constraints among themselves and with the world."""
    constrained = levels(template)
    if not surroundings.topology_aware:
        for level in constrained:
            yield level.cursor.invalid(
                "topology-aware scheduling is disabled here: remove the constraint or enable it"
            )
        return
    names = list(dict.fromkeys(filter(None, map(_effective_name, constrained))))
    for level in constrained:
        own = level.cursor["topologyName"]
        if not _effective_name(level):
            yield own.required("name the ClusterTopologyBinding, here or on the level above")
        elif own.string() and len(names) > 1:
            yield own.invalid(
                f"all topologyNames of one object must be the same, found: {listed(names)}"
            )
    if len(names) == 1 and surroundings.topologies is not None:
        yield from _binding_rules(constrained, names[0], surroundings)


def _binding_rules(
    constrained: Sequence[Level], name: str, surroundings: Surroundings
) -> Iterator[FieldError]:
    domains = (surroundings.topologies or {}).get(name)
    if domains is None:
        named = [level.cursor["topologyName"] for level in constrained]
        at = next((cursor for cursor in named if cursor.string()), named[0])
        known = listed(sorted(surroundings.topologies or {})) or "none"
        yield at.invalid(f"no ClusterTopologyBinding of this name; there are: {known}")
        return
    rank = {domain: index for index, domain in enumerate(domains)}
    unknown = False
    for level in constrained:
        for cursor in _domain_cursors(level.cursor):
            domain = cursor.string()
            if domain and domain not in rank:
                unknown = True
                yield cursor.invalid(
                    f'not a level of ClusterTopologyBinding "{cut(name)}", '
                    f"which has: {listed(domains)}"
                )
    if unknown:
        return
    for level in constrained:
        for above in level.above:
            if above.object() is not None:
                yield from _order_rules(above, level.cursor, rank)


def _domain_cursors(constraint: Cursor) -> tuple[Cursor, ...]:
    return (
        constraint["pack"]["required"],
        constraint["pack"]["preferred"],
        constraint["packDomain"],
    )


def _order_rules(above: Cursor, below: Cursor, rank: dict[str, int]) -> Iterator[FieldError]:
    """Yield where the upper level would be packed more tightly than the level below it."""
    pairs = (
        (required_domain(above), required_domain(below), above),
        (above["pack"]["preferred"], below["pack"]["preferred"], above["pack"]["preferred"]),
    )
    for upper, lower, told_at in pairs:
        one, other = upper.string(), lower.string()
        if one and other and rank[one] > rank[other]:
            yield told_at.invalid(
                f'"{cut(one)}" is narrower than "{cut(other)}" at {lower.path}: '
                "a level must be at least as broad as the levels below it"
            )


def advice(template: Cursor, old: Cursor | None, surroundings: Surroundings) -> Iterator[str]:
    """Yield warnings about a template's constraints."""
    known = surroundings.topologies or {}
    for level in levels(template):
        constraint = level.cursor
        if old is not None and constraint["packDomain"].string():
            yield f"{constraint['packDomain'].path}: deprecated, use pack.required"
        rank = list(known.get(_effective_name(level), ()))
        required = required_domain(constraint).string()
        preferred = constraint["pack"]["preferred"]
        wanted = preferred.string()
        if required in rank and wanted in rank and rank.index(wanted) <= rank.index(required):
            yield (
                f'{preferred.path}: "{wanted}" is not narrower than the required '
                f'"{required}", so it asks for nothing more'
            )


def update_rules(
    old_template: Cursor, new_template: Cursor, surroundings: Surroundings
) -> Iterator[FieldError]:
    """Yield what changed in constraints: they are immutable but for two repairs.

    `packDomain` may become the same `pack.required`; and a constraint that could never be resolved,
    for want of a name, may be given one.
    """
    repairing = _may_be_repaired(old_template)
    repaired = False
    for old, new in _pairs(old_template, new_template):
        if same(old.value, new.value) or _only_respelt(old.value, new.value):
            continue
        if repairing and _only_named(old.value, new.value):
            repaired = True
            continue
        old_name, new_name = old["topologyName"], new["topologyName"]
        if (
            old.object() is not None
            and new.object() is not None
            and not same(old_name.value, new_name.value)
        ):
            yield new_name.forbidden("field is immutable")
        else:
            yield new.forbidden("topology constraints are immutable")
    if repaired:
        yield from create_rules(new_template, surroundings)


def _pairs(old_template: Cursor, new_template: Cursor) -> Iterator[tuple[Cursor, Cursor]]:
    yield old_template["topologyConstraint"], new_template["topologyConstraint"]
    for field in ("podCliqueScalingGroups", "cliques"):
        before = {item["name"].string(): item for item in old_template[field]}
        for item in new_template[field]:
            old = before.get(item["name"].string())
            if old is not None:
                yield old["topologyConstraint"], item["topologyConstraint"]


def _only_respelt(old: Json, new: Json) -> bool:
    if not (isinstance(old, dict) and isinstance(new, dict)) or "packDomain" in new:
        return False
    domain = string_at(old, ["packDomain"])
    return bool(domain) and same(_respelt(old, domain), new)


def _respelt(constraint: Document, domain: str) -> Document:
    pack = constraint.get("pack")
    kept = {key: value for key, value in constraint.items() if key != "packDomain"}
    return {**kept, "pack": {**(pack if isinstance(pack, dict) else {}), "required": domain}}


def _may_be_repaired(template: Cursor) -> bool:
    return any(
        level.cursor["packDomain"].string() and not _effective_name(level)
        for level in levels(template)
    )


def _only_named(old: Json, new: Json) -> bool:
    if not (isinstance(old, dict) and isinstance(new, dict)) or old.get("topologyName"):
        return False
    return bool(new.get("packDomain")) and same(
        {**old, "topologyName": new.get("topologyName")}, new
    )


def new_pack_domains(template: Cursor) -> Iterator[FieldError]:
    """Yield each use of the deprecated spelling; told on new objects only."""
    for level in levels(template):
        if level.cursor["packDomain"]:
            yield level.cursor["packDomain"].forbidden(DEPRECATED)
