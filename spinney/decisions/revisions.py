"""Revisions: the part of a template that rolls pods, kept so that it can be had again (rule 3.5).

A set replica runs one revision, whatever the set's template says meanwhile. What is not in a
revision (counts, delays, autoscaling, order, topology) comes from the template as it stands.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from spinney.api import groupkinds, hashes, labels
from spinney.api.core.controllerrevision import ControllerRevision
from spinney.api.podcliqueset import PodCliqueSet
from spinney.api.templates import PodCliqueSetTemplateSpec, PodCliqueTemplateSpec
from spinney.decisions.making import owning
from spinney.meta.documents import Document, Json, list_at, object_at, string_at, strings
from spinney.meta.metadata import ObjectMeta

KEPT = 10
"""How many revisions are kept beyond those that run."""


def _clique_document(clique: PodCliqueTemplateSpec) -> Document:
    return {
        "name": clique.name,
        "labels": {**clique.labels},
        "annotations": {**clique.annotations},
        "spec": {"podSpec": clique.spec.pod_spec},
    }


def _template_document(template: PodCliqueSetTemplateSpec) -> Document:
    cliques: list[Json] = [_clique_document(clique) for clique in template.cliques]
    return {"priorityClassName": template.priority_class_name, "cliques": cliques}


def data_of(template: PodCliqueSetTemplateSpec) -> Document:
    """Return what a revision keeps of a template."""
    return _template_document(template)


def generation_hash(template: PodCliqueSetTemplateSpec) -> str:
    """Return the hash of all that rolls pods of a set."""
    return hashes.generation_hash(_template_document(template))


def is_generation_hash(stored: str, template: PodCliqueSetTemplateSpec) -> bool:
    """Whether a stored hash is of this template, whichever version of ours made it."""
    return hashes.is_generation_hash(stored, _template_document(template))


def pod_template_hash(template: PodCliqueSetTemplateSpec, clique: PodCliqueTemplateSpec) -> str:
    """Return the hash of all that rolls pods of one clique."""
    whole: Document = {"priorityClassName": template.priority_class_name}
    return hashes.pod_template_hash(whole, _clique_document(clique))


def with_revision(template: PodCliqueSetTemplateSpec, data: Document) -> PodCliqueSetTemplateSpec:
    """Return a template with the fields a revision holds as they were in it."""
    kept: Mapping[str, Document] = {
        string_at(entry, ["name"]): object_at(entry, []) for entry in list_at(data, ["cliques"])
    }
    return msgspec.structs.replace(
        template,
        priority_class_name=string_at(data, ["priorityClassName"]),
        cliques=tuple(
            _with_kept(clique, kept[clique.name]) if clique.name in kept else clique
            for clique in template.cliques
        ),
    )


def _with_kept(clique: PodCliqueTemplateSpec, kept: Document) -> PodCliqueTemplateSpec:
    spec = msgspec.structs.replace(clique.spec, pod_spec=object_at(kept, ["spec", "podSpec"]))
    return msgspec.structs.replace(
        clique,
        labels=strings(object_at(kept, ["labels"])),
        annotations=strings(object_at(kept, ["annotations"])),
        spec=spec,
    )


def name(set_name: str, revision: str) -> str:
    """Return the name of the ControllerRevision that holds a revision."""
    return f"{set_name}-{revision}"


def document(set_: PodCliqueSet, revision: str, number: int) -> Document:
    """Return the ControllerRevision of what the set's template says now."""
    set_name = set_.metadata.name
    metadata: Document = {
        "name": name(set_name, revision),
        "namespace": set_.metadata.namespace,
        "labels": {**labels.defaults(set_name), labels.REVISION: revision},
        "ownerReferences": [owning.owner_reference(groupkinds.SET, set_.metadata)],
    }
    why = cause(set_.metadata)
    if why:
        metadata["annotations"] = {labels.CHANGE_CAUSE: why}
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": metadata,
        "revision": number,
        "data": _template_document(set_.spec.template),
    }


def cause(metadata: ObjectMeta) -> str:
    """Return why something was changed, as an annotation says; "" where none does."""
    return metadata.annotations.get(labels.CHANGE_CAUSE, "")


def hash_of(revision: ControllerRevision) -> str:
    """Return which revision a ControllerRevision holds."""
    return revision.metadata.labels.get(labels.REVISION, "")
