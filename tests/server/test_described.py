"""What the server says of itself: discovery in its forms, OpenAPI, its version."""

from __future__ import annotations

import json

from served import CONFIGS, story

from spinney.api.kinds import KINDS, named
from spinney.server import discovery, openapi, protobuf

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "toys.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"kind": "Toy", "plural": "toys", "singular": "toy", "shortNames": ["ty"]},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"}
                ],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"size": {"type": "integer", "default": 3}},
                            }
                        },
                    }
                },
            }
        ],
    },
}


@story
async def test_everything_at_once(client):
    for version in ("v2", "v2beta1"):
        core = await client.get("/api", Accept=AGGREGATED.format(version))
        assert core.headers["Content-Type"] == AGGREGATED.format(version)
        assert core.json["apiVersion"] == f"apidiscovery.k8s.io/{version}"
        (group,) = core.json["items"]
        assert group["metadata"]["name"] == ""
        resources = {item["resource"]: item for item in group["versions"][0]["resources"]}
        pods = resources["pods"]
        assert pods["responseKind"] == {"group": "", "version": "v1", "kind": "Pod"}
        assert (pods["scope"], pods["singularResource"]) == ("Namespaced", "pod")
        assert (pods["shortNames"], pods["categories"]) == (["po"], ["all"])
        parts = {part["subresource"]: part["verbs"] for part in pods["subresources"]}
        assert parts["status"] == ["get", "patch", "update"]
        assert parts["log"] == ["get"]
        others = await client.get("/apis", Accept=AGGREGATED.format(version))
        names = [item["metadata"]["name"] for item in others.json["items"]]
        assert names == sorted(names)
        assert "grove.io" in names
        assert "" not in names


@story
async def test_the_legacy_forms_say_the_same(client):
    whole = (await client.get("/apis", Accept=AGGREGATED.format("v2"))).json
    groups = (await client.get("/apis")).json
    assert groups["kind"] == "APIGroupList"
    assert [group["name"] for group in groups["groups"]] == [
        item["metadata"]["name"] for item in whole["items"]
    ]
    assert (await client.get("/api")).json["versions"] == ["v1"]
    assert (await client.get("/apis/grove.io")).json["preferredVersion"] == {
        "groupVersion": "grove.io/v1alpha1",
        "version": "v1alpha1",
    }
    for item in whole["items"]:
        version = item["versions"][0]
        path = f"/apis/{item['metadata']['name']}/{version['version']}"
        listed = (await client.get(path)).json
        assert listed["kind"] == "APIResourceList"
        found = {row["name"] for row in listed["resources"]}
        expected = {resource["resource"] for resource in version["resources"]}
        for resource in version["resources"]:
            for part in resource.get("subresources", []):
                expected.add(f"{resource['resource']}/{part['subresource']}")
        assert found == expected


@story
async def test_what_did_not_change_is_not_sent_again(client):
    accept = AGGREGATED.format("v2")
    first = await client.get("/apis", Accept=accept)
    again = await client.get("/apis", Accept=accept, If_None_Match=first.headers["ETag"])
    assert (again.status, again.body) == (304, b"")
    assert again.headers["Content-Type"] == accept, "caches keep the headers of the newest answer"


@story
async def test_a_users_kind_is_told_of_and_served(client):
    before = await client.get("/apis", Accept=AGGREGATED.format("v2"))
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert (await client.post(path, CRD)).status == 201
    await client.world.settle()
    after = await client.get("/apis", Accept=AGGREGATED.format("v2"))
    assert after.headers["ETag"] != before.headers["ETag"]
    assert "example.com" in {item["metadata"]["name"] for item in after.json["items"]}
    toys = "/apis/example.com/v1/namespaces/default/toys"
    toy = {"apiVersion": "example.com/v1", "kind": "Toy", "metadata": {"name": "bear"}}
    made = await client.post(toys, {**toy, "spec": {}})
    assert (made.status, made.json["spec"]) == (201, {"size": 3})
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    found = (await client.get(toys, Accept=table)).json
    assert [column["name"] for column in found["columnDefinitions"]] == ["Name", "Size"]
    assert found["rows"][0]["cells"] == ["bear", 3]
    described = (await client.get("/openapi/v3/apis/example.com/v1")).json
    kinds = _by_kind(described)
    assert kinds["Toy"]["properties"]["spec"]["properties"]["size"]["type"] == "integer"


def _by_kind(document):
    return {
        schema["x-kubernetes-group-version-kind"][0]["kind"]: schema
        for schema in document["components"]["schemas"].values()
        if "x-kubernetes-group-version-kind" in schema
    }


