"""Builders: objects for tests, said in a line.

`build.podcliqueset("chat").with_clique("decode", replicas=3).document()` is what a user would
write; `.record()` is what a controller would read, defaults and all. A builder is never changed:
each `with_…` gives another.
"""

from __future__ import annotations

from typing import TypeVar

from spinney.api import kinds
from spinney.api.clustertopologybinding import ClusterTopologyBinding
from spinney.api.kinds import KINDS
from spinney.api.modeldeployment import ModelDeployment
from spinney.api.podcliqueset import PodCliqueSet
from spinney.api.podgang import PodGang
from spinney.meta import shapes
from spinney.meta.documents import Document, Json, is_list, value_at, with_value
from spinney.meta.errors import Invalid
from spinney.meta.records import decode

B = TypeVar("B", bound="Builder")


def changed(document: Document, changes: dict[str, Json]) -> Document:
    """Return a document with values at paths such as `spec.cliques[0].name`; ABSENT takes away."""
    for path, value in changes.items():
        document = _changed(document, shapes.steps(path), value)
    return document


class _Absent:
    """Says that something is to be taken away."""


ABSENT: Json = _Absent()  # type: ignore[assignment]


def _changed(here: Json, steps: tuple[str | int, ...], value: Json) -> Document:
    result = _replaced(here, steps, value)
    assert isinstance(result, dict)
    return result


def _replaced(here: Json, steps: tuple[str | int, ...], value: Json) -> Json:
    if not steps:
        return value
    first, rest = steps[0], steps[1:]
    if isinstance(first, int):
        items = list(here) if isinstance(here, list) else []
        if value is ABSENT and not rest:
            return [item for index, item in enumerate(items) if index != first]
        if first == len(items):
            return [*items, _replaced(None, rest, value)]
        return [
            _replaced(item, rest, value) if index == first else item
            for index, item in enumerate(items)
        ]
    fields = here if isinstance(here, dict) else {}
    if value is ABSENT and not rest:
        return {key: below for key, below in fields.items() if key != first}
    return {**fields, first: _replaced(fields.get(first), rest, value)}


class Builder:
    """A document under construction, of one kind."""

    def __init__(self, document: Document) -> None:
        """Start from a document."""
        self._document = document

    def _with(self: B, document: Document) -> B:
        return type(self)(document)

    def with_(self: B, path: str, value: Json) -> B:
        """Set what stands at a path; ABSENT takes it away."""
        return self._with(changed(self._document, {path: value}))

    def with_labels(self: B, **labels: str) -> B:
        """Add labels."""
        here = value_at(self._document, ["metadata", "labels"])
        before = here if isinstance(here, dict) else {}
        return self._with(with_value(self._document, ["metadata", "labels"], {**before, **labels}))

    def document(self) -> Document:
        """Return what a user would write."""
        return self._document

    def admitted(self) -> Document:
        """Return what would be stored; raises Invalid with every fault."""
        group_kind = kinds.group_kind_of(self._document)
        document, faults = kinds.admit(KINDS[group_kind], self._document)
        if faults:
            raise Invalid(faults, group=group_kind.group, kind=group_kind.kind, name="")
        return document


def _clique(
    name: str,
    replicas: int | None,
    min_available: int | None,
    starts_after: tuple[str, ...],
    image: str,
) -> Document:
    spec: Document = {
        "roleName": name,
        "podSpec": {"containers": [{"name": "main", "image": image}]},
    }
    if replicas is not None:
        spec["replicas"] = replicas
    if min_available is not None:
        spec["minAvailable"] = min_available
    if starts_after:
        spec["startsAfter"] = [*starts_after]
    return {"name": name, "spec": spec}


def _appended(document: Document, path: list[str], item: Json) -> Document:
    before = value_at(document, path)
    return with_value(document, path, [*(before if is_list(before) else []), item])


