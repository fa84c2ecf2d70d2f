"""Labels: Grove's keys and values, on every kind of object."""

from __future__ import annotations

import pytest

from spinney.api import labels
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
