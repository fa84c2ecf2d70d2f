"""Labels, annotations, finalizers and gates: the keys on the objects Spinney makes.

They are Grove's, so that selectors people have keep working (rule 1.2); what is ours begins with
`spinney.dev/`.
"""

from __future__ import annotations

from collections.abc import Mapping

from spinney.meta.documents import Document, object_at, string_at, strings

MANAGED_BY = "app.kubernetes.io/managed-by"
PART_OF = "app.kubernetes.io/part-of"
NAME = "app.kubernetes.io/name"
COMPONENT = "app.kubernetes.io/component"

PODCLIQUE = "grove.io/podclique"
PODGANG = "grove.io/podgang"
BASE_PODGANG = "grove.io/base-podgang"
SET_REPLICA_INDEX = "grove.io/podcliqueset-replica-index"
SCALING_GROUP = "grove.io/podcliquescalinggroup"
GROUP_REPLICA_INDEX = "grove.io/podcliquescalinggroup-replica-index"
POD_INDEX = "grove.io/podclique-pod-index"
POD_TEMPLATE_HASH = "grove.io/pod-template-hash"
SCHEDULER_NAME = "grove.io/scheduler-name"

REVISION = "spinney.dev/revision"
"""Which revision a set replica runs: on its base PodGang, before any child (rule 3.5)."""

ATTEMPT = "spinney.dev/attempt"
"""Which attempt of a training replica a PodClique belongs to (rule 5.4)."""

MANAGER = "grove-operator"
"""The value of `managed-by`. Grove's own, on purpose (rule 1.2)."""

UNPROTECTED = "grove.io/disable-managed-resource-protection"
RECONCILE_TRIGGER = "grove.io/reconcile-trigger"
TOPOLOGY_NAME = "grove.io/topology-name"
MNNVL_GROUP = "grove.io/mnnvl-group"
"""A label on ComputeDomains, and the annotation that enrols a set, group or clique."""

KAI_QUEUE = "kai.scheduler/queue"
VOLCANO_QUEUE = "scheduling.grove.io/volcano-queue"

GATE = "grove.io/podgang-pending-creation"
"""The scheduling gate every pod is born with, until its gang is whole."""

SET_FINALIZER = "grove.io/podcliqueset.grove.io"
CLIQUE_FINALIZER = "grove.io/podclique.grove.io"
GROUP_FINALIZER = "grove.io/podcliquescalinggroup.grove.io"
COMPUTE_DOMAIN_FINALIZER = "grove.io/computedomain-finalizer"
OUTCOME_FINALIZER = "spinney.dev/outcome"
"""Holds a training pod until its outcome stands in the PodClique's status (rule 5.2)."""


class Component:
    """The values of the label `app.kubernetes.io/component`."""

    STANDALONE_CLIQUE = "pcs-podclique"
    GROUPED_CLIQUE = "pcsg-podclique"
    SCALING_GROUP = "pcs-podcliquescalinggroup"
    PODGANG = "podgang"
    HEADLESS_SERVICE = "pcs-headless-service"
    SERVICE_ACCOUNT = "pod-service-account"
    ROLE = "pod-role"
    ROLE_BINDING = "pod-role-binding"
    TOKEN_SECRET = "pod-sa-token-secret"
    AUTOSCALER = "pcs-hpa"
    RESOURCE_CLAIM = "resource-claim"
    COMPUTE_DOMAIN = "pcs-computedomain"


def defaults(set_name: str) -> dict[str, str]:
    """Return the two labels everything made for a set carries."""
    return {MANAGED_BY: MANAGER, PART_OF: set_name}


def service_selector(set_name: str, set_replica_index: int) -> dict[str, str]:
    """Return what selects all pods of one set replica."""
    return {**defaults(set_name), SET_REPLICA_INDEX: str(set_replica_index)}


def standalone_clique(
    set_name: str, set_replica_index: int, clique: str, podgang: str
) -> dict[str, str]:
    """Return the labels of a PodClique outside any group, but for its template hash."""
    return {
        **defaults(set_name),
        NAME: clique,
        COMPONENT: Component.STANDALONE_CLIQUE,
        SET_REPLICA_INDEX: str(set_replica_index),
        PODGANG: podgang,
    }


def grouped_clique(
    set_name: str,
    set_replica_index: int,
    group: str,
    group_replica_index: int,
    clique: str,
    podgang: str,
    base_podgang: str,
) -> dict[str, str]:
    """Return the labels of a PodClique in a group; a scaled gang's names its base gang too."""
    found = {
        **defaults(set_name),
        NAME: clique,
        COMPONENT: Component.GROUPED_CLIQUE,
        SCALING_GROUP: group,
        GROUP_REPLICA_INDEX: str(group_replica_index),
        SET_REPLICA_INDEX: str(set_replica_index),
        PODGANG: podgang,
    }
    if podgang != base_podgang:
        found[BASE_PODGANG] = base_podgang
    return found


def pod(
    clique_labels: Mapping[str, str], set_name: str, clique: str, pod_index: int
) -> dict[str, str]:
    """Return the labels of a pod: its PodClique's, and what makes it this pod."""
    return {
        **clique_labels,
        **defaults(set_name),
        PODCLIQUE: clique,
        POD_INDEX: str(pod_index),
    }


def root_name(document: Document) -> str:
    """Return the name of the set an object was made for, "" where it was made by hand."""
    return string_at(document, ["metadata", "labels", PART_OF])


def index(document: Document, key: str) -> int | None:
    """Return an index label's value as a number, None where it is none."""
    text = strings(object_at(document, ["metadata", "labels"])).get(key, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 10 else None
