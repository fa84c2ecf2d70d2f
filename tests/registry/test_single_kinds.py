"""What single kinds do of their own: pods, services, priority classes."""

from __future__ import annotations

import asyncio
import ipaddress

import pytest
from registry_worlds import ANNA, KUBELET, cause, object_of, opened, pod, service, story

from spinney.meta.errors import Conflict, Forbidden, Internal, Invalid, NotFound, TooManyRequests
from spinney.meta.references import Precondition
from spinney.registry import addresses
from spinney.registry.requests import DeleteOptions, Request
from spinney.testing import loop

# Services


@story
async def test_a_service_gets_an_address_of_its_own(world):
    spec = (await world.create(service())).document["spec"]
    address = spec["clusterIP"]
    assert ipaddress.IPv4Address(address) in addresses.NETWORK
    assert spec["clusterIPs"] == [address]
    assert spec["ipFamilies"] == ["IPv4"]
    assert spec["ipFamilyPolicy"] == "SingleStack"
    managed = world.get("services", "web")["metadata"]["managedFields"][0]["fieldsV1"]
    assert "f:clusterIP" not in managed["f:spec"], "the server gave it"


def test_no_address_is_given_twice_and_each_comes_back(monkeypatch):
    monkeypatch.setattr(addresses, "NETWORK", ipaddress.IPv4Network("127.96.0.0/29"))

    async def tell():
        world = await opened()
        outcomes = await asyncio.gather(*(world.create(service(f"s{n}")) for n in range(6)))
        made = [outcome.document for outcome in outcomes]
        assert len({document["spec"]["clusterIP"] for document in made}) == 6
        with pytest.raises(Internal, match=r"every address of 127\.96\.0\.0/29 is taken"):
            await world.create(service("more"))
        await world.delete("services", "s3")
        again = (await world.create(service("more"))).document
        assert again["spec"]["clusterIP"] == made[3]["spec"]["clusterIP"]
        await world.store.close()

    loop.run(tell())


@story
async def test_an_address_is_stable_and_survives_a_restart(world):
    first = (await world.create(service())).document["spec"]["clusterIP"]
    await world.delete("services", "web")
    assert (await world.create(service())).document["spec"]["clusterIP"] == first
    journal = world.store._journal
    await world.store.close()
    later = await opened(journal, clock=world.clock)
    with pytest.raises(Invalid, match="provided IP is already allocated"):
        await later.create(service("other", clusterIP=first))
    await later.store.close()


@story
async def test_an_address_may_be_asked_for(world):
    made = await world.create(service("a", clusterIP="127.100.1.2"))
    assert made.document["spec"]["clusterIPs"] == ["127.100.1.2"]
    with pytest.raises(Invalid) as refused:
        await world.create(service("b", clusterIP="127.100.1.2"))
    assert cause(refused.value) == [
        (
            "spec.clusterIPs",
            'Invalid value: ["127.100.1.2"]: failed to allocate IP 127.100.1.2: provided IP is '
            "already allocated",
        )
    ]
    with pytest.raises(Invalid, match=r"The range of valid IPs is 127\.96\.0\.0/12"):
        await world.create(service("b", clusterIP="10.96.0.1"))
    with pytest.raises(Invalid, match="a valid IP address"):
        await world.create(service("b", clusterIP="nonsense"))


@story
async def test_headless_and_external_services_have_no_address(world):
    made = (await world.create(service("a", clusterIP="None"))).document["spec"]
    assert made["clusterIP"] == "None"
    assert made["clusterIPs"] == ["None"]
    external = {"type": "ExternalName", "externalName": "example.com", "ports": []}
    made = (await world.create(service("b", **external))).document["spec"]
    assert "clusterIP" not in made


@story
async def test_an_update_keeps_the_address_it_does_not_name(world):
    before = (await world.create(service())).document["spec"]["clusterIP"]
    after = await world.update(service("web", selector={"app": "other"}))
    assert after.document["spec"]["clusterIP"] == before
    with pytest.raises(Invalid):
        await world.patch("services", "web", {"spec": {"clusterIP": "127.100.0.9"}})
    external = {"spec": {"type": "ExternalName", "externalName": "example.com"}}
    await world.patch("services", "web", external)
    assert "clusterIP" not in world.get("services", "web")["spec"]
    back = {"spec": {"type": "ClusterIP", "externalName": None}}
    await world.patch("services", "web", back)
    assert world.get("services", "web")["spec"]["clusterIP"] == before


# Priority classes


def priority(name, value=10, **fields):
    return object_of("scheduling.k8s.io/v1", "PriorityClass", name, "", value=value, **fields)


