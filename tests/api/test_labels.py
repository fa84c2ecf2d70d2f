"""Labels: Grove's keys and values, on every kind of object."""

from __future__ import annotations

import pytest

from spinney.api import labels, names
from spinney.api.labels import Component
from spinney.meta.metadata import is_label_value, is_qualified_name

pytestmark = pytest.mark.rule("1.2")

D = {
    "app.kubernetes.io/managed-by": "grove-operator",
    "app.kubernetes.io/part-of": "svc",
}


def test_everything_of_a_set_is_selected_by_two_labels() -> None:
    assert labels.defaults("svc") == D


def test_a_set_replicas_pods_are_selected_by_its_service() -> None:
    assert labels.service_selector("svc", 2) == {**D, "grove.io/podcliqueset-replica-index": "2"}


def test_a_standalone_clique() -> None:
    assert labels.standalone_clique("svc", 1, "svc-1-fe", "svc-1") == {
        **D,
        "app.kubernetes.io/name": "svc-1-fe",
        "app.kubernetes.io/component": "pcs-podclique",
        "grove.io/podcliqueset-replica-index": "1",
        "grove.io/podgang": "svc-1",
    }


GROUPED = {
    **D,
    "app.kubernetes.io/name": "svc-0-pre-1-wk",
    "app.kubernetes.io/component": "pcsg-podclique",
    "grove.io/podcliquescalinggroup": "svc-0-pre",
    "grove.io/podcliquescalinggroup-replica-index": "1",
    "grove.io/podcliqueset-replica-index": "0",
}


def test_a_clique_of_a_scaled_gang_names_its_base_gang() -> None:
    found = labels.grouped_clique(
        "svc", 0, "svc-0-pre", 1, "svc-0-pre-1-wk", "svc-0-pre-0", "svc-0"
    )
    assert found == {
        **GROUPED,
        "grove.io/podgang": "svc-0-pre-0",
        "grove.io/base-podgang": "svc-0",
    }


def test_a_clique_of_the_base_gang_does_not() -> None:
    found = labels.grouped_clique("svc", 0, "svc-0-pre", 1, "svc-0-pre-1-wk", "svc-0", "svc-0")
    assert found == {**GROUPED, "grove.io/podgang": "svc-0"}


def test_a_pod_has_its_cliques_labels_and_its_own() -> None:
    """The operator's win over what a template says."""
    clique = {
        **labels.standalone_clique("svc", 0, "svc-0-fe", "svc-0"),
        "team": "a",
        "grove.io/podclique-pod-index": "9",
    }
    found = labels.pod(clique, "svc", "svc-0-fe", 3)
    assert found == {
        **clique,
        "grove.io/podclique": "svc-0-fe",
        "grove.io/podclique-pod-index": "3",
    }


N = "app.kubernetes.io/name"
COMPONENT = "app.kubernetes.io/component"
INDEX = "grove.io/podcliqueset-replica-index"


def test_pods_of_a_clique_and_of_a_group_are_selected() -> None:
    """These stand in status, for autoscalers."""
    assert labels.clique_selector("svc", "svc-0-fe") == {**D, "grove.io/podclique": "svc-0-fe"}
    assert labels.group_selector("svc", "svc-0-pre") == {
        **D,
        "grove.io/podcliquescalinggroup": "svc-0-pre",
    }


@pytest.mark.parametrize(
    ("component", "name", "told"),
    [
        (Component.SERVICE_ACCOUNT, names.service_account("svc"), "svc"),
        (Component.ROLE, names.role("svc"), "grove.io-pcs-svc"),
        (Component.ROLE_BINDING, names.role("svc"), "grove.io-pcs-svc"),
        (Component.TOKEN_SECRET, names.token_secret("svc"), "svc-ic-sat"),
        (Component.AUTOSCALER, names.clique("svc", 0, "fe"), "svc-0-fe"),
    ],
)
def test_what_a_set_has_once(component: str, name: str, told: str) -> None:
    found = labels.of_set("svc", component, name)
    assert found == {**D, N: told, COMPONENT: component}
    assert all(map(is_label_value, found.values()))


@pytest.mark.parametrize(
    ("component", "name"),
    [
        (Component.SCALING_GROUP, names.scaling_group("svc", 2, "pre")),
        (Component.HEADLESS_SERVICE, names.headless_service("svc", 2)),
    ],
)
def test_what_a_set_replica_has_once(component: str, name: str) -> None:
    found = labels.of_set_replica("svc", 2, component, name)
    assert found == {**D, N: name, COMPONENT: component, INDEX: "2"}


def test_a_compute_domain_names_its_group() -> None:
    name = names.compute_domain("svc", 1, "fabric")
    assert labels.compute_domain("svc", 1, name, "fabric") == {
        **D,
        N: "svc-1-fabric",
        COMPONENT: "pcs-computedomain",
        INDEX: "1",
        "grove.io/mnnvl-group": "fabric",
    }


def test_a_podgang_mirrors_its_sets_labels_but_not_groves() -> None:
    """It has neither a name nor an index, and what is Grove's own wins."""
    of_set = {"team": "a", "grove.io/podgang": "x", "app.kubernetes.io/part-of": "other"}
    assert labels.podgang(of_set, "svc", "kai-scheduler") == {
        **D,
        "team": "a",
        COMPONENT: "podgang",
        "grove.io/scheduler-name": "kai-scheduler",
    }


