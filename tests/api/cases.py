"""Tables of rules: what is changed in a good object, and what is then said of it."""

from __future__ import annotations

from spinney.api import kinds
from spinney.api.kinds import KINDS
from spinney.api.surroundings import NOTHING_KNOWN, Surroundings
from spinney.meta.documents import Document, Json
from spinney.testing.build import changed


def said_of(
    document: Document, old: Document | None = None, known: Surroundings = NOTHING_KNOWN
) -> list[str]:
    """Return every fault of a document, as people read them."""
    kind = KINDS[kinds.group_kind_of(document)]
    stored = None if old is None else kinds.admit(kind, old)[0]
    return [str(fault) for fault in kinds.admit(kind, document, stored, known)[1]]


def warned_of(
    document: Document, old: Document | None = None, known: Surroundings = NOTHING_KNOWN
) -> list[str]:
    """Return every warning about a document."""
    kind = KINDS[kinds.group_kind_of(document)]
    stored = None if old is None else kinds.admit(kind, old)[0]
    return list(kinds.advice(kind, kinds.admit(kind, document, stored, known)[0], stored, known))


class Case:
    """One rule: changes that keep it, and changes that break it with what is said then."""

    def __init__(
        self,
        name: str,
        *,
        good: tuple[dict[str, Json], ...] = (),
        bad: tuple[tuple[dict[str, Json], tuple[str, ...]], ...] = (),
        known: Surroundings = NOTHING_KNOWN,
    ) -> None:
        self.name = name
        self.good = good
        self.bad = bad
        self.known = known

    def __repr__(self) -> str:
        return self.name

    def check_created(self, base: Document) -> None:
        assert said_of(base, known=self.known) == []
        for changes in self.good:
            assert (changes, said_of(changed(base, changes), known=self.known)) == (changes, [])
        for changes, expected in self.bad:
            said = said_of(changed(base, changes), known=self.known)
            assert (changes, said) == (changes, [*expected])

    def check_updated(self, base: Document) -> None:
        for changes in self.good:
            said = said_of(changed(base, changes), base, self.known)
            assert (changes, said) == (changes, [])
        for changes, expected in self.bad:
            said = said_of(changed(base, changes), base, self.known)
            assert (changes, said) == (changes, [*expected])
