"""Topology constraints: what may be asked of a cluster, and what of it may be changed later."""

from __future__ import annotations

import pytest

from spinney.api import kinds, topology
from spinney.api.kinds import OUR_KINDS
from spinney.api.surroundings import Surroundings
from spinney.meta.cursors import Cursor
from spinney.meta.documents import Document, Json, value_at
from spinney.meta.records import decode
from spinney.testing import build
from spinney.testing.build import ABSENT, changed
from tests.api.cases import Case, said_of, warned_of

S = "spec.template"
C = "spec.template.cliques"
G = "spec.template.podCliqueScalingGroups"
T = "topologyConstraint"

LEVELS = ("zone", "block", "rack", "host")
KNOWN = Surroundings(topologies={"racks": LEVELS, "other": ("zone",)})

FREE = (
    build.podcliqueset("chat")
    .with_clique("router")
    .with_clique("leader")
    .with_clique("worker", replicas=3)
    .with_group("decode", "leader", "worker")
    .document()
)


def at_set(**pack: Json) -> dict[str, Json]:
    return {f"{S}.{T}": {"topologyName": "racks", "pack": pack}}


BASE = changed(FREE, at_set(required="block"))

IMMUTABLE = "topology constraints are immutable"
UNNAMED = "name the ClusterTopologyBinding, here or on the level above"

SHAPE_RULES = (
    Case(
        "a constraint packs by something",
        good=(
            at_set(preferred="host"),
            at_set(required="zone", preferred="rack"),
            {f"{C}[0].{T}": {"pack": {"required": "rack"}}},
        ),
        bad=(
            (
                {f"{S}.{T}": {"topologyName": "racks"}},
                (f"{S}.{T}.pack: Required value: say pack.required, pack.preferred or both",),
            ),
            (
                {f"{S}.{T}": {"topologyName": "racks", "pack": {}}},
                (
                    f"{S}.{T}.pack: Required value: at least one of required and preferred must "
                    "be given",
                ),
            ),
            (
                {f"{C}[2].{T}": {}},
                (f"{C}[2].{T}.pack: Required value: say pack.required, pack.preferred or both",),
            ),
            (
                {f"{G}[0].{T}": {"pack": "rack"}},
                (f'{G}[0].{T}.pack: Invalid value: "rack": must be an object',),
            ),
        ),
    ),
    Case(
        "a domain is a word",
        bad=(
            (
                at_set(required=""),
                (f'{S}.{T}.pack.required: Invalid value: "": must have at least 1 characters',),
            ),
            (
                at_set(preferred="Rack"),
                (f'{S}.{T}.pack.preferred: Invalid value: "Rack": must match ^[a-z][a-z0-9-]*$',),
            ),
            (
                at_set(required="r" * 64),
                (
                    f'{S}.{T}.pack.required: Invalid value: "{"r" * 64}": must have at most 63 '
                    "characters",
                ),
            ),
        ),
    ),
    Case(
        "packDomain is not taken on new objects",
        bad=(
            (
                {f"{S}.{T}": {"topologyName": "racks", "packDomain": "rack"}},
                (f"{S}.{T}.packDomain: Forbidden: {topology.DEPRECATED}",),
            ),
            (
                {f"{C}[0].{T}": {"packDomain": "rack"}, f"{G}[0].{T}": {"packDomain": "rack"}},
                (
                    f"{C}[0].{T}.packDomain: Forbidden: {topology.DEPRECATED}",
                    f"{G}[0].{T}.packDomain: Forbidden: {topology.DEPRECATED}",
                ),
            ),
            (
                {f"{S}.{T}": {"topologyName": "r", "packDomain": "a", "pack": {"required": "b"}}},
                (
                    f'{S}.{T}.pack.required: Invalid value: "b": packDomain and pack.required '
                    "must not both be given: keep pack.required",
                    f"{S}.{T}.packDomain: Forbidden: {topology.DEPRECATED}",
                ),
            ),
        ),
    ),
    Case(
        "one topology is named for a whole set, and inherited below",
        good=(
            {f"{G}[0].{T}": {"pack": {"required": "rack"}}},
            {f"{G}[0].{T}": {"topologyName": "racks", "pack": {"required": "rack"}}},
            {
                f"{S}.{T}": ABSENT,
                f"{G}[0].{T}": {"topologyName": "racks", "pack": {"required": "rack"}},
                f"{C}[2].{T}": {"pack": {"required": "host"}},
            },
        ),
        bad=(
            (
                {f"{S}.{T}": {"pack": {"required": "rack"}}},
                (f"{S}.{T}.topologyName: Required value: {UNNAMED}",),
            ),
            (
                {
                    f"{S}.{T}": ABSENT,
                    f"{G}[0].{T}": {"topologyName": "racks", "pack": {"required": "rack"}},
                    f"{C}[0].{T}": {"pack": {"required": "host"}},
                },
                (f"{C}[0].{T}.topologyName: Required value: {UNNAMED}",),
            ),
            (
                {f"{C}[0].{T}": {"topologyName": "other", "pack": {"required": "rack"}}},
                (
                    f'{C}[0].{T}.topologyName: Invalid value: "other": all topologyNames of one '
                    "object must be the same, found: racks, other",
                    f'{S}.{T}.topologyName: Invalid value: "racks": all topologyNames of one '
                    "object must be the same, found: racks, other",
                ),
            ),
        ),
    ),
)

