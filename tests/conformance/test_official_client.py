"""The official Python client lives its usual life against a server of ours."""

from __future__ import annotations

import threading
from pathlib import Path

import kubernetes.watch
import pytest
import yaml
from kubernetes import client, config, dynamic
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock

SECONDS_MAX = 30
PODCLIQUESET = yaml.safe_load((Path(__file__).parent / "manifests" / "set.yaml").read_text())


@pytest.fixture
def api(live):
    made = config.new_client_from_config(str(live.kubeconfig))
    with made:
        yield made


@pytest.fixture
def core(api):
    return client.CoreV1Api(api)


def config_map(name, **data):
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name), data=data)


def test_an_object_lives_and_ends(core, namespace):
    made = core.create_namespaced_config_map(namespace, config_map("settings", model="small"))
    assert made.metadata.uid
    assert core.read_namespaced_config_map("settings", namespace).data == {"model": "small"}
    assert [item.metadata.name for item in core.list_namespaced_config_map(namespace).items] == [
        "settings"
    ]
    patched = core.patch_namespaced_config_map("settings", namespace, {"data": {"model": "large"}})
    assert patched.data == {"model": "large"}
    assert int(patched.metadata.resource_version) > int(made.metadata.resource_version)
    with pytest.raises(client.ApiException) as stale:
        core.replace_namespaced_config_map("settings", namespace, made)
    assert (stale.value.status, stale.value.reason) == (409, "Conflict")
    gone = core.delete_namespaced_config_map("settings", namespace)
    assert gone["status"] == "Success"
    with pytest.raises(client.ApiException) as absent:
        core.read_namespaced_config_map("settings", namespace)
    assert absent.value.status == 404


def test_a_list_comes_in_pages_of_one_moment(core, namespace):
    for number in range(7):
        core.create_namespaced_config_map(namespace, config_map(f"part-{number}"))
    first = core.list_namespaced_config_map(namespace, limit=3)
    assert first.metadata.remaining_item_count == 4
    core.create_namespaced_config_map(namespace, config_map("part-9"))
    names = [item.metadata.name for item in first.items]
    token = first.metadata._continue
    while token:
        page = core.list_namespaced_config_map(namespace, limit=3, _continue=token)
        assert page.metadata.resource_version == first.metadata.resource_version
        names += [item.metadata.name for item in page.items]
        token = page.metadata._continue
    assert names == [f"part-{number}" for number in range(7)]


def test_a_watch_goes_on_where_it_was_left(core, namespace):
    start = core.list_namespaced_config_map(namespace).metadata.resource_version
    core.create_namespaced_config_map(namespace, config_map("settings", model="small"))
    watch = kubernetes.watch.Watch()
    seen = []
    for event in watch.stream(
        core.list_namespaced_config_map,
        namespace,
        resource_version=start,
        timeout_seconds=SECONDS_MAX,
    ):
        seen.append((event["type"], event["object"].metadata.name))
        last = event["object"].metadata.resource_version
        watch.stop()
    core.patch_namespaced_config_map("settings", namespace, {"data": {"model": "large"}})
    core.delete_namespaced_config_map("settings", namespace)
    again = kubernetes.watch.Watch()
    for event in again.stream(
        core.list_namespaced_config_map,
        namespace,
        resource_version=last,
        timeout_seconds=SECONDS_MAX,
    ):
        seen.append((event["type"], event["object"].metadata.name))
        if event["type"] == "DELETED":
            again.stop()
    assert seen == [(kind, "settings") for kind in ("ADDED", "MODIFIED", "DELETED")]


def test_a_watch_from_a_version_that_is_not_yet_is_refused(core, namespace):
    stream = kubernetes.watch.Watch().stream(
        core.list_namespaced_config_map, namespace, resource_version="999999999", timeout_seconds=5
    )
    with pytest.raises(client.ApiException) as refused:
        next(stream)
    assert refused.value.status in (410, 504)


