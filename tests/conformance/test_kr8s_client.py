"""kr8s lives its usual life against a server of ours."""

from __future__ import annotations

import kr8s
import pytest
from kr8s import _async_utils
from kr8s.objects import ConfigMap, Namespace, Pod, new_class

PodCliqueSet = new_class(
    kind="PodCliqueSet", version="grove.io/v1alpha1", namespaced=True, scalable=True
)


@pytest.fixture
def api(live):
    """A client, hung up at the end: kr8s never does, and a socket left open is an error here."""
    made = kr8s.api(kubeconfig=str(live.kubeconfig))
    yield made
    _async_utils.as_sync_func(made._session.aclose)()


def document(name, namespace, **data):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": "chat"}},
        "data": data,
    }


def test_an_object_lives_and_ends(api, namespace):
    made = ConfigMap(document("settings", namespace, model="small"), api=api)
    made.create()
    assert made.exists()
    found = ConfigMap.get("settings", namespace=namespace, api=api)
    assert found.data == {"model": "small"}
    found.patch({"data": {"model": "large"}})
    made.refresh()
    assert made.data == {"model": "large"}
    made.label({"tier": "front"})
    listed = api.get("configmaps", namespace=namespace, label_selector={"tier": "front"})
    assert [item.name for item in listed] == ["settings"]
    made.delete()
    made.wait("delete", timeout=20)
    assert not made.exists()
    with pytest.raises(kr8s.NotFoundError):
        ConfigMap.get("settings", namespace=namespace, api=api)


def test_a_watch_tells_each_change(api, namespace):
    made = ConfigMap(document("settings", namespace), api=api)
    made.create()
    seen = []
    for event, found in api.watch("configmaps", namespace=namespace):
        seen.append((event, found.name))
        if event == "ADDED":
            made.patch({"data": {"model": "large"}})
        elif event == "MODIFIED":
            made.delete()
        else:
            break
    assert seen == [(kind, "settings") for kind in ("ADDED", "MODIFIED", "DELETED")]


def test_what_is_served_is_discovered(api):
    assert Namespace.get("default", api=api).status.phase == "Active"
    resources = {(found["kind"], found["version"]) for found in api.api_resources()}
    assert {("Pod", "v1"), ("PodCliqueSet", "grove.io/v1alpha1")} <= resources
    assert api.version()["major"] == "1"


def test_a_pod_is_created_and_listed(api, namespace):
    pod = Pod.gen(name="front", image="example/front:1", namespace=namespace)
    pod.api = api
    pod.create()
    assert [item.name for item in api.get("pods", namespace=namespace)] == ["front"]
    pod.delete(grace_period=0)


def test_our_kinds_are_scaled(api, namespace):
    clique = {
        "name": "server",
        "spec": {
            "roleName": "server",
            "replicas": 2,
            "podSpec": {"containers": [{"name": "main", "image": "example/server:1"}]},
        },
    }
    made = PodCliqueSet(
        {
            "metadata": {"name": "chat", "namespace": namespace},
            "spec": {"replicas": 1, "template": {"cliques": [clique]}},
        },
        api=api,
    )
    made.create()
    made.patch({"spec": {"replicas": 3}}, subresource="scale")
    made.refresh()
    assert made.spec.replicas == 3
    made.delete()
