"""What is published of a service: which pods, ready or not, by which ports, and how rarely."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.api.core.pod import Pod, PodSpec, PodStatus
from spinney.api.core.services import Endpoints, EndpointSlice, Service, ServicePort, ServiceSpec
from spinney.decisions import endpoints
from spinney.decisions.actions import Create, Delete, Patch
from spinney.decisions.endpoints import Observation
from spinney.meta import records
from spinney.meta.conditions import Condition
from spinney.meta.metadata import ObjectMeta

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
OLD = NOW - timedelta(hours=1)


def service(*ports, publishes=False, selector=("app", "web"), headless=False, **fields):
    return Service(
        metadata=ObjectMeta(name="web", namespace="default", uid="s", resource_version="1"),
        spec=ServiceSpec(
            selector=dict([selector]) if selector else {},
            ports=ports,
            publish_not_ready_addresses=publishes,
            cluster_ip="None" if headless else "127.96.0.9",
            **fields,
        ),
    )


def pod(index, *, ready=True, ip=True, going=False, phase="Running", port=8000, since=OLD):
    container = {"name": "main", "ports": [{"name": "http", "containerPort": port}]}
    state = "True" if ready else "False"
    return Pod(
        metadata=ObjectMeta(
            name=f"web-{index}",
            namespace="default",
            uid=f"p-{index}",
            deletion_timestamp=NOW if going else None,
        ),
        spec=PodSpec(
            containers=(container,),
            node_name="one",
            hostname=f"web-{index}",
            subdomain="web",
        ),
        status=PodStatus(
            phase=phase,
            pod_ip=f"10.0.{index // 250}.{index % 250 + 1}" if ip else "",
            start_time=since if ip else None,
            conditions=(Condition(type="Ready", status=state),),
        ),
    )


class Kept:
    """What is published, as writes leave it."""

    def __init__(self):
        self.slices = {}
        self.endpoints = None
        self.writes = 0

    def look(self, of, *pods):
        """Decide and write until nothing is left to write; return what there was to wait for."""
        for _ in range(4):
            decision = endpoints.decide(
                Observation(
                    now=NOW,
                    service=of,
                    pods=pods,
                    slices=tuple(self.slices[name] for name in sorted(self.slices)),
                    endpoints=self.endpoints,
                )
            )
            decision.check()
            if not decision.actions:
                return decision.wake_after
            for action in decision.actions:
                self.writes += 1
                self._write(action)
        raise AssertionError("it never comes to rest")

    def _write(self, action):
        match action:
            case Create(document=document):
                assert document["metadata"]["name"] not in self.slices
                record = Endpoints if document["kind"] == "Endpoints" else EndpointSlice
                self._keep(records.decode(record, document))
            case Patch(target=target, merge=merge):
                before = self.endpoints
                if target.kind.kind == "EndpointSlice":
                    before = self.slices[target.name]
                found = {**records.encode(before), **merge}
                if found.get("subsets", ()) is None:
                    del found["subsets"]
                self._keep(records.decode(type(before), found))
            case Delete(target=target):
                del self.slices[target.name]

    def _keep(self, found):
        if isinstance(found, Endpoints):
            self.endpoints = found
        else:
            self.slices[found.metadata.name] = found

    def told(self):
        """Return the pods that slices tell of, with whether they are ready."""
        found = {}
        for each in self.slices.values():
            assert len(each.endpoints) <= endpoints.SLICE_MAX
            for endpoint in each.endpoints:
                assert endpoint.target_ref.name not in found
                found[endpoint.target_ref.name] = endpoint.conditions.ready
        return found

    def addresses(self, field="addresses"):
        if self.endpoints is None:
            return []
        return [
            each["targetRef"]["name"]
            for subset in self.endpoints.subsets
            for each in subset.get(field, [])
        ]


HTTP = ServicePort(name="http", port=80, target_port="http")


def test_pods_are_published_with_what_their_service_says_of_ports():
    kept = Kept()
    kept.look(service(HTTP, headless=True), pod(0), pod(1, port=9000), pod(2, ready=False))
    assert kept.told() == {"web-0": True, "web-1": True, "web-2": False}
    assert {each.ports[0].port for each in kept.slices.values()} == {8000, 9000}
    assert sorted(kept.addresses()) == ["web-0", "web-1"]
    assert kept.addresses("notReadyAddresses") == ["web-2"]
    found = next(iter(kept.slices.values()))
    assert found.metadata.labels["kubernetes.io/service-name"] == "web"
    assert found.endpoints[0].hostname == "web-0"


def test_pods_that_have_ended_or_have_no_address_are_not_published():
    kept = Kept()
    kept.look(service(HTTP), pod(0, phase="Failed"), pod(1, ip=False), pod(2))
    assert kept.told() == {"web-2": True}


def test_pods_on_their_way_out_are_published_as_such():
    kept = Kept()
    kept.look(service(HTTP), pod(0, going=True), pod(1))
    assert kept.told() == {"web-0": False, "web-1": True}
    assert kept.addresses() == ["web-1"]
    assert kept.addresses("notReadyAddresses") == []


def test_a_service_may_publish_pods_that_are_not_ready():
    kept = Kept()
    kept.look(service(headless=True, publishes=True), pod(0, ready=False), pod(1, going=True))
    assert kept.told() == {"web-0": True, "web-1": True}
    assert sorted(kept.addresses()) == ["web-0", "web-1"]


@pytest.mark.parametrize(
    "of", [service(HTTP, selector=None), service(HTTP, type="ExternalName"), service(HTTP)]
)
def test_nothing_is_written_where_nothing_is_to_be_published(of):
    kept = Kept()
    pods = () if of.spec.selector and of.spec.type != "ExternalName" else (pod(0),)
    assert kept.look(of, *pods) is None
    assert kept.writes == 0


def test_a_gang_that_starts_together_is_written_once():
    kept = Kept()
    of = service(HTTP)
    waits = kept.look(of, pod(0, since=NOW), pod(1, ip=False))
    assert (kept.writes, waits) == (0, endpoints.GATHERING)
    kept.look(of, pod(0, since=NOW), pod(1, since=NOW))
    assert kept.writes == 2
    assert kept.told() == {"web-0": True, "web-1": True}


def test_pods_that_start_too_slowly_are_not_waited_for():
    kept = Kept()
    kept.look(service(HTTP), pod(0, since=OLD), pod(1, ip=False))
    assert kept.told() == {"web-0": True}


def test_what_is_published_stays_when_all_pods_are_gone():
    kept = Kept()
    of = service(HTTP)
    kept.look(of, pod(0))
    kept.look(of)
    assert kept.told() == {}
    assert len(kept.slices) == 1
    assert kept.endpoints.subsets == ()


def test_one_pod_changes_one_slice_among_many():
    kept = Kept()
    of = service(HTTP)
    everyone = [pod(index) for index in range(250)]
    kept.look(of, *everyone)
    assert len(kept.slices) == 3
    before = dict(kept.slices)
    kept.look(of, *everyone[:120], *everyone[121:])
    changed = [name for name, each in kept.slices.items() if each is not before[name]]
    assert len(changed) == 1
    before = dict(kept.slices)
    kept.look(of, *everyone[:120], *everyone[121:], pod(300))
    changed = [name for name, each in kept.slices.items() if each is not before[name]]
    assert len(changed) == 1


PODS = st.lists(
    st.builds(
        pod,
        st.integers(0, 9),
        ready=st.booleans(),
        ip=st.booleans(),
        going=st.booleans(),
        phase=st.sampled_from(["Running", "Pending", "Failed"]),
        port=st.sampled_from([8000, 9000]),
    ),
    unique_by=lambda each: each.metadata.name,
)


@pytest.mark.law
@given(st.lists(PODS, min_size=1, max_size=4), st.booleans())
def test_what_is_published_is_what_there_is_whatever_came_before(looks, publishes):
    """Convergence and fixpoint; the order in which pods are seen does not matter."""
    kept = Kept()
    of = service(HTTP, publishes=publishes)
    for pods in looks:
        kept.look(of, *pods)
    there = [each for each in looks[-1] if each.status.pod_ip and each.status.phase != "Failed"]
    assert kept.told() == {
        each.metadata.name: publishes
        or (each.metadata.deletion_timestamp is None and each.status.conditions[0].status == "True")
        for each in there
    }
    writes = kept.writes
    kept.look(of, *reversed(looks[-1]))
    assert kept.writes == writes
    for name, each in kept.slices.items():
        kept.slices[name] = msgspec.structs.replace(each)
    kept.look(of, *looks[-1])
    assert kept.writes == writes
