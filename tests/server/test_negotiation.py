"""Negotiation: which form a client gets of those it takes."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.server import negotiation, replies
from spinney.server.negotiation import NotAcceptable

KUBECTL = (
    "application/json;as=Table;v=v1;g=meta.k8s.io,"
    "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
)
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"


@pytest.mark.parametrize(
    ("accept", "media", "shape"),
    [
        ("", "application/json", ""),
        ("*/*", "application/json", ""),
        ("application/*;q=0.2", "application/json", ""),
        (KUBECTL, "application/json", "Table"),
        ("application/vnd.kubernetes.protobuf,application/json", "application/json", ""),
        ("application/yaml;q=0.4, application/json;q=0.9", "application/json", ""),
        ("application/json;q=0.1, application/yaml", "application/yaml", ""),
        ("application/json;q=0, application/yaml;q=0.1", "application/yaml", ""),
        (PARTIAL, "application/json", "PartialObjectMetadata"),
    ],
)
def test_the_form_a_client_likes_best(accept, media, shape):
    form = negotiation.form(accept)
    assert (form.media, form.shape) == (media, shape)


@pytest.mark.parametrize("accept", ["text/html", "application/json;q=0", "x", ",,;"])
def test_no_form_there_is(accept):
    with pytest.raises(NotAcceptable, match="only the following media types are accepted"):
        negotiation.form(accept)


def test_the_newest_discovery_a_client_takes():
    whole = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"
    both = f"{whole.format('v2')},{whole.format('v2beta1')},application/json"
    assert negotiation.discovery_version(both) == "v2"
    assert negotiation.discovery_version(f"{whole.format('v2beta1')},application/json") == "v2beta1"
    assert negotiation.discovery_version(f"{whole.format('v9')},application/json") == ""
    assert negotiation.discovery_version("*/*") == ""


@pytest.mark.law
@given(st.text("application/json;q=0.1,*as TablevgX-", max_size=60))
def test_any_header_gives_a_form_or_none(accept):
    with contextlib.suppress(NotAcceptable):
        negotiation.form(accept)
    negotiation.discovery_version(accept)


@pytest.mark.parametrize(
    ("header", "takes"),
    [
        ({}, False),
        ({"Accept-Encoding": "gzip"}, True),
        ({"Accept-Encoding": "deflate, gzip;q=0.5"}, True),
        ({"Accept-Encoding": "gzip;q=0"}, False),
        ({"Accept-Encoding": "identity"}, False),
    ],
)
def test_who_takes_compressed_answers(header, takes):
    assert replies.takes_gzip(header) is takes


@pytest.mark.law
@given(st.lists(st.text(), max_size=5))
def test_warnings_are_headers_whatever_they_say(warnings):
    """One line of printable ASCII each, so that none can be taken for another header."""
    for name, value in replies.warned(warnings):
        assert name == "Warning"
        assert value.isascii()
        assert value.isprintable()
        assert value.startswith('299 - "')


def test_more_warnings_than_fit_are_left_out():
    told = replies.warned([f"{number}{'x' * 1000}" for number in range(10)])
    assert 1 <= len(told) < 5
