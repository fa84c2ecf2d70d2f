"""OpenAPI v2: the little that kubectl 1.27 to 1.30 ask of it before they apply, diff or explain.

They take it in protobuf alone, and look for two things in it: that a kind may be patched, and that
the server validates fields. So there is a path for each kind and no schema; newer ones look in v3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from spinney.api.kinds import Kind
from spinney.meta.documents import Document, Json
from spinney.server import negotiation
from spinney.server.openapi import path_of

PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
MEDIA = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
"""What the answer calls itself: an `@`, as it is asked for with, may not stand in a media type."""

TITLE = "Spinney"

_GVK = "x-kubernetes-group-version-kind"
_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation")

_DOCUMENT_SWAGGER, _DOCUMENT_INFO, _DOCUMENT_PATHS, _DOCUMENT_DEFINITIONS = 1, 2, 8, 9
_INFO_TITLE, _INFO_VERSION = 1, 2
_PATHS_PATH, _NAME, _VALUE = 2, 1, 2
_ITEM_PATCH = 8
_OPERATION_CONSUMES, _OPERATION_PARAMETERS, _OPERATION_EXTENSION = 7, 8, 13
_ANY_YAML = 2
_ITEM_PARAMETER, _PARAMETER_NON_BODY, _NON_BODY_QUERY = 1, 2, 3
_QUERY_IN, _QUERY_NAME, _QUERY_TYPE = 2, 4, 6


def is_asked_for(accept: str) -> bool:
    """Whether a client takes the document in protobuf."""
    return any(part.split(";")[0].strip() == PROTOBUF for part in accept.split(","))


def _paths(kinds: Iterable[Kind]) -> Iterator[tuple[str, Document]]:
    """Yield the path of an object of each kind, and which kind it is of."""
    for kind in kinds:
        names = kind.names
        root = f"/{path_of(names.group, names.version)}"
        place = f"{root}/namespaces/{{namespace}}" if kind.namespaced else root
        said: Document = {"group": names.group, "kind": names.kind, "version": names.version}
        yield f"{place}/{names.plural}/{{name}}", said


def document(kinds: Iterable[Kind], version: str) -> Document:
    """Return the document in JSON."""
    parameters: list[Json] = [
        {"in": "query", "name": name, "type": "string"} for name in _PARAMETERS
    ]
    paths: Document = {
        path: {
            "patch": {
                "consumes": [negotiation.JSON],
                "parameters": parameters,
                "responses": {"200": {"description": "OK"}},
                _GVK: said,
            }
        }
        for path, said in _paths(kinds)
    }
    return {
        "swagger": "2.0",
        "info": {"title": TITLE, "version": version},
        "paths": paths,
        "definitions": {},
    }


def encoded(kinds: Iterable[Kind], version: str) -> bytes:
    """Return the document in protobuf."""
    info = _text(_INFO_TITLE, TITLE) + _text(_INFO_VERSION, version)
    parameters = b"".join(map(_parameter, _PARAMETERS))
    paths = b""
    for path, said in _paths(kinds):
        yaml = _text(_ANY_YAML, msgspec.json.encode(said).decode())
        operation = (
            _text(_OPERATION_CONSUMES, negotiation.JSON)
            + parameters
            + _field(_OPERATION_EXTENSION, _text(_NAME, _GVK) + _field(_VALUE, yaml))
        )
        item = _field(_ITEM_PATCH, operation)
        paths += _field(_PATHS_PATH, _text(_NAME, path) + _field(_VALUE, item))
    return (
        _text(_DOCUMENT_SWAGGER, "2.0")
        + _field(_DOCUMENT_INFO, info)
        + _field(_DOCUMENT_PATHS, paths)
        + _field(_DOCUMENT_DEFINITIONS, b"")
    )


def _parameter(name: str) -> bytes:
    query = _text(_QUERY_IN, "query") + _text(_QUERY_NAME, name) + _text(_QUERY_TYPE, "string")
    non_body = _field(_PARAMETER_NON_BODY, _field(_NON_BODY_QUERY, query))
    return _field(_OPERATION_PARAMETERS, _field(_ITEM_PARAMETER, non_body))


def _text(number: int, value: str) -> bytes:
    return _field(number, value.encode())


def _field(number: int, value: bytes) -> bytes:
    """Return a field that holds bytes: its tag, how many they are, and they."""
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)
