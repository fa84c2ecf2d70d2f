"""Objects over a socket: made, read, changed, deleted, as client libraries do it."""

from __future__ import annotations

import asyncio
import gzip
import json

import pytest
import yaml
from served import ADMIN, CONFIGS, MERGE, PODS, TABLE, config, pod, story
from test_protobuf import RECORDED

from spinney.api.kinds import named
from spinney.registry import forms

APPLY = "application/apply-patch+yaml"
SETS = "/apis/grove.io/v1alpha1/namespaces/default/podcliquesets"


def clique_set(name="chat", replicas=1):
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "template": {
                "cliques": [
                    {
                        "name": "w",
                        "spec": {
                            "roleName": "w",
                            "replicas": 2,
                            "podSpec": {"containers": [{"name": "c", "image": "x"}]},
                        },
                    }
                ]
            },
        },
    }


@story
async def test_the_life_of_an_object(client):
    made = await client.post(CONFIGS, config(data={"a": "1"}))
    assert made.status == 201
    assert made.headers["Content-Type"] == "application/json"
    document = made.json
    assert document["metadata"]["namespace"] == "default"
    assert document["metadata"]["uid"]

    read = await client.get(f"{CONFIGS}/settings")
    assert (read.status, read.json) == (200, document)

    document["data"] = {"a": "2"}
    replaced = await client.do("PUT", f"{CONFIGS}/settings", document)
    assert replaced.status == 200
    version = replaced.json["metadata"]["resourceVersion"]
    assert int(version) > int(document["metadata"]["resourceVersion"])

    stale = await client.do("PUT", f"{CONFIGS}/settings", document)
    assert stale.status == 409
    assert stale.json["reason"] == "Conflict"

    patched = await client.do(
        "PATCH", f"{CONFIGS}/settings", {"data": {"b": "3"}}, content_type=MERGE
    )
    assert patched.json["data"] == {"a": "2", "b": "3"}

    gone = await client.do("DELETE", f"{CONFIGS}/settings")
    assert gone.status == 200
    assert gone.json["status"] == "Success"
    assert gone.json["details"] == {
        "name": "settings",
        "kind": "configmaps",
        "uid": document["metadata"]["uid"],
    }
    missing = await client.get(f"{CONFIGS}/settings")
    assert missing.status == 404
    assert missing.json == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'configmaps "settings" not found',
        "reason": "NotFound",
        "details": {"name": "settings", "kind": "configmaps"},
        "code": 404,
    }


@story
async def test_four_sorts_of_patches(client):
    await client.post(PODS, pod())
    path = f"{PODS}/web"
    strategic = {"spec": {"containers": [{"name": "main", "image": "other"}]}}
    answer = await client.do(
        "PATCH", path, strategic, content_type="application/strategic-merge-patch+json"
    )
    assert answer.json["spec"]["containers"][0]["image"] == "other"
    operations = [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]
    answer = await client.do("PATCH", path, operations, content_type="application/json-patch+json")
    assert answer.json["metadata"]["labels"] == {"a": "b"}
    answer = await client.do(
        "PATCH", path, {"metadata": {"labels": {"a": None}}}, content_type=MERGE
    )
    assert "labels" not in answer.json["metadata"] or not answer.json["metadata"]["labels"]
    text = yaml.safe_dump(config("applied", {"a": "1"})).encode()
    applied = f"{CONFIGS}/applied?fieldManager=me"
    answer = await client.do("PATCH", applied, text, content_type=APPLY)
    assert answer.status == 201
    answer = await client.do("PATCH", applied, text, content_type=APPLY)
    assert answer.status == 200
    assert answer.json["metadata"]["managedFields"][0]["manager"] == "me"


@story
async def test_an_apply_that_takes_what_others_hold_is_refused_by_name(client):
    first = yaml.safe_dump(config("applied", {"a": "1"})).encode()
    second = yaml.safe_dump(config("applied", {"a": "2"})).encode()
    await client.do("PATCH", f"{CONFIGS}/applied?fieldManager=me", first, content_type=APPLY)
    path = f"{CONFIGS}/applied?fieldManager=you"
    answer = await client.do("PATCH", path, second, content_type=APPLY)
    assert answer.status == 409
    assert answer.json["message"] == 'Apply failed with 1 conflict: conflict with "me": .data.a'
    answer = await client.do("PATCH", f"{path}&force=true", second, content_type=APPLY)
    assert answer.json["data"] == {"a": "2"}


