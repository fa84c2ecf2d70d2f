"""Attraction: what draws a pod to nodes by their labels, and what keeps it off by their taints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from spinney.api.core.node import Taint
from spinney.meta.documents import Document, Json, string_at
from spinney.meta.records import Record

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NAME_FIELD = "metadata.name"
PREFER_NO_SCHEDULE = "PreferNoSchedule"


class NodeRequirement(Record, order=True):
    """One condition on a label of a node, or on its name."""

    key: str
    operator: str
    """`In`, `NotIn`, `Exists`, `DoesNotExist`, `Gt`, `Lt`; any other never holds."""

    values: tuple[str, ...] = ()
    is_field: bool = False
    """Whether the key is a field of the node; `metadata.name` is the only one there is."""

    def holds(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether a node meets it."""
        if self.is_field:
            value = name if self.key == NAME_FIELD else None
        else:
            value = labels.get(self.key)
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                found, bound = _number(value), _number(next(iter(self.values), None))
                if found is None or bound is None:
                    return False
                return found > bound if self.operator == "Gt" else found < bound
        return False

    def __str__(self) -> str:
        """Spell it for people: `zone In (a,b)`, `gpu Exists`."""
        return f"{self.key} {self.operator}" + (f" ({','.join(self.values)})" * bool(self.values))


def _number(text: str | None) -> int | None:
    if text is None or not text.removeprefix("-").isdecimal() or len(text) > 20:
        return None
    return int(text)


class NodeTerm(Record, order=True):
    """Conditions on a node that must all hold. Without any it matches no node, as in Kubernetes."""

    requirements: tuple[NodeRequirement, ...] = ()

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether a node meets all of them."""
        return bool(self.requirements) and all(
            requirement.holds(name, labels) for requirement in self.requirements
        )

    def __str__(self) -> str:
        """Spell it for people."""
        return " and ".join(map(str, self.requirements)) or "no node"


class Preference(Record, order=True):
    """What of a node is liked, and how much."""

    weight: int
    term: NodeTerm


class Toleration(Record, order=True):
    """A taint a pod puts up with."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""

    def covers(self, taint: Taint) -> bool:
        """Whether a taint is one of those meant."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator == "Exists":
            return True
        return bool(self.key) and self.operator in ("", "Equal") and self.value == taint.value


def required_terms(affinity: Document | None) -> tuple[NodeTerm, ...]:
    """Return the terms one of which a node must meet; none where nothing is required.

    To require one of no terms is to require what no node meets.
    """
    required = _at(_at(affinity, "nodeAffinity"), REQUIRED)
    if not isinstance(required, dict):
        return ()
    terms = {_term(term) for term in _items(required, "nodeSelectorTerms")}
    return tuple(sorted(terms)) or (NodeTerm(),)


def preferences(affinity: Document | None) -> tuple[Preference, ...]:
    """Return what of a node is liked."""
    return tuple(
        sorted(
            Preference(
                weight=weight if isinstance(weight := found.get("weight"), int) else 0,
                term=_term(_at(found, "preference")),
            )
            for found in _items(_at(affinity, "nodeAffinity"), PREFERRED)
        )
    )


def tolerations(documents: tuple[Document, ...]) -> tuple[Toleration, ...]:
    """Return what taints a pod puts up with, once each."""
    return tuple(
        sorted(
            {
                Toleration(
                    key=string_at(found, ["key"]),
                    operator=string_at(found, ["operator"]) or "Equal",
                    value=string_at(found, ["value"]),
                    effect=string_at(found, ["effect"]),
                )
                for found in documents
            }
        )
    )


def _term(document: Json) -> NodeTerm:
    found = [*_requirements(document, "matchExpressions", is_field=False)]
    found += _requirements(document, "matchFields", is_field=True)
    return NodeTerm(requirements=tuple(sorted(found)))


def _requirements(document: Json, field: str, *, is_field: bool) -> Iterator[NodeRequirement]:
    for found in _items(document, field):
        values = found.get("values")
        yield NodeRequirement(
            key=string_at(found, ["key"]),
            operator=string_at(found, ["operator"]),
            values=tuple(
                sorted(
                    value
                    for value in (values if isinstance(values, list) else [])
                    if isinstance(value, str)
                )
            ),
            is_field=is_field,
        )


def _at(document: Json, field: str) -> Json:
    return document.get(field) if isinstance(document, dict) else None


def _items(document: Json, field: str) -> Iterator[Document]:
    found = _at(document, field)
    for item in found if isinstance(found, list) else []:
        if isinstance(item, dict):
            yield item
