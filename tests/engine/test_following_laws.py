"""How the view of a kind is kept: whatever the source does, the view is one that was, and ends up
as the truth is."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from spinney.engine.following import Following, List, State, Wait, Watch
from spinney.meta.errors import DecodeError
from spinney.meta.indexes import Objects
from spinney.meta.references import GroupKind, Ref
from spinney.ports import Change, Page, WatchEvent
from spinney.testing.entropy import SeededEntropy

KIND = GroupKind(group="", kind="ConfigMap")
NAMES = "abc"
names = st.sampled_from(NAMES)


def ref(name):
    return Ref(kind=KIND, namespace="default", name=name)


def document(name, version, mark=""):
    return {
        "metadata": {"name": name, "namespace": "default", "resourceVersion": str(version)},
        "data": {"mark": mark or str(version)},
    }


class FollowingMachine(RuleBasedStateMachine):
    """A server that is written to, and answers as servers do: late, in parts, twice, or not."""

    def __init__(self):
        super().__init__()
        self.version = 0
        self.truth = {}  # name: document
        self.states = [{}]  # the truth at every version
        self.log = []  # (version, change, name, document)
        self.floor = 0
        self.told = {}  # what a listener believes: name: version
        self.told_seen = 0
        self.objects = Objects()
        self.following = Following(KIND, self.objects, SeededEntropy(1), self.hear)
        self.now = timedelta()
        self.instruction = self.following.start()
        self.listing = None  # (version, names still to come)
        self.position = 0

    def hear(self, changed, change):
        """A listener: it hears each change once, and finds the object as it is in the view."""
        self.told_seen = self.following.seen
        if change is Change.BOOKMARK:
            return
        held = self.objects.get(changed)
        if change is Change.DELETED:
            assert held is None
            del self.told[changed.name]
            return
        assert (changed.name in self.told) == (change is Change.MODIFIED)
        self.told[changed.name] = held.version

    # The server

    @rule(name=names)
    def is_written(self, name):
        self.version += 1
        change = Change.MODIFIED if name in self.truth else Change.ADDED
        self.truth[name] = document(name, self.version)
        self.log.append((self.version, change, name, self.truth[name]))
        self.states.append(dict(self.truth))

    @rule(name=names)
    def is_deleted(self, name):
        if name in self.truth:
            self.version += 1
            del self.truth[name]
            last = document(name, self.version)
            self.log.append((self.version, Change.DELETED, name, last))
            self.states.append(dict(self.truth))

    @rule(behind=st.integers(0, 3))
    def is_compacted(self, behind):
        self.floor = max(self.floor, self.version - behind)

    # What it answers

    @rule(size=st.integers(1, 3), behind=st.integers(0, 2))
    def a_page_comes(self, size, behind):
        if not isinstance(self.instruction, List):
            return
        if not self.instruction.token:
            version = max(self.version - behind, 0)
            self.listing = (version, sorted(self.states[version]))
        version, left = self.listing
        items = tuple(self.states[version][name] for name in left[:size])
        self.listing = (version, left[size:])
        token = "more" if left[size:] else ""
        page = Page(items=items, resource_version=str(version), token=token)
        self.follow(self.following.page(page, self.now))

    @rule(count=st.integers(1, 3))
    def events_come(self, count):
        if not isinstance(self.instruction, Watch):
            return
        after = [event for event in self.log if event[0] > self.position]
        for version, change, name, body in after[:count]:
            self.following.event(
                WatchEvent(
                    change=change, resource_version=str(version), ref=ref(name), document=body
                )
            )
            self.position = version

    @rule()
    def a_bookmark_comes(self):
        if isinstance(self.instruction, Watch):
            after = [event[0] for event in self.log if event[0] > self.position]
            version = after[0] - 1 if after else self.version
            self.following.event(WatchEvent(change=Change.BOOKMARK, resource_version=str(version)))

    @rule(by=st.integers(1, 5))
    def events_are_told_again(self, by):
        """A server replays what it told already."""
        if isinstance(self.instruction, Watch):
            self.position = min(self.position, max(self.position - by, self.floor))

    @rule(lasted=st.booleans())
    def the_watch_ends(self, lasted):
        if isinstance(self.instruction, Watch):
            self.now += timedelta(seconds=2 if lasted else 0)
            self.follow(self.following.ended(self.now))

    @rule()
    def it_fails(self):
        if not isinstance(self.instruction, Wait):
            self.follow(self.following.failed())

    @rule()
    def it_expired(self):
        if not isinstance(self.instruction, Wait):
            self.follow(self.following.expired())

    @rule()
    def the_wait_is_over(self):
        if isinstance(self.instruction, Wait):
            assert timedelta() < self.instruction.duration <= timedelta(seconds=30)
            self.follow(self.following.rang(self.now))

    def follow(self, instruction):
        self.instruction = instruction
        if isinstance(instruction, Watch):
            self.position = int(instruction.since)
            if self.position < self.floor:
                self.follow(self.following.expired())

    # What must hold

    @invariant()
    def the_view_is_one_that_was(self):
        self.following.validate()
        if not self.following.is_synced:
            assert not self.objects.list(KIND, None, None)
            return
        view = {each.ref.name: each.version for each in self.objects.list(KIND, None, None)}
        then = self.states[self.following.seen]
        assert view == {
            name: int(body["metadata"]["resourceVersion"]) for name, body in then.items()
        }
        assert self.told == view, "a listener that heard everything knows the same"
        assert self.told_seen == self.following.seen

    def teardown(self):
        """Heal everything: the view becomes the truth."""
        self.floor = 0
        for _ in range(50):
            if isinstance(self.instruction, List):
                self.a_page_comes(size=3, behind=0)
            elif isinstance(self.instruction, Wait):
                self.the_wait_is_over()
            else:
                self.events_come(count=len(self.log) + 1)
                break
        assert self.following.state is State.WATCHING
        assert self.following.seen >= (self.log[-1][0] if self.log else 0)
        self.the_view_is_one_that_was()


FollowingMachine.TestCase.settings = settings(settings.default, stateful_step_count=50)
TestFollowing = pytest.mark.law(FollowingMachine.TestCase)


def following(told=None):
    heard = [] if told is None else told
    made = Following(
        KIND, Objects(), SeededEntropy(1), lambda changed, change: heard.append((changed, change))
    )
    made.start()
    return made


def page(*items, version, token=""):
    return Page(items=items, resource_version=str(version), token=token)


def test_a_server_restored_from_a_backup_is_believed_after_a_while():
    told = []
    made = following(told)
    made.page(page(document("a", 90), document("b", 95), version=100), timedelta())
    made.expired()
    old = page(document("a", 7, "older"), version=9)
    for _ in range(5):
        assert isinstance(made.page(old, timedelta()), Wait)
        assert made.seen == 100
        assert made.rang(timedelta()) == List()
    told.clear()
    assert made.page(old, timedelta()) == Watch(since="9", why="start")
    assert told == [
        (ref("b"), Change.DELETED),
        (ref("a"), Change.MODIFIED),
        (Ref(kind=KIND, namespace="", name=""), Change.BOOKMARK),
    ]


def test_a_watch_that_keeps_ending_at_once_is_not_begun_hot():
    made = following()
    made.page(page(version=1), timedelta())
    waits = []
    for _ in range(12):
        instruction = made.ended(timedelta())
        assert isinstance(instruction, Wait)
        waits.append(instruction.duration)
        made.rang(timedelta())
    assert waits[-1] > timedelta(seconds=10)
    made.event(WatchEvent(change=Change.BOOKMARK, resource_version="5"))
    assert made.ended(timedelta()) == Watch(since="5", why="cut")
    made.ended(timedelta())
    made.rang(timedelta())
    assert made.ended(timedelta(seconds=60)) == Watch(since="5", why="cut")


def test_expiry_lists_at_once_and_again_only_after_a_wait():
    made = following()
    made.page(page(version=1), timedelta())
    assert made.expired() == List()
    made.page(page(version=2), timedelta())
    assert isinstance(made.expired(), Wait)


@pytest.mark.parametrize(
    "bad",
    [
        {"metadata": {"name": "a"}},
        {"metadata": {"name": "a", "resourceVersion": "x1"}},
        {"metadata": {"name": "a", "resourceVersion": 7}},
        {},
    ],
)
def test_a_list_of_what_is_no_object_is_refused(bad):
    with pytest.raises(DecodeError, match="resource version"):
        following().page(page(bad, version=1), timedelta())
