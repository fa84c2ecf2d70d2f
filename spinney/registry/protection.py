"""Protection of what Spinney made for a set against edits by hand (rule 1.9).

Spec and Grove labels of the children are the controllers' business: an edit would be undone, or
would break the gang. It is refused with the name of the set that should be edited instead.
"""

from __future__ import annotations

from collections.abc import Callable

from spinney.api import labels
from spinney.api.kinds import Kind
from spinney.meta.documents import Document, list_at, object_at, same, string_at, strings
from spinney.meta.errors import Forbidden
from spinney.meta.references import GroupKind
from spinney.ports import Identity
from spinney.registry import requests

SET = GroupKind(group="grove.io", kind="PodCliqueSet")

OWN_KINDS = frozenset(
    {
        GroupKind(group="grove.io", kind="PodClique"),
        GroupKind(group="grove.io", kind="PodCliqueScalingGroup"),
        GroupKind(group="scheduler.grove.io", kind="PodGang"),
    }
)
"""Kinds only the controllers make: their creation is protected too."""

SUPPORT_KINDS = frozenset(
    {
        GroupKind(group="", kind="Service"),
        GroupKind(group="", kind="ServiceAccount"),
        GroupKind(group="", kind="Secret"),
        GroupKind(group="autoscaling", kind="HorizontalPodAutoscaler"),
        GroupKind(group="rbac.authorization.k8s.io", kind="Role"),
        GroupKind(group="rbac.authorization.k8s.io", kind="RoleBinding"),
    }
)
POD = GroupKind(group="", kind="Pod")

EXEMPT_USERS = frozenset(
    {
        "system:spinney:controllers",
        "system:serviceaccount:kube-system:generic-garbage-collector",
        "system:serviceaccount:kube-system:namespace-controller",
    }
)
EXEMPT_GROUPS = frozenset({"system:nodes"})

FindSet = Callable[[str, str], "Document | None"]
"""Finds a PodCliqueSet by namespace and name."""


class Protection:
    """Knows whose edits of which objects are refused."""

    def __init__(self, find_set: FindSet, exempt_users: frozenset[str] = frozenset()) -> None:
        """Look sets up with a function; `exempt_users` come on top of those always exempt."""
        self._find_set = find_set
        self._exempt_users = EXEMPT_USERS | exempt_users

    def is_exempt(self, who: Identity) -> bool:
        """Whether somebody may edit what is protected."""
        return who.user in self._exempt_users or not EXEMPT_GROUPS.isdisjoint(who.groups)

    def refusal(
        self, kind: Kind, who: Identity, old: Document | None, new: Document | None
    ) -> Forbidden | None:
        """Return why a write is refused, None where it is not.

        `old` is None for a creation and `new` for a deletion. What an object is, is read from the
        old one, so that an edit cannot take its protection away first.
        """
        group_kind = kind.names.group_kind
        known = old if old is not None else new
        if known is None or self.is_exempt(who):
            return None
        if group_kind not in OWN_KINDS | SUPPORT_KINDS and group_kind != POD:
            return None
        carried = strings(object_at(known, ["metadata", "labels"]))
        root = carried.get(labels.PART_OF, "")
        if carried.get(labels.MANAGED_BY) != labels.MANAGER or not root:
            return None
        if not _touches(group_kind, old, new):
            return None
        owner = self._find_set(string_at(known, ["metadata", "namespace"]), root)
        if owner is None:
            return None
        annotations = strings(object_at(owner, ["metadata", "annotations"]))
        if annotations.get(labels.UNPROTECTED) == "true":
            return None
        return requests.forbidden(
            kind,
            string_at(known, ["metadata", "name"]),
            f'made and kept by PodCliqueSet "{root}": edit that instead, or annotate it with '
            f'{labels.UNPROTECTED}: "true"',
        )


def _touches(kind: GroupKind, old: Document | None, new: Document | None) -> bool:
    """Whether a write is about what is protected of a kind."""
    if old is None:
        return kind in OWN_KINDS
    if new is None:
        return kind != POD
    if not same(_protected_labels(old), _protected_labels(new)):
        return True
    if kind == POD:
        return _gates(old) != _gates(new)
    return not same(_content(old), _content(new))


_PROTECTED_LABELS = (labels.MANAGED_BY, labels.PART_OF, labels.NAME, labels.COMPONENT)
_PROTECTED_PREFIXES = ("grove.io/", "spinney.dev/")


def _protected_labels(document: Document) -> Document:
    carried = object_at(document, ["metadata", "labels"])
    return {
        key: value
        for key, value in carried.items()
        if key in _PROTECTED_LABELS or key.startswith(_PROTECTED_PREFIXES)
    }


def _gates(document: Document) -> list[str]:
    gates = list_at(document, ["spec", "schedulingGates"])
    return [name for name in (string_at(gate, ["name"]) for gate in gates) if name == labels.GATE]


def _content(document: Document) -> Document:
    return {key: value for key, value in document.items() if key not in ("metadata", "status")}
