"""Logs: which part of what a container printed a client is given, and when a stream ends."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import aiohttp
import pytest

from tests.server import manned as ground
from tests.server.manned import ENDED, RUNNING, manned, place, until, waiting
from tests.server.served import PODS, READER, pod, story

SINCE = "2025-12-31T23:59:00Z"


async def talking(client, machine, name="web"):
    """Return the log of a pod that printed a line a second."""
    log = machine.log(await place(client, name))
    for number in range(5):
        log.add(f"line {number}".encode(), client.clock.now() - timedelta(seconds=4 - number))
    return log


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", "line 0\nline 1\nline 2\nline 3\nline 4\n"),
        ("?container=main", "line 0\nline 1\nline 2\nline 3\nline 4\n"),
        ("?tailLines=2", "line 3\nline 4\n"),
        ("?tailLines=0", ""),
        ("?sinceSeconds=1", "line 3\nline 4\n"),
        ("?sinceTime=2025-12-31T23:59:58Z", "line 2\nline 3\nline 4\n"),
        ("?limitBytes=10", "line 0\nlin"),
        ("?tailLines=1&timestamps=true", "2026-01-01T00:00:00Z line 4\n"),
        ("?tailLines=1&stream=All", "line 4\n"),
        ("?sinceSeconds=99999999999999999", "line 0\nline 1\nline 2\nline 3\nline 4\n"),
    ],
)
@manned
async def test_a_part_of_a_log(client, machine, query, expected):
    await talking(client, machine)
    answer = await client.get(f"{PODS}/web/log{query}")
    assert (answer.status, answer.body.decode()) == (200, expected)
    assert answer.headers["Content-Type"].startswith("text/plain")
    assert (await client.get(f"{PODS}/web/log{query}", token=READER)).status == 200


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        ("tailLines=-1", 422, "tailLines: Invalid value: -1: must be greater than or equal to 0"),
        ("limitBytes=0", 422, "limitBytes: Invalid value: 0: must be greater than 0"),
        ("sinceSeconds=0", 422, "sinceSeconds: Invalid value: 0: must be greater than 0"),
        (f"sinceSeconds=1&sinceTime={SINCE}", 422, "at most one of `sinceTime` or `sinceSeconds`"),
        ("stream=Stderr", 422, 'stream: Unsupported value: "Stderr": supported values: "All"'),
        ("tailLines=many", 400, 'parsing "many": invalid syntax'),
        ("sinceTime=soon", 400, "sinceTime"),
        ("container=other", 400, "container other is not valid for pod web"),
        ("previous=true", 400, 'previous terminated container "main" in pod "web" not found'),
    ],
)
@manned
async def test_what_is_no_part_of_a_log(client, machine, query, code, message):
    await talking(client, machine)
    answer = await client.get(f"{PODS}/web/log?{query}")
    assert (answer.status, answer.json["kind"]) == (code, "Status")
    assert message in answer.json["message"]


@manned
async def test_which_container_is_meant_must_be_said_where_there_are_many(client, machine):
    uid = await place(client, containers=("one", "two"))
    machine.log(uid, "two").add(b"from two", client.clock.now())
    answer = await client.get(f"{PODS}/web/log")
    assert answer.status == 400
    assert answer.json["message"] == (
        "a container name must be specified for pod web, choose one of: [one two]"
    )
    machine.logs_of[uid, "two"][0].end()
    assert (await client.get(f"{PODS}/web/log?container=two")).body == b"from two\n"


@manned
async def test_an_annotation_says_which_container_is_meant(client, machine):
    annotations = {"kubectl.kubernetes.io/default-container": "two"}
    uid = await place(client, containers=("one", "two"), annotations=annotations)
    machine.log(uid, "two").add(b"from two", client.clock.now())
    assert (await client.get(f"{PODS}/web/log")).body == b"from two\n"


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({}, 'container "main" in pod "web" is not available'),
        (
            waiting("ContainerCreating"),
            'container "main" in pod "web" is waiting to start: ContainerCreating',
        ),
        (
            waiting("ImagePullBackOff"),
            'container "main" in pod "web" is waiting to start: trying and failing to pull image',
        ),
    ],
)
@manned
async def test_a_container_that_has_not_begun_has_no_log(client, machine, state, message):
    await place(client, state=state)
    answer = await client.get(f"{PODS}/web/log?follow=true")
    assert (answer.status, answer.json["reason"]) == (400, "BadRequest")
    assert answer.json["message"] == message


@pytest.mark.parametrize(
    ("state", "query", "expected"),
    [
        (RUNNING, "", "second\n"),
        (RUNNING, "?previous=true", "first\n"),
        (waiting("CrashLoopBackOff"), "", "second\n"),
        (waiting("CrashLoopBackOff"), "?previous=true", "second\n"),
    ],
)
@manned
async def test_the_log_of_the_attempt_before(client, machine, state, query, expected):
    """A container in back-off shows, asked either way, what it did last."""
    uid = await place(client, state=state, last=ENDED)
    for line in (b"first", b"second"):
        log = machine.log(uid)
        log.add(line, client.clock.now())
        log.end()
    assert (await client.get(f"{PODS}/web/log{query}")).body.decode() == expected


@manned
async def test_a_log_is_followed_until_its_container_ends(client, machine):
    log = await talking(client, machine)
    async with client.ask("GET", f"{PODS}/web/log?follow=true&tailLines=1") as response:
        assert await response.content.readline() == b"line 4\n"
        log.add(b"line 5", client.clock.now())
        assert await response.content.readline() == b"line 5\n"
        log.end()
        assert await response.content.read() == b""


@manned
async def test_a_silent_log_is_answered_at_once(client, machine):
    machine.log(await place(client))
    async with client.ask("GET", f"{PODS}/web/log?follow=true") as response:
        assert response.status == 200
        assert client.server.conversation_count == 1


@manned
async def test_a_client_that_leaves_ends_its_stream(client, machine):
    log = machine.log(await place(client))
    async with client.ask("GET", f"{PODS}/web/log?follow=true") as response:
        assert response.status == 200
        assert log.readers == 1
        response.close()
    await ground.nothing_left(client, machine)
    assert log.readers == 0


@manned
async def test_a_pod_that_is_gone_ends_its_stream(client, machine, monkeypatch):
    """Though its node says nothing: it may be gone too."""
    monkeypatch.setattr("spinney.server.lifetimes.LINGER_SECONDS", 0)
    log = await talking(client, machine)
    await talking(client, machine, "other")
    async with client.ask("GET", f"{PODS}/web/log?follow=true&tailLines=1") as response:
        assert await response.content.readline() == b"line 4\n"
        await client.do("DELETE", f"{PODS}/other", {"gracePeriodSeconds": 0})
        log.add(b"line 5", client.clock.now())
        assert await response.content.readline() == b"line 5\n"
        await client.do("DELETE", f"{PODS}/web", {"gracePeriodSeconds": 0})
        assert await response.content.read() == b""


@manned
async def test_a_server_that_stops_cuts_what_is_followed(client, machine):
    await talking(client, machine)
    async with client.ask("GET", f"{PODS}/web/log?follow=true&tailLines=1") as response:
        assert await response.content.readline() == b"line 4\n"
        await client.server.stop()
        with pytest.raises(aiohttp.ClientError):
            await response.content.read()


@manned(stall_seconds=0.05)
async def test_a_client_that_reads_nothing_is_cut(client, machine):
    """What it has not read is held back in the container's log, not in the server."""
    log = machine.log(await place(client))
    for _ in range(20_000):
        log.add(b"x" * 1000, client.clock.now())
    async with client.ask("GET", f"{PODS}/web/log?follow=true") as response:
        assert response.status == 200
        await ground.nothing_left(client, machine)
        assert log.readers == 0


