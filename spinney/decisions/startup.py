"""Start-up order: for which PodCliques the pods of one have to wait.

The order holds inside a gang. What a scaled gang would wait for outside of itself is up already:
its base gang is placed before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from spinney.api import names
from spinney.api.templates import ANY_ORDER, IN_ORDER, PodCliqueSetTemplateSpec
from spinney.decisions import places
from spinney.decisions.places import CliquePlace

NO_GROUPS: Mapping[str, int] = MappingProxyType({})


def parents(template: PodCliqueSetTemplateSpec, clique_name: str) -> tuple[str, ...]:
    """Return the cliques of the template that a clique starts after."""
    if template.clique_startup_type == ANY_ORDER:
        return ()
    if template.clique_startup_type == IN_ORDER:
        ordered = [clique.name for clique in template.cliques]
        at = ordered.index(clique_name)
        return (ordered[at - 1],) if at else ()
    clique = places.clique_of(template, clique_name)
    return clique.spec.starts_after if clique is not None else ()


def starts_after(template: PodCliqueSetTemplateSpec, place: CliquePlace) -> tuple[str, ...]:
    """Return the full names of the PodCliques that the pods at a place wait for."""
    found = (
        name
        for parent in parents(template, place.clique)
        for name in full_names(template, place, parent)
    )
    return tuple(dict.fromkeys(found))


def full_names(
    template: PodCliqueSetTemplateSpec,
    place: CliquePlace,
    parent: str,
    group_replicas: Mapping[str, int] = NO_GROUPS,
) -> Iterator[str]:
    """Yield the PodCliques that a parent of the template stands for, seen from a place.

    `group_replicas` are the counts of groups that are there: nobody waits for one at 0.
    """
    if place.is_scaled:
        group = place.group
        if group is not None and parent in group.config.clique_names:
            yield names.grouped_clique(group.name, place.group_replica_index, parent)
        return
    config = places.group_of(template, parent)
    if config is None:
        yield names.clique(place.set_name, place.set_replica_index, parent)
        return
    full_name = names.scaling_group(place.set_name, place.set_replica_index, config.name)
    least = config.min_available
    for index in range(min(least, group_replicas.get(full_name, least))):
        yield names.grouped_clique(full_name, index, parent)


def has_order(template: PodCliqueSetTemplateSpec) -> bool:
    """Whether any clique waits for another."""
    return any(parents(template, clique.name) for clique in template.cliques)
