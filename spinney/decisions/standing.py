"""Standing: how far a gang has come towards nodes, as whoever places it sees it.

A pod of a gang waits, is placed, or is neither: gated, being deleted, ended, of another scheduler.
A gang may be placed once every pod group has, of pods that wait or are placed, as many as it needs.
Pods outside any gang are gangs of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from spinney.api.core.pod import Pod
from spinney.api.core.priorityclass import PriorityClass
from spinney.api.podgang import PodGang, PodGroup
from spinney.decisions import disruption, pods
from spinney.meta import conditions
from spinney.meta.records import Record

NAMES_TOLD = 3
"""How many pods a sentence names."""


class GroupStanding(Record):
    """How the pods of one pod group stand."""

    name: str
    needed_count: int
    """How many of them must have a node before the gang may run."""

    waiting: tuple[Pod, ...] = ()
    """Those that may be placed now, sorted by name."""

    placed: tuple[Pod, ...] = ()
    """Those that have a node, or are being given one, and stay."""

    succeeded_count: int = 0
    """Those that ended well and need no node any more."""

    lacks: tuple[str, ...] = ()
    """Names of pods that neither wait nor are placed."""

    @property
    def there_count(self) -> int:
        """How many of its pods have a node, had one, or could be given one."""
        return len(self.waiting) + self.settled_count

    @property
    def settled_count(self) -> int:
        """How many of its pods need no node any more: they have one, or ended well."""
        return len(self.placed) + self.succeeded_count


class Standing(Record):
    """How a gang stands."""

    groups: tuple[GroupStanding, ...]
    held_back: str = ""
    """Why nothing of it may be placed now; "" where it may."""

    @property
    def waiting(self) -> tuple[Pod, ...]:
        """All its pods that may be placed now."""
        return tuple(pod for group in self.groups for pod in group.waiting)

    @property
    def is_placed(self) -> bool:
        """Whether every pod group has as many pods with nodes as it needs."""
        return all(group.settled_count >= group.needed_count for group in self.groups)

    @property
    def is_partial(self) -> bool:
        """Whether some of its pods have nodes, and not as many as it needs."""
        return not self.is_placed and any(group.placed for group in self.groups)


def of_gang(
    gang: PodGang,
    members: Mapping[str, Pod],
    is_own: Callable[[Pod], bool],
    is_placed: Callable[[Pod], bool],
) -> Standing:
    """Return how a gang stands; `members` are its pods by name.

    `is_own` says whether a pod is this scheduler's to place, `is_placed` whether it has a node or
    is being given one.
    """
    groups = tuple(
        _group(gang, group, members, is_own, is_placed) for group in gang.spec.pod_groups
    )
    return Standing(groups=groups, held_back=_held_back(gang, groups))


def _group(
    gang: PodGang,
    group: PodGroup,
    members: Mapping[str, Pod],
    is_own: Callable[[Pod], bool],
    is_placed: Callable[[Pod], bool],
) -> GroupStanding:
    waiting: list[Pod] = []
    placed: list[Pod] = []
    lacks: list[str] = []
    succeeded = 0
    for name in named_pods(gang, group):
        pod = members.get(name)
        if pod is not None and pod.status.phase == "Succeeded":
            succeeded += 1
        elif pod is None or not pods.is_active(pod):
            lacks.append(name)
        elif is_placed(pod):
            placed.append(pod)
        elif may_be_placed(pod) and is_own(pod):
            waiting.append(pod)
        else:
            lacks.append(name)
    is_idle = not group.pod_references and _is_initialized(gang)
    return GroupStanding(
        name=group.name,
        needed_count=0 if is_idle else group.min_replicas,
        waiting=tuple(waiting),
        placed=tuple(placed),
        succeeded_count=succeeded,
        lacks=tuple(lacks),
    )


def named_pods(gang: PodGang, group: PodGroup) -> Iterable[str]:
    """Return the pods a group names, in its gang's own namespace: it has no say over others."""
    own = gang.metadata.namespace
    return (
        reference.name for reference in group.pod_references if reference.namespace in ("", own)
    )


def of_pod(pod: Pod, *, is_own: bool, is_placed: bool) -> Standing:
    """Return how a pod outside any gang stands: as a gang of one."""
    waits = is_own and not is_placed and pods.is_active(pod) and may_be_placed(pod)
    group = GroupStanding(
        name=pod.metadata.name,
        needed_count=1,
        waiting=(pod,) if waits else (),
        placed=(pod,) if is_placed and pods.is_active(pod) else (),
    )
    return Standing(groups=(group,))


def may_be_placed(pod: Pod) -> bool:
    """Whether a pod may be given a node: no gate holds it back and it has none."""
    return not pod.spec.node_name and not pod.spec.scheduling_gates


def _is_initialized(gang: PodGang) -> bool:
    return conditions.is_true(gang.status.conditions, "Initialized")


def _held_back(gang: PodGang, groups: Sequence[GroupStanding]) -> str:
    if gang.metadata.deletion_timestamp is not None:
        return "it is being deleted"
    if disruption.is_marked(gang):
        return "it is being taken away"
    if conditions.find(gang.status.conditions, "Initialized") and not _is_initialized(gang):
        return "not all its pods are there yet"
    for group in groups:
        if group.there_count < group.needed_count:
            return (
                f"{group.name} has {group.there_count} of {group.needed_count} pods that may be "
                f"placed{_named(group.lacks)}"
            )
    return ""


def _named(lacks: Sequence[str]) -> str:
    if not lacks:
        return ""
    more = f" and {len(lacks) - NAMES_TOLD} more" if len(lacks) > NAMES_TOLD else ""
    return f"; not {', '.join(lacks[:NAMES_TOLD])}{more}"


def priority(class_: PriorityClass | None, members: Iterable[Pod]) -> int:
    """Return how important a gang is: as its class is, else as its most important pod."""
    if class_ is not None:
        return class_.value
    return max((pod.spec.priority or 0 for pod in members), default=0)
