"""Paths: what a request's method and path ask for. Pure, and total: every path gives an answer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from urllib.parse import unquote_to_bytes

from spinney.meta.records import Record

READ_VERBS = frozenset({"get", "list", "watch"})

_ITEM_VERBS: Mapping[str, str] = {
    "GET": "get",
    "HEAD": "get",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
    "POST": "create",
}
_LIST_VERBS: Mapping[str, str] = {
    "GET": "list",
    "HEAD": "list",
    "POST": "create",
    "DELETE": "deletecollection",
}
_NAMESPACE_SUBRESOURCES = frozenset({"status", "finalize"})
_SEGMENT = re.compile(r"[^/\x00-\x1f\x7f]+")


class Target(Record):
    """What a request is about: a resource, or else the path it came by."""

    verb: str
    """`get list create update patch delete deletecollection`; "" where the method has none here."""

    path: str
    group: str = ""
    version: str = ""
    namespace: str = ""
    plural: str = ""
    """"" for what is no resource: discovery, health and the like."""

    name: str = ""
    subresource: str = ""
    watched: bool = False
    """Whether the path itself asks for a watch, as `/api/v1/watch/pods` does."""


class NoSuchPath(Exception):
    """The caller: no path can look like this."""


def parse(method: str, raw_path: str) -> Target:
    """Return what is asked for; raises NoSuchPath for a path that leads nowhere."""
    segments = [_decoded(part) for part in raw_path.split("/") if part]
    path = "/" + "/".join(segments)
    if segments[:1] == ["api"] and len(segments) > 2:
        return _resource(method, path, "", segments[1], segments[2:])
    if segments[:1] == ["apis"] and len(segments) > 3:
        return _resource(method, path, segments[1], segments[2], segments[3:])
    return Target(verb=method.lower(), path=path)


def _decoded(segment: str) -> str:
    if "%" not in segment:
        return segment
    try:
        text = unquote_to_bytes(segment).decode()
    except UnicodeDecodeError as error:
        raise NoSuchPath("the path is not UTF-8") from error
    if not _SEGMENT.fullmatch(text):
        raise NoSuchPath("the path holds an escaped slash or a control character")
    return text


def _resource(method: str, path: str, group: str, version: str, segments: Sequence[str]) -> Target:
    watched = segments[0] == "watch" and len(segments) > 1
    if watched:
        segments = segments[1:]
    namespace = ""
    if segments[0] == "namespaces" and len(segments) > 1:
        namespace = segments[1]
        if len(segments) > 2 and not (
            len(segments) == 3 and segments[2] in _NAMESPACE_SUBRESOURCES and not group
        ):
            segments = segments[2:]
        else:
            namespace = ""
    plural, name = segments[0], segments[1] if len(segments) > 1 else ""
    verbs = _ITEM_VERBS if name else _LIST_VERBS
    return Target(
        verb=verbs.get(method, ""),
        path=path,
        group=group,
        version=version,
        namespace=namespace,
        plural=plural,
        name=name,
        subresource="/".join(segments[2:]),
        watched=watched,
    )
