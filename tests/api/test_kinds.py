"""The kinds: how they are called, what `kubectl get` shows, where they are scaled, what is ours.

The tables are Grove's own, but for progress, which is read from `rollingUpdateProgress`.
"""

from __future__ import annotations

import pytest

from spinney.api import kinds, labels
from spinney.api.kinds import OUR_KINDS, Kind, ScalePaths
from spinney.api.podclique import PodClique
from spinney.api.podcliqueset import COHERENT, PodCliqueSet
from spinney.meta import schemas
from spinney.meta.documents import Document, value_at
from spinney.meta.references import GroupKind
from spinney.meta.schemas import Schema
from spinney.testing import build
from spinney.testing.build import changed
from tests.api.cases import said_of

EVERY_KIND = pytest.mark.parametrize("kind", OUR_KINDS.values(), ids=lambda kind: kind.names.kind)


def of(kind: str) -> Kind:
    return next(each for each in OUR_KINDS.values() if each.names.kind == kind)


NAMES = {
    "PodCliqueSet": ("grove.io/v1alpha1", "podcliquesets", ("pcs", "pgs"), True),
    "PodCliqueScalingGroup": ("grove.io/v1alpha1", "podcliquescalinggroups", ("pcsg",), True),
    "PodClique": ("grove.io/v1alpha1", "podcliques", ("pclq",), True),
    "ClusterTopologyBinding": ("grove.io/v1alpha1", "clustertopologybindings", ("ct",), False),
    "PodGang": ("scheduler.grove.io/v1alpha1", "podgangs", ("pg",), True),
    "ModelDeployment": ("spinney.dev/v1alpha1", "modeldeployments", ("mdep",), True),
    "ModelRoute": ("spinney.dev/v1alpha1", "modelroutes", ("mroute",), True),
}


@pytest.mark.rule("1.1")
def test_the_kinds_are_called_as_promised() -> None:
    found = {
        kind.names.kind: (
            kind.names.api_version,
            kind.names.plural,
            kind.names.short,
            kind.namespaced,
        )
        for kind in OUR_KINDS.values()
    }
    assert found == NAMES


@EVERY_KIND
@pytest.mark.rule("1.1")
def test_a_kind_is_found_by_each_of_its_names(kind: Kind) -> None:
    names = kind.names
    for word in (names.kind, names.plural, names.singular, *names.short):
        for spelt in (word, word.upper(), f"{word}.{names.group}"):
            assert kinds.named(spelt) is kind
    assert kinds.named(f"{names.plural}.example.com") is None


@pytest.mark.rule("1.1")
def test_no_word_means_two_kinds() -> None:
    words = [
        word
        for kind in OUR_KINDS.values()
        for word in (kind.names.plural, kind.names.singular, *kind.names.short)
    ]
    assert len(words) == len(set(words))


@pytest.mark.rule("1.1")
def test_the_old_kind_is_not_accepted_although_its_short_name_is() -> None:
    assert kinds.named("pgs") is of("PodCliqueSet")
    assert kinds.named("PodGangSet") is None
    assert GroupKind(group="grove.io", kind="PodGangSet") not in OUR_KINDS


def test_a_document_says_of_which_kind_it_is() -> None:
    key = GroupKind(group="grove.io", kind="PodClique")
    assert kinds.group_kind_of({"apiVersion": "grove.io/v1alpha1", "kind": "PodClique"}) == key
    assert kinds.group_kind_of({"apiVersion": "v1", "kind": "Pod"}) == GroupKind(
        group="", kind="Pod"
    )
    assert kinds.group_kind_of({"kind": 3}) == GroupKind(group="", kind="")


AGE = ("Age", ".metadata.creationTimestamp", "date", 0)
BREACHED = (
    "MinBreached",
    '.status.conditions[?(@.type=="MinAvailableBreached")].status',
    "string",
    1,
)


def count(name: str, path: str, priority: int = 0) -> tuple[str, str, str, int]:
    return (name, path, "integer", priority)


def text(name: str, path: str) -> tuple[str, str, str, int]:
    return (name, path, "string", 0)


