"""What every Source does. Informers rely on each of these; a new Source is added to SOURCES.

The same cases run over each way there is to list and watch: in the process of the store, over a
line of the tests with nothing wrong with it, and over HTTP from our own server.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from datetime import timedelta

import pytest

from spinney.kube.source import HttpSource
from spinney.meta.errors import BadRequest, Expired
from spinney.meta.references import GroupKind, Precondition
from spinney.ports import Change
from spinney.registry.world import open_world
from spinney.store.journals import MemoryJournal
from spinney.store.reader import StoreSource
from spinney.store.store import Limits, Store
from spinney.testing import loop
from spinney.testing.clock import ManualClock, VirtualClock
from spinney.testing.entropy import SeededEntropy
from spinney.testing.executors import InlineExecutor
from spinney.testing.lines import PERFECT, BadLine
from tests.engine.worlds import CONFIG_MAP, READ, Bench, child, child_ref, clique
from tests.kube import over_http

NAMESPACE = GroupKind(group="", kind="Namespace")
PATIENCE_SECONDS = 300
"""Of the clock the world has: in virtual time minutes are let pass below."""

FEW = Limits(history_events_max=4)
BACKGROUND = {"grace_seconds": None, "propagation": "Background"}


class Place:
    """A world, a source of it, and a way to let time pass."""

    def __init__(self, bench, source, let_pass):
        self.bench = bench
        self.source = source
        self.let_pass = let_pass

    async def create(self, *names, **data):
        return [await self.bench.user.create(child(name, **data)) for name in names]

    async def delete(self, name):
        await self.bench.user.delete(child_ref(name), Precondition(), **BACKGROUND)

    async def listed(self, limit=500):
        """Return the names of a whole list, and its version."""
        pages = [await self.source.list(CONFIG_MAP, limit=limit)]
        while pages[-1].token:
            pages.append(await self.source.list(CONFIG_MAP, limit=limit, token=pages[-1].token))
        assert all(len(page.items) <= limit for page in pages)
        assert len({page.resource_version for page in pages}) == 1
        return [name_of(item) for page in pages for item in page.items], pages[0].resource_version

    async def told(self, since, count):
        """Return so many changes after a version."""
        found = []
        async with asyncio.timeout(PATIENCE_SECONDS):
            async with aclosing(self.source.watch(CONFIG_MAP, since)) as events:
                while len(found) < count:
                    event = await anext(events)
                    if event.change is not Change.BOOKMARK:
                        found.append(event)
        return found


def name_of(document):
    return document["metadata"]["name"]


def told_in_process(make):
    def tell(story, limits=None):
        async def main():
            clock = VirtualClock()
            store = await Store.open(
                MemoryJournal(), clock, limits=limits or Limits(), executor=InlineExecutor()
            )
            try:
                bench = await bench_of(store, clock)
                await story(Place(bench, make(bench), clock.sleep))
            finally:
                await store.close()

        loop.run(main())

    return tell


def told_over_http(story, limits=None):
    async def main():
        clock = ManualClock()

        async def let_pass(duration):
            clock.advance(duration)

        store = await Store.open(MemoryJournal(), clock, limits=limits or Limits())
        try:
            bench = await bench_of(store, clock)
            async with over_http.served(bench.world, clock) as transport:
                await story(Place(bench, HttpSource(transport, READ), let_pass))
        finally:
            await store.close()

    over_http.run(main())


async def bench_of(store, clock):
    entropy = SeededEntropy(1)
    return Bench(await open_world(store, clock, entropy.stream("world")), clock, entropy)


SOURCES = {
    "store": told_in_process(lambda bench: StoreSource(bench.store)),
    "line of the tests": told_in_process(
        lambda bench: BadLine(
            StoreSource(bench.store),
            bench.clock,
            bench.entropy,
            PERFECT,
        )
    ),
    "http": told_over_http,
}


@pytest.fixture(params=SOURCES)
def told(request):
    """Tell a story of a source in question."""
    return SOURCES[request.param]


def test_a_list_gives_whole_objects(told):
    async def story(place):
        (written,) = await place.create("a", size="1")
        page = await place.source.list(CONFIG_MAP, limit=500)
        item = next(item for item in page.items if name_of(item) == "a")
        assert item == place.bench.document(child_ref("a"))
        assert (item["apiVersion"], item["kind"]) == ("v1", "ConfigMap")
        assert int(page.resource_version) >= int(written.resource_version)

    told(story)


def test_objects_without_a_namespace_are_listed_too(told):
    async def story(place):
        page = await place.source.list(NAMESPACE, limit=2)
        assert [name_of(item) for item in page.items] == ["default", "kube-node-lease"]

    told(story)


def test_the_pages_of_a_list_are_of_one_moment(told):
    """What is written between two pages is in none of them; the watch from there tells it."""

    async def story(place):
        names = [f"a-{index}" for index in range(7)]
        await place.create(*names)
        first = await place.source.list(CONFIG_MAP, limit=3)
        assert len(first.items) == 3
        assert first.token
        await place.delete("a-6")
        await place.create("late")
        items, token = list(first.items), first.token
        while token:
            page = await place.source.list(CONFIG_MAP, limit=3, token=token)
            assert page.resource_version == first.resource_version
            items += page.items
            token = page.token
        listed = [name_of(item) for item in items if name_of(item) != "kube-root-ca.crt"]
        assert listed == names
        changes = await place.told(first.resource_version, 2)
        assert [(each.change, each.ref) for each in changes] == [
            (Change.DELETED, child_ref("a-6")),
            (Change.ADDED, child_ref("late")),
        ]

    told(story)


def test_a_watch_tells_each_change_once_and_in_order(told):
    async def story(place):
        _, since = await place.listed()
        (made,) = await place.create("a", size="1")
        changed = await place.bench.user.apply(child("a", size="2"), force=True)
        await place.bench.user.create(clique())
        await place.delete("a")
        gone = place.bench.store.version
        await place.create("b")
        changes = await place.told(since, 4)
        assert [each.change for each in changes] == [
            Change.ADDED,
            Change.MODIFIED,
            Change.DELETED,
            Change.ADDED,
        ]
        versions = [each.resource_version for each in changes]
        assert versions[:3] == [made.resource_version, changed.resource_version, str(gone)]
        assert versions == sorted(versions, key=int)
        for change in changes:
            assert change.document["metadata"]["resourceVersion"] == change.resource_version
            assert (change.document["apiVersion"], change.document["kind"]) == ("v1", "ConfigMap")
        assert changes[1].document["data"] == {"size": "2"}
        assert changes[2].document["data"] == {"size": "2"}
        assert changes[2].ref == child_ref("a")

    told(story)


def test_a_watch_goes_on_where_another_was_left(told):
    async def story(place):
        _, since = await place.listed()
        await place.create("a", "b", "c")
        (first,) = await place.told(since, 1)
        assert first.ref == child_ref("a")
        rest = await place.told(first.resource_version, 2)
        assert [each.ref for each in rest] == [child_ref("b"), child_ref("c")]

    told(story)


def test_a_watch_tells_what_happens_while_it_lasts(told):
    async def story(place):
        _, since = await place.listed()
        async with asyncio.timeout(PATIENCE_SECONDS):
            async with aclosing(place.source.watch(CONFIG_MAP, since)) as events:
                for name in ("a", "b", "c"):
                    await place.create(name)
                    assert (await next_change(events)).ref == child_ref(name)

    told(story)


async def next_change(events):
    while True:
        event = await anext(events)
        if event.change is not Change.BOOKMARK:
            return event


def test_a_bookmark_claims_what_was_told_and_no_object(told):
    """An informer goes on from it: nothing that comes later may be older."""

    async def story(place):
        _, since = await place.listed()
        found = []
        async with asyncio.timeout(PATIENCE_SECONDS):
            async with aclosing(place.source.watch(CONFIG_MAP, since)) as events:
                await place.create("a")
                while not any(each.change is Change.ADDED for each in found):
                    found.append(await anext(events))
                await place.bench.user.create(clique())
                other = place.bench.store.version
                await place.let_pass(timedelta(minutes=2))
                while not any(each.change is Change.BOOKMARK for each in found):
                    found.append(await anext(events))
                await place.create("b")
                while sum(each.change is Change.ADDED for each in found) < 2:
                    found.append(await anext(events))
        bookmarks = [each for each in found if each.change is Change.BOOKMARK]
        assert all(each.ref is None and each.document is None for each in bookmarks)
        assert all(int(since) <= int(each.resource_version) <= other for each in bookmarks)
        versions = [int(each.resource_version) for each in found]
        assert versions == sorted(versions)

    told(story)


def test_a_watch_from_what_is_gone_is_expired(told):
    async def story(place):
        _, since = await place.listed()
        await place.create(*[f"a-{index}" for index in range(10)])
        with pytest.raises(Expired):
            await place.told(since, 1)

    told(story, FEW)


def test_a_watch_from_what_is_not_yet_there_is_expired(told):
    """The server was restored from a backup: whoever has seen more lists again."""

    async def story(place):
        with pytest.raises(Expired):
            await place.told("999999", 1)

    told(story)


def test_a_list_that_is_left_for_too_long_is_expired_or_still_of_its_moment(told):
    async def story(place):
        await place.create("a", "b", "c")
        first = await place.source.list(CONFIG_MAP, limit=2)
        await place.delete("c")
        await place.create(*[f"d-{index}" for index in range(10)])
        try:
            page = await place.source.list(CONFIG_MAP, limit=3, token=first.token)
        except Expired:
            return
        items = [name_of(item) for item in (*first.items, *page.items)]
        assert [name for name in items if name != "kube-root-ca.crt"] == ["a", "b", "c"]
        assert page.resource_version == first.resource_version

    told(story, FEW)


def test_a_token_of_nobody_is_refused(told):
    async def story(place):
        with pytest.raises((BadRequest, Expired)):
            await place.source.list(CONFIG_MAP, limit=1, token="not a token")

    told(story)