@story
async def test_a_patch_a_kind_does_not_take_is_told_with_those_it_takes(client):
    await client.post(SETS, clique_set())
    answer = await client.do(
        "PATCH",
        f"{SETS}/chat",
        {},
        content_type="application/strategic-merge-patch+json",
    )
    assert answer.status == 415
    assert answer.json["message"] == (
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    )


@story
async def test_scale_and_status(client):
    assert (await client.post(SETS, clique_set())).status == 201
    scale = (await client.get(f"{SETS}/chat/scale")).json
    assert (scale["apiVersion"], scale["kind"]) == ("autoscaling/v1", "Scale")
    assert scale["spec"] == {"replicas": 1}
    answer = await client.do(
        "PATCH", f"{SETS}/chat/scale", {"spec": {"replicas": 3}}, content_type=MERGE
    )
    assert (answer.status, answer.json["spec"]) == (200, {"replicas": 3})
    scale = answer.json
    scale["spec"]["replicas"] = 2
    answer = await client.do("PUT", f"{SETS}/chat/scale", scale)
    assert answer.json["spec"] == {"replicas": 2}
    assert (await client.get(f"{SETS}/chat")).json["spec"]["replicas"] == 2
    answer = await client.do(
        "PATCH", f"{SETS}/chat/scale", {"spec": {"replicas": -1}}, content_type=MERGE
    )
    assert answer.status == 422
    change = {"spec": {"replicas": 9}, "status": {"replicas": 2}}
    answer = await client.do("PATCH", f"{SETS}/chat/status", change, content_type=MERGE)
    assert answer.json["status"]["replicas"] == 2
    assert answer.json["spec"]["replicas"] == 2
    assert (await client.get(f"{SETS}/chat/status")).json["spec"]["replicas"] == 2


@story
async def test_a_pod_is_bound_and_evicted(client):
    await client.post(PODS, pod())
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "web"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "one"},
    }
    answer = await client.post(f"{PODS}/web/binding", binding)
    assert (answer.status, answer.json["status"]) == (201, "Success")
    assert (await client.get(f"{PODS}/web")).json["spec"]["nodeName"] == "one"
    answer = await client.post(f"{PODS}/web/binding", binding)
    assert answer.status == 409
    await client.post(PODS, pod("other"))
    named = {**binding, "metadata": {"name": "other"}}
    answer = await client.post("/api/v1/namespaces/default/bindings", named)
    assert answer.status == 201
    answer = await client.post(f"{PODS}/web/binding", {**binding, "target": {}})
    assert answer.status == 422
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "web"}}
    answer = await client.post(f"{PODS}/web/eviction", eviction)
    assert (answer.status, answer.json["status"]) == (201, "Success")
    assert (await client.get(f"{PODS}/web")).json["metadata"]["deletionTimestamp"]


@story
async def test_what_needs_a_node_says_that_there_is_none(client):
    await client.post(PODS, pod())
    answer = await client.get(f"{PODS}/web/log")
    assert (answer.status, answer.json["message"]) == (400, "pod web does not have a host assigned")
    await client.post(PODS, pod("placed") | {"spec": {**pod()["spec"], "nodeName": "one"}})
    answer = await client.get(f"{PODS}/placed/log")
    assert answer.status == 503
    assert "there is no node yet" in answer.json["message"]
    assert (await client.post(f"{PODS}/gone/exec", {})).status == 404
    await client.post(
        "/api/v1/namespaces/default/serviceaccounts",
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "me"}},
    )
    answer = await client.post("/api/v1/namespaces/default/serviceaccounts/me/token", {})
    assert answer.status == 501
    assert "spinney token --read-only" in answer.json["message"]


@story
async def test_a_pod_that_runs_is_given_back_when_it_is_deleted(client):
    await client.post(PODS, pod("placed") | {"spec": {**pod()["spec"], "nodeName": "one"}})
    answer = await client.do("DELETE", f"{PODS}/placed", {"gracePeriodSeconds": 5})
    assert answer.json["kind"] == "Pod"
    assert answer.json["metadata"]["deletionGracePeriodSeconds"] == 5
    answer = await client.do("DELETE", f"{PODS}/placed?gracePeriodSeconds=0")
    assert (answer.status, answer.json["kind"]) == (200, "Pod")
    assert (await client.get(f"{PODS}/placed")).status == 404


