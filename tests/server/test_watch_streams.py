"""Watches: what is told equals what happened, whoever watches, from wherever, however slowly."""

from __future__ import annotations

import asyncio
import contextlib
import json

import pytest
from served import ADMIN, CONFIGS, MERGE, PODS, TABLE, config, minutes, pod, story

from spinney.store.store import Limits


async def changes(client):
    """Make three changes of one object and one of another."""
    await client.post(CONFIGS, config("a", {"n": "1"}))
    await client.do("PATCH", f"{CONFIGS}/a", {"data": {"n": "2"}}, content_type=MERGE)
    await client.post(CONFIGS, config("b"))
    await client.do("DELETE", f"{CONFIGS}/a")


def told(events):
    return [(event["type"], event["object"]["metadata"]["name"]) for event in events]


def asked_for(path):
    """Return a request as bytes."""
    return f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ADMIN}\r\n\r\n".encode()


STORY = [("ADDED", "a"), ("MODIFIED", "a"), ("ADDED", "b"), ("DELETED", "a")]


@story
async def test_changes_are_told_as_they_happen(client):
    version = client.store.version
    async with client.watch(f"{CONFIGS}?watch=1&resourceVersion={version}") as watch:
        assert watch.status == 200
        await changes(client)
        events = await watch.take(4)
        assert told(events) == STORY
        versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
        assert versions == sorted(versions)
        assert client.server.watch_count == 1


@pytest.mark.parametrize("seen", range(5))
@story
async def test_a_watch_resumes_with_exactly_what_it_missed(client, seen):
    start = client.store.version
    async with client.watch(f"{CONFIGS}?watch=1&resourceVersion={start}") as watch:
        await changes(client)
        whole = await watch.take(4)
    last = whole[seen - 1]["object"]["metadata"]["resourceVersion"] if seen else start
    async with client.watch(f"{CONFIGS}?watch=1&resourceVersion={last}") as watch:
        assert await watch.take(4 - seen) == whole[seen:]


@pytest.mark.parametrize("query", ["watch=1", "watch=1&resourceVersion=0"])
@story
async def test_without_a_version_it_begins_with_what_there_is(client, query):
    await changes(client)
    async with client.watch(f"{CONFIGS}?{query}") as watch:
        assert told(await watch.take(1)) == [("ADDED", "b")]
        await client.post(CONFIGS, config("c"))
        assert told(await watch.take(1)) == [("ADDED", "c")]


@story
async def test_a_list_may_be_streamed_and_then_watched(client):
    await changes(client)
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    async with client.watch(f"{CONFIGS}?{query}&allowWatchBookmarks=true") as watch:
        assert told(await watch.take(1)) == [("ADDED", "b")]
        end = await watch.next()
        assert end["type"] == "BOOKMARK"
        assert end["object"]["metadata"] == {
            "resourceVersion": str(client.store.version),
            "creationTimestamp": None,
            "annotations": {"k8s.io/initial-events-end": "true"},
        }
        await client.post(CONFIGS, config("c"))
        assert told(await watch.take(1)) == [("ADDED", "c")]


@story
async def test_what_begins_or_ceases_to_match_is_added_or_deleted(client):
    version = client.store.version
    query = f"watch=1&resourceVersion={version}&labelSelector=app%3Dx"
    async with client.watch(f"{CONFIGS}?{query}") as watch:
        await client.post(CONFIGS, config("a", labels={"app": "y"}))
        for label in ("x", "x", "y", "x"):
            change = {"metadata": {"labels": {"app": label}}, "data": {"n": label}}
            await client.do("PATCH", f"{CONFIGS}/a", change, content_type=MERGE)
        change = {"data": {"n": "more"}}
        await client.do("PATCH", f"{CONFIGS}/a", change, content_type=MERGE)
        events = await watch.take(4)
        assert [event["type"] for event in events] == ["ADDED", "DELETED", "ADDED", "MODIFIED"]
        left = events[1]["object"]
        assert left["metadata"]["labels"] == {"app": "x"}, "as it was when it still matched"
        before = events[0]["object"]["metadata"]["resourceVersion"]
        assert int(left["metadata"]["resourceVersion"]) > int(before)


