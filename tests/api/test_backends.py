"""What each scheduler asks of a set that it is to place."""

from __future__ import annotations

import pytest

from spinney.api.surroundings import SCHEDULERS, Surroundings
from spinney.meta.documents import Document, Json
from spinney.testing import build
from spinney.testing.build import ABSENT, changed
from tests.api.cases import Case, said_of

C = "spec.template.cliques"
KAI = "kai.scheduler/queue"
VOLCANO = "scheduling.grove.io/volcano-queue"

FREE = build.podcliqueset("chat").with_clique("a").with_clique("b").document()


def placed_by(scheduler: str) -> Document:
    return changed(FREE, {f"{C}[{i}].spec.podSpec.schedulerName": scheduler for i in (0, 1)})


def queue(place: str, field: str, key: str, value: Json) -> dict[str, Json]:
    return {f"{place}.{field}": {key: value}}


NO_QUEUE = (
    f"metadata.labels[{KAI}]: Required value: kai-scheduler needs a queue: label the set with it",
)


def other_queue(path: str, found: str, first: str, expected: str) -> str:
    return (
        f'{path}: Invalid value: "{found}": all queues of a set must be the same, '
        f'{first} is "{expected}"'
    )


KAI_RULES = (
    Case(
        "a queue is named, for the set or for a clique, in a label or in an annotation",
        good=(
            queue("metadata", "annotations", KAI, "q"),
            {"metadata.labels": ABSENT, **queue(f"{C}[0]", "labels", KAI, "q")},
            {"metadata.labels": ABSENT, **queue(f"{C}[1]", "annotations", KAI, "q")},
        ),
        bad=(
            ({"metadata.labels": ABSENT}, NO_QUEUE),
            (queue("metadata", "labels", KAI, ""), NO_QUEUE),
        ),
    ),
    Case(
        "all queues are the same, and a label goes before an annotation",
        good=(
            queue(f"{C}[0]", "labels", KAI, "research"),
            queue("metadata", "annotations", KAI, "never-read"),
        ),
        bad=(
            (
                queue(f"{C}[1]", "annotations", KAI, "other"),
                (
                    other_queue(
                        f"{C}[1].annotations[{KAI}]", "other", f"metadata.labels[{KAI}]", "research"
                    ),
                ),
            ),
            (
                {
                    "metadata.labels": ABSENT,
                    **queue(f"{C}[0]", "labels", KAI, "one"),
                    **queue(f"{C}[1]", "labels", KAI, "two"),
                },
                (other_queue(f"{C}[1].labels[{KAI}]", "two", f"{C}[0].labels[{KAI}]", "one"),),
            ),
        ),
    ),
)


@pytest.mark.parametrize("case", KAI_RULES, ids=repr)
def test_rules_of_kai(case: Case) -> None:
    case.check_created(
        changed(placed_by("kai-scheduler"), queue("metadata", "labels", KAI, "research"))
    )