@story
async def test_many_are_deleted_by_their_labels(client):
    for name in "abc":
        await client.post(CONFIGS, config(name, labels={"app": "x" if name < "c" else "y"}))
    answer = await client.do("DELETE", f"{CONFIGS}?labelSelector=app%3Dx")
    assert answer.json["kind"] == "ConfigMapList"
    assert [item["metadata"]["name"] for item in answer.json["items"]] == ["a", "b"]
    left = (await client.get(CONFIGS)).json["items"]
    assert [item["metadata"]["name"] for item in left] == ["c"]


@story
async def test_a_dry_run_stores_nothing(client):
    version = client.store.version
    answer = await client.post(f"{CONFIGS}?dryRun=All", config())
    assert answer.status == 201
    assert client.store.version == version


@story
async def test_fields_nobody_knows_are_refused_or_warned_of(client):
    document = {**config(), "colour": "blue"}
    strict = await client.post(f"{CONFIGS}?fieldValidation=Strict", document)
    assert strict.status == 400
    assert strict.json["message"] == (
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: '
        'unknown field "colour"'
    )
    warned = await client.post(f"{CONFIGS}?fieldValidation=Warn", document)
    assert warned.status == 201
    assert warned.warnings == ['299 - "unknown field \\"colour\\""']
    text = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b","name":"c"}}'
    twice = await client.post(f"{CONFIGS}?fieldValidation=Strict", text)
    assert 'duplicate field "metadata.name"' in twice.json["message"]


@story
async def test_the_manager_of_a_write_is_the_program(client):
    answer = await client.post(CONFIGS, config(), User_Agent="mytool/1.0 (linux)")
    assert answer.json["metadata"]["managedFields"][0]["manager"] == "mytool"


@story
async def test_bodies_in_yaml_and_protobuf(client):
    text = yaml.safe_dump(config("a")).encode()
    answer = await client.post(CONFIGS, text, content_type="application/yaml")
    assert answer.status == 201
    row = next(row for row in RECORDED if row["document"]["kind"] == "ConfigMap")
    answer = await client.post(
        row["path"],
        bytes.fromhex(row["body"]),
        content_type="application/vnd.kubernetes.protobuf",
        Accept="application/vnd.kubernetes.protobuf,application/json",
    )
    assert (answer.status, answer.json["data"]) == (201, {"color": "blue"})
    assert answer.headers["Content-Type"] == "application/json"


@story
async def test_a_compressed_body_is_taken(client):
    body = gzip.compress(json.dumps(config("zipped")).encode())
    answer = await client.post(CONFIGS, body, Content_Encoding="gzip")
    assert answer.status == 201


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("*/*", 200),
        ("application/json", 200),
        ("application/vnd.kubernetes.protobuf, application/json;q=0.5", 200),
        ("application/vnd.kubernetes.protobuf", 406),
        ("text/html", 406),
        ("application/json;as=Chair;v=v1;g=meta.k8s.io", 406),
        ("application/json;as=Table;v=v9;g=meta.k8s.io,application/json", 200),
    ],
)
@story
async def test_what_forms_there_are(client, accept, status):
    answer = await client.get(PODS, Accept=accept)
    assert answer.status == status
    if status == 406:
        assert answer.json["reason"] == "NotAcceptable"


@story
async def test_yaml_is_answered_where_it_is_asked_for(client):
    await client.post(CONFIGS, config("a", {"x": "1"}))
    for path in (f"{CONFIGS}/a", CONFIGS):
        answer = await client.get(path, Accept="application/yaml")
        assert answer.headers["Content-Type"] == "application/yaml"
        assert yaml.safe_load(answer.body) == (await client.get(path)).json


