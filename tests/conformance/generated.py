"""Requests made up from the server's own OpenAPI documents: near the truth, and wrong in places.

A body follows its schema but for a value here and there of another sort; a path names what may be
there; a query uses declared parameters with likely and unlikely values. So requests get past the
first checks, and reach what lies behind them.
"""

from __future__ import annotations

import json
import urllib.parse
from dataclasses import dataclass

from hypothesis import strategies as st

DEPTH_MAX = 5
FIELDS_MAX = 6
METHODS = ("get", "post", "put", "patch", "delete")
NAMES = ("one", "two", "three", "")
WORDS = (
    *("one", "two", "main", "app", "example/main:1", "Always", "Never", "TCP", "True", "1", "10m"),
    *("500m", "1Gi", "50%", "v1", "Opaque", "2026-01-01T00:00:00Z", "example.com/hold", "0s", ""),
    *("Ünïcødé", "a b", "UPPER", "-", "..", "a" * 300, "$patch", "\u0000", "\ud7ff", "{}", "null"),
)
NUMBERS = (0, 1, 2, 3, -1, 80, 65536, 2**31, 2**53 + 1, 2**63, -(2**63) - 1, 2**200, 0.5, 1e300)


@dataclass(frozen=True)
class Operation:
    """One method of one path, as OpenAPI tells of it."""

    method: str
    path: str
    parameters: tuple[tuple[str, str], ...]
    types: tuple[str, ...]
    identity: tuple[str, str]
    schema: object
    components: dict[str, object]


@dataclass(frozen=True)
class Asked:
    """One request."""

    method: str
    target: str
    body: bytes | None = None
    type: str = ""

    @property
    def streams(self) -> bool:
        """Whether the answer may go on: a watch, or a log that is followed."""
        return "watch=" in self.target or "follow=" in self.target or "/watch/" in self.target


def operations(documents) -> list[Operation]:
    """Return every operation of OpenAPI documents."""
    return [
        operation
        for document in documents
        for path, item in sorted(document["paths"].items())
        for operation in _operations(document, path, item)
    ]


def _operations(document, path, item):
    components = document.get("components", {}).get("schemas", {})
    for method in METHODS:
        said = item.get(method)
        if said is not None:
            content = said.get("requestBody", {}).get("content", {})
            named = said.get("x-kubernetes-group-version-kind", {})
            group, version = named.get("group", ""), named.get("version", "v1")
            yield Operation(
                method=method.upper(),
                path=path,
                parameters=tuple(
                    (parameter["name"], parameter["schema"].get("type", "string"))
                    for parameter in [*item.get("parameters", ()), *said.get("parameters", ())]
                    if parameter["in"] == "query"
                ),
                types=tuple(content),
                identity=(f"{group}/{version}" if group else version, named.get("kind", "")),
                schema=_object_schema(said, content),
                components=components,
            )


def _object_schema(said, content):
    """Return the schema of the objects an operation is about, wherever it is told."""
    for told in content.values():
        if "$ref" in told["schema"]:
            return told["schema"]
    replies = said.get("responses", {}).get("200", {}).get("content", {})
    return next((told["schema"] for told in replies.values()), {})


# Values

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.sampled_from(NUMBERS) | st.sampled_from(WORDS),
    lambda below: (
        st.lists(below, max_size=3) | st.dictionaries(st.sampled_from(WORDS), below, max_size=3)
    ),
    max_leaves=6,
)


@st.composite
def values(draw, schema, components, depth=0):
    """Draw a value that follows a schema, but for a part here and there."""
    if draw(st.integers(0, 19)) == 0:
        return draw(ANYTHING)
    while "$ref" in schema or "allOf" in schema:
        reference = schema.get("$ref") or schema["allOf"][0]["$ref"]
        schema = components.get(reference.rpartition("/")[2], {})
    if "oneOf" in schema:
        schema = draw(st.sampled_from(schema["oneOf"]))
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    sort = schema.get("type", "object")
    if sort == "object":
        return draw(_objects(schema, components, depth))
    if sort == "array":
        count = draw(st.integers(0, 2)) if depth < DEPTH_MAX else 0
        return [draw(values(schema.get("items", {}), components, depth + 1)) for _ in range(count)]
    if sort == "boolean":
        return draw(st.booleans())
    if sort in ("integer", "number"):
        return draw(st.sampled_from(NUMBERS))
    return draw(st.sampled_from(WORDS))


@st.composite
def _objects(draw, schema, components, depth):
    fields = schema.get("properties", {})
    wanted = set(schema.get("required", ()))
    if fields and depth < DEPTH_MAX:
        wanted |= draw(st.sets(st.sampled_from(sorted(fields)), max_size=FIELDS_MAX))
    made = {
        name: draw(values(fields[name], components, depth + 1))
        for name in sorted(wanted)
        if name in fields
    }
    further = schema.get("additionalProperties")
    if isinstance(further, dict) and depth < DEPTH_MAX:
        for key in draw(st.lists(st.sampled_from(WORDS), max_size=2)):
            made[key] = draw(values(further, components, depth + 1))
    return made