PROGRESS = ".status.rollingUpdateProgress"
COLUMNS = {
    "PodCliqueSet": (
        count("Replicas", ".spec.replicas"),
        count("Available", ".status.availableReplicas"),
        count("Updated", ".status.updatedReplicas"),
        count("PCLQs-Updated", f"{PROGRESS}.updatedPodCliquesCount"),
        count("PCLQs-Total", f"{PROGRESS}.totalPodCliquesCount"),
        count("PCSGs-Updated", f"{PROGRESS}.updatedPodCliqueScalingGroupsCount"),
        count("PCSGs-Total", f"{PROGRESS}.totalPodCliqueScalingGroupsCount"),
        text("Phase", ".status.phase"),
        count("Restarts", ".status.restartCount"),
        AGE,
    ),
    "PodClique": (
        count("MinAvail", ".spec.minAvailable"),
        count("Replicas", ".spec.replicas"),
        count("Ready", ".status.readyReplicas"),
        count("Scheduled", ".status.scheduledReplicas"),
        count("Updated", ".status.updatedReplicas"),
        count("Gated", ".status.scheduleGatedReplicas", 1),
        BREACHED,
        AGE,
    ),
    "PodCliqueScalingGroup": (
        count("MinAvail", ".spec.minAvailable"),
        count("Replicas", ".spec.replicas"),
        count("Available", ".status.availableReplicas"),
        count("Scheduled", ".status.scheduledReplicas"),
        count("Updated", ".status.updatedReplicas"),
        count("PCLQs-Updated", f"{PROGRESS}.updatedPodCliquesCount"),
        count("PCLQs-Total", f"{PROGRESS}.totalPodCliquesCount"),
        BREACHED,
        AGE,
    ),
    "ClusterTopologyBinding": (text("Domains", ".spec.levels[*].domain"), AGE),
    "PodGang": (text("Phase", ".status.phase"), AGE),
    "ModelDeployment": (
        count("Desired", ".spec.replicas"),
        count("Ready", ".status.readyReplicas"),
        count("Updated", ".status.updatedReplicas"),
        count("Revision", ".status.currentRevision"),
        text("Phase", ".status.phase"),
        text("Step", ".status.subStep"),
        AGE,
    ),
    "ModelRoute": (
        text("Deployment", ".spec.deploymentName"),
        count("Revision", ".spec.revision"),
        text("Life", ".status.life"),
        text("Health", ".status.health"),
        text("Traffic", ".status.traffic"),
        AGE,
    ),
}


@EVERY_KIND
@pytest.mark.rule("1.4")
def test_columns_are_those_of_the_table(kind: Kind) -> None:
    found = tuple((each.name, each.path, each.type, each.priority) for each in kind.columns)
    assert found == COLUMNS[kind.names.kind]


@EVERY_KIND
@pytest.mark.rule("1.4")
def test_columns_and_scale_paths_lead_to_fields_of_their_type(kind: Kind) -> None:
    scale = kind.scale
    scaled = () if scale is None else (scale.spec_replicas, scale.status_replicas, scale.selector)
    types = dict(zip(scaled, ("integer", "integer", "string"), strict=False))
    for path, wanted in (*((each.path, each.type) for each in kind.columns), *types.items()):
        if "[" in path:
            continue
        steps = tuple(path.strip(".").split("."))
        schema = schemas.at(kind.schema, steps)
        assert schema is not None, path
        date = wanted == "date"
        assert schema.type == ("string" if date else wanted)
        assert (schema.format == "date-time") == date


SCALED = {
    "PodCliqueSet": ScalePaths(),
    "PodClique": ScalePaths(),
    "PodCliqueScalingGroup": ScalePaths(selector=".status.selector"),
    "ModelDeployment": ScalePaths(selector=".status.selector"),
}


@EVERY_KIND
@pytest.mark.rule("1.2")
def test_what_can_be_scaled_is_scaled_where_grove_scales_it(kind: Kind) -> None:
    assert kind.scale == SCALED.get(kind.names.kind)
    assert ScalePaths() == ScalePaths(
        spec_replicas=".spec.replicas",
        status_replicas=".status.replicas",
        selector=".status.hpaPodSelector",
    )