BINDING_RULES = (
    Case(
        "the topology is there",
        known=KNOWN,
        bad=(
            (
                {f"{S}.{T}.topologyName": "rack"},
                (
                    f'{S}.{T}.topologyName: Invalid value: "rack": no ClusterTopologyBinding of '
                    "this name; there are: other, racks",
                ),
            ),
            (
                {
                    f"{S}.{T}": ABSENT,
                    f"{G}[0].{T}": {"topologyName": "gone", "pack": {"required": "rack"}},
                    f"{C}[1].{T}": {"pack": {"required": "host"}},
                },
                (
                    f'{G}[0].{T}.topologyName: Invalid value: "gone": no ClusterTopologyBinding '
                    "of this name; there are: other, racks",
                ),
            ),
        ),
    ),
    Case(
        "every domain is one of its levels",
        known=KNOWN,
        good=(at_set(required="zone", preferred="host"),),
        bad=(
            (
                at_set(required="row", preferred="seat"),
                tuple(
                    f'{S}.{T}.pack.{field}: Invalid value: "{domain}": not a level of '
                    'ClusterTopologyBinding "racks", which has: zone, block, rack, host'
                    for field, domain in (("required", "row"), ("preferred", "seat"))
                ),
            ),
            (
                # Of an order nothing is said while a domain is unknown.
                {f"{C}[0].{T}": {"pack": {"required": "zone", "preferred": "seat"}}},
                (
                    f'{C}[0].{T}.pack.preferred: Invalid value: "seat": not a level of '
                    'ClusterTopologyBinding "racks", which has: zone, block, rack, host',
                ),
            ),
        ),
    ),
    Case(
        "a level is at least as broad as those below it",
        known=KNOWN,
        good=(
            {f"{C}[0].{T}": {"pack": {"required": "block"}}},
            {
                **at_set(required="block", preferred="rack"),
                f"{G}[0].{T}": {"pack": {"required": "rack", "preferred": "rack"}},
                f"{C}[1].{T}": {"pack": {"required": "host", "preferred": "host"}},
            },
            # Required and preferred are compared each with its own.
            {f"{C}[0].{T}": {"pack": {"preferred": "zone"}}},
        ),
        bad=(
            (
                {f"{C}[0].{T}": {"pack": {"required": "zone"}}},
                (
                    f'{S}.{T}: Invalid value: {{"topologyName":"racks","pack":'
                    '{"required":"block"}}: "block" is narrower than "zone" at '
                    f"{C}[0].{T}.pack.required: a level must be at least as broad as the levels "
                    "below it",
                ),
            ),
            (
                {
                    **at_set(required="zone", preferred="host"),
                    f"{G}[0].{T}": {"pack": {"preferred": "rack"}},
                },
                (
                    f'{S}.{T}.pack.preferred: Invalid value: "host": "host" is narrower than '
                    f'"rack" at {G}[0].{T}.pack.preferred: a level must be at least as broad as '
                    "the levels below it",
                ),
            ),
            (
                {
                    f"{G}[0].{T}": {"pack": {"required": "host"}},
                    f"{C}[2].{T}": {"pack": {"required": "rack"}},
                },
                (
                    f'{G}[0].{T}: Invalid value: {{"pack":{{"required":"host"}}}}: "host" is '
                    f'narrower than "rack" at {C}[2].{T}.pack.required: a level must be at least '
                    "as broad as the levels below it",
                ),
            ),
        ),
    ),
    Case(
        "where nothing is known of topologies, nothing is said of them",
        good=(at_set(required="anything"), {f"{S}.{T}.topologyName": "unheard-of"}),
    ),
)


