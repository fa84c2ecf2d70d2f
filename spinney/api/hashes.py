"""Hashes by which changes are seen: a clique's pod template, and all of a set's.

They hold what rolls pods and nothing else (rule 1.8): a clique's labels, annotations and pod spec,
the priority class being the template's. Replicas, delays, autoscaling, start-up order and topology
are not in them, nor is anything Spinney injects.
"""

from __future__ import annotations

from spinney.meta import hashing
from spinney.meta.documents import Document, Json, list_at, object_at


def pod_template(template: Document, clique: Document) -> Document:
    """Return what a clique's hash is of; `template` is the one the clique stands in."""
    pod_spec = object_at(clique, ["spec", "podSpec"])
    return {
        "labels": clique.get("labels"),
        "annotations": clique.get("annotations"),
        "podSpec": {**pod_spec, "priorityClassName": template.get("priorityClassName")},
    }


def generation(template: Document) -> Json:
    """Return what a set's generation hash is of: every clique's pod template, in order."""
    return [
        pod_template(template, clique)
        for clique in list_at(template, ["cliques"])
        if isinstance(clique, dict)
    ]


def pod_template_hash(template: Document, clique: Document) -> str:
    """Return the hash of a clique's pod template."""
    return hashing.content_hash(pod_template(template, clique))


def generation_hash(template: Document) -> str:
    """Return the hash that changes exactly when pods of a set have to be replaced."""
    return hashing.content_hash(generation(template))


def is_generation_hash(stored: str, template: Document) -> bool:
    """Whether a stored hash is of this template, whichever version of ours made it."""
    return hashing.is_hash_of(stored, generation(template))


def is_pod_template_hash(stored: str, template: Document, clique: Document) -> bool:
    """Whether a stored hash is of this clique, whichever version of ours made it."""
    return hashing.is_hash_of(stored, pod_template(template, clique))