@manned
async def test_a_node_that_cannot_be_reached_is_named(client, machine):
    await talking(client, machine)
    machine.unreachable = 'the agent of node "bench" is not connected'
    answer = await client.get(f"{PODS}/web/log")
    assert (answer.status, answer.json["message"]) == (503, machine.unreachable)


@manned
async def test_a_log_that_is_no_more_is_not_found(client, machine):
    await place(client)
    answer = await client.get(f"{PODS}/web/log")
    assert (answer.status, answer.json["reason"]) == (404, "NotFound")


@manned
async def test_a_pod_without_a_node_has_an_empty_log(client, machine):
    await client.post(PODS, pod())
    assert (await client.get(f"{PODS}/web/log")).body == b""
    assert (await client.get(f"{PODS}/web/log?container=other")).status == 400
    assert (await client.get(f"{PODS}/absent/log")).status == 404
    assert (await client.post(f"{PODS}/web/log", {})).status == 405


@manned
async def test_no_more_is_followed_than_can_be(client, machine, monkeypatch):
    monkeypatch.setattr("spinney.server.lifetimes.CONVERSATIONS_MAX", 1)
    machine.log(await place(client))
    async with client.ask("GET", f"{PODS}/web/log?follow=true") as response:
        assert response.status == 200
        answer = await client.get(f"{PODS}/web/log")
        assert (answer.status, answer.headers["Retry-After"]) == (429, "1")


@story
async def test_without_nodes_nothing_is_answered(client):
    assert client.clock.now() == datetime(2026, 1, 1, tzinfo=UTC)
    assert (await client.get("/apis/metrics.k8s.io/v1beta1/nodes")).status == 404
    assert (await client.get("/apis/metrics.k8s.io")).status == 404


@manned
async def test_many_follow_one_log(client, machine):
    log = machine.log(await place(client))

    async def follow():
        async with client.ask("GET", f"{PODS}/web/log?follow=true") as response:
            return await response.content.read()

    following = [asyncio.create_task(follow()) for _ in range(50)]
    await until(lambda: log.readers == 50)
    log.add(b"told to all", client.clock.now())
    log.end()
    assert await asyncio.gather(*following) == [b"told to all\n"] * 50
