"""The documents of PodCliques and of scaling groups."""

from __future__ import annotations

from collections.abc import Mapping

from spinney.api import groupkinds, labels
from spinney.api.podclique import PodClique
from spinney.api.podcliqueset import PodCliqueSet
from spinney.api.templates import PodCliqueSetTemplateSpec, PodCliqueTemplateSpec
from spinney.decisions import places, revisions, startup
from spinney.decisions.making import environment, owning
from spinney.decisions.places import CliquePlace, GroupPlace
from spinney.meta import records
from spinney.meta.documents import Document, object_at
from spinney.meta.metadata import ObjectMeta
from spinney.meta.patches import merge_patch

API_VERSION = "grove.io/v1alpha1"


def podclique(
    set_: PodCliqueSet,
    template: PodCliqueSetTemplateSpec,
    place: CliquePlace,
    group: ObjectMeta | None = None,
) -> Document:
    """Return the PodClique of a place, from the template its set replica runs.

    `group` is the metadata of the scaling group that owns it, where it is in one.
    """
    clique = places.clique_of(template, place.clique)
    assert clique is not None, f"{place.name} is of no clique of its set"
    owner = owning.owner_reference(groupkinds.SET, set_.metadata)
    if group is not None:
        owner = owning.owner_reference(groupkinds.SCALING_GROUP, group)
    metadata: Document = {
        "name": place.name,
        "namespace": set_.metadata.namespace,
        "labels": {**_labels(template, clique, place)},
        "ownerReferences": [owner],
        "finalizers": [labels.CLIQUE_FINALIZER],
    }
    annotations = labels.clique_annotations(clique.annotations)
    if annotations:
        metadata["annotations"] = {**annotations}
    return {
        "apiVersion": API_VERSION,
        "kind": groupkinds.CLIQUE.kind,
        "metadata": metadata,
        "spec": _spec(template, clique, place),
    }


def _labels(
    template: PodCliqueSetTemplateSpec, clique: PodCliqueTemplateSpec, place: CliquePlace
) -> Mapping[str, str]:
    if place.group is None:
        own = labels.standalone_clique(
            place.set_name, place.set_replica_index, place.name, place.podgang
        )
    else:
        own = labels.grouped_clique(
            place.set_name,
            place.set_replica_index,
            place.group.name,
            place.group_replica_index,
            place.name,
            place.podgang,
            place.base_podgang,
        )
    stamp = {labels.POD_TEMPLATE_HASH: revisions.pod_template_hash(template, clique)}
    given = {key: value for key, value in clique.labels.items() if key not in _TELL_THE_PLACE}
    return {**given, **own, **stamp}


_TELL_THE_PLACE = frozenset(
    {
        labels.PODCLIQUE,
        labels.PODGANG,
        labels.BASE_PODGANG,
        labels.SET_REPLICA_INDEX,
        labels.SCALING_GROUP,
        labels.GROUP_REPLICA_INDEX,
        labels.POD_INDEX,
        labels.POD_TEMPLATE_HASH,
        labels.REVISION,
        labels.ATTEMPT,
    }
)
"""Labels a template cannot give: what has none of them is nowhere else either."""


def _spec(
    template: PodCliqueSetTemplateSpec, clique: PodCliqueTemplateSpec, place: CliquePlace
) -> Document:
    pod_spec = clique.spec.pod_spec
    if place.group is not None:
        counts = (places.clique_of(template, name) for name in place.group.config.clique_names)
        pod_count = sum(found.spec.replicas for found in counts if found is not None)
        pod_spec = environment.injected(pod_spec, environment.of_group(pod_count))
    spec: Document = {
        "roleName": clique.spec.role_name,
        "podSpec": pod_spec,
        "replicas": clique.spec.replicas,
        "minAvailable": min_available(clique),
    }
    waits_for = startup.starts_after(template, place)
    if waits_for:
        spec["startsAfter"] = [*waits_for]
    if clique.spec.auto_scaling_config is not None:
        spec["autoScalingConfig"] = records.encode(clique.spec.auto_scaling_config)
    return spec


def template_change(clique: PodClique, wanted: Document) -> Document:
    """Return the merge patch that makes a PodClique follow another template; empty where it does.

    Its replicas are its own, and what else it says cannot change.
    """
    carried = object_at(wanted, ["metadata", "labels"])
    if carried.get(labels.POD_TEMPLATE_HASH) == clique.metadata.labels.get(
        labels.POD_TEMPLATE_HASH
    ):
        return {}
    held: Document = {
        "metadata": {
            "labels": {**clique.metadata.labels},
            "annotations": {**clique.metadata.annotations},
        },
        "spec": {"podSpec": clique.spec.pod_spec},
    }
    said: Document = {
        "metadata": {
            "labels": carried,
            "annotations": object_at(wanted, ["metadata", "annotations"]),
        },
        "spec": {"podSpec": object_at(wanted, ["spec", "podSpec"])},
    }
    return merge_patch.diff(held, said)


def min_available(clique: PodCliqueTemplateSpec | PodClique) -> int:
    """Return how many pods a clique needs (rule 1.6)."""
    least = clique.spec.min_available
    return clique.spec.replicas if least is None else least


def scaling_group(set_: PodCliqueSet, place: GroupPlace) -> Document:
    """Return a scaling group as it is made; its replicas are its own from then on."""
    config = place.config
    carried = labels.of_set_replica(
        set_.metadata.name,
        place.set_replica_index,
        labels.Component.SCALING_GROUP,
        place.name,
    )
    metadata: Document = {
        "name": place.name,
        "namespace": set_.metadata.namespace,
        "labels": {**carried},
        "ownerReferences": [owning.owner_reference(groupkinds.SET, set_.metadata)],
        "finalizers": [labels.GROUP_FINALIZER],
    }
    annotations = labels.group_annotations(config.annotations, set_.metadata.annotations)
    if annotations:
        metadata["annotations"] = {**annotations}
    return {
        "apiVersion": API_VERSION,
        "kind": groupkinds.SCALING_GROUP.kind,
        "metadata": metadata,
        "spec": {
            "replicas": config.replicas,
            "minAvailable": config.min_available,
            "cliqueNames": [*config.clique_names],
        },
    }
