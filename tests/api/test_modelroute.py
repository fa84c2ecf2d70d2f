"""The rules of a ModelRoute: what it runs is for life, traffic comes and goes, draining stays."""

from __future__ import annotations

import pytest

from spinney.api.modelroute import ModelRoute
from spinney.meta.documents import Document, value_at
from spinney.meta.records import decode
from spinney.testing import build
from spinney.testing.build import ABSENT, changed
from tests.api import samples
from tests.api.cases import Case, said_of

TEMPLATE = value_at(build.modeldeployment().with_clique("server").document(), ["spec", "template"])
BASE: Document = {
    "apiVersion": "spinney.dev/v1alpha1",
    "kind": "ModelRoute",
    "metadata": {"name": "chat-7-0"},
    "spec": {
        "deploymentName": "chat",
        "revision": 7,
        "template": TEMPLATE,
        "endpoint": {"clique": "server", "port": 8000},
    },
}
NEW = "field is immutable: a new revision is a new route"

RULES = (
    Case(
        "it belongs to a deployment and runs one of its revisions",
        good=({"spec.endpoint": ABSENT}, {"spec.traffic": "Active"}),
        bad=(
            *(
                ({path: ABSENT}, (f"{path}: Required value",))
                for path in ("spec.deploymentName", "spec.revision", "spec.template")
            ),
            (
                {"metadata.name": ABSENT},
                ("metadata.name: Required value: name or generateName is required",),
            ),
            (
                {"spec.revision": 0},
                ("spec.revision: Invalid value: 0: must be greater than or equal to 1",),
            ),
            (
                {"spec.traffic": "Some"},
                (
                    'spec.traffic: Unsupported value: "Some": supported values: "Active", '
                    '"Inactive"',
                ),
            ),
            (
                {"spec.endpoint.clique": "web"},
                (
                    'spec.endpoint.clique: Not found: "web": no clique of this name in the '
                    "template, which has: server",
                ),
            ),
            (
                {"spec.endpoint.drainSeconds": 3},
                ("spec.endpoint.drainSeconds: Unknown field: the kind has no such field",),
            ),
        ),
    ),
    Case(
        "its suffix is in its name already",
        good=({"metadata.name": "c" * 39},),
        bad=(
            (
                {"metadata.name": "c" * 40},
                tuple(
                    f'{path}: Invalid value: "{name}": the names that make up a pod\'s name must '
                    "have at most 45 characters together, found 46: metadata.name + "
                    "spec.template.spec.cliques[0].name"
                    for path, name in (
                        ("metadata.name", "c" * 40),
                        ("spec.template.spec.cliques[0].name", "server"),
                    )
                ),
            ),
        ),
    ),
)

UPDATE_RULES = (
    Case(
        "requests come and go, and it may drain",
        good=(
            {},
            {"spec.traffic": "Active"},
            {"spec.draining": True},
            {"status.health": "Healthy", "status.life": "Running"},
        ),
    ),
    Case(
        "what it runs is for life",
        bad=(
            ({"spec.deploymentName": "b"}, (f'spec.deploymentName: Invalid value: "b": {NEW}',)),
            ({"spec.revision": 8}, (f"spec.revision: Invalid value: 8: {NEW}",)),
            (
                {"spec.endpoint.port": 8001},
                ('spec.endpoint: Invalid value: {"clique":"server","port":8001}: ' + NEW,),
            ),
        ),
    ),
)


@pytest.mark.parametrize("case", RULES, ids=repr)
def test_rules_of_a_new_route(case: Case) -> None:
    case.check_created(BASE)


@pytest.mark.parametrize("case", UPDATE_RULES, ids=repr)
def test_rules_of_a_changed_route(case: Case) -> None:
    case.check_updated(BASE)


def test_what_holds_of_a_new_route_holds_of_a_changed_one() -> None:
    (fault,) = said_of(changed(BASE, {"metadata.labels": {"a b": "c"}}), BASE)
    assert fault.startswith('metadata.labels: Invalid value: "a b": ')


def test_its_template_is_for_life() -> None:
    image = "spec.template.spec.cliques[0].spec.podSpec.containers[0].image"
    (fault,) = said_of(changed(BASE, {image: "example/main:2"}), BASE)
    assert fault.startswith("spec.template: Invalid value: ")
    assert fault.endswith(NEW)


def test_a_draining_route_cannot_come_back() -> None:
    draining = changed(BASE, {"spec.draining": True})
    assert said_of(BASE, draining) == [
        "spec.draining: Forbidden: a draining route cannot come back"
    ]
    assert said_of(changed(draining, {"spec.draining": ABSENT}), draining) != []
    assert said_of(draining, draining) == []


def test_it_is_born_without_traffic_and_unchecked() -> None:
    (stored,) = samples.of_kind("ModelRoute", admitted=True)
    bare = decode(ModelRoute, {**stored, "spec": {**BASE["spec"]}, "status": {}})  # type: ignore[dict-item]
    assert (bare.spec.traffic, bare.spec.draining) == ("Inactive", False)
    assert (bare.status.life, bare.status.health) == ("Provisioning", "NotChecked")
    assert bare.status.traffic == "Inactive"
