"""Explaining: why a gang has no place, and what would give it one.

The same cluster and gang give the same words, so a status that holds them does not flap.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from spinney.decisions.placement import amounts, fitness, problems, surplus, tallies
from spinney.decisions.placement.amounts import spelled
from spinney.decisions.placement.demands import GroupDemand, PodShape
from spinney.decisions.placement.machines import HOSTNAME
from spinney.decisions.placement.outcomes import SUMMARY_BYTES_MAX, Refusal, Removal
from spinney.decisions.placement.problems import Item, Problem
from spinney.decisions.placement.surplus import Counts
from spinney.decisions.placement.tallies import Tally
from spinney.decisions.placement.trials import Trial

_NOTHING: frozenset[int] = frozenset()
_WORDS = {
    fitness.NOT_READY: "not ready",
    fitness.CORDONED: "cordoned",
    fitness.NODE_SELECTOR: "without the labels its node selector asks for",
    fitness.AFFINITY: "not what its node affinity asks for",
    fitness.TAINT: "tainted, and it tolerates no such taint",
    tallies.NO_DOMAIN: "without the label",
    tallies.HOST_PORT: "where the host port is taken",
}
_REMEDIES = {
    fitness.NOT_READY: "if the nodes that are not ready came back",
    fitness.CORDONED: "if cordoned nodes were uncordoned",
    fitness.NODE_SELECTOR: "without its node selector, or with more nodes labelled so",
    fitness.AFFINITY: "without its required node affinity",
    fitness.TAINT: "if it tolerated the taints of the nodes",
    tallies.NO_DOMAIN: "if more nodes had the label",
}


def missing(problem: Problem) -> Refusal | None:
    """Return why a gang cannot be looked at yet: pods are not there, or are held back."""
    for index, group in enumerate(problem.gang.groups):
        needed = group.min_replicas - len(group.bound)
        there = len(problem.candidates[index])
        if there < needed:
            return Refusal(
                gang=problem.gang.ref,
                group=group.name,
                pods_wanted=needed,
                pods_possible=there,
                summary=_clipped(_missing_text(group, needed, there)),
                advice="wait for its pods",
            )
    return None


def _missing_text(group: GroupDemand, needed: int, there: int) -> str:
    gated = sum(pod.is_gated for pod in group.waiting)
    held = f", {gated} behind a scheduling gate" if gated else ""
    return (
        f"{group.name} needs {_counted(needed, 'more pod')} on nodes, and {there} can be placed"
        f"{held}. The gang is placed when they are all there."
    )


def refusal(trial: Trial, problem: Problem, items: Sequence[Item], *, is_proven: bool) -> Refusal:
    """Return why what a gang needs has no place."""
    for scope in problem.scopes:
        concerned = any(item.group in scope.groups for item in items)
        if concerned and scope.required and (len(scope.homes) > 1 or None in scope.homes):
            return _torn(problem, scope)
    wanted: Counts = {}
    for item in items:
        for shape, count in item.split():
            wanted[item.group, shape] = count
    return _explained(trial, problem, wanted, is_proven=is_proven, is_needed=True)


def shortfall(trial: Trial, problem: Problem) -> Refusal:
    """Return why pods beyond what is needed have no place beside those that have one."""
    left = surplus.waiting(problem, trial.takes)
    wanted = {pair: count for pair, count in left.items() if count}
    return _explained(trial, problem, wanted, is_proven=True, is_needed=False)


def _torn(problem: Problem, scope: problems.Scope) -> Refusal:
    key = scope.required[-1]
    homes = sorted(domain[-1] if domain else "none" for domain in scope.homes)
    name = scope.name or problem.gang.ref.name
    text = (
        f"All pods of {name} must share one {key}, and those that run are in "
        f"{', '.join(homes)} already. Its pods must be replaced for it to be whole again."
    )
    return Refusal(
        gang=problem.gang.ref,
        group=scope.name,
        key=key,
        domain=homes[0],
        summary=_clipped(text),
        advice="replace its pods",
    )


def _explained(
    trial: Trial, problem: Problem, wanted: Counts, *, is_proven: bool, is_needed: bool
) -> Refusal:
    """Put as much as there is room for, and tell of the group that lacks most."""
    cluster = trial.cluster
    mark = len(trial.takes)
    left = surplus.add(trial, problem, wanted, _NOTHING, {}, {})
    group, shape = min(
        wanted, key=lambda pair: (-left[pair], -wanted[pair], pair[0], problems.size(pair[1]))
    )
    where = surplus.inside(trial, problem, group, shape, _NOTHING) or ()
    trial.back(mark)
    path = next(
        (
            scope.required
            for scope in reversed(problem.scopes)
            if scope.required and group in scope.groups
        ),
        (),
    )
    tally = cluster.tally(shape, path)
    lacking, asked = left[group, shape], wanted[group, shape]
    key, domain = (where[-1][0][-1], where[-1][1][-1]) if where else (path[-1] if path else "", "")
    name = problem.gang.groups[group].name
    removals = tuple(_removals(tally))
    reasons = ", ".join(removal.text for removal in removals)
    nodes = cluster.machine_count
    fit_count = nodes - sum(tally.reasons.values())
    kind = "" if is_needed else "surplus "
    if not fit_count:
        text = f"0/{nodes} nodes fit {kind}pods of {name}" + (f": {reasons}." if reasons else ".")
    else:
        beside = " beside the rest of its gang" if len(wanted) > 1 else ""
        place = f" in {key}={domain}, which comes closest" if domain else ""
        text = (
            f"There is room for {asked - lacking} of {asked} {kind}pods of {name}{beside}{place}: "
            f"of {_counted(nodes, 'node')} {fit_count} {'fits' if fit_count == 1 else 'fit'} one"
            + (f", {reasons}." if reasons else ".")
        )
    if not lacking:
        text = f"All pods of {name} and of the other groups have room, but not all together."
    advice = _advice(tally, max(1, lacking), asked, key, domain)
    if not is_proven:
        text += " The search was given up at its limit, so there may be a place all the same."
    return Refusal(
        gang=problem.gang.ref,
        summary=_clipped(f"{text} It would fit {advice}."),
        group=name,
        pods_wanted=asked,
        pods_possible=asked - lacking,
        nodes=cluster.machine_count,
        removals=removals,
        key=key,
        domain=domain,
        advice=advice,
        is_proven=is_proven,
    )


def _removals(tally: Tally) -> Iterator[Removal]:
    """Yield what makes nodes unfit, that which concerns most nodes first."""
    found = []
    asked = dict(tally.shape.requests)
    for resource, count in tally.shortages.items():
        if count:
            most = spelled(resource, tally.free[resource].largest - 1)
            want = spelled(resource, asked[resource])
            text = f"{_have(count)} too little {resource} (want {want}, most free {most})"
            if resource == amounts.PODS:
                text = f"{_have(count)} as many pods as may run there"
            found.append(Removal(reason=tallies.INSUFFICIENT, nodes=count, text=text))
    for reason, count in tally.reasons.items():
        if count and reason != tallies.INSUFFICIENT:
            words = _WORDS[reason]
            if reason == tallies.NO_DOMAIN:
                words = f"{words} {tally.path[-1]}"
            found.append(Removal(reason=reason, nodes=count, text=f"{_are(count)} {words}"))
    yield from sorted(found, key=lambda removal: (-removal.nodes, removal.text))


def _advice(tally: Tally, lacking: int, asked: int, key: str, domain: str) -> str:
    """Return what would make room for more pods of a shape."""
    if not key:
        for reason, remedy in _REMEDIES.items():
            if tally.capacities[reason] >= lacking:
                return remedy
    if key == HOSTNAME:
        return f"with a node with {_free(tally.shape, asked)}"
    where = f" in {key}={domain}" if domain else f" in one {key}" if key else ""
    each = tally.empty_capacities.largest
    if not each:
        return f"with {_counted(lacking, 'more node')} with {_whole(tally.shape)}{where}"
    nodes = -(-lacking // each)
    return (
        f"with {_counted(nodes, 'more node')} with {_free(tally.shape, min(each, lacking))}{where}"
    )


def _free(shape: PodShape, pods: int) -> str:
    resource, amount = min(shape.requests, key=tallies.by_scarcity)
    if resource == amounts.PODS:
        return f"room for {_counted(pods, 'pod')}"
    return f"{spelled(resource, amount * pods)} {resource} free"


def _whole(shape: PodShape) -> str:
    asked = [
        f"{spelled(name, amount)} {name}"
        for name, amount in sorted(shape.requests, key=tallies.by_scarcity)
        if name != amounts.PODS
    ]
    labels = [f"label {key}={value}" for key, value in shape.node_selector]
    return _listed([*asked, *labels]) or "room for a pod"


def _listed(words: Iterable[str]) -> str:
    *most, last = [*words] or [""]
    return f"{', '.join(most)} and {last}" if most else last


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")


def _have(count: int) -> str:
    return f"{count} has" if count == 1 else f"{count} have"


def _are(count: int) -> str:
    return f"{count} is" if count == 1 else f"{count} are"


def _clipped(text: str) -> str:
    encoded = text.encode()
    if len(encoded) <= SUMMARY_BYTES_MAX:
        return text
    return encoded[: SUMMARY_BYTES_MAX - 4].decode(errors="ignore") + " …"
