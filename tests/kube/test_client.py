"""The client, against the embedded server over TLS, and against servers that misbehave."""

from __future__ import annotations

import asyncio
import contextlib
import json
from datetime import UTC, datetime, timedelta

import pytest
from aiohttp import web

from spinney.app import pki
from spinney.app.real import SystemClock, SystemEntropy
from spinney.kube import client as clients
from spinney.kube.client import Client, Selection, Write
from spinney.kube.kubeconfig import Connection
from spinney.kube.resources import NoSuchResource
from spinney.kube.transport import Transport, Unreachable
from spinney.kube.watching import ADDED, DELETED, MODIFIED, Watch
from spinney.meta.errors import (
    AlreadyExists,
    ApplyConflict,
    BadRequest,
    Conflict,
    Expired,
    Forbidden,
    Internal,
    NotFound,
    TooManyRequests,
    Unauthorized,
)
from spinney.registry.world import open_world
from spinney.server.access import Access, Grant
from spinney.server.serving import Server
from spinney.store.journals import MemoryJournal
from spinney.store.store import Store

GRANTS = (Grant(token="all"), Grant(token="some", user="reader", groups=(), read_only=True))


class Clock(SystemClock):
    """Real time, but for sleeps, which are noted and take none."""

    def __init__(self):
        self.slept = []

    async def sleep(self, duration):
        self.slept.append(duration)


def config_map(name, **data):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": data,
    }


def against_world(tmp_path, test, *, token="all", **given):
    """Run a test against the embedded server."""

    async def run():
        store = await Store.open(MemoryJournal(), SystemClock())
        world = await open_world(store, SystemClock(), SystemEntropy())
        certificates = pki.prepare(tmp_path / "pki", (), datetime.now(UTC))
        server = Server(world, Access(GRANTS), SystemClock())
        _, port = await server.start("127.0.0.1", 0, pki.server_context(certificates))
        said = {"authority": certificates.authority, "token": token, **given}
        connection = Connection(server=f"https://127.0.0.1:{port}", **said)
        try:
            async with Client(Transport(connection, Clock())) as client:
                await test(client)
        finally:
            await server.stop()
            await store.close()

    asyncio.run(run())


async def config_maps(client):
    return (await client.resources()).named("cm")


def test_an_object_lives(tmp_path):
    async def test(client):
        resource = await config_maps(client)
        answer = await client.create(resource, "default", config_map("a", k="1"), Write())
        assert answer.code == 201
        with pytest.raises(AlreadyExists):
            await client.create(resource, "default", config_map("a"), Write())
        patched = await client.patch(resource, "default", "a", {"data": {"k": "2"}}, Write())
        assert patched.document["data"] == {"k": "2"}
        stale = {**answer.document, "data": {"k": "3"}}
        with pytest.raises(Conflict):
            await client.replace(resource, "default", stale, Write())
        fresh = {**patched.document, "data": {"k": "3"}}
        await client.replace(resource, "default", fresh, Write())
        assert (await client.get(resource, "default", "a"))["data"] == {"k": "3"}
        await client.delete(resource, "default", "a", {})
        with pytest.raises(NotFound, match='configmaps "a" not found'):
            await client.get(resource, "default", "a")

    against_world(tmp_path, test)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../../namespaces/default", "a%2fb"])
def test_a_name_never_leads_elsewhere(tmp_path, name):
    """No name, or one of dots, would delete all objects, or their namespace."""

    async def test(client):
        resource = await config_maps(client)
        await client.create(resource, "default", config_map("kept"), Write())
        for ask in (
            client.get(resource, "default", name),
            client.delete(resource, "default", name, {}),
            client.patch(resource, "default", name, {}, Write()),
            client.replace(resource, "default", {"metadata": {"name": name}}, Write()),
            client.apply(resource, "default", {"metadata": {"name": name}}, Write()),
        ):
            with pytest.raises(BadRequest, match="resource name"):
                await ask
        if name:
            with pytest.raises(BadRequest, match="resource name"):
                await client.delete(resource, name, "kept", {})
        assert len(await client.objects(resource, Selection())) == 1

    against_world(tmp_path, test)


