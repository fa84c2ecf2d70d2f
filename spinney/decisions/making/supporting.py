"""The documents of what pods of a set need around them: names, identity, autoscaling."""

from __future__ import annotations

from spinney.api import groupkinds, labels, names
from spinney.api.autoscaling import AutoScalingConfig
from spinney.api.podcliqueset import PodCliqueSet
from spinney.decisions.making import owning
from spinney.meta.documents import Document, Json

RBAC = "rbac.authorization.k8s.io"
SERVICE_ACCOUNT_ANNOTATION = "kubernetes.io/service-account.name"


def _metadata(
    set_: PodCliqueSet, name: str, component: str, set_replica_index: int | None = None
) -> Document:
    set_name = set_.metadata.name
    carried = (
        labels.of_set(set_name, component, name)
        if set_replica_index is None
        else labels.of_set_replica(set_name, set_replica_index, component, name)
    )
    return {
        "name": name,
        "namespace": set_.metadata.namespace,
        "labels": {**carried},
        "ownerReferences": [owning.owner_reference(groupkinds.SET, set_.metadata)],
    }


def headless_service(set_: PodCliqueSet, set_replica_index: int) -> Document:
    """Return the Service through which the pods of a set replica find each other."""
    set_name = set_.metadata.name
    name = names.headless_service(set_name, set_replica_index)
    config = set_.spec.template.headless_service_config
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(set_, name, labels.Component.HEADLESS_SERVICE, set_replica_index),
        "spec": {
            "clusterIP": "None",
            "selector": {**labels.service_selector(set_name, set_replica_index)},
            "publishNotReadyAddresses": config.publish_not_ready_addresses,
        },
    }


def service_account(set_: PodCliqueSet) -> Document:
    """Return the identity of a set's pods."""
    name = names.service_account(set_.metadata.name)
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": _metadata(set_, name, labels.Component.SERVICE_ACCOUNT),
        "automountServiceAccountToken": True,
    }


def role(set_: PodCliqueSet) -> Document:
    """Return what that identity may do: look at pods, to wait for those it starts after."""
    rule: Json = {
        "apiGroups": [""],
        "resources": ["pods", "pods/status"],
        "verbs": ["get", "list", "watch"],
    }
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "Role",
        "metadata": _metadata(set_, names.role(set_.metadata.name), labels.Component.ROLE),
        "rules": [rule],
    }


def role_binding(set_: PodCliqueSet) -> Document:
    """Return what gives the role to the identity."""
    set_name = set_.metadata.name
    subject: Json = {
        "kind": "ServiceAccount",
        "name": names.service_account(set_name),
        "namespace": set_.metadata.namespace,
    }
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": _metadata(set_, names.role(set_name), labels.Component.ROLE_BINDING),
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": names.role(set_name)},
        "subjects": [subject],
    }


def token_secret(set_: PodCliqueSet) -> Document:
    """Return the Secret a cluster fills with the identity's token."""
    set_name = set_.metadata.name
    metadata = _metadata(set_, names.token_secret(set_name), labels.Component.TOKEN_SECRET)
    account = names.service_account(set_name)
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {**metadata, "annotations": {SERVICE_ACCOUNT_ANNOTATION: account}},
        "type": "kubernetes.io/service-account-token",
    }


def autoscaler(set_: PodCliqueSet, kind: str, target: str, config: AutoScalingConfig) -> Document:
    """Return the autoscaler of a PodClique or of a scaling group, named like it."""
    spec: Document = {
        "scaleTargetRef": {"apiVersion": "grove.io/v1alpha1", "kind": kind, "name": target},
        "maxReplicas": config.max_replicas,
    }
    if config.min_replicas is not None:
        spec["minReplicas"] = config.min_replicas
    if config.metrics:
        spec["metrics"] = [*config.metrics]
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": _metadata(set_, target, labels.Component.AUTOSCALER),
        "spec": spec,
    }
