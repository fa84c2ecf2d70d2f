"""ClusterTopologyBinding: the levels of a cluster's network, and the node labels that tell them."""

from collections.abc import Iterator
from typing import Annotated

from spinney.api.kinds import Column, Kind, Names, object_schema
from spinney.api.status import AGE
from spinney.api.surroundings import Surroundings
from spinney.api.topology import DOMAIN_PATTERN
from spinney.meta.conditions import Condition
from spinney.meta.cursors import Cursor
from spinney.meta.errors import FieldError
from spinney.meta.metadata import ObjectMeta, metadata_faults
from spinney.meta.records import Field, Record

_LABEL_KEY_PATTERN = (
    "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$"
)


class TopologyLevel(Record):
    """One level of the network."""

    domain: Annotated[
        str,
        Field(
            "What the level is called: region, zone, datacenter, block, rack, host, numa, or a "
            "word of your own.",
            required=True,
            min_length=1,
            max_length=63,
            pattern=DOMAIN_PATTERN,
            example="rack",
        ),
    ]
    key: Annotated[
        str,
        Field(
            "The node label whose value says in which domain of this level a node is.",
            required=True,
            min_length=1,
            max_length=63,
            pattern=_LABEL_KEY_PATTERN,
            example="topology.kubernetes.io/zone",
        ),
    ]


class SchedulerTopologyBinding(Record):
    """A topology object of a scheduler back end that somebody else keeps."""

    scheduler_name: Annotated[str, Field("The back end.", required=True)]
    topology_reference: Annotated[
        str, Field("Its topology object; checked for drift, never changed.", required=True)
    ]


class ClusterTopologyBindingSpec(Record):
    """The levels, from the broadest to the narrowest."""

    levels: Annotated[
        tuple[TopologyLevel, ...],
        Field("The levels, broadest first.", required=True, min_items=1),
    ]
    scheduler_topology_bindings: Annotated[
        tuple[SchedulerTopologyBinding, ...],
        Field(
            "Back ends whose topology object is kept by somebody else; for every other "
            "topology-aware one Spinney makes it."
        ),
    ] = ()


class SchedulerTopologyStatus(Record):
    """Whether one back end's topology object says the same."""

    scheduler_name: Annotated[str, Field("The back end.", required=True)]
    topology_reference: Annotated[str, Field("Its topology object.", required=True)]
    in_sync: Annotated[bool, Field("Whether the levels are the same.", required=True)]
    scheduler_backend_topology_observed_generation: Annotated[
        int | None, Field("The generation of that object.", format="int64")
    ] = None
    message: Annotated[str, Field("What differs.")] = ""


class ClusterTopologyBindingStatus(Record):
    """What is observed of a binding."""

    observed_generation: Annotated[
        int | None, Field("The generation this status speaks of.", format="int64")
    ] = None
    conditions: Annotated[
        tuple[Condition, ...], Field("`SchedulerTopologyDrift`.", list_keys=("type",))
    ] = ()
    scheduler_topology_statuses: Annotated[
        tuple[SchedulerTopologyStatus, ...],
        Field("One for each back end.", list_keys=("schedulerName",)),
    ] = ()


class ClusterTopologyBinding(Record):
    """The levels of a cluster's network, by which gangs are placed close together."""

    metadata: Annotated[ObjectMeta, Field("Name, labels and what all objects have.")]
    spec: Annotated[ClusterTopologyBindingSpec, Field("The levels.", required=True)]
    status: Annotated[ClusterTopologyBindingStatus, Field("Whether the back ends agree.")] = (
        ClusterTopologyBindingStatus()
    )


def _rules(new: Cursor, surroundings: Surroundings) -> Iterator[FieldError]:
    yield from metadata_faults(new["metadata"], namespaced=False)
    spec = new["spec"]
    for field in ("domain", "key"):
        seen: set[str] = set()
        for level in spec["levels"]:
            text = level[field].string()
            if text is not None and text in seen:
                yield level[field].duplicate()
            seen.add(text or "")
    schedulers: set[str] = set()
    for binding in spec["schedulerTopologyBindings"]:
        name = binding["schedulerName"]
        text = name.string()
        if text is None:
            continue
        if text in schedulers:
            yield name.duplicate()
        elif text not in surroundings.schedulers:
            yield name.not_supported(surroundings.schedulers)
        elif text not in surroundings.topology_aware_schedulers:
            aware = ", ".join(surroundings.topology_aware_schedulers)
            yield name.invalid(f"does not place by topology; those that do: {aware}")
        schedulers.add(text)


def _update_rules(_old: Cursor, new: Cursor, surroundings: Surroundings) -> Iterator[FieldError]:
    return _rules(new, surroundings)


KIND = Kind(
    names=Names(
        group="grove.io",
        version="v1alpha1",
        kind="ClusterTopologyBinding",
        plural="clustertopologybindings",
        singular="clustertopologybinding",
        short=("ct",),
    ),
    namespaced=False,
    record=ClusterTopologyBinding,
    schema=object_schema(ClusterTopologyBinding),
    validate_create=_rules,
    validate_update=_update_rules,
    columns=(Column(name="Domains", path=".spec.levels[*].domain", type="string"), AGE),
)
