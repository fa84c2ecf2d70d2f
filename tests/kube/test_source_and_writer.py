"""The ports over HTTP, where the server or the way to it is bad. What is good is the contract's."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from datetime import timedelta

import pytest
from aiohttp import web

from spinney.api.kinds import KINDS
from spinney.app.real import SystemClock
from spinney.engine.verdicts import Verdict, judged
from spinney.kube import transport as transports
from spinney.kube.kubeconfig import Connection
from spinney.kube.source import HttpSource
from spinney.kube.transport import Transport
from spinney.kube.writer import HttpWriter
from spinney.meta.errors import BadRequest, DecodeError, Expired, Invalid, TooManyRequests
from spinney.meta.references import GroupKind, Precondition, Ref
from spinney.registry.world import open_world
from spinney.store.journals import MemoryJournal
from spinney.store.store import Store
from spinney.testing.entropy import SeededEntropy
from tests.kube import over_http
from tests.kube.test_client import config_map, refused, scripted

CONFIG_MAP = GroupKind(group="", kind="ConfigMap")
READ = [kind for kind in KINDS.values() if kind.stored_as is None]


def ref(name="a", namespace="default"):
    return Ref(kind=CONFIG_MAP, namespace=namespace, name=name)


def document(name="a", namespace="default"):
    found = config_map(name)
    found["metadata"]["namespace"] = namespace
    return found


def writer_of(transport):
    return HttpWriter(transport, READ, "spinney")


def calls_of(writer, target):
    """Every way to write an object."""
    made = document(target.name, target.namespace)
    pod = Ref(kind=GroupKind(group="", kind="Pod"), namespace=target.namespace, name=target.name)
    return [
        lambda: writer.apply(made, force=True),
        lambda: writer.patch(target, {}, Precondition()),
        lambda: writer.put_status(target, {}, "1"),
        lambda: writer.delete(target, Precondition(), grace_seconds=None, propagation="Background"),
        lambda: writer.evict(pod, Precondition()),
        lambda: writer.bind(pod, "one", Precondition()),
    ]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        pytest.param({}, "NoAnswer", id="nobody there"),
        pytest.param({"token_file": "/nonexistent/token"}, "Unauthorized", id="no token"),
    ],
)
def test_what_cannot_be_asked_now_is_for_later(given, reason):
    """The engine tries again; nothing of it ends a controller or an informer."""

    async def main():
        connection = Connection(server="http://127.0.0.1:9", **given)
        transport = Transport(connection, SystemClock())
        writer, source = writer_of(transport), HttpSource(transport, READ)
        asks = [
            *calls_of(writer, ref()),
            lambda: writer.create(document()),
            lambda: source.list(CONFIG_MAP, limit=10),
            lambda: anext(source.watch(CONFIG_MAP, "1")),
        ]
        for ask in asks:
            with pytest.raises(Exception) as caught:  # noqa: PT011 - what it is, is judged
                await ask()
            failure = judged(caught.value)
            assert (failure.verdict, failure.reason) == (Verdict.LATER, reason)
        await transport.close()

    asyncio.run(main())


@pytest.mark.parametrize("code", [429, 503])
def test_a_write_is_sent_once_whatever_the_server_says(code):
    """Who was let to write may not be by the time the server has asked for."""

    async def test(client, clock):
        with pytest.raises(Exception) as caught:  # noqa: PT011 - what it is, is judged
            await writer_of(client.transport).create(document())
        failure = judged(caught.value)
        assert (failure.verdict, failure.retry_after) == (Verdict.LATER, timedelta(seconds=3))
        assert clock.slept == []

    asked = scripted(test, refused(code, **{"Retry-After": "3"}))
    assert [method for method, _ in asked] == ["POST"]


def test_an_answer_that_is_of_no_object_is_no_answer():
    async def test(client, _clock):
        with pytest.raises(OSError, match="names no uid"):
            await writer_of(client.transport).create(document())

    scripted(test, lambda: web.json_response({"kind": "Fine"}))


def test_what_is_invalid_besides_the_uid_stays_so():
    causes = [{"field": "data", "reason": "FieldValueInvalid", "message": "no"}]
    status = {"kind": "Status", "code": 422, "reason": "Invalid", "details": {"causes": causes}}

    async def test(client, _clock):
        with pytest.raises(Invalid):
            await writer_of(client.transport).patch(ref(), {}, Precondition(uid="u"))

    scripted(test, lambda: web.json_response(status, status=422))


@pytest.mark.parametrize(
    "target", [ref(""), ref("."), ref(".."), ref("a/b"), ref("a%2fb"), ref(namespace=".."),
               ref(namespace=""), ref(namespace="a/b")]
)  # fmt: skip
def test_a_write_never_leads_elsewhere(target):
    async def test(client, _clock):
        writer = writer_of(client.transport)
        for call in calls_of(writer, target):
            with pytest.raises(BadRequest):
                await call()
        if target.name == "a":
            with pytest.raises(BadRequest):
                await writer.create(document(target.name, target.namespace))

    assert scripted(test, refused(500)) == []


def told(*lines):
    text = "".join(json.dumps(line) + "\n" for line in lines)
    return lambda: web.Response(text=text, content_type="application/json")


def expired():
    status = {"kind": "Status", "code": 410, "reason": "Gone", "message": "too old"}
    return {"type": "ERROR", "object": status}


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (told(expired()), Expired),
        (refused(410), Expired),
        (told({"type": "MOVED", "object": document()}), DecodeError),
        (told({"object": document()}), OSError),
        (lambda: web.Response(text="<html>\n"), OSError),
        (refused(429), TooManyRequests),
    ],
)
def test_a_watch_raises_what_an_informer_knows_how_to_take(answer, error):
    async def test(client, _clock):
        with pytest.raises(error):
            await anext(HttpSource(client.transport, READ).watch(CONFIG_MAP, "1"))

    scripted(test, answer)


def test_a_watch_ends_with_its_request_and_is_not_taken_up_again():
    async def test(client, _clock):
        events = HttpSource(client.transport, READ).watch(CONFIG_MAP, "1")
        assert [event.ref async for event in events] == [ref()]

    object_ = document()
    object_["metadata"]["resourceVersion"] = "2"
    asked = scripted(test, told({"type": "ADDED", "object": object_}))
    assert len(asked) == 1
    assert "resourceVersion=1" in asked[0][1]
    assert "allowWatchBookmarks=true" in asked[0][1]


def test_an_item_is_given_the_kind_and_version_a_list_leaves_out():
    """So a cluster lists what Kubernetes itself has."""
    item = {"metadata": {"name": "a", "namespace": "default", "resourceVersion": "2"}}
    metadata = {"resourceVersion": "3", "continue": "more"}

    async def test(client, _clock):
        page = await HttpSource(client.transport, READ).list(CONFIG_MAP, limit=10, token="next")
        assert page.items == ({"apiVersion": "v1", "kind": "ConfigMap", **item},)
        assert (page.resource_version, page.token) == ("3", "more")

    listed = {"kind": "ConfigMapList", "metadata": metadata, "items": [item]}
    assert scripted(test, lambda: web.json_response(listed)) == [
        ("GET", "/api/v1/configmaps?limit=10&continue=next")
    ]


def test_an_item_that_is_no_object_is_told():
    async def test(client, _clock):
        with pytest.raises(DecodeError, match="configmaps"):
            await HttpSource(client.transport, READ).list(CONFIG_MAP, limit=10)

    scripted(test, lambda: web.json_response({"kind": "ConfigMapList", "items": ["a"]}))


def test_watches_leave_room_for_requests():
    """A watch lasts; as many as there are kinds must not keep a write waiting."""

    async def main():
        clock = SystemClock()
        store = await Store.open(MemoryJournal(), clock)
        try:
            world = await open_world(store, clock, SeededEntropy(1))
            async with over_http.served(world, clock) as transport, AsyncExitStack() as stack:
                source, writer = HttpSource(transport, READ), writer_of(transport)
                watches = []
                for _ in range(transports.IN_FLIGHT_MAX + 10):
                    watch = source.watch(CONFIG_MAP, str(store.version))
                    stack.push_async_callback(watch.aclose)
                    watches.append(asyncio.create_task(anext(watch)))
                async with asyncio.timeout(20):
                    await writer.create(document())
                    for task in watches:
                        assert (await task).ref == ref()
        finally:
            await store.close()

    over_http.run(main())
