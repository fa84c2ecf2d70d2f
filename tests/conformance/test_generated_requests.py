"""Whatever is asked of a server, it answers: as it promised, or with a Status that says why not."""

from __future__ import annotations

import http.client
import itertools
import json
import urllib.parse

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conformance import generated
from tests.conformance.cases import MANIFESTS

NAMESPACE = "generated"
NOT_GOOD = (
    *("unknown-field", "twice", "wrong-type", "invalid-pod", "no-kind", "set-wrong", "set-unknown"),
    *("widget", "widget-wrong", "widget-unknown"),
)
SERIES_AT_ONCE = 10
"""After so many series, what they deleted is laid out anew."""

OVERLOADED = {503, 504}
"""Codes beyond 500 that are an answer: a version that is not yet makes a Timeout, as told there."""


class Asker:
    """One connection to a server, kept open as long as the server does."""

    def __init__(self, live):
        self._live = live
        self._connection = None

    def ask(self, asked):
        """Send a request; gives the code, the media type and the body, None where it streams."""
        headers = {"Authorization": f"Bearer {self._live.token}"}
        if asked.type:
            headers["Content-Type"] = asked.type
        if self._connection is None:
            address = urllib.parse.urlsplit(self._live.url)
            self._connection = http.client.HTTPSConnection(
                address.hostname, address.port, context=self._live.tls, timeout=20
            )
        self._connection.request(asked.method, asked.target, asked.body, headers)
        answer = self._connection.getresponse()
        if asked.streams and answer.status == 200:
            self.close()
            return answer.status, answer.headers["Content-Type"], None
        body = answer.read()
        if answer.will_close:
            self.close()
        return answer.status, answer.headers["Content-Type"], body

    def close(self):
        """Hang up."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


@pytest.fixture(scope="module")
def asker(lives):
    made = Asker(lives.of("generated"))
    yield made
    made.close()


def document_at(asker, path):
    code, _, body = asker.ask(generated.Asked("GET", path))
    assert code == 200, body
    return json.loads(body)


@pytest.fixture
def described(asker):
    """Every OpenAPI document of the server, as kinds are now."""
    index = document_at(asker, "/openapi/v3")["paths"]
    return {path: document_at(asker, told["serverRelativeURL"]) for path, told in index.items()}


@pytest.fixture
def operations(described):
    return generated.operations(described.values())


SEEDS = generated.seeds_of(
    document
    for file in sorted(MANIFESTS.glob("*.yaml"))
    if file.stem not in NOT_GOOD
    for document in yaml.safe_load_all(file.read_text())
    if document["metadata"].get("name")
)


def lay_out(asker, operations):
    """Create the namespace and the good objects, where they are not there."""
    post(asker, "/api/v1/namespaces", namespace_document())
    for operation in operations:
        if operation.method == "POST" and "{name}" not in operation.path:
            for seed in SEEDS.get(operation.identity, ()):
                post(asker, operation.path.replace("{namespace}", NAMESPACE), seed)


def namespace_document():
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}


def post(asker, path, document):
    asked = generated.Asked("POST", path, json.dumps(document).encode(), "application/json")
    code, _, body = asker.ask(asked)
    assert code in (201, 403, 409), body


def check(asked, code, sort, body):
    """An answer is what was asked for, or an exact Status."""
    assert code < 500 or code in OVERLOADED, (asked, code, body)
    if body is None or not body:
        return
    assert sort.partition(";")[0] == "application/json", (asked, code, sort)
    document = json.loads(body)
    if code >= 400:
        assert (document["kind"], document["apiVersion"]) == ("Status", "v1"), (asked, document)
        assert (document["status"], document["code"]) == ("Failure", code), (asked, document)
        assert document["reason"], (asked, document)
        assert document["message"], (asked, document)
    else:
        assert isinstance(document["kind"], str), (asked, document)


@pytest.mark.law
@pytest.mark.timeout(1200)
def test_no_request_is_answered_with_our_fault(lives, asker, operations):
    """Series of requests near the truth: created, patched, broken, deleted, in any order."""
    played = itertools.count()

    @settings(suppress_health_check=[*HealthCheck], max_examples=settings().max_examples)
    @given(st.lists(generated.requests(operations, SEEDS, NAMESPACE), min_size=1, max_size=8))
    def series(asked_of_it):
        if next(played) % SERIES_AT_ONCE == 0:
            lay_out(asker, operations)
        for asked in asked_of_it:
            check(asked, *asker.ask(asked))

    series()
    assert asker.ask(generated.Asked("GET", "/readyz"))[0] == 200
    assert "Traceback" not in lives.of("generated").log()


def test_every_list_is_answered(asker, operations):
    paths = {
        operation.path.replace("{namespace}", "default")
        for operation in operations
        if operation.method == "GET" and "{name}" not in operation.path
    }
    assert len(paths) > 20
    for path in sorted(paths):
        asked = generated.Asked("GET", path)
        code, sort, body = asker.ask(asked)
        check(asked, code, sort, body)
        assert code == 200, (path, body)


def test_openapi_tells_of_every_resource_that_is_discovered(asker, described, operations):
    told = {(operation.identity, operation.path) for operation in operations}
    kinds = {identity for identity, _ in told}
    found = set()
    for listed in [document_at(asker, "/api/v1"), *(groups(asker))]:
        for resource in listed["resources"]:
            if "list" in resource["verbs"]:
                found.add((listed["groupVersion"], resource["kind"]))
    assert found
    assert found <= kinds


def groups(asker):
    for group in document_at(asker, "/apis")["groups"]:
        for version in group["versions"]:
            yield document_at(asker, f"/apis/{version['groupVersion']}")


def test_every_schema_that_is_referred_to_is_there(described):
    for path, document in described.items():
        components = document["components"]["schemas"]
        for reference in references(document):
            assert reference.removeprefix("#/components/schemas/") in components, (path, reference)


def references(node):
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for below in node.values():
            yield from references(below)
    elif isinstance(node, list):
        for below in node:
            yield from references(below)