@story
async def test_a_single_object_is_watched_by_its_name(client):
    version = client.store.version
    path = f"/api/v1/watch/namespaces/default/configmaps/b?resourceVersion={version}"
    field = f"{CONFIGS}?watch=1&resourceVersion={version}&fieldSelector=metadata.name%3Db"
    for each in (path, field):
        async with client.watch(each) as watch:
            if client.store.version == version:
                await changes(client)
            assert told(await watch.take(1)) == [("ADDED", "b")]


@story
async def test_tables_are_watched_with_their_columns_told_once(client):
    version = client.store.version
    async with client.watch(f"{PODS}?watch=1&resourceVersion={version}", Accept=TABLE) as watch:
        for name in "ab":
            await client.post(PODS, pod(name))
        first, second = await watch.take(2)
        assert first["object"]["kind"] == "Table"
        assert first["object"]["columnDefinitions"][0]["name"] == "Name"
        assert second["object"]["columnDefinitions"] is None
        assert second["object"]["rows"][0]["cells"][0] == "b"


@story
async def test_bookmarks_come_with_time_and_where_something_happened_elsewhere(client):
    version = client.store.version
    query = f"watch=1&allowWatchBookmarks=true&resourceVersion={version}"
    async with client.watch(f"{PODS}?{query}") as watch:
        await client.post(CONFIGS, config("a"))
        client.clock.advance(minutes(1))
        mark = await watch.next()
        assert mark["type"] == "BOOKMARK"
        assert mark["object"]["kind"] == "Pod"
        assert mark["object"]["metadata"]["resourceVersion"] == str(client.store.version)


@story
async def test_a_watch_ends_when_its_time_is_over(client):
    query = (
        f"watch=1&allowWatchBookmarks=true&timeoutSeconds=30&resourceVersion={client.store.version}"
    )
    async with client.watch(f"{PODS}?{query}") as watch:
        await client.post(PODS, pod())
        assert told(await watch.take(1)) == [("ADDED", "web")]
        client.clock.advance(minutes(1))
        rest = []
        while (event := await watch.next()) is not None:
            rest.append(event["type"])
        assert set(rest) == {"BOOKMARK"}
    assert client.server.watch_count == 0


@story(limits=Limits(history_events_max=8))
async def test_a_version_that_is_compacted_away_is_told_in_the_stream(client):
    for number in range(20):
        await client.post(CONFIGS, config(f"c{number}"))
    async with client.watch(f"{CONFIGS}?watch=1&resourceVersion=2") as watch:
        assert watch.status == 200
        event = await watch.next()
        assert event["type"] == "ERROR"
        assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")
        assert await watch.next() is None


@story
async def test_a_version_that_is_not_there_yet_is_told_in_the_stream(client):
    async with client.watch(f"{CONFIGS}?watch=1&resourceVersion=99999") as watch:
        event = await watch.next()
        assert event["object"]["code"] == 410


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("watch=1&resourceVersion=x", 400),
        ("watch=1&resourceVersionMatch=Exact", 422),
        ("watch=1&fieldSelector=spec.nothing%3D1", 400),
        ("watch=1&labelSelector=(", 400),
    ],
)
@story
async def test_what_is_wrong_with_a_watch_is_told_before_it_begins(client, query, status):
    answer = await client.get(f"{PODS}?{query}")
    assert (answer.status, answer.json["kind"]) == (status, "Status")