@story
async def test_tables_and_bare_metadata(client):
    await client.post(PODS, pod())
    for path in (PODS, f"{PODS}/web"):
        table = (await client.get(path, Accept=TABLE)).json
        assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
        assert table["columnDefinitions"][0]["format"] == "name"
        (row,) = table["rows"]
        assert row["cells"][:4] == ["web", "0/1", "Pending", "0"]
        assert row["object"]["kind"] == "PartialObjectMetadata"
    table = (await client.get(f"{PODS}?includeObject=None", Accept=TABLE)).json
    assert table["rows"][0]["object"] is None
    table = (await client.get(f"{PODS}?includeObject=Object", Accept=TABLE)).json
    assert table["rows"][0]["object"]["kind"] == "Pod"
    partial = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
    found = (await client.get(PODS, Accept=partial)).json
    assert found["kind"] == "PartialObjectMetadataList"
    assert set(found["items"][0]) == {"kind", "apiVersion", "metadata"}
    assert found["metadata"]["resourceVersion"] == str(client.store.version)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/v1/things", 404),
        ("GET", "/api/v2/pods", 404),
        ("GET", "/apis/none.io/v1/pods", 404),
        ("GET", "/api/v1/pods/web", 404),
        ("GET", "/api/v1/namespaces/default/nodes", 404),
        ("GET", "/api/v1/namespaces/default/pods/web/none", 404),
        ("GET", "/nothing", 404),
        ("GET", "/apis/metrics.k8s.io/v1beta1", 404),
        ("POST", "/api/v1/pods", 405),
        ("DELETE", "/api/v1/pods", 405),
        ("PUT", "/api/v1/namespaces/default/pods", 405),
        ("POST", "/api/v1/namespaces/default/pods/web", 405),
        ("DELETE", "/api/v1/namespaces/default/pods/web/status", 405),
        ("OPTIONS", "/api/v1/namespaces/default/pods", 405),
        ("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", 405),
        ("GET", "/api/v1/namespaces/default/pods/web/binding", 405),
    ],
)
@story
async def test_what_is_not_there_and_what_may_not_be_done(client, method, path, status):
    answer = await client.do(method, path, {} if method in ("POST", "PUT") else None)
    assert answer.status == status, answer.body
    assert answer.json["kind"] == "Status"
    assert answer.json["code"] == status


@story
async def test_lists_come_in_pages_of_one_version(client):
    for number in range(7):
        await client.post(CONFIGS, config(f"c{number}"))
    first = (await client.get(f"{CONFIGS}?limit=3")).json
    version = first["metadata"]["resourceVersion"]
    assert first["metadata"]["remainingItemCount"] == 4
    await client.do("DELETE", f"{CONFIGS}/c5")
    names = [item["metadata"]["name"] for item in first["items"]]
    token = first["metadata"]["continue"]
    while token:
        page = (await client.get(f"{CONFIGS}?limit=3&continue={token}")).json
        assert page["metadata"]["resourceVersion"] == version
        names += [item["metadata"]["name"] for item in page["items"]]
        token = page["metadata"].get("continue", "")
    assert names == [f"c{number}" for number in range(7)]
    answer = await client.get(f"{CONFIGS}?limit=3&continue=nonsense")
    assert answer.status == 400


@story
async def test_a_list_of_many_is_the_list_it_would_be_in_one_piece(client):
    for number in range(300):
        await client.store.put(*_stored(client, f"c{number:03}", "x" * 2000), expects=0)
    whole = (await client.get(CONFIGS)).json
    assert [item["metadata"]["name"] for item in whole["items"]] == [
        f"c{number:03}" for number in range(300)
    ]
    assert whole["kind"] == "ConfigMapList"
    table = (await client.get(CONFIGS, Accept=TABLE)).json
    assert [row["cells"][0] for row in table["rows"]] == [
        item["metadata"]["name"] for item in whole["items"]
    ]


def _stored(client, name, text):
    kind = named("configmap")
    document = config(name, {"x": text}, namespace="default", uid=name)
    return forms.ref_of(kind, "default", name), document


@story(compresses_locally=True)
async def test_large_answers_are_compressed_where_the_client_takes_it(client):
    for number in range(300):
        await client.store.put(*_stored(client, f"c{number:03}", "x" * 5000), expects=0)
    plain = await client.get(CONFIGS, Accept_Encoding="identity")
    assert "Content-Encoding" not in plain.headers
    for path in (CONFIGS, f"{CONFIGS}?limit=100"):
        whole = await client.get(path, Accept_Encoding="identity")
        squeezed = await client.get(path, Accept_Encoding="gzip")
        assert squeezed.headers["Content-Encoding"] == "gzip"
        assert squeezed.json["items"] == whole.json["items"]
    small = await client.get(f"{CONFIGS}/c000", Accept_Encoding="gzip")
    assert "Content-Encoding" not in small.headers


