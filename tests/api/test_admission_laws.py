"""The one door by which objects come in.

Laws: admitting never raises, whatever comes, and neither does advising; defaults filled in twice
are as filled in once; nothing a user wrote is overwritten; what is taken can be read as a record,
which is the same when it is written and read again; a pod spec goes through untouched.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.api import kinds
from spinney.api.kinds import OUR_KINDS, Kind
from spinney.api.surroundings import NOTHING_KNOWN, Surroundings
from spinney.meta.documents import Document, Json, is_integer, leaves, object_at
from spinney.meta.records import decode, encode
from spinney.testing import build
from tests.api import samples
from tests.meta.values import TEXTS, nested

pytestmark = pytest.mark.law

EVERY_KIND = pytest.mark.parametrize("kind", OUR_KINDS.values(), ids=lambda kind: kind.names.kind)

KNOWN = st.sampled_from(
    (
        NOTHING_KNOWN,
        Surroundings(topologies={}),
        Surroundings(topologies={"racks": ("zone", "rack", "host"), "datacenter": ("zone",)}),
        Surroundings(topology_aware=False, mnnvl=False, schedulers=("kai-scheduler",)),
        Surroundings(default_scheduler="volcano", root_workload_type="Training"),
        Surroundings(default_scheduler="kai-scheduler", topology_aware_schedulers=()),
    )
)


def documents_of(kind: Kind) -> st.SearchStrategy[Document]:
    """Draw broken documents of a kind: mutated good ones."""
    good = samples.of_kind(kind.names.kind) + samples.of_kind(kind.names.kind, admitted=True)
    return st.sampled_from(good).flatmap(samples.mutated)


def check_told(kind: Kind, new: Document, old: Document | None, known: Surroundings) -> None:
    """Admit and advise, and read out every fault as people do."""
    document, faults = kinds.admit(kind, new, old, known)
    for fault in faults:
        assert str(fault).startswith(fault.path)
        str(fault).encode("utf-8", "surrogatepass")
    for warning in kinds.advice(kind, document, old, known):
        assert warning


@EVERY_KIND
@pytest.mark.rule("1.7")
def test_any_document_is_admitted_or_its_faults_are_told(kind: Kind) -> None:
    @given(document=st.dictionaries(TEXTS, samples.ANYTHING, max_size=4), known=KNOWN)
    def holds(document: Document, known: Surroundings) -> None:
        framed = {"apiVersion": kind.names.api_version, "kind": kind.names.kind, **document}
        check_told(kind, framed, None, known)
        check_told(kind, document, framed, known)

    holds()


@EVERY_KIND
@pytest.mark.rule("1.7")
def test_a_broken_manifest_never_breaks_admission(kind: Kind) -> None:
    @given(document=documents_of(kind), known=KNOWN)
    def holds(document: Document, known: Surroundings) -> None:
        check_told(kind, document, None, known)

    holds()


@EVERY_KIND
@pytest.mark.rule("1.7")
def test_a_broken_change_of_a_broken_object_never_breaks_admission(kind: Kind) -> None:
    stored = st.sampled_from(samples.of_kind(kind.names.kind, admitted=True))
    changes = stored.flatmap(
        lambda good: st.tuples(st.just(good) | samples.mutated(good), samples.mutated(good))
    )

    @given(change=changes, known=KNOWN)
    def holds(change: tuple[Document, Document], known: Surroundings) -> None:
        old, new = change
        check_told(kind, new, old, known)

    holds()


@EVERY_KIND
@pytest.mark.parametrize("field", ["metadata", "spec", "status", "kind", "extra"])
def test_the_deepest_document_is_admitted_or_refused(kind: Kind, field: str) -> None:
    """`meta/manifests` reads a hundred levels; none of what looks at them runs out of stack."""
    deep = {**samples.of_kind(kind.names.kind)[0], field: nested(99)}
    check_told(kind, deep, None, NOTHING_KNOWN)
    check_told(kind, deep, deep, NOTHING_KNOWN)


@EVERY_KIND
@pytest.mark.rule("1.7")
def test_an_integer_of_five_thousand_digits_may_stand_anywhere(kind: Kind) -> None:
    """Python will not even print one."""
    for good in samples.of_kind(kind.names.kind, admitted=True):
        for path, value in leaves(good):
            if not is_integer(value):
                continue
            for huge in (10**5000, -(10**5000)):
                broken = samples.put(good, path, "replace", huge)
                assert isinstance(broken, dict)
                check_told(kind, broken, None, NOTHING_KNOWN)
                check_told(kind, broken, good, NOTHING_KNOWN)
                check_told(kind, good, broken, NOTHING_KNOWN)


@EVERY_KIND
def test_defaulting_twice_is_defaulting_once(kind: Kind) -> None:
    @given(document=documents_of(kind))
    def holds(document: Document) -> None:
        once, faults = kinds.admit(kind, document)
        twice, again = kinds.admit(kind, once)
        assert told_apart(twice) == told_apart(once)
        assert list(map(str, again)) == list(map(str, faults))

    holds()


def told_apart(value: Json) -> str:
    """Return a value as text, in which `1`, `1.0` and `true` differ, and NaN is NaN."""
    return "\n".join(f"{path!r}: {below!r}" for path, below in leaves(value))


@EVERY_KIND
def test_defaulting_overwrites_nothing_a_user_wrote(kind: Kind) -> None:
    """But for null, which is nothing; a clique's `replicas: 0`; and a whole number as a float."""

    @given(document=documents_of(kind))
    def holds(document: Document) -> None:
        check_kept(document, kinds.admit(kind, document)[0], ())

    holds()


