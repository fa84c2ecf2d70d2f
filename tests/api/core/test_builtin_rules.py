"""Rules of the kinds built into Kubernetes: what is taken, and what is said of what is not."""

from __future__ import annotations

import pytest

from spinney.api import kinds
from spinney.api.core.pod_rules import MAY_CHANGE
from spinney.api.surroundings import Surroundings
from spinney.meta.documents import Document, Json
from spinney.testing.build import changed
from tests.api.cases import said_of
from tests.api.core.objects import OBJECTS

Row = tuple[str, dict[str, Json], list[str]]
MAIN = "spec.containers[0]"
_LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)

CREATED: tuple[Row, ...] = (
    ("Pod", {f"{MAIN}.image": ""}, [f"{MAIN}.image: Required value"]),
    (
        "Pod",
        {f"{MAIN}.image": " a"},
        [f'{MAIN}.image: Invalid value: " a": must not have leading or trailing whitespace'],
    ),
    ("Pod", {f"{MAIN}.name": ""}, [f"{MAIN}.name: Required value"]),
    ("Pod", {f"{MAIN}.name": "A"}, [f'{MAIN}.name: Invalid value: "A": {_LABEL}']),
    (
        "Pod",
        {"spec.containers[1].name": "main"},
        ['spec.containers[1].name: Duplicate value: "main"'],
    ),
    (
        "Pod",
        {"spec.initContainers[0].name": "main"},
        ['spec.initContainers[0].name: Duplicate value: "main"'],
    ),
    ("Pod", {"spec.containers": []}, ["spec.containers: Required value"]),
    ("Pod", {"spec.containers": None}, ["spec.containers: Required value"]),
    ("Pod", {"spec": None}, ["spec: Required value"]),
    (
        "Pod",
        {"spec.restartPolicy": "Sometimes"},
        [
            'spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", '
            '"OnFailure", "Never"'
        ],
    ),
    (
        "Pod",
        {f"{MAIN}.volumeMounts[0].name": "none"},
        [f'{MAIN}.volumeMounts[0].name: Not found: "none"'],
    ),
    (
        "Pod",
        {
            f"{MAIN}.volumeMounts": [
                {"name": "data", "mountPath": "/a"},
                {"name": "keys", "mountPath": "/a", "subPath": "../b"},
            ]
        },
        [
            f'{MAIN}.volumeMounts[1].mountPath: Duplicate value: "/a"',
            f'{MAIN}.volumeMounts[1].mountPath: Invalid value: "/a": must be unique',
            f"{MAIN}.volumeMounts[1].subPath: Invalid value: \"../b\": must not contain '..'",
        ],
    ),
    (
        "Pod",
        {f"{MAIN}.ports[0].containerPort": 0},
        [
            f"{MAIN}.ports[0].containerPort: Invalid value: 0: must be between 1 and 65535, "
            "inclusive"
        ],
    ),
    (
        "Pod",
        {f"{MAIN}.ports[0].name": "much-too-long-a-name"},
        [
            f'{MAIN}.ports[0].name: Invalid value: "much-too-long-a-name": must be no more than 15 '
            "characters"
        ],
    ),
    (
        "Pod",
        {f"{MAIN}.env[0].name": "A=B"},
        [
            f'{MAIN}.env[0].name: Invalid value: "A=B": a valid environment variable name must '
            "consist only of printable ASCII characters other than '='"
        ],
    ),
    (
        "Pod",
        {f"{MAIN}.env[1].value": "x"},
        [
            f'{MAIN}.env[1].valueFrom: Invalid value: "": may not be specified when `value` is not '
            "empty"
        ],
    ),
    (
        "Pod",
        {f"{MAIN}.env[1].valueFrom": {}},
        [
            f'{MAIN}.env[1].valueFrom: Invalid value: "": must specify one of: `fieldRef`, '
            "`resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        ],
    ),
    (
        "Pod",
        {f"{MAIN}.env[1].valueFrom.fieldRef.fieldPath": "status.podIPP"},
        [
            f'{MAIN}.env[1].valueFrom.fieldRef.fieldPath: Unsupported value: "status.podIPP": '
            'supported values: "metadata.name", "metadata.namespace", "metadata.uid", '
            '"spec.nodeName", "spec.serviceAccountName", "status.hostIP", "status.hostIPs", '
            '"status.podIP", "status.podIPs"'
        ],
    ),
    (
        "Pod",
        {f"{MAIN}.resources.requests.memory": "3Gi"},
        [
            f'{MAIN}.resources.requests: Invalid value: "3Gi": must be less than or equal to '
            "memory "
            "limit of 2Gi"
        ],
    ),
    (
        "Pod",
        {f"{MAIN}.resources.requests.cpu": "-1"},
        [
            f'{MAIN}.resources.requests[cpu]: Invalid value: "-1": must be greater than or equal '
            "to 0"
        ],
    ),
    (
        "Pod",
        {f"{MAIN}.resources.requests.gpu": 1},
        [
            f'{MAIN}.resources.requests[gpu]: Invalid value: "gpu": must be a standard resource '
            "for "
            "containers"
        ],
    ),
    (
        "Pod",
        {f"{MAIN}.resources.requests": {"nvidia.com/gpu": 2}},
        [
            f"{MAIN}.resources.requests: Invalid value: 2: must be less than or equal to "
            "nvidia.com/gpu limit of 1"
        ],
    ),
    (
        "Pod",
        {f"{MAIN}.resources": {"requests": {"nvidia.com/gpu": 2}}},
        [
            f"{MAIN}.resources.limits: Required value: Limit must be set for non overcommitable "
            "resources"
        ],
    ),
    (
        "Pod",
        {f"{MAIN}.resources.claims": [{"name": "other"}]},
        [f'{MAIN}.resources.claims[0].name: Not found: "other"'],
    ),
    (
        "Pod",
        {f"{MAIN}.readinessProbe": {}},
        [f"{MAIN}.readinessProbe: Required value: must specify a handler type"],
    ),
    (
        "Pod",
        {f"{MAIN}.readinessProbe.tcpSocket": {"port": 1}},
        [f"{MAIN}.readinessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type"],
    ),
    (
        "Pod",
        {f"{MAIN}.livenessProbe.successThreshold": 2},
        [f"{MAIN}.livenessProbe.successThreshold: Invalid value: 2: must be 1"],
    ),
    (
        "Pod",
        {f"{MAIN}.livenessProbe.exec.command": []},
        [f"{MAIN}.livenessProbe.exec.command: Required value"],
    ),
    (
        "Pod",
        {"spec.initContainers[0].readinessProbe": {"exec": {"command": ["a"]}}},
        [
            "spec.initContainers[0].readinessProbe: Forbidden: may not be set for init containers "
            "without restartPolicy=Always"
        ],
    ),
    (
        "Pod",
        {"spec.volumes[1].secret": {"secretName": "a"}},
        ["spec.volumes[1].secret: Forbidden: may not specify more than 1 volume type"],
    ),
    (
        "Pod",
        {"spec.volumes[0].name": "keys"},
        [
            f'{MAIN}.volumeMounts[0].name: Not found: "data"',
            'spec.volumes[2].name: Duplicate value: "keys"',
        ],
    ),
    (
        "Pod",
        {"spec.tolerations[0].value": "x"},
        [
            'spec.tolerations[0].operator: Invalid value: "Exists": value must be empty when '
            "`operator` is 'Exists'"
        ],
    ),
    (
        "Pod",
        {"spec.topologySpreadConstraints[0].maxSkew": 0},
        ["spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero"],
    ),
    (
        "Pod",
        {"spec.nodeName": "a"},
        ["spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"],
    ),
    (
        "Pod",
        {"spec.resourceClaims[0].resourceClaimTemplateName": None},
        [
            "spec.resourceClaims[0]: Required value: must specify one of: `resourceClaimName`, "
            "`resourceClaimTemplateName`"
        ],
    ),
    (
        "Pod",
        {"spec.ephemeralContainers": [{"name": "x", "image": "x"}]},
        ["spec.ephemeralContainers: Forbidden: cannot be set on create"],
    ),
    (
        "Pod",
        {"spec.activeDeadlineSeconds": 0},
        [
            "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, "
            "inclusive"
        ],
    ),
    ("Pod", {"spec.hostname": "A"}, [f'spec.hostname: Invalid value: "A": {_LABEL}']),
    (
        "ConfigMap",
        {"data": {"a b": "1"}},
        [
            'data[a b]: Invalid value: "a b": a valid config key must consist of alphanumeric '
            "characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex "
            "used "
            "for validation is '[-._a-zA-Z0-9]+')"
        ],
    ),
    (
        "ConfigMap",
        {"data": {"b": "1"}},
        ['binaryData[b]: Invalid value: "b": duplicate of key present in data'],
    ),
    (
        "ConfigMap",
        {"data.big": "x" * (1 << 20)},
        ["data: Too long: may not be more than 1048576 bytes"],
    ),
    ("ConfigMap", {"binaryData.b": "%"}, ['binaryData[b]: Invalid value: "%": must be base64']),
    (
        "Secret",
        {"type": "kubernetes.io/tls"},
        [
            "data[tls.crt]: Required value",
            "data[tls.key]: Required value",
        ],
    ),
    (
        "Secret",
        {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": "MQ=="}},
        [
            'data[.dockerconfigjson]: Invalid value: "<secret contents redacted>": must be JSON in '
            "base64"
        ],
    ),
    (
        "Secret",
        {"type": "kubernetes.io/service-account-token"},
        ["metadata.annotations[kubernetes.io/service-account.name]: Required value"],
    ),
    (
        "Service",
        {"metadata.name": "1a"},
        [
            'metadata.name: Invalid value: "1a": a DNS-1035 label must consist of lower case '
            "alphanumeric characters or '-', start with an alphabetic character, and end with an "
            "alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
            "'[a-z]([-a-z0-9]*[a-z0-9])?')"
        ],
    ),
    ("Service", {"spec.ports": []}, ["spec.ports: Required value"]),
    ("Service", {"spec.ports[0].name": ""}, ["spec.ports[0].name: Required value"]),
    ("Service", {"spec.ports[1].name": "http"}, ['spec.ports[1].name: Duplicate value: "http"']),
    (
        "Service",
        {"spec.ports[0].nodePort": 30000},
        ["spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"],
    ),
    (
        "Service",
        {"spec.clusterIP": "x"},
        ["spec.clusterIP: Invalid value: \"x\": must be empty, 'None', or a valid IP address"],
    ),
    (
        "Service",
        {"spec.type": "ExternalName", "spec.clusterIP": None},
        ["spec.externalName: Required value"],
    ),
    (
        "Endpoints",
        {"subsets[0].addresses[0].ip": "x"},
        [
            'subsets[0].addresses[0].ip: Invalid value: "x": must be a valid IP address, (e.g. '
            "10.9.8.7)"
        ],
    ),
    (
        "EndpointSlice",
        {"addressType": "IPX"},
        ['addressType: Unsupported value: "IPX": supported values: "FQDN", "IPv4", "IPv6"'],
    ),
    (
        "Event",
        {"involvedObject.namespace": "other"},
        ['involvedObject.namespace: Invalid value: "other": does not match event.namespace'],
    ),
    ("events.k8s.io/Event", {"action": ""}, ["action: Required value"]),
    (
        "Lease",
        {"spec.leaseDurationSeconds": 0},
        ["spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"],
    ),
    (
        "PriorityClass",
        {"value": 2_000_000_000},
        ["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"],
    ),
    (
        "PriorityClass",
        {"metadata.name": "system-mine"},
        [
            "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for "
            "system use only"
        ],
    ),
    (
        "Role",
        {"rules[0].verbs": []},
        ["rules[0].verbs: Required value: verbs must contain at least one value"],
    ),
    (
        "RoleBinding",
        {"roleRef.kind": "Rule"},
        ['roleRef.kind: Unsupported value: "Rule": supported values: "Role", "ClusterRole"'],
    ),
    (
        "ClusterRoleBinding",
        {"subjects[0].namespace": None},
        ["subjects[0].namespace: Required value"],
    ),
    (
        "HorizontalPodAutoscaler",
        {"spec.minReplicas": 5},
        ["spec.maxReplicas: Invalid value: 4: must be greater than or equal to `minReplicas`"],
    ),
    (
        "HorizontalPodAutoscaler",
        {"spec.minReplicas": 0},
        ["spec.minReplicas: Invalid value: 0: must be greater than or equal to 1"],
    ),
    (
        "HorizontalPodAutoscaler",
        {"spec.metrics": [{"type": "Resource"}]},
        ["spec.metrics[0].resource: Required value: must populate the given metric source"],
    ),
    (
        "HorizontalPodAutoscaler",
        {"spec.behavior.scaleDown.stabilizationWindowSeconds": 3601},
        [
            "spec.behavior.scaleDown.stabilizationWindowSeconds: Invalid value: 3601: must be less "
            "than or equal to 3600"
        ],
    ),
    (
        "PodDisruptionBudget",
        {"spec.maxUnavailable": "150%", "spec.minAvailable": None},
        ['spec.maxUnavailable: Invalid value: "150%": must not be greater than 100%'],
    ),
    (
        "ControllerRevision",
        {"revision": -1},
        ["revision: Invalid value: -1: must be greater than or equal to 0"],
    ),
    (
        "ResourceClaim",
        {"spec.devices.requests[0].exactly": None},
        [
            "spec.devices.requests[0]: Required value: exactly one of `exactly` or "
            "`firstAvailable` is "
            "required"
        ],
    ),
    ("Namespace", {"metadata.name": "a.b"}, [f'metadata.name: Invalid value: "a.b": {_LABEL}']),
    (
        "Namespace",
        {"metadata.namespace": "b"},
        ["metadata.namespace: Forbidden: not allowed on this type"],
    ),
    (
        "Node",
        {"spec.taints[0].effect": "Never"},
        [
            'spec.taints[0].effect: Unsupported value: "Never": supported values: "NoSchedule", '
            '"PreferNoSchedule", "NoExecute"'
        ],
    ),
)


@pytest.mark.parametrize(("kind", "changes", "expected"), CREATED, ids=lambda each: str(each)[:40])
def test_a_rule_holds_when_an_object_is_made(
    kind: str, changes: dict[str, Json], expected: list[str]
) -> None:
    assert said_of(changed(OBJECTS[kind], changes)) == expected


FREE: Document = changed(OBJECTS["Pod"], {"spec.schedulingGates": None})
_ONLY = f"spec: Forbidden: {MAY_CHANGE}; found changed: "

UPDATED: tuple[tuple[str, Document, dict[str, Json], list[str]], ...] = (
    ("image", FREE, {f"{MAIN}.image": "b:2"}, []),
    ("deadline", FREE, {"spec.activeDeadlineSeconds": 5}, []),
    (
        "new toleration",
        FREE,
        {
            "spec.tolerations": [
                {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"},
                {"key": "new", "operator": "Exists"},
            ]
        },
        [],
    ),
    (
        "lost toleration",
        FREE,
        {"spec.tolerations": []},
        [
            "spec.tolerations: Forbidden: existing toleration can not be modified except its "
            "tolerationSeconds"
        ],
    ),
    ("env", FREE, {f"{MAIN}.env[0].value": "b"}, [f"{_ONLY}containers"]),
    ("node selector", FREE, {"spec.nodeSelector.zone": "b"}, [f"{_ONLY}nodeSelector"]),
    ("node", FREE, {"spec.nodeName": "a"}, [f"{_ONLY}nodeName"]),
    (
        "fewer containers",
        FREE,
        {"spec.containers": [FREE["spec"]["containers"][0]]},
        [  # type: ignore[index,call-overload]
            "spec.containers: Forbidden: pod updates may not add or remove containers"
        ],
    ),
    ("gate opened", OBJECTS["Pod"], {"spec.schedulingGates": []}, []),
    (
        "gate added",
        FREE,
        {"spec.schedulingGates": [{"name": "b"}]},
        [
            "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new "
            "scheduling gate 'b'"
        ],
    ),
    ("gated, selector tightened", OBJECTS["Pod"], {"spec.nodeSelector.rack": "1"}, []),
    (
        "gated, selector changed",
        OBJECTS["Pod"],
        {"spec.nodeSelector.zone": "b"},
        [
            'spec.nodeSelector: Invalid value: {"zone":"b"}: only additions are allowed (found '
            "changed: zone)"
        ],
    ),
    (
        "gated, hostname",
        OBJECTS["Pod"],
        {"spec.hostname": "b"},
        [f"{_ONLY}hostname"],
    ),
    (
        "gated, other affinity",
        OBJECTS["Pod"],
        {
            "spec.affinity.podAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]
            }
        },
        ["spec.affinity: Forbidden: only nodeAffinity may be changed while a pod is gated"],
    ),
    (
        "frozen",
        changed(OBJECTS["ConfigMap"], {"immutable": True}),
        {"data.a": "2"},
        ["data: Forbidden: field is immutable when `immutable` is set"],
    ),
    (
        "thawed",
        changed(OBJECTS["ConfigMap"], {"immutable": True}),
        {"immutable": False},
        ["immutable: Forbidden: field is immutable when `immutable` is set"],
    ),
    (
        "secret type",
        OBJECTS["Secret"],
        {"type": "other"},
        ['type: Invalid value: "other": field is immutable'],
    ),
    (
        "priority",
        OBJECTS["PriorityClass"],
        {"value": 11},
        ["value: Forbidden: may not be changed in an update."],
    ),
    (
        "role",
        OBJECTS["RoleBinding"],
        {"roleRef.name": "b"},
        [
            'roleRef: Invalid value: {"kind":"Role","name":"b","apiGroup":'
            '"rbac.authorization.k8s.io"}: cannot change roleRef'
        ],
    ),
    ("revision", OBJECTS["ControllerRevision"], {"revision": 2}, []),
    (
        "revision's data",
        OBJECTS["ControllerRevision"],
        {"data.spec.a": 2},
        ['data: Invalid value: {"spec":{"a":2}}: field is immutable'],
    ),
    (
        "address",
        OBJECTS["Service"],
        {"spec.clusterIP": "127.0.0.9"},
        ['spec.clusterIP: Invalid value: "127.0.0.9": field is immutable'],
    ),
    ("claim", OBJECTS["ResourceClaim"], {"spec.devices.requests[0].name": "b"}, ["field is"]),
    (
        "node's pods",
        changed(OBJECTS["Node"], {"spec.podCIDR": "10.0.0.0/24"}),
        {"spec.podCIDR": "10.0.1.0/24"},
        ['spec.podCIDR: Forbidden: node updates may not change podCIDR except from "" to valid'],
    ),
)


@pytest.mark.parametrize(
    ("old", "changes", "expected"), [row[1:] for row in UPDATED], ids=[row[0] for row in UPDATED]
)
def test_a_rule_holds_when_an_object_changes(
    old: Document, changes: dict[str, Json], expected: list[str]
) -> None:
    said = said_of(changed(old, changes), old)
    if expected == ["field is"]:
        assert [fault.endswith("field is immutable") for fault in said] == [True]
    else:
        assert said == expected


def test_a_pod_is_bound_through_its_subresource_alone() -> None:
    bound = changed(FREE, {"spec.nodeName": "a"})
    assert said_of(bound, FREE, Surroundings(subresource="binding")) == []
    assert said_of(bound, FREE) == [f"{_ONLY}nodeName"]


def test_a_new_definition_in_a_group_of_kubernetes_must_be_approved() -> None:
    own = changed(
        OBJECTS["CustomResourceDefinition"],
        {"metadata.name": "widgets.x.k8s.io", "spec.group": "x.k8s.io"},
    )
    [said] = said_of(own)
    assert said.startswith("metadata.annotations[api-approved.kubernetes.io]: Required value")
    stored = kinds.admit(kinds.KINDS[kinds.group_kind_of(own)], own)[0]
    assert said_of(stored, own) == []