@story
async def test_a_pod_has_the_priority_of_its_class(world):
    await world.create(priority("high", 1000, preemptionPolicy="Never"))
    spec = (await world.create(pod(spec={"priorityClassName": "high"}))).document["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (1000, "Never")
    spec = (await world.create(pod("plain"))).document["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (0, "PreemptLowerPriority")
    assert "priorityClassName" not in spec


@story
async def test_a_class_nobody_knows_is_refused(world):
    with pytest.raises(Forbidden) as refused:
        await world.create(pod(spec={"priorityClassName": "high"}))
    assert refused.value.message == (
        'pods "web" is forbidden: no PriorityClass with name high was found'
    )


@story
async def test_a_priority_is_computed_not_given(world):
    with pytest.raises(Forbidden) as refused:
        await world.create(pod(spec={"priority": 7}))
    assert refused.value.message == (
        'pods "web" is forbidden: the integer value of priority (7) must not be provided in pod '
        "spec; priority admission controller computed 0 from the given PriorityClass name"
    )


@story
async def test_the_systems_classes_are_there(world):
    for name, value in (
        ("system-node-critical", 2000001000),
        ("system-cluster-critical", 2000000000),
    ):
        spec = (await world.create(pod(name, spec={"priorityClassName": name}))).document["spec"]
        assert spec["priority"] == value


@story
async def test_there_is_one_default_class(world):
    await world.create(priority("usual", 5, globalDefault=True))
    spec = (await world.create(pod())).document["spec"]
    assert (spec["priorityClassName"], spec["priority"]) == ("usual", 5)
    await world.create(priority("other"))
    for attempt in (
        world.create(priority("third", globalDefault=True)),
        world.patch("priorityclasses", "other", {"globalDefault": True}, namespace=""),
    ):
        with pytest.raises(Forbidden) as refused:
            await attempt
        assert refused.value.message.endswith(
            "PriorityClass usual is already marked as default. Only one default can exist"
        )
    await world.patch("priorityclasses", "usual", {"description": "x"}, namespace="")
    both = [world.create(priority(name, globalDefault=True)) for name in ("x", "y")]
    await world.delete("priorityclasses", "usual", namespace="")
    results = await asyncio.gather(*both, return_exceptions=True)
    assert sorted(type(result).__name__ for result in results) == ["Forbidden", "Outcome"]


@story
async def test_a_replaced_pod_keeps_its_priority(world):
    stored = (await world.create(pod())).document
    spec = {key: stored["spec"][key] for key in stored["spec"] if key != "priority"}
    outcome = await world.update({**stored, "spec": spec})
    assert outcome.document["spec"]["priority"] == 0


@story
async def test_a_pod_has_a_service_account(world):
    spec = (await world.create(pod())).document["spec"]
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("default", "default")
    spec = (await world.create(pod("b", spec={"serviceAccountName": "robot"}))).document["spec"]
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("robot", "robot")


# Gates


@story
async def test_a_pod_tells_that_gates_hold_it_back_and_stops_when_none_does(world):
    gates = [{"name": "one"}, {"name": "two"}]
    made = (await world.create(pod(spec={"schedulingGates": gates}))).document
    (told,) = made["status"]["conditions"]
    assert (told["type"], told["status"]) == ("PodScheduled", "False")
    assert told["reason"] == "SchedulingGated"
    half = {**made, "spec": {**made["spec"], "schedulingGates": gates[1:]}}
    left = (await world.update(half)).document
    assert left["status"]["conditions"] == [told]
    free = {**left, "spec": {**left["spec"], "schedulingGates": []}}
    assert "conditions" not in (await world.update(free)).document["status"]


# Binding


ANY = Precondition()


async def bind(world, name="web", node="one", only_if=ANY, **options):
    return await world.registry.bind("default", name, node, only_if, Request(who=ANNA), **options)


@story
async def test_binding_gives_a_pod_its_node(world):
    made = (await world.create(pod())).document["metadata"]
    uid = Precondition(uid=made["uid"])
    found = (await bind(world, only_if=uid, annotations={"placed": "here"})).document
    assert found["spec"]["nodeName"] == "one"
    assert found["metadata"]["annotations"] == {"placed": "here"}
    assert found["metadata"]["generation"] == made["generation"]
    assert [(item["type"], item["status"]) for item in found["status"]["conditions"]] == [
        ("PodScheduled", "True")
    ]
    entry = next(
        item for item in found["metadata"]["managedFields"] if item.get("subresource") == "binding"
    )
    assert entry["fieldsV1"]["f:spec"] == {"f:nodeName": {}}


@pytest.mark.parametrize(
    ("state", "text"),
    [
        ("bound", 'pod web is already assigned to node "two"'),
        ("gated", "pod web has non-empty .spec.schedulingGates"),
        ("going", "pod web is being deleted, cannot be assigned to a host"),
        ("other", "Precondition failed: UID in precondition: other"),
    ],
)
@story
async def test_a_pod_that_cannot_be_bound_is_a_conflict(world, state, text):
    spec = {"schedulingGates": [{"name": "wait"}]} if state == "gated" else {}
    metadata = {"finalizers": ["example.com/hold"]} if state == "going" else {}
    await world.create(pod(spec=spec, **metadata))
    if state == "bound":
        await bind(world, node="two")
    if state == "going":
        await world.delete("pods", "web")
    only_if = Precondition(uid="other") if state == "other" else ANY
    with pytest.raises(Conflict) as refused:
        await bind(world, only_if=only_if)
    assert text in refused.value.message
    if state != "other":
        assert refused.value.message.startswith(
            'Operation cannot be fulfilled on pods/binding "web": '
        )


@story
async def test_binding_what_is_not_there(world):
    with pytest.raises(NotFound, match='pods "web" not found'):
        await bind(world)
    await world.create(pod())
    with pytest.raises(Invalid, match=r"target\.name: Required value"):
        await bind(world, node="")


@story
async def test_nothing_but_binding_gives_a_node(world):
    await world.create(pod())
    with pytest.raises(Invalid, match="pod updates may not change fields other than"):
        await world.patch("pods", "web", {"spec": {"nodeName": "one"}})


# Eviction


def budget(**status):
    return object_of(
        "policy/v1",
        "PodDisruptionBudget",
        "guard",
        spec={"selector": {"matchLabels": {"app": "web"}}, "minAvailable": 1},
        status=status,
    )


async def guarded(world, ready=True, **status):
    await world.create(pod(labels={"app": "web"}, spec={"nodeName": "one"}))
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    await world.status("pods", "web", {"phase": "Running", "conditions": [condition]}, who=KUBELET)
    await world.create(budget())
    counts = {"currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1, **status}
    await world.status("poddisruptionbudgets", "guard", {"observedGeneration": 1, **counts})


async def evict(world, **options):
    request = Request(who=ANNA, **options)
    return await world.registry.evict("default", "web", DeleteOptions(), request)


@story
async def test_a_budget_forbids_an_eviction(world):
    await guarded(world, disruptionsAllowed=0)
    with pytest.raises(TooManyRequests) as refused:
        await evict(world)
    assert refused.value.message == (
        "Cannot evict pod as it would violate the pod's disruption budget."
    )
    assert refused.value.details["causes"] == [
        {
            "reason": "DisruptionBudget",
            "message": "The disruption budget guard needs 1 healthy pods and has 1 currently",
        }
    ]
    assert "deletionTimestamp" not in world.get("pods", "web")["metadata"]


@story
async def test_an_eviction_spends_its_budget_first(world):
    await guarded(world, disruptionsAllowed=1)
    version = world.store.version
    await evict(world, dry_run=True)
    assert world.store.version == version
    await evict(world)
    assert "deletionTimestamp" in world.get("pods", "web")["metadata"]
    status = world.get("poddisruptionbudgets", "guard")["status"]
    assert status["disruptionsAllowed"] == 0
    assert status["disruptedPods"] == {"web": "2026-01-01T00:00:00Z"}
    other = pod("other", labels={"app": "web"}, spec={"nodeName": "one"})
    await world.create(other)
    ready = [{"type": "Ready", "status": "True"}]
    await world.status("pods", "other", {"phase": "Running", "conditions": ready}, who=KUBELET)
    with pytest.raises(TooManyRequests):
        await world.registry.evict("default", "other", DeleteOptions(), Request(who=ANNA))


@story
async def test_a_budget_nobody_looked_at_yet_forbids(world):
    await guarded(world, disruptionsAllowed=5, observedGeneration=0)
    with pytest.raises(TooManyRequests) as refused:
        await evict(world)
    assert refused.value.retry_after_seconds == 10
    assert refused.value.details["causes"][0]["message"] == (
        "The disruption budget guard is still being processed by the server."
    )


@story
async def test_what_is_not_ready_guards_nothing(world):
    await guarded(world, ready=False, disruptionsAllowed=0)
    await evict(world)
    assert "deletionTimestamp" in world.get("pods", "web")["metadata"]


@story
async def test_pods_that_do_not_run_are_just_deleted(world):
    await world.create(pod(labels={"app": "web"}))
    await world.create(budget())
    assert (await evict(world)).gone


@story
async def test_two_budgets_for_one_pod_are_not_understood(world):
    await guarded(world, disruptionsAllowed=1)
    other = budget()
    other["metadata"]["name"] = "second"
    await world.create(other)
    with pytest.raises(Internal, match="more than one PodDisruptionBudget"):
        await evict(world)
