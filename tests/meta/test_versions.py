"""Versions of objects.

Laws: what is at hand decoded is what the bytes say, and views made of either are the same, or fail
alike; however many versions are written, only so many stay decoded, and all can still be read.
"""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.api.core.pod import Pod
from spinney.meta import versions
from spinney.meta.documents import Document, same
from spinney.meta.errors import DecodeError
from spinney.meta.records import Record
from spinney.meta.references import GroupKind, Ref
from spinney.meta.versions import Stored, stored_from_body, stored_from_document
from tests.api import samples
from tests.api.core.objects import POD

REF = Ref(kind=GroupKind(group="", kind="Pod"), namespace="default", name="web-0")


def seen(stored: Stored, record: type[Record]) -> Record | str:
    try:
        return stored.view(record)
    except DecodeError as error:
        return f"{error.path}: {error.message}"


@pytest.mark.law
@given(st.just(POD) | samples.mutated(POD), st.integers(1, 2**40))
def test_what_was_written_is_seen_as_what_was_loaded(document: Document, version: int) -> None:
    try:
        document = msgspec.json.decode(msgspec.json.encode(document))
    except (OverflowError, ValueError, msgspec.DecodeError):
        return
    written = stored_from_document(REF, document, version)
    loaded = stored_from_body(REF, written.uid, version, written.body)
    assert seen(written, Pod) == seen(loaded, Pod)
    assert same(written.document(), loaded.document())
    assert (written.labels, written.owners, written.node) == (
        loaded.labels,
        loaded.owners,
        loaded.node,
    )


def test_only_the_latest_stay_decoded_and_all_can_be_read() -> None:
    filler = "x" * 100_000
    count = 3 * versions.DECODED_BYTES_MAX // len(filler)
    written = [
        stored_from_document(REF, {**POD, "filler": filler, "number": number}, number)
        for number in range(count)
    ]
    at_hand = [stored for stored in written if stored._document is not None]
    assert at_hand == written[-len(at_hand) :]
    assert sum(len(stored.body) for stored in at_hand) <= versions.DECODED_BYTES_MAX
    for number, stored in enumerate(written):
        assert stored.document()["number"] == number
        assert stored.document() is stored.document()
    assert sum(stored._document is not None for stored in written) == len(at_hand)


def test_one_version_larger_than_all_that_may_stay_is_read_once() -> None:
    body = msgspec.json.encode({**POD, "filler": "x" * (versions.DECODED_BYTES_MAX + 1)})
    stored = stored_from_body(REF, "", 1, body)
    assert stored.document() is stored.document()
