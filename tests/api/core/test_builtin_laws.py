"""The kinds built into Kubernetes, under whatever comes.

Laws: admitting never raises; defaults filled in twice are as filled in once, and overwrite nothing
a user wrote but a zero that Kubernetes cannot tell from nothing; an object that is not changed has
no faults on update; the quick way of admission tells what the slow way tells, of whole objects and
of a status alone.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.api import kinds
from spinney.api.kinds import KINDS, OUR_KINDS, Kind
from spinney.api.surroundings import NOTHING_KNOWN, Surroundings
from spinney.meta.documents import Document, Json, leaves, same, without
from spinney.meta.records import decode
from spinney.meta.schemas import Schema
from spinney.meta.shapes import Shape
from spinney.meta.sieves import WORTH_AFTER
from tests.api import samples
from tests.api.core.objects import OBJECTS

BUILT_IN = [kind for group_kind, kind in KINDS.items() if group_kind not in OUR_KINDS]
EVERY_KIND = pytest.mark.parametrize("kind", BUILT_IN, ids=lambda kind: kind.names.plural)
SUBRESOURCES = st.sampled_from(("", "status", "binding", "ephemeralcontainers", "resize")).map(
    lambda name: Surroundings(subresource=name)
)


def good(kind: Kind) -> Document:
    names = kind.names
    return OBJECTS.get(f"{names.group}/{names.kind}") or OBJECTS[names.kind]


def text_of(value: Json) -> str:
    return "\n".join(f"{path!r}: {below!r}" for path, below in leaves(value))


@EVERY_KIND
def test_a_good_object_has_no_fault_and_does_not_change_into_one(kind: Kind) -> None:
    stored, faults = kinds.admit(kind, good(kind))
    assert [str(fault) for fault in faults] == []
    again, faults = kinds.admit(kind, stored, stored)
    assert [str(fault) for fault in faults] == []
    assert same(again, stored)
    decode(kind.record, kind.to_stored(stored))


@EVERY_KIND
def test_what_is_stored_and_seen_again_is_the_same(kind: Kind) -> None:
    stored = kinds.admit(kind, good(kind))[0]
    seen = kind.from_stored(kind.to_stored(stored))
    assert same(without(seen, ["eventTime"]), without(stored, ["eventTime"]))
    assert kinds.admit(kind, seen, stored)[1] == ()


@EVERY_KIND
def test_every_kind_that_is_declared_here_says_that_kubernetes_has_it(kind: Kind) -> None:
    assert kind.is_builtin
    assert kind.names.list_kind == f"{kind.names.kind}List"
    assert not kind.prunes


def test_our_kinds_are_not_kubernetes_own() -> None:
    assert not any(kind.is_builtin for kind in OUR_KINDS.values())


@pytest.mark.law
@EVERY_KIND
def test_any_document_is_admitted_or_its_faults_are_told(kind: Kind) -> None:
    @given(
        document=samples.mutated(good(kind))
        | st.dictionaries(st.sampled_from([*kind.schema.properties, "x"]), samples.ANYTHING),
        old=samples.mutated(good(kind)),
        known=SUBRESOURCES,
    )
    def holds(document: Document, old: Document, known: Surroundings) -> None:
        for before in (None, old, document):
            stored, faults = kinds.admit(kind, document, before, known)
            for fault in faults:
                str(fault).encode("utf-8", "surrogatepass")
            kinds.advice(kind, stored, before, known)

    holds()


@pytest.mark.law
@EVERY_KIND
def test_defaulting_twice_is_defaulting_once(kind: Kind) -> None:
    @given(document=samples.mutated(good(kind)))
    def holds(document: Document) -> None:
        once, faults = kinds.admit(kind, document)
        twice, again = kinds.admit(kind, once)
        assert text_of(twice) == text_of(once)
        assert list(map(str, again)) == list(map(str, faults))

    holds()


@pytest.mark.law
@EVERY_KIND
def test_what_did_not_change_has_no_more_faults_than_it_had(kind: Kind) -> None:
    @given(document=samples.mutated(good(kind)))
    def holds(document: Document) -> None:
        stored, faults = kinds.admit(kind, document)
        changes = set(map(str, kinds.admit(kind, stored, stored)[1]))
        assert changes <= set(map(str, faults))

    holds()


@pytest.mark.law
@EVERY_KIND
def test_defaulting_overwrites_nothing_a_user_wrote(kind: Kind) -> None:
    @given(document=samples.mutated(good(kind), samples.PLAUSIBLE | samples.TEXTS))
    def holds(document: Document) -> None:
        stored = kinds.admit(kind, document)[0]
        check_kept(document, stored, ())

    holds()


_FILLED_WHEN_EMPTY = ("namespace", "apiGroup", "targetPort", "hostPort", "count", "singular")
_FILLED_WHEN_EMPTY += ("listKind", "metrics", "stringData", "data", "kubernetes.io/metadata.name")


def check_kept(written: Json, stored: Json, path: tuple[str | int, ...]) -> None:
    if path and path[-1] in _FILLED_WHEN_EMPTY:
        return
    if isinstance(written, dict):
        assert isinstance(stored, dict), path
        for key, below in written.items():
            if below is not None and key not in _FILLED_WHEN_EMPTY:
                assert key in stored, (*path, key)
                check_kept(below, stored[key], (*path, key))
    elif isinstance(written, list):
        assert isinstance(stored, list), path
        for index, below in enumerate(written):
            check_kept(below, stored[index], (*path, index))
    elif written == 0 and not isinstance(written, bool) and "Probe" in str(path):
        assert isinstance(stored, int)
    else:
        assert type(stored) is type(written), path
        assert stored == written, path


@pytest.mark.law
@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.names.plural)
def test_the_quick_way_of_admission_tells_what_the_slow_way_tells(kind: Kind) -> None:
    own = samples.of_kind(kind.names.kind) or (good(kind),)

    @given(document=st.sampled_from(own).flatmap(samples.mutated))
    def holds(document: Document) -> None:
        placed = kinds.admit(kind, document)[0]
        for each in (document, placed):
            if kind.sieve.passes(each):
                filled = kind.sieve.fill_defaults(each)
                assert text_of(filled) == text_of(Shape(kind.schema).fill_defaults(each))
                final = kind.default_status(kind.default(filled))
                if kind.sieve.settles(final):
                    assert [str(fault) for fault in kind.shape.faults(final)] == []

    holds()


_LEAVES: dict[str, st.SearchStrategy[Json]] = {
    "string": st.sampled_from(("True", "Ready", "2026-01-01T00:00:00Z", "127.0.0.1", "Active")),
    "integer": st.integers(-1, 3),
    "boolean": st.booleans(),
    "number": st.sampled_from((1.5, 2)),
}


def drawn(schema: Schema) -> st.SearchStrategy[Json]:
    """Draw a value of a schema, mostly: words it does not take are among them."""
    if schema.enum:
        return st.sampled_from(schema.enum)
    if schema.type == "array" and schema.items is not None:
        return st.lists(drawn(schema.items), max_size=2)
    if schema.properties:
        some = {key: drawn(below) for key, below in schema.properties.items()}
        return st.fixed_dictionaries({}, optional=some)
    if schema.values is not None:
        return st.dictionaries(st.sampled_from(("a", "b")), drawn(schema.values), max_size=2)
    return _LEAVES.get(schema.type, st.just("x"))


def statuses(kind: Kind) -> st.SearchStrategy[Document]:
    """Draw good and broken statuses of a kind."""
    return (
        drawn(kind.schema.properties["status"])
        .map(lambda status: {"status": status})
        .flatmap(lambda holder: st.just(holder) | samples.mutated(holder))
    )


QUICKLY_JUDGED = pytest.mark.parametrize(
    "kind",
    [kind for kind in KINDS.values() if kind.has_status and not kind.has_status_rules],
    ids=lambda kind: kind.names.plural,
)


@pytest.mark.law
@QUICKLY_JUDGED
def test_a_status_judged_alone_is_judged_as_with_its_object(kind: Kind) -> None:
    owned = kind.names.group_kind in OUR_KINDS
    written = samples.of_kind(kind.names.kind)[0] if owned else good(kind)
    stored = kinds.admit(kind, written)[0]
    passed = 0

    @given(holder=statuses(kind))
    def holds(holder: Document) -> None:
        nonlocal passed
        document = {**stored, **holder}
        alone = kinds.admitted_status(kind, document)
        if alone is None:
            return
        passed += 1
        whole, faults = kinds.admit(kind, document, stored, Surroundings(subresource="status"))
        assert text_of(alone) == text_of(whole["status"])
        assert [fault.path for fault in faults if fault.path.startswith("status")] == []

    for _ in range(WORTH_AFTER):
        kind.status_sieve.is_worth_making()
    holds()
    assert passed


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.names.plural)
def test_what_is_filled_in_of_an_object_leaves_its_status_alone(kind: Kind) -> None:
    if kind.names.group_kind in OUR_KINDS:
        written = samples.of_kind(kind.names.kind)[0]
    else:
        written = good(kind)
    for status in ({}, {"phase": "x"}, {"capacity": {"cpu": "1"}}):
        assert kind.default({**written, "status": status})["status"] is status


@EVERY_KIND
def test_a_good_object_goes_the_quick_way(kind: Kind) -> None:
    stored = kinds.admit(kind, good(kind))[0]
    quick = kind.sieve.passes(stored) and kind.sieve.settles(stored)
    assert quick is (kind.names.kind != "CustomResourceDefinition")


@EVERY_KIND
def test_selectable_fields_are_fields_of_the_kind(kind: Kind) -> None:
    for path in kind.selectable:
        here = kind.schema
        for step in path.split("."):
            here = here.properties[step]


def test_nothing_known_is_enough_to_judge_by() -> None:
    assert kinds.admit(BUILT_IN[0], good(BUILT_IN[0]), None, NOTHING_KNOWN)[1] == ()