class TemplateBuilder(Builder):
    """A document that holds a PodCliqueSet template."""

    template: tuple[str, ...]

    def with_clique(
        self: TemplateB,
        name: str,
        *,
        replicas: int | None = None,
        min_available: int | None = None,
        starts_after: tuple[str, ...] = (),
        image: str = "example/main:1",
    ) -> TemplateB:
        """Add a clique."""
        clique = _clique(name, replicas, min_available, starts_after, image)
        return self._with(_appended(self._document, [*self.template, "cliques"], clique))

    def with_group(
        self: TemplateB,
        name: str,
        *cliques: str,
        replicas: int | None = None,
        min_available: int | None = None,
    ) -> TemplateB:
        """Add a scaling group of cliques."""
        group: Document = {"name": name, "cliqueNames": [*cliques]}
        if replicas is not None:
            group["replicas"] = replicas
        if min_available is not None:
            group["minAvailable"] = min_available
        path = [*self.template, "podCliqueScalingGroups"]
        return self._with(_appended(self._document, path, group))

    def with_template(self: TemplateB, field: str, value: Json) -> TemplateB:
        """Set a field of the template."""
        return self._with(with_value(self._document, [*self.template, field], value))


TemplateB = TypeVar("TemplateB", bound=TemplateBuilder)


class PodCliqueSetBuilder(TemplateBuilder):
    """A PodCliqueSet under construction."""

    template = ("spec", "template")

    def with_replicas(self, replicas: int) -> PodCliqueSetBuilder:
        """Say how many copies run."""
        return self.with_("spec.replicas", replicas)

    def for_training(self, **training: Json) -> PodCliqueSetBuilder:
        """Make it a Training workload, with fields of its trainingSpec."""
        made = self.with_("spec.workloadType", "Training")
        return made.with_("spec.trainingSpec", {**training}) if training else made

    def record(self) -> PodCliqueSet:
        """Return what a controller would read."""
        return decode(PodCliqueSet, self.admitted())


class ModelDeploymentBuilder(TemplateBuilder):
    """A ModelDeployment under construction."""

    template = ("spec", "template", "spec")

    def record(self) -> ModelDeployment:
        """Return what a controller would read."""
        return decode(ModelDeployment, self.admitted())


class ClusterTopologyBindingBuilder(Builder):
    """A ClusterTopologyBinding under construction."""

    def with_level(self, domain: str, key: str) -> ClusterTopologyBindingBuilder:
        """Add a level, narrower than those before it."""
        level: Document = {"domain": domain, "key": key}
        return self._with(_appended(self._document, ["spec", "levels"], level))

    def record(self) -> ClusterTopologyBinding:
        """Return what a controller would read."""
        return decode(ClusterTopologyBinding, self.admitted())


class PodGangBuilder(Builder):
    """A PodGang under construction."""

    def with_pods(self, clique: str, *pods: str, min_replicas: int) -> PodGangBuilder:
        """Add the pods of a PodClique."""
        namespace = value_at(self._document, ["metadata", "namespace"]) or "default"
        references: list[Json] = [{"namespace": namespace, "name": pod} for pod in pods]
        group: Document = {
            "name": clique,
            "minReplicas": min_replicas,
            "podReferences": references,
        }
        return self._with(_appended(self._document, ["spec", "podgroups"], group))

    def record(self) -> PodGang:
        """Return what a scheduler would read."""
        return decode(PodGang, self.admitted())


def _object(api_version: str, kind: str, name: str, spec: Document) -> Document:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def podcliqueset(name: str = "chat") -> PodCliqueSetBuilder:
    """Begin a PodCliqueSet of one replica, with no cliques yet."""
    spec: Document = {"replicas": 1, "template": {}}
    return PodCliqueSetBuilder(_object("grove.io/v1alpha1", "PodCliqueSet", name, spec))


def modeldeployment(name: str = "chat") -> ModelDeploymentBuilder:
    """Begin a ModelDeployment of one route, with no cliques yet."""
    spec: Document = {"replicas": 1, "template": {"spec": {}}}
    return ModelDeploymentBuilder(_object("spinney.dev/v1alpha1", "ModelDeployment", name, spec))


def clustertopologybinding(name: str = "racks") -> ClusterTopologyBindingBuilder:
    """Begin a ClusterTopologyBinding with no levels yet."""
    made = _object("grove.io/v1alpha1", "ClusterTopologyBinding", name, {"levels": []})
    return ClusterTopologyBindingBuilder(made)


def podgang(name: str = "chat-0") -> PodGangBuilder:
    """Begin a PodGang with no pods yet."""
    made = _object("scheduler.grove.io/v1alpha1", "PodGang", name, {"podgroups": []})
    return PodGangBuilder(made)
