"""Patterns: what is written for RE2, as Python reads it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.meta import patterns


@pytest.mark.parametrize(
    ("pattern", "takes", "refuses"),
    [
        ("^[a-z]+$", "abc", "abc\n"),
        (r"^a\z", "a", "a\n"),
        (r"\Aa$", "a", "ba"),
        ("^[[:alpha:]_]+$", "aZ_", "a1"),
        ("^[^[:digit:]]$", "a", "1"),
        (r"^\d$", "1", "\u0661"),
        (r"^\w$", "a", "é"),
        (r"^\Qa.b$\E$", "a.b$", "axb$"),
        (r"^\x{1F600}$", "\U0001f600", "x"),
        (r"^\$[$]$", "$$", "$"),
        ("^[]a]$", "]", "b"),
        ("^[[a]$", "[", "b"),
        (r"^[a\]b]$", "]", "c"),
        ("(?i)^abc$", "ABC", "abd"),
        ("b", "abc", "acd"),
    ],
)
def test_a_pattern_takes_and_refuses(pattern: str, takes: str, refuses: str) -> None:
    compiled = patterns.compiled(pattern)
    assert compiled is not None
    assert compiled.search(takes)
    assert not compiled.search(refuses)


@pytest.mark.parametrize("pattern", [r"\pL", r"\p{Greek}", "[[:no:]]", "(", "a(?i)b", "a{2,1}"])
def test_what_python_has_no_word_for_is_not_judged(pattern: str) -> None:
    assert patterns.compiled(pattern) is None


@pytest.mark.law
@given(st.text(alphabet="ab[]^$\\QEz:x{}()*+?|-alph", max_size=12))
def test_no_pattern_breaks_reading_it(pattern: str) -> None:
    compiled = patterns.compiled(pattern)
    if compiled is not None:
        compiled.search("ab")
