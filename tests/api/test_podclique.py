"""The rules of a PodClique: mostly what its scale subresource lets through."""

from __future__ import annotations

import pytest

from spinney.api.surroundings import NOTHING_KNOWN, Surroundings
from spinney.meta.documents import Document, Json
from spinney.testing.build import ABSENT, changed
from tests.api.cases import Case, said_of

BASE: Document = {
    "apiVersion": "grove.io/v1alpha1",
    "kind": "PodClique",
    "metadata": {"name": "chat-0-worker"},
    "spec": {
        "roleName": "worker",
        "replicas": 5,
        "minAvailable": 3,
        "podSpec": {"containers": [{"name": "main", "image": "example/main:1"}]},
    },
}

RULES = (
    Case(
        "it has pods, and needs some of them",
        good=({"spec.replicas": 3}, {"spec.minAvailable": 1}),
        bad=(
            (
                {"spec.replicas": 0},
                ("spec.replicas: Invalid value: 0: must be greater than 0",),
            ),
            (
                {"spec.minAvailable": 0},
                ("spec.minAvailable: Invalid value: 0: must be greater than 0",),
            ),
            (
                {"spec.minAvailable": 6},
                (
                    "spec.minAvailable: Invalid value: 6: must be less than or equal to replicas "
                    "(5)",
                ),
            ),
            (
                {"spec.minAvailable": ABSENT},
                ("spec.minAvailable: Required value: say how many pods are needed",),
            ),
        ),
    ),
    Case(
        "it says what its pods are, and of which role",
        bad=(
            ({"spec.roleName": ABSENT}, ("spec.roleName: Required value",)),
            ({"spec.podSpec": ABSENT}, ("spec.podSpec: Required value",)),
            ({"spec": ABSENT}, ("spec: Required value",)),
            (
                {"spec.size": 3},
                ("spec.size: Unknown field: the kind has no such field",),
            ),
        ),
    ),
)

FLOOR = "to stop a whole system, scale its PodCliqueSet to 0"
UPDATE_RULES = (
    Case(
        "it is scaled down to minAvailable and no further",
        good=({"spec.replicas": 3}, {"spec.replicas": 50}, {"status.readyReplicas": 2}),
        bad=tuple(
            (
                {"spec.replicas": count},
                (
                    f"spec.replicas: Invalid value: {count}: must be greater than or equal to "
                    f"minAvailable (3); {FLOOR}",
                ),
            )
            for count in (-1, 0, 1, 2)
        ),
    ),
    Case(
        "what it is does not change, its pods may",
        good=(
            {"spec.podSpec.containers[0].image": "example/main:2"},
            {"spec.startsAfter": []},
            {"spec.autoScalingConfig": {"maxReplicas": 9}},
            {"metadata.labels": {"a": "b"}},
        ),
        bad=(
            (
                {"spec.roleName": "other"},
                ('spec.roleName: Invalid value: "other": field is immutable',),
            ),
            (
                {"spec.minAvailable": 2},
                ("spec.minAvailable: Invalid value: 2: field is immutable",),
            ),
            (
                {"spec.startsAfter": ["chat-0-router"]},
                ('spec.startsAfter: Invalid value: ["chat-0-router"]: field is immutable',),
            ),
        ),
    ),
)


@pytest.mark.parametrize("case", RULES, ids=repr)
def test_rules_of_a_new_clique(case: Case) -> None:
    case.check_created(BASE)


@pytest.mark.rule("2.7")
@pytest.mark.parametrize("case", UPDATE_RULES, ids=repr)
def test_rules_of_a_changed_clique(case: Case) -> None:
    case.check_updated(BASE)


@pytest.mark.rule("2.7")
def test_a_clique_below_its_floor_may_come_back_and_be_written_to() -> None:
    """It got there by an older version: status and labels are still written."""
    low = changed(BASE, {"spec.replicas": 2})
    assert said_of(changed(low, {"metadata.labels": {"a": "b"}}), low) == []
    assert said_of(BASE, low) == []
    assert said_of(changed(low, {"spec.replicas": 1}), low) != []


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (NOTHING_KNOWN, []),
        (Surroundings(root_workload_type="Inference"), []),
        (
            Surroundings(root_workload_type="Training"),
            ["spec.replicas: Forbidden: a Training workload has a fixed size"],
        ),
    ],
)
@pytest.mark.rule("5.8")
def test_whether_it_may_be_scaled_is_its_sets_matter(
    known: Surroundings, expected: list[Json]
) -> None:
    assert said_of(changed(BASE, {"spec.replicas": 4}), BASE, known) == expected
