"""What must hold of where a pod may be placed; worded as Kubernetes does."""

from __future__ import annotations

from collections.abc import Iterator

from spinney.meta.cursors import Cursor
from spinney.meta.documents import Json, same_content, without
from spinney.meta.errors import FieldError
from spinney.meta.metadata import qualified_name_fault

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
UNSATISFIABLE = ("DoNotSchedule", "ScheduleAnyway")


def toleration_faults(toleration: Cursor) -> Iterator[FieldError]:
    """Yield what is wrong with a toleration."""
    key, operator = toleration["key"].string(), toleration["operator"]
    if key:
        if fault := qualified_name_fault(key):
            yield toleration["key"].invalid(fault)
    elif toleration.object() is not None and operator.string() != "Exists":
        yield operator.invalid(
            'operator must be Exists when `key` is empty, which means "match all values and all '
            'keys"'
        )
    if operator.string() == "Exists" and toleration["value"].string():
        yield operator.invalid("value must be empty when `operator` is 'Exists'")
    if toleration["tolerationSeconds"] and toleration["effect"].string() != "NoExecute":
        yield toleration["effect"].invalid(
            "effect must be 'NoExecute' when `tolerationSeconds` is set"
        )


def affinity_faults(affinity: Cursor) -> Iterator[FieldError]:
    """Yield what is wrong with what draws a pod to nodes and to other pods."""
    nodes = affinity["nodeAffinity"]
    terms = nodes[REQUIRED]["nodeSelectorTerms"]
    if nodes[REQUIRED].object() is not None and terms.value in (None, []):
        yield terms.required("must have at least one node selector term")
    for term in terms:
        yield from _term_faults(term)
    for preference in nodes[PREFERRED]:
        yield from _weight_faults(preference)
        yield from _term_faults(preference["preference"])
    for field in ("podAffinity", "podAntiAffinity"):
        for term in affinity[field][REQUIRED]:
            yield from _topology_faults(term)
        for weighted in affinity[field][PREFERRED]:
            yield from _weight_faults(weighted)
            yield from _topology_faults(weighted["podAffinityTerm"])


def _weight_faults(weighted: Cursor) -> Iterator[FieldError]:
    weight = weighted["weight"].integer()
    if weight is not None and not 1 <= weight <= 100:
        yield weighted["weight"].invalid("must be in the range 1-100")


def _topology_faults(term: Cursor) -> Iterator[FieldError]:
    key = term["topologyKey"]
    if key.string() == "":
        yield key.required("can not be empty")
    elif (text := key.string()) is not None and (fault := qualified_name_fault(text)):
        yield key.invalid(fault)


def _term_faults(term: Cursor) -> Iterator[FieldError]:
    for expression in term["matchExpressions"]:
        key, operator, values = (expression[field] for field in ("key", "operator", "values"))
        if (text := key.string()) is not None and (fault := qualified_name_fault(text)):
            yield key.invalid(fault)
        word = operator.string()
        if word is None:
            continue
        if word not in OPERATORS:
            yield operator.invalid("not a valid selector operator")
        elif word in ("In", "NotIn") and values.value in (None, []):
            yield values.required("must be specified when `operator` is 'In' or 'NotIn'")
        elif word in ("Exists", "DoesNotExist") and values.value not in (None, []):
            yield values.forbidden(
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            )
        elif word in ("Gt", "Lt") and len(tuple(values)) != 1:
            yield values.required("must be specified single value when `operator` is 'Lt' or 'Gt'")


def spread_faults(constraint: Cursor) -> Iterator[FieldError]:
    """Yield what is wrong with how pods are to be spread."""
    skew = constraint["maxSkew"].integer()
    if skew is not None and skew <= 0:
        yield constraint["maxSkew"].invalid("must be greater than zero")
    if constraint["topologyKey"].string() == "":
        yield constraint["topologyKey"].required("can not be empty")
    action = constraint["whenUnsatisfiable"].string()
    if action is not None and action not in UNSATISFIABLE:
        yield constraint["whenUnsatisfiable"].not_supported(UNSATISFIABLE)
    domains = constraint["minDomains"].integer()
    if domains is not None and domains <= 0:
        yield constraint["minDomains"].invalid("must be greater than zero")
    elif domains is not None and action != "DoNotSchedule":
        yield constraint["minDomains"].invalid(
            "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway"
        )


def tightening_faults(was: Cursor, now: Cursor) -> Iterator[FieldError]:
    """Yield what of the affinity of a gated pod was changed and may not be.

    What nodes are required may be narrowed, and what is preferred of them changed at will.
    """
    if not same_content(_but_nodes(was.value), _but_nodes(now.value)):
        yield now.forbidden("only nodeAffinity may be changed while a pod is gated")
    before = was["nodeAffinity"][REQUIRED]
    after = now["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    terms = before["nodeSelectorTerms"]
    if before.object() is None:
        return
    if len(tuple(terms)) != len(tuple(after)):
        yield after.invalid(
            "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        )
        return
    for old, new in zip(terms, after, strict=True):
        for field in ("matchExpressions", "matchFields"):
            kept = [item.value for item in new[field]]
            if any(item.value not in kept for item in old[field]):
                yield new[field].invalid("only additions are allowed")


def _but_nodes(affinity: Json) -> Json:
    return without(affinity, ["nodeAffinity"]) if isinstance(affinity, dict) else affinity
