"""What a scheduler back end asks of a pod it places: to which gang it belongs, in its own words."""

from __future__ import annotations

from collections.abc import Mapping

from spinney.meta.records import Record

KAI, VOLCANO = "kai-scheduler", "volcano"


class Marks(Record):
    """Labels and annotations beyond those every pod has."""

    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}


def marks(scheduler: str, podgang: str, clique: str) -> Marks:
    """Return what a pod carries for the back end that places it."""
    if scheduler == KAI:
        return Marks(
            labels={"kai.scheduler/subgroup-name": clique},
            annotations={"kai.scheduler/skip-podgrouper": "true", "pod-group-name": podgang},
        )
    if scheduler == VOLCANO:
        keys = ("scheduling.volcano.sh/group-name", "scheduling.k8s.io/group-name")
        return Marks(annotations=dict.fromkeys(keys, podgang))
    return Marks()
