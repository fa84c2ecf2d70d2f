"""Role, RoleBinding and their cluster-wide twins: who may do what."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from spinney.api.core.builtin import Bare, built_in
from spinney.api.kinds import Kind, Names
from spinney.api.surroundings import Surroundings
from spinney.meta.cursors import Cursor
from spinney.meta.documents import Document, Json, same_content
from spinney.meta.errors import FieldError

GROUP = "rbac.authorization.k8s.io"

_Rules: TypeAlias = Callable[[Cursor], Iterator[FieldError]]


def name_fault(text: str) -> str:
    """Return what must hold of a name that is a step of a path; "" if it does."""
    if text in (".", ".."):
        return f"may not be '{text}'"
    for character in "/%":
        if character in text:
            return f"may not contain '{character}'"
    return ""


def _policy_rules(rule: Cursor, *, namespaced: bool) -> Iterator[FieldError]:
    if rule.object() is None:
        return
    if rule["verbs"].value in (None, []):
        yield rule["verbs"].required("verbs must contain at least one value")
    urls = rule["nonResourceURLs"]
    if urls.value not in (None, []):
        if namespaced:
            yield urls.invalid("namespaced rules cannot apply to non-resource URLs")
        if any(rule[field].value for field in ("apiGroups", "resources", "resourceNames")):
            yield urls.invalid("rules cannot apply to both regular resources and non-resource URLs")
        return
    for field, what in (("apiGroups", "api group"), ("resources", "resource")):
        if rule[field].value in (None, []):
            yield rule[field].required(f"resource rules must supply at least one {what}")


def _role_rules(new: Cursor) -> Iterator[FieldError]:
    for rule in new["rules"]:
        yield from _policy_rules(rule, namespaced=True)


def _cluster_role_rules(new: Cursor) -> Iterator[FieldError]:
    for rule in new["rules"]:
        yield from _policy_rules(rule, namespaced=False)
    aggregation = new["aggregationRule"]
    if aggregation.object() is not None and not aggregation["clusterRoleSelectors"].value:
        yield aggregation["clusterRoleSelectors"].required(
            "at least one clusterRoleSelector required if aggregationRule is non-nil"
        )


def _binding_rules(
    new: Cursor, kinds: tuple[str, ...], *, namespaced: bool
) -> Iterator[FieldError]:
    role = new["roleRef"]
    if (group := role["apiGroup"].string()) is not None and group != GROUP:
        yield role["apiGroup"].not_supported((GROUP,))
    if (kind := role["kind"].string()) is not None and kind not in kinds:
        yield role["kind"].not_supported(kinds)
    name = role["name"].string()
    if name == "":
        yield role["name"].required()
    elif name is not None and (fault := name_fault(name)):
        yield role["name"].invalid(fault)
    for subject in new["subjects"]:
        yield from _subject_rules(subject, namespaced=namespaced)


def _subject_rules(subject: Cursor, *, namespaced: bool) -> Iterator[FieldError]:
    kind, group = subject["kind"].string(), subject["apiGroup"]
    if subject["name"].string() == "":
        yield subject["name"].required()
    if kind == "ServiceAccount":
        if group.string():
            yield group.not_supported(("",))
        if not namespaced and not subject["namespace"].string():
            yield subject["namespace"].required()
    elif kind in ("User", "Group"):
        if group.value is not None and group.string() != GROUP:
            yield group.not_supported((GROUP,))
    elif kind is not None:
        yield subject["kind"].not_supported(("ServiceAccount", "User", "Group"))


def _role_binding_rules(new: Cursor) -> Iterator[FieldError]:
    yield from _binding_rules(new, ("Role", "ClusterRole"), namespaced=True)


def _cluster_role_binding_rules(new: Cursor) -> Iterator[FieldError]:
    yield from _binding_rules(new, ("ClusterRole",), namespaced=False)


def _binding_changes(old: Cursor, new: Cursor, _known: Surroundings) -> Iterator[FieldError]:
    if not same_content(old["roleRef"].value, new["roleRef"].value):
        yield new["roleRef"].invalid("cannot change roleRef")


def _with_groups(document: Document) -> Document:
    """Say of which group the role and each subject are, as Kubernetes does."""
    filled = document
    role = document.get("roleRef")
    if isinstance(role, dict) and not role.get("apiGroup"):
        filled = {**filled, "roleRef": {**role, "apiGroup": GROUP}}
    subjects = document.get("subjects")
    if isinstance(subjects, list):
        filled = {**filled, "subjects": [_with_group(subject) for subject in subjects]}
    return filled


def _with_group(subject: Json) -> Json:
    if not isinstance(subject, dict) or subject.get("apiGroup"):
        return subject
    if subject.get("kind") in ("User", "Group"):
        return {**subject, "apiGroup": GROUP}
    return subject


class Role(Bare):
    """What may be done in a namespace."""


class RoleBinding(Bare):
    """Who may do it there."""


class ClusterRole(Bare):
    """What may be done everywhere."""


class ClusterRoleBinding(Bare):
    """Who may do it everywhere."""


def _role(record: type[Bare], rules: _Rules, *, namespaced: bool) -> Kind:
    kind = record.__name__
    names = Names(
        group=GROUP,
        version="v1",
        kind=kind,
        plural=f"{kind.lower()}s",
        singular=kind.lower(),
    )
    is_binding = kind.endswith("Binding")
    if is_binding:
        return built_in(
            names,
            record,
            namespaced=namespaced,
            default=_with_groups,
            rules=rules,
            changes=_binding_changes,
            name_fault=name_fault,
        )
    return built_in(names, record, namespaced=namespaced, rules=rules, name_fault=name_fault)


ROLE = _role(Role, _role_rules, namespaced=True)
ROLE_BINDING = _role(RoleBinding, _role_binding_rules, namespaced=True)
CLUSTER_ROLE = _role(ClusterRole, _cluster_role_rules, namespaced=False)
CLUSTER_ROLE_BINDING = _role(ClusterRoleBinding, _cluster_role_binding_rules, namespaced=False)