@pytest.mark.parametrize("case", [*SHAPE_RULES, *BINDING_RULES], ids=repr)
def test_rules_of_a_new_constraint(case: Case) -> None:
    case.check_created(BASE)


def test_where_topology_aware_scheduling_is_off_nobody_asks_for_it() -> None:
    off = Surroundings(topology_aware=False, topologies={"racks": LEVELS})
    assert said_of(FREE, known=off) == []
    asked = changed(BASE, {f"{C}[0].{T}": {"pack": {"required": "host"}}})
    message = "topology-aware scheduling is disabled here: remove the constraint or enable it"
    assert said_of(asked, known=off) == [
        f'{C}[0].{T}: Invalid value: {{"pack":{{"required":"host"}}}}: {message}',
        f'{S}.{T}: Invalid value: {{"topologyName":"racks","pack":{{"required":"block"}}}}: '
        f"{message}",
    ]


STORED = changed(BASE, {f"{G}[0].{T}": {"pack": {"required": "rack", "preferred": "host"}}})

UPDATE_RULES = (
    Case(
        "a constraint is for life",
        known=KNOWN,
        good=({}, {"spec.replicas": 4}),
        bad=(
            (
                {f"{S}.{T}.topologyName": "other"},
                (f"{S}.{T}.topologyName: Forbidden: field is immutable",),
            ),
            ({f"{S}.{T}.pack.required": "zone"}, (f"{S}.{T}: Forbidden: {IMMUTABLE}",)),
            ({f"{S}.{T}.pack.preferred": "host"}, (f"{S}.{T}: Forbidden: {IMMUTABLE}",)),
            ({f"{S}.{T}": ABSENT}, (f"{S}.{T}: Forbidden: {IMMUTABLE}",)),
            (
                {f"{C}[0].{T}": {"pack": {"required": "rack"}}},
                (f"{C}[0].{T}: Forbidden: {IMMUTABLE}",),
            ),
            (
                {f"{G}[0].{T}.pack.preferred": ABSENT},
                (f"{G}[0].{T}: Forbidden: {IMMUTABLE}",),
            ),
            (
                {f"{G}[0].{T}.topologyName": "racks"},
                (f"{G}[0].{T}.topologyName: Forbidden: field is immutable",),
            ),
        ),
    ),
    Case(
        "what the cluster has lost meanwhile is no fault of an old object",
        known=Surroundings(topologies={}, topology_aware=False),
        good=({}, {f"{C}[0].spec.podSpec.containers[0].image": "example/main:2"}),
    ),
)


@pytest.mark.parametrize("case", UPDATE_RULES, ids=repr)
def test_rules_of_a_changed_constraint(case: Case) -> None:
    case.check_updated(STORED)


