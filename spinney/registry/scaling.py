"""The scale subresource: three values of an object, as an autoscaling/v1 Scale."""

from __future__ import annotations

from spinney.api.kinds import Kind, ScalePaths
from spinney.meta import errors
from spinney.meta.documents import Document, Json, is_integer, string_at, value_at, with_value
from spinney.meta.errors import BadRequest, FieldError, Invalid
from spinney.registry import requests


def _steps(path: str) -> list[str]:
    return [step for step in path.split(".") if step]


def paths_of(kind: Kind) -> ScalePaths:
    """Return where a kind's scale stands; raises NotFound where it has none."""
    if kind.scale is None:
        raise requests.no_such_resource()
    return kind.scale


def scale_of(kind: Kind, document: Document) -> Document:
    """Return an object's Scale."""
    paths = paths_of(kind)
    metadata: Document = {
        key: string_at(document, ["metadata", key])
        for key in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
        if string_at(document, ["metadata", key])
    }
    wanted, there = (
        value_at(document, _steps(path)) for path in (paths.spec_replicas, paths.status_replicas)
    )
    status: Document = {"replicas": there if is_integer(there) else 0}
    selector = string_at(document, _steps(paths.selector))
    if selector:
        status["selector"] = selector
    return {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": metadata,
        "spec": {"replicas": wanted} if is_integer(wanted) else {},
        "status": status,
    }


def scaled(kind: Kind, document: Document, scale: Document) -> Document:
    """Return an object with the replicas a Scale says; raises what is wrong with the Scale."""
    replicas: Json = value_at(scale, ["spec", "replicas"])
    if replicas is None:
        replicas = 0
    if not is_integer(replicas):
        raise BadRequest(f"spec.replicas: must be an integer, found {errors.shown(replicas)}")
    if replicas < 0:
        fault = FieldError(
            path="spec.replicas",
            reason=errors.INVALID,
            message="should be a non-negative integer",
            found=replicas,
        )
        raise Invalid(
            [fault],
            group="autoscaling",
            kind="Scale",
            name=string_at(document, ["metadata", "name"]),
        )
    uid, found = string_at(scale, ["metadata", "uid"]), string_at(document, ["metadata", "uid"])
    if uid and uid != found:
        raise requests.other_uid(kind, string_at(document, ["metadata", "name"]), uid, found)
    version = string_at(scale, ["metadata", "resourceVersion"])
    if version and version != string_at(document, ["metadata", "resourceVersion"]):
        raise requests.modified(kind, string_at(document, ["metadata", "name"]))
    return with_value(document, _steps(paths_of(kind).spec_replicas), replicas)
