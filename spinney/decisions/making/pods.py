"""The documents of pods, in the order in which things are put into them."""

from __future__ import annotations

from collections.abc import Sequence

from spinney.api import groupkinds, labels, names
from spinney.api.podclique import PodClique
from spinney.decisions.making import backends, environment, owning
from spinney.decisions.settings import Settings
from spinney.meta.documents import Document, Json, list_at
from spinney.meta.records import Record

STARTS_AFTER = "spinney.dev/starts-after"
"""For whom the node agent holds a pod's containers back: `svc-0-leader=1,svc-0-cache=2`."""

TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
POD_INFO_PATH = "/var/grove/pod-info"


class Wait(Record):
    """A PodClique that a pod starts after, and how many of its pods must be ready."""

    clique: str
    ready_count: int


def pod(
    clique: PodClique,
    pod_index: int,
    *,
    set_name: str,
    set_replica_index: int,
    waits: Sequence[Wait],
    claims: Sequence[str],
    settings: Settings,
) -> Document:
    """Return one pod of a clique.

    `claims` are the ResourceClaims it shares, `waits` those it starts after.
    """
    metadata = clique.metadata
    name = names.pod(metadata.name, pod_index)
    spec: Document = {
        **clique.spec.pod_spec,
        "schedulingGates": [{"name": labels.GATE}],
        "hostname": names.hostname(name),
        "subdomain": names.headless_service(set_name, set_replica_index),
    }
    if not spec.get("schedulerName"):
        spec["schedulerName"] = settings.default_scheduler
    told = environment.of_pod(set_name, set_replica_index, metadata.name, metadata.namespace)
    spec = _with_claims(environment.injected(spec, told), claims)
    scheduler, gang = spec["schedulerName"], metadata.labels.get(labels.PODGANG, "")
    marks = backends.marks(str(scheduler), gang, metadata.name)
    annotations = {**metadata.annotations, **marks.annotations}
    annotations.pop(STARTS_AFTER, None)
    if waits and settings.wait_image:
        spec = _with_wait_container(spec, waits, set_name, settings.wait_image)
    elif waits:
        annotations[STARTS_AFTER] = ",".join(f"{w.clique}={w.ready_count}" for w in waits)
    made: Document = {
        "name": name,
        "namespace": metadata.namespace,
        "labels": {
            **labels.pod(metadata.labels, set_name, metadata.name, pod_index),
            **marks.labels,
        },
        "ownerReferences": [owning.owner_reference(groupkinds.CLIQUE, metadata)],
    }
    if annotations:
        made["annotations"] = {**annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": made, "spec": spec}


def _with_claims(spec: Document, claims: Sequence[str]) -> Document:
    """Return a pod spec that holds shared claims, in every container."""
    if not claims:
        return spec
    references: list[Json] = [{"name": claim, "resourceClaimName": claim} for claim in claims]

    def holding(container: Json) -> Json:
        if not isinstance(container, dict):
            return container
        resources = container.get("resources")
        given = resources if isinstance(resources, dict) else {}
        more: list[Json] = [{"name": claim} for claim in claims]
        held = [*list_at(given, ["claims"]), *more]
        return {**container, "resources": {**given, "claims": held}}

    with_references = {
        **spec,
        "resourceClaims": [*list_at(spec, ["resourceClaims"]), *references],
    }
    return environment.with_containers(with_references, holding)


def _with_wait_container(
    spec: Document, waits: Sequence[Wait], set_name: str, image: str
) -> Document:
    """Return a pod spec whose last init container waits for those the pod starts after."""
    container: Document = {
        "name": "grove-initc",
        "image": image,
        "args": [f"--podcliques={wait.clique}:{wait.ready_count}" for wait in waits],
        "volumeMounts": [
            {"name": "sa-token-secret-vol", "mountPath": TOKEN_PATH, "readOnly": True},
            {"name": "pod-info-vol", "mountPath": POD_INFO_PATH, "readOnly": True},
        ],
    }
    secret: Json = {"secretName": names.token_secret(set_name), "defaultMode": 420}
    information: Json = {
        "items": [
            {
                "path": "namespace",
                "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
            },
            {
                "path": "podgangname",
                "fieldRef": {
                    "apiVersion": "v1",
                    "fieldPath": f"metadata.labels['{labels.PODGANG}']",
                },
            },
        ],
        "defaultMode": 420,
    }
    return {
        **spec,
        "volumes": [
            *list_at(spec, ["volumes"]),
            {"name": "sa-token-secret-vol", "secret": secret},
            {"name": "pod-info-vol", "downwardAPI": information},
        ],
        "initContainers": [*list_at(spec, ["initContainers"]), container],
    }
