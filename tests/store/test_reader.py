"""The store as a Reader and a Source."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from spinney.api.core.pod import Pod
from spinney.api.kinds import KINDS
from spinney.api.podcliqueset import PodCliqueSet
from spinney.meta.errors import BadRequest, DecodeError, Expired
from spinney.meta.references import GroupKind
from spinney.ports import Change
from spinney.store.reader import StoreReader, StoreSource
from spinney.store.store import Limits
from spinney.testing import build, loop
from tests.store.stores import POD, SET, document, opened, put, ref, remove

SECRET = GroupKind(group="", kind="Secret")


def pod(name, **contents):
    return {**document(ref(name), **contents), "apiVersion": "v1", "kind": "Pod"}


def test_records_are_typed_shared_and_of_the_newest_version():
    async def main():
        async with opened() as store:
            reader = StoreReader(store, KINDS.values())
            body = build.podcliqueset("chat").with_clique("decode", replicas=3).document()
            target = ref("chat", kind=SET)
            await store.put(target, body, expects=0)
            found = reader.get(PodCliqueSet, "default", "chat")
            assert found.metadata.name == "chat"
            assert reader.get(PodCliqueSet, "default", "chat") is found
            assert reader.list(PodCliqueSet)[0] is found
            await store.put(target, body, expects=1)
            assert reader.get(PodCliqueSet, "default", "chat") is not found
            assert reader.get(PodCliqueSet, "default", "other") is None
            assert reader.seen(SET) == store.version == 2

    loop.run(main())


def test_a_kind_that_is_stored_as_another_is_read_as_that_one():
    async def main():
        async with opened() as store:
            other = msgspec.structs.replace(
                KINDS[GroupKind(group="", kind="ConfigMap")], record=KINDS[SECRET].record
            )
            reader = StoreReader(store, [*KINDS.values(), other])
            target = ref("e", kind=GroupKind(group="", kind="Event"))
            body = {"metadata": {"name": "e", "namespace": "default"}, "involvedObject": {}}
            await store.put(target, body, expects=0)
            record = KINDS[target.kind].record
            assert [found.metadata.name for found in reader.list(record)] == ["e"]
            with pytest.raises(AssertionError, match="not the record of one kind"):
                reader.list(KINDS[SECRET].record)

    loop.run(main())


def test_lists_go_by_namespace_and_index():
    async def main():
        async with opened() as store:
            reader = StoreReader(store, KINDS.values())
            store.register(POD, "payload", lambda stored: [stored.document()["spec"]["payload"]])
            for name in "cab":
                body = pod(name, labels={"app": name}, owner="o", node="n1", payload="p")
                await store.put(ref(name), body, expects=0)
            names = [found.metadata.name for found in reader.list(Pod)]
            assert names == ["a", "b", "c"]
            for by in (("owner", "o"), ("node", "n1"), ("payload", "p"), ("label:app", "b")):
                found = reader.list(Pod, namespace="default", by=by)
                assert len(found) == (1 if by[0] == "label:app" else 3)
            assert reader.list(Pod, namespace="other") == []

    loop.run(main())


def test_an_object_that_does_not_fit_its_record_is_named():
    async def main():
        async with opened() as store:
            reader = StoreReader(store, KINDS.values())
            await store.put(ref("odd"), {"metadata": {"name": 7}}, expects=0)
            with pytest.raises(DecodeError, match="Pod default/odd at version 1"):
                reader.get(Pod, "default", "odd")

    loop.run(main())


def test_changes_are_told_to_all_whatever_one_of_them_raises():
    async def main():
        reported = []
        asyncio.get_running_loop().set_exception_handler(lambda _, said: reported.append(said))
        async with opened() as store:
            reader = StoreReader(store, KINDS.values())
            told = []

            def broken(target, _change):
                raise RuntimeError(target.name)

            await put(store, ref("before"))
            reader.on_change(POD, broken)
            reader.on_change(POD, lambda target, change: told.append((target.name, change)))
            await asyncio.gather(put(store, ref("a")), put(store, ref("b")))
            await remove(store, ref("a"))
            assert told == [("a", Change.ADDED), ("b", Change.ADDED), ("a", Change.DELETED)]
            assert [str(said["exception"]) for said in reported] == ["a", "b", "a"]

    loop.run(main())


def test_pages_of_a_list_are_of_one_version_whatever_happens_between_them():
    async def main():
        async with opened() as store:
            source = StoreSource(store)
            for number in range(10):
                await put(store, ref(f"pod-{number}"), payload="before")
            page = await source.list(POD, limit=3)
            first_token = page.token
            await put(store, ref("pod-5"), payload="after")
            await put(store, ref("pod-55"))
            await remove(store, ref("pod-8"))
            await remove(store, ref("pod-0"))
            items = [*page.items]
            while page.token:
                page = await source.list(POD, limit=3, token=page.token)
                items += page.items
                assert page.resource_version == "10"
            assert [item["metadata"]["name"] for item in items] == [
                f"pod-{number}" for number in range(10)
            ]
            assert {item["spec"]["payload"] for item in items} == {"before"}
            whole = await source.list(POD, limit=0)
            assert (len(whole.items), whole.token, whole.resource_version) == (9, "", "14")
            again = await source.list(POD, limit=3, token=first_token)
            assert [item["metadata"]["name"] for item in again.items] == ["pod-3", "pod-4", "pod-5"]

    loop.run(main())


def test_a_token_too_old_or_made_up_is_refused():
    async def main():
        async with opened(limits=Limits(history_events_max=4)) as store:
            source = StoreSource(store)
            for name in "abc":
                await put(store, ref(name))
            token = (await source.list(POD, limit=1)).token
            for _ in range(9):
                await put(store, ref("a"))
            with pytest.raises(Expired):
                await source.list(POD, limit=1, token=token)
            for bad in ("x", "[1]", '{"version":1}', '["1","a","b"]'):
                with pytest.raises(BadRequest):
                    await source.list(POD, limit=1, token=bad)

    loop.run(main())


async def taken(watch, count):
    return [await anext(watch) for _ in range(count)]


def test_a_watch_gives_what_was_missed_a_bookmark_and_what_comes():
    async def main():
        async with opened() as store:
            source = StoreSource(store)
            for name in "ab":
                await put(store, ref(name))
            await put(store, ref("other", kind=SET))
            watch = source.watch(POD, "1")
            seen = await taken(watch, 2)
            assert [(event.change, event.resource_version) for event in seen] == [
                (Change.ADDED, "2"),
                (Change.BOOKMARK, "3"),
            ]
            await remove(store, ref("a"))
            (gone,) = await taken(watch, 1)
            assert (gone.change, gone.ref, gone.resource_version) == (
                Change.DELETED,
                ref("a"),
                "4",
            )
            assert gone.document["metadata"]["resourceVersion"] == "4"
            assert store.statistics().watchers == 1
            await watch.aclose()
            assert store.statistics().watchers == 0

    loop.run(main())


def test_a_slow_watch_holds_nothing_up_and_expires_once_its_events_are_gone():
    async def main():
        async with opened(limits=Limits(history_events_max=5)) as store:
            slow, quick = (StoreSource(store).watch(POD, "0") for _ in range(2))
            assert (await anext(slow)).change is (await anext(quick)).change is Change.BOOKMARK
            for number in range(1, 20):
                await put(store, ref("a"))
                assert (await anext(quick)).resource_version == str(number)
            with pytest.raises(Expired):
                await anext(slow)
            assert store.statistics().watchers == 1
            await quick.aclose()

    loop.run(main())


def test_a_watch_of_a_quiet_kind_does_not_expire_by_what_others_do():
    async def main():
        async with opened(limits=Limits(history_events_max=5)) as store:
            await put(store, ref("quiet", kind=SET))
            watch = StoreSource(store).watch(SET, "1")
            await anext(watch)
            for _ in range(20):
                await put(store, ref("busy"))
            await put(store, ref("quiet", kind=SET))
            assert (await anext(watch)).resource_version == "22"
            await watch.aclose()

    loop.run(main())


@pytest.mark.parametrize("since", ["", "-1", "x", "1.5"])
def test_a_watch_since_what_is_no_version_is_refused(since):
    async def main():
        async with opened() as store:
            with pytest.raises(BadRequest):
                await anext(StoreSource(store).watch(POD, since))

    loop.run(main())
