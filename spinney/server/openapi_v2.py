"""OpenAPI v2: an empty document, which is what clients that ask for it need.

kubectl reads it where it does not find a kind in OpenAPI v3, such as a `List` or a kind that is not
served, and wants protobuf. Told of no schema, it leaves the checking to the server, and says itself
that a kind is not served; told of no document, it gives up before.
"""

from __future__ import annotations

import spinney
from spinney.server import replies
from spinney.server.asking import Asked
from spinney.server.replies import Reply

SWAGGER = "2.0"
TITLE = "Spinney"
PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"

_SWAGGER_FIELD, _INFO_FIELD = 1, 2
_TITLE_FIELD, _VERSION_FIELD = 1, 2
_WITH_LENGTH = 2


def answer(asked: Asked) -> Reply:
    """Answer with the document, in protobuf where that is asked for."""
    if "proto-openapi.spec.v2" in asked.request.headers.get("Accept", ""):
        return Reply(body=_document(), media=PROTOBUF)
    info = {"title": TITLE, "version": spinney.__version__}
    return replies.of({"swagger": SWAGGER, "info": {**info}, "paths": {}, "definitions": {}})


def _document() -> bytes:
    info = _field(_TITLE_FIELD, TITLE.encode()) + _field(
        _VERSION_FIELD, spinney.__version__.encode()
    )
    return _field(_SWAGGER_FIELD, SWAGGER.encode()) + _field(_INFO_FIELD, info)


def _field(number: int, value: bytes) -> bytes:
    """Return a field of up to 127 bytes as protobuf writes it."""
    return bytes([number << 3 | _WITH_LENGTH, len(value)]) + value
