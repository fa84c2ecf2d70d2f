"""Names of the objects Spinney makes: plain joins with hyphens, computed, never looked up.

Letters as in the API's documents: `i` a set replica, `j` a group replica, `k` a pod of a clique,
`s` a scaled gang. Nothing is cut off or hashed, so a lost answer and a retry meet one object, not
two. Joins can collide (a clique called `pre-0-worker` beside a group `pre` with a `worker`);
`collisions` finds that beforehand, and admission refuses such a set (rule 1.5).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from spinney.meta.records import Record

NAME_BUDGET = 45
"""How long the user-chosen parts of a pod's name may be together, in bytes."""

DNS_LABEL_LENGTH_MAX = 63


def clique(set_name: str, i: int, clique_name: str) -> str:
    """Return the name of a PodClique outside any group."""
    return f"{set_name}-{i}-{clique_name}"


def scaling_group(set_name: str, i: int, group_name: str) -> str:
    """Return the name of a PodCliqueScalingGroup."""
    return f"{set_name}-{i}-{group_name}"


def grouped_clique(group: str, j: int, clique_name: str) -> str:
    """Return the name of a PodClique in a group, whose own full name is given."""
    return f"{group}-{j}-{clique_name}"


def pod(clique_full_name: str, k: int) -> str:
    """Return the name of a pod."""
    return f"{clique_full_name}-{k}"


def hostname(pod_name: str) -> str:
    """Return a pod's hostname: its name, with hyphens for the dots a DNS label cannot hold."""
    return pod_name.replace(".", "-")


def base_podgang(set_name: str, i: int) -> str:
    """Return the name of a set replica's base PodGang."""
    return f"{set_name}-{i}"


def scaled_podgang(group: str, s: int) -> str:
    """Return the name of the PodGang of a group replica above the floor, counted from 0 there."""
    return f"{group}-{s}"


def headless_service(set_name: str, i: int) -> str:
    """Return the name of a set replica's headless Service, which is its pods' subdomain too."""
    return hostname(f"{set_name}-{i}")


def headless_address(set_name: str, i: int, namespace: str) -> str:
    """Return the address under which a set replica's pods find each other."""
    return f"{headless_service(set_name, i)}.{namespace}.svc.cluster.local"


def service_account(set_name: str) -> str:
    """Return the name of the ServiceAccount of a set's pods."""
    return set_name


def role(set_name: str) -> str:
    """Return the name of a set's Role, and of its RoleBinding."""
    return f"grove.io:pcs:{set_name}"


def token_secret(set_name: str) -> str:
    """Return the name of the Secret with the ServiceAccount's token."""
    return f"{set_name}-ic-sat"


def claim_for_all(owner: str, template: str) -> str:
    """Return the name of a ResourceClaim that all replicas of an owner share."""
    return f"{owner}-all-{template}"


def claim_for_replica(owner: str, index: int, template: str) -> str:
    """Return the name of a ResourceClaim of one replica of an owner."""
    return f"{owner}-{index}-{template}"


def compute_domain(set_name: str, i: int, mnnvl_group: str) -> str:
    """Return the name of a ComputeDomain, and of its claim template."""
    return f"{set_name}-{i}-{mnnvl_group}"


def model_route(deployment: str, revision: int, ordinal: int) -> str:
    """Return the name of a ModelRoute, and of the PodCliqueSet it owns."""
    return f"{deployment}-{revision}-{ordinal}"


class Part(Record):
    """Something a set makes one of for every index: its user-chosen names, in order.

    `pieces` are the fixed texts of its name, between each two of which stands a number; the first
    number is the set replica's. Only parts of one `sort` (an object's kind) can meet.
    """

    sort: str
    pieces: tuple[str, ...]
    title: str
    """What people call it: `clique "worker"`."""

    owner: str
    """Whose name a user would change: the path of the field within the template."""


def clique_part(clique_name: str, group_name: str, owner: str) -> Part:
    """Return a clique's part; `group_name` is "" outside any group."""
    if not group_name:
        return Part(
            sort="PodClique",
            pieces=("", f"-{clique_name}"),
            title=f'clique "{clique_name}"',
            owner=owner,
        )
    return Part(
        sort="PodClique",
        pieces=("", f"-{group_name}", f"-{clique_name}"),
        title=f'clique "{clique_name}" of group "{group_name}"',
        owner=owner,
    )


def autoscaler_part(target_name: str, target_kind: str, owner: str) -> Part:
    """Return the part of the autoscaler of a clique or group: it is named like its target."""
    return Part(
        sort="HorizontalPodAutoscaler",
        pieces=("", f"-{target_name}"),
        title=f'the autoscaler of {target_kind} "{target_name}"',
        owner=owner,
    )


