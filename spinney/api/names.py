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


MEETINGS_TOLD_MAX = 10
"""With how many others one part is said to collide."""

_Token: TypeAlias = "str | None"
"""What stands between two hyphens of a name: a fixed text, or (None) any number."""

_NUMBER = re.compile(r"0|[1-9][0-9]*", re.ASCII)


def collisions(parts: Sequence[Part]) -> Iterator[tuple[Part, Part, str]]:
    """Yield pairs of parts that can have one name, with such a name after the set's own.

    Names are fixed texts with numbers between, set off by hyphens; two meet when some numbers make
    them the same text. Dots count as hyphens, as they do in hostnames. The time this takes grows
    with the parts and not with their pairs, for a manifest may hold many.
    """
    alike: dict[tuple[str, ...], _Alike] = {}
    for part in parts:
        tokens = _tokens(part)
        shape = (part.sort, *("0" if _is_number(token) else token or "" for token in tokens))
        yield from alike.setdefault(shape, _Alike()).meetings(part, tokens)


def _tokens(part: Part) -> tuple[_Token, ...]:
    first, *others = map(hostname, part.pieces)
    found: list[_Token] = [*first.split("-")]
    for piece in others:
        found += (None, *piece.split("-")[1:])
    return tuple(found)


def _is_number(token: _Token) -> bool:
    return token is None or _NUMBER.fullmatch(token) is not None


class _Alike:
    """Parts whose names differ in nothing but numbers, each a fixed one or any.

    They are sorted by where any number may stand. A new part meets those of a sort that have the
    same numbers wherever both have fixed ones, which a look-up tells.
    """

    def __init__(self) -> None:
        self._sorts: dict[frozenset[int], list[tuple[Part, tuple[_Token, ...]]]] = {}
        self._found: dict[
            tuple[frozenset[int], frozenset[int]],
            dict[tuple[_Token, ...], list[tuple[Part, tuple[_Token, ...]]]],
        ] = {}
        self._seen: set[tuple[str, tuple[_Token, ...]]] = set()

    def meetings(self, part: Part, tokens: tuple[_Token, ...]) -> Iterator[tuple[Part, Part, str]]:
        """Yield whom a part meets, and take it in."""
        free = frozenset(place for place, token in enumerate(tokens) if token is None)
        told = 0
        for sort in tuple(self._sorts):
            for other, theirs in self._look_up(sort, free | sort, tokens):
                if other.title != part.title and told < MEETINGS_TOLD_MAX:
                    told += 1
                    yield other, part, "-".join(map(_either, tokens, theirs))
                if told == MEETINGS_TOLD_MAX:
                    break
        self._take_in(free, part, tokens)

    def _look_up(
        self, sort: frozenset[int], free: frozenset[int], tokens: tuple[_Token, ...]
    ) -> Sequence[tuple[Part, tuple[_Token, ...]]]:
        found = self._found.get((sort, free))
        if found is None:
            found = self._found[sort, free] = {}
            for entry in self._sorts[sort]:
                found.setdefault(_fixed(entry[1], free), []).append(entry)
        return found.get(_fixed(tokens, free), ())

    def _take_in(self, free: frozenset[int], part: Part, tokens: tuple[_Token, ...]) -> None:
        if (part.title, tokens) in self._seen:
            return
        self._seen.add((part.title, tokens))
        entry = (part, tokens)
        self._sorts.setdefault(free, []).append(entry)
        for (sort, both), found in self._found.items():
            if sort == free:
                found.setdefault(_fixed(tokens, both), []).append(entry)


def _either(one: _Token, other: _Token) -> str:
    fixed = other if one is None else one
    return "0" if fixed is None else fixed


def _fixed(tokens: tuple[_Token, ...], free: frozenset[int]) -> tuple[_Token, ...]:
    return tuple(token for place, token in enumerate(tokens) if place not in free)
