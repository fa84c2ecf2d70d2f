"""The rules of Training: a workload that runs to its end, and has a fixed size until then."""

from __future__ import annotations

import pytest

from spinney.api import hashes, kinds, podcliqueset
from spinney.api.surroundings import Surroundings
from spinney.meta.documents import Document, Json, object_at, value_at
from spinney.meta.durations import Duration
from spinney.testing import build
from spinney.testing.build import ABSENT, changed
from tests.api.cases import Case, said_of, warned_of

KIND = podcliqueset.KIND
S = "spec.template"
C = "spec.template.cliques"
G = "spec.template.podCliqueScalingGroups"
T = "spec.trainingSpec"

MADE = (
    build.podcliqueset("job")
    .for_training(maxRestarts=2)
    .with_clique("launcher")
    .with_clique("leader")
    .with_clique("worker", replicas=4, min_available=3)
    .with_group("stage", "leader", "worker", replicas=2)
)
BASE = MADE.document()
INFERENCE = changed(BASE, {"spec.workloadType": ABSENT, T: ABSENT})

FIXED = "a Training workload has a fixed size"
ROLLS = "would roll the pods, and a Training workload is not updated: make a new object"


def at_least_zero(path: str) -> Case:
    return Case(
        f"{path} is not negative",
        good=({f"{T}.{path}": 0}, {f"{T}.{path}": 7}),
        bad=(
            (
                {f"{T}.{path}": -1},
                (f"{T}.{path}: Invalid value: -1: must be greater than or equal to 0",),
            ),
        ),
    )


