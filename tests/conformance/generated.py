"""Requests made up from the server's own OpenAPI documents: near the truth, and wrong in places.

A body is a good object with something in it changed, or follows its schema but for a value here
and there of another sort; a path names what is there, or may be; a query uses declared parameters
with likely and unlikely values. So requests get past the first checks, and reach what lies behind.
"""

from __future__ import annotations

import json
import urllib.parse
from dataclasses import dataclass

from hypothesis import strategies as st

DEPTH_MAX = 5
FIELDS_MAX = 6
METHODS = ("get", "post", "put", "patch", "delete")
NAMES = ("one", "two")
WORDS = (
    *("one", "two", "main", "app", "example/main:1", "Always", "Never", "TCP", "True", "1", "10m"),
    *("500m", "1Gi", "50%", "v1", "Opaque", "2026-01-01T00:00:00Z", "example.com/hold", "0s", ""),
    *("Ünïcødé", "a b", "UPPER", "-", "..", "a" * 300, "$patch", "\u0000", "\ud7ff", "{}", "null"),
)
NUMBERS = (0, 1, 2, 3, 80, -1, 65536, 2**31, 2**53 + 1)
ODD_NUMBERS = (2**63, -(2**63) - 1, 2**200, 0.5, 1e300)


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
    st.none() | st.booleans() | st.sampled_from((*NUMBERS, *ODD_NUMBERS)) | st.sampled_from(WORDS),
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


def _often(draw, of: int = 10) -> bool:
    """Whether the usual is done: but once in so many times."""
    return draw(st.integers(1, of)) < of


@st.composite
def documents(draw, operation, seeds, namespace, name):
    """Draw an object for an operation, mostly with the identity its path asks for."""
    seed = seeds.get(operation.identity)
    if seed is not None and draw(st.integers(0, 3)):
        document = draw(changed(draw(st.sampled_from(seed))))
    else:
        document = draw(values(operation.schema, operation.components))
    if not isinstance(document, dict) or not _often(draw, 20):
        return document
    version, kind = operation.identity
    metadata = document.get("metadata")
    metadata = dict(metadata) if isinstance(metadata, dict) else {}
    metadata["name"] = name
    if "{namespace}" in operation.path:
        metadata["namespace"] = namespace
    if _often(draw):
        metadata.pop("resourceVersion", None)
        metadata.pop("uid", None)
    return {**document, "apiVersion": version, "kind": kind, "metadata": metadata}


@st.composite
def changed(draw, document):
    """Draw a document that differs from a good one in up to two places."""
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.sampled_from([*_places(document)]))
        document = _with(document, place, draw(ANYTHING), gone=draw(st.booleans()))
    return document


def _places(document, before=()):
    """Yield the path of every value in a document but itself."""
    if isinstance(document, dict):
        children = document.items()
    elif isinstance(document, list):
        children = enumerate(document)
    else:
        children = ()
    for key, below in children:
        yield (*before, key)
        yield from _places(below, (*before, key))


def _with(document, place, value, *, gone):
    """Return a document with another value in a place, or with none there."""
    first, *rest = place
    made = dict(document) if isinstance(document, dict) else list(document)
    if rest:
        made[first] = _with(made[first], rest, value, gone=gone)
    elif gone:
        del made[first]
    else:
        made[first] = value
    return made


@st.composite
def json_patches(draw, document):
    """Draw a JSON patch whose paths are those of a document, or nearly."""
    pointers = ["/" + "/".join(map(str, place)) for place in _places(document)]
    odd = ("", "/metadata/labels/-", "/absent/below", "no-slash", "/~2")
    found = st.sampled_from((*pointers, *odd))
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
def bodies(draw, operation, seeds, sort, namespace, name):
    """Draw a body of one media type."""
    if not _often(draw, 30):
        return draw(st.binary(max_size=60))
    document = draw(documents(operation, seeds, namespace, name))
    if "json-patch+" in sort:
        document = draw(json_patches(document))
    elif "strategic" in sort and isinstance(document, dict):
        document = {**document, **draw(DIRECTIVES)}
    return json.dumps(document).encode(errors="replace")


@st.composite
def queries(draw, operation):
    """Draw parameters: mostly none, else declared ones with likely values."""
    pairs = [("fieldManager", "one")] if operation.method == "PATCH" else []
    if draw(st.integers(0, 2)):
        return urllib.parse.urlencode(pairs)
    known = [*operation.parameters, ("pretty", "string"), ("nothing", "string")]
    for name, sort in draw(st.lists(st.sampled_from(known), max_size=3, unique=True)):
        likely = LIKELY.get(name) or LIKELY_OF.get(sort, ("one",))
        usual = _often(draw, 5)
        pairs.append((name, draw(st.sampled_from(likely if usual else WORDS))))
    return urllib.parse.urlencode(pairs, errors="replace")


LIKELY_OF = {"integer": ("0", "1", "2", "500"), "boolean": ("true", "false")}
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
def requests(draw, found, seeds, namespace):
    """Draw a request to one of the operations found."""
    operation = draw(st.sampled_from(found))
    there = [seed["metadata"]["name"] for seed in seeds.get(operation.identity, ())]
    name = draw(st.sampled_from((*there, *there, *NAMES) if _often(draw) else WORDS))
    place = namespace if _often(draw) else draw(st.sampled_from(WORDS))
    path = operation.path
    for key, value in (("{namespace}", place), ("{name}", name)):
        path = path.replace(key, urllib.parse.quote(value, safe="", errors="replace"))
    query = draw(queries(operation))
    target = f"{path}?{query}" if query else path
    if operation.method in ("GET", "DELETE") and _often(draw):
        return Asked(operation.method, target)
    sorts = [sort for sort in operation.types if "protobuf" not in sort] or ["application/json"]
    sort = draw(st.sampled_from(sorts if _often(draw) else ("text/plain", "", *operation.types)))
    return Asked(operation.method, target, draw(bodies(operation, seeds, sort, place, name)), sort)


def seeds_of(documents) -> dict[tuple[str, str], list[object]]:
    """Return good objects by the version and kind they are of."""
    found: dict[tuple[str, str], list[object]] = {}
    for document in documents:
        found.setdefault((document["apiVersion"], document["kind"]), []).append(document)
    return found