def test_apply_tells_who_holds_a_field_and_can_take_it(tmp_path):
    async def test(client):
        resource = await config_maps(client)
        await client.apply(resource, "default", config_map("a", k="1"), Write(manager="one"))
        mine = config_map("a", k="2")
        with pytest.raises(ApplyConflict) as caught:
            await client.apply(resource, "default", mine, Write(manager="two"))
        assert caught.value.managers == ("one",)
        dry = Write(manager="two", force=True, dry_run=True)
        assert (await client.apply(resource, "default", mine, dry)).document["data"] == {"k": "2"}
        assert (await client.get(resource, "default", "a"))["data"] == {"k": "1"}
        await client.apply(resource, "default", mine, Write(manager="two", force=True))
        assert (await client.get(resource, "default", "a"))["data"] == {"k": "2"}

    against_world(tmp_path, test)


def test_a_list_is_read_page_by_page_and_selected(tmp_path):
    async def test(client):
        resource = await config_maps(client)
        for number in range(7):
            document = config_map(f"m-{number}")
            document["metadata"]["labels"] = {"odd": str(number % 2)}
            await client.create(resource, "default", document, Write())
        everything = Selection(namespace="default")
        sizes = [len(page["items"]) async for page in client.pages(resource, everything, size=3)]
        assert sizes == [3, 3, 1]
        odd = await client.objects(resource, Selection(labels="odd=1"))
        assert [each["metadata"]["name"] for each in odd] == ["m-1", "m-3", "m-5"]
        assert {(each["apiVersion"], each["kind"]) for each in odd} == {("v1", "ConfigMap")}
        one = await client.objects(resource, Selection(fields="metadata.name=m-4"))
        assert len(one) == 1
        table = await client.page(resource, everything, form=clients.TABLE)
        assert (table["kind"], len(table["rows"])) == ("Table", 7)

    against_world(tmp_path, test)


def test_a_watch_tells_every_change_from_a_version_on(tmp_path):
    async def test(client):
        resource = await config_maps(client)
        since = (await client.page(resource, Selection()))["metadata"]["resourceVersion"]
        await client.create(resource, "default", config_map("a"), Write())
        await client.patch(resource, "default", "a", {"data": {"k": "1"}}, Write())
        watch = Watch(
            client, resource, Selection(), clock=client.transport._clock, entropy=SystemEntropy()
        )
        events = watch.events(since)
        async with asyncio.timeout(20):
            seen = [await anext(events), await anext(events)]
            await client.delete(resource, "default", "a", {})
            seen.append(await anext(events))
        await events.aclose()
        assert [event.type for event in seen] == [ADDED, MODIFIED, DELETED]
        versions = [int(event.version) for event in seen]
        assert versions == sorted(versions)

    against_world(tmp_path, test)


def test_a_version_that_is_not_kept_is_told(tmp_path):
    async def test(client):
        resource = await config_maps(client)
        watch = Watch(client, resource, Selection(), clock=Clock(), entropy=SystemEntropy())
        with pytest.raises(Expired):
            async with asyncio.timeout(20):
                await anext(watch.events("999999"))

    against_world(tmp_path, test)


def test_a_resource_is_known_by_all_its_names(tmp_path):
    async def test(client):
        resources = await client.resources()
        words = ("pcs", "podcliqueset", "PodCliqueSets", "podcliquesets.grove.io")
        assert {resources.named(word).kind for word in words} == {"PodCliqueSet"}
        assert resources.named("leases.v1.coordination.k8s.io").kind == "Lease"
        assert resources.named("events").group == ""
        assert resources.named("ev.events.k8s.io").group == "events.k8s.io"
        assert "scale" in resources.named("pclq").subresources
        assert {each.kind for each in resources.in_category("all")} >= {"Pod", "PodCliqueSet"}
        assert (
            resources.of("v1", "Pod").path("ns", "a", "log") == "/api/v1/namespaces/ns/pods/a/log"
        )
        with pytest.raises(NoSuchResource, match='did you mean "podcliqueset'):
            resources.named("podcliquset")
        with pytest.raises(NoSuchResource, match="Pod is served as v1"):
            resources.of("v2", "Pod")

    against_world(tmp_path, test)


def test_who_may_not_is_told(tmp_path):
    async def test(client):
        resource = await config_maps(client)
        assert await client.objects(resource, Selection()) == []
        with pytest.raises(Forbidden, match="read-only"):
            await client.create(resource, "default", config_map("a"), Write())

    against_world(tmp_path, test, token="some")