RULES = (
    Case(
        "a termination delay may be 0 and is not negative",
        good=(
            {f"{S}.terminationDelay": "0s"},
            {f"{S}.terminationDelay": "1m", f"{G}[0].terminationDelay": "0s"},
            {f"{G}[0].terminationDelay": "5m"},
        ),
        bad=(
            (
                {f"{S}.terminationDelay": "-1s"},
                (
                    f'{S}.terminationDelay: Invalid value: "-1s": must be greater than or equal '
                    "to 0s",
                ),
            ),
            (
                {f"{G}[0].terminationDelay": "-1s"},
                (
                    f'{G}[0].terminationDelay: Invalid value: "-1s": must be greater than or '
                    "equal to 0s",
                ),
            ),
        ),
    ),
    Case(
        "pods that end have ended",
        good=(
            {f"{C}[0].spec.podSpec.restartPolicy": "Never"},
            {f"{C}[0].spec.podSpec.restartPolicy": "OnFailure"},
        ),
        bad=(
            (
                {f"{C}[0].spec.podSpec.restartPolicy": "Always"},
                (
                    f'{C}[0].spec.podSpec.restartPolicy: Invalid value: "Always": must be '
                    '"Never" (or "OnFailure") for Training: a pod that ends has ended',
                ),
            ),
        ),
    ),
    Case(
        "there is something to run",
        good=({"spec.replicas": 3}, {f"{C}[0].spec.replicas": 0}),
        bad=(
            (
                {"spec.replicas": 0},
                ("spec.replicas: Invalid value: 0: must be greater than 0 for Training",),
            ),
            (
                {"spec.replicas": ABSENT},
                ("spec.replicas: Invalid value: 0: must be greater than 0 for Training",),
            ),
            (
                {f"{G}[0].replicas": 0},
                (f"{G}[0].replicas: Invalid value: 0: must be greater than 0 for Training",),
            ),
        ),
    ),
    Case(
        "nothing scales by itself",
        bad=(
            (
                {f"{C}[0].spec.autoScalingConfig": {"maxReplicas": 4}},
                (f"{C}[0].spec.autoScalingConfig: Forbidden: {FIXED}: remove the autoscaling",),
            ),
            (
                {f"{C}[2].spec.autoScalingConfig": {"maxReplicas": 4}},
                (f"{C}[2].spec.autoScalingConfig: Forbidden: {FIXED}: remove the autoscaling",),
            ),
            (
                {f"{G}[0].scaleConfig": {"maxReplicas": 4}},
                (f"{G}[0].scaleConfig: Forbidden: {FIXED}: remove the autoscaling",),
            ),
        ),
    ),
    Case(
        "a runtime is a time",
        good=({f"{T}.maxRuntime": "24h"}, {f"{T}.maxRuntime": None}),
        bad=(
            (
                {f"{T}.maxRuntime": "0s"},
                (f'{T}.maxRuntime: Invalid value: "0s": must be greater than 0s',),
            ),
            (
                {f"{T}.maxRuntime": "1d"},
                (
                    f'{T}.maxRuntime: Invalid value: "1d": must be a duration such as "24h"; '
                    "days are not a unit",
                ),
            ),
            (
                {f"{T}.maxRuntime": 3600},
                (f'{T}.maxRuntime: Invalid value: 3600: must be a string: write "3600" in quotes',),
            ),
        ),
    ),
    at_least_zero("maxRestarts"),
    at_least_zero("ttlSecondsAfterFinished"),
    Case(
        "the wait before a restart grows up to a cap",
        good=(
            {f"{T}.restartBackoff": {}},
            {f"{T}.restartBackoff": {"initialDelay": "1s", "maxDelay": "1s"}},
            {f"{T}.restartBackoff": {"initialDelay": "5m"}},
            {f"{T}.restartBackoff": {"maxDelay": "10s"}},
        ),
        bad=(
            (
                {f"{T}.restartBackoff": {"initialDelay": "0s"}},
                (f'{T}.restartBackoff.initialDelay: Invalid value: "0s": must be greater than 0s',),
            ),
            (
                {f"{T}.restartBackoff": {"maxDelay": "-1s"}},
                (f'{T}.restartBackoff.maxDelay: Invalid value: "-1s": must be greater than 0s',),
            ),
            (
                {f"{T}.restartBackoff": {"initialDelay": "2m", "maxDelay": "1m"}},
                (
                    f'{T}.restartBackoff.maxDelay: Invalid value: "1m": initialDelay (2m) must '
                    "not be longer than maxDelay (1m)",
                ),
            ),
            (
                {f"{T}.restartBackoff": {"initialDelay": "1h"}},
                (
                    f'{T}.restartBackoff.initialDelay: Invalid value: "1h": initialDelay (1h) '
                    "must not be longer than maxDelay (5m)",
                ),
            ),
            (
                {f"{T}.restartBackoff": {"maxDelay": "9s"}},
                (
                    f'{T}.restartBackoff.maxDelay: Invalid value: "9s": initialDelay (10s) must '
                    "not be longer than maxDelay (9s)",
                ),
            ),
        ),
    ),
    Case(
        "a failure policy says what to do on which exit code",
        good=(
            {f"{T}.failurePolicy.rules": [{"exitCodes": [1, 255], "action": "FailWorkload"}]},
            {
                f"{T}.failurePolicy.rules": [
                    {"exitCodes": [143], "action": "RestartReplicaWithoutCounting"},
                    {"exitCodes": [143], "action": "RestartReplica"},
                ]
            },
        ),
        bad=(
            (
                {f"{T}.failurePolicy": {}},
                (f"{T}.failurePolicy.rules: Required value",),
            ),
            (
                {f"{T}.failurePolicy.rules": []},
                (f"{T}.failurePolicy.rules: Required value: must have at least one rule",),
            ),
            (
                {f"{T}.failurePolicy.rules": [{"exitCodes": [], "action": "FailWorkload"}]},
                (
                    f"{T}.failurePolicy.rules[0].exitCodes: Required value: name at least one "
                    "exit code",
                ),
            ),
            (
                {f"{T}.failurePolicy.rules": [{"exitCodes": [0, 256], "action": "FailWorkload"}]},
                tuple(
                    f"{T}.failurePolicy.rules[0].exitCodes[{index}]: Invalid value: {code}: must "
                    "be an exit code of a failure, from 1 to 255"
                    for index, code in enumerate((0, 256))
                ),
            ),
            (
                {f"{T}.failurePolicy.rules": [{"exitCodes": [2, 2], "action": "FailWorkload"}]},
                (f"{T}.failurePolicy.rules[0].exitCodes[1]: Duplicate value: 2",),
            ),
            (
                {f"{T}.failurePolicy.rules": [{"exitCodes": [1], "action": "Retry"}]},
                (
                    f'{T}.failurePolicy.rules[0].action: Unsupported value: "Retry": supported '
                    'values: "FailWorkload", "RestartReplica", "RestartReplicaWithoutCounting"',
                ),
            ),
        ),
    ),
    Case(
        "pods find each other as torch wants it, or by themselves",
        good=({f"{T}.rendezvous": "torch"}, {f"{T}.suspend": True}),
        bad=(
            (
                {f"{T}.rendezvous": "mpi"},
                (f'{T}.rendezvous: Unsupported value: "mpi": supported values: "torch"',),
            ),
        ),
    ),
    Case(
        "a workload type is one of two",
        bad=(
            (
                {"spec.workloadType": "Batch", T: ABSENT},
                (
                    'spec.workloadType: Unsupported value: "Batch": supported values: '
                    '"Inference", "Training"',
                ),
            ),
        ),
    ),
)


@pytest.mark.rule("5.1")
@pytest.mark.parametrize("case", RULES, ids=repr)
def test_rules_of_a_new_job(case: Case) -> None:
    case.check_created(BASE)


