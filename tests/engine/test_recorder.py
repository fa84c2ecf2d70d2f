"""Events: told once a key, counted, bounded, and never in anybody's way."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.api.core.events import NOTE_LENGTH_MAX
from spinney.decisions.actions import Emit
from spinney.engine import recorder
from spinney.engine.recorder import Recorder
from spinney.meta.errors import Forbidden, NotFound, Unavailable
from spinney.meta.metadata import dns_subdomain_fault
from spinney.meta.references import GroupKind, Ref
from tests.engine.worlds import clique, clique_ref, in_world, milliseconds, seconds


def said(note="one more", key="", reason="Grew", about=None, type="Normal"):
    return Emit(about=about or clique_ref(), type=type, reason=reason, note=note, key=key)


@asynccontextmanager
async def telling(bench):
    made = Recorder(bench.reader, bench.network, bench.clock, bench.metrics, instance="test-1")
    task = asyncio.create_task(made.run())
    try:
        yield made
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def test_an_event_says_all_that_kubectl_shows():
    async def story(bench):
        await bench.user.create(clique())
        async with telling(bench) as made:
            made.emit(said(), "podclique")
            await made.wait_quiet()
        (event,) = bench.events()
        uid = bench.document(clique_ref())["metadata"]["uid"]
        assert event["involvedObject"] == {
            "apiVersion": "grove.io/v1alpha1",
            "kind": "PodClique",
            "namespace": "default",
            "name": "chat",
            "uid": uid,
        }
        assert (event["type"], event["reason"], event["message"]) == ("Normal", "Grew", "one more")
        assert event["count"] == 1
        assert event["source"] == {"component": "podclique"}
        assert event["reportingInstance"] == "test-1"
        assert event["firstTimestamp"] == event["lastTimestamp"]

    in_world(story)


def test_emits_with_one_key_are_one_event_that_counts():
    async def story(bench):
        async with telling(bench) as made:
            for count in range(1, 4):
                made.emit(said(f"{count} more", key="growth"), "podclique")
                await made.wait_quiet()
                await bench.clock.sleep(seconds(60))
        (event,) = bench.events()
        assert (event["count"], event["message"]) == (3, "3 more")
        assert event["lastTimestamp"] > event["firstTimestamp"]

    in_world(story)


def test_what_is_said_while_one_is_being_written_is_counted_together():
    async def story(bench):
        bench.network.latency = lambda _verb, _name: seconds(1)
        async with telling(bench) as made:
            for _ in range(20):
                made.emit(said(), "podclique")
                await bench.clock.sleep(milliseconds(1))
            await made.wait_quiet()
        assert [verb for verb, _ in bench.network.calls] == ["create", "patch"]
        (event,) = bench.events()
        assert event["count"] == 20

    in_world(story)


@pytest.mark.rule("4.3")
def test_another_process_that_says_it_again_meets_its_own_event():
    async def story(bench):
        for _ in range(2):
            async with telling(bench) as made:
                made.emit(said(key="breach/2026-01-01T00:00:00Z"), "podcliqueset")
                await made.wait_quiet()
            await bench.clock.sleep(seconds(10))
        (event,) = bench.events()
        assert event["count"] == 1, "how often it was told before is not known"
        assert event["lastTimestamp"] > event["firstTimestamp"]

    in_world(story)


def test_an_event_that_expired_is_told_anew():
    async def story(bench):
        async with telling(bench) as made:
            made.emit(said(), "podclique")
            await made.wait_quiet()
            (event,) = bench.events()
            ref = Ref(kind=recorder.EVENT, namespace="default", name=event["metadata"]["name"])
            await bench.store.remove(
                ref, expects=bench.store.head(ref).version, document=bench.document(ref)
            )
            made.emit(said(), "podclique")
            await made.wait_quiet()
        (event,) = bench.events()
        assert event["count"] == 1

    in_world(story)


def test_an_object_may_be_told_of_so_often_and_others_do_not_suffer():
    async def story(bench):
        async with telling(bench) as made:
            for index in range(100):
                made.emit(said(f"note {index}"), "podclique")
            made.emit(said(about=clique_ref("other")), "podclique")
            await made.wait_quiet()
            assert len(bench.events()) == recorder.BURST_MAX + 1
            assert bench.measured("spinney_events_total", result="dropped") == 75
            await bench.clock.sleep(recorder.REFILL)
            for index in range(100, 110):
                made.emit(said(f"note {index}"), "podclique")
            await made.wait_quiet()
            assert len(bench.events()) == recorder.BURST_MAX + 2

    in_world(story)


def test_what_is_gathered_is_bounded():
    async def story(bench):
        made = Recorder(bench.reader, bench.network, bench.clock, bench.metrics, instance="test")
        for index in range(recorder.GATHERED_MAX + 100):
            made.emit(said(about=clique_ref(f"chat{index}")), "podclique")
        assert made.statistics().waiting == recorder.GATHERED_MAX
        assert bench.measured("spinney_events_total", result="dropped") == 100

    in_world(story)


@pytest.mark.parametrize(
    ("error", "tries"),
    [(Unavailable("no"), 3), (TimeoutError(), 3), (Forbidden("no"), 1), (NotFound("no"), 1)],
)
def test_what_cannot_be_told_is_given_up_and_the_next_is_told(error, tries, caplog):
    async def story(bench):
        attempts = []

        def refuse(_verb, name):
            attempts.append(name)
            return error if name.startswith("bad") else None

        bench.network.before = refuse
        async with telling(bench) as made:
            made.emit(said(about=clique_ref("bad")), "podclique")
            made.emit(said(about=clique_ref("good")), "podclique")
            await made.wait_quiet()
        assert len([name for name in attempts if name.startswith("bad")]) == tries
        assert [event["involvedObject"]["name"] for event in bench.events()] == ["good"]
        assert bench.measured("spinney_events_total", result="failed") == 1
        assert [record.getMessage() for record in caplog.records] == ["an event could not be told"]

    in_world(story)


def test_an_event_of_an_object_without_a_namespace_lies_in_default():
    async def story(bench):
        node = Ref(kind=GroupKind(group="", kind="Node"), namespace="", name="one")
        async with telling(bench) as made:
            made.emit(said(about=node), "nodes")
            await made.wait_quiet()
        (event,) = bench.events()
        assert event["metadata"]["namespace"] == "default"
        assert "namespace" not in event["involvedObject"]

    in_world(story)


@pytest.mark.law
@given(st.text(max_size=400), st.integers(4, 64))
def test_a_note_is_cut_at_a_character(note, most):
    found = recorder.cut(note, most)
    assert len(found.encode()) <= most
    whole = note.encode(errors="replace").decode()
    assert found == whole or whole.startswith(found.removesuffix("…"))
    if len(whole.encode()) <= most:
        assert found == whole


def test_a_note_of_two_thousand_signs_fits():
    assert len(recorder.cut("ö" * 2000).encode()) <= NOTE_LENGTH_MAX
    assert recorder.cut("ö" * 2000).endswith("ö…")


@pytest.mark.law
@given(st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,250}[a-z0-9])?", fullmatch=True))
def test_the_name_of_an_event_is_a_name_and_always_the_same(name):
    if dns_subdomain_fault(name):
        return
    about = clique_ref(name)
    made = recorder.event_name(about, "uid", "Normal", "Grew", "key")
    assert dns_subdomain_fault(made) == ""
    assert made == recorder.event_name(about, "uid", "Normal", "Grew", "key")
    assert made != recorder.event_name(about, "uid", "Normal", "Grew", "other")
    assert made != recorder.event_name(about, "other", "Normal", "Grew", "key")
