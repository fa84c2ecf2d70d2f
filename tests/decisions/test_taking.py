"""What an update takes next, for every small situation there is (rules 3.2 and 3.3)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.decisions.updates import taking
from spinney.decisions.updates.taking import Chosen, Step, Unit

START = datetime(2026, 1, 1, tzinfo=UTC)
STATES = "OoNng-"
"""Old and ready, old and not; new and ready, new and not; going; not there."""


def unit(index: int, state: str, age: int = 0) -> Unit:
    return Unit(
        name=f"u{index}",
        born=START - timedelta(seconds=age),
        index=index,
        is_outdated=state in "Oog",
        is_ready=state in "ON",
        is_going=state == "g",
    )


def situations() -> Iterator[tuple[str, tuple[str, ...], int, int]]:
    """Yield every way three units can be, with every choice made before, and every need."""
    for states in itertools.product(STATES, repeat=3):
        for count in range(3):
            for chosen in itertools.permutations(("u0", "u1", "u2"), count):
                for least, most in itertools.product((1, 2, 3), (1, 2)):
                    yield "".join(states), chosen, least, most


def stepped(states: str, chosen: tuple[str, ...], least: int, most: int, hold: str = "") -> Step:
    units = [unit(index, state) for index, state in enumerate(states) if state != "-"]
    return taking.step(
        units,
        Chosen(in_flight=chosen),
        wanted={"u0", "u1", "u2"},
        least=least,
        most=most,
        hold=hold,
    )


@pytest.mark.law
@pytest.mark.rule("3.3")
def test_every_step_keeps_to_its_gate() -> None:
    for states, chosen, least, most in situations():
        told = (states, chosen, least, most)
        found = stepped(*told)
        by_name = {f"u{index}": state for index, state in enumerate(states)}
        waited_for = [name for name in chosen if by_name[name] != "N"]
        assert list(found.chosen.in_flight[: len(waited_for)]) == waited_for, told
        assert set(found.chosen.completed) == set(chosen) - set(waited_for), told
        picked = found.chosen.in_flight[len(waited_for) :]
        ready = sum(by_name[name] in "ON" for name in by_name if name not in waited_for)
        for count, name in enumerate(picked):
            assert by_name[name] == "O", told
            if waited_for or count:
                assert len(waited_for) + count < most, told
                assert ready - count > least, told
            else:
                assert ready >= least, told
        assert set(found.forced) == {name for name in by_name if by_name[name] == "o"}, told
        undeleted = [name for name in waited_for if by_name[name] == "O"]
        assert set(found.taken) <= set(undeleted), told
        serving = ready + len(undeleted)
        gone = len(waited_for) - len(undeleted)
        for name in found.taken:
            assert serving > least if gone else serving >= least, (told, name)
            serving, gone = serving - 1, gone + 1


@pytest.mark.law
@pytest.mark.rule("3.3")
def test_an_update_ends_wherever_it_begins_where_what_is_replaced_becomes_ready() -> None:
    for states, chosen, least, most in situations():
        there, in_flight = [*states], chosen
        for _ in range(12):
            found = stepped("".join(there), in_flight, least, most)
            if found.chosen.in_flight == in_flight:
                for name in {*found.forced, *found.taken}:
                    there[int(name[1:])] = "g"
            in_flight = found.chosen.in_flight
            if set(there) == {"N"} and not in_flight:
                break
            there = ["-" if state == "g" else "N" if state in "-n" else state for state in there]
        else:
            raise AssertionError(f"{states} {chosen} {least} {most} ended as {there} {in_flight}")


@pytest.mark.rule("3.2")
@pytest.mark.rule("3.3")
def test_the_oldest_goes_first_and_the_lower_index_of_two() -> None:
    units = [unit(2, "O", age=5), unit(0, "O", age=5), unit(1, "O", age=9), unit(3, "N")]
    order = []
    for _ in range(3):
        found = taking.step(
            [u for u in units if u.name not in order],
            Chosen(),
            wanted=(),
            least=0,
            most=1,
        )
        order.append(found.chosen.in_flight[0])
    assert order == ["u1", "u0", "u2"]


@pytest.mark.law
@pytest.mark.rule("3.10")
@given(st.text(STATES, min_size=3, max_size=3), st.integers(1, 3))
def test_what_is_held_takes_nothing_that_is_ready_and_says_why(states: str, least: int) -> None:
    found = stepped(states, (), least, 1, hold="a scale-in is under way")
    assert not found.chosen.in_flight
    if "O" in states:
        assert found.waits_for == "a scale-in is under way"


@pytest.mark.law
@pytest.mark.rule("3.9")
def test_whatever_is_left_to_do_is_done_or_waited_for_with_a_reason() -> None:
    for states, chosen, least, most in situations():
        found = stepped(states, chosen, least, most)
        acts = found.forced or found.taken or found.chosen != Chosen(in_flight=chosen)
        if not acts and ("O" in states or chosen):
            assert found.waits_for, (states, chosen, least, most)


def test_a_unit_that_was_scaled_away_is_waited_for_no_more() -> None:
    found = taking.step([unit(0, "N")], Chosen(in_flight=("u2",)), wanted={"u0"}, least=1, most=1)
    assert found.chosen == Chosen(completed=("u2",))