def test_nobody_is_told_anything(tmp_path):
    async def test(client):
        with pytest.raises(Unauthorized):
            await client.resources()
        assert (await client.raw("/version"))["major"] == "1"

    against_world(tmp_path, test, token="")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"authority": None}, "its certificate is not believed"),
        ({"server_name": "gpu-box"}, "its certificate is not believed"),
    ],
)
def test_a_server_that_is_not_believed_is_not_asked(tmp_path, given, told):
    async def test(client):
        with pytest.raises(Unreachable, match=told):
            await client.raw("/version")

    against_world(tmp_path, test, **given)


def test_verification_can_be_left_out(tmp_path):
    async def test(client):
        assert (await client.raw("/version"))["major"] == "1"

    against_world(tmp_path, test, authority=None, skip_verification=True)


def test_a_server_that_is_not_there_is_told():
    async def test():
        connection = Connection(server="http://127.0.0.1:9")
        async with Client(Transport(connection, Clock())) as client:
            with pytest.raises(Unreachable, match=r"^http://127\.0\.0\.1:9: connection refused$"):
                await client.raw("/version")

    asyncio.run(test())


def scripted(test, *answers):
    """Run a test against a server that gives these answers in turn, and notes what it is asked."""
    asked = []

    async def answer(request):
        asked.append((request.method, request.path_qs))
        given = answers[min(len(asked), len(answers)) - 1]
        return given() if not asyncio.iscoroutinefunction(given) else await given(request)

    async def run():
        app = web.Application()
        app.router.add_route("*", "/{rest:.*}", answer)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = site._server.sockets[0].getsockname()[1]
        clock = Clock()
        transport = Transport(Connection(server=f"http://127.0.0.1:{port}"), clock)
        try:
            async with Client(transport) as client:
                await test(client, clock)
        finally:
            await runner.cleanup()

    asyncio.run(run())
    return asked


def refused(code, **headers):
    return lambda: web.json_response({"kind": "Status", "code": code}, status=code, headers=headers)


def fine():
    return web.json_response({"kind": "Fine"})


@pytest.mark.parametrize("code", [429, 503])
def test_what_the_server_did_not_do_is_asked_again_when_it_says(code):
    async def test(client, clock):
        assert (await client.transport.request("POST", "/x", body=b"{}")).document["kind"] == "Fine"
        assert clock.slept == [timedelta(seconds=3)] * 2

    later = refused(code, **{"Retry-After": "3"})
    assert scripted(test, later, later, fine) == [("POST", "/x")] * 3


def test_it_is_not_asked_for_ever():
    async def test(client, _clock):
        with pytest.raises(TooManyRequests):
            await client.raw("/x")

    assert len(scripted(test, refused(429, **{"Retry-After": "1"}))) == 5


@pytest.mark.parametrize("code", [500, 503, 504])
def test_what_may_have_been_done_is_not_repeated(code):
    async def test(client, _clock):
        with pytest.raises(Exception) as caught:  # noqa: PT011
            await client.transport.request("POST", "/x", body=b"{}")
        assert caught.value.code == code or isinstance(caught.value, Internal)

    assert len(scripted(test, refused(code))) == 1


def test_an_answer_that_is_no_status_is_told():
    async def test(client, _clock):
        with pytest.raises(NotFound, match="GET /x: 404 Not Found: <html> nothing here </html>"):
            await client.raw("/x")

    scripted(test, lambda: web.Response(status=404, text="<html>\nnothing here\n</html>"))


@pytest.mark.parametrize("text", ["", "{", "[]"])
def test_an_answer_that_is_no_object_is_told(text):
    async def test(client, _clock):
        with pytest.raises(Unreachable, match="GET /x: the answer is"):
            await client.raw("/x")

    scripted(test, lambda: web.Response(text=text))


def test_warnings_are_passed_on():
    async def test(client, _clock):
        heard = []
        client.transport._on_warning = heard.append
        answer = await client.transport.request("GET", "/x")
        assert heard == list(answer.warnings) == ['unknown field "a"', "another"]

    def warned():
        answer = fine()
        answer.headers.add("Warning", '299 - "unknown field \\"a\\""')
        answer.headers.add("Warning", '299 - "another"')
        return answer

    scripted(test, warned)


def event(kind, version):
    document = {"metadata": {"name": "a", "resourceVersion": version}}
    return json.dumps({"type": kind, "object": document}).encode() + b"\n"


def stream(*parts):
    async def answer(request):
        response = web.StreamResponse()
        await response.prepare(request)
        for part in parts:
            await response.write(part)
        return response

    return answer


