"""Paths: what is asked for, for every path there can be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.server import paths


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/api/v1/pods", "list - v1 - pods - -"),
        ("GET", "/api/v1/namespaces/a/pods", "list - v1 a pods - -"),
        ("GET", "/api/v1/namespaces/a/pods/b", "get - v1 a pods b -"),
        ("HEAD", "/api/v1/namespaces/a/pods/b", "get - v1 a pods b -"),
        ("PUT", "/api/v1/namespaces/a/pods/b", "update - v1 a pods b -"),
        ("PATCH", "/api/v1/namespaces/a/pods/b", "patch - v1 a pods b -"),
        ("DELETE", "/api/v1/namespaces/a/pods/b", "delete - v1 a pods b -"),
        ("POST", "/api/v1/namespaces/a/pods", "create - v1 a pods - -"),
        ("DELETE", "/api/v1/namespaces/a/pods", "deletecollection - v1 a pods - -"),
        ("PUT", "/api/v1/namespaces/a/pods", "- - v1 a pods - -"),
        ("OPTIONS", "/api/v1/namespaces/a/pods", "- - v1 a pods - -"),
        ("GET", "/api/v1/namespaces/a/pods/b/log", "get - v1 a pods b log"),
        ("POST", "/api/v1/namespaces/a/pods/b/binding", "create - v1 a pods b binding"),
        ("GET", "/api/v1/namespaces", "list - v1 - namespaces - -"),
        ("GET", "/api/v1/namespaces/a", "get - v1 - namespaces a -"),
        ("PUT", "/api/v1/namespaces/a/finalize", "update - v1 - namespaces a finalize"),
        ("PATCH", "/api/v1/namespaces/a/status", "patch - v1 - namespaces a status"),
        ("GET", "/api/v1/namespaces/a/status/b", "get - v1 a status b -"),
        (
            "GET",
            "/apis/grove.io/v1alpha1/podcliquesets",
            "list grove.io v1alpha1 - podcliquesets - -",
        ),
        (
            "PATCH",
            "/apis/grove.io/v1alpha1/namespaces/a/podcliquesets/b/scale",
            "patch grove.io v1alpha1 a podcliquesets b scale",
        ),
        ("GET", "/api/v1/namespaces/a/pods/b%20c", "get - v1 a pods b c -"),
        ("GET", "//api//v1/pods/", "list - v1 - pods - -"),
        ("GET", "/version", "get - - - - - -"),
        ("GET", "/apis/grove.io/v1alpha1", "get - - - - - -"),
        ("GET", "/", "get - - - - - -"),
    ],
)
def test_what_a_path_asks_for(method, path, expected):
    target = paths.parse(method, path)
    found = (
        target.verb,
        target.group,
        target.version,
        target.namespace,
        target.plural,
        target.name,
        target.subresource,
    )
    assert " ".join(part or "-" for part in found) == expected


def test_a_path_may_ask_for_a_watch_itself():
    assert paths.parse("GET", "/api/v1/watch/namespaces/a/pods").watched
    assert paths.parse("GET", "/api/v1/watch/namespaces/a/pods").plural == "pods"
    assert not paths.parse("GET", "/api/v1/namespaces/watch/pods").watched


@pytest.mark.parametrize("path", ["/api/v1/pods/a%2Fb", "/api/v1/%ff", "/%00", "/api/v1/pods/%0a"])
def test_paths_that_lead_nowhere(path):
    with pytest.raises(paths.NoSuchPath):
        paths.parse("GET", path)


@pytest.mark.law
@given(
    st.sampled_from(["GET", "PUT", "POST", "PATCH", "DELETE", "BREW"]),
    st.one_of(
        st.text(),
        st.lists(
            st.sampled_from(
                ["api", "apis", "v1", "watch", "namespaces", "pods", "a", "%", "%2", "%41", ""]
            ),
            max_size=9,
        ).map(lambda parts: "/" + "/".join(parts)),
    ),
)
def test_every_path_gives_an_answer(method, path):
    """A target, or that there is no such path: nothing else is raised, whatever the path."""
    try:
        target = paths.parse(method, path)
    except paths.NoSuchPath:
        return
    assert target.path.startswith("/")
    assert target.plural or not target.name
