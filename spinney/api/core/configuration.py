"""ConfigMap, Secret and ServiceAccount: what pods are given beside their spec.

Controllers read their metadata alone, so that no observation ever holds a secret.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator

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
_KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}", re.ASCII)


class ConfigMap(Bare):
    """Files and settings for pods."""


class Secret(Bare):
    """Files and settings for pods that few may read."""


class ServiceAccount(Bare):
    """Who a pod is to the API server."""


def key_fault(key: str) -> str:
    """Return what must hold of a key of a ConfigMap or Secret; "" if it does."""
    if key in (".", ".."):
        return f"must not be '{key}'"
    if key.startswith(".."):
        return "must not start with '..'"
    return "" if _KEY.fullmatch(key) else KEY_RULE


def _data_rules(new: Cursor, fields: tuple[str, ...]) -> Iterator[FieldError]:
    seen: set[str] = set()
    size = 0
    for field in fields:
        for key, value in new[field].entries():
            if fault := key_fault(key):
                yield Cursor(key, value.path).invalid(fault)
            if key in seen:
                yield Cursor(key, value.path).invalid("duplicate of key present in data")
            seen.add(key)
            size += len((value.string() or "").encode("utf-8", "surrogatepass"))
    if size > DATA_BYTES_MAX:
        yield FieldError(
            path="", reason=TOO_LONG, message=f"may not be more than {DATA_BYTES_MAX} bytes"
        )


def _config_map_rules(new: Cursor) -> Iterator[FieldError]:
    yield from _data_rules(new, ("data", "binaryData"))


def _secret_rules(new: Cursor) -> Iterator[FieldError]:
    yield from _data_rules(new, ("data",))


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
