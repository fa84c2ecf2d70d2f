"""The ledger, kept up to date change by change, is the ledger made anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.api import groupkinds
from spinney.api.core.node import Node
from spinney.api.core.pod import Pod
from spinney.api.podgang import PodGang
from spinney.decisions.placement.outcomes import Binding
from spinney.meta import records
from spinney.meta.documents import Document, Json
from spinney.meta.records import Record
from spinney.meta.references import GroupKind, Ref
from spinney.meta.times import format_time
from spinney.ports import Change
from spinney.scheduler.ledger import Ledger
from spinney.scheduler.settings import Settings
from spinney.testing.clock import START

R = TypeVar("R", bound=Record)
KINDS: dict[type[Record], GroupKind] = {
    Node: groupkinds.NODE,
    Pod: groupkinds.POD,
    PodGang: groupkinds.GANG,
}
NAMES = ("p0", "p1", "p2", "p3")
GANGS = ("g0", "g1")


class Book:
    """A Reader over a dictionary."""

    def __init__(self) -> None:
        self.objects: dict[Ref, Record] = {}

    def get(self, record: type[R], namespace: str, name: str) -> R | None:
        if record not in KINDS:
            return None
        found = self.objects.get(Ref(kind=KINDS[record], namespace=namespace, name=name))
        assert found is None or isinstance(found, record)
        return found

    def list(
        self,
        record: type[R],
        *,
        namespace: str | None = None,  # noqa: ARG002
        by: tuple[str, str] | None = None,  # noqa: ARG002
    ) -> Sequence[R]:
        kind = KINDS.get(record)
        found = [each for ref, each in sorted(self.objects.items()) if ref.kind == kind]
        return [each for each in found if isinstance(each, record)]

    def seen(self, kind: GroupKind) -> int:  # noqa: ARG002
        return 1

    def on_change(self, kind: GroupKind, call: Callable[[Ref, Change], None]) -> None:
        pass


STATES = st.sampled_from(("gated", "waiting", "bound", "leaving", "succeeded", "gone"))


def pod_record(name: str, state: str, uid: int, label: str, node: str, priority: int) -> Pod:
    spec: Document = {
        "containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}],
        "priority": priority,
    }
    metadata: Document = {"name": name, "namespace": "default", "uid": f"{name}-{uid}"}
    if label:
        metadata["labels"] = {"grove.io/podgang": label}
    if state == "gated":
        spec["schedulingGates"] = [{"name": "held"}]
    if state in ("bound", "leaving", "succeeded"):
        spec["nodeName"] = node
    if state == "leaving":
        metadata["deletionTimestamp"] = format_time(START)
    phase = "Succeeded" if state == "succeeded" else "Pending"
    return records.decode(Pod, {"metadata": metadata, "spec": spec, "status": {"phase": phase}})


def gang_record(name: str, uid: int, named: Sequence[str], generation: int, mark: str) -> PodGang:
    references: list[Json] = [{"namespace": "default", "name": each} for each in named]
    conditions: list[Json] = [{"type": "DisruptionTarget", "status": mark}] if mark else []
    return records.decode(
        PodGang,
        {
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": f"{name}-{uid}",
                "generation": generation,
                "creationTimestamp": format_time(START + timedelta(seconds=uid)),
            },
            "spec": {"podgroups": [{"name": "a", "podReferences": references, "minReplicas": 1}]},
            "status": {"conditions": conditions},
        },
    )


def node_record(name: str, cpu: int) -> Node:
    return records.decode(
        Node, {"metadata": {"name": name}, "status": {"allocatable": {"cpu": str(cpu)}}}
    )


PODS = st.tuples(
    st.just("pod"),
    st.sampled_from(NAMES),
    STATES,
    st.integers(0, 1),
    st.sampled_from(("", *GANGS)),
    st.sampled_from(("n0", "n1")),
    st.sampled_from((0, 5)),
)
GANG_CHANGES = st.tuples(
    st.just("gang"),
    st.sampled_from(GANGS),
    st.integers(0, 1),
    st.lists(st.sampled_from(NAMES), unique=True, max_size=3),
    st.sampled_from(("", "True", "False")),
    st.booleans(),
)
NODES = st.tuples(st.just("node"), st.sampled_from(("n0", "n1")), st.integers(0, 3))
ASSUMED = st.tuples(st.just("assume"), st.sampled_from(NAMES), st.booleans())


def told(ledger: Ledger) -> object:
    """Return all that a ledger holds which bears on what is decided."""
    wholes = [
        *(Ref(kind=groupkinds.GANG, namespace="default", name=name) for name in GANGS),
        *(Ref(kind=groupkinds.POD, namespace="default", name=name) for name in NAMES),
    ]
    return (
        [*ledger.cluster.residents()],
        [*ledger.cluster.machines],
        [ledger.has_waiting(whole) for whole in wholes],
        [ledger.holders(whole) for whole in wholes],
        [ledger.gangs.rank(whole) for whole in wholes if ledger.has_waiting(whole)],
        [sorted(ledger.members(whole)) for whole in wholes],
        [ledger.is_going(whole) for whole in wholes],
        [ledger.gangs.is_partial(whole) for whole in wholes],
    )


class Story:
    """A world that changes, a ledger that follows it, and what was assumed in it."""

    def __init__(self) -> None:
        self.book = Book()
        self.ledger = Ledger(self.book, Settings())
        self.generation = 0

    def take(self, change: tuple[Any, ...]) -> None:
        match change:
            case ("pod", name, state, uid, label, node, priority):
                record = None
                if state != "gone":
                    record = pod_record(name, state, uid, label, node, priority)
                self._put(groupkinds.POD, "default", name, record)
            case ("gang", name, uid, named, mark, is_gone):
                self.generation += 1
                gang = gang_record(name, uid, named, self.generation, mark)
                self._put(groupkinds.GANG, "default", name, None if is_gone else gang)
            case ("node", name, cpu):
                self._put(groupkinds.NODE, "", name, node_record(name, cpu) if cpu else None)
            case ("assume", name, withdraws):
                self._assume(name, withdraws=withdraws)

    def _put(self, kind: GroupKind, namespace: str, name: str, record: Record | None) -> None:
        ref = Ref(kind=kind, namespace=namespace, name=name)
        if record is None:
            self.book.objects.pop(ref, None)
        else:
            self.book.objects[ref] = record
        self.ledger.take_in(ref)

    def _assume(self, name: str, *, withdraws: bool) -> None:
        """Give a pod that waits a node; if asked for, have its write refused at once."""
        ref = Ref(kind=groupkinds.POD, namespace="default", name=name)
        pod = self.book.get(Pod, "default", name)
        if pod is None or not self.ledger.waits(pod):
            return
        binding = Binding(pod=ref, uid=pod.metadata.uid, node="n0")
        self.ledger.assume(self.ledger.whole_of(ref), (binding,))
        assert self.ledger.node_of(pod) == "n0"
        assert not self.ledger.waits(pod)
        if withdraws:
            self.ledger.withdraw(binding)
            assert self.ledger.waits(pod)


@pytest.mark.law
@given(st.lists(st.one_of(PODS, PODS, GANG_CHANGES, NODES), max_size=25))
def test_taking_changes_in_one_by_one_is_taking_in_what_they_came_to(
    changes: list[tuple[Any, ...]],
) -> None:
    """Whatever the order in which pods, gangs and nodes came, changed and went."""
    story = Story()
    for change in changes:
        story.take(change)
        story.ledger.validate()
    anew = Ledger(story.book, Settings())
    for ref in anew.there():
        anew.take_in(ref)
    assert told(story.ledger) == told(anew)


@pytest.mark.law
@given(st.lists(st.one_of(PODS, PODS, GANG_CHANGES, NODES, ASSUMED), max_size=25))
def test_what_is_assumed_ends_once_the_pod_is_seen_to_need_it_no_more(
    changes: list[tuple[Any, ...]],
) -> None:
    """No assumption outlives its pod's wait, and none is lost before that."""
    story = Story()
    for change in changes:
        story.take(change)
        story.ledger.validate()
    for name in NAMES:
        story.take(("pod", name, "bound", 0, "", "n1", 0))
    assert story.ledger.assumed_count == 0
    assert {node for node, _ in story.ledger.cluster.residents()} == {"n1"}


def test_a_gang_names_no_pods_of_another_namespace() -> None:
    """Else whoever may write gangs in one namespace could place the pods of another."""
    story = Story()
    gang = gang_record("g0", 0, ["p0"], 1, "")
    document = records.encode(gang)
    spec = document["spec"]
    assert isinstance(spec, dict)
    references: list[Json] = [{"namespace": "kube-system", "name": "p0"}]
    spec["podgroups"] = [{"name": "a", "podReferences": references, "minReplicas": 1}]
    ref = Ref(kind=groupkinds.GANG, namespace="default", name="g0")
    story.book.objects[ref] = records.decode(PodGang, document)
    story.ledger.take_in(ref)
    story.take(("pod", "p0", "waiting", 0, "", "n0", 0))
    assert not story.ledger.has_waiting(ref)
    assert story.ledger.member_refs(ref) == ()