def is_replicas_of_a_template(path: tuple[str | int, ...]) -> bool:
    """Whether a path is that of a clique's replicas, in a document shaped as it should be."""
    if path[-2:] != ("spec", "replicas") or path[-4:-3] != ("cliques",):
        return False
    return isinstance(path[-3], int) and all(isinstance(step, str) for step in path[:-4])


def check_kept(written: Json, stored: Json, path: tuple[str | int, ...]) -> None:
    if isinstance(written, dict):
        assert isinstance(stored, dict), path
        for key, below in written.items():
            if below is not None:
                assert key in stored, (*path, key)
                check_kept(below, stored[key], (*path, key))
    elif isinstance(written, list):
        assert isinstance(stored, list), path
        assert len(stored) == len(written)
        for index, below in enumerate(written):
            check_kept(below, stored[index], (*path, index))
    elif is_replicas_of_a_template(path) and is_zero(written):
        assert stored == 1
    elif written == "" and path[-1:] in (("namespace",), ("restartPolicy",)):
        assert stored in ("", "default", "Always", "Never")
    elif isinstance(written, float):
        assert stored == written or written != written
    else:
        assert type(stored) is type(written), path
        assert stored == written, path


def is_zero(value: Json) -> bool:
    return value == 0 and not isinstance(value, bool)


@EVERY_KIND
@pytest.mark.rule("1.7")
def test_what_is_admitted_can_be_read_and_written(kind: Kind) -> None:
    """Records are views: they pass over what they do not know, the document keeps it."""
    good = st.sampled_from(samples.of_kind(kind.names.kind))
    broken = good.flatmap(lambda one: samples.mutated(one, samples.PLAUSIBLE | samples.ODD))

    @given(document=good | broken)
    def holds(document: Document) -> None:
        stored, faults = kinds.admit(kind, document)
        if not faults:
            record = decode(kind.record, stored)
            assert decode(kind.record, encode(record)) == record

    holds()


POD_SPECS = st.fixed_dictionaries(
    {
        "containers": st.lists(
            st.dictionaries(TEXTS, samples.ANYTHING, max_size=3), min_size=1, max_size=2
        )
    },
    optional={
        "nodeSelector": samples.ANYTHING,
        "volumes": samples.ANYTHING,
        "hostNetwork": samples.ANYTHING,
        "unheardOf": samples.ANYTHING,
        "schedulingGates": samples.ANYTHING,
        "resourceClaims": samples.ANYTHING,
    },
)


@given(pod_spec=POD_SPECS)
@pytest.mark.rule("1.2")
def test_a_pod_spec_goes_through_untouched(pod_spec: Document) -> None:
    """A field Kubernetes got yesterday is told as unknown, and kept all the same."""
    made = (
        build.podcliqueset()
        .with_clique("a")
        .with_("spec.template.cliques[0].spec.podSpec", pod_spec)
    )
    stored, faults = kinds.admit(OUR_KINDS[kinds.group_kind_of(made.document())], made.document())
    kept = object_at(stored, ["spec", "template", "cliques", 0, "spec", "podSpec"])
    check_kept(pod_spec, kept, ())
    added = {key for key in kept if key not in pod_spec}
    assert added == {"restartPolicy", "terminationGracePeriodSeconds"}
    if "unheardOf" in pod_spec:
        assert any("unheardOf" in fault.path for fault in faults)
