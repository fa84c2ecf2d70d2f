"""Tables, templates, colours, errors: what people read."""

from __future__ import annotations

import io

import pytest

from spinney.cli import failing, outlines, screen, templates, waiting
from spinney.cli.screen import Screen
from spinney.cli.tables import Table
from spinney.cli.usage import NoServer, Usage
from spinney.kube.kubeconfig import BadKubeconfig
from spinney.kube.transport import Unreachable
from spinney.meta import errors
from spinney.meta.errors import ApiError, FieldError, Invalid


def printed(*batches, headings=("Name", "Status"), colour=False, **options):
    out = io.StringIO()
    table = Table(headings, Screen(out, io.StringIO(), has_colour=colour), **options)
    for rows in batches:
        table.print(rows)
    return out.getvalue()


def test_a_table_is_aligned_as_kubectl_aligns():
    assert printed([("a", "Running"), ("longer-name", "")]) == (
        "NAME          STATUS\na             Running\nlonger-name\n"
    )


def test_headings_are_printed_once_and_columns_only_widen():
    assert printed([("abc", "1")], [("a", "2")], [("abcdefg", "3")]) == (
        "NAME   STATUS\nabc    1\na      2\nabcdefg   3\n"
    )


def test_a_table_can_do_without_headings():
    assert printed([("a", "b")], is_headed=False) == "a   b\n"


def test_colour_moves_nothing():
    rows = [("a", "Running"), ("b", "CrashLoopBackOff"), ("c", "Pending"), ("d", "Odd")]
    coloured = printed(rows, colour=True)
    assert "\x1b[32mRunning\x1b[0m" in coloured
    assert "\x1b[31mCrashLoopBackOff\x1b[0m" in coloured
    assert "\x1b[33mPending\x1b[0m" in coloured
    plain = coloured
    for code in ("\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"):
        plain = plain.replace(code, "")
    assert plain == printed(rows)


def test_a_cell_cannot_steer_the_terminal_nor_break_the_line():
    assert printed([("\x1b[31mred\x07", "two\nlines")]).splitlines()[1] == ("^[[31mred^G   two...")
    assert screen.plain("naïve ✓ \u202eabc") == "naïve ✓ \\u202eabc"


DOCUMENT = {
    "metadata": {"name": "chat"},
    "spec": {"replicas": 2, "on": True, "none": None},
    "items": [{"name": "a", "n": 1}, {"name": "b", "n": 2}],
}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{.metadata.name}", "chat"),
        (".metadata.name", "chat"),
        ("metadata.name", "chat"),
        ("{$.spec.replicas} of {.spec.on}", "2 of true"),
        ("{.items[*].name}", "a b"),
        ("{.items[?(@.n==2)].name}", "b"),
        ('{range .items[*]}{.name}={.n}{"\\n"}{end}', "a=1\nb=2\n"),
        ("{.items[0]}", '{"name":"a","n":1}'),
        ("{.nothing}", ""),
        ("{\"a{b}\"}{'c'}", "a{b}c"),
    ],
)
def test_a_template_is_filled(template, text):
    assert templates.fill(templates.parse(template), DOCUMENT) == text


@pytest.mark.parametrize(
    ("template", "told"),
    [
        ("{range .items[*]}x", "{range} without {end}"),
        ("{.a}{end}", "{end} without {range}"),
        ("{.a", "a brace is not closed"),
        ("{.a[}", "position 3"),
    ],
)
def test_a_template_that_cannot_be_is_told_of(template, told):
    with pytest.raises(Usage, match=told):
        templates.parse(template)


def test_values_of_secrets_are_not_described():
    secret = {"type": "Opaque", "data": {"key": "aHVudGVyMg==", "long": "YWJj"}}
    resource = outlines.GroupKind(group="", kind="Secret")
    told = list(outlines._OUTLINES[resource](secret))
    assert "aHVudGVyMg" not in repr(told)
    assert told[1].rows == (("key", "7 bytes"), ("long", "3 bytes"))


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Usage("x"), 2),
        (BadKubeconfig("x"), 2),
        (NoServer("x"), 3),
        (Unreachable("x"), 3),
        (errors.NotFound("x"), 1),
        (errors.Conflict("x"), 1),
        (errors.BadRequest("x"), 1),
        (errors.Unauthorized("x"), 3),
        (errors.Forbidden("x"), 3),
        (errors.Unavailable("x"), 3),
        (errors.StorageFull("x"), 3),
        (ApiError("x"), 3),
        (errors.DecodeError("x"), 1),
    ],
)
def test_an_error_ends_a_command_with_its_code(error, code):
    out = io.StringIO()
    assert failing.tell(error, out) == code
    assert out.getvalue().startswith(("spinney: x\n", f"Error from server ({_reason(error)}): x\n"))


def _reason(error):
    return getattr(error, "reason", "")


def test_faults_of_an_object_stand_one_a_line():
    faults = [
        FieldError(path="spec.replicas", reason=errors.INVALID, message="must be 1", found=0),
        FieldError(path="spec.x", reason=errors.REQUIRED, message=""),
    ]
    error = Invalid(faults, group="grove.io", kind="PodCliqueSet", name="chat")
    assert failing.text(error) == (
        'The PodCliqueSet "chat" is invalid:\n'
        "* spec.replicas: Invalid value: 0: must be 1\n"
        "* spec.x: Required value"
    )
    one = Invalid(faults[:1], group="grove.io", kind="PodCliqueSet", name="chat")
    assert failing.text(one) == (
        'The PodCliqueSet "chat" is invalid: spec.replicas: Invalid value: 0: must be 1'
    )


def test_a_damaged_database_is_told_with_what_to_do():
    assert "begin anew" in failing.text(errors.CorruptJournal("row 7"))
    assert "yours to write" in failing.text(errors.JournalFailed("row 7"))


READY = {"type": "Ready", "status": "True"}


def with_condition(condition, **more):
    return {"metadata": {"generation": 2}, "status": {"conditions": [condition], **more}}


@pytest.mark.parametrize(
    ("wish", "document", "holds"),
    [
        ("condition=Ready", with_condition(READY), True),
        ("condition=ready=true", with_condition(READY), True),
        ("condition=Ready=False", with_condition(READY), False),
        ("condition=Other", with_condition(READY), False),
        ("condition=Ready", with_condition({**READY, "observedGeneration": 1}), False),
        ("condition=Ready", with_condition({**READY, "observedGeneration": 2}), True),
        ("condition=Ready", with_condition(READY, observedGeneration=1), False),
        ("condition=Ready", None, False),
        ("create", {}, True),
        ("create", None, False),
        ("delete", None, True),
        ("delete", {}, False),
        ("jsonpath={.spec.replicas}=2", DOCUMENT, True),
        ("jsonpath={.spec.replicas}=3", DOCUMENT, False),
        ("jsonpath='{.metadata.name}'=chat", DOCUMENT, True),
        ("jsonpath={.spec.on}=true", DOCUMENT, True),
        ("jsonpath={.items[?(@.n==2)].name}=b", DOCUMENT, True),
        ("jsonpath={.items[*].n}=1", DOCUMENT, False),
        ("jsonpath={.metadata}", DOCUMENT, True),
        ("jsonpath={.nothing}", DOCUMENT, False),
    ],
)
def test_what_is_waited_for(wish, document, holds):
    assert waiting.parse(wish).holds(document) is holds
