"""Samples: the manifests of `examples/` and of this folder, and documents made from them."""

from __future__ import annotations

from pathlib import Path

from hypothesis import strategies as st

from spinney.api import kinds
from spinney.api.kinds import OUR_KINDS
from spinney.meta import manifests
from spinney.meta.documents import Document, Json
from tests.meta.values import JSON, TEXTS, nested

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (ROOT / "examples", ROOT / "tests" / "api" / "manifests")
FILES = tuple(
    sorted(
        file for folder in FOLDERS for file in folder.iterdir() if file.suffix in (".yaml", ".json")
    )
)


def documents(file: Path) -> list[Document]:
    """Return what a file holds of our kinds; a document that cannot be read fails the test."""
    found = list(manifests.load(file.read_bytes()))
    assert [manifest.error for manifest in found] == [None] * len(found)
    whole = [manifest.document for manifest in found if isinstance(manifest.document, dict)]
    return [document for document in whole if kinds.group_kind_of(document) in OUR_KINDS]


ALL = tuple(document for file in FILES for document in documents(file))
ADMITTED = tuple(
    kinds.admit(OUR_KINDS[kinds.group_kind_of(document)], document)[0] for document in ALL
)


def of_kind(kind: str, *, admitted: bool = False) -> tuple[Document, ...]:
    """Return the documents of one kind, as written or as stored."""
    return tuple(
        document for document in (ADMITTED if admitted else ALL) if document["kind"] == kind
    )


ODD = st.sampled_from(
    (
        2**63,
        -(10**30),
        -1,
        0,
        1.5,
        float("nan"),
        float("inf"),
        "\ud800",
        "a\x00b",
        "",
        " ",
        "a" * 300,
        "0s",
        "-1h",
        "150%",
        True,
        None,
        [],
        {},
        [None],
        [[]],
        {"": {}},
        nested(100),
    )
)
PLAUSIBLE = st.integers(-1, 5) | st.sampled_from(
    ("a", "b", "worker", "1h", "50%", "Training", "x.y")
)
ANYTHING = JSON | ODD | PLAUSIBLE | TEXTS | st.floats()
"""Without integers of thousands of digits: Hypothesis could not show them."""


def _places(value: Json, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    found = [path] if path else []
    if isinstance(value, dict):
        for key, below in value.items():
            found += _places(below, (*path, key))
    elif isinstance(value, list):
        for index, below in enumerate(value):
            found += _places(below, (*path, index))
    return found


def put(here: Json, path: tuple[str | int, ...], act: str, value: Json) -> Json:
    """Return a value with something done at a path: replace, delete, insert or twice."""
    first, rest = path[0], path[1:]
    if isinstance(here, list):
        assert isinstance(first, int)
        before, item, after = here[:first], here[first], here[first + 1 :]
        if rest:
            return [*before, put(item, rest, act, value), *after]
        made = {"replace": [value], "delete": [], "insert": [value, item], "twice": [item, item]}
        return [*before, *made[act], *after]
    assert isinstance(here, dict)
    if rest:
        return {**here, first: put(here[str(first)], rest, act, value)}
    if act == "delete":
        return {key: below for key, below in here.items() if key != first}
    if act == "insert":
        return {**here, value if isinstance(value, str) else "extra": value}
    if act == "twice":
        return {**here, first: [here[str(first)], here[str(first)]]}
    return {**here, first: value}


@st.composite
def mutated(draw: st.DrawFn, document: Document, values: st.SearchStrategy = ANYTHING) -> Document:
    """Draw a document that one to three small things happened to."""
    for _ in range(draw(st.integers(1, 3))):
        places = _places(document)
        if not places:
            break
        path = draw(st.sampled_from(places))
        act = draw(st.sampled_from(("replace", "replace", "delete", "insert", "twice")))
        changed = put(document, path, act, draw(values))
        assert isinstance(changed, dict)
        document = changed
    return document