NOT_A_NAME = (
    "must be the name of a queue: a lowercase RFC 1123 subdomain must consist of lower case "
    "alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


def disagrees(index: int, name: str, expected: str, shown: str) -> str:
    return (
        f"{C}[{index}].annotations[{VOLCANO}]: Invalid value: {shown}: all cliques must have the "
        f'same queue, here "{name}", elsewhere "{expected}"; a clique that names none has the '
        'set\'s, or "default"'
    )


VOLCANO_RULES = (
    Case(
        "every clique comes to the same queue",
        good=(
            queue("metadata", "annotations", VOLCANO, "nightly"),
            queue("metadata", "annotations", VOLCANO, " nightly "),
            {
                **queue("metadata", "annotations", VOLCANO, "nightly"),
                **queue(f"{C}[1]", "annotations", VOLCANO, "nightly"),
            },
            {
                **queue(f"{C}[0]", "annotations", VOLCANO, "nightly"),
                **queue(f"{C}[1]", "annotations", VOLCANO, "nightly"),
            },
            queue(f"{C}[1]", "annotations", VOLCANO, "default"),
        ),
        bad=(
            (
                {
                    **queue("metadata", "annotations", VOLCANO, "nightly"),
                    **queue(f"{C}[1]", "annotations", VOLCANO, "daily"),
                },
                (disagrees(1, "daily", "nightly", '"daily"'),),
            ),
            (
                queue(f"{C}[1]", "annotations", VOLCANO, "daily"),
                (disagrees(1, "daily", "default", '"daily"'),),
            ),
            (
                queue(f"{C}[0]", "annotations", VOLCANO, "daily"),
                (disagrees(1, "default", "daily", "null"),),
            ),
        ),
    ),
    Case(
        "a queue has a name",
        bad=(
            (
                queue("metadata", "annotations", VOLCANO, "Nightly"),
                (f'metadata.annotations[{VOLCANO}]: Invalid value: "Nightly": {NOT_A_NAME}',),
            ),
            (
                queue("metadata", "annotations", VOLCANO, " "),
                (f'metadata.annotations[{VOLCANO}]: Invalid value: " ": {NOT_A_NAME}',),
            ),
        ),
    ),
)


@pytest.mark.parametrize("case", VOLCANO_RULES, ids=repr)
def test_rules_of_volcano(case: Case) -> None:
    case.check_created(placed_by("volcano"))


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize(
    "place", ["spec.template", f"{C}[0]", "spec.template.podCliqueScalingGroups[0]"]
)
def test_some_schedulers_know_no_topology(scheduler: str, place: str) -> None:
    constraint: Json = {"topologyName": "racks", "pack": {"required": "rack"}}
    grouped = {"spec.template.podCliqueScalingGroups": [{"name": "g", "cliqueNames": ["b"]}]}
    document = changed(placed_by(scheduler), {**grouped, **queue("metadata", "labels", KAI, "q")})
    said = said_of(changed(document, {f"{place}.topologyConstraint": constraint}))
    refused = (
        f'{place}.topologyConstraint: Invalid value: {{"topologyName":"racks","pack":'
        f'{{"required":"rack"}}}}: {scheduler} does not honour topology constraints'
    )
    assert said == ([refused] if scheduler in ("volcano", "lpx-scheduler") else [])


def test_who_names_no_scheduler_has_the_default_one() -> None:
    by_kai = Surroundings(default_scheduler="kai-scheduler")
    assert said_of(FREE, known=by_kai) == [*NO_QUEUE]
    assert said_of(FREE) == []
    mixed = changed(FREE, {f"{C}[1].spec.podSpec.schedulerName": "kai-scheduler"})
    assert said_of(mixed, known=by_kai) == [*NO_QUEUE]


def test_a_scheduler_that_is_not_there_is_refused() -> None:
    few = Surroundings(schedulers=("default-scheduler",))
    assert said_of(placed_by("volcano"), known=few) == [
        f'{C}[0].spec.podSpec.schedulerName: Unsupported value: "volcano": supported values: '
        '"default-scheduler"'
    ]


def test_the_rules_hold_for_changes_too() -> None:
    labelled = changed(placed_by("kai-scheduler"), queue("metadata", "labels", KAI, "q"))
    assert said_of(changed(labelled, {"metadata.labels": {}}), labelled) == [*NO_QUEUE]


def test_a_deployment_is_asked_the_same() -> None:
    """Its queue stands in the metadata of its template: that is every route's."""
    made = build.modeldeployment().with_clique("a").document()
    path = "spec.template"
    asked = changed(made, {f"{path}.spec.cliques[0].spec.podSpec.schedulerName": "kai-scheduler"})
    assert said_of(asked) == [f"{path}.{NO_QUEUE[0]}"]
    assert said_of(changed(asked, queue(f"{path}.metadata", "labels", KAI, "q"))) == []
