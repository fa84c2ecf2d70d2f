"""Labels, annotations, finalizers and gates: the keys on the objects Spinney makes.

They are Grove's, so that selectors people have keep working (rule 1.2); what is ours begins with
`spinney.dev/`.
"""

from __future__ import annotations

from collections.abc import Mapping

from spinney.meta.documents import Document, object_at, string_at, strings

_GROVES = "grove.io/"

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

CHANGE_CAUSE = "kubernetes.io/change-cause"
"""Annotation: why something was changed, in the words of who changed it."""

RESTARTED_AT = "kubectl.kubernetes.io/restartedAt"
"""Annotation of a clique's pods: when they were last to be replaced without any other change."""

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


def clique_selector(set_name: str, clique: str) -> dict[str, str]:
    """Return what selects the pods of one PodClique."""
    return {**defaults(set_name), PODCLIQUE: clique}


def group_selector(set_name: str, group: str) -> dict[str, str]:
    """Return what selects the pods of one PodCliqueScalingGroup."""
    return {**defaults(set_name), SCALING_GROUP: group}


def of_set(set_name: str, component: str, name: str) -> dict[str, str]:
    """Return the labels of an object made once a set, or once an autoscaled target.

    A label cannot hold the colons of a Role's name; it has hyphens for them.
    """
    return {**defaults(set_name), NAME: name.replace(":", "-"), COMPONENT: component}


def of_set_replica(
    set_name: str, set_replica_index: int, component: str, name: str
) -> dict[str, str]:
    """Return the labels of an object made once a set replica: a group, a headless Service."""
    return {
        **of_set(set_name, component, name),
        SET_REPLICA_INDEX: str(set_replica_index),
    }


def compute_domain(
    set_name: str, set_replica_index: int, name: str, mnnvl_group: str
) -> dict[str, str]:
    """Return the labels of a ComputeDomain."""
    return {
        **of_set_replica(set_name, set_replica_index, Component.COMPUTE_DOMAIN, name),
        MNNVL_GROUP: mnnvl_group,
    }


def podgang(set_labels: Mapping[str, str], set_name: str, scheduler: str) -> dict[str, str]:
    """Return the labels of a PodGang: its set's, but for Grove's own keys, and what it is."""
    return {
        **_without_ours(set_labels),
        **defaults(set_name),
        COMPONENT: Component.PODGANG,
        SCHEDULER_NAME: scheduler,
    }


def set_claim(set_name: str, set_replica_index: int | None = None) -> dict[str, str]:
    """Return the labels of a set's ResourceClaim; without an index, that of all replicas."""
    return _claim(set_name, {}, SET_REPLICA_INDEX, set_replica_index)


def group_claim(
    set_name: str, group: str, group_replica_index: int | None = None
) -> dict[str, str]:
    """Return the labels of a group's ResourceClaim; without an index, that of all replicas."""
    return _claim(set_name, {SCALING_GROUP: group}, GROUP_REPLICA_INDEX, group_replica_index)


def clique_claim(set_name: str, clique: str, pod_index: int | None = None) -> dict[str, str]:
    """Return the labels of a clique's ResourceClaim; without an index, that of all its pods."""
    return _claim(set_name, {PODCLIQUE: clique}, POD_INDEX, pod_index)


def _claim(
    set_name: str, owner: dict[str, str], index_key: str, index: int | None
) -> dict[str, str]:
    found = {**defaults(set_name), COMPONENT: Component.RESOURCE_CLAIM, **owner}
    return found if index is None else {**found, index_key: str(index)}


def clique_annotations(template_annotations: Mapping[str, str]) -> dict[str, str]:
    """Return the annotations of a PodClique, and of its pods: its template's, without topology."""
    return {key: value for key, value in template_annotations.items() if key != TOPOLOGY_NAME}


def group_annotations(
    config_annotations: Mapping[str, str], set_annotations: Mapping[str, str]
) -> dict[str, str]:
    """Return the annotations of a PodCliqueScalingGroup: its own, and its set's NVLink group."""
    inherited = {key: value for key, value in set_annotations.items() if key == MNNVL_GROUP}
    return {**inherited, **config_annotations}


def podgang_annotations(
    set_annotations: Mapping[str, str], topology_name: str = ""
) -> dict[str, str]:
    """Return the annotations of a PodGang: its set's, and the topology it is placed by."""
    found = _without_ours(set_annotations)
    return {**found, TOPOLOGY_NAME: topology_name} if topology_name else found


def _without_ours(entries: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in entries.items() if not key.startswith(_GROVES)}


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
    return number(strings(object_at(document, ["metadata", "labels"])), key)


def number(carried: Mapping[str, str], key: str) -> int | None:
    """Return the value of one of an object's labels as a number, None where it is none."""
    text = carried.get(key, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 10 else None