@story
async def test_openapi_has_a_document_for_each_group(client):
    index = (await client.get("/openapi/v3")).json["paths"]
    assert "api/v1" in index
    for path, entry in index.items():
        answer = await client.get(entry["serverRelativeURL"])
        assert answer.status == 200
        tag = entry["serverRelativeURL"].partition("hash=")[2]
        assert answer.headers["ETag"] == f'"{tag}"'
        document = answer.json
        for reference in _references(document):
            assert reference in document["components"]["schemas"], (path, reference)
    for path in ("/openapi/v3/apis/none.io/v1", "/openapi/v3/api", "/openapi/v3/x/y"):
        assert (await client.get(path)).status == 404


def _references(value):
    if isinstance(value, dict):
        for key, below in value.items():
            if key == "$ref" and isinstance(below, str):
                yield below.removeprefix("#/components/schemas/")
            else:
                yield from _references(below)
    elif isinstance(value, list):
        for below in value:
            yield from _references(below)


def test_kubectl_finds_validation_and_patches_for_every_kind():
    for kind in KINDS.values():
        names = kind.names
        document = openapi.document(KINDS.values(), names.group, names.version, "1")
        said = {"group": names.group, "version": names.version, "kind": names.kind}
        patches = [
            item["patch"]
            for item in document["paths"].values()
            if "patch" in item and item["patch"]["x-kubernetes-group-version-kind"] == said
        ]
        assert patches, names.kind
        for patch in patches:
            assert "fieldValidation" in {each["name"] for each in patch["parameters"]}
            types = set(patch["requestBody"]["content"])
            strategic = "application/strategic-merge-patch+json"
            assert (strategic in types) == kind.is_builtin
        assert said in [
            each
            for schema in document["components"]["schemas"].values()
            for each in schema.get("x-kubernetes-group-version-kind", [])
        ]


def test_schemas_carry_what_strategic_merge_needs():
    document = openapi.document(KINDS.values(), "", "v1", "1")
    spec = document["components"]["schemas"]["io.spinney.types.PodSpec"]["properties"]
    containers = spec["containers"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert containers["x-kubernetes-patch-strategy"] == "merge"
    assert containers["items"] == {"$ref": "#/components/schemas/io.spinney.types.Container"}


def test_our_kinds_are_explained_in_words():
    document = openapi.document(KINDS.values(), "grove.io", "v1alpha1", "1")
    schema = document["components"]["schemas"][openapi.kind_name(named("pcs"))]
    spec = schema["properties"]["spec"]
    assert spec["properties"]["replicas"]["description"].startswith("How many copies")
    assert "apiVersion" not in schema.get("required", [])


def test_versions_are_sorted_as_kubernetes_prefers_them():
    words = ["v1alpha1", "v2", "foo", "v1beta2", "v10", "v1", "v1beta10", "v1alpha2"]
    assert sorted(words, key=discovery._preference) == [
        "v10",
        "v2",
        "v1",
        "v1beta10",
        "v1beta2",
        "v1alpha2",
        "v1alpha1",
        "foo",
    ]


@story
async def test_the_version_is_one_kubectl_understands(client):
    version = (await client.get("/version")).json
    assert version["gitVersion"].startswith(f"v{version['major']}.{version['minor']}.")
    json.dumps(version)
    assert (await client.get(CONFIGS)).status == 200


@story
async def test_openapi_v2_tells_older_kubectl_that_the_server_validates(client):
    """Old kubectl takes it in protobuf alone, and applies nothing without it."""
    accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
    answer = await client.get("/openapi/v2", Accept=accept)
    media = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    assert answer.headers["Content-Type"] == media
    document = dict(fields(answer.body))
    assert document[1] == b"2.0"
    found = {}
    for number, path in fields(document[8]):
        assert number == 2
        named_path = dict(fields(path))
        (operation,) = [value for key, value in fields(named_path[2]) if key == 8]
        names = [value for key, value in fields(operation) if key == 8]
        extension = dict(fields(next(value for key, value in fields(operation) if key == 13)))
        assert extension[1] == b"x-kubernetes-group-version-kind"
        said = json.loads(dict(fields(extension[2]))[2])
        found[said["kind"]] = [_query_name(parameter) for parameter in names]
    assert set(found) == {kind.names.kind for kind in KINDS.values()}
    assert all(b"fieldValidation" in names for names in found.values())
    plain = (await client.get("/openapi/v2")).json
    assert plain["swagger"] == "2.0"
    assert len(plain["paths"]) == len(KINDS)


def fields(body):
    return [(number, value) for number, _, value in protobuf._walk(memoryview(body))]


def _query_name(parameter):
    for number in (1, 2, 3):
        parameter = dict(fields(parameter))[number]
    return dict(fields(parameter))[4]