@EVERY_KIND
def test_what_is_in_a_namespace_is_shown_among_all(kind: Kind) -> None:
    assert kind.names.categories == (("all",) if kind.namespaced else ())
    assert kind.has_status


@EVERY_KIND
def test_the_view_and_the_schema_have_the_same_fields(kind: Kind) -> None:
    fields = {field for field in kind.schema.properties if field not in ("apiVersion", "kind")}
    assert fields == {"metadata", "spec", "status"}
    assert "spec" in kind.schema.required


def field(kind: str, path: str) -> Schema:
    steps: list[str | int] = []
    for step in path.split("."):
        name, _, listed = step.partition("[")
        steps += [name, 0] if listed else [name]
    found = schemas.at(of(kind).schema, tuple(steps))
    assert found is not None, path
    return found


TRAINING = (
    "maxRuntime",
    "maxRestarts",
    "ttlSecondsAfterFinished",
    "suspend",
    "restartBackoff",
    "failurePolicy",
    "rendezvous",
)
ADDITIONS = (
    ("PodCliqueSet", "spec.workloadType"),
    ("PodCliqueSet", "spec.trainingSpec"),
    ("PodCliqueSet", "spec.template.podCliqueScalingGroups[].terminationDelay"),
    ("PodCliqueSet", "spec.updateStrategy.progressDeadlineSeconds"),
    ("PodCliqueSet", "spec.updateStrategy.paused"),
    ("PodCliqueSet", "spec.updateStrategy.rollingRecreate"),
    ("PodCliqueSet", "spec.updateStrategy.rollingRecreate.maxUnavailable"),
    ("PodCliqueSet", "status.phase"),
    ("PodCliqueSet", "status.restartCount"),
    ("PodCliqueSet", "status.startTime"),
    ("PodCliqueSet", "status.replicaAttempts"),
    ("PodClique", "status.wasAvailable"),
    ("PodClique", "status.succeededIndexes"),
    ("PodGang", "status.incarnation"),
    ("PodCliqueSet", "status.rollingUpdateProgress.currentlyUpdating.step"),
    ("PodCliqueSet", "status.rollingUpdateProgress.currentlyUpdating.steps"),
    *((kind, "status.rollingUpdateProgress.lastProgressAt") for kind in SCALED if "Pod" in kind),
)


@pytest.mark.rule("1.3")
@pytest.mark.parametrize(("kind", "path"), ADDITIONS)
def test_an_addition_is_there_and_is_called_ours(kind: str, path: str) -> None:
    assert field(kind, path).ours


@pytest.mark.rule("1.3")
def test_all_of_a_jobs_fields_are_there() -> None:
    assert set(TRAINING) <= set(field("PodCliqueSet", "spec.trainingSpec").properties)
    assert COHERENT in field("PodCliqueSet", "spec.updateStrategy.type").enum
    assert (labels.REVISION, labels.ATTEMPT) == ("spinney.dev/revision", "spinney.dev/attempt")


@pytest.mark.rule("1.3")
@pytest.mark.parametrize(
    ("kind", "conditions"),
    [
        ("PodCliqueSet", ("Progressing", "Failing", "Failed", "NameConflict")),
        ("PodClique", ("Succeeded",)),
    ],
)
def test_a_condition_of_ours_is_told_of(kind: str, conditions: tuple[str, ...]) -> None:
    for condition in conditions:
        assert f"`{condition}`" in field(kind, "status.conditions").doc


@pytest.mark.rule("1.3")
def test_nothing_of_ours_is_marked_in_what_grove_has() -> None:
    """Grove's own fields, by its tables: none of them is called ours."""
    for path in (
        "spec.replicas",
        "spec.updateStrategy",
        "spec.updateStrategy.type",
        "spec.template",
        "spec.template.terminationDelay",
        "spec.template.cliques[].spec.autoScalingConfig",
        "status.currentGenerationHash",
        "status.podGangStatuses",
    ):
        assert not field("PodCliqueSet", path).ours


