"""ConfigMap, Secret and ServiceAccount: what pods are given beside their spec.

Controllers read their metadata alone, so that no observation ever holds a secret.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping

import msgspec

from spinney.api.core.builtin import Bare, Finer, built_in, immutable
from spinney.api.kinds import Names
from spinney.api.surroundings import Surroundings
from spinney.meta.cursors import Cursor
from spinney.meta.documents import Document, Json, same_content, without
from spinney.meta.errors import TOO_LONG, FieldError

DATA_BYTES_MAX = 1024 * 1024
"""How much a ConfigMap or a Secret may hold."""

KEY_RULE = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "
    "'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
KEY_LENGTH_MAX = 253
_KEY = re.compile(r"[-._a-zA-Z0-9]+", re.ASCII)

ACCOUNT_NAME = "kubernetes.io/service-account.name"
"""The annotation by which the Secret of a token says whose token it is."""

NEEDED: Mapping[str, tuple[str, ...]] = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
"""The keys a Secret of a type must have."""

_AS_JSON = (".dockercfg", ".dockerconfigjson")


class ConfigMap(Bare):
    """Files and settings for pods."""

    data: Mapping[str, str] = {}
    binary_data: Mapping[str, str] = {}
    """Bytes, in base64."""


class Secret(Bare):
    """Files and settings for pods that few may read."""

    data: Mapping[str, str] = {}
    """Bytes, in base64."""


class ServiceAccount(Bare):
    """Who a pod is to the API server."""


def key_fault(key: str) -> str:
    """Return what must hold of a key of a ConfigMap or Secret; "" if it does."""
    if len(key) > KEY_LENGTH_MAX:
        return f"must be no more than {KEY_LENGTH_MAX} characters"
    if key in (".", ".."):
        return f"must not be '{key}'"
    if key.startswith(".."):
        return "must not start with '..'"
    return "" if _KEY.fullmatch(key) else KEY_RULE


def _data_rules(
    new: Cursor, fields: tuple[str, ...], base64_fields: tuple[str, ...]
) -> Iterator[FieldError]:
    seen: set[str] = set()
    size = 0
    for field in fields:
        for key, value in new[field].entries():
            if fault := key_fault(key):
                yield Cursor(key, value.path).invalid(fault)
            if key in seen:
                yield Cursor(key, value.path).invalid("duplicate of key present in data")
            seen.add(key)
            text = value.string() or ""
            size += _byte_count(text, is_base64=field in base64_fields)
    if size > DATA_BYTES_MAX:
        yield FieldError(
            path=fields[0], reason=TOO_LONG, message=f"may not be more than {DATA_BYTES_MAX} bytes"
        )


def _byte_count(text: str, *, is_base64: bool) -> int:
    if is_base64:
        return len(text) // 4 * 3 - text[-2:].count("=")
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _config_map_rules(new: Cursor) -> Iterator[FieldError]:
    yield from _data_rules(new, ("data", "binaryData"), ("binaryData",))


def _secret_rules(new: Cursor) -> Iterator[FieldError]:
    yield from _data_rules(new, ("data",), ("data",))
    sort, data = new["type"].string() or "", new["data"]
    for key in NEEDED.get(sort, ()):
        said = data.entry(key)
        if said.value is None:
            yield said.required()
        elif key in _AS_JSON and not _is_json(said.string() or ""):
            yield Cursor("<secret contents redacted>", said.path).invalid("must be JSON in base64")
    is_known = data.entry("username") or data.entry("password")
    if sort == "kubernetes.io/basic-auth" and not is_known:
        yield data.entry("username").required()
        yield data.entry("password").required()
    if sort == "kubernetes.io/service-account-token":
        name = new["metadata"]["annotations"].entry(ACCOUNT_NAME)
        if not name.string():
            yield name.required()


def _is_json(body: str) -> bool:
    try:
        return isinstance(msgspec.json.decode(base64.b64decode(body)), dict)
    except (ValueError, binascii.Error, msgspec.MsgspecError, RecursionError):
        return False


def _frozen(old: Cursor, new: Cursor, fields: tuple[str, ...]) -> Iterator[FieldError]:
    """Yield what was changed of an object that says it is immutable."""
    if old["immutable"].boolean() is not True:
        return
    if new["immutable"].boolean() is not True:
        yield new["immutable"].forbidden("field is immutable when `immutable` is set")
    for field in fields:
        if not same_content(old[field].value, new[field].value):
            yield FieldError(
                path=field,
                reason="FieldValueForbidden",
                message="field is immutable when `immutable` is set",
            )


def _config_map_changes(old: Cursor, new: Cursor, _known: Surroundings) -> Iterator[FieldError]:
    yield from _frozen(old, new, ("data", "binaryData"))


def _secret_changes(old: Cursor, new: Cursor, _known: Surroundings) -> Iterator[FieldError]:
    yield from immutable(old["type"], new["type"])
    yield from _frozen(old, new, ("data",))


def _fold(document: Document) -> Document:
    """Move `stringData` into `data`, as bytes; what cannot be moved stays and is told of."""
    texts, data = document.get("stringData"), document.get("data") or {}
    if not isinstance(texts, dict) or not isinstance(data, dict):
        return document
    if not all(isinstance(text, str) for text in texts.values()):
        return document
    folded: dict[str, Json] = dict(data)
    for key, text in texts.items():
        body = str(text).encode("utf-8", "replace")
        folded[key] = base64.b64encode(body).decode("ascii")
    kept = without(document, ["stringData"])
    return {**kept, "data": folded} if folded else kept


CONFIG_MAP = built_in(
    Names(
        group="",
        version="v1",
        kind="ConfigMap",
        plural="configmaps",
        singular="configmap",
        short=("cm",),
    ),
    ConfigMap,
    rules=_config_map_rules,
    changes=_config_map_changes,
)
SECRET = built_in(
    Names(group="", version="v1", kind="Secret", plural="secrets", singular="secret"),
    Secret,
    finer={"type": Finer(default="Opaque")},
    default=_fold,
    rules=_secret_rules,
    changes=_secret_changes,
    selectable=("type",),
)
SERVICE_ACCOUNT = built_in(
    Names(
        group="",
        version="v1",
        kind="ServiceAccount",
        plural="serviceaccounts",
        singular="serviceaccount",
        short=("sa",),
    ),
    ServiceAccount,
)