def test_a_broken_watch_goes_on_where_it_stopped():
    """Cut in the middle of an event, then ended after a bookmark, then refused for a moment."""

    async def test(client, _clock):
        resource = clients.Resource(group="", version="v1", plural="configmaps", kind="ConfigMap")
        watch = Watch(client, resource, Selection(), clock=Clock(), entropy=SystemEntropy())
        events = watch.events("5")
        async with asyncio.timeout(20):
            seen = [await anext(events) for _ in range(4)]
        await events.aclose()
        assert [each.version for each in seen] == ["6", "7", "9", "10"]

    cut = event("MODIFIED", "7")
    asked = scripted(
        test,
        stream(event("ADDED", "6"), cut[:20]),
        stream(cut, event("BOOKMARK", "9")),
        refused(503),
        stream(event("MODIFIED", "10")),
    )
    since = [query.partition("resourceVersion=")[2].partition("&")[0] for _, query in asked]
    assert since[:4] == ["5", "6", "9", "9"]


def test_large_events_and_many_in_one_piece_are_read():
    async def test(client, _clock):
        resource = clients.Resource(group="", version="v1", plural="configmaps", kind="ConfigMap")
        watch = Watch(client, resource, Selection(), clock=Clock(), entropy=SystemEntropy())
        events = watch.events("1")
        async with asyncio.timeout(20):
            seen = [await anext(events) for _ in range(3)]
        await events.aclose()
        assert [each.version for each in seen] == ["2", "3", "4"]
        assert len(seen[1].object["data"]["k"]) == 1_000_000

    large = {"metadata": {"resourceVersion": "3"}, "data": {"k": "x" * 1_000_000}}
    line = json.dumps({"type": "ADDED", "object": large}).encode() + b"\n"
    scripted(test, stream(event("ADDED", "2") + line + event("ADDED", "4")))


def test_a_watch_that_is_told_410_ends():
    async def test(client, _clock):
        resource = clients.Resource(group="", version="v1", plural="configmaps", kind="ConfigMap")
        watch = Watch(client, resource, Selection(), clock=Clock(), entropy=SystemEntropy())
        with pytest.raises(Expired, match="too old"):
            await anext(watch.events("1"))

    status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
    line = json.dumps({"type": "ERROR", "object": status}).encode() + b"\n"
    scripted(test, stream(line))


def test_a_watch_gives_up_when_it_is_told_to():
    async def test(client, clock):
        resource = clients.Resource(group="", version="v1", plural="configmaps", kind="ConfigMap")
        watch = Watch(
            client, resource, Selection(), clock=clock, entropy=SystemEntropy(), failures_max=3
        )
        with contextlib.suppress(StopAsyncIteration), pytest.raises(Unreachable):
            await anext(watch.events("1"))
        first, second = clock.slept
        assert timedelta(milliseconds=200) <= first <= timedelta(milliseconds=400)
        assert timedelta(milliseconds=400) <= second <= timedelta(milliseconds=800)

    assert len(scripted(test, stream())) == 3


def test_a_server_without_aggregated_discovery_is_understood():
    lists = {
        "/api": {"kind": "APIVersions", "versions": ["v1"]},
        "/apis": {
            "kind": "APIGroupList",
            "groups": [
                {
                    "name": "apps",
                    "preferredVersion": {"groupVersion": "apps/v1"},
                    "versions": [{"groupVersion": "apps/v1beta1"}, {"groupVersion": "apps/v1"}],
                }
            ],
        },
        "/api/v1": {
            "groupVersion": "v1",
            "resources": [
                {"name": "pods", "kind": "Pod", "namespaced": True, "shortNames": ["po"]}
            ],
        },
        "/apis/apps/v1": {
            "groupVersion": "apps/v1",
            "resources": [
                {"name": "deployments", "kind": "Deployment", "namespaced": True},
                {"name": "deployments/scale", "kind": "Scale", "namespaced": True},
            ],
        },
        "/apis/apps/v1beta1": {
            "groupVersion": "apps/v1beta1",
            "resources": [{"name": "deployments", "kind": "Deployment", "namespaced": True}],
        },
    }

    async def test(client, _clock):
        resources = await client.resources()
        assert resources.named("po").kind == "Pod"
        found = resources.named("deployments")
        assert (found.version, found.subresources) == ("v1", ("scale",))

    async def answer(request):
        return web.json_response(lists[request.path])

    scripted(test, answer)