LEGACY: Document = changed(
    FREE,
    {f"{S}.{T}": {"topologyName": "racks", "packDomain": "rack", "pack": {"preferred": "host"}}},
)


def test_the_old_spelling_is_kept_where_it_stands() -> None:
    assert said_of(changed(LEGACY, {"spec.replicas": 2}), LEGACY, KNOWN) == []
    assert warned_of(LEGACY, LEGACY) == [
        f"{S}.{T}.packDomain: deprecated, use pack.required",
    ]
    assert warned_of(LEGACY) == []


def test_the_old_spelling_may_become_the_new_one() -> None:
    respelt = {f"{S}.{T}.packDomain": ABSENT, f"{S}.{T}.pack.required": "rack"}
    assert said_of(changed(LEGACY, respelt), LEGACY, KNOWN) == []
    bare = changed(FREE, {f"{C}[0].{T}": {"topologyName": "racks", "packDomain": "rack"}})
    new = changed(bare, {f"{C}[0].{T}": {"topologyName": "racks", "pack": {"required": "rack"}}})
    assert said_of(new, bare, KNOWN) == []


@pytest.mark.parametrize(
    "change",
    [
        {f"{S}.{T}.packDomain": ABSENT, f"{S}.{T}.pack.required": "host"},
        {f"{S}.{T}.packDomain": ABSENT},
        {
            f"{S}.{T}.packDomain": ABSENT,
            f"{S}.{T}.pack": {"required": "rack", "preferred": "rack"},
        },
        {f"{S}.{T}.packDomain": ABSENT, f"{S}.{T}.pack": {"required": "rack"}},
        {f"{S}.{T}.packDomain": "zone"},
    ],
)
def test_nothing_else_changes_with_the_spelling(change: dict[str, Json]) -> None:
    assert said_of(changed(LEGACY, change), LEGACY, KNOWN) == [f"{S}.{T}: Forbidden: {IMMUTABLE}"]


def test_the_new_spelling_does_not_become_the_old_one() -> None:
    back = {f"{S}.{T}": {"topologyName": "racks", "packDomain": "block"}}
    assert said_of(changed(BASE, back), BASE, KNOWN) == [f"{S}.{T}: Forbidden: {IMMUTABLE}"]


NAMELESS = changed(
    FREE, {f"{S}.{T}": {"packDomain": "rack"}, f"{C}[0].{T}": {"packDomain": "host"}}
)


def test_a_constraint_that_means_no_topology_may_be_given_one() -> None:
    """An object from the days before topologies had names: it can be kept, and it can be mended."""
    assert said_of(changed(NAMELESS, {"spec.replicas": 2}), NAMELESS, KNOWN) == []
    named = changed(NAMELESS, {f"{S}.{T}.topologyName": "racks"})
    assert said_of(named, NAMELESS, KNOWN) == []


def test_the_name_that_is_given_must_be_good() -> None:
    def named(name: str) -> Document:
        return changed(NAMELESS, {f"{S}.{T}.topologyName": name})

    assert said_of(named("gone"), NAMELESS, KNOWN) == [
        f'{S}.{T}.topologyName: Invalid value: "gone": no ClusterTopologyBinding of this name; '
        "there are: other, racks"
    ]
    assert said_of(named("other"), NAMELESS, KNOWN) == [
        f'{C}[0].{T}.packDomain: Invalid value: "host": not a level of ClusterTopologyBinding '
        '"other", which has: zone',
        f'{S}.{T}.packDomain: Invalid value: "rack": not a level of ClusterTopologyBinding '
        '"other", which has: zone',
    ]
    off = Surroundings(topology_aware=False)
    assert [line.split(": ")[0] for line in said_of(named("racks"), NAMELESS, off)] == [
        f"{C}[0].{T}",
        f"{S}.{T}",
    ]


