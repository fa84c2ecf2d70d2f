"""Gang termination: what is torn down, when, and what is left alone (section 4)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.api import groupkinds
from spinney.decisions import deadlines, termination
from spinney.decisions.actions import Delete
from spinney.meta.documents import Document, is_object, list_at, object_at, string_at, with_value
from spinney.meta.references import GroupKind, Ref
from tests import laws
from tests.decisions.shapes import Clique, Group, Small
from tests.decisions.worlds import LOOKS, START, World

SHAPE = Small(
    replicas=2,
    cliques=(
        Clique(name="a", replicas=2, min_available=2, group="g"),
        Clique(name="b", replicas=1, min_available=1, group="g"),
        Clique(name="c", replicas=2, min_available=1),
    ),
    groups=(Group(name="g", replicas=3, min_available=2),),
)
SET_DELAY = 60
SECOND = timedelta(seconds=1)
INSTANT = timedelta(milliseconds=1)


def world_of(delay: int | None = SET_DELAY, own: int | None = None, **spec: str) -> World:
    """Return a world that runs, with delays in seconds."""
    document = SHAPE.document()
    template = object_at(document, ["spec", "template"])
    if delay is not None:
        template = {**template, "terminationDelay": f"{delay}s"}
    if own is not None:
        (group,) = list_at(template, ["podCliqueScalingGroups"])
        assert is_object(group)
        template = {
            **template,
            "podCliqueScalingGroups": [{**group, "terminationDelay": f"{own}s"}],
        }
    world = World()
    world.apply(
        {**document, "spec": {**object_at(document, ["spec"]), **spec, "template": template}}
    )
    world.live()
    return world


def uids(world: World) -> dict[str, str]:
    return {
        ref.name: string_at(document, ["metadata", "uid"])
        for ref, document in world.documents.items()
        if ref.kind == groupkinds.CLIQUE
    }


def break_pods(world: World, *pods: str) -> None:
    for name in pods:
        world.say(Ref(kind=groupkinds.POD, namespace="default", name=name), ready=False)
    world.settle()


def torn_down(world: World) -> set[str]:
    """Let everything be looked at; return the PodCliques that were deleted by that."""
    begun = len(world.writes)
    world.settle()
    return {
        ref.name
        for verb, ref in world.writes[begun:]
        if verb == "delete" and ref.kind == groupkinds.CLIQUE
    }


def first_wake(world: World) -> timedelta | None:
    """Return when the first of all decisions wants to be made again."""
    decisions = [LOOKS[ref.kind](world, ref) for ref in world.subjects()]
    waits = [decision.wake_after for decision in decisions if decision is not None]
    return deadlines.earliest(*waits)


def of_replica(index: int) -> set[str]:
    copies = {f"small-{index}-g-{copy}-{clique}" for copy in range(3) for clique in "ab"}
    return {*copies, f"small-{index}-c"}


def of_copy(index: int, copy: int) -> set[str]:
    return {f"small-{index}-g-{copy}-{clique}" for clique in "ab"}


# The oracle: the same promises, said another way


def falls(broken: set[str], set_delay: int, own: int | None) -> list[tuple[int, set[str]]]:
    """Return what falls how many seconds after everything broke at once, in order."""
    found: dict[int, set[str]] = {}
    group_delay = set_delay if own is None else own
    for index in range(2):
        bad = {copy for copy in range(3) if of_copy(index, copy) & broken}
        times: list[int] = []
        if f"small-{index}-c" in broken:
            times.append(set_delay)
        if 3 - len(bad) < 2:
            times.append(group_delay)
        whole = min(times, default=None)
        if whole is not None:
            found.setdefault(whole, set()).update(of_replica(index))
        if bad and 3 - len(bad) >= 2 and (whole is None or group_delay <= whole):
            for copy in bad:
                found.setdefault(group_delay, set()).update(of_copy(index, copy))
    return sorted(found.items())


def breached(pods: set[str]) -> set[str]:
    """Return the cliques that these broken pods take below what they need."""
    found = set()
    for index in range(2):
        for copy in range(3):
            for clique, count in (("a", 2), ("b", 1)):
                name = f"small-{index}-g-{copy}-{clique}"
                if any(f"{name}-{pod}" in pods for pod in range(count)):
                    found.add(name)
        if {f"small-{index}-c-0", f"small-{index}-c-1"} <= pods:
            found.add(f"small-{index}-c")
    return found


@pytest.mark.law
@pytest.mark.rule("4.2")
@pytest.mark.rule("4.4")
@pytest.mark.rule("7.2")
@laws.examples(4)
@given(
    st.sets(st.sampled_from(SHAPE.pods()), min_size=1, max_size=8),
    st.sampled_from([None, 20, 60, 100]),
)
def test_exactly_what_lasted_its_whole_delay_is_torn_down_and_once(
    pods: set[str], own: int | None
) -> None:
    world = world_of(own=own)
    before = uids(world)
    break_pods(world, *pods)
    gone: set[str] = set()
    for delay, expected in falls(breached(pods), SET_DELAY, own):
        due = START + SECOND + timedelta(seconds=delay)
        assert first_wake(world) == due - world.now
        world.now = due - INSTANT
        assert torn_down(world) == set()
        world.now = due
        assert torn_down(world) == expected
        gone |= expected
        for ref in [ref for ref in world.pods() if ref.name.rsplit("-", 1)[0] in gone]:
            if ref in world.documents:
                world.delete(ref)
        world.live()
    assert first_wake(world) is None
    world.now += timedelta(hours=10)
    assert torn_down(world) == set()
    assert world.names(groupkinds.POD) == SHAPE.pods()
    after = uids(world)
    assert {name for name in after if after[name] != before[name]} == gone


@pytest.mark.rule("4.1")
def test_without_a_delay_it_is_told_and_nothing_else_happens() -> None:
    world = world_of(delay=None)
    break_pods(world, "small-0-c-0", "small-0-c-1", "small-0-g-0-b-0", "small-0-g-1-b-0")
    assert condition(world, groupkinds.CLIQUE, "small-0-c")["status"] == "True"
    assert condition(world, groupkinds.SCALING_GROUP, "small-0-g")["status"] == "True"
    assert first_wake(world) is None
    world.now += timedelta(days=30)
    assert torn_down(world) == set()
    assert "gang termination is off" in told(world, "MinAvailableBreached")


@pytest.mark.rule("4.1")
def test_what_recovers_in_time_is_left_alone_and_begins_anew_next_time() -> None:
    world = world_of()
    break_pods(world, "small-1-c-0", "small-1-c-1")
    world.now += timedelta(seconds=50)
    world.say(Ref(kind=groupkinds.POD, namespace="default", name="small-1-c-0"), ready=True)
    assert torn_down(world) == set()
    assert first_wake(world) is None
    assert "after 50s with too few" in told(world, "MinAvailableRecovered")
    world.now += timedelta(seconds=30)
    break_pods(world, "small-1-c-0")
    world.now += timedelta(seconds=60)
    assert torn_down(world) == set()
    world.now += SECOND
    assert torn_down(world) == of_replica(1)


@pytest.mark.rule("4.1")
def test_what_was_never_available_is_never_torn_down() -> None:
    document = SHAPE.document()
    template = {**object_at(document, ["spec", "template"]), "terminationDelay": "1s"}
    world = World()
    world.apply({**document, "spec": {"replicas": 2, "template": template}})
    world.settle()
    for ref in world.pods():
        if not list_at(world.documents[ref], ["spec", "schedulingGates"]):
            world.place(ref)
            world.say(ref, ready=False)
    world.settle()
    world.now += timedelta(days=1)
    assert torn_down(world) == set()
    assert condition(world, groupkinds.CLIQUE, "small-0-c")["reason"] == "NeverAvailable"


@pytest.mark.rule("4.1")
def test_an_update_of_the_clique_holds_its_termination_off() -> None:
    world = world_of()
    ref = Ref(kind=groupkinds.CLIQUE, namespace="default", name="small-0-c")
    status = object_at(world.documents[ref], ["status"])
    started: Document = {"rollingUpdateProgress": {"updateStartedAt": "2026-01-01T00:00:00Z"}}
    world.put_status(ref, {**status, **started})
    break_pods(world, "small-0-c-0", "small-0-c-1")
    assert condition(world, groupkinds.CLIQUE, "small-0-c")["status"] == "Unknown"
    world.now += timedelta(days=1)
    assert torn_down(world) == set()


@pytest.mark.rule("4.2")
def test_an_update_of_the_group_holds_the_termination_of_its_copies_off() -> None:
    world = world_of()
    ref = Ref(kind=groupkinds.SCALING_GROUP, namespace="default", name="small-0-g")
    status = object_at(world.documents[ref], ["status"])
    started: Document = {"rollingUpdateProgress": {"updateStartedAt": "2026-01-01T00:00:00Z"}}
    world.put_status(ref, {**status, **started})
    break_pods(world, "small-0-g-1-b-0")
    world.now += timedelta(days=1)
    assert torn_down(world) == set()
    ended: Document = {**object_at(started, ["rollingUpdateProgress"])}
    ended["updateEndedAt"] = "2026-01-01T00:00:00Z"
    status = object_at(world.documents[ref], ["status"])
    world.put_status(ref, {**status, "rollingUpdateProgress": ended})
    assert torn_down(world) == of_copy(0, 1)


@pytest.mark.rule("5.3")
def test_training_is_never_torn_down_this_way() -> None:
    world = world_of(delay=1, workloadType="Training")
    break_pods(world, "small-0-c-0", "small-0-c-1", "small-0-g-1-b-0")
    world.now += timedelta(days=1)
    assert torn_down(world) == set()


@pytest.mark.rule("4.2")
def test_nothing_falls_while_it_is_not_known_how_many_copies_are_whole() -> None:
    """One copy is broken for long, one is just being rebuilt, one is whole; two are needed."""
    world = world_of()
    break_pods(world, "small-0-g-1-b-0")
    world.delete(Ref(kind=groupkinds.CLIQUE, namespace="default", name="small-0-g-2-b"))
    world.now += timedelta(seconds=61)
    decision = LOOKS[groupkinds.SCALING_GROUP](
        world, Ref(kind=groupkinds.SCALING_GROUP, namespace="default", name="small-0-g")
    )
    assert decision is not None
    assert not any(isinstance(action, Delete) for action in decision.actions)


@pytest.mark.rule("4.4")
def test_what_is_being_deleted_already_takes_nobody_along() -> None:
    world = world_of()
    break_pods(world, "small-0-c-0", "small-0-c-1")
    ref = Ref(kind=groupkinds.CLIQUE, namespace="default", name="small-0-c")
    held = with_value(world.documents[ref], ["metadata", "finalizers"], ["test/held"])
    world.documents[ref] = held
    world.delete(ref)
    world.now += timedelta(seconds=61)
    assert torn_down(world) == set()


@pytest.mark.rule("4.4")
def test_a_missing_clique_exempts_nobody() -> None:
    world = world_of(own=20)
    break_pods(world, "small-0-g-0-b-0", "small-0-g-1-b-0")
    ref = Ref(kind=groupkinds.CLIQUE, namespace="default", name="small-0-c")
    del world.documents[ref]
    world.now += timedelta(seconds=21)
    assert torn_down(world) == of_replica(0) - {"small-0-c"}


@pytest.mark.rule("4.4")
def test_what_a_group_says_no_longer_being_so_is_not_believed() -> None:
    """Its condition still says breached; its PodCliques do not."""
    world = world_of()
    break_pods(world, "small-0-g-0-b-0", "small-0-g-1-b-0")
    world.now += timedelta(seconds=70)
    world.say(Ref(kind=groupkinds.POD, namespace="default", name="small-0-g-0-b-0"), ready=True)
    world.look(Ref(kind=groupkinds.CLIQUE, namespace="default", name="small-0-g-0-b"))
    assert condition(world, groupkinds.SCALING_GROUP, "small-0-g")["status"] == "True"
    world.look(Ref(kind=groupkinds.SET, namespace="default", name="small"))
    assert uids(world).keys() >= of_replica(0)
    assert not any(event.reason == "GangTerminated" for event in world.events)


@pytest.mark.rule("4.3")
def test_it_is_told_what_was_lost_before_it_is_torn_down() -> None:
    world = world_of()
    pod = Ref(kind=groupkinds.POD, namespace="default", name="small-0-g-2-a-1")
    break_pods(world, "small-0-g-2-a-1")
    document = world.documents[pod]
    ended: Document = {
        "name": "main",
        "restartCount": 3,
        "ready": False,
        "image": "main",
        "imageID": "",
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {
            "terminated": {"exitCode": 137, "reason": "OOMKilled", "message": "out\nof  memory"}
        },
    }
    status = {**object_at(document, ["status"]), "containerStatuses": [ended]}
    world.put_status(pod, status)
    world.settle()
    said = condition(world, groupkinds.CLIQUE, "small-0-g-2-a")["message"]
    lost = "small-0-g-2-a-1: main ended with exit code 137 (OOMKilled): out of memory"
    assert said == f"1 of 2 needed pods are ready: {lost}"
    world.now += timedelta(seconds=61)
    assert torn_down(world) == of_copy(0, 2)
    note = told(world, "GangTerminated")
    assert note.startswith(
        "copy 2 of small-0-g is torn down and built anew: PodClique small-0-g-2-a"
    )
    assert lost in note
    assert "within 1m" in note


@pytest.mark.law
@pytest.mark.rule("4.3")
@given(st.text(max_size=2_000))
def test_a_note_fits_into_an_event_and_loses_nothing_that_does(text: str) -> None:
    short = termination.shortened(text)
    assert len(short.encode()) <= termination.NOTE_BYTES_MAX
    if len(text.encode()) <= termination.NOTE_BYTES_MAX:
        assert short == text
    else:
        assert text.startswith(short.removesuffix(" …"))


def condition(world: World, kind: GroupKind, name: str) -> dict[str, str]:
    found = list_at(world.at(kind, name), ["status", "conditions"])
    (said,) = [each for each in found if is_object(each) and each["type"] == "MinAvailableBreached"]
    return {key: str(value) for key, value in said.items()}


def told(world: World, reason: str) -> str:
    notes = [event.note for event in world.events if event.reason == reason]
    assert notes, f"no event {reason}"
    return notes[-1]