def claim_part(of: Part | None, claim_name: str, *, per_replica: bool, owner: str) -> Part:
    """Return the part of a shared claim of a clique, of a group, or (None) of the set itself."""
    last = f"-{claim_name}" if per_replica else f"-all-{claim_name}"
    if of is not None:
        base = of.pieces
    else:
        base = ("",)
    pieces = (*base, last) if per_replica else (*base[:-1], base[-1] + last)
    whose = of.title if of is not None else "the set"
    scope = "PerReplica" if per_replica else "AllReplicas"
    return Part(
        sort="ResourceClaim",
        pieces=pieces,
        title=f'the {scope} claim "{claim_name}" of {whose}',
        owner=owner,
    )


def group_claim_part(group_name: str, claim_name: str, *, per_replica: bool, owner: str) -> Part:
    """Return the part of a shared claim of a group."""
    group = Part(
        sort="PodCliqueScalingGroup",
        pieces=("", f"-{group_name}"),
        title=f'group "{group_name}"',
        owner=owner,
    )
    return claim_part(group, claim_name, per_replica=per_replica, owner=owner)


_LOOKS_LIKE_A_JOIN = re.compile(r"-(?:\d+|all)(?:-.|$)")


def collisions(parts: Sequence[Part]) -> Iterator[tuple[Part, Part, str]]:
    """Yield each pair of parts that can have one name, with such a name after the set's own.

    Names are patterns, fixed pieces with numbers between; two meet when some numbers make them
    the same text. Dots count as hyphens, as they do in hostnames.
    """
    patterns = [_pattern(part) for part in parts]
    ambiguous = any(
        _LOOKS_LIKE_A_JOIN.search(piece) for pattern in patterns for piece in pattern[1:]
    )
    for at, (one, pattern) in enumerate(zip(parts, patterns, strict=True)):
        for other, other_pattern in zip(parts[at + 1 :], patterns[at + 1 :], strict=True):
            if one.sort != other.sort or one.title == other.title:
                continue
            if not ambiguous and pattern != other_pattern:
                continue
            meeting = _meeting(pattern, other_pattern)
            if meeting is not None:
                yield one, other, meeting


def _pattern(part: Part) -> tuple[str, ...]:
    """Return a part's pieces with the hyphen that stands before each number."""
    *before, last = map(hostname, part.pieces)
    return (*(f"{piece}-" for piece in before), last)


def _meeting(one: tuple[str, ...], other: tuple[str, ...]) -> str | None:
    """Return the shortest text both patterns can make, None where there is none.

    Both patterns are walked at once, letter by letter. A place in a pattern is (piece, offset);
    offset -1 is before the number that ends a piece, -2 within it, -3 after a leading 0.
    """
    start = (_settled(one, (0, 0)), _settled(other, (0, 0)))
    seen = {start}
    frontier = [(start, "")]
    while frontier:
        reached: list[tuple[tuple[_Place, _Place], str]] = []
        for (here, there), text in frontier:
            if _ends(one, here) and _ends(other, there):
                return text
            ahead = _steps(other, there)
            for letter, next_here in _steps(one, here):
                for other_letter, next_there in ahead:
                    pair = (next_here, next_there)
                    if letter == other_letter and pair not in seen:
                        seen.add(pair)
                        reached.append((pair, text + letter))
        frontier = reached
    return None


_Place: TypeAlias = "tuple[int, int]"
_BEFORE, _WITHIN, _AFTER_ZERO = -1, -2, -3


def _settled(pattern: tuple[str, ...], place: _Place) -> _Place:
    """Return the place, or where its piece is used up and a number follows, that number's."""
    piece, offset = place
    if offset == len(pattern[piece]) and piece + 1 < len(pattern):
        return piece, _BEFORE
    return place


def _ends(pattern: tuple[str, ...], place: _Place) -> bool:
    return place == (len(pattern) - 1, len(pattern[-1])) or (
        place[0] + 2 == len(pattern) and place[1] <= _WITHIN and not pattern[-1]
    )


def _steps(pattern: tuple[str, ...], place: _Place) -> list[tuple[str, _Place]]:
    piece, offset = place
    if offset >= 0:
        if offset == len(pattern[piece]):
            return []
        return [(pattern[piece][offset], _settled(pattern, (piece, offset + 1)))]
    found = []
    if offset == _BEFORE:
        found = [("0", (piece, _AFTER_ZERO)), *((digit, (piece, _WITHIN)) for digit in "123456789")]
    elif offset == _WITHIN:
        found = [(digit, (piece, _WITHIN)) for digit in "0123456789"]
    if offset != _BEFORE and pattern[piece + 1]:
        found.append((pattern[piece + 1][0], _settled(pattern, (piece + 1, 1))))
    return found
