"""One good object of every kind built into Kubernetes, as people write them."""

from __future__ import annotations

from collections.abc import Mapping

from spinney.meta.documents import Document

POD: Document = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web-0", "namespace": "default", "labels": {"app": "web"}},
    "spec": {
        "initContainers": [
            {"name": "wait", "image": "busybox", "command": ["true"]},
            {"name": "proxy", "image": "proxy:1", "restartPolicy": "Always"},
        ],
        "containers": [
            {
                "name": "main",
                "image": "registry.example/web:1.2",
                "ports": [{"name": "http", "containerPort": 8080}],
                "env": [
                    {"name": "LEVEL", "value": "info"},
                    {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
                    {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
                ],
                "envFrom": [{"configMapRef": {"name": "settings"}}],
                "resources": {
                    "requests": {"cpu": "500m", "memory": "1Gi"},
                    "limits": {"memory": "2Gi", "nvidia.com/gpu": 1},
                },
                "readinessProbe": {"httpGet": {"port": "http"}},
                "livenessProbe": {"exec": {"command": ["true"]}, "timeoutSeconds": 0},
                "lifecycle": {"preStop": {"httpGet": {"path": "/bye", "port": 8080}}},
                "volumeMounts": [{"name": "data", "mountPath": "/data", "subPath": "a"}],
            },
            {"name": "side", "image": "side@sha256:" + "0" * 64},
        ],
        "volumes": [
            {"name": "data"},
            {"name": "settings", "configMap": {"name": "settings"}},
            {"name": "keys", "secret": {"secretName": "keys"}},
            {"name": "disk", "hostPath": {"path": "/mnt"}},
            {
                "name": "all",
                "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]},
            },
        ],
        "nodeSelector": {"zone": "a"},
        "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
                    ]
                }
            }
        },
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
        ],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
        "schedulingGates": [{"name": "example.com/wait"}],
        "hostname": "web-0",
        "subdomain": "web",
    },
}
SERVICE: Document = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "selector": {"app": "web"},
        "clusterIP": "127.0.1.5",
        "ports": [{"name": "http", "port": 80, "targetPort": "http"}, {"name": "db", "port": 81}],
    },
}
HPA: Document = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "grove.io/v1alpha1", "kind": "PodClique", "name": "web"},
        "maxReplicas": 4,
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 60}},
    },
}
CLAIM_SPEC: Document = {
    "devices": {
        "requests": [
            {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}},
            {
                "name": "any",
                "firstAvailable": [{"name": "big", "deviceClassName": "big.example.com"}],
            },
        ]
    }
}


def _object(api_version: str, kind: str, rest: Document, namespace: str = "default") -> Document:
    metadata: Document = {"name": "one"}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}


_RBAC = "rbac.authorization.k8s.io"
_RULES: Document = {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]}
OBJECTS: Mapping[str, Document] = {
    "Pod": POD,
    "Service": SERVICE,
    "HorizontalPodAutoscaler": HPA,
    "Node": _object(
        "v1",
        "Node",
        {
            "spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]},
            "status": {"capacity": {"cpu": "4", "memory": "8Gi"}},
        },
        "",
    ),
    "Endpoints": _object(
        "v1",
        "Endpoints",
        {"subsets": [{"addresses": [{"ip": "127.0.0.1"}], "ports": [{"port": 80}]}]},
    ),
    "EndpointSlice": _object(
        "discovery.k8s.io/v1",
        "EndpointSlice",
        {
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["127.0.0.1"], "conditions": {"ready": True}}],
            "ports": [{"port": 80}],
        },
    ),
    "Namespace": _object("v1", "Namespace", {}, ""),
    "ConfigMap": _object("v1", "ConfigMap", {"data": {"a": "1"}, "binaryData": {"b": "AA=="}}),
    "Secret": _object("v1", "Secret", {"data": {"a": "MQ=="}, "stringData": {"b": "2"}}),
    "ServiceAccount": _object("v1", "ServiceAccount", {}),
    "Event": _object(
        "v1",
        "Event",
        {
            "involvedObject": {"kind": "Pod", "name": "web-0", "namespace": "default"},
            "reason": "Started",
            "message": "it runs",
            "type": "Normal",
            "firstTimestamp": "2025-01-01T00:00:00Z",
            "source": {"component": "agent"},
            "count": 2,
        },
    ),
    "events.k8s.io/Event": _object(
        "events.k8s.io/v1",
        "Event",
        {
            "regarding": {"kind": "Pod", "name": "web-0", "namespace": "default"},
            "reason": "Started",
            "note": "it runs",
            "type": "Normal",
            "action": "Start",
            "eventTime": "2025-01-01T00:00:00.000000Z",
            "reportingController": "spinney.dev/agent",
            "reportingInstance": "one",
        },
    ),
    "Lease": _object(
        "coordination.k8s.io/v1",
        "Lease",
        {
            "spec": {
                "holderIdentity": "a",
                "leaseDurationSeconds": 15,
                "renewTime": "2025-01-01T00:00:00.000000Z",
            }
        },
    ),
    "PriorityClass": _object("scheduling.k8s.io/v1", "PriorityClass", {"value": 10}, ""),
    "Role": _object(f"{_RBAC}/v1", "Role", _RULES),
    "ClusterRole": _object(f"{_RBAC}/v1", "ClusterRole", _RULES, ""),
    "RoleBinding": _object(
        f"{_RBAC}/v1",
        "RoleBinding",
        {
            "roleRef": {"kind": "Role", "name": "one"},
            "subjects": [{"kind": "User", "name": "ann"}],
        },
    ),
    "ClusterRoleBinding": _object(
        f"{_RBAC}/v1",
        "ClusterRoleBinding",
        {
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "one"},
            "subjects": [{"kind": "ServiceAccount", "name": "a", "namespace": "b"}],
        },
        "",
    ),
    "ControllerRevision": _object(
        "apps/v1", "ControllerRevision", {"revision": 1, "data": {"spec": {"a": 1}}}
    ),
    "PodDisruptionBudget": _object(
        "policy/v1",
        "PodDisruptionBudget",
        {"spec": {"minAvailable": "50%", "selector": {"matchLabels": {"app": "web"}}}},
    ),
    "ResourceClaim": _object("resource.k8s.io/v1", "ResourceClaim", {"spec": CLAIM_SPEC}),
    "ResourceClaimTemplate": _object(
        "resource.k8s.io/v1", "ResourceClaimTemplate", {"spec": {"spec": CLAIM_SPEC}}
    ),
    "CustomResourceDefinition": {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {
                                "spec": {
                                    "type": "object",
                                    "properties": {"size": {"type": "integer", "default": 1}},
                                }
                            },
                        }
                    },
                }
            ],
        },
    },
}
