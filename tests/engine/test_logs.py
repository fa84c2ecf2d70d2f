"""The log: one line a record, for machines and for people, whatever is in the fields."""

from __future__ import annotations

import io
import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.engine import logs
from tests.engine.worlds import clique_ref


@pytest.fixture
def spinney_logger():
    logger = logging.getLogger(logs.LOGGER_NAME)
    before = (logger.handlers[:], logger.level, logger.propagate)
    yield logger
    logger.handlers[:], logger.level, logger.propagate = before


def record(message="created", error=None, **fields):
    made = logging.LogRecord("spinney.engine", logging.INFO, "", 0, message, (), error)
    made.created = 1767225600.25
    for name, value in logs.fields(**fields).items():
        setattr(made, name, value)
    return made


def test_a_line_of_json_holds_the_constant_message_and_the_fields():
    line = logs.JsonFormatter().format(
        record(object=clique_ref(), controller="toy", count=3, empty="", nothing=None)
    )
    assert json.loads(line) == {
        "time": "2026-01-01T00:00:00.250000Z",
        "level": "info",
        "logger": "spinney.engine",
        "message": "created",
        "object": "PodClique default/chat",
        "controller": "toy",
        "count": 3,
    }


def test_a_line_for_people_names_the_fields_alike():
    line = logs.HumanFormatter().format(record(object=clique_ref(), controller="toy"))
    assert line == ('00:00:00.250 INFO    created  object="PodClique default/chat"  controller=toy')


def test_an_error_comes_with_where_it_happened():
    try:
        raise KeyError("a bug")
    except KeyError as error:
        made = record("a look failed", (KeyError, error, error.__traceback__))
    line = json.loads(logs.JsonFormatter().format(made))
    assert line["error"] == "'a bug'"
    assert "test_logs.py" in line["trace"]
    assert "test_logs.py" in logs.HumanFormatter().format(made)


@pytest.mark.law
@given(st.dictionaries(st.text(max_size=5), st.one_of(st.text(), st.integers(), st.floats())))
def test_a_record_is_one_line_whatever_is_in_it(fields):
    made = record(error=None)
    made.fields = fields
    for formatter in (logs.JsonFormatter(), logs.HumanFormatter()):
        line = formatter.format(made)
        assert line.encode(errors="replace")
    assert "\n" not in logs.JsonFormatter().format(made)


def test_set_up_replaces_what_was_set_up_before(spinney_logger):
    first, second = io.StringIO(), io.StringIO()
    logs.set_up(first, json=True)
    logs.set_up(second, json=False)
    logs.logger("engine").info("created", extra=logs.fields(controller="toy"))
    assert first.getvalue() == ""
    assert second.getvalue().endswith("created  controller=toy\n")