@pytest.mark.rule("5.1")
@pytest.mark.parametrize("workload_type", [ABSENT, "Inference"])
def test_what_is_only_for_training_is_refused_elsewhere(workload_type: Json) -> None:
    served = changed(INFERENCE, {"spec.workloadType": workload_type})
    assert said_of(changed(served, {T: {"maxRestarts": 1}})) == [
        f'{T}: Forbidden: only with workloadType "Training", spec.workloadType is "Inference"'
    ]
    (fault,) = said_of(changed(served, {f"{S}.terminationDelay": "0s"}))
    assert "must be greater than 0s" in fault


@pytest.mark.rule("5.1")
def test_defaults_of_training_are_not_those_of_inference() -> None:
    record = MADE.record()
    template = record.spec.template
    assert template.termination_delay == Duration()
    assert [clique.spec.pod_spec["restartPolicy"] for clique in template.cliques] == ["Never"] * 3
    served = build.PodCliqueSetBuilder(INFERENCE).record().spec.template
    assert served.termination_delay is None
    assert [clique.spec.pod_spec["restartPolicy"] for clique in served.cliques] == ["Always"] * 3


@pytest.mark.rule("5.1")
def test_what_a_user_said_is_kept() -> None:
    policy = f"{C}[0].spec.podSpec.restartPolicy"
    made = changed(BASE, {policy: "OnFailure", f"{S}.terminationDelay": "90s"})
    stored, faults = kinds.admit(KIND, made)
    assert faults == ()
    assert value_at(stored, ["spec", "template", "terminationDelay"]) == "90s"
    assert warned_of(made) == [
        f"{policy}: with OnFailure containers restart in place, which neither maxRestarts nor "
        "failurePolicy sees: Never is meant for Training"
    ]
    assert warned_of(BASE) == []


def test_budgets_have_their_defaults() -> None:
    spec = build.podcliqueset().for_training(restartBackoff={}).with_clique("a").record().spec
    assert spec.training_spec is not None
    assert (spec.training_spec.max_restarts, spec.training_spec.max_runtime) == (0, None)
    assert spec.training_spec.ttl_seconds_after_finished is None
    assert not spec.training_spec.suspend
    assert spec.training_spec.restart_backoff is not None
    assert spec.training_spec.restart_backoff.initial_delay == Duration(seconds=10)
    assert spec.training_spec.restart_backoff.max_delay == Duration(minutes=5)


def test_an_update_strategy_is_warned_of() -> None:
    for change in ({"type": "OnDelete"}, {"rollingRecreate": {"maxUnavailable": 1}}):
        assert warned_of(changed(BASE, {"spec.updateStrategy": change})) == [
            "spec.updateStrategy: has no meaning for Training, which is not updated"
        ]
    assert warned_of(changed(BASE, {"spec.updateStrategy": {"paused": True}})) == []


UPDATE_RULES = (
    Case(
        "what may change until the end",
        good=(
            {},
            {f"{S}.terminationDelay": "5m"},
            {f"{S}.terminationDelay": ABSENT},
            {f"{G}[0].terminationDelay": "5m"},
            {f"{T}.maxRuntime": "1h", f"{T}.maxRestarts": 9},
            {f"{T}.suspend": True},
            {f"{T}.ttlSecondsAfterFinished": 0},
            {T: ABSENT},
            {"spec.updateStrategy": {"type": "OnDelete"}},
            {"metadata.labels": {"a": "b"}},
            {f"{S}.headlessServiceConfig.publishNotReadyAddresses": False},
            {f"{G}[0].annotations": {"a": "b"}},
            # Not hashed: the set's priority class is what pods of a gang have.
            {f"{C}[0].spec.podSpec.priorityClassName": "ignored"},
        ),
    ),
    Case(
        "no replicas at any level",
        bad=(
            ({"spec.replicas": 2}, (f"spec.replicas: Forbidden: {FIXED}",)),
            (
                {f"{C}[2].spec.replicas": 5},
                (f"{C}[2].spec.replicas: Forbidden: {FIXED}",),
            ),
            ({f"{G}[0].replicas": 3}, (f"{G}[0].replicas: Forbidden: {FIXED}",)),
        ),
    ),
    Case(
        "nothing that pods are made of",
        bad=(
            (
                {f"{C}[0].spec.podSpec.containers[0].image": "example/main:2"},
                (f"{C}[0].spec.podSpec: Forbidden: {ROLLS}",),
            ),
            ({f"{C}[0].labels": {"a": "b"}}, (f"{C}[0].labels: Forbidden: {ROLLS}",)),
            ({f"{C}[0].annotations": {"a": "b"}}, (f"{C}[0].annotations: Forbidden: {ROLLS}",)),
            (
                {f"{S}.priorityClassName": "high"},
                (f"{S}.priorityClassName: Forbidden: {ROLLS}",),
            ),
        ),
    ),
    Case(
        "no scaling by itself either",
        bad=(
            (
                {f"{G}[0].scaleConfig": {"maxReplicas": 4}},
                (f"{G}[0].scaleConfig: Forbidden: {FIXED}: remove the autoscaling",),
            ),
        ),
    ),
    Case(
        "the workload type is for life",
        bad=(
            (
                {"spec.workloadType": "Inference", T: ABSENT},
                ("spec.workloadType: Forbidden: field is immutable: make a new object",),
            ),
        ),
    ),
)


