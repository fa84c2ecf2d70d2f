"""Autoscaling of one clique or one group, and its rules."""

from collections.abc import Iterator
from typing import Annotated

from spinney.meta.cursors import Cursor
from spinney.meta.documents import Document, is_integer, with_value
from spinney.meta.errors import FieldError, shown
from spinney.meta.records import Field, Record


class AutoScalingConfig(Record, kw_only=True):
    """How a HorizontalPodAutoscaler scales one target; Spinney makes one a set replica."""

    min_replicas: Annotated[
        int | None,
        Field(
            "The fewest replicas the autoscaler may leave; at least minAvailable. "
            "Default: the greater of replicas and minAvailable."
        ),
    ] = None
    max_replicas: Annotated[
        int, Field("The most replicas the autoscaler may ask for.", required=True)
    ]
    metrics: Annotated[
        tuple[Document, ...],
        Field(
            "What to scale by, as in autoscaling/v2. Default: 80 % average CPU utilisation.",
            core="MetricSpec",
        ),
    ] = ()


def with_min_replicas(target: Document, field: str) -> Document:
    """Return a clique's spec or a group's with the autoscaler's `minReplicas` filled in."""
    config = target.get(field)
    if not isinstance(config, dict) or config.get("minReplicas") is not None:
        return target
    counts = [target.get("replicas"), target.get("minAvailable")]
    known = [count for count in counts if is_integer(count)]
    return with_value(target, [field, "minReplicas"], max(known)) if known else target


def rules(target: Cursor, field: str, *, cover_replicas: bool) -> Iterator[FieldError]:
    """Yield what is wrong with the autoscaler of a clique's spec or of a group.

    `cover_replicas`: the written replicas must lie below `maxReplicas` too.
    """
    config = target[field]
    if config.object() is None:
        return
    least, most = config["minReplicas"], config["maxReplicas"]
    floor = target["minAvailable"].integer()
    low, high = least.integer(), most.integer()
    if low is not None and floor is not None and low < floor:
        yield least.invalid(f"must be greater than or equal to minAvailable ({shown(floor)})")
    if high is not None and low is not None and high < low:
        yield most.invalid(f"must be greater than or equal to minReplicas ({shown(low)})")
    replicas = target["replicas"].integer()
    if cover_replicas and high is not None and replicas is not None and high < replicas:
        yield most.invalid(f"must be greater than or equal to replicas ({shown(replicas)})")
