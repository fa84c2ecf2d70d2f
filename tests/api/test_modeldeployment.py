"""The rules of a ModelDeployment: budgets that let something move, and names that fit."""

from __future__ import annotations

import pytest

from spinney.api import kinds, modeldeployment
from spinney.api.surroundings import Surroundings
from spinney.meta.documents import Document, Json, value_at
from spinney.testing import build
from spinney.testing.build import ABSENT, changed
from tests.api.cases import Case, said_of, warned_of

KIND = modeldeployment.KIND
MADE = build.modeldeployment("chat").with_clique("router").with_clique("worker", replicas=4)
BASE = MADE.document()
C = "spec.template.spec.cliques"
R = "spec.strategy.rollingUpdate"
E = "spec.endpoint"
H = "spec.endpoint.healthCheck"
SERVED = changed(BASE, {E: {"clique": "router", "port": 8000, "healthCheck": {}}})

SHARE = 'must be an integer or a percentage such as "25%"'
STUCK = f"must not be 0 while {R}.maxSurge is 0: nothing could ever be replaced"


def not_below(path: str, least: int) -> Case:
    return Case(
        f"{path} is at least {least}",
        good=({path: least}, {path: 700}) if path != "spec.minReadySeconds" else ({path: 0},),
        bad=(
            (
                {path: least - 1},
                (f"{path}: Invalid value: {least - 1}: must be greater than or equal to {least}",),
            ),
        ),
    )


RULES = (
    Case(
        "a budget lets something move",
        good=(
            {f"{R}": {"maxSurge": 0, "maxUnavailable": 1}},
            {f"{R}": {"maxSurge": "100%", "maxUnavailable": "100%"}},
            {f"{R}": {"maxSurge": 5}},
            {f"{R}": {}},
            # Comes to nothing for three routes: one counts as unavailable then.
            {f"{R}": {"maxSurge": 0, "maxUnavailable": "1%"}},
        ),
        bad=(
            *(
                (
                    {R: {"maxSurge": surge, "maxUnavailable": unavailable}},
                    (
                        f"{R}.maxUnavailable: Invalid value: "
                        f"{unavailable if unavailable == 0 else chr(34) + '0%' + chr(34)}: {STUCK}",
                    ),
                )
                for surge in (0, "0%")
                for unavailable in (0, "0%")
            ),
            (
                {R: {"maxSurge": 0}},
                (f"{R}.maxUnavailable: Invalid value: 0: {STUCK}",),
            ),
            (
                {R: {"maxSurge": -1, "maxUnavailable": "101%"}},
                (
                    f"{R}.maxSurge: Invalid value: -1: must be greater than or equal to 0",
                    f'{R}.maxUnavailable: Invalid value: "101%": must be at most 100%',
                ),
            ),
            (
                {R: {"maxSurge": "many"}},
                (f'{R}.maxSurge: Invalid value: "many": {SHARE}',),
            ),
            (
                {R: {"maxSurge": True}},
                (f"{R}.maxSurge: Invalid value: true: must be an integer or a string",),
            ),
        ),
    ),
    Case(
        "a strategy is one of two",
        good=(
            {"spec.strategy": {"type": "BlueGreen"}},
            {"spec.strategy": {"type": "BlueGreen", "blueGreen": {"retainSeconds": 9}}},
            {"spec.strategy": {}},
        ),
        bad=(
            (
                {"spec.strategy.type": "Canary"},
                (
                    'spec.strategy.type: Unsupported value: "Canary": supported values: '
                    '"RollingUpdate", "BlueGreen"',
                ),
            ),
            *(
                (
                    {"spec.strategy": {"type": "BlueGreen", "blueGreen": {field: -1}}},
                    (
                        f"spec.strategy.blueGreen.{field}: Invalid value: -1: must be greater "
                        "than or equal to 0",
                    ),
                )
                for field in ("promoteDelaySeconds", "retainSeconds")
            ),
        ),
    ),
    Case(
        "there is time to be ready in",
        good=({"spec.minReadySeconds": 599}, {"spec.progressDeadlineSeconds": 1}),
        bad=(
            (
                {"spec.minReadySeconds": 600},
                (
                    "spec.progressDeadlineSeconds: Invalid value: 600: must be greater than "
                    "minReadySeconds (600)",
                ),
            ),
            (
                {"spec.minReadySeconds": -1},
                ("spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0",),
            ),
        ),
    ),
    not_below("spec.replicas", 0),
    not_below("spec.progressDeadlineSeconds", 1),
    not_below("spec.maxFailedRoutes", 1),
    not_below("spec.revisionHistoryLimit", 0),
    Case(
        "names leave room for a route's suffix",
        good=(
            {"metadata.name": "c" * 27},
            {"metadata.name": "c" * 8, f"{C}[0].name": "r" * 25},
        ),
        bad=(
            (
                {"metadata.name": "c" * 28},
                tuple(
                    f'{path}: Invalid value: "{name}": the names that make up a pod\'s name must '
                    f"have at most 45 characters together, found 46: metadata.name + {C}[{i}].name"
                    for path, name, i in (
                        ("metadata.name", "c" * 28, 0),
                        ("metadata.name", "c" * 28, 1),
                        (f"{C}[0].name", "router", 0),
                        (f"{C}[1].name", "worker", 1),
                    )
                ),
            ),
        ),
    ),
    Case(
        "a revision's labels are labels",
        good=({"spec.template.metadata": {"labels": {"a": "b"}, "annotations": {"c": "d e"}}},),
        bad=(
            (
                {"spec.template.metadata.labels": {"a": "b c"}},
                (
                    'spec.template.metadata.labels: Invalid value: "b c": a valid label must be '
                    "an empty string or consist of alphanumeric characters, '-', '_' or '.', and "
                    "must start and end with an alphanumeric character (e.g. 'MyValue',  or "
                    "'my_value',  or '12345', regex used for validation is "
                    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
                ),
            ),
            (
                {"spec.template.metadata.name": "a"},
                ("spec.template.metadata.name: Unknown field: the kind has no such field",),
            ),
        ),
    ),
    Case(
        "a template is one of Inference, with all its rules",
        bad=(
            ({"spec.template": ABSENT}, ("spec.template: Required value",)),
            ({C: []}, (f"{C}: Required value: must have at least one clique",)),
            (
                {f"{C}[0].spec.podSpec.nodeName": "n"},
                (
                    f'{C}[0].spec.podSpec.nodeName: Invalid value: "n": must not be set: the '
                    "scheduler chooses nodes; use nodeSelector or affinity",
                ),
            ),
            (
                {"spec.template.spec.terminationDelay": "0s"},
                (
                    'spec.template.spec.terminationDelay: Invalid value: "0s": must be greater '
                    "than 0s; leave it out to turn gang termination off",
                ),
            ),
            (
                {"spec.workloadType": "Training"},
                ("spec.workloadType: Unknown field: the kind has no such field",),
            ),
        ),
    ),
)

