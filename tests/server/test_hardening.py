"""Bad input: whatever is sent, there is an answer, it is no 500, and the next one is served."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import gzip
import io
import json
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from served import ADMIN, CONFIGS, MERGE, PODS, config, pod, served, story

from spinney.server import bodies, connections, paths

HEAD = f"Host: x\r\nAuthorization: Bearer {ADMIN}\r\n"


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /%zz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nBad Header\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X-Y: z\r\n" * 5000 + b"\r\n",
        b"GET http://other/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        bytes(range(256)) * 8,
        b"GET / HTTP/1.1\r\nHost: x\r\n\x00\x01: y\r\n\r\n",
    ],
)
@story(header_seconds=0.2)
async def test_what_is_no_http_is_refused(client, sent):
    answer = await client.raw(sent)
    assert answer == b"" or answer.split(b" ", 2)[1] in (b"400", b"401", b"404"), answer
    assert (await client.get("/healthz")).status == 200


@story
async def test_a_request_line_of_its_longest_is_answered(client):
    """A list of a thousand names as a label selector is one line."""
    selector = "app%20in%20(" + ",".join(f"name-{number}" for number in range(1500)) + ")"
    assert (await client.get(f"{PODS}?labelSelector={selector}")).status == 200


@story
async def test_a_body_beyond_the_limit_is_refused_however_it_comes(client):
    big = b'{"data":{"x":"' + b"y" * bodies.BYTES_MAX + b'"}}'
    answer = await client.post(CONFIGS, io.BytesIO(big))
    assert answer.status == 413
    assert answer.json["message"] == f"Request entity too large: limit is {bodies.BYTES_MAX}"
    assert answer.json["reason"] == "RequestEntityTooLarge"

    async def chunks():
        for _ in range(64):
            yield b"y" * 65536

    headers = {"Authorization": f"Bearer {ADMIN}", "Content-Type": "application/json"}
    with contextlib.suppress(ConnectionError, OSError):
        url = client.base + CONFIGS
        async with client.session.post(url, data=chunks(), headers=headers) as response:
            assert response.status == 413
    assert (await client.get("/healthz")).status == 200


@story
async def test_a_body_that_unpacks_beyond_the_limit_is_refused(client):
    bomb = gzip.compress(b" " * (64 * 1024 * 1024))
    answer = await client.post(CONFIGS, bomb, Content_Encoding="gzip")
    assert answer.status == 413
    answer = await client.post(CONFIGS, b"no gzip at all", Content_Encoding="gzip")
    assert answer.status == 400
    assert (await client.get("/healthz")).status == 200


@story
async def test_a_body_of_its_largest_is_taken(client):
    document = config(data={"x": "y" * 900_000})
    assert (await client.post(CONFIGS, document)).status == 201


@story
async def test_a_body_waits_until_it_is_asked_for(client):
    """Curl asks first whether a large body is welcome."""
    body = json.dumps(config()).encode()
    reader, writer = await asyncio.open_connection(client.host, int(client.port))
    writer.write(
        f"POST {CONFIGS} HTTP/1.1\r\n{HEAD}Content-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n".encode()
    )
    told = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
    assert told == b"HTTP/1.1 100 Continue\r\n\r\n"
    writer.write(body)
    told = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
    assert told.startswith(b"HTTP/1.1 201 ")
    writer.close()
    await writer.wait_closed()


@story(header_seconds=0.05)
async def test_who_asks_nothing_is_not_waited_for(client):
    for begun in (b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\nX-"):
        answer = await client.raw(begun)
        assert answer == b"" or b" 400 " in answer or b" 408 " in answer


def test_who_is_let_in_while_the_server_ends_is_cut():
    """A connection may have been accepted just before; nobody would ever close it."""

    async def main():
        never = asyncio.Event()
        ending = connections.Connections(lambda _request: never.wait())
        await ending.close(0)
        listener = await asyncio.get_running_loop().create_server(ending.new, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*listener.sockets[0].getsockname())
        async with asyncio.timeout(10):
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        listener.close()
        await listener.wait_closed()

    asyncio.run(main())
    gc.collect()


@story
async def test_who_leaves_in_the_middle_leaves_nothing_behind(client):
    for number in range(50):
        _, writer = await asyncio.open_connection(client.host, int(client.port))
        writer.write(
            f"POST {CONFIGS} HTTP/1.1\r\n{HEAD}Content-Length: 100\r\n\r\n".encode()
            + b"{" * (number % 3)
        )
        await writer.drain()
        writer.transport.abort()
    assert (await client.get("/healthz")).status == 200


@story
async def test_requests_one_after_the_other_in_one_breath(client):
    asked = f"GET /version HTTP/1.1\r\n{HEAD}\r\n".encode()
    last = f"GET /version HTTP/1.1\r\n{HEAD}Connection: close\r\n\r\n".encode()
    answer = await client.raw(asked * 19 + last)
    assert answer.count(b"HTTP/1.1 200 ") == 20


@pytest.mark.parametrize("query", ["", "?watch=1"])
@story(read_seconds=0.05)
async def test_who_reads_nothing_of_a_long_answer_is_cut(client, query):
    for number in range(120):
        answer = await client.post(CONFIGS, config(f"c{number}", {"x": "y" * 200_000}))
        assert answer.status == 201
    reader, writer = await asyncio.open_connection(client.host, int(client.port), limit=1)
    writer.write(f"GET {CONFIGS}{query} HTTP/1.1\r\n{HEAD}\r\n".encode())
    assert await reader.readexactly(12) == b"HTTP/1.1 200"
    tasks = len(asyncio.all_tasks())
    while len(asyncio.all_tasks()) >= tasks:
        assert (await client.get("/healthz")).status == 200
    assert client.server.watch_count == 0
    writer.transport.abort()


BODIES = [
    b"",
    b"null",
    b"[]",
    b'"x"',
    b"{}",
    b"{",
    b'{"kind":5}',
    b'{"apiVersion":{},"kind":[]}',
    b'{"metadata":5}',
    b'{"metadata":{"name":5}}',
    b'{"metadata":{"name":"\\u0000"}}',
    b'{"metadata":{"name":"a","labels":[]}}',
    b'{"metadata":{"name":"a","labels":{"b":5}}}',
    b'{"metadata":{"name":"a","ownerReferences":{"b":5}}}',
    b'{"metadata":{"name":"a","ownerReferences":[1]}}',
    b'{"metadata":{"name":"a","finalizers":[{}]}}',
    b'{"metadata":{"name":"a","managedFields":[{"fieldsV1":{"f:x":1}}]}}',
    b'{"metadata":{"name":"a","managedFields":[{"manager":"m","operation":"Apply","fieldsV1":5}]}}',
    b'{"metadata":{"name":"a","resourceVersion":"x"}}',
    b'{"metadata":{"name":"a","resourceVersion":5}}',
    b'{"metadata":{"name":"a","generateName":"b"},"spec":[]}',
    b'{"metadata":{"name":"a"},"spec":{"containers":{}}}',
    b'{"metadata":{"name":"a"},"spec":{"containers":[5]}}',
    b'{"metadata":{"name":"a"},"data":{"x":5}}',
    b'{"metadata":{"name":"a"},"spec":{"replicas":1e400}}',
    b'{"metadata":{"name":"a"},"spec":{"replicas":99999999999999999999999}}',
    b'{"metadata":{"name":"a"},"status":[]}',
    b'[{"op":"add","path":"/x","value":1}]',
    b'[{"op":"move","from":"/metadata","path":"/metadata/x"}]',
    b'[{"op":"remove","path":"/metadata/name"}]',
    b'[{"op":"replace","path":"","value":5}]',
    b'[{"op":"replace","path":"","value":{}}]',
    b'{"spec":{"$patch":"replace"}}',
    b'{"spec":{"containers":[{"$patch":"delete"}]}}',
    b'{"$setElementOrder/x":5}',
    b'{"spec":null,"metadata":null}',
    b"k8s\x00",
    b"k8s\x00\x0a\xff\xff\xff",
    b"\xff\xfe\x00",
    b"a: *b",
    b"a: &a [*a]",
    b"{" * 2000,
]
TYPES = [
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    MERGE,
    "application/json-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "text/plain",
    "",
]
PIECES = (
    *("api", "apis", "v1", "v1alpha1", "grove.io", "apps", "namespaces", "default", "pods", "web"),
    *("configmaps", "a", "podcliquesets", "scale", "status", "binding", "eviction", "log"),
    *("finalize", "token", "nodes", "events", "podgangs", "secrets", "autoscaling", "policy"),
    *("v2", "openapi", "v3", "version", "healthz", "customresourcedefinitions", "%41", "x", "y"),
    *("apiextensions.k8s.io", "authorization.k8s.io", "selfsubjectaccessreviews"),
)
QUERIES = [
    "",
    "limit=1",
    "limit=-5",
    "limit=x",
    "continue=x",
    "continue=eyJhIjoxfQ",
    "labelSelector=a%3Db",
    "labelSelector=%28",
    "fieldSelector=metadata.name%3Dx",
    "fieldSelector=%5C",
    "resourceVersion=0",
    "resourceVersion=99999999999999999999999",
    "resourceVersion=5&resourceVersionMatch=Exact",
    "dryRun=All",
    "dryRun=x",
    "fieldManager=m&force=true",
    "fieldValidation=Strict",
    "fieldValidation=x",
    "propagationPolicy=x",
    "gracePeriodSeconds=-1",
    "gracePeriodSeconds=99999999999",
    "includeObject=Object",
    "timeoutSeconds=0",
    "%ff=%00",
    "&&==&",
]
ACCEPTS = [
    "*/*",
    "",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "application/vnd.kubernetes.protobuf",
    "application/yaml",
    ";;;,q=;a=b",
]
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]

GARBAGE = st.tuples(
    st.sampled_from(METHODS),
    st.lists(st.sampled_from(PIECES), max_size=8).map(lambda parts: "/" + "/".join(parts)),
    st.sampled_from(QUERIES),
    st.sampled_from(BODIES),
    st.sampled_from(TYPES),
    st.sampled_from(ACCEPTS),
)


async def throw(client, garbage):
    method, path, query, body, content_type, accept = garbage
    sent = None if method in ("GET", "HEAD") else body
    answer = await client.do(
        method, f"{path}?{query}", sent, content_type=content_type, Accept=accept
    )
    assert answer.status != 500, (garbage, answer.body)
    assert answer.status in _EXPECTED, (garbage, answer.status, answer.body)
    if answer.status >= 400 and method != "HEAD":
        assert answer.json["kind"] == "Status", garbage
        assert answer.json["code"] == answer.status


_EXPECTED = {200, 201, 304, 400, 403, 404, 405, 406, 409, 410, 413, 415, 422, 429, 501, 503, 504}


@pytest.mark.law
@settings(
    max_examples=max(settings.default.max_examples // 5, 10),
    suppress_health_check=list(HealthCheck),
)
@given(st.lists(GARBAGE, min_size=20, max_size=40))
def test_any_request_has_an_answer_that_is_no_500(requests):
    """Over one world, so that a request meets what others before it left."""

    async def main():
        async with served() as client:
            await client.post(PODS, pod())
            await client.post(CONFIGS, config("a"))
            for garbage in requests:
                await throw(client, garbage)

    asyncio.run(main())


REAL = [
    f"{PODS}/web",
    PODS,
    f"{PODS}/web/status",
    f"{PODS}/web/binding",
    f"{PODS}/web/eviction",
    f"{CONFIGS}/a",
    CONFIGS,
    "/apis/grove.io/v1alpha1/namespaces/default/podcliquesets",
    "/apis/grove.io/v1alpha1/namespaces/default/podcliquesets/a",
    "/apis/grove.io/v1alpha1/namespaces/default/podcliquesets/a/scale",
    "/apis/spinney.dev/v1alpha1/namespaces/default/modeldeployments/a",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    "/apis/authentication.k8s.io/v1/tokenreviews",
    "/api/v1/namespaces/default",
    "/api/v1/namespaces/default/finalize",
    "/api/v1/namespaces",
    "/api/v1/nodes",
    "/api/v1/namespaces/default/events",
    "/apis/events.k8s.io/v1/namespaces/default/events",
]


def test_ten_thousand_requests_of_garbage():
    """Nothing is left of them: no watch, no task, no growing pile of objects."""
    draw = random.Random(7)

    async def main():
        async with served() as client:
            await client.post(PODS, pod())
            waiting = [
                (
                    draw.choice(METHODS),
                    draw.choice(REAL),
                    draw.choice(QUERIES),
                    draw.choice(BODIES),
                    draw.choice(TYPES),
                    draw.choice(ACCEPTS),
                )
                for _ in range(10_000)
            ]

            async def work():
                while waiting:
                    await throw(client, waiting.pop())

            tasks = len(asyncio.all_tasks())
            await asyncio.gather(*(work() for _ in range(16)))
            gc.collect()
            assert client.server.watch_count == 0
            assert len(asyncio.all_tasks()) <= tasks + 40
            assert (await client.get("/healthz")).status == 200

    asyncio.run(main())


def test_every_path_of_the_garbage_parses_or_is_none():
    for piece in PIECES:
        with contextlib.suppress(paths.NoSuchPath):
            paths.parse("GET", f"/{piece}/{piece}")