@st.composite
def documents(draw, operation, namespace, name):
    """Draw an object for an operation, mostly with the identity its path asks for."""
    document = draw(values(operation.schema, operation.components))
    if not isinstance(document, dict) or draw(st.integers(0, 19)) == 0:
        return document
    version, kind = operation.identity
    metadata = document.get("metadata")
    metadata = dict(metadata) if isinstance(metadata, dict) else {}
    metadata["name"] = name
    if "{namespace}" in operation.path:
        metadata["namespace"] = namespace
    metadata.pop("resourceVersion" if draw(st.booleans()) else "", None)
    return {**document, "apiVersion": version, "kind": kind, "metadata": metadata}


def _pointers(document, before=""):
    yield before
    children = (
        document.items()
        if isinstance(document, dict)
        else enumerate(document)
        if isinstance(document, list)
        else ()
    )
    for key, below in children:
        yield from _pointers(below, f"{before}/{key}")


@st.composite
def json_patches(draw, document):
    """Draw a JSON patch whose paths are those of a document, or nearly."""
    pointers = [*_pointers(document), "/metadata/labels/-", "/absent/below", "no-slash", "/~2"]
    found = st.sampled_from(pointers)
    words = ("add", "remove", "replace", "move", "copy", "test", "dance")
    return [
        {
            "op": draw(st.sampled_from(words)),
            "path": draw(found),
            "from": draw(found),
            "value": draw(ANYTHING),
        }
        for _ in range(draw(st.integers(0, 3)))
    ]


DIRECTIVES = st.fixed_dictionaries(
    {},
    optional={
        "$patch": st.sampled_from(("delete", "replace", "merge", "dance")),
        "$retainKeys": ANYTHING,
        "$setElementOrder/containers": ANYTHING,
        "$deleteFromPrimitiveList/finalizers": ANYTHING,
    },
)


@st.composite
def bodies(draw, operation, sort, namespace, name):
    """Draw a body of one media type."""
    if draw(st.integers(0, 29)) == 0:
        return draw(st.binary(max_size=60))
    document = draw(documents(operation, namespace, name))
    if "json-patch+" in sort:
        document = draw(json_patches(document))
    elif "strategic" in sort and isinstance(document, dict):
        document = {**document, **draw(DIRECTIVES)}
    return json.dumps(document).encode(errors="replace")


@st.composite
def queries(draw, operation):
    """Draw parameters, most of them declared."""
    known = [*operation.parameters, ("pretty", "string"), ("nothing", "string")]
    chosen = draw(st.lists(st.sampled_from(known), max_size=3, unique=True))
    pairs = []
    for name, sort in chosen:
        likely = {
            "integer": ("0", "1", "2", "500"),
            "boolean": ("true", "false"),
        }.get(sort, LIKELY.get(name, ("one",)))
        pairs.append((name, draw(st.sampled_from(likely) | st.sampled_from(WORDS))))
    return urllib.parse.urlencode(pairs, errors="replace")


LIKELY = {
    "dryRun": ("All",),
    "fieldManager": ("one", "two"),
    "fieldValidation": ("Strict", "Warn", "Ignore"),
    "fieldSelector": ("metadata.name=one", "metadata.namespace!=two", "spec.nodeName="),
    "labelSelector": ("app=one", "app in (one,two)", "!app", "app notin (one)"),
    "resourceVersion": ("0", "1", "999999999"),
    "resourceVersionMatch": ("Exact", "NotOlderThan"),
    "propagationPolicy": ("Foreground", "Background", "Orphan"),
    "continue": ("x", "e30="),
}


@st.composite
def requests(draw, found, namespace):
    """Draw a request to one of the operations found."""
    operation = draw(st.sampled_from(found))
    name = draw(st.sampled_from(NAMES) | st.sampled_from(WORDS))
    place = namespace if draw(st.integers(0, 9)) else draw(st.sampled_from(WORDS))
    path = operation.path
    for key, value in (("{namespace}", place), ("{name}", name)):
        path = path.replace(key, urllib.parse.quote(value, safe="", errors="replace"))
    query = draw(queries(operation))
    if operation.method in ("GET", "DELETE") and draw(st.integers(0, 9)):
        return Asked(operation.method, f"{path}?{query}")
    sorts = operation.types or ("application/json",)
    sort = draw(st.sampled_from((*sorts, "application/json", "text/plain", "")))
    body = draw(bodies(operation, sort, place, name))
    return Asked(operation.method, f"{path}?{query}", body, sort)
