"""Places: which PodCliques, groups and gangs a set consists of, by name and index.

Everything here is computed from the set's template and the counts there are; nothing is parsed
back out of a name. Letters as in `api/names.py`: `i` a set replica, `j` a group replica.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from spinney.api import names
from spinney.api.podcliqueset import PodCliqueSet
from spinney.api.templates import (
    PodCliqueScalingGroupConfig,
    PodCliqueSetTemplateSpec,
    PodCliqueTemplateSpec,
)
from spinney.meta.records import Record


class GroupPlace(Record):
    """One scaling group of one set replica."""

    name: str
    """Its full name."""

    set_name: str
    set_replica_index: int
    config: PodCliqueScalingGroupConfig

    def gang(self, group_replica_index: int) -> str:
        """Return the gang a copy of the group is placed with."""
        above = group_replica_index - self.config.min_available
        if above < 0:
            return names.base_podgang(self.set_name, self.set_replica_index)
        return names.scaled_podgang(self.name, above)


class CliquePlace(Record):
    """One PodClique of a set: a clique of the template, in one set and maybe one group replica."""

    name: str
    """Its full name."""

    set_name: str
    set_replica_index: int
    clique: str
    """The clique's name in the template."""

    podgang: str
    base_podgang: str
    group: GroupPlace | None = None
    group_replica_index: int = 0

    @property
    def is_scaled(self) -> bool:
        """Whether it is placed with a gang of its own above the floor."""
        return self.podgang != self.base_podgang


def grouped_cliques(template: PodCliqueSetTemplateSpec) -> frozenset[str]:
    """Return the cliques that belong to a group."""
    return frozenset(
        name for group in template.pod_clique_scaling_groups for name in group.clique_names
    )


def standalone_cliques(template: PodCliqueSetTemplateSpec) -> tuple[PodCliqueTemplateSpec, ...]:
    """Return the cliques outside any group, in order."""
    grouped = grouped_cliques(template)
    return tuple(clique for clique in template.cliques if clique.name not in grouped)


def clique_of(template: PodCliqueSetTemplateSpec, name: str) -> PodCliqueTemplateSpec | None:
    """Return the clique of a name, exactly."""
    return next((clique for clique in template.cliques if clique.name == name), None)


def group_of(
    template: PodCliqueSetTemplateSpec, clique_name: str
) -> PodCliqueScalingGroupConfig | None:
    """Return the group a clique belongs to, None where it stands by itself."""
    return next(
        (g for g in template.pod_clique_scaling_groups if clique_name in g.clique_names), None
    )


class Layout(Record):
    """What every replica of a set consists of, worked out once."""

    set_name: str
    cliques: tuple[str, ...]
    """The cliques outside groups."""

    groups: tuple[PodCliqueScalingGroupConfig, ...]

    def standalone_places(self, set_replica_index: int) -> Iterator[CliquePlace]:
        """Yield the PodCliques of a set replica outside any group, in the template's order."""
        base = names.base_podgang(self.set_name, set_replica_index)
        for clique in self.cliques:
            yield CliquePlace(
                name=names.clique(self.set_name, set_replica_index, clique),
                set_name=self.set_name,
                set_replica_index=set_replica_index,
                clique=clique,
                podgang=base,
                base_podgang=base,
            )

    def group_places(self, set_replica_index: int) -> Iterator[GroupPlace]:
        """Yield the scaling groups of a set replica, in the template's order."""
        for config in self.groups:
            yield GroupPlace(
                name=names.scaling_group(self.set_name, set_replica_index, config.name),
                set_name=self.set_name,
                set_replica_index=set_replica_index,
                config=config,
            )

    def base_places(
        self, set_replica_index: int, group_replicas: Mapping[str, int]
    ) -> Iterator[CliquePlace]:
        """Yield the PodCliques of a base gang: those outside groups, then each group's floor.

        `group_replicas` are the counts of the groups that are there; the others have the
        template's. Of a group at 0 nothing is asked (rule 2.7).
        """
        yield from self.standalone_places(set_replica_index)
        for group in self.group_places(set_replica_index):
            replicas = group_replicas.get(group.name, group.config.replicas)
            yield from grouped_places(group, range(min(group.config.min_available, replicas)))


def layout(set_: PodCliqueSet) -> Layout:
    """Return what every replica of a set consists of."""
    template = set_.spec.template
    return Layout(
        set_name=set_.metadata.name,
        cliques=tuple(clique.name for clique in standalone_cliques(template)),
        groups=tuple(
            _with_known_cliques(template, config) for config in template.pod_clique_scaling_groups
        ),
    )


def _with_known_cliques(
    template: PodCliqueSetTemplateSpec, config: PodCliqueScalingGroupConfig
) -> PodCliqueScalingGroupConfig:
    """Return a group without cliques its template has not; admission lets none in, others may."""
    known = tuple(name for name in config.clique_names if clique_of(template, name) is not None)
    if known == config.clique_names:
        return config
    return msgspec.structs.replace(config, clique_names=known)


def grouped_places(group: GroupPlace, indexes: Iterable[int]) -> Iterator[CliquePlace]:
    """Yield the PodCliques of copies of a group, copy by copy, in the order of the group."""
    base = names.base_podgang(group.set_name, group.set_replica_index)
    for index in indexes:
        gang = group.gang(index)
        for clique in group.config.clique_names:
            yield CliquePlace(
                name=names.grouped_clique(group.name, index, clique),
                set_name=group.set_name,
                set_replica_index=group.set_replica_index,
                clique=clique,
                podgang=gang,
                base_podgang=base,
                group=group,
                group_replica_index=index,
            )