@story(backlog_bytes_max=200_000)
async def test_a_client_that_does_not_read_is_cut_and_loses_nothing_by_listing(client):
    """A dashboard in a sleeping laptop must not fill the server's memory."""
    reader, writer = await asyncio.open_connection(client.host, int(client.port), limit=1)
    path = f"{CONFIGS}?watch=1&resourceVersion={client.store.version}"
    writer.write(
        f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ADMIN}\r\n\r\n".encode()
    )
    await reader.readexactly(20)
    while not client.server.watch_count:
        await client.get("/version")
    for number in range(2000):
        await client.post(CONFIGS, config("big", {"x": "y" * 100_000, "n": str(number)}))
        await client.do("DELETE", f"{CONFIGS}/big")
        if client.server.watches_cut:
            break
    assert client.server.watches_cut == 1
    assert client.server.watch_count == 0
    await client.post(CONFIGS, config("last"))
    names = [item["metadata"]["name"] for item in (await client.get(CONFIGS)).json["items"]]
    assert names == ["last"]
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


@story
async def test_a_long_absence_is_caught_up_with(client):
    """More was missed than may wait for a client: it is written as fast as the client reads."""
    version = client.store.version
    for number in range(60):
        await client.post(CONFIGS, config(f"c{number:02}", {"x": "y" * 60_000}))
    async with client.watch(f"{CONFIGS}?watch=1&resourceVersion={version}") as watch:
        events = await watch.take(60)
        assert told(events) == [("ADDED", f"c{number:02}") for number in range(60)]
        await client.post(CONFIGS, config("z"))
        assert told(await watch.take(1)) == [("ADDED", "z")]


@story
async def test_a_thousand_watchers_are_told_the_same(client):
    version = client.store.version
    path = f"{CONFIGS}?watch=1&resourceVersion={version}"
    asked = asked_for(path)
    connections = []
    for _ in range(20):
        connections += await asyncio.gather(
            *(asyncio.open_connection(client.host, int(client.port)) for _ in range(50))
        )
    for _, writer in connections:
        writer.write(asked)
    for reader, _ in connections:
        await reader.readuntil(b"\r\n\r\n")
    while client.server.watch_count < 1000:
        await client.get("/version")
    await changes(client)
    lines = set()
    for reader, _ in connections:
        lines.add(tuple([await _chunk(reader) for _ in range(4)]))
    assert len(lines) == 1
    assert told([json.loads(line) for line in lines.pop()]) == STORY
    for _, writer in connections:
        writer.close()
    for _, writer in connections:
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


async def _chunk(reader):
    size = int((await reader.readline()).strip(), 16)
    body = await reader.readexactly(size)
    await reader.readexactly(2)
    return body


@story
async def test_a_client_that_goes_away_is_forgotten(client):
    attached = client.store.statistics().watchers
    async with client.watch(f"{CONFIGS}?watch=1&resourceVersion={client.store.version}"):
        while client.store.statistics().watchers == attached:
            await client.get("/version")
    for _ in range(200):
        if not client.server.watch_count:
            break
        await client.post(CONFIGS, config("a"))
        await client.do("DELETE", f"{CONFIGS}/a")
    assert client.server.watch_count == 0
    assert client.store.statistics().watchers == attached


@story
async def test_a_client_that_leaves_in_silence_is_forgotten_within_a_minute(client):
    async with client.watch(f"{CONFIGS}?watch=1&resourceVersion={client.store.version}"):
        pass
    for _ in range(20):
        if not client.server.watch_count:
            break
        client.clock.advance(minutes(1))
        await client.get("/version")
    assert client.server.watch_count == 0


@story
async def test_open_watches_end_cleanly_when_the_server_stops(client):
    path = f"{CONFIGS}?watch=1&resourceVersion={client.store.version}"
    async with client.watch(path) as one, client.watch(path) as other:
        await changes(client)
        assert len(await one.take(4)) == 4
        async with asyncio.timeout(10):
            await client.server.stop()
        assert await one.next() is None
        assert len(await other.take(4)) == 4
        assert await other.next() is None