@pytest.mark.rule("1.3")
def test_an_addition_is_off_unless_it_is_set() -> None:
    made = build.podcliqueset().with_clique("a").with_group("g", "a")
    spec = made.record().spec
    assert spec.workload_type == "Inference"
    assert spec.training_spec is None
    assert spec.update_strategy.type == "RollingRecreate"
    assert not spec.update_strategy.paused
    assert spec.update_strategy.progress_deadline_seconds == 600
    assert spec.update_strategy.rolling_recreate is None
    assert spec.template.pod_clique_scaling_groups[0].termination_delay is None
    status = PodCliqueSet(metadata=made.record().metadata, spec=spec).status
    assert (status.phase, status.restart_count, status.start_time) == ("", 0, None)
    assert status.replica_attempts == ()
    assert "updateStrategy" not in made.admitted()["spec"]  # type: ignore[operator]
    job = made.for_training(maxRestarts=1).record().spec.training_spec
    assert job is not None
    assert (job.max_runtime, job.suspend, job.rendezvous) == (None, False, "")
    assert (job.ttl_seconds_after_finished, job.restart_backoff, job.failure_policy) == (
        None,
        None,
        None,
    )


SEED = ("updateStartedAt", "updateEndedAt")
PROGRESS_FIELDS = {
    "PodCliqueSet": (
        *SEED,
        "currentlyUpdating",
        "updatedPodCliques",
        "updatedPodCliqueScalingGroups",
        "updatedPodCliquesCount",
        "totalPodCliquesCount",
        "updatedPodCliqueScalingGroupsCount",
        "totalPodCliqueScalingGroupsCount",
        "podCliqueSetGenerationHash",
        "lastProgressAt",
    ),
    "PodCliqueScalingGroup": (
        *SEED,
        "readyReplicaIndicesSelectedToUpdate",
        "updatedPodCliquesCount",
        "totalPodCliquesCount",
        "podCliqueSetGenerationHash",
        "replicasAtStart",
        "lastProgressAt",
    ),
    "PodClique": (
        *SEED,
        "readyPodsSelectedToUpdate",
        "podCliqueSetGenerationHash",
        "podTemplateHash",
        "replicasAtStart",
        "lastProgressAt",
    ),
}


@pytest.mark.rule("1.4")
@pytest.mark.parametrize("kind", PROGRESS_FIELDS)
def test_progress_has_its_fields(kind: str) -> None:
    progress = field(kind, "status.rollingUpdateProgress")
    assert set(progress.properties) == set(PROGRESS_FIELDS[kind])
    assert "updateProgress" not in of(kind).schema.properties["status"].properties


@pytest.mark.rule("1.4")
def test_what_is_selected_and_what_is_current_have_their_fields() -> None:
    updating = field("PodCliqueSet", "status.rollingUpdateProgress.currentlyUpdating")
    assert set(updating.properties) == {
        "replicaIndex",
        "updateStartedAt",
        "step",
        "steps",
    }
    for kind, name in (
        ("PodClique", "readyPodsSelectedToUpdate"),
        ("PodCliqueScalingGroup", "readyReplicaIndicesSelectedToUpdate"),
    ):
        chosen = field(kind, f"status.rollingUpdateProgress.{name}")
        assert set(chosen.properties) == {"current", "others", "completed"}
        assert field(kind, "status.currentPodCliqueSetGenerationHash").type == "string"
    assert field("PodClique", "status.currentPodTemplateHash").type == "string"
    assert "currentPodGangSetGenerationHash" not in field("PodClique", "status").properties


