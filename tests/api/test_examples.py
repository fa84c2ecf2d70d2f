"""The manifests of `examples/` and of this folder: each is taken as it stands, and stays so."""

from __future__ import annotations

from pathlib import Path

import pytest

from spinney.api import kinds
from spinney.api.kinds import OUR_KINDS, Kind
from spinney.api.surroundings import Surroundings
from spinney.meta.documents import Document, leaves, string_at, value_at
from spinney.meta.records import decode, encode
from spinney.testing.build import ABSENT, changed
from tests.api import samples

EVERY_FILE = pytest.mark.parametrize("file", samples.FILES, ids=lambda file: file.name)


def surroundings_of(documents: list[Document]) -> Surroundings:
    """Return what is known beside these documents: the topologies among them, and no others."""
    found: dict[str, tuple[str, ...]] = {}
    for document in documents:
        if document["kind"] == "ClusterTopologyBinding":
            levels = value_at(document, ["spec", "levels"])
            assert isinstance(levels, list)
            name = string_at(document, ["metadata", "name"])
            found[name] = tuple(string_at(level, ["domain"]) for level in levels)
    return Surroundings(topologies=found)


def test_there_are_enough_of_every_kind() -> None:
    assert len(samples.FILES) >= 40
    assert {string_at(each, ["kind"]) for each in samples.ALL} == {
        kind.names.kind for kind in OUR_KINDS.values()
    }


@EVERY_FILE
def test_a_file_says_first_what_it_is(file: Path) -> None:
    line = file.read_text().split("\n", 1)[0]
    assert line.startswith("# ")
    assert line.rstrip()[-1] not in "#:"


@EVERY_FILE
@pytest.mark.rule("1.2")
def test_each_document_is_taken(file: Path) -> None:
    documents = samples.ours(file)
    known = surroundings_of(documents)
    for document in documents:
        kind = OUR_KINDS[kinds.group_kind_of(document)]
        assert list(map(str, kinds.admit(kind, document, None, known)[1])) == []


@EVERY_FILE
@pytest.mark.rule("1.2")
def test_each_document_is_read_and_keeps_all_that_was_written(file: Path) -> None:
    for document in samples.ours(file):
        kind = OUR_KINDS[kinds.group_kind_of(document)]
        stored = kinds.admit(kind, document)[0]
        record = decode(kind.record, stored)
        assert decode(kind.record, encode(record)) == record
        kept = dict(leaves(stored))
        for path, value in leaves(document):
            if value is None:
                assert kept.get(path, "nothing, or a default") is not None, path
            elif path[-2:] == ("spec", "replicas") and value == 0 and "cliques" in path:
                assert kept[path] == 1
            else:
                assert value in ({}, []) or kept[path] == value, path


@EVERY_FILE
def test_a_stored_object_may_be_written_again_as_it_is(file: Path) -> None:
    """Applied again as written, or put back as read: no update rule minds, and nothing changes."""
    documents = samples.ours(file)
    known = surroundings_of(documents)
    for document in documents:
        kind = OUR_KINDS[kinds.group_kind_of(document)]
        stored = kinds.admit(kind, document, None, known)[0]
        for written in (document, stored):
            again, faults = kinds.admit(kind, written, stored, known)
            assert list(map(str, faults)) == []
            assert again == stored
            assert kinds.advice(kind, again, stored, known) == kinds.advice(
                kind, stored, None, known
            )


@EVERY_FILE
def test_what_is_taken_where_nothing_is_known_is_what_is_taken_here(file: Path) -> None:
    """`spinney validate` offline takes what a server takes that knows the same topologies."""
    for document in samples.ours(file):
        kind = OUR_KINDS[kinds.group_kind_of(document)]
        assert list(map(str, kinds.admit(kind, document)[1])) == []


@pytest.mark.parametrize("kind", OUR_KINDS.values(), ids=lambda kind: kind.names.kind)
def test_metadata_is_checked_in_every_kind_new_and_changed(kind: Kind) -> None:
    good = samples.of_kind(kind.names.kind, admitted=True)[0]
    for path, value, told in (
        ("metadata.labels", {"a b": "c"}, 'metadata.labels: Invalid value: "a b": name part must'),
        ("metadata.finalizers", ["a b"], 'metadata.finalizers[0]: Invalid value: "a b": name part'),
        ("metadata.name", ABSENT, "metadata.name: Required value: name or generateName"),
    ):
        bad = changed(good, {path: value})
        for old in (None, good):
            faults = list(map(str, kinds.admit(kind, bad, old)[1]))
            assert [fault for fault in faults if fault.startswith(told)], (path, faults)
            assert len(faults) == 1
