"""What statuses say, as tables: of PodCliques, of groups, of sets."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.api import groupkinds, labels
from spinney.api.podclique import PodClique
from spinney.api.podcliquescalinggroup import PodCliqueScalingGroup
from spinney.decisions import clique_status, cliques, groups, places, revisions, set_status
from spinney.decisions.set_status import Parts
from spinney.decisions.settings import Settings
from spinney.meta import conditions, records
from spinney.meta.conditions import Condition
from spinney.meta.documents import Document, Json, list_at, string_at, value_at
from spinney.meta.references import Ref
from spinney.testing import build
from tests.decisions.pieces import CURRENT, NOW, OUTDATED, clique, pod, pods
from tests.decisions.worlds import World


def told(found: Sequence[Condition], kind: str) -> tuple[str, str]:
    held = conditions.find(found, kind)
    assert held is not None
    return held.status, held.reason


OPEN: Document = {"rollingUpdateProgress": {"updateStartedAt": "2026-01-01T00:00:00Z"}}
DONE: Document = {
    "rollingUpdateProgress": {
        "updateStartedAt": "2026-01-01T00:00:00Z",
        "updateEndedAt": "2026-01-01T00:00:00Z",
    }
}
ONCE: Document = {"wasAvailable": True}


@pytest.mark.parametrize(
    ("letters", "replicas", "ready", "scheduled", "gated", "updated"),
    [
        ("", 0, 0, 0, 0, 0),
        ("G", 1, 0, 0, 1, 1),
        ("P", 1, 0, 0, 0, 1),
        ("SNE", 3, 0, 3, 0, 3),
        ("RRR", 3, 3, 3, 0, 3),
        ("RRr", 3, 3, 3, 0, 2),
        ("RT", 1, 1, 1, 0, 1),  # who goes counts for nothing
        ("FD", 2, 0, 2, 0, 2),
        ("gGr", 3, 1, 1, 2, 1),
    ],
)
def test_a_clique_counts_its_pods(
    letters: str, replicas: int, ready: int, scheduled: int, gated: int, updated: int
) -> None:
    status = clique_status.status_of(clique(replicas=3, least=1), pods(letters), NOW)
    assert (status.replicas, status.ready_replicas) == (replicas, ready)
    assert (status.scheduled_replicas, status.schedule_gated_replicas) == (scheduled, gated)
    assert status.updated_replicas == updated
    assert status.observed_generation == 2
    follows = CURRENT if updated == replicas else ""
    assert status.current_pod_template_hash == follows


@pytest.mark.rule("4.1")
@pytest.mark.rule("2.7")
@pytest.mark.parametrize(
    ("replicas", "least", "letters", "before", "placed", "breach"),
    [
        # at rest
        (0, 1, "", ONCE, ("True", "Idle"), ("False", "Idle")),
        # never whole yet: no breach, however little is there
        (2, 2, "", {}, ("False", "InsufficientScheduledPods"), ("False", "NeverAvailable")),
        (2, 2, "SS", {}, ("True", "SufficientScheduledPods"), ("False", "NeverAvailable")),
        (2, 2, "RS", {}, ("True", "SufficientScheduledPods"), ("False", "NeverAvailable")),
        # whole
        (2, 2, "RR", {}, ("True", "SufficientScheduledPods"), ("False", "SufficientReadyPods")),
        (3, 2, "RRE", ONCE, ("True", "SufficientScheduledPods"), ("False", "SufficientReadyPods")),
        (3, 2, "RRG", OPEN, ("True", "SufficientScheduledPods"), ("False", "SufficientReadyPods")),
        # was whole, and is no more
        (2, 2, "RS", ONCE, ("True", "SufficientScheduledPods"), ("True", "InsufficientReadyPods")),
        (
            2,
            2,
            "RT",
            ONCE,
            ("False", "InsufficientScheduledPods"),
            ("True", "InsufficientReadyPods"),
        ),
        (2, 2, "", ONCE, ("False", "InsufficientScheduledPods"), ("True", "InsufficientReadyPods")),
        (
            2,
            2,
            "RG",
            {**ONCE, **DONE},
            ("False", "InsufficientScheduledPods"),
            ("True", "InsufficientReadyPods"),
        ),
        # within its own update
        (
            2,
            2,
            "RG",
            {**ONCE, **OPEN},
            ("False", "InsufficientScheduledPods"),
            ("Unknown", "UpdateInProgress"),
        ),
        (2, 2, "RG", OPEN, ("False", "InsufficientScheduledPods"), ("False", "NeverAvailable")),
        # scaled below what it needs: it needs no more than it has
        (1, 2, "R", ONCE, ("True", "SufficientScheduledPods"), ("False", "SufficientReadyPods")),
    ],
)
def test_a_clique_tells_whether_it_is_broken(
    replicas: int,
    least: int,
    letters: str,
    before: Document,
    placed: tuple[str, str],
    breach: tuple[str, str],
) -> None:
    held = clique(replicas=replicas, least=least, status=before)
    status = clique_status.status_of(held, pods(letters), NOW)
    assert told(status.conditions, clique_status.SCHEDULED) == placed
    assert told(status.conditions, clique_status.BREACHED) == breach
    is_updating = before.get("rollingUpdateProgress") == OPEN["rollingUpdateProgress"]
    whole = "RR" in letters and not is_updating
    assert status.was_available is (value_at(before, ["wasAvailable"]) is True or whole)


@pytest.mark.law
@given(st.text("RSNEPGTFDU", max_size=6), st.integers(1, 4), st.integers(0, 4), st.booleans())
def test_what_a_clique_says_of_itself_agrees(
    letters: str, least: int, more: int, was: bool
) -> None:
    """Counts are within each other, whole once is whole for ever, and saying it twice is once."""
    held = clique(replicas=least + more, least=least, status=ONCE if was else {})
    status = clique_status.status_of(held, pods(letters), NOW)
    assert 0 <= status.ready_replicas <= status.replicas
    assert status.scheduled_replicas + status.schedule_gated_replicas <= status.replicas
    assert status.was_available or not was
    breached, reason = told(status.conditions, clique_status.BREACHED)
    assert (breached == "True") == (status.ready_replicas < least and status.was_available)
    again = msgspec.structs.replace(held, status=status)
    assert clique_status.status_of(again, pods(letters), NOW) == status
    assert reason


# Groups

GROUPED = (
    build.podcliqueset("set")
    .with_clique("a")
    .with_clique("b")
    .with_group("g", "a", "b", replicas=3, min_available=2)
    .record()
)
(PLACE,) = places.layout(GROUPED).group_places(0)
SAID = {"T": "True", "F": "False", "U": "Unknown"}


def child(copy: int, name: str, letter: str) -> PodClique | None:
    """Return a PodClique of a copy: what it says, `d` being deleted, `?` silent, `-` missing."""
    if letter == "-":
        return None
    said: list[Json] = [
        {"type": "MinAvailableBreached", "status": SAID.get(letter, "False")},
        {"type": "PodCliqueScheduled", "status": "True" if letter == "F" else "False"},
    ]
    status: Document = {"readyReplicas": 1 if letter == "F" else 0}
    if letter != "?":
        status["conditions"] = said
    return clique(f"set-0-g-{copy}-{name}", least=1, status=status, going=letter == "d")


def group(replicas: int, least: int, status: Document | None = None) -> PodCliqueScalingGroup:
    return records.decode(
        PodCliqueScalingGroup,
        {
            "metadata": {"name": "set-0-g", "uid": "uid-g", "generation": 1},
            "spec": {"replicas": replicas, "minAvailable": least, "cliqueNames": ["a", "b"]},
            "status": status or {},
        },
    )


ENOUGH = "SufficientAvailablePodCliqueScalingGroupReplicas"
TOO_FEW = "InsufficientAvailablePodCliqueScalingGroupReplicas"
NOT_KNOWN = "PodCliqueAvailabilityUnknown"


def observed(copies: str, replicas: int, least: int, before: Document) -> groups.Observation:
    """Return what is seen of a group whose copies say `FF TF …`, two letters a copy."""
    found = [
        child(copy, name, letter)
        for copy, letters in enumerate(copies.split())
        for name, letter in zip("ab", letters, strict=True)
    ]
    return groups.Observation(
        now=NOW,
        group=group(replicas, least, before),
        set_=GROUPED,
        place=PLACE,
        cliques=tuple(each for each in found if each is not None),
    )


@pytest.mark.rule("4.2")
@pytest.mark.rule("2.7")
@pytest.mark.parametrize(
    ("replicas", "least", "copies", "before", "wanted"),
    [
        (0, 1, "", {}, ("False", "Idle")),
        (2, 2, "FF FF", {}, ("False", ENOUGH)),
        (3, 2, "FF FF TF", {}, ("False", ENOUGH)),
        (3, 2, "FF FF --", {}, ("False", ENOUGH)),
        # one broken child breaks its copy
        (2, 2, "FF TF", {}, ("True", TOO_FEW)),
        (2, 2, "FF TU", {}, ("True", TOO_FEW)),
        (3, 2, "FF TF FT", {}, ("True", TOO_FEW)),
        # nobody knows: unknown, silent, going, missing
        (2, 2, "FF UF", {}, ("Unknown", NOT_KNOWN)),
        (2, 2, "FF ?F", {}, ("Unknown", NOT_KNOWN)),
        (2, 2, "FF dF", {}, ("Unknown", NOT_KNOWN)),
        (2, 2, "FF -F", {}, ("Unknown", NOT_KNOWN)),
        (3, 3, "FF UF TF", {}, ("True", TOO_FEW)),
        # while it updates
        (2, 2, "FF TF", OPEN, ("Unknown", "UpdateInProgress")),
        (2, 2, "FF TF", DONE, ("True", TOO_FEW)),
        # it needs no more than it has
        (1, 2, "FF", {}, ("False", ENOUGH)),
    ],
)
def test_a_group_tells_whether_it_is_broken(
    replicas: int, least: int, copies: str, before: Document, wanted: tuple[str, str]
) -> None:
    status = groups.status_of(observed(copies, replicas, least, before))
    assert told(status.conditions, clique_status.BREACHED) == wanted


@pytest.mark.parametrize(
    ("copies", "there", "scheduled", "available"),
    [
        ("", 0, 0, 0),
        ("FF FF FF", 3, 3, 3),
        ("FF F- --", 2, 1, 1),
        ("FF TF dF", 3, 1, 1),
        ("FF FF FF FF", 3, 3, 3),  # a copy beyond what is wanted is none of it
    ],
)
def test_a_group_counts_its_copies(copies: str, there: int, scheduled: int, available: int) -> None:
    status = groups.status_of(observed(copies, 3, 2, {}))
    assert (status.replicas, status.scheduled_replicas) == (there, scheduled)
    assert status.available_replicas == available
    assert status.selector.endswith("grove.io/podcliquescalinggroup=set-0-g")


@pytest.mark.parametrize(
    ("stored", "hashes", "wanted"),
    [
        ({}, ["new", "new"], "new"),
        ({}, ["new", "old"], ""),
        ({"currentPodCliqueSetGenerationHash": "old"}, ["new", "old"], "old"),
        ({"currentPodCliqueSetGenerationHash": "old", **OPEN}, ["new", "new"], "old"),
    ],
)
def test_a_group_follows_a_revision_once_all_its_cliques_do(
    stored: Document, hashes: list[str], wanted: str
) -> None:
    children = [
        clique(
            f"set-0-g-0-{name}",
            status={
                "currentPodTemplateHash": CURRENT,
                "currentPodCliqueSetGenerationHash": revision,
            },
        )
        for name, revision in zip("ab", hashes, strict=True)
    ]
    seen = msgspec.structs.replace(
        observed("", 1, 1, stored), cliques=tuple(children), revision="new"
    )
    assert groups.status_of(seen).current_pod_clique_set_generation_hash == wanted


@pytest.mark.parametrize(
    ("letters", "stored", "label", "wanted"),
    [
        ("RR", {}, "its own", "new"),
        ("", {}, "its own", "new"),
        ("Rr", {}, "its own", ""),
        ("RR", {}, "another", ""),
        ("RR", OPEN, "its own", ""),
        ("RR", {"currentPodCliqueSetGenerationHash": "old"}, "its own", "new"),
        ("Rr", {"currentPodCliqueSetGenerationHash": "old"}, "its own", "old"),
    ],
)
def test_a_clique_follows_a_revision_once_all_its_pods_do(
    letters: str, stored: Document, label: str, wanted: str
) -> None:
    set_ = build.podcliqueset("set").with_clique("it").record()
    template = set_.spec.template
    stamp = revisions.pod_template_hash(template, template.cliques[0])
    found = [
        pod(letter.upper(), index, template_hash=stamp if letter.isupper() else OUTDATED)
        for index, letter in enumerate(letters)
    ]
    if label == "another":
        found = [pod("R", index, template_hash=label) for index in range(2)]
        stamp = label
    seen = cliques.Observation(
        now=NOW,
        clique=clique(
            replicas=2, least=1, status=stored, carried={labels.POD_TEMPLATE_HASH: stamp}
        ),
        set_=set_,
        revision="new",
        place=next(places.layout(set_).standalone_places(0)),
        pods=tuple(found),
    )
    status = cliques.decide(seen).status
    assert status is not None
    assert status.get("currentPodCliqueSetGenerationHash", "") == wanted


# Sets


@pytest.mark.parametrize(
    ("replicas", "ready", "copies", "available"),
    [
        (1, {0: 1}, {0: 2}, 1),
        (2, {0: 1, 1: 1}, {0: 2, 1: 2}, 2),
        (2, {0: 1, 1: 0}, {0: 2, 1: 2}, 1),
        (2, {0: 1, 1: 1}, {0: 2, 1: 1}, 1),
        (2, {0: 1}, {0: 2, 1: 2}, 1),  # a clique is missing
        (2, {0: 1, 1: 1}, {0: 2}, 1),  # a group is missing
        (0, {}, {}, 0),
        (1, {0: 1, 1: 1}, {0: 2, 1: 2}, 1),  # what is beyond is not counted
    ],
)
def test_a_set_replica_is_available_when_all_of_it_is(
    replicas: int, ready: dict[int, int], copies: dict[int, int], available: int
) -> None:
    made = build.podcliqueset("set").with_replicas(replicas).with_clique("a").with_clique("b")
    set_ = made.with_group("g", "b", replicas=2, min_available=2).record()
    parts = Parts(
        cliques=tuple(
            clique(f"set-{i}-a", least=1, status={"readyReplicas": n}) for i, n in ready.items()
        ),
        groups=tuple(
            records.decode(
                PodCliqueScalingGroup,
                {
                    "metadata": {"name": f"set-{i}-g"},
                    "spec": {"replicas": 2, "minAvailable": 2, "cliqueNames": ["b"]},
                    "status": {"availableReplicas": n},
                },
            )
            for i, n in copies.items()
        ),
    )
    status = set_status.status_of(set_, parts, Settings(), NOW)
    assert status.available_replicas == available


CONSTRAINED = {"topologyName": "racks", "pack": {"required": "rack"}}


@pytest.mark.parametrize(
    ("constraint", "levels", "aware", "wanted"),
    [
        (None, None, False, None),
        (CONSTRAINED, None, False, ("Unknown", "TopologyAwareSchedulingDisabled")),
        (None, None, True, ("False", "AllClusterTopologyLevelsAvailable")),
        ({"pack": {"required": "rack"}}, None, True, ("Unknown", "TopologyNameMissing")),
        (CONSTRAINED, None, True, ("Unknown", "ClusterTopologyNotFound")),
        (CONSTRAINED, ["zone"], True, ("True", "ClusterTopologyLevelsUnavailable")),
        (CONSTRAINED, ["zone", "rack"], True, ("False", "AllClusterTopologyLevelsAvailable")),
    ],
)
def test_a_set_tells_whether_its_topology_is_there(
    constraint: Document | None,
    levels: list[str] | None,
    aware: bool,
    wanted: tuple[str, str] | None,
) -> None:
    set_ = build.podcliqueset("set").with_clique("a").record()
    if constraint is not None:
        document = {**records.encode(set_), "metadata": {"name": "set"}}
        template = document["spec"]["template"]  # type: ignore[index,call-overload]
        template["topologyConstraint"] = constraint  # type: ignore[index,call-overload]
        set_ = records.decode(type(set_), document)
    binding = None
    if levels is not None:
        made = build.clustertopologybinding("racks")
        for level in levels:
            made = made.with_level(level, f"example.com/{level}")
        binding = made.record()
    judged = set_status.judged_topology(set_.spec.template, binding, Settings(topology_aware=aware))
    assert (judged and judged[:2]) == wanted
    if wanted and wanted[1] == "ClusterTopologyLevelsUnavailable":
        assert judged is not None
        assert "rack" in judged[2]


@pytest.mark.rule("4.4")
def test_a_clique_that_was_built_anew_was_never_available() -> None:
    """No second firing for the same outage: what replaces a broken clique begins as new."""
    world = World()
    made = build.podcliqueset("it").with_clique("a", replicas=2)
    world.apply(made.with_("metadata.namespace", "default").document())
    world.live()
    key = Ref(kind=groupkinds.CLIQUE, namespace="default", name="it-0-a")
    assert value_at(world.documents[key], ["status", "wasAvailable"]) is True
    world.delete(key)
    world.end_pods()
    world.settle()
    rebuilt = world.documents[key]
    assert value_at(rebuilt, ["status", "wasAvailable"]) is not True
    reasons = {
        string_at(each, ["type"]): string_at(each, ["reason"])
        for each in list_at(rebuilt, ["status", "conditions"])
    }
    assert reasons["MinAvailableBreached"] == "NeverAvailable"


def test_a_clique_of_a_group_publishes_no_selector() -> None:
    alone = clique_status.status_of(clique(), (), NOW)
    assert alone.hpa_pod_selector.endswith("grove.io/podclique=it")
    grouped = clique(carried={labels.SCALING_GROUP: "set-0-g"})
    assert clique_status.status_of(grouped, (), NOW).hpa_pod_selector == ""
