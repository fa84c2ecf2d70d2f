"""What an API server of Kubernetes fills in where nothing is said, kind by kind."""

from __future__ import annotations

import pytest

from spinney.api import kinds
from spinney.api.core import pod_defaults
from spinney.api.kinds import KINDS
from spinney.meta.documents import Document, Json, object_at, value_at
from spinney.testing.build import changed
from tests.api.core.objects import OBJECTS


def stored(kind: str, changes: dict[str, Json] | None = None) -> Document:
    document = changed(OBJECTS[kind], changes or {})
    return kinds.admit(KINDS[kinds.group_kind_of(document)], document)[0]


def container(index: int, changes: dict[str, Json] | None = None) -> Document:
    return object_at(stored("Pod", changes), ["spec", "containers", index])


def test_a_pod_of_one_line_becomes_what_a_cluster_makes_of_it() -> None:
    pod: Document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "a", "image": "a"}]},
    }
    document, faults = kinds.admit(KINDS[kinds.group_kind_of(pod)], pod)
    assert faults == ()
    assert document == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "namespace": "default"},
        "spec": {
            "containers": [
                {
                    "name": "a",
                    "image": "a",
                    "imagePullPolicy": "Always",
                    "resources": {},
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File",
                }
            ],
            "dnsPolicy": "ClusterFirst",
            "enableServiceLinks": True,
            "restartPolicy": "Always",
            "schedulerName": "default-scheduler",
            "securityContext": {},
            "terminationGracePeriodSeconds": 30,
        },
        "status": {"phase": "Pending", "qosClass": "BestEffort"},
    }


def test_tolerations_are_not_added() -> None:
    assert len(value_at(stored("Pod"), ["spec", "tolerations"]) or []) == 1  # type: ignore[arg-type]


def test_probes_say_how_often_and_how_long() -> None:
    main = container(0)
    assert main["readinessProbe"] == {
        "httpGet": {"port": "http", "path": "/", "scheme": "HTTP"},
        "failureThreshold": 3,
        "periodSeconds": 10,
        "successThreshold": 1,
        "timeoutSeconds": 1,
    }
    assert object_at(main, ["livenessProbe"])["timeoutSeconds"] == 1
    assert object_at(main, ["lifecycle", "preStop", "httpGet"])["scheme"] == "HTTP"


def test_requests_are_the_limits_where_they_are_not_said() -> None:
    assert object_at(container(0), ["resources", "requests"]) == {
        "cpu": "500m",
        "memory": "1Gi",
        "nvidia.com/gpu": 1,
    }


def test_ports_references_and_pull_policies_are_said() -> None:
    main, side = container(0), container(1)
    assert main["ports"] == [{"name": "http", "containerPort": 8080, "protocol": "TCP"}]
    assert value_at(main, ["env", 1, "valueFrom", "fieldRef", "apiVersion"]) == "v1"
    assert value_at(main, ["env", 2, "valueFrom", "resourceFieldRef", "divisor"]) == "0"
    assert main["imagePullPolicy"] == side["imagePullPolicy"] == "IfNotPresent"


def test_ports_on_the_network_of_the_node_are_its_ports() -> None:
    main = container(0, {"spec.hostNetwork": True})
    assert value_at(main, ["ports", 0, "hostPort"]) == 8080


