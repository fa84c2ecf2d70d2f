"""kubernetes_asyncio lives its usual life against a server of ours."""

from __future__ import annotations

import asyncio

import kubernetes_asyncio.watch
import pytest
from kubernetes_asyncio import client, config

SECONDS_MAX = 30


@pytest.fixture
def run(live):
    """Runs a coroutine function with a client."""

    def runs(life):
        async def with_client():
            settings = client.Configuration()
            await config.load_kube_config(str(live.kubeconfig), client_configuration=settings)
            async with asyncio.timeout(SECONDS_MAX), client.ApiClient(settings) as api:
                await life(api)

        asyncio.run(with_client())

    return runs


def config_map(name, **data):
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name), data=data)


def test_an_object_lives_and_ends(run, namespace):
    async def life(api):
        core = client.CoreV1Api(api)
        await core.create_namespaced_config_map(namespace, config_map("settings", model="small"))
        listed = await core.list_namespaced_config_map(namespace)
        assert [item.metadata.name for item in listed.items] == ["settings"]
        patched = await core.patch_namespaced_config_map(
            "settings", namespace, {"data": {"model": "large"}}
        )
        assert patched.data == {"model": "large"}
        await core.delete_namespaced_config_map("settings", namespace)
        with pytest.raises(client.ApiException) as absent:
            await core.read_namespaced_config_map("settings", namespace)
        assert absent.value.status == 404

    run(life)


def test_a_watch_goes_on_where_it_was_left(run, namespace):
    async def life(api):
        core = client.CoreV1Api(api)
        seen = []

        async def watch_from(version, count):
            watch = kubernetes_asyncio.watch.Watch()
            stream = watch.stream(
                core.list_namespaced_config_map,
                namespace,
                resource_version=version,
                timeout_seconds=SECONDS_MAX,
            )
            async with stream:
                async for event in stream:
                    seen.append((event["type"], event["object"].metadata.name))
                    version = event["object"].metadata.resource_version
                    count -= 1
                    if not count:
                        return version
            return version

        start = (await core.list_namespaced_config_map(namespace)).metadata.resource_version
        async with asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(watch_from(start, 1))
            tasks.create_task(core.create_namespaced_config_map(namespace, config_map("settings")))
        await core.patch_namespaced_config_map("settings", namespace, {"data": {"a": "b"}})
        await core.delete_namespaced_config_map("settings", namespace)
        await watch_from(watching.result(), 2)
        assert seen == [(kind, "settings") for kind in ("ADDED", "MODIFIED", "DELETED")]

    run(life)


def test_our_kinds_are_custom_objects(run, namespace):
    async def life(api):
        custom = client.CustomObjectsApi(api)
        where = ("grove.io", "v1alpha1", namespace, "podcliquesets")
        clique = {
            "name": "server",
            "spec": {
                "roleName": "server",
                "replicas": 2,
                "podSpec": {"containers": [{"name": "main", "image": "example/server:1"}]},
            },
        }
        body = {
            "apiVersion": "grove.io/v1alpha1",
            "kind": "PodCliqueSet",
            "metadata": {"name": "chat"},
            "spec": {"replicas": 1, "template": {"cliques": [clique]}},
        }
        made = await custom.create_namespaced_custom_object(*where, body)
        assert made["spec"]["template"]["cliques"][0]["spec"]["minAvailable"] == 2
        patched = await custom.patch_namespaced_custom_object(
            *where, "chat", {"spec": {"replicas": 2}}, _content_type="application/merge-patch+json"
        )
        assert patched["spec"]["replicas"] == 2
        with pytest.raises(client.ApiException) as refused:
            await custom.patch_namespaced_custom_object(
                *where,
                "chat",
                {"spec": {"replicas": -2}},
                _content_type="application/merge-patch+json",
            )
        assert refused.value.status == 422
        assert "must be greater than or equal to 0" in refused.value.body
        listed = await custom.list_namespaced_custom_object(*where)
        version = listed["metadata"]["resourceVersion"]
        await custom.delete_namespaced_custom_object(*where, "chat")
        watch = kubernetes_asyncio.watch.Watch()
        async for event in watch.stream(
            custom.list_namespaced_custom_object,
            *where,
            resource_version=version,
            timeout_seconds=30,
        ):
            if event["type"] == "DELETED":
                watch.stop()
        listed = await custom.list_namespaced_custom_object(*where)
        assert listed["items"] == []

    run(life)
