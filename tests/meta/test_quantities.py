"""Quantities agree with exact fractions; percentages are exact."""

from fractions import Fraction
from math import ceil, floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.meta import quantities
from spinney.meta.quantities import NANO

SUFFIXES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    **{name: Fraction(1000 ** (power + 1)) for power, name in enumerate("kMGTPE")},
    **{f"{name}i": Fraction(1024 ** (power + 1)) for power, name in enumerate("KMGTPE")},
    "e3": Fraction(1000),
    "E-2": Fraction(1, 100),
}


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("500m", Fraction(1, 2)),
        ("4Gi", 4 * 1024**3),
        ("1.5Gi", 3 * 1024**3 // 2),
        (8, 8),
        ("+1k", 1000),
        ("-.5", Fraction(-1, 2)),
        ("1.", 1),
        ("12e6", 12_000_000),
        ("1E", 10**18),
        ("1E3", 1000),
        ("0.1n", Fraction(1, NANO)),
        ("-0.1n", Fraction(-1, NANO)),
        ("9223372036854775807", 2**63 - 1),
    ],
)
def test_quantities_are_exact(text: str | int, units: Fraction | int) -> None:
    assert Fraction(quantities.parse_quantity(text), NANO) == units


@pytest.mark.parametrize(
    "text",
    ["", "m", "1 Gi", "1gi", "1K", "0x1", "1e", "1_0", "--1", "1Gim", "٣", ".", "1e1000", "8Ei"],
)
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^must "):
        quantities.parse_quantity(text)


def test_quantities_beyond_64_bits_are_refused() -> None:
    for value in (2**63, -(2**63), "1e99", 10**5000, "9" * 60):
        with pytest.raises(ValueError, match="must be between"):
            quantities.parse_quantity(value)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("0.5", "500m"),
        ("1000m", "1"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("1000Ki", "1000Ki"),
        ("0.5Ki", "512"),
        ("1500000", "1500k"),
        ("1e3", "1e3"),
        ("12000e0", "12e3"),
        ("-2048Ki", "-2Mi"),
        ("0Gi", "0"),
        (8, "8"),
    ],
)
def test_a_quantity_is_shown_in_its_own_family(text: str | int, canonical: str) -> None:
    assert quantities.canonical(text) == canonical


def test_counts_are_rounded_up() -> None:
    half = quantities.parse_quantity("500m")
    assert (quantities.units(half), quantities.millis(half)) == (1, 500)
    assert quantities.millis(quantities.parse_quantity("1u")) == 1
    assert quantities.units(-half) == 0


@pytest.mark.law
@given(
    st.sampled_from(["", "+", "-"]),
    st.integers(0, 10**6),
    st.none() | st.text("0123456789", max_size=12),
    st.sampled_from(sorted(SUFFIXES)),
)
def test_quantities_agree_with_fractions(
    sign: str, whole: int, fraction: str | None, suffix: str
) -> None:
    number = str(whole) if fraction is None else f"{whole}.{fraction}"
    exact = Fraction(number if fraction != "" else str(whole)) * SUFFIXES[suffix]
    if exact > quantities.UNITS_MAX:
        return
    expected = -ceil(exact * NANO) if sign == "-" else ceil(exact * NANO)
    text = f"{sign}{number}{suffix}"
    assert quantities.parse_quantity(text) == expected
    canonical = quantities.canonical(text)
    assert quantities.parse_quantity(canonical) == expected
    assert quantities.canonical(canonical) == canonical


def test_percentages_are_told_from_integers() -> None:
    assert quantities.parse_int_or_percent(3) == (3, False)
    assert quantities.parse_int_or_percent("25%") == (25, True)
    for value in ("25", "2.5%", "-1%", "%", "25 %", "", True):
        with pytest.raises(ValueError, match='must be an integer or a percentage such as "25%"'):
            quantities.parse_int_or_percent(value)


@pytest.mark.law
@given(st.integers(0, 400), st.integers(0, 10**12))
def test_a_percentage_is_resolved_exactly(percent: int, total: int) -> None:
    exact = Fraction(percent * total, 100)
    assert quantities.resolve(f"{percent}%", total, round_up=True) == ceil(exact)
    assert quantities.resolve(f"{percent}%", total, round_up=False) == floor(exact)
    assert quantities.resolve(percent, total, round_up=True) == percent