ENDPOINT_RULES = (
    Case(
        "an endpoint is a port of a clique there is",
        good=({E: ABSENT}, {f"{E}.clique": "worker"}, {f"{E}.drainSeconds": 0}),
        bad=(
            (
                {f"{E}.clique": "nobody"},
                (
                    f'{E}.clique: Not found: "nobody": no clique of this name in the template, '
                    "which has: router, worker",
                ),
            ),
            ({f"{E}.clique": ABSENT}, (f"{E}.clique: Required value",)),
            ({f"{E}.port": ABSENT}, (f"{E}.port: Required value",)),
            (
                {f"{E}.port": 0},
                (f"{E}.port: Invalid value: 0: must be greater than or equal to 1",),
            ),
            (
                {f"{E}.port": 65536},
                (f"{E}.port: Invalid value: 65536: must be less than or equal to 65535",),
            ),
            (
                {f"{E}.drainSeconds": -1},
                (f"{E}.drainSeconds: Invalid value: -1: must be greater than or equal to 0",),
            ),
        ),
    ),
    Case(
        "health is asked for at a path, again and again",
        good=({f"{H}.path": "/"}, {f"{H}.path": "/a?b=c"}, {f"{H}.initialDelaySeconds": 0}),
        bad=(
            ({f"{H}.path": "health"}, (f'{H}.path: Invalid value: "health": must begin with "/"',)),
            ({f"{H}.path": ""}, (f'{H}.path: Invalid value: "": must begin with "/"',)),
            *(
                (
                    {f"{H}.{field}": least - 1},
                    (
                        f"{H}.{field}: Invalid value: {least - 1}: must be greater than or equal "
                        f"to {least}",
                    ),
                )
                for field, least in (
                    ("intervalSeconds", 1),
                    ("timeoutSeconds", 1),
                    ("failureThreshold", 1),
                    ("initialDelaySeconds", 0),
                )
            ),
        ),
    ),
)


