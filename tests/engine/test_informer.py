"""The informer over a real store: it lags, it is cut, and controllers are right all the same."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.api.core.configuration import ConfigMap
from spinney.api.core.pod import Pod
from spinney.api.kinds import KINDS
from spinney.engine.informer import Informer
from spinney.meta.errors import Expired, InvariantViolation
from spinney.meta.references import GroupKind, Precondition
from spinney.ports import Change
from spinney.testing.entropy import SeededEntropy
from spinney.testing.lines import BadLine
from tests import laws
from tests.engine.worlds import (
    CLIQUE,
    CONFIG_MAP,
    child,
    child_ref,
    clique,
    clique_ref,
    in_world,
    milliseconds,
    seconds,
    toy,
)

FOLLOWED = [KINDS[kind] for kind in (CLIQUE, CONFIG_MAP)]


@asynccontextmanager
async def following(bench, source=None, kinds=FOLLOWED):
    informer = Informer(
        source or bench.source, kinds, bench.clock, bench.entropy.stream("informer"), bench.metrics
    )
    task = asyncio.create_task(informer.run())
    try:
        yield informer
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def test_it_reads_as_the_store_does():
    async def story(bench):
        await bench.user.create(clique())
        owner = bench.reader.get(FOLLOWED[0].record, "default", "chat").metadata
        for name in ("b", "a", "c"):
            await bench.user.create(child(name, owner if name != "c" else None))
        async with following(bench) as informer:
            assert informer.seen(CONFIG_MAP) == 0
            await informer.wait_synced()
            for by in (None, ("owner", owner.uid), ("label:x", "y")):
                mine = informer.list(ConfigMap, namespace="default", by=by)
                assert mine == bench.reader.list(ConfigMap, namespace="default", by=by)
            assert informer.get(ConfigMap, "default", "a").metadata.name == "a"
            assert informer.get(ConfigMap, "default", "d") is None
            assert informer.seen(CONFIG_MAP) == bench.store.version
            await bench.clock.sleep(milliseconds(1))
            found = informer.statistics()[CLIQUE]
            assert (found.objects, found.state, found.is_synced) == (1, "watching", True)
            kind = str(CLIQUE)
            assert bench.measured("spinney_cache_objects", kind=kind) == 1
            assert bench.measured("spinney_cache_synced", kind=kind) == 1

    in_world(story)


def test_a_kind_that_is_not_followed_is_not_read_by_mistake():
    async def story(bench):
        async with following(bench) as informer:
            with pytest.raises(InvariantViolation, match="Pod is read, but its kind is not"):
                informer.list(Pod)
            assert informer.seen(GroupKind(group="", kind="Pod")) == 0

    in_world(story)


def test_changes_are_told_in_order_and_a_listener_that_raises_keeps_nobody_from_them(caplog):
    async def story(bench):
        heard = []

        def listen(ref, change):
            if change is not Change.BOOKMARK:
                heard.append((ref.name, change.value))

        def fail(ref, change):
            raise KeyError("a bug")

        async with following(bench) as informer:
            informer.on_change(CONFIG_MAP, fail)
            informer.on_change(CONFIG_MAP, listen)
            await informer.wait_synced()
            heard.clear()
            await bench.user.create(child("a"))
            relabel = {"metadata": {"labels": {"x": "y"}}}
            await bench.user.patch(child_ref("a"), relabel, Precondition())
            await bench.clock.sleep(milliseconds(1))
            assert informer.list(ConfigMap, by=("label:x", "y"))
            await bench.user.delete(
                child_ref("a"), Precondition(), grace_seconds=None, propagation="Background"
            )
            await bench.clock.sleep(milliseconds(1))
        assert heard == [("a", "ADDED"), ("a", "MODIFIED"), ("a", "DELETED")]

    in_world(story)


def test_what_was_deleted_while_nobody_watched_is_missed_in_the_next_list():
    async def story(bench):
        for name in "abc":
            await bench.user.create(child(name))
        is_up = asyncio.Event()
        is_up.set()

        class Gap:
            async def list(self, kind, *, limit, token=""):
                return await bench.source.list(kind, limit=limit, token=token)

            async def watch(self, kind, since):
                if not is_up.is_set():
                    await is_up.wait()
                    raise Expired("compacted")
                async for event in bench.source.watch(kind, since):
                    if not is_up.is_set():
                        return
                    yield event

        async with following(bench, Gap()) as informer:
            await informer.wait_synced()
            heard = []
            informer.on_change(CONFIG_MAP, lambda ref, change: heard.append((ref.name, change)))
            is_up.clear()
            await bench.user.create(child("d"))
            await bench.clock.sleep(seconds(5))
            await bench.user.delete(
                child_ref("b"), Precondition(), grace_seconds=None, propagation="Background"
            )
            is_up.set()
            await bench.clock.sleep(seconds(5))
            assert (("b", Change.DELETED)) in heard
            assert informer.get(ConfigMap, "default", "b") is None
            assert informer.get(ConfigMap, "default", "d") is not None

    in_world(story)


@pytest.mark.law
@laws.examples(10)
@given(st.integers(0, 2**32))
@pytest.mark.rule("7.1")
def test_controllers_end_up_right_whatever_the_line_does_and_never_write_twice(seed):
    """A lagging, cut, replayed view. No child is ever created twice, or deleted and made again."""

    async def story(bench):
        entropy = SeededEntropy(seed)
        line = BadLine(bench.source, bench.clock, entropy)
        async with following(bench, line) as informer:
            manager = bench.manager(toy(), reader=informer, wait_synced=informer.wait_synced)
            task = asyncio.create_task(manager.run())
            wanted = {}
            for turn in range(12):
                name = f"chat{turn % 3}"
                wanted[name] = entropy.between(1, 4)
                if turn < 3:
                    await bench.user.create(clique(name, wanted[name]))
                else:
                    change = {"spec": {"replicas": wanted[name]}}
                    await bench.user.patch(clique_ref(name), change, Precondition())
                await bench.clock.sleep(milliseconds(entropy.between(0, 2_000)))
            line.heal()
            await bench.clock.sleep(seconds(90))
            expected = [f"{name}-{index}" for name in wanted for index in range(wanted[name])]
            assert bench.names() == sorted(expected)
            version = bench.store.version
            await bench.clock.sleep(seconds(60))
            assert bench.store.version == version, "nothing is written at rest"
            assert not task.done()
            again = bench.measured("spinney_actions_total", action="create", result="exists")
            assert again == 0, "a key was looked at before it saw what it had created"
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    in_world(story, seed)