def test_volumes_have_a_source_and_their_files_a_mode() -> None:
    assert value_at(stored("Pod"), ["spec", "volumes"]) == [
        {"name": "data", "emptyDir": {}},
        {"name": "settings", "configMap": {"name": "settings", "defaultMode": 420}},
        {"name": "keys", "secret": {"secretName": "keys", "defaultMode": 420}},
        {"name": "disk", "hostPath": {"path": "/mnt", "type": ""}},
        {
            "name": "all",
            "projected": {
                "defaultMode": 420,
                "sources": [{"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}}],
            },
        },
    ]


@pytest.mark.parametrize(
    ("image", "latest"),
    [
        ("a", True),
        ("a:latest", True),
        ("host:5000/a", True),
        ("host:5000/a:1", False),
        ("a@sha256:0", False),
        ("a:1@sha256:0", False),
    ],
)
def test_the_newest_image_is_pulled_always(image: str, latest: bool) -> None:
    assert pod_defaults.has_latest_tag(image) is latest


def resources(requests: Document, limits: Document) -> Document:
    return {"resources": {"requests": requests, "limits": limits}}


_BOTH: Document = {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        ([{}], "BestEffort"),
        ([resources({"nvidia.com/gpu": 1}, {"nvidia.com/gpu": 1})], "BestEffort"),
        ([resources({"cpu": "1"}, {})], "Burstable"),
        ([resources(_BOTH, _BOTH), {}], "Burstable"),
        ([resources(_BOTH, {"cpu": "1", "memory": "2Gi"})], "Burstable"),
        ([resources({"cpu": "1000m", "memory": "1Gi"}, _BOTH)], "Guaranteed"),
        ([resources({"cpu": "0"}, {})], "BestEffort"),
    ],
)
def test_the_quality_of_service_is_that_of_the_least_of_its_containers(
    containers: list[Json], expected: str
) -> None:
    assert pod_defaults.qos_class({"containers": containers}) == expected


def test_a_service_knows_its_ports_policies_and_families() -> None:
    assert stored("Service")["spec"] == {
        "selector": {"app": "web"},
        "clusterIP": "127.0.1.5",
        "clusterIPs": ["127.0.1.5"],
        "internalTrafficPolicy": "Cluster",
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "ports": [
            {"name": "http", "port": 80, "targetPort": "http", "protocol": "TCP"},
            {"name": "db", "port": 81, "targetPort": 81, "protocol": "TCP"},
        ],
        "sessionAffinity": "None",
        "type": "ClusterIP",
    }


def test_a_service_of_another_type_has_other_defaults() -> None:
    spec = object_at(stored("Service", {"spec.type": "LoadBalancer"}), ["spec"])
    assert spec["externalTrafficPolicy"] == "Cluster"
    assert spec["allocateLoadBalancerNodePorts"] is True
    affine = stored("Service", {"spec.sessionAffinity": "ClientIP"})
    config = value_at(affine, ["spec", "sessionAffinityConfig", "clientIP", "timeoutSeconds"])
    assert config == 10800
    external: Document = {"spec.type": "ExternalName", "spec.clusterIP": None}
    named = object_at(stored("Service", {**external, "spec.externalName": "a.b"}), ["spec"])
    assert "ipFamilies" not in named
    assert "internalTrafficPolicy" not in named


def test_the_texts_of_a_secret_become_bytes() -> None:
    secret = stored("Secret")
    assert secret["data"] == {"a": "MQ==", "b": "Mg=="}
    assert "stringData" not in secret
    assert secret["type"] == "Opaque"


def test_an_autoscaler_looks_at_cpu_where_nothing_is_said() -> None:
    spec = object_at(stored("HorizontalPodAutoscaler"), ["spec"])
    assert spec["minReplicas"] == 1
    assert spec["metrics"] == [
        {
            "type": "Resource",
            "resource": {
                "name": "cpu",
                "target": {"type": "Utilization", "averageUtilization": 80},
            },
        }
    ]
    assert spec["behavior"] == {
        "scaleUp": {
            "stabilizationWindowSeconds": 0,
            "selectPolicy": "Max",
            "policies": [
                {"type": "Pods", "value": 4, "periodSeconds": 15},
                {"type": "Percent", "value": 100, "periodSeconds": 15},
            ],
        },
        "scaleDown": {
            "stabilizationWindowSeconds": 60,
            "selectPolicy": "Max",
            "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
        },
    }
    bare = stored("HorizontalPodAutoscaler", {"spec.behavior": None})
    assert "behavior" not in object_at(bare, ["spec"])


@pytest.mark.parametrize(
    ("kind", "path", "expected"),
    [
        ("Namespace", ["metadata", "labels"], {"kubernetes.io/metadata.name": "one"}),
        ("Namespace", ["spec"], {"finalizers": ["kubernetes"]}),
        ("Namespace", ["status"], {"phase": "Active"}),
        ("Node", ["status", "allocatable"], {"cpu": "4", "memory": "8Gi"}),
        ("PriorityClass", ["preemptionPolicy"], "PreemptLowerPriority"),
        ("RoleBinding", ["roleRef", "apiGroup"], "rbac.authorization.k8s.io"),
        ("RoleBinding", ["subjects", 0, "apiGroup"], "rbac.authorization.k8s.io"),
        ("Endpoints", ["subsets", 0, "ports"], [{"port": 80, "protocol": "TCP"}]),
        ("EndpointSlice", ["ports"], [{"port": 80, "protocol": "TCP", "name": ""}]),
        (
            "ResourceClaim",
            ["spec", "devices", "requests", 0, "exactly"],
            {"deviceClassName": "gpu.example.com", "allocationMode": "ExactCount", "count": 1},
        ),
        (
            "ResourceClaimTemplate",
            ["spec", "spec", "devices", "requests", 1, "firstAvailable", 0, "count"],
            1,
        ),
    ],
)
def test_what_is_not_said_is_filled_in(kind: str, path: list[str | int], expected: Json) -> None:
    assert value_at(stored(kind), path) == expected


def test_an_event_of_the_new_group_is_stored_as_one_of_the_core() -> None:
    kind = KINDS[kinds.group_kind_of(OBJECTS["events.k8s.io/Event"])]
    event = stored("events.k8s.io/Event")
    core = kind.to_stored(event)
    assert core["apiVersion"] == "v1"
    assert core["involvedObject"] == event["regarding"]
    assert core["message"] == event["note"]
    assert core["reportingComponent"] == event["reportingController"]
    assert kinds.admit(KINDS[kind.stored_kind], core)[1] == ()
    old = stored("Event")
    seen = kind.from_stored(old)
    assert seen["deprecatedCount"] == 2
    assert seen["deprecatedSource"] == {"component": "agent"}
    assert seen["eventTime"] is None
