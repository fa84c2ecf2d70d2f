"""What a pod asks of a node, read from its document as Kubernetes reads it."""

from __future__ import annotations

import pytest

from spinney.api.core.node import Node, Taint
from spinney.api.core.pod import Pod
from spinney.decisions.placement import amounts, demands, fitness, machines
from spinney.decisions.placement.attraction import NodeRequirement, NodeTerm, Toleration
from spinney.decisions.placement.requesting import HostPort
from spinney.meta import records
from spinney.meta.documents import Document
from tests.decisions.placement import small

MIB = 2**20


def read(spec: Document) -> demands.PodDemand:
    document: Document = {"metadata": {"name": "p", "namespace": "d", "uid": "u"}, "spec": spec}
    return demands.pod_demand(records.decode(Pod, document))


def asking(**requests: str | int) -> Document:
    return {"name": "c", "resources": {"requests": {**requests}}}


def sidecar(**requests: str | int) -> Document:
    return {**asking(**requests), "restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        pytest.param({"containers": [asking()]}, {}, id="nothing"),
        pytest.param(
            {"containers": [asking(cpu="500m", memory="1Mi"), asking(cpu=1)]},
            {"cpu": 1500, "memory": MIB},
            id="containers add up",
        ),
        pytest.param(
            {"containers": [asking(cpu="1")], "initContainers": [asking(cpu="3"), asking(cpu=2)]},
            {"cpu": 3000},
            id="the largest init container counts where it is larger",
        ),
        pytest.param(
            {"containers": [asking(cpu="1")], "initContainers": [sidecar(cpu="2"), asking(cpu=2)]},
            {"cpu": 4000},
            id="an init container runs beside sidecars started before it",
        ),
        pytest.param(
            {"containers": [asking(cpu="2")], "initContainers": [asking(cpu=3), sidecar(cpu="2")]},
            {"cpu": 4000},
            id="and not beside those started after it",
        ),
        pytest.param(
            {"containers": [asking(cpu="1")], "overhead": {"cpu": "250m", "memory": "1Mi"}},
            {"cpu": 1250, "memory": MIB},
            id="overhead comes on top",
        ),
        pytest.param(
            {
                "containers": [asking(cpu="1", memory="1Mi", **{small.GPU: 1})],
                "resources": {"requests": {"cpu": "3", small.GPU: 5}, "limits": {"memory": "9Mi"}},
                "overhead": {"cpu": "1"},
            },
            {"cpu": 4000, "memory": MIB, small.GPU: 1},
            id="what the pod asks as a whole stands for its containers'",
        ),
        pytest.param(
            {"containers": [{"name": "c"}], "resources": {"limits": {"memory": "9Mi"}}},
            {"memory": 9 * MIB},
            id="a limit of the pod stands where nothing asks",
        ),
        pytest.param(
            {"containers": [{"name": "c", "resources": {"limits": {small.GPU: "8"}}}]},
            {small.GPU: 8},
            id="a limit stands for a request that is not there",
        ),
        pytest.param(
            {"containers": [asking(cpu="100u", memory="1500m")]},
            {"cpu": 1, "memory": 2},
            id="fractions are rounded up",
        ),
        pytest.param(
            {"containers": [asking(cpu="much", memory="1Mi")]},
            {"memory": MIB},
            id="what is no quantity asks nothing",
        ),
    ],
)
def test_what_containers_ask_together(spec: Document, wanted: dict[str, int]) -> None:
    assert dict(read(spec).shape.requests) == {**wanted, "pods": 1}


def test_host_ports_are_those_of_containers_and_sidecars() -> None:
    port: Document = {"containerPort": 80, "hostPort": 80, "protocol": "UDP"}
    held: Document = {"containerPort": 81, "hostPort": 81, "hostIP": "10.0.0.1"}
    inner: Document = {"containerPort": 82}
    spec: Document = {
        "containers": [{"name": "c", "ports": [port, inner]}],
        "initContainers": [
            {"name": "s", "restartPolicy": "Always", "ports": [held]},
            {"name": "i", "ports": [{"containerPort": 83, "hostPort": 83}]},
        ],
    }
    assert read(spec).shape.host_ports == (
        HostPort(port=80, protocol="UDP"),
        HostPort(port=81, address="10.0.0.1"),
    )


@pytest.mark.parametrize(
    ("other", "meets"),
    [
        (HostPort(port=80), True),
        (HostPort(port=80, address="10.0.0.1"), True),
        (HostPort(port=80, address="10.0.0.2"), False),
        (HostPort(port=80, protocol="UDP"), False),
        (HostPort(port=81), False),
    ],
)
def test_ports_meet_on_one_address_or_on_all(other: HostPort, meets: bool) -> None:
    assert HostPort(port=80, address="10.0.0.1").meets(other) == meets
    assert other.meets(HostPort(port=80, address="10.0.0.1")) == meets


