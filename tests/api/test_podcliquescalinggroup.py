"""The rules of a PodCliqueScalingGroup: at least minAvailable replicas, or none at all."""

from __future__ import annotations

import pytest

from spinney.api import kinds, podcliquescalinggroup
from spinney.api.podcliquescalinggroup import PodCliqueScalingGroup
from spinney.meta.documents import Document
from spinney.meta.records import decode
from spinney.testing.build import ABSENT, changed
from tests.api.cases import Case, said_of

BASE: Document = {
    "apiVersion": "grove.io/v1alpha1",
    "kind": "PodCliqueScalingGroup",
    "metadata": {"name": "chat-0-decode"},
    "spec": {"replicas": 4, "minAvailable": 2, "cliqueNames": ["leader", "worker"]},
}

RULES = (
    Case(
        "it has replicas, and needs some of them",
        good=(
            {"spec.replicas": 0},
            {"spec.replicas": ABSENT, "spec.minAvailable": ABSENT},
            {"spec.minAvailable": 1},
        ),
        bad=(
            (
                {"spec.replicas": -1},
                ("spec.replicas: Invalid value: -1: must be greater than or equal to 0",),
            ),
            (
                {"spec.minAvailable": 0},
                ("spec.minAvailable: Invalid value: 0: must be greater than or equal to 1",),
            ),
        ),
    ),
    Case(
        "it is made of cliques",
        bad=(
            (
                {"spec.cliqueNames": []},
                ("spec.cliqueNames: Required value: must have at least one clique",),
            ),
            ({"spec.cliqueNames": ABSENT}, ("spec.cliqueNames: Required value",)),
            (
                {"spec.cliqueNames[0]": 7},
                ('spec.cliqueNames[0]: Invalid value: 7: must be a string: write "7" in quotes',),
            ),
        ),
    ),
)

UPDATE_RULES = (
    Case(
        "it is scaled to 0, or to minAvailable and more",
        good=({"spec.replicas": 0}, {"spec.replicas": 2}, {"spec.replicas": 40}),
        bad=(
            (
                {"spec.replicas": 1},
                ("spec.replicas: Invalid value: 1: must be 0 or at least minAvailable (2)",),
            ),
            (
                {"spec.replicas": -1},
                ("spec.replicas: Invalid value: -1: must be greater than or equal to 0",),
            ),
        ),
    ),
    Case(
        "what it is does not change",
        bad=(
            (
                {"spec.minAvailable": 1},
                ("spec.minAvailable: Invalid value: 1: field is immutable",),
            ),
            (
                {"spec.cliqueNames": ["worker", "leader"]},
                ('spec.cliqueNames: Invalid value: ["worker","leader"]: field is immutable',),
            ),
        ),
    ),
)


@pytest.mark.parametrize("case", RULES, ids=repr)
def test_rules_of_a_new_group(case: Case) -> None:
    case.check_created(BASE)


@pytest.mark.rule("2.7")
@pytest.mark.parametrize("case", UPDATE_RULES, ids=repr)
def test_rules_of_a_changed_group(case: Case) -> None:
    case.check_updated(BASE)


@pytest.mark.rule("2.7")
def test_an_idle_group_comes_back() -> None:
    idle = changed(BASE, {"spec.replicas": 0})
    assert said_of(changed(idle, {"spec.replicas": 2}), idle) == []
    assert said_of(changed(idle, {"spec.replicas": 1}), idle) == [
        "spec.replicas: Invalid value: 1: must be 0 or at least minAvailable (2)"
    ]


def test_counts_have_their_defaults() -> None:
    bare = changed(BASE, {"spec.replicas": ABSENT, "spec.minAvailable": None})
    stored, faults = kinds.admit(podcliquescalinggroup.KIND, bare)
    assert faults == ()
    spec = decode(PodCliqueScalingGroup, stored).spec
    assert (spec.replicas, spec.min_available) == (1, 1)
