"""Reviews: who am I, may I, whose token is this. Answered by what is enforced, and kept nowhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from spinney.meta.documents import Document, Json, list_at, object_at, string_at
from spinney.meta.errors import BadRequest, FieldError, Invalid
from spinney.server import access
from spinney.server.access import Access, Caller
from spinney.server.paths import Target

ALLOWED = "whoever has this token may do everything: Spinney evaluates no roles"
NO_RIGHTS = "no token is known for this user, and Spinney evaluates no roles"


def answer(kind: str, document: Document, caller: Caller, rights: Access) -> Document:
    """Return a review with its status filled in."""
    status = _ANSWERS[kind](document, caller, rights)
    return {**document, "metadata": object_at(document, ["metadata"]), "status": status}


def _user_info(caller: Caller) -> Document:
    return {"username": caller.user, "groups": list(caller.groups)}


def _who_am_i(_document: Document, caller: Caller, _rights: Access) -> Document:
    return {"userInfo": _user_info(caller)}


def _may_i(document: Document, caller: Caller, _rights: Access) -> Document:
    return _decision(_asked(document), caller)


def _may_they(document: Document, _caller: Caller, rights: Access) -> Document:
    spec = object_at(document, ["spec"])
    user = string_at(spec, ["user"])
    groups = tuple(name for name in list_at(spec, ["groups"]) if isinstance(name, str))
    if not user and not groups:
        fault = FieldError(
            path="spec.user",
            reason="FieldValueInvalid",
            message="at least one of user or group must be specified",
            found="",
        )
        raise Invalid([fault], group="authorization.k8s.io", kind="SubjectAccessReview", name="")
    grant = rights.known_user(user)
    if grant is not None:
        return _decision(_asked(document), access.caller_of(grant))
    if access.MASTERS in groups or access.READERS in groups:
        is_reader = access.MASTERS not in groups
        whose = Caller(user=user, groups=groups, read_only=is_reader)
        return _decision(_asked(document), whose)
    return {"allowed": False, "reason": NO_RIGHTS}


def _decision(target: Target, caller: Caller) -> Document:
    why = access.refusal(caller, target)
    return {"allowed": not why, "reason": why or _allowed(caller)}


def _allowed(caller: Caller) -> str:
    return "a read-only token may do this" if caller.read_only else ALLOWED


def _asked(document: Document) -> Target:
    spec = object_at(document, ["spec"])
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if isinstance(resource, dict) == isinstance(path, dict):
        fault = FieldError(
            path="spec.resourceAttributes",
            reason="FieldValueInvalid",
            message="exactly one of nonResourceAttributes or resourceAttributes must be specified",
        )
        raise Invalid(
            [fault],
            group="authorization.k8s.io",
            kind=string_at(document, ["kind"]) or "SelfSubjectAccessReview",
            name="",
        )
    if isinstance(path, dict):
        return Target(verb=string_at(path, ["verb"]), path=string_at(path, ["path"]))
    return Target(
        verb=string_at(resource, ["verb"]),
        path="",
        group=string_at(resource, ["group"]),
        version=string_at(resource, ["version"]),
        namespace=string_at(resource, ["namespace"]),
        plural=string_at(resource, ["resource"]) or "*",
        name=string_at(resource, ["name"]),
        subresource=string_at(resource, ["subresource"]),
    )


_READING: list[Json] = ["get", "list", "watch"]


def _what_may_i(document: Document, caller: Caller, _rights: Access) -> Document:
    if not string_at(document, ["spec", "namespace"]):
        raise BadRequest("no namespace on request")
    verbs: list[Json] = _READING if caller.read_only else ["*"]
    paths: list[Json] = ["get"] if caller.read_only else ["*"]
    return {
        "resourceRules": [{"verbs": verbs, "apiGroups": ["*"], "resources": ["*"]}],
        "nonResourceRules": [{"verbs": paths, "nonResourceURLs": ["*"]}],
        "incomplete": caller.read_only,
        **({"evaluationError": "a read-only token leaves Secrets out"} if caller.read_only else {}),
    }


def _whose_token(document: Document, _caller: Caller, rights: Access) -> Document:
    token = string_at(document, ["spec", "token"])
    grant = rights.grant_of(token) if token else None
    if grant is None:
        return {"authenticated": False, "user": {}, "error": "the token is none that is known"}
    return {"authenticated": True, "user": _user_info(access.caller_of(grant))}


_ANSWERS: Mapping[str, Callable[[Document, Caller, Access], Document]] = {
    "SelfSubjectReview": _who_am_i,
    "SelfSubjectAccessReview": _may_i,
    "LocalSubjectAccessReview": _may_they,
    "SubjectAccessReview": _may_they,
    "SelfSubjectRulesReview": _what_may_i,
    "TokenReview": _whose_token,
}