@story
async def test_a_client_that_does_not_read_its_list_holds_nobody_up(client):
    for number in range(400):
        await client.store.put(*_stored(client, f"c{number:03}", "x" * 50_000), expects=0)
    reader, writer = await asyncio.open_connection(client.host, int(client.port))
    head = f"Host: x\r\nAuthorization: Bearer {ADMIN}\r\nConnection: close\r\n\r\n"
    writer.write(f"GET {CONFIGS} HTTP/1.1\r\n{head}".encode())
    assert (await reader.readexactly(12)) == b"HTTP/1.1 200"
    for _ in range(5):
        assert (await client.get("/healthz")).body == b"ok"
    rest = await asyncio.wait_for(reader.read(), 20)
    assert rest.endswith(b"]}\n\r\n0\r\n\r\n")
    assert rest.count(b'"kind":"ConfigMap"') == 400
    writer.close()
    await writer.wait_closed()


@story
async def test_heads_are_answers_without_a_body(client):
    for number in range(300):
        await client.store.put(*_stored(client, f"c{number:03}", "x"), expects=0)
    for path in (CONFIGS, f"{CONFIGS}/c000", "/version"):
        whole, head = await client.get(path), await client.do("HEAD", path)
        assert (head.status, head.body) == (200, b"")
        assert head.headers["Content-Type"] == whole.headers["Content-Type"]
    assert (await client.do("HEAD", f"{CONFIGS}?watch=1")).status == 405


@story
async def test_versions_a_list_may_ask_for(client):
    await client.post(CONFIGS, config())
    newest = client.store.version
    for query, status in (
        ("", 200),
        ("resourceVersion=0", 200),
        (f"resourceVersion={newest}", 200),
        (f"resourceVersion={newest}&resourceVersionMatch=Exact", 200),
        ("resourceVersion=1&resourceVersionMatch=NotOlderThan", 200),
        ("resourceVersion=1&resourceVersionMatch=Exact", 410),
        (f"resourceVersion={newest + 5}", 504),
    ):
        answer = await client.get(f"{CONFIGS}?{query}")
        assert answer.status == status, query
        if status == 504:
            assert answer.json["reason"] == "Timeout"
            assert answer.headers["Retry-After"] == "1"
    assert (await client.get(f"{CONFIGS}/settings?resourceVersion={newest + 5}")).status == 504


@story
async def test_events_are_one_thing_in_two_groups(client):
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "name": "web", "namespace": "default"},
        "reason": "Started",
        "message": "it runs",
        "type": "Normal",
    }
    answer = await client.post("/api/v1/namespaces/default/events", event)
    assert answer.status == 201, answer.body
    path = "/apis/events.k8s.io/v1/namespaces/default/events"
    newer = (await client.get(f"{path}/e")).json
    assert newer["apiVersion"] == "events.k8s.io/v1"
    assert (newer["note"], newer["regarding"]["name"]) == ("it runs", "web")
    listed = (await client.get(path)).json
    assert listed["kind"] == "EventList"
    assert listed["items"][0]["note"] == "it runs"
    table = (await client.get(path, Accept=TABLE)).json
    assert table["rows"][0]["cells"][2:4] == ["Started", "pod/web"]


@story
async def test_a_namespace_is_finalized(client):
    await client.post(
        "/api/v1/namespaces",
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}},
    )
    answer = await client.do("DELETE", "/api/v1/namespaces/team")
    assert answer.json["status"]["phase"] == "Terminating"
    body = answer.json
    body["spec"]["finalizers"] = []
    answer = await client.do("PUT", "/api/v1/namespaces/team/finalize", body)
    assert answer.status == 200, answer.body
    assert (await client.get("/api/v1/namespaces/team")).status == 404


@story
async def test_writes_at_once_each_see_the_other(client):
    await client.post(CONFIGS, config(data={"n": "0"}))

    async def add():
        while True:
            document = (await client.get(f"{CONFIGS}/settings")).json
            document["data"]["n"] = str(int(document["data"]["n"]) + 1)
            answer = await client.do("PUT", f"{CONFIGS}/settings", document)
            if answer.status == 200:
                return
            assert answer.status == 409

    await asyncio.gather(*(add() for _ in range(12)))
    assert (await client.get(f"{CONFIGS}/settings")).json["data"]["n"] == "12"