def test_a_claim_is_told_by_its_owner_and_its_index() -> None:
    claim = {**D, COMPONENT: "resource-claim"}
    assert labels.set_claim("svc") == claim
    assert labels.set_claim("svc", 0) == {**claim, INDEX: "0"}
    group = {**claim, "grove.io/podcliquescalinggroup": "svc-0-pre"}
    assert labels.group_claim("svc", "svc-0-pre") == group
    assert labels.group_claim("svc", "svc-0-pre", 4) == {
        **group,
        "grove.io/podcliquescalinggroup-replica-index": "4",
    }
    clique = {**claim, "grove.io/podclique": "svc-0-fe"}
    assert labels.clique_claim("svc", "svc-0-fe") == clique
    assert labels.clique_claim("svc", "svc-0-fe", 7) == {
        **clique,
        "grove.io/podclique-pod-index": "7",
    }


def test_annotations_come_down_as_groves_do() -> None:
    topology, mnnvl = "grove.io/topology-name", "grove.io/mnnvl-group"
    assert labels.clique_annotations({"a": "1", topology: "racks", mnnvl: "none"}) == {
        "a": "1",
        mnnvl: "none",
    }
    of_set = {"b": "2", mnnvl: "fabric", topology: "racks", "scheduling.grove.io/x": "y"}
    assert labels.group_annotations({"a": "1"}, of_set) == {"a": "1", mnnvl: "fabric"}
    assert labels.group_annotations({mnnvl: "none"}, of_set) == {mnnvl: "none"}
    mirrored = {"b": "2", "scheduling.grove.io/x": "y"}
    assert labels.podgang_annotations(of_set) == mirrored
    assert labels.podgang_annotations(of_set, "racks") == {**mirrored, topology: "racks"}


def test_the_root_of_a_child_is_told_by_a_label() -> None:
    assert labels.root_name({"metadata": {"labels": D}}) == "svc"
    assert labels.root_name({"metadata": {}}) == ""


@pytest.mark.parametrize(
    ("text", "found"),
    [("0", 0), ("12", 12), ("", None), ("-1", None), ("x", None), ("²", None), ("1" * 11, None)],
)
def test_an_index_is_read_from_a_label(text: str, found: int | None) -> None:
    document = {"metadata": {"labels": {labels.POD_INDEX: text}}}
    assert labels.index(document, labels.POD_INDEX) == found
    assert labels.index({}, labels.POD_INDEX) is None


@pytest.mark.rule("1.3")
def test_what_is_ours_says_so() -> None:
    assert (labels.REVISION, labels.ATTEMPT) == ("spinney.dev/revision", "spinney.dev/attempt")
    assert labels.OUTCOME_FINALIZER == "spinney.dev/outcome"


def test_keys_and_values_are_groves() -> None:
    assert {name: getattr(labels, name) for name in KEYS} == KEYS
    assert {name: getattr(Component, name) for name in COMPONENTS} == COMPONENTS
    assert {name for name in vars(Component) if name.isupper()} == set(COMPONENTS)
    assert all(map(is_label_value, COMPONENTS.values()))
    assert all(map(is_qualified_name, KEYS.values()))


KEYS = {
    "MANAGED_BY": "app.kubernetes.io/managed-by",
    "PART_OF": "app.kubernetes.io/part-of",
    "NAME": "app.kubernetes.io/name",
    "COMPONENT": "app.kubernetes.io/component",
    "PODCLIQUE": "grove.io/podclique",
    "PODGANG": "grove.io/podgang",
    "BASE_PODGANG": "grove.io/base-podgang",
    "SET_REPLICA_INDEX": "grove.io/podcliqueset-replica-index",
    "SCALING_GROUP": "grove.io/podcliquescalinggroup",
    "GROUP_REPLICA_INDEX": "grove.io/podcliquescalinggroup-replica-index",
    "POD_INDEX": "grove.io/podclique-pod-index",
    "POD_TEMPLATE_HASH": "grove.io/pod-template-hash",
    "SCHEDULER_NAME": "grove.io/scheduler-name",
    "MNNVL_GROUP": "grove.io/mnnvl-group",
    "TOPOLOGY_NAME": "grove.io/topology-name",
    "RECONCILE_TRIGGER": "grove.io/reconcile-trigger",
    "UNPROTECTED": "grove.io/disable-managed-resource-protection",
    "KAI_QUEUE": "kai.scheduler/queue",
    "VOLCANO_QUEUE": "scheduling.grove.io/volcano-queue",
    "GATE": "grove.io/podgang-pending-creation",
    "SET_FINALIZER": "grove.io/podcliqueset.grove.io",
    "CLIQUE_FINALIZER": "grove.io/podclique.grove.io",
    "GROUP_FINALIZER": "grove.io/podcliquescalinggroup.grove.io",
    "COMPUTE_DOMAIN_FINALIZER": "grove.io/computedomain-finalizer",
}
COMPONENTS = {
    "STANDALONE_CLIQUE": "pcs-podclique",
    "GROUPED_CLIQUE": "pcsg-podclique",
    "SCALING_GROUP": "pcs-podcliquescalinggroup",
    "PODGANG": "podgang",
    "HEADLESS_SERVICE": "pcs-headless-service",
    "SERVICE_ACCOUNT": "pod-service-account",
    "ROLE": "pod-role",
    "ROLE_BINDING": "pod-role-binding",
    "TOKEN_SECRET": "pod-sa-token-secret",
    "AUTOSCALER": "pcs-hpa",
    "RESOURCE_CLAIM": "resource-claim",
    "COMPUTE_DOMAIN": "pcs-computedomain",
}
