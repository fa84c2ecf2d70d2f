"""The builders that tests are written with: short to say, and never changed by saying more."""

from __future__ import annotations

import pytest

from spinney.meta.documents import value_at
from spinney.meta.durations import Duration
from spinney.meta.errors import Invalid
from spinney.testing import build
from spinney.testing.build import ABSENT, changed

MADE = build.podcliqueset("chat").with_clique("a", replicas=3, min_available=2, starts_after=("b",))


def test_a_builder_gives_another_and_stays_itself() -> None:
    before = MADE.document()
    more = MADE.with_clique("b").with_replicas(5).with_labels(team="x").with_("spec.x", 1)
    assert more.document() != before
    assert MADE.document() == before
    assert MADE.with_labels(a="1").with_labels(b="2").document()["metadata"] == {
        "name": "chat",
        "labels": {"a": "1", "b": "2"},
    }


def test_a_document_is_what_a_user_would_write() -> None:
    assert MADE.with_group("g", "a", replicas=2, min_available=1).document() == {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": "chat"},
        "spec": {
            "replicas": 1,
            "template": {
                "cliques": [
                    {
                        "name": "a",
                        "spec": {
                            "roleName": "a",
                            "podSpec": {
                                "containers": [{"name": "main", "image": "example/main:1"}]
                            },
                            "replicas": 3,
                            "minAvailable": 2,
                            "startsAfter": ["b"],
                        },
                    }
                ],
                "podCliqueScalingGroups": [
                    {"name": "g", "cliqueNames": ["a"], "replicas": 2, "minAvailable": 1}
                ],
            },
        },
    }


def test_a_record_is_what_a_controller_reads() -> None:
    record = MADE.with_template("terminationDelay", "5m").record()
    assert record.metadata.namespace == "default"
    assert record.spec.template.termination_delay == Duration(minutes=5)
    assert record.spec.template.cliques[0].spec.min_available == 2


def test_a_broken_object_is_refused_with_every_fault() -> None:
    broken = MADE.with_replicas(-1).with_("spec.template.cliques[0].name", "")
    with pytest.raises(Invalid) as refused:
        broken.record()
    assert "spec.replicas" in str(refused.value)
    assert "spec.template.cliques[0].name" in str(refused.value)


def test_a_job_is_made_of_a_set() -> None:
    assert MADE.for_training().record().spec.workload_type == "Training"
    spec = MADE.for_training(maxRestarts=3, maxRuntime="1h").record().spec.training_spec
    assert spec is not None
    assert (spec.max_restarts, spec.max_runtime) == (3, Duration(hours=1))


def test_other_kinds_are_made_alike() -> None:
    deployment = build.modeldeployment("d").with_clique("a").with_group("g", "a").record()
    assert deployment.spec.template.spec.pod_clique_scaling_groups[0].clique_names == ("a",)
    binding = build.clustertopologybinding().with_level("rack", "example.com/rack").record()
    assert binding.spec.levels[0].key == "example.com/rack"
    gang = build.podgang().with_("metadata.namespace", "ml").with_pods("c", "c-0", min_replicas=1)
    (pod,) = gang.record().spec.pod_groups[0].pod_references
    assert (pod.namespace, pod.name) == ("ml", "c-0")


def test_paths_set_append_and_take_away() -> None:
    document = {"a": {"b": [1, 2]}, "c": 3}
    assert changed(document, {"a.b[1]": 9}) == {"a": {"b": [1, 9]}, "c": 3}
    assert changed(document, {"a.b[2]": 9}) == {"a": {"b": [1, 2, 9]}, "c": 3}
    assert changed(document, {"a.b[0]": ABSENT, "c": ABSENT}) == {"a": {"b": [2]}}
    assert changed(document, {"d.e[0].f": 1}) == {**document, "d": {"e": [{"f": 1}]}}
    assert changed(document, {"labels[a.b/c]": "d"}) == {**document, "labels": {"a.b/c": "d"}}
    assert document == {"a": {"b": [1, 2]}, "c": 3}


def test_null_is_set_and_absent_is_not() -> None:
    assert changed({"a": 1}, {"a": None}) == {"a": None}
    assert changed({"a": {"b": 1}}, {"a.b": ABSENT}) == {"a": {}}
    assert value_at(MADE.with_("spec.replicas", ABSENT).document(), ["spec"]) == {
        "template": value_at(MADE.document(), ["spec", "template"])
    }
