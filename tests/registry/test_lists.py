"""Lists in pages, field selectors, what a watch sees, and the expiry of events."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from registry_worlds import ANNA, config_map, event, namespace, opened, pod, running, story

from spinney.meta.errors import BadRequest, Expired
from spinney.meta.references import Precondition
from spinney.meta.selectors import EVERYTHING, parse_field_selector, parse_selector
from spinney.ports import Change
from spinney.registry import listing, watching
from spinney.registry.expiry import EventExpiry
from spinney.registry.listing import Selection
from spinney.registry.requests import Request
from spinney.store.store import Event
from spinney.testing import loop

_ANY = Precondition()
_REQUEST = Request(who=ANNA)


def chosen(namespace="", labels="", fields=""):
    return Selection(
        namespace=namespace,
        labels=parse_selector(labels) if labels else EVERYTHING,
        fields=parse_field_selector(fields) if fields else None,
    )


def listed(world, word, **selection):
    found = world.world.lister.select(world.kind(word), chosen(**selection))
    return [f"{stored.ref.namespace}/{stored.ref.name}" for stored in found]


@story
async def test_lists_are_selected_and_sorted(world):
    await world.create(namespace("far"))
    for name, place in (("b", "far"), ("a", "default"), ("c", "default")):
        await world.create(pod(name, place, labels={"name": name, "app": "web"}))
    await world.registry.bind("default", "c", "one", _ANY, _REQUEST)
    assert listed(world, "pods") == ["default/a", "default/c", "far/b"]
    assert listed(world, "pods", namespace="far") == ["far/b"]
    assert listed(world, "pods", labels="app=web,name!=a") == ["default/c", "far/b"]
    assert listed(world, "pods", labels="name in (a,b)") == ["default/a", "far/b"]
    assert listed(world, "pods", fields="spec.nodeName=one") == ["default/c"]
    assert listed(world, "pods", fields="spec.nodeName=") == ["default/a", "far/b"]
    assert listed(world, "pods", fields="metadata.name=b") == ["far/b"]
    assert listed(world, "pods", namespace="far", fields="metadata.name=b") == ["far/b"]
    assert listed(world, "pods", namespace="far", fields="metadata.name=a") == []
    assert listed(world, "pods", fields="status.phase!=Pending,metadata.namespace=far") == []


@story
async def test_a_field_nobody_can_select_by_is_refused(world):
    with pytest.raises(BadRequest) as refused:
        listed(world, "pods", fields="spec.nope=1")
    assert refused.value.message.startswith(
        "field label not supported: spec.nope; supported: metadata.name, metadata.namespace, "
    )


@story
async def test_events_are_selected_in_both_groups(world):
    await world.create(event("e", reason="Pulled", source={"component": "kubelet"}))
    await world.create(event("f", reason="Killed"))
    assert listed(world, "events", fields="involvedObject.name=web,reason=Pulled") == ["default/e"]
    assert listed(world, "events", fields="source=kubelet") == ["default/e"]
    newer = world.world.catalog.resource("events.k8s.io", "v1", "events")
    found = world.world.lister.select(newer, chosen(fields="regarding.name=web,reason=Killed"))
    assert [stored.ref.name for stored in found] == ["f"]


@story
async def test_pages_are_all_of_one_version(world):
    for number in range(10):
        await world.create(config_map(f"c{number}"))
    kind, everything = world.kind("configmaps"), chosen()
    first = world.world.lister.page(kind, everything, 4, "")
    await world.create(config_map("c00"))
    await world.delete("configmaps", "c9")
    await world.patch("configmaps", "c7", {"data": {"x": "new"}})
    second = world.world.lister.page(kind, everything, 4, first.token)
    third = world.world.lister.page(kind, everything, 4, second.token)
    pages = (first, second, third)
    names = [stored.ref.name for page in pages for stored in page.items]
    assert names == [f"c{number}" for number in range(10)]
    assert {page.version for page in pages} == {first.version}
    assert [page.remaining for page in pages] == [6, 2, 0]
    assert third.token == ""
    assert second.items[3].document()["data"] == {}


@story
async def test_tokens_that_cannot_be_are_refused(world):
    for number in range(5):
        await world.create(config_map(f"c{number}"))
    lister, kind = world.world.lister, world.kind("configmaps")
    token = lister.page(kind, chosen(), 2, "").token
    for nonsense in ("nonsense", "e30", "ÿ", "W10"):
        with pytest.raises(BadRequest, match="continue key is not valid"):
            lister.page(kind, chosen(), 2, nonsense)
    for other, selection in ((world.kind("pods"), chosen()), (kind, chosen("default"))):
        with pytest.raises(BadRequest, match="it is of another list"):
            lister.page(other, selection, 2, token)
    fresh = listing.Lister(world.store)
    with pytest.raises(Expired, match="You must start a new list"):
        fresh.page(kind, chosen(), 2, token)


def test_lists_nobody_reads_on_are_forgotten(monkeypatch):
    monkeypatch.setattr(listing, "PINNED_MAX", 3)

    async def tell():
        world = await opened()
        for number in range(5):
            await world.create(config_map(f"c{number}"))
        lister, kind = world.world.lister, world.kind("configmaps")
        tokens = [lister.page(kind, chosen(), 2, "").token for _ in range(4)]
        with pytest.raises(Expired):
            lister.page(kind, chosen(), 2, tokens[0])
        for token in tokens[1:]:
            assert lister.page(kind, chosen(), 2, token).items
        monkeypatch.setattr(listing, "PINNED_ITEMS_MAX", 9)
        token = lister.page(kind, chosen(), 2, "").token
        with pytest.raises(Expired):
            lister.page(kind, chosen(), 2, tokens[3])
        assert lister.page(kind, chosen(), 2, token).items
        await world.store.close()

    loop.run(tell())


# Watching


class Follower:
    """What somebody knows who follows a selection by its events alone."""

    def __init__(self, kind, selection):
        self.kind = kind
        self.selection = selection
        self.known = {}

    def deliver(self, events):
        for each in events:
            seen = watching.as_seen(self.kind, self.selection, each)
            ref = each.stored.ref
            if seen is Change.ADDED:
                assert ref not in self.known
                self.known[ref] = each.stored
            elif seen is Change.MODIFIED:
                assert ref in self.known
                self.known[ref] = each.stored
            elif seen is Change.DELETED:
                assert self.known.pop(ref)

    def cut(self):
        raise AssertionError("nothing is missed here")


_NODE = "nodeName"
_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["create", "relabel", "delete", "bind"]),
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from(["default", "kube-public"]),
        st.sampled_from(["red", "blue"]),
    ),
    max_size=25,
)
_SELECTIONS = st.sampled_from(
    [
        chosen(),
        chosen("default"),
        chosen(labels="colour=red"),
        chosen("default", labels="colour!=red"),
        chosen(fields="spec.nodeName=one"),
        chosen(fields="metadata.name=a"),
    ]
)


@pytest.mark.law
@given(_STEPS, _SELECTIONS)
def test_who_follows_a_selection_knows_what_a_list_would_say(steps, selection):
    async def tell():
        world = await opened()
        kind = world.kind("pods")
        follower = Follower(kind, selection)
        world.store.attach(kind.stored_kind, world.store.version, follower)
        for what, name, place, colour in steps:
            there = world.has("pods", name, place)
            if what == "create" and not there:
                await world.create(pod(name, place, labels={"colour": colour}))
            elif what == "relabel" and there:
                change = {"metadata": {"labels": {"colour": colour}}}
                await world.patch("pods", name, change, namespace=place)
            elif what == "delete" and there:
                await world.delete("pods", name, namespace=place, grace=0)
            elif what == "bind" and there and not world.get("pods", name, place)["spec"].get(_NODE):
                await world.registry.bind(place, name, "one", _ANY, _REQUEST)
            found = world.world.lister.select(kind, selection)
            assert list(follower.known.values()) or not found
            assert {stored.ref: stored.version for stored in found} == {
                ref: stored.version for ref, stored in follower.known.items()
            }
        await world.store.close()

    loop.run(tell())


@story
async def test_events_of_other_kinds_are_nothing(world):
    made = (await world.create(config_map("a"))).stored
    told = Event(change=Change.ADDED, stored=made, before=None)
    assert watching.as_seen(world.kind("pods"), chosen(), told) is None
    assert watching.as_seen(world.kind("configmaps"), chosen(), told) is Change.ADDED
    assert watching.as_seen(world.kind("configmaps"), chosen("far"), told) is None


# Expiry


@story
async def test_events_go_an_hour_after_they_were_last_seen(world):
    keepers = running(world)
    await world.create(event("once", lastTimestamp="2026-01-01T00:00:00Z"))
    await world.create(event("again", lastTimestamp="2026-01-01T00:00:00Z"))
    await world.create(event("untold"))
    await world.sleep(minutes=30)
    await world.patch("events", "again", {"lastTimestamp": "2026-01-01T00:30:00Z", "count": 2})
    await world.sleep(minutes=30, seconds=1)
    assert world.names("events") == ["again"]
    version = world.store.version
    await world.sleep(minutes=29)
    assert world.store.version == version
    await world.sleep(minutes=1)
    assert world.names("events") == []
    await world.create(event("later"))
    await world.sleep(minutes=59)
    assert world.names("events") == ["later"]
    await world.sleep(minutes=2)
    assert world.names("events") == []
    keepers.cancel()


@pytest.mark.parametrize(
    "fields",
    [
        {"series": {"count": 2, "lastObservedTime": "2026-01-01T00:20:00.000000Z"}},
        {"eventTime": "2026-01-01T00:20:00.000000Z"},
        {"firstTimestamp": "2026-01-01T00:20:00Z"},
    ],
)
@story
async def test_any_time_an_event_tells_counts(world, fields):
    if "eventTime" in fields:
        fields |= {
            "reportingComponent": "example.com/x",
            "reportingInstance": "x",
            "action": "a",
            "reason": "r",
        }
    await world.create(event("e", **fields))
    await world.sleep(minutes=79)
    await world.settle()
    assert world.names("events") == ["e"]
    await world.sleep(minutes=2)
    await world.settle()
    assert world.names("events") == []


@story
async def test_events_are_bounded_and_the_oldest_go_first(world):
    expiry = EventExpiry(world.registry, events_max=10)
    expiry.start()
    for number in range(15):
        await world.create(event(f"e{number:02}"))
        await world.sleep(seconds=1)
    later = world.clock.now() + timedelta(seconds=5)
    stamp = later.strftime("%Y-%m-%dT%H:%M:%SZ")
    await world.patch("events", "e00", {"lastTimestamp": stamp})
    await expiry.settle()
    assert len(world.names("events")) == 10
    assert world.names("events")[0] == "e00", "it was seen again"
    assert world.names("events")[1] == "e06"


@story
async def test_a_restart_remembers_when_events_are_due(world):
    await world.create(event("e"))
    await world.sleep(minutes=50)
    journal = world.store._journal
    await world.store.close()
    later = await opened(journal, clock=world.clock)
    keepers = running(later)
    await later.sleep(minutes=9)
    assert later.names("events") == ["e"]
    await later.sleep(minutes=2)
    assert later.names("events") == []
    keepers.cancel()
    await later.store.close()
