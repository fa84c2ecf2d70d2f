"""Tables: the cells kubectl shows, for objects in every state people look at."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.api.kinds import KINDS, Column, named
from spinney.meta.times import format_time
from spinney.server import ages, jsonpaths, tables
from spinney.testing.build import changed

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def ago(**duration):
    return format_time(NOW - timedelta(**duration))


def cells(word, document):
    return tables.printer_for(named(word)).cells(document, NOW)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (192, "3m12s"),
        (600, "10m"),
        (10_799, "179m"),
        (10_800, "3h"),
        (11_400, "3h10m"),
        (28_800, "8h"),
        (172_799, "47h"),
        (172_800, "2d"),
        (180_000, "2d2h"),
        (691_200, "8d"),
        (63_071_999, "729d"),
        (63_072_000, "2y"),
        (65_750_400, "2y31d"),
        (252_288_000, "8y"),
    ],
)
def test_ages(seconds, text):
    assert ages.duration(seconds) == text


BASE = {
    "metadata": {"name": "web", "creationTimestamp": ago(minutes=5)},
    "spec": {"containers": [{"name": "a"}, {"name": "b"}]},
    "status": {"phase": "Running"},
}


def status(name, *, ready=False, restarts=0, **state):
    return {"name": name, "ready": ready, "restartCount": restarts, "state": state}


RUNNING = {"running": {"startedAt": ago(minutes=1)}}
READY = [{"type": "Ready", "status": "True"}]

POD_ROWS = {
    "pending": ({"status": {"phase": "Pending"}}, "0/2", "Pending", "0"),
    "gated": (
        {
            "status": {
                "phase": "Pending",
                "conditions": [
                    {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
                ],
            }
        },
        "0/2",
        "SchedulingGated",
        "0",
    ),
    "running": (
        {"status.containerStatuses": [status("a", ready=True, **RUNNING)]},
        "1/2",
        "Running",
        "0",
    ),
    "crashing": (
        {
            "status.containerStatuses": [
                status("a", restarts=4, waiting={"reason": "CrashLoopBackOff"})
                | {"lastState": {"terminated": {"finishedAt": ago(minutes=3)}}},
                status("b", ready=True, **RUNNING),
            ]
        },
        "1/2",
        "CrashLoopBackOff",
        "4 (3m ago)",
    ),
    "restarted": (
        {"status.containerStatuses": [status("a", ready=True, restarts=2, **RUNNING)]},
        "1/2",
        "Running",
        "2",
    ),
    "failed": (
        {"status.containerStatuses": [status("a", terminated={"exitCode": 3})]},
        "0/2",
        "ExitCode:3",
        "0",
    ),
    "killed": (
        {"status.containerStatuses": [status("a", terminated={"exitCode": 137, "signal": 9})]},
        "0/2",
        "Signal:9",
        "0",
    ),
    "out of memory": (
        {"status.containerStatuses": [status("a", terminated={"reason": "OOMKilled"})]},
        "0/2",
        "OOMKilled",
        "0",
    ),
    "done": (
        {"status.containerStatuses": [status("a", terminated={"reason": "Completed"})]},
        "0/2",
        "Completed",
        "0",
    ),
    "one done, one running": (
        {
            "status.containerStatuses": [
                status("a", terminated={"reason": "Completed"}),
                status("b", ready=True, **RUNNING),
            ],
        },
        "1/2",
        "NotReady",
        "0",
    ),
    "one done, one running, ready": (
        {
            "status.containerStatuses": [
                status("a", terminated={"reason": "Completed"}),
                status("b", ready=True, **RUNNING),
            ],
            "status.conditions": READY,
        },
        "1/2",
        "Running",
        "0",
    ),
    "first starter waits": (
        {
            "spec.initContainers": [{"name": "x"}, {"name": "y"}],
            "status.initContainerStatuses": [status("x", waiting={"reason": "PodInitializing"})],
        },
        "0/2",
        "Init:0/2",
        "0",
    ),
    "second starter fails": (
        {
            "spec.initContainers": [{"name": "x"}, {"name": "y"}],
            "status.initContainerStatuses": [
                status("x", terminated={"exitCode": 0}),
                status("y", restarts=1, terminated={"exitCode": 1}),
            ],
        },
        "0/2",
        "Init:ExitCode:1",
        "1",
    ),
    "starter cannot pull": (
        {
            "spec.initContainers": [{"name": "x"}],
            "status.initContainerStatuses": [
                status("x", waiting={"reason": "ImagePullBackOff"}),
            ],
        },
        "0/2",
        "Init:ImagePullBackOff",
        "0",
    ),
    "sidecar runs": (
        {
            "spec.initContainers": [{"name": "x", "restartPolicy": "Always"}],
            "status.initContainerStatuses": [
                status("x", ready=True, restarts=2, **RUNNING) | {"started": True}
            ],
            "status.containerStatuses": [status("a", ready=True, **RUNNING)],
        },
        "2/3",
        "Running",
        "2",
    ),
    "evicted": (
        {"status": {"phase": "Failed", "reason": "Evicted"}},
        "0/2",
        "Evicted",
        "0",
    ),
    "being deleted": (
        {"metadata.deletionTimestamp": ago(seconds=1)},
        "0/2",
        "Terminating",
        "0",
    ),
    "being deleted, ended": (
        {"metadata.deletionTimestamp": ago(seconds=1), "status": {"phase": "Succeeded"}},
        "0/2",
        "Succeeded",
        "0",
    ),
    "node lost": (
        {
            "metadata.deletionTimestamp": ago(seconds=1),
            "status": {"phase": "Running", "reason": "NodeLost"},
        },
        "0/2",
        "Unknown",
        "0",
    ),
}


@pytest.mark.parametrize("name", POD_ROWS)
def test_pods(name):
    changes, ready, word, restarts = POD_ROWS[name]
    found = cells("pod", changed(BASE, changes))
    assert found[:5] == ["web", ready, word, restarts, "5m"]
    assert found[5:] == ["<none>", "<none>", "<none>", "<none>"]


@pytest.mark.parametrize(("phase", "reason"), [("Succeeded", "Succeeded"), ("Failed", "Failed")])
def test_rows_of_pods_that_ended_are_marked(phase, reason):
    printer = tables.printer_for(named("pod"))
    row = tables.row(printer, {"status": {"phase": phase}}, NOW, tables.INCLUDE_NONE, "v1")
    assert [(each["type"], each["reason"]) for each in row["conditions"]] == [("Completed", reason)]
    row = tables.row(printer, {"status": {"phase": "Running"}}, NOW, tables.INCLUDE_NONE, "v1")
    assert "conditions" not in row


def test_pods_wide():
    placed = changed(
        BASE,
        {
            "spec.nodeName": "one",
            "spec.readinessGates": [{"conditionType": "Ready"}, {"conditionType": "x"}],
            "status.podIPs": [{"ip": "127.1.2.3"}],
            "status.conditions": READY,
        },
    )
    assert cells("pod", placed)[5:] == ["127.1.2.3", "one", "<none>", "1/2"]


META = {"metadata": {"name": "n", "creationTimestamp": ago(hours=3)}}

ROWS = [
    (
        "node",
        {
            "metadata.labels": {"node-role.kubernetes.io/gpu": "", "kubernetes.io/role": "worker"},
            "spec": {"unschedulable": True},
            "status": {
                "conditions": [{"type": "Ready", "status": "False"}],
                "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
                "nodeInfo": {"kubeletVersion": "v1.33.0", "osImage": "Linux"},
            },
        },
        [
            "n",
            "NotReady,SchedulingDisabled",
            "gpu,worker",
            "3h",
            "v1.33.0",
            "10.0.0.1",
            "<none>",
            "Linux",
            "<unknown>",
            "<unknown>",
        ],
    ),
    ("node", {}, ["n", "Unknown", "<none>", "3h", "", "<none>", "<none>"] + ["<unknown>"] * 3),
    (
        "service",
        {
            "spec": {
                "clusterIP": "127.0.0.9",
                "ports": [{"port": 80, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}],
                "selector": {"b": "2", "a": "1"},
            }
        },
        ["n", "ClusterIP", "127.0.0.9", "<none>", "80/TCP,53/UDP", "3h", "a=1,b=2"],
    ),
    (
        "service",
        {"spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30080}]}},
        ["n", "NodePort", "<none>", "<none>", "80:30080/TCP", "3h", "<none>"],
    ),
    (
        "service",
        {"spec": {"type": "LoadBalancer", "clusterIP": "None"}},
        ["n", "LoadBalancer", "None", "<pending>", "<none>", "3h", "<none>"],
    ),
    (
        "service",
        {"spec": {"type": "ExternalName", "externalName": "example.com"}},
        ["n", "ExternalName", "<none>", "example.com", "<none>", "3h", "<none>"],
    ),
    (
        "endpoints",
        {
            "subsets": [
                {"addresses": [{"ip": f"10.0.0.{n}"} for n in range(4)], "ports": [{"port": 80}]}
            ]
        },
        ["n", "10.0.0.0:80,10.0.0.1:80,10.0.0.2:80 + 1 more...", "3h"],
    ),
    ("endpoints", {}, ["n", "<none>", "3h"]),
    (
        "endpointslice",
        {
            "addressType": "IPv4",
            "ports": [{"port": 80}, {"port": None, "name": "any"}],
            "endpoints": [{"addresses": ["10.0.0.1", "10.0.0.2"]}],
        },
        ["n", "IPv4", "80,any", "10.0.0.1,10.0.0.2", "3h"],
    ),
    ("endpointslice", {"addressType": "IPv4"}, ["n", "IPv4", "<unset>", "<unset>", "3h"]),
    ("namespace", {"status": {"phase": "Terminating"}}, ["n", "Terminating", "3h"]),
    ("configmap", {"data": {"a": "b"}, "binaryData": {"c": "d"}}, ["n", 2, "3h"]),
    ("secret", {"type": "Opaque", "data": {"a": "b"}}, ["n", "Opaque", 1, "3h"]),
    ("serviceaccount", {}, ["n", 0, "3h"]),
    ("lease", {"spec": {"holderIdentity": "me"}}, ["n", "me", "3h"]),
    ("priorityclass", {"value": 7}, ["n", 7, False, "3h", "PreemptLowerPriority"]),
    ("role", {}, ["n", ago(hours=3)]),
    ("customresourcedefinition", {}, ["n", ago(hours=3)]),
    (
        "rolebinding",
        {
            "roleRef": {"kind": "Role", "name": "r"},
            "subjects": [
                {"kind": "User", "name": "u"},
                {"kind": "User", "name": "v"},
                {"kind": "ServiceAccount", "name": "s", "namespace": "d"},
            ],
        },
        ["n", "Role/r", "3h", "u, v", "", "d/s"],
    ),
    (
        "hpa",
        {
            "spec": {
                "scaleTargetRef": {"kind": "PodClique", "name": "w"},
                "maxReplicas": 5,
                "metrics": [
                    {
                        "type": "Resource",
                        "resource": {"name": "cpu", "target": {"averageUtilization": 80}},
                    },
                    {"type": "Pods", "pods": {"target": {"averageValue": "10"}}},
                    {"type": "External", "external": {"target": {"value": "3"}}},
                ],
            },
            "status": {
                "currentReplicas": 2,
                "currentMetrics": [{"resource": {"current": {"averageUtilization": 25}}}],
            },
        },
        ["n", "PodClique/w", "cpu: 25%/80%, <unknown>/10 + 1 more...", "<unset>", 5, 2, "3h"],
    ),
    (
        "pdb",
        {"spec": {"minAvailable": "50%"}, "status": {"disruptionsAllowed": 1}},
        ["n", "50%", "N/A", 1, "3h"],
    ),
    (
        "controllerrevision",
        {
            "revision": 3,
            "metadata.ownerReferences": [
                {
                    "apiVersion": "grove.io/v1alpha1",
                    "kind": "PodCliqueSet",
                    "name": "chat",
                    "controller": True,
                }
            ],
        },
        ["n", "podcliqueset.grove.io/chat", 3, "3h"],
    ),
    ("controllerrevision", {}, ["n", "<none>", 0, "3h"]),
    (
        "resourceclaim",
        {"status": {"allocation": {}, "reservedFor": [{}]}},
        ["n", "allocated,reserved", "3h"],
    ),
    ("resourceclaim", {}, ["n", "pending", "3h"]),
    (
        "event",
        {
            "lastTimestamp": ago(minutes=1),
            "firstTimestamp": ago(minutes=9),
            "type": "Warning",
            "reason": "Failed",
            "involvedObject": {"kind": "Pod", "name": "web", "fieldPath": "spec"},
            "source": {"component": "kubelet", "host": "one"},
            "message": " it broke\n",
            "count": 3,
        },
        ["60s", "Warning", "Failed", "pod/web", "spec", "kubelet, one", "it broke", "9m", 3, "n"],
    ),
    (
        "event",
        {"eventTime": ago(minutes=2), "series": {"count": 9, "lastObservedTime": ago(seconds=4)}},
        ["4s", "", "", "", "", "", "", "2m", 9, "n"],
    ),
]


@pytest.mark.parametrize(("word", "changes", "expected"), ROWS)
def test_kinds_of_kubernetes(word, changes, expected):
    assert cells(word, changed(META, changes)) == expected


HEADERS = {
    "pod": "Name Ready Status Restarts Age IP Node Nominated-Node Readiness-Gates",
    "node": "Name Status Roles Age Version Internal-IP External-IP OS-Image Kernel-Version "
    "Container-Runtime",
    "service": "Name Type Cluster-IP External-IP Port(s) Age Selector",
    "event": "Last-Seen Type Reason Object Subobject Source Message First-Seen Count Name",
    "hpa": "Name Reference Targets MinPods MaxPods Replicas Age",
    "pdb": "Name Min-Available Max-Unavailable Allowed-Disruptions Age",
    "customresourcedefinition": "Name Created-At",
}


@pytest.mark.parametrize("word", HEADERS)
def test_columns(word):
    columns = tables.printer_for(named(word)).columns
    assert " ".join(column.name.replace(" ", "-") for column in columns) == HEADERS[word]


def test_every_kind_has_as_many_cells_as_columns():
    for kind in KINDS.values():
        printer = tables.printer_for(kind)
        assert len(printer.cells({}, NOW)) == len(printer.columns), kind.names.plural


def test_columns_of_a_path():
    document = {
        "spec": {"n": 3, "text": "x", "object": {"a": 1}, "yes": True, "share": 2.5},
        "metadata": {"creationTimestamp": ago(minutes=5)},
    }
    expected = [
        (".spec.n", "integer", 3),
        (".spec.n", "string", "3"),
        (".spec.share", "integer", 2),
        (".spec.share", "number", 2.5),
        (".spec.text", "string", "x"),
        (".spec.text", "integer", None),
        (".spec.object", "string", '{"a":1}'),
        (".spec.yes", "boolean", True),
        (".spec.yes", "string", "true"),
        (".spec.gone", "string", None),
        (".metadata.creationTimestamp", "date", "5m"),
        (".spec.text", "date", "<invalid>"),
        (".spec[", "string", None),
    ]
    for path, kind, value in expected:
        assert tables._cell(Column(name="x", path=path, type=kind), document, NOW) == value


DOCUMENT = {
    "a": {"b": [1, 2, 3], "c.d": "x"},
    "conditions": [
        {"type": "Ready", "status": "True", "n": 1},
        {"type": "Other", "status": "False", "n": 5},
    ],
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".a.b", [[1, 2, 3]]),
        ("{.a.b[0]}", [1]),
        ("$.a.b[-1]", [3]),
        (".a.b[9]", []),
        (".a.b[1:]", [2, 3]),
        (".a.b[*]", [1, 2, 3]),
        (".a['c.d']", ["x"]),
        (r".a.c\.d", ["x"]),
        ('.conditions[?(@.type=="Ready")].status', ["True"]),
        (".conditions[?(@.type=='Ready')].status", ["True"]),
        (".conditions[?(@.n>1)].type", ["Other"]),
        (".conditions[?(@.type!='Ready')].type", ["Other"]),
        (".conditions[?(@.gone)].type", []),
        ("..status", ["True", "False"]),
        (".conditions[*].type", ["Ready", "Other"]),
        (".x.y.z", []),
        ("", [DOCUMENT]),
    ],
)
def test_paths_of_columns(path, expected):
    assert jsonpaths.find(path, DOCUMENT) == expected


@pytest.mark.law
@given(st.text("abc.[]*'\"?(@)=!1:$\\{} ", max_size=14))
def test_any_path_finds_something_or_is_bad(path):
    """Nothing but BadPath is raised, whatever the path."""
    try:
        jsonpaths.find(path, DOCUMENT)
    except jsonpaths.BadPath:
        return


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda below: (
        st.lists(below, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "metadata",
                    "spec",
                    "status",
                    "containers",
                    "conditions",
                    "ports",
                    "name",
                    "containerStatuses",
                    "state",
                    "terminated",
                    "labels",
                    "metrics",
                    "type",
                    "subjects",
                ]
            ),
            below,
            max_size=4,
        )
    ),
    max_leaves=15,
)


@pytest.mark.law
@given(st.sampled_from(list(KINDS.values())), st.dictionaries(st.sampled_from(
    ["metadata", "spec", "status", "subsets", "ports", "data", "involvedObject", "roleRef"]
), JSON))  # fmt: skip
def test_any_document_has_a_row(kind, document):
    """A document stored in whatever shape is shown: a list never fails for one bad object."""
    printer = tables.printer_for(kind)
    row = tables.row(printer, document, NOW, tables.INCLUDE_METADATA, "v1")
    assert len(row["cells"]) == len(printer.columns)
