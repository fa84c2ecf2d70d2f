"""Kinds as they are typed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spinney.api import kinds
from spinney.api.kinds import KINDS, OUR_KINDS, Kind
from spinney.cli.usage import Usage
from spinney.meta import shapes
from spinney.meta.references import GroupKind


def kind(word: str, among: Mapping[GroupKind, Kind] = KINDS) -> Kind:
    """Return the kind a word names; raises Usage where there is none."""
    found = kinds.named(word, among)
    if found is not None:
        return found
    known = sorted(name for kind in OUR_KINDS.values() for name in words(kind))
    hint = shapes.did_you_mean(word, known)
    listed = ", ".join(sorted(kind.names.singular for kind in OUR_KINDS.values()))
    raise Usage(f'no kind "{word}"{hint or f"; there are: {listed}"}')


def words(kind: Kind) -> tuple[str, ...]:
    """Return all that a kind may be called."""
    names = kind.names
    return (names.singular, names.plural, *names.short)


def chosen(given: Sequence[str]) -> list[Kind]:
    """Return the kinds of ours that words name, all of them where there are no words."""
    return [kind(word, OUR_KINDS) for word in given] if given else list(OUR_KINDS.values())