def test_a_name_is_given_to_no_constraint_that_could_be_resolved() -> None:
    below = changed(LEGACY, {f"{C}[0].{T}": {"pack": {"required": "host"}}})
    named = changed(below, {f"{C}[0].{T}.topologyName": "racks"})
    assert said_of(named, below, KNOWN) == [
        f"{C}[0].{T}.topologyName: Forbidden: field is immutable"
    ]


def test_a_name_that_was_given_is_not_changed_in_a_repair() -> None:
    """One clique wants a name, the other has one: only the first may be given one."""
    half = changed(
        FREE,
        {
            f"{C}[0].{T}": {"packDomain": "host"},
            f"{C}[1].{T}": {"topologyName": "racks", "packDomain": "host"},
        },
    )
    mended = changed(half, {f"{C}[0].{T}.topologyName": "racks"})
    assert said_of(mended, half, KNOWN) == []
    renamed = {f"{C}[{index}].{T}.topologyName": "other" for index in (0, 1)}
    assert f"{C}[1].{T}.topologyName: Forbidden: field is immutable" in said_of(
        changed(half, renamed), half, KNOWN
    )


def test_a_repair_changes_nothing_else() -> None:
    both = changed(NAMELESS, {f"{S}.{T}": {"topologyName": "racks", "packDomain": "zone"}})
    assert said_of(both, NAMELESS, KNOWN) == [
        f"{S}.{T}.topologyName: Forbidden: field is immutable"
    ]


@pytest.mark.parametrize(
    ("required", "preferred", "warned"),
    [("rack", "host", False), ("rack", "rack", True), ("rack", "zone", True), ("", "zone", False)],
)
def test_a_wish_that_asks_for_nothing_more_is_warned_of(
    required: str, preferred: str, warned: bool
) -> None:
    pack: dict[str, Json] = {"preferred": preferred, **({"required": required} if required else {})}
    document = changed(FREE, at_set(**pack))
    expected = (
        f'{S}.{T}.pack.preferred: "{preferred}" is not narrower than the required "{required}", '
        "so it asks for nothing more"
    )
    assert warned_of(document, known=KNOWN) == ([expected] if warned else [])
    assert warned_of(document) == []


def test_a_constraint_reads_the_same_however_it_is_spelt() -> None:
    def constraint(**fields: Json) -> topology.TopologyConstraint:
        return decode(topology.TopologyConstraint, dict(fields))

    old = constraint(packDomain="rack")
    new = constraint(pack={"required": "rack", "preferred": "host"})
    assert (old.required_domain, old.preferred_domain) == ("rack", "")
    assert (new.required_domain, new.preferred_domain) == ("rack", "host")


@pytest.mark.parametrize("place", [f"{S}.{T}", f"{G}[0].{T}", f"{C}[1].{T}"])
def test_the_topology_of_a_set_is_the_one_it_names(place: str) -> None:
    document = changed(FREE, {place: {"topologyName": "racks", "pack": {"required": "host"}}})
    template = value_at(document, ["spec", "template"])
    assert topology.topology_name(Cursor(template)) == "racks"
    assert topology.topology_name(Cursor(value_at(FREE, ["spec", "template"]))) == ""


def test_a_deployment_may_take_other_constraints_with_another_revision() -> None:
    made = build.modeldeployment().with_clique("a").document()
    kind = OUR_KINDS[kinds.group_kind_of(made)]
    old = kinds.admit(kind, made)[0]
    place = f"spec.template.spec.{T}"
    new = changed(made, {place: {"topologyName": "racks", "pack": {"required": "rack"}}})
    assert said_of(new, old, KNOWN) == []
    wrong = changed(made, {place: {"topologyName": "racks", "packDomain": "rack"}})
    assert said_of(wrong, old, KNOWN) == [f"{place}.packDomain: Forbidden: {topology.DEPRECATED}"]
    off = Surroundings(topology_aware=False)
    stored = kinds.admit(kind, new)[0]
    assert said_of(changed(new, {"spec.replicas": 2}), stored, off) == []