def test_patches_of_every_kind_are_taken(core, namespace):
    core.create_namespaced_config_map(namespace, config_map("settings", a="1", b="2"))
    merged = core.patch_namespaced_config_map("settings", namespace, {"data": {"a": None}})
    assert merged.data == {"b": "2"}
    patched = core.patch_namespaced_config_map(
        "settings", namespace, [{"op": "add", "path": "/data/c", "value": "3"}]
    )
    assert patched.data == {"b": "2", "c": "3"}


def test_our_kinds_are_dynamic_resources(api, live, namespace, tmp_path):
    resources = dynamic.DynamicClient(api, cache_file=str(tmp_path / "discovery.json"))
    sets = resources.resources.get(api_version="grove.io/v1alpha1", kind="PodCliqueSet")
    made = sets.create(body=PODCLIQUESET, namespace=namespace)
    assert made.spec.replicas == 2
    assert made.spec.template.cliques[0].spec.minAvailable == 2
    applied = sets.server_side_apply(
        body={
            "apiVersion": "grove.io/v1alpha1",
            "kind": "PodCliqueSet",
            "metadata": {"name": "chat", "labels": {"owned": "yes"}},
        },
        name="chat",
        namespace=namespace,
        field_manager="tests",
    )
    assert applied.metadata.labels.to_dict() == {"app": "chat", "owned": "yes"}
    patched = sets.patch(
        body={"spec": {"replicas": 1}},
        name="chat",
        namespace=namespace,
        content_type="application/merge-patch+json",
    )
    assert patched.metadata.generation == 2
    assert [item.metadata.name for item in sets.get(namespace=namespace).items] == ["chat"]
    scaled = sets.scale.patch(
        body={"spec": {"replicas": 3}},
        name="chat",
        namespace=namespace,
        content_type="application/merge-patch+json",
    )
    assert (scaled.kind, scaled.spec.replicas) == ("Scale", 3)
    version = sets.get(namespace=namespace).metadata.resourceVersion
    sets.delete(name="chat", namespace=namespace)
    watched = sets.watch(namespace=namespace, name="chat", resource_version=version, timeout=30)
    assert any(event["type"] == "DELETED" for event in watched)
    with pytest.raises(dynamic.exceptions.NotFoundError):
        sets.get(name="chat", namespace=namespace)


class Candidate:
    """One who would lead, and leads until told to stop."""

    def __init__(self, api, identity, namespace):
        self.leads, self.stop, self.stopped = (threading.Event() for _ in range(3))
        lock = LeaseLock("leader", namespace, identity)
        lock.api_instance = client.CoordinationV1Api(api)
        self._election = leaderelection.LeaderElection(
            electionconfig.Config(
                lock,
                lease_duration=4,
                renew_deadline=3,
                retry_period=1,
                onstarted_leading=self._lead,
                onstopped_leading=self.stopped.set,
            )
        )
        self._thread = threading.Thread(target=self._election.run, daemon=True)
        self._thread.start()

    def _lead(self):
        self.leads.set()
        assert self.stop.wait(SECONDS_MAX)
        raise InterruptedError("told to stop")

    def end(self):
        """Stop leading, and wait until that is so."""
        self.stop.set()
        self._thread.join(SECONDS_MAX)
        assert not self._thread.is_alive()


@pytest.mark.timeout(120)
def test_leaders_are_elected_by_lease(api, namespace):
    """One leads; it stops; its lease runs out, and the other leads."""
    one = Candidate(api, "one", namespace)
    assert one.leads.wait(SECONDS_MAX)
    two = Candidate(api, "two", namespace)
    leases = client.CoordinationV1Api(api)
    assert leases.read_namespaced_lease("leader", namespace).spec.holder_identity == "one"
    assert not two.leads.is_set()
    one.end()
    assert two.leads.wait(SECONDS_MAX)
    lease = leases.read_namespaced_lease("leader", namespace)
    assert lease.spec.holder_identity == "two"
    two.end()
    assert one.stopped.is_set()
    assert two.stopped.is_set()
