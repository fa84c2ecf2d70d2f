"""The rules of a PodGang: what a scheduler can rely on."""

from __future__ import annotations

import pytest

from spinney.testing import build
from spinney.testing.build import ABSENT, changed
from tests.api.cases import Case, said_of

MADE = (
    build.podgang("chat-0")
    .with_pods("chat-0-leader", "chat-0-leader-0", min_replicas=1)
    .with_pods("chat-0-worker", "chat-0-worker-0", "chat-0-worker-1", min_replicas=2)
)
BASE = MADE.document()
P = "spec.podgroups"
T = "spec.topologyConstraintGroupConfigs"

RULES = (
    Case(
        "its pods stand in groups that are told apart",
        good=({P: []}, {f"{P}[0].podReferences": []}),
        bad=(
            ({P: ABSENT}, (f"{P}: Required value",)),
            ({f"{P}[0].podReferences": ABSENT}, (f"{P}[0].podReferences: Required value",)),
            (
                {f"{P}[1].name": "chat-0-leader"},
                (f'{P}[1].name: Duplicate value: "chat-0-leader"',),
            ),
            (
                {f"{P}[0].podReferences[0].name": ABSENT},
                (f"{P}[0].podReferences[0].name: Required value",),
            ),
        ),
    ),
    Case(
        "it needs none of a group, or some",
        good=({f"{P}[0].minReplicas": 0},),
        bad=(
            (
                {f"{P}[0].minReplicas": -1},
                (f"{P}[0].minReplicas: Invalid value: -1: must be greater than or equal to 0",),
            ),
            ({f"{P}[0].minReplicas": ABSENT}, (f"{P}[0].minReplicas: Required value",)),
        ),
    ),
    Case(
        "what is kept close together are groups of the gang",
        good=({T: [{"name": "chat-0-g-0", "podGroupNames": ["chat-0-leader", "chat-0-worker"]}]},),
        bad=(
            (
                {T: [{"name": "chat-0-g-0", "podGroupNames": ["chat-0-leader", "leader"]}]},
                (
                    f'{T}[0].podGroupNames[1]: Not found: "leader": no pod group of this name in '
                    "the gang",
                ),
            ),
            (
                {T: [{"name": "a", "podGroupNames": []}, {"name": "a", "podGroupNames": []}]},
                (f'{T}[1].name: Duplicate value: "a"',),
            ),
        ),
    ),
    Case(
        "the field is spelt as Grove spells it",
        bad=(
            (
                {"spec.podGroups": []},
                ('spec.podGroups: Unknown field: did you mean "podgroups"?',),
            ),
        ),
    ),
)


@pytest.mark.parametrize("case", RULES, ids=repr)
def test_rules_of_a_gang_new_or_changed(case: Case) -> None:
    case.check_created(BASE)
    case.check_updated(BASE)


def test_it_is_read_with_its_pods() -> None:
    gang = MADE.record()
    assert gang.status.phase == "Pending"
    worker = gang.spec.pod_groups[1]
    assert (worker.name, worker.min_replicas) == ("chat-0-worker", 2)
    assert [(pod.namespace, pod.name) for pod in worker.pod_references] == [
        ("default", "chat-0-worker-0"),
        ("default", "chat-0-worker-1"),
    ]


def test_a_phase_of_a_newer_version_is_taken() -> None:
    assert said_of(changed(BASE, {"status.phase": "Napping"}), BASE) == []
