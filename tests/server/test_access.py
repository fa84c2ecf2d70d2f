"""Access: who gets in, what they may do, and what they are told they may do."""

from __future__ import annotations

import pytest
from served import ADMIN, CONFIGS, PODS, READER, config, pod, story

from spinney.server.access import Access, Grant

REVIEWS = "/apis/authorization.k8s.io/v1"
AUTHENTICATION = "/apis/authentication.k8s.io/v1"


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        f"Basic {ADMIN}",
        f"Bearer {ADMIN}x",
        f"Bearer {ADMIN[:-1]}",
        "Bearer \u00e9",
    ],
)
@story
async def test_who_shows_no_known_token_is_nobody(client, header):
    headers = {} if header is None else {"Authorization": header}
    answer = await client.get(PODS, token=None, **headers)
    assert answer.status == 401
    assert answer.json["reason"] == "Unauthorized"
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")


def test_an_empty_token_is_nobodys():
    assert Access([Grant(token="")]).grant_of("") is None


@story
async def test_everybody_may_ask_whether_it_lives(client):
    for path in ("/healthz", "/livez", "/readyz"):
        answer = await client.get(path, token=None)
        assert (answer.status, answer.body) == (200, b"ok")
        verbose = await client.get(f"{path}?verbose", token=None)
        assert b"[+]ping ok" in verbose.body
    assert (await client.get("/readyz/ping", token=None)).body == b"ok"
    assert (await client.get("/version", token=None)).json["major"] == "1"
    assert (await client.get("/readyz/none", token=None)).status == 404
    assert (await client.get("/api", token=None)).status == 401


@story
async def test_a_reader_reads_everything_but_secrets(client):
    await client.post(CONFIGS, config())
    for path in (CONFIGS, f"{CONFIGS}/settings", "/api", "/openapi/v3", "/apis"):
        assert (await client.get(path, token=READER)).status == 200, path
    secrets = "/api/v1/namespaces/default/secrets"
    for path in (secrets, f"{secrets}/x", f"{secrets}?watch=1", "/api/v1/watch/secrets"):
        answer = await client.get(path, token=READER)
        assert answer.status == 403, path
    answer = await client.get(f"{secrets}/x", token=READER)
    assert answer.json["message"] == (
        'secrets "x" is forbidden: User "reader" cannot get resource "secrets" in API group "" in '
        'the namespace "default": the token is read-only, which leaves Secrets out'
    )


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", CONFIGS),
        ("PUT", f"{CONFIGS}/settings"),
        ("PATCH", f"{CONFIGS}/settings"),
        ("DELETE", f"{CONFIGS}/settings"),
        ("DELETE", CONFIGS),
        ("GET", f"{PODS}/web/exec"),
        ("GET", f"{PODS}/web/portforward"),
        ("POST", f"{PODS}/web/eviction"),
        ("POST", f"{AUTHENTICATION}/tokenreviews"),
    ],
)
@story
async def test_a_reader_changes_nothing(client, method, path):
    await client.post(CONFIGS, config())
    version = client.store.version
    answer = await client.do(method, path, {} if method != "GET" else None, token=READER)
    assert (answer.status, answer.json["reason"]) == (403, "Forbidden")
    assert 'User "reader" cannot' in answer.json["message"]
    assert client.store.version == version


@story
async def test_who_am_i(client):
    answer = await client.post(f"{AUTHENTICATION}/selfsubjectreviews", {})
    assert answer.status == 201
    assert answer.json["status"]["userInfo"] == {
        "username": "admin",
        "groups": ["system:masters", "system:authenticated"],
    }


@story
async def test_the_admin_may_be_somebody_else(client):
    answer = await client.post(
        f"{AUTHENTICATION}/selfsubjectreviews",
        {},
        Impersonate_User="bob",
        Impersonate_Group="team",
    )
    assert answer.json["status"]["userInfo"] == {
        "username": "bob",
        "groups": ["team", "system:authenticated"],
    }
    answer = await client.get(PODS, token=READER, Impersonate_User="bob")
    assert answer.status == 403
    assert 'cannot impersonate resource "users"' in answer.json["message"]
    answer = await client.get(PODS, Impersonate_Group="team")
    assert answer.status == 400
    answer = await client.post(
        CONFIGS, config(), Impersonate_User="r", Impersonate_Group="spinney:readers"
    )
    assert answer.status == 403


async def may(client, token=ADMIN, **attributes):
    body = {"spec": {"resourceAttributes": attributes}}
    answer = await client.post(f"{REVIEWS}/selfsubjectaccessreviews", body, token=token)
    assert answer.status == 201, answer.body
    return answer.json["status"]


@story
async def test_may_i_is_answered_by_what_is_enforced(client):
    assert (await may(client, verb="create", resource="pods"))["allowed"]
    reader = await may(client, READER, verb="create", resource="pods")
    assert reader == {"allowed": False, "reason": "the token is read-only"}
    assert (await may(client, READER, verb="list", resource="pods"))["allowed"]
    assert not (await may(client, READER, verb="get", resource="secrets"))["allowed"]
    exec_ = await may(client, READER, verb="get", resource="pods", subresource="exec")
    assert not exec_["allowed"]
    path = {"spec": {"nonResourceAttributes": {"path": "/healthz", "verb": "get"}}}
    answer = await client.post(f"{REVIEWS}/selfsubjectaccessreviews", path, token=READER)
    assert answer.json["status"]["allowed"]
    answer = await client.post(f"{REVIEWS}/selfsubjectaccessreviews", {"spec": {}})
    assert answer.status == 422


@story
async def test_may_somebody_else(client):
    async def asked(**spec):
        spec["resourceAttributes"] = {"verb": "create", "resource": "pods"}
        path = f"{REVIEWS}/subjectaccessreviews"
        return (await client.post(path, {"spec": spec})).json

    assert (await asked(user="admin"))["status"]["allowed"]
    assert not (await asked(user="reader"))["status"]["allowed"]
    assert not (await asked(user="bob"))["status"]["allowed"]
    assert (await asked(user="bob", groups=["system:masters"]))["status"]["allowed"]
    assert (await asked())["code"] == 422


@story
async def test_what_may_i(client):
    path = f"{REVIEWS}/selfsubjectrulesreviews"
    whole = (await client.post(path, {"spec": {"namespace": "default"}})).json["status"]
    assert whole["resourceRules"][0]["verbs"] == ["*"]
    assert whole["incomplete"] is False
    part = await client.post(path, {"spec": {"namespace": "default"}}, token=READER)
    assert part.json["status"]["resourceRules"][0]["verbs"] == ["get", "list", "watch"]
    assert part.json["status"]["incomplete"] is True


@story
async def test_whose_token(client):
    path = f"{AUTHENTICATION}/tokenreviews"
    answer = (await client.post(path, {"spec": {"token": READER}})).json["status"]
    assert answer["authenticated"] is True
    assert answer["user"]["username"] == "reader"
    answer = (await client.post(path, {"spec": {"token": "wrong"}})).json["status"]
    assert answer["authenticated"] is False


@story
async def test_who_wrote_is_who_asked(client):
    """What protects managed objects goes by the user, so the wire must hand it on."""
    answer = await client.post(PODS, pod(), Impersonate_User="bob")
    assert answer.status == 201
