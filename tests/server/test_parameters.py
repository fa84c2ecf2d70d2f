"""Parameters: what a query means, and what is said of one that means nothing."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.meta.errors import BadRequest, Invalid
from spinney.server import parameters


def options_of(query):
    return parameters.list_options(parameters.parse(query))


def test_a_list_with_everything():
    options = options_of(
        "limit=5&continue=abc&labelSelector=a%3Db&fieldSelector=metadata.name%3Dx&timeoutSeconds=9"
    )
    assert options.limit == 5
    assert options.token == "abc"
    assert str(options.labels) == "a=b"
    assert str(options.fields) == "metadata.name=x"
    assert options.timeout_seconds == 9


@pytest.mark.parametrize(
    ("query", "is_on"),
    [
        ("", False),
        ("watch", True),
        ("watch=", True),
        ("watch=1", True),
        ("watch=true", True),
        ("watch=0", False),
        ("watch=false", False),
        ("watch=anything", True),
    ],
)
def test_switches(query, is_on):
    assert options_of(query).watch is is_on


_LIST = 'ListOptions.meta.k8s.io "" is invalid: '


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        ("limit=x", 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
        ("limit=1.5", 400, 'strconv.ParseInt: parsing "1.5": invalid syntax'),
        ("timeoutSeconds=x", 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
        (
            "resourceVersion=-1",
            400,
            'invalid resource version: strconv.ParseUint: parsing "-1": invalid syntax',
        ),
        (
            "labelSelector=a+in+(",
            400,
            'unable to parse requirement: must have "," or ")" at position 7, found the end',
        ),
        (
            "resourceVersionMatch=Exact",
            422,
            f"{_LIST}resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless "
            "resourceVersion is provided",
        ),
        (
            "resourceVersionMatch=Never&resourceVersion=1",
            422,
            f'{_LIST}resourceVersionMatch: Unsupported value: "Never": supported values: "Exact", '
            '"NotOlderThan", ""',
        ),
        (
            "resourceVersionMatch=Exact&resourceVersion=0",
            422,
            f'{_LIST}resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden '
            'for resourceVersion "0"',
        ),
        (
            "watch=1&resourceVersionMatch=NotOlderThan",
            422,
            f"{_LIST}resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch "
            "unless sendInitialEvents is provided",
        ),
        (
            "watch=1&sendInitialEvents=true",
            422,
            f"{_LIST}resourceVersionMatch: Forbidden: sendInitialEvents requires setting "
            "resourceVersionMatch to NotOlderThan",
        ),
        (
            "sendInitialEvents=true",
            422,
            f"{_LIST}sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list",
        ),
        (
            "continue=x&resourceVersion=5",
            400,
            "specifying resource version is not allowed when using continue",
        ),
    ],
)
def test_what_is_wrong_with_a_list(query, code, message):
    with pytest.raises((BadRequest, Invalid)) as refused:
        options_of(query)
    assert (refused.value.code, refused.value.message) == (code, message)


@pytest.mark.parametrize(
    ("query", "applies", "message"),
    [
        (
            "dryRun=Some",
            False,
            'PatchOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: "Some": supported '
            'values: "All"',
        ),
        (
            "",
            True,
            'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required '
            "for apply patch",
        ),
        (
            "force=true",
            False,
            'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for '
            "non-apply patch",
        ),
        (
            "fieldValidation=Maybe",
            False,
            'PatchOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "Maybe": '
            'supported values: "", "Ignore", "Warn", "Strict"',
        ),
        (
            "fieldManager=" + "m" * 129,
            False,
            'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Too long: may not be more than '
            "128 bytes",
        ),
    ],
)
def test_what_is_wrong_with_a_write(query, applies, message):
    with pytest.raises(Invalid) as refused:
        parameters.write_options(parameters.parse(query), "PatchOptions", applies=applies)
    assert refused.value.message == message


def test_the_field_manager_is_the_program_that_asks_unless_it_says_another():
    unsaid = parameters.WriteOptions()
    assert parameters.manager_of(unsaid, "kubectl/v1.32.0 (linux/amd64)") == "kubectl"
    assert parameters.manager_of(unsaid, "") == "unknown"
    assert parameters.manager_of(parameters.WriteOptions(manager="me"), "kubectl/v1") == "me"


def test_how_to_delete_is_said_in_the_body_or_in_the_query():
    body = {
        "gracePeriodSeconds": 0,
        "propagationPolicy": "Orphan",
        "preconditions": {"uid": "u", "resourceVersion": "7"},
        "dryRun": ["All"],
    }
    options, is_try = parameters.delete_options({"gracePeriodSeconds": "9"}, body)
    assert (options.grace_seconds, options.propagation, is_try) == (0, "Orphan", True)
    assert (options.only_if.uid, options.only_if.resource_version) == ("u", "7")
    query = parameters.parse("gracePeriodSeconds=9&propagationPolicy=Foreground")
    options, is_try = parameters.delete_options(query, {})
    assert (options.grace_seconds, options.propagation, is_try) == (9, "Foreground", False)
    options, _ = parameters.delete_options({"orphanDependents": "true"}, {})
    assert options.propagation == "Orphan"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            {"propagationPolicy": "Later"},
            'propagationPolicy: Unsupported value: "Later": supported values: "Foreground", '
            '"Background", "Orphan", "nil"',
        ),
        (
            {"propagationPolicy": "Orphan", "orphanDependents": True},
            'propagationPolicy: Invalid value: "Orphan": orphanDependents and deletionPropagation '
            "cannot be both set",
        ),
        ({"gracePeriodSeconds": "x"}, 'gracePeriodSeconds: Invalid value: "x": must be an integer'),
        ({"dryRun": "All"}, 'dryRun: Unsupported value: "All": supported values: "All"'),
    ],
)
def test_what_is_wrong_with_a_deletion(body, message):
    with pytest.raises(Invalid) as refused:
        parameters.delete_options({}, body)
    assert refused.value.message == f'DeleteOptions.meta.k8s.io "" is invalid: {message}'


_NAMES = ["limit", "continue", "resourceVersion", "resourceVersionMatch", "sendInitialEvents"]
_NAMES += ["watch", "labelSelector", "fieldSelector", "dryRun", "force", "gracePeriodSeconds"]


@pytest.mark.law
@given(
    st.one_of(
        st.text(),
        st.lists(
            st.tuples(st.sampled_from(_NAMES), st.text(max_size=8)).map("=".join), max_size=6
        ).map("&".join),
    )
)
def test_every_query_is_understood_or_refused(query):
    """Nothing but an answer of the API is raised, whatever the query."""
    for read in (
        parameters.list_options,
        lambda found: parameters.write_options(found, "CreateOptions"),
        lambda found: parameters.delete_options(found, {}),
    ):
        with contextlib.suppress(BadRequest, Invalid):
            read(parameters.parse(query))
