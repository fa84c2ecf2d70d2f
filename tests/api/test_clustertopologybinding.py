"""The rules of a ClusterTopologyBinding: levels told apart, and schedulers that can use them."""

from __future__ import annotations

import pytest

from spinney.api.surroundings import Surroundings
from spinney.testing import build
from spinney.testing.build import ABSENT, changed
from tests.api.cases import Case, said_of

BASE = (
    build.clustertopologybinding("racks")
    .with_level("zone", "topology.kubernetes.io/zone")
    .with_level("rack", "example.com/rack")
    .with_level("host", "kubernetes.io/hostname")
    .document()
)
B = "spec.schedulerTopologyBindings"


def bound(*schedulers: str) -> list[dict[str, str]]:
    return [{"schedulerName": name, "topologyReference": "theirs"} for name in schedulers]


RULES = (
    Case(
        "it has levels, and no level twice",
        bad=(
            ({"spec.levels": []}, ("spec.levels: Required value: must have at least one item",)),
            ({"spec.levels": ABSENT}, ("spec.levels: Required value",)),
            ({"spec.levels[0].key": ABSENT}, ("spec.levels[0].key: Required value",)),
            (
                {"spec.levels[2].domain": "zone"},
                ('spec.levels[2].domain: Duplicate value: "zone"',),
            ),
            (
                {"spec.levels[2].key": "example.com/rack"},
                ('spec.levels[2].key: Duplicate value: "example.com/rack"',),
            ),
        ),
    ),
    Case(
        "a level has a word and a label",
        good=(
            {"spec.levels[0].domain": "my-row2", "spec.levels[0].key": "row"},
            {"spec.levels[0].key": "a.b/C_d.e-f"},
        ),
        bad=(
            *(
                (
                    {"spec.levels[0].domain": domain},
                    (
                        f'spec.levels[0].domain: Invalid value: "{domain}": must match '
                        "^[a-z][a-z0-9-]*$",
                    ),
                )
                for domain in ("2row", "Row", "a_b")
            ),
            (
                {"spec.levels[0].domain": ""},
                ('spec.levels[0].domain: Invalid value: "": must have at least 1 characters',),
            ),
            (
                {"spec.levels[0].key": "k" * 64},
                (
                    f'spec.levels[0].key: Invalid value: "{"k" * 64}": must have at most 63 '
                    "characters",
                ),
            ),
            (
                {"spec.levels[0].key": "/zone"},
                (
                    'spec.levels[0].key: Invalid value: "/zone": must match '
                    "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]/)?"
                    "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$",
                ),
            ),
        ),
    ),
    Case(
        "a scheduler that is bound is there, places by topology, and is bound once",
        good=({B: bound("kai-scheduler")}, {B: bound("spinney-scheduler", "kai-scheduler")}),
        bad=(
            (
                {B: bound("kai-scheduler", "kai-scheduler")},
                (f'{B}[1].schedulerName: Duplicate value: "kai-scheduler"',),
            ),
            (
                {B: bound("mine")},
                (
                    f'{B}[0].schedulerName: Unsupported value: "mine": supported values: '
                    '"default-scheduler", "kai-scheduler", "volcano", "lpx-scheduler", '
                    '"spinney-scheduler"',
                ),
            ),
            (
                {B: bound("volcano")},
                (
                    f'{B}[0].schedulerName: Invalid value: "volcano": does not place by topology; '
                    "those that do: kai-scheduler, spinney-scheduler",
                ),
            ),
            (
                {B: [{"schedulerName": "kai-scheduler"}]},
                (f"{B}[0].topologyReference: Required value",),
            ),
        ),
    ),
    Case(
        "it is of the whole cluster",
        bad=(
            (
                {"metadata.namespace": "a"},
                ("metadata.namespace: Forbidden: not allowed on this type",),
            ),
        ),
    ),
)


@pytest.mark.parametrize("case", RULES, ids=repr)
def test_rules_of_a_binding_new_or_changed(case: Case) -> None:
    case.check_created(BASE)
    case.check_updated(BASE)


def test_levels_may_go_although_somebody_uses_them() -> None:
    """The sets that do say so in a condition."""
    assert said_of(changed(BASE, {"spec.levels[1]": ABSENT}), BASE) == []


def test_only_schedulers_that_are_installed_can_be_bound() -> None:
    few = Surroundings(schedulers=("default-scheduler",), topology_aware_schedulers=())
    assert said_of(changed(BASE, {B: bound("kai-scheduler")}), known=few) == [
        f'{B}[0].schedulerName: Unsupported value: "kai-scheduler": supported values: '
        '"default-scheduler"'
    ]


def test_the_levels_are_read_in_their_order() -> None:
    made = build.clustertopologybinding().with_level("zone", "z").with_level("host", "h").record()
    assert [(level.domain, level.key) for level in made.spec.levels] == [
        ("zone", "z"),
        ("host", "h"),
    ]
    assert made.metadata.namespace == ""
