"""Access: who asks, by the token they show, and what they may do.

Who has the full token may do everything; who has a read-only one may read everything but Secrets.
Roles and bindings are kept for those who bring them, and grant nothing here.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable

from multidict import MultiMapping

from spinney.meta import errors
from spinney.meta.errors import Forbidden, Unauthorized
from spinney.meta.records import Record
from spinney.ports import Identity
from spinney.server.paths import Target

MASTERS = "system:masters"
AUTHENTICATED = "system:authenticated"
READERS = "spinney:readers"
"""The group of those who may only read."""

PUBLIC_PATHS = frozenset({"/version", "/healthz", "/livez", "/readyz"})
"""What is answered without a token, as Kubernetes does: it tells nothing but that this is one."""

_ALWAYS = frozenset({"selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"})
_READ_VERBS = frozenset({"get", "list", "watch", "head"})
_ACTING_PARTS = frozenset({"exec", "attach", "portforward", "proxy"})


class Grant(Record):
    """A token, and whose it is."""

    token: str
    user: str = "admin"
    groups: tuple[str, ...] = (MASTERS,)
    read_only: bool = False


class Caller(Record):
    """Who asks."""

    user: str
    groups: tuple[str, ...] = ()
    read_only: bool = False

    def identity(self, manager: str) -> Identity:
        """Return who writes, as the registry knows it."""
        return Identity(user=self.user, groups=self.groups, manager=manager)


ANONYMOUS = Caller(user="system:anonymous", groups=("system:unauthenticated",), read_only=True)


class Access:
    """Knows tokens; says who shows one, and refuses what they may not do."""

    def __init__(self, grants: Iterable[Grant]) -> None:
        """Know these tokens and no others."""
        self._grants = tuple((_digest(grant.token), grant) for grant in grants if grant.token)

    def grant_of(self, token: str) -> Grant | None:
        """Return whose a token is; takes as long whichever it is, and if it is none."""
        shown, found = _digest(token), None
        for digest, grant in self._grants:
            if hmac.compare_digest(digest, shown):
                found = grant
        return found

    def caller(self, headers: MultiMapping[str]) -> Caller:
        """Return who asks; raises Unauthorized without a token that is known."""
        kind, _, token = headers.get("Authorization", "").partition(" ")
        grant = self.grant_of(token.strip()) if kind.casefold() == "bearer" else None
        if grant is None:
            raise Unauthorized("Unauthorized")
        return _impersonated(caller_of(grant), headers)

    def known_user(self, user: str) -> Grant | None:
        """Return the grant of a user, if there is one."""
        for _, grant in self._grants:
            if grant.user == user:
                return grant
        return None


def caller_of(grant: Grant) -> Caller:
    """Return who asks with a grant."""
    groups = tuple(dict.fromkeys((*grant.groups, AUTHENTICATED)))
    if grant.read_only:
        groups = tuple(dict.fromkeys((READERS, *(name for name in groups if name != MASTERS))))
    return Caller(user=grant.user, groups=groups, read_only=grant.read_only)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()


def _impersonated(caller: Caller, headers: MultiMapping[str]) -> Caller:
    user = headers.get("Impersonate-User", "")
    groups = tuple(headers.getall("Impersonate-Group", ()))
    if not user:
        if groups or headers.get("Impersonate-Uid", ""):
            raise errors.BadRequest(
                "requested impersonation without impersonating a user: send Impersonate-User too"
            )
        return caller
    if MASTERS not in caller.groups:
        raise Forbidden(
            f'users "{user}" is forbidden: User "{caller.user}" cannot impersonate resource '
            '"users" in API group "" at the cluster scope',
            details={"name": user, "kind": "users"},
        )
    whole = tuple(dict.fromkeys((*groups, AUTHENTICATED)))
    return Caller(user=user, groups=whole, read_only=READERS in whole)


def refusal(caller: Caller, target: Target) -> str:
    """Return why a caller may not do something, "" if they may."""
    if not caller.read_only:
        return ""
    if target.plural in _ALWAYS:
        return ""
    if target.verb not in _READ_VERBS:
        return "the token is read-only"
    if target.subresource in _ACTING_PARTS:
        return "the token is read-only, and this acts on a running pod"
    if target.plural == "secrets" and not target.group:
        return "the token is read-only, which leaves Secrets out"
    return ""


def check(caller: Caller, target: Target) -> None:
    """Raise Forbidden where a caller may not do something."""
    why = refusal(caller, target)
    if not why:
        return
    if not target.plural:
        raise Forbidden(
            f'forbidden: User "{caller.user}" cannot {target.verb} path "{target.path}": {why}'
        )
    resource = f"{target.plural}/{target.subresource}" if target.subresource else target.plural
    group = errors.json_string(target.group)
    what = f"{target.plural}.{target.group}" if target.group else target.plural
    named = f'{what} "{target.name}"' if target.name else what
    where = f'in the namespace "{target.namespace}"' if target.namespace else "at the cluster scope"
    raise Forbidden(
        f'{named} is forbidden: User "{caller.user}" cannot {target.verb} resource "{resource}" '
        f"in API group {group} {where}: {why}",
        details=errors.object_details(target.group, target.plural, target.name),
    )
