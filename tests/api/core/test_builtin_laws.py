"""The kinds built into Kubernetes, under whatever comes.

Laws: admitting never raises; defaults filled in twice are as filled in once, and overwrite nothing
a user wrote but a zero that Kubernetes cannot tell from nothing; an object that is not changed has
no faults on update; the quick way of admission tells what the slow way tells.
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
from spinney.meta.shapes import Shape
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
                final = kind.default(filled)
                if kind.sieve.settles(final):
                    assert [str(fault) for fault in kind.shape.faults(final)] == []

    holds()


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