@pytest.mark.parametrize("case", RULES, ids=repr)
def test_rules_of_a_deployment_new_or_changed(case: Case) -> None:
    case.check_created(BASE)
    case.check_updated(BASE)


@pytest.mark.parametrize("case", ENDPOINT_RULES, ids=repr)
def test_rules_of_an_endpoint(case: Case) -> None:
    case.check_created(SERVED)
    case.check_updated(SERVED)


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        (
            ABSENT,
            {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 0}},
        ),
        (
            {"rollingUpdate": {"maxSurge": 2}},
            {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2, "maxUnavailable": 0}},
        ),
        (
            {"type": "BlueGreen"},
            {
                "type": "BlueGreen",
                "blueGreen": {"autoPromote": True, "promoteDelaySeconds": 0, "retainSeconds": 0},
            },
        ),
        (
            {"type": "BlueGreen", "blueGreen": {"autoPromote": False}},
            {
                "type": "BlueGreen",
                "blueGreen": {"autoPromote": False, "promoteDelaySeconds": 0, "retainSeconds": 0},
            },
        ),
    ],
)
def test_a_strategy_is_stored_with_what_it_needs(written: Json, stored: Document) -> None:
    document, faults = kinds.admit(KIND, changed(BASE, {"spec.strategy": written}))
    assert faults == ()
    assert value_at(document, ["spec", "strategy"]) == stored


def test_the_rest_has_its_defaults() -> None:
    spec = build.ModelDeploymentBuilder(SERVED).record().spec
    assert (spec.replicas, spec.min_ready_seconds, spec.progress_deadline_seconds) == (1, 0, 600)
    assert (spec.max_failed_routes, spec.revision_history_limit) == (3, 10)
    assert (spec.auto_rollback, spec.paused) == (True, False)
    assert spec.endpoint is not None
    assert spec.endpoint.drain_seconds == 30
    check = spec.endpoint.health_check
    assert check is not None
    assert (check.path, check.interval_seconds, check.timeout_seconds) == ("/", 10, 5)
    assert (check.failure_threshold, check.initial_delay_seconds) == (3, 60)
    (router, worker) = spec.template.spec.cliques
    assert (router.spec.min_available, worker.spec.min_available) == (1, 4)
    assert router.spec.pod_spec["restartPolicy"] == "Always"
    bare = changed(BASE, {"spec.replicas": ABSENT})
    assert value_at(kinds.admit(KIND, bare)[0], ["spec", "replicas"]) == 1


def test_everything_may_change_for_that_is_a_new_revision() -> None:
    other = changed(
        SERVED,
        {
            C: value_at(build.modeldeployment().with_clique("one").document(), C.split(".")),
            f"{E}.clique": "one",
            "spec.strategy": {"type": "BlueGreen"},
            "spec.template.spec.cliqueStartupType": "CliqueStartupTypeInOrder",
        },
    )
    assert said_of(other, SERVED) == []


def test_groups_of_multi_node_nvlink_are_checked_in_the_template() -> None:
    enrolled = {"spec.template.metadata.annotations": {"grove.io/mnnvl-group": "fabric"}}
    off = Surroundings(mnnvl=False)
    (fault,) = said_of(changed(BASE, enrolled), known=off)
    assert fault.startswith("spec.template.metadata.annotations[grove.io/mnnvl-group]: Invalid")
    (fault,) = said_of(changed(BASE, enrolled), BASE, off)
    assert fault.startswith("spec.template.metadata.annotations[grove.io/mnnvl-group]: Invalid")
    assert said_of(changed(BASE, enrolled), BASE) == []


@pytest.mark.parametrize(
    "place",
    [
        "metadata.labels",
        "metadata.annotations",
        "spec.template.metadata.labels",
        "spec.template.metadata.annotations",
    ],
)
def test_its_metadata_and_that_of_its_routes_is_metadata(place: str) -> None:
    for old in (None, BASE):
        (fault,) = said_of(changed(BASE, {place: {"a b": "c"}}), old)
        assert fault.startswith(f'{place}: Invalid value: "a b": name part must consist')


def test_a_template_is_warned_of_as_a_sets_is() -> None:
    policy = f"{C}[0].spec.podSpec.restartPolicy"
    assert warned_of(changed(BASE, {policy: "Never"}), BASE) == [
        f'{policy}: with "Never" a pod that ends stays ended until it is replaced: Always is '
        "meant for Inference"
    ]
    # Other replicas are another revision, which reaches everything.
    assert warned_of(changed(BASE, {f"{C}[1].spec.replicas": 5}), BASE) == []