GROVE_MANIFEST: Document = {
    "apiVersion": "grove.io/v1alpha1",
    "kind": "PodCliqueSet",
    "metadata": {"name": "simple1", "labels": {"app": "simple1"}},
    "spec": {
        "replicas": 1,
        "updateStrategy": {"type": "OnDelete"},
        "template": {
            "cliqueStartupType": "CliqueStartupTypeExplicit",
            "terminationDelay": "4h",
            "headlessServiceConfig": {"publishNotReadyAddresses": True},
            "priorityClassName": "high",
            "topologyConstraint": {"topologyName": "racks", "pack": {"required": "rack"}},
            "resourceSharing": [{"name": "link", "scope": "AllReplicas"}],
            "resourceClaimTemplates": [
                {
                    "name": "link",
                    "templateSpec": {
                        "spec": {
                            "devices": {
                                "requests": [{"name": "d", "exactly": {"deviceClassName": "x"}}]
                            }
                        }
                    },
                }
            ],
            "cliques": [
                {
                    "name": "pca",
                    "labels": {"a": "b"},
                    "annotations": {"c": "d"},
                    "spec": {
                        "roleName": "rolea",
                        "replicas": 3,
                        "minAvailable": 2,
                        "podSpec": {
                            "restartPolicy": "Always",
                            "terminationGracePeriodSeconds": 5,
                            "tolerations": [{"key": "x", "operator": "Exists"}],
                            "containers": [{"name": "c", "image": "nginx", "tty": True}],
                        },
                        "autoScalingConfig": {
                            "minReplicas": 2,
                            "maxReplicas": 5,
                            "metrics": [
                                {
                                    "type": "Resource",
                                    "resource": {
                                        "name": "cpu",
                                        "target": {"type": "Utilization", "averageUtilization": 80},
                                    },
                                }
                            ],
                        },
                    },
                },
                {
                    "name": "pcb",
                    "spec": {
                        "roleName": "roleb",
                        "replicas": 1,
                        "minAvailable": 1,
                        "startsAfter": ["pca"],
                        "podSpec": {
                            "restartPolicy": "Always",
                            "terminationGracePeriodSeconds": 30,
                            "containers": [{"name": "c", "image": "nginx"}],
                        },
                    },
                },
            ],
            "podCliqueScalingGroups": [
                {
                    "name": "sga",
                    "cliqueNames": ["pcb"],
                    "annotations": {"e": "f"},
                    "replicas": 2,
                    "minAvailable": 1,
                    "scaleConfig": {"minReplicas": 2, "maxReplicas": 6},
                }
            ],
        },
    },
}


@pytest.mark.rule("1.2")
def test_a_grove_manifest_is_accepted_unchanged() -> None:
    """Everything its tables name, given: nothing is refused, nothing is added but what is ours."""
    stored, faults = kinds.admit(of("PodCliqueSet"), GROVE_MANIFEST)
    assert faults == ()
    ours = changed(
        GROVE_MANIFEST,
        {
            "metadata.namespace": "default",
            "spec.workloadType": "Inference",
            "spec.updateStrategy.paused": False,
            "spec.updateStrategy.progressDeadlineSeconds": 600,
        },
    )
    assert stored == ours


@pytest.mark.rule("1.2")
def test_groves_own_edges_are_taken() -> None:
    """What Grove's webhook lets through, and is easily refused by somebody who tidies."""
    for change in (
        {"metadata.name": "a.b", "spec.template.cliques[0].name": "1.2"},
        {"spec.replicas": 0},
        {"spec.updateStrategy": {}},
        {"spec.template.cliqueStartupType": "CliqueStartupTypeAnyOrder"},
        {"spec.template.cliques[1].spec.replicas": 500},
        {"spec.template.podCliqueScalingGroups[0].replicas": 5},
        {"metadata.annotations": {"grove.io/reconcile-trigger": "now"}},
    ):
        document = changed(GROVE_MANIFEST, change)
        if "spec.template.cliques[0].name" in change:
            document = changed(document, {"spec.template.cliques[1].spec.startsAfter": ["1.2"]})
        assert said_of(document) == [], change


@pytest.mark.rule("1.2")
def test_a_record_of_a_clique_reads_what_grove_writes() -> None:
    spec = value_at(GROVE_MANIFEST, ["spec", "template", "cliques", 0, "spec"])
    child: Document = {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodClique",
        "metadata": {"name": "simple1-0-pca"},
        "spec": spec,
    }
    assert said_of(child) == []
    assert of("PodClique").record is PodClique