@pytest.mark.rule("5.8")
@pytest.mark.parametrize("case", UPDATE_RULES, ids=repr)
def test_rules_of_a_changed_job(case: Case) -> None:
    case.check_updated(BASE)


@pytest.mark.rule("5.8")
def test_a_served_system_does_not_become_a_job() -> None:
    trained = changed(INFERENCE, {"spec.workloadType": "Training"})
    assert said_of(trained, INFERENCE) == [
        "spec.workloadType: Forbidden: field is immutable: make a new object"
    ]
    # Stored before there were workload types.
    old = changed(kinds.admit(KIND, INFERENCE)[0], {"spec.workloadType": ABSENT})
    assert kinds.admit(KIND, INFERENCE, old)[1] == ()


@pytest.mark.rule("5.8")
def test_cliques_of_a_job_keep_their_order() -> None:
    """In which order they stand is part of the generation hash, even where it orders nothing."""
    cliques = value_at(BASE, ["spec", "template", "cliques"])
    assert isinstance(cliques, list)
    turned = changed(BASE, {C: [cliques[1], cliques[0], cliques[2]]})
    assert said_of(turned, BASE) == [f"{C}: Forbidden: a changed order {ROLLS}"]


@pytest.mark.rule("5.8")
@pytest.mark.parametrize(
    "change",
    [
        {f"{C}[0].labels": {"a": "b"}},
        {f"{C}[1].annotations": {"a": "b"}},
        {f"{C}[2].spec.podSpec.hostNetwork": True},
        {f"{C}[2].spec.podSpec.containers[0].env": [{"name": "A", "value": "1"}]},
        {f"{C}[2].spec.podSpec.restartPolicy": "OnFailure"},
        {f"{S}.priorityClassName": "high"},
    ],
)
def test_whatever_moves_the_generation_hash_is_refused(change: dict[str, Json]) -> None:
    old, new = (kinds.admit(KIND, each)[0] for each in (BASE, changed(BASE, change)))
    first, second = (
        hashes.generation_hash(object_at(each, ["spec", "template"])) for each in (old, new)
    )
    assert first != second
    assert said_of(new, old) != []


@pytest.mark.rule("5.8")
@pytest.mark.parametrize("kind", ["PodClique", "PodCliqueScalingGroup"])
def test_children_of_a_job_are_not_scaled(kind: str) -> None:
    spec: Document = (
        {
            "roleName": "w",
            "replicas": 4,
            "minAvailable": 2,
            "podSpec": {"containers": [{"name": "a"}]},
        }
        if kind == "PodClique"
        else {"replicas": 4, "minAvailable": 2, "cliqueNames": ["w"]}
    )
    child: Document = {
        "apiVersion": "grove.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": "job-0-w"},
        "spec": spec,
    }
    trained = Surroundings(root_workload_type="Training")
    for replicas in (0, 3, 5):
        scaled = changed(child, {"spec.replicas": replicas})
        assert said_of(scaled, child, trained) == [f"spec.replicas: Forbidden: {FIXED}"]
    assert said_of(child, child, trained) == []
    served = Surroundings(root_workload_type="Inference")
    assert said_of(changed(child, {"spec.replicas": 3}), child, served) == []


@pytest.mark.rule("5.8")
@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_an_ended_job_changes_no_more(phase: str) -> None:
    """But for how long it is kept, which is about what comes after."""
    why = "the workload has ended"
    ended = changed(BASE, {"status.phase": phase})
    for change, path in (
        ({f"{T}.maxRestarts": 9}, f"{T}.maxRestarts"),
        ({f"{T}.maxRuntime": "48h"}, f"{T}.maxRuntime"),
        ({f"{T}.suspend": True}, f"{T}.suspend"),
        ({f"{S}.terminationDelay": "5m"}, f"{S}.terminationDelay"),
        ({f"{G}[0].terminationDelay": "5m"}, f"{G}[0].terminationDelay"),
    ):
        assert said_of(changed(ended, change), ended) == [f"{path}: Forbidden: {why}"]
    for kept in ({}, {f"{T}.ttlSecondsAfterFinished": 60}, {"metadata.labels": {"a": "b"}}):
        assert said_of(changed(ended, kept), ended) == []
    running = changed(BASE, {"status.phase": "Running"})
    assert said_of(changed(running, {f"{T}.maxRestarts": 9}), running) == []