def requirement(operator: str, *values: str, key: str = "size") -> NodeRequirement:
    return NodeRequirement(key=key, operator=operator, values=values)


@pytest.mark.parametrize(
    ("asked", "holding"),
    [
        (requirement("In", "1", "7"), {"7"}),
        (requirement("NotIn", "7"), {"12", "big", None}),
        (requirement("Exists"), {"7", "12", "big"}),
        (requirement("DoesNotExist"), {None}),
        (requirement("Gt", "7"), {"12"}),
        (requirement("Lt", "12"), {"7"}),
        (requirement("Gt", "x"), set()),
        (requirement("Gt"), set()),
        (requirement("Near", "7"), set()),
    ],
)
def test_every_operator_on_labels(asked: NodeRequirement, holding: set[str | None]) -> None:
    values = ("7", "12", "big", None)
    found = {value for value in values if asked.holds("n", {"size": value} if value else {})}
    assert found == holding


def test_affinity_is_read_whole() -> None:
    zone: Document = {"key": "zone", "operator": "In", "values": ["b", "a"]}
    name: Document = {"key": "metadata.name", "operator": "NotIn", "values": ["n1"]}
    terms: list[Document] = [{"matchExpressions": [zone]}, {"matchFields": [name]}]
    preferred: Document = {"weight": 5, "preference": {"matchExpressions": [zone]}}
    affinity: Document = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [*terms]},
            "preferredDuringSchedulingIgnoredDuringExecution": [preferred],
        },
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]},
    }
    found = read({"containers": [], "affinity": affinity})
    by_name, by_zone = found.shape.required_terms
    assert by_zone == NodeTerm(requirements=(requirement("In", "a", "b", key="zone"),))
    assert by_name.matches("n2", {})
    assert not by_name.matches("n1", {"zone": "a"})
    assert found.shape.preferences[0].weight == 5
    assert found.not_honoured == ("spec.affinity.podAntiAffinity",)


@pytest.mark.parametrize("terms", [[], [{}], [{"matchExpressions": []}]])
def test_to_require_one_of_no_conditions_is_to_require_what_no_node_meets(
    terms: list[Document],
) -> None:
    required: Document = {"nodeSelectorTerms": [*terms]}
    node: Document = {"requiredDuringSchedulingIgnoredDuringExecution": required}
    found = read({"containers": [], "affinity": {"nodeAffinity": node}})
    assert [*fitness.faults(found.shape, small.machine("n"))] == [fitness.AFFINITY]


@pytest.mark.parametrize(
    ("toleration", "covers"),
    [
        (Toleration(operator="Exists"), True),
        (Toleration(key="gpu", operator="Exists"), True),
        (Toleration(key="gpu", value="yes"), True),
        (Toleration(key="gpu", value="no"), False),
        (Toleration(key="gpu", value="yes", effect="NoExecute"), False),
        (Toleration(key="other", operator="Exists"), False),
        (Toleration(operator="Equal", value="yes"), False),
        (Toleration(key="gpu", operator="Like", value="yes"), False),
    ],
)
def test_what_a_toleration_covers(toleration: Toleration, covers: bool) -> None:
    assert toleration.covers(Taint(key="gpu", value="yes", effect="NoSchedule")) == covers


def test_gates_priority_and_policy_are_read() -> None:
    found = read(
        {
            "containers": [],
            "schedulingGates": [{"name": "g"}],
            "priority": 7,
            "preemptionPolicy": "Never",
        }
    )
    assert (found.is_gated, found.priority, found.can_preempt) == (True, 7, False)
    bare = read({"containers": []})
    assert (bare.is_gated, bare.priority, bare.can_preempt) == (False, 0, True)


def test_a_gang_of_one_is_the_pod_itself() -> None:
    found = demands.gang_of_one(read({"containers": [], "priority": 3}))
    assert (found.ref.name, found.priority, found.groups[0].min_replicas) == ("p", 3, 1)


def test_a_node_offers_what_is_allocatable_rounded_down() -> None:
    document: Document = {
        "metadata": {"name": "n", "labels": {"zone": "a"}},
        "spec": {"unschedulable": True, "taints": [{"key": "k", "effect": "NoSchedule"}]},
        "status": {
            "capacity": {"cpu": "9"},
            "allocatable": {"cpu": "1500900u", "memory": "1Gi", small.GPU: "8", "pods": 110},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    found = machines.machine(records.decode(Node, document))
    assert found.allocatable == {"cpu": 1500, "memory": 2**30, small.GPU: 8, "pods": 110}
    assert found.labels == {"zone": "a", machines.HOSTNAME: "n"}
    assert found.is_ready
    assert not found.is_schedulable
    assert found.taints[0].key == "k"


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [("cpu", 1500, "1500m"), ("cpu", 2000, "2"), ("memory", 3 * 2**30, "3Gi"), (small.GPU, 8, "8")],
)
def test_amounts_are_spelled_as_people_write_them(name: str, value: int, text: str) -> None:
    assert amounts.spelled(name, value) == text
