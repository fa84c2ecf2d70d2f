"""PodDisruptionBudget: how many pods may be evicted at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated

from spinney.api.core.builtin import Finer, built_in
from spinney.api.kinds import Names
from spinney.meta.conditions import Condition
from spinney.meta.cursors import Cursor
from spinney.meta.documents import Document, is_integer
from spinney.meta.errors import FieldError
from spinney.meta.metadata import ObjectMeta
from spinney.meta.quantities import parse_int_or_percent
from spinney.meta.records import Field, Record


class PodDisruptionBudgetSpec(Record):
    """Which pods, and how many of them must stay."""

    min_available: Annotated[int | str | None, Field("How many must stay, or what share.")] = None
    max_unavailable: Annotated[int | str | None, Field("How many may go, or what share.")] = None
    selector: Annotated[Document | None, Field("Which pods; an empty one means all.")] = None
    unhealthy_pod_eviction_policy: Annotated[
        str, Field("`AlwaysAllow`: pods that are not ready may always go.")
    ] = "IfHealthyBudget"


class PodDisruptionBudgetStatus(Record):
    """How many pods may be evicted now."""

    observed_generation: int | None = None
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    disrupted_pods: Annotated[Mapping[str, datetime], Field("Pods just evicted, since when.")] = {}
    conditions: tuple[Condition, ...] = ()


class PodDisruptionBudget(Record):
    """How many pods may be evicted at once."""

    metadata: ObjectMeta
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


def _rules(new: Cursor) -> Iterator[FieldError]:
    spec = new["spec"]
    if spec["minAvailable"] and spec["maxUnavailable"]:
        yield spec.invalid("minAvailable and maxUnavailable cannot be both set")
    for field in ("minAvailable", "maxUnavailable"):
        yield from _count_faults(spec[field])


def _count_faults(count: Cursor) -> Iterator[FieldError]:
    value = count.value
    if not isinstance(value, str) and not is_integer(value):
        return
    try:
        number, is_percent = parse_int_or_percent(value)
    except ValueError:
        yield count.invalid(
            "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',"
            "  or '93%', regex used for validation is '[0-9]+%')"
        )
        return
    if number < 0:
        yield count.invalid("must be greater than or equal to 0")
    if is_percent and number > 100:
        yield count.invalid("must not be greater than 100%")


KIND = built_in(
    Names(
        group="policy",
        version="v1",
        kind="PodDisruptionBudget",
        plural="poddisruptionbudgets",
        singular="poddisruptionbudget",
        short=("pdb",),
    ),
    PodDisruptionBudget,
    finer={"spec.unhealthyPodEvictionPolicy": Finer(enum=("AlwaysAllow", "IfHealthyBudget"))},
    has_status=True,
    rules=_rules,
)
