"""Selectors: canonical texts, errors with positions, matching."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.meta import selectors
from spinney.meta.selectors import FieldSelector, FieldTerm, LabelSelector, Requirement

KEYS = st.sampled_from(["a", "app", "in", "notin", "x.y/z", "B_1"])
LABEL_VALUES = st.sampled_from(["", "a", "in", "x-y_z.1", "B"])


@st.composite
def _requirements(draw: st.DrawFn) -> Requirement:
    operator = draw(st.sampled_from(selectors.OPERATORS))
    least = 1 if operator in (selectors.IN, selectors.NOT_IN) else 0
    values = draw(st.sets(LABEL_VALUES, min_size=least, max_size=3 * least))
    return Requirement(key=draw(KEYS), operator=operator, values=tuple(sorted(values)))


SELECTORS = st.sets(_requirements(), max_size=4).map(
    lambda found: LabelSelector(requirements=tuple(sorted(found)))
)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("", ""),
        ("a=b", "a=b"),
        (" a == b , c!=d", "a=b,c!=d"),
        ("e in (y, x,x)", "e in (x,y)"),
        ("f notin (z)", "f!=z"),
        ("g,!h", "g,!h"),
        ("! h", "!h"),
        ("a=,b!=", "a=,b!="),
        ("a in (,x)", "a in (,x)"),
        ("in in (in)", "in=in"),
        ("x.y/z=1,a", "a,x.y/z=1"),
    ],
)
def test_a_selector_has_one_canonical_text(text: str, canonical: str) -> None:
    assert str(selectors.parse_selector(text)) == canonical


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a=b,", "must have a label's key at position 5, found the end"),
        ("=b", 'must have a label\'s key at position 1, found "="'),
        ("a in x", 'must have "(" at position 6, found "x"'),
        ("a in (x", 'must have "," or ")" at position 8, found the end'),
        ("a b", 'found "b"'),
        ("a>1", 'found ">"'),
        ("a=b=c", 'must have "," at position 4, found "="'),
        ("-a=b", 'key "-a" at position 1: name part must consist of'),
        ("a=b!", 'must have "," at position 4, found "!"'),
        ("a=*", 'value "*" at position 3: a valid label must be an empty string'),
        ("/a", "prefix part must be non-empty"),
        ("!", "must have a label's key at position 2, found the end"),
    ],
)
def test_an_error_says_what_was_found_where(text: str, told: str) -> None:
    with pytest.raises(ValueError, match="position") as raised:
        selectors.parse_selector(text)
    assert told in str(raised.value)


def test_nothing_and_everything_differ() -> None:
    assert not selectors.from_document(None).matches({})
    assert selectors.from_document({}).matches({"a": "b"})
    assert selectors.parse_selector("").matches({})


def test_operators_match_as_in_kubernetes() -> None:
    def matches(text: str, **labels: str) -> bool:
        return selectors.parse_selector(text).matches(labels)

    assert matches("a=b,c", a="b", c="")
    assert not matches("a=b,c", a="b")
    assert matches("a!=b")
    assert matches("a notin (b,c)", a="d")
    assert not matches("a notin (b,c)", a="c")
    assert matches("!a", b="")
    assert not matches("!a", a="")
    assert not matches("a=")
    assert matches("a=", a="")


def test_a_document_says_what_a_text_says() -> None:
    document = {
        "matchLabels": {"b": "1"},
        "matchExpressions": [
            {"key": "a", "operator": "In", "values": ["y", "x"]},
            {"key": "c", "operator": "DoesNotExist"},
        ],
    }
    found = selectors.from_document(document)
    assert found == selectors.parse_selector("!c,b=1,a in (x,y)")
    assert found.equalities == (("b", "1"),)
    assert selectors.from_labels({"b": "1"}) == selectors.parse_selector("b=1")


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ([], "must be an object"),
        ({"matchLabels": []}, "matchLabels: must be an object"),
        ({"matchLabels": {"a": 1}}, "matchLabels[a]: must be a string"),
        ({"matchExpressions": [{"operator": "In"}]}, "matchExpressions[0].key: must be a string"),
        ({"matchExpressions": [{"key": "a", "operator": "in"}]}, "[0].operator: must be one of In"),
        ({"matchExpressions": [{"key": "a", "operator": "In"}]}, "[0].values: must be specified"),
        (
            {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]},
            "[0].values: may not be specified",
        ),
    ],
)
def test_a_broken_document_says_which_field(document: object, told: str) -> None:
    with pytest.raises(ValueError, match=r"must|may") as raised:
        selectors.from_document(document)
    assert told in str(raised.value)


@pytest.mark.law
@given(SELECTORS, st.dictionaries(KEYS, LABEL_VALUES))
def test_text_of_a_selector_says_the_same(selector: LabelSelector, labels: dict[str, str]) -> None:
    again = selectors.parse_selector(str(selector))
    assert str(again) == str(selector)
    assert again.matches(labels) == selector.matches(labels)
    if again.matches(labels):
        assert set(again.equalities) <= set(labels.items())


@pytest.mark.law
@given(st.text(st.sampled_from("ab=!(), in<\\n"), max_size=20))
def test_any_text_is_a_selector_or_a_value_error(text: str) -> None:
    for parse in (selectors.parse_selector, selectors.parse_field_selector):
        try:
            found = parse(text)
        except ValueError:
            continue
        assert parse(str(found)) == found


def test_field_selectors_match_fields() -> None:
    found = selectors.parse_field_selector(r"metadata.name==x,status.phase!=Running,a=b\,c\=\\")
    assert found.matches({"metadata.name": "x", "a": "b,c=\\"})
    assert not found.matches({"metadata.name": "x", "status.phase": "Running", "a": "b,c=\\"})
    assert found.equalities == (("a", "b,c=\\"), ("metadata.name", "x"))
    for text in ("a", "=b", "a=b=c", "a=\\x", "a=\\", ",", "a=b,,c=d"):
        with pytest.raises(ValueError, match="position"):
            selectors.parse_field_selector(text)


@pytest.mark.law
@given(st.sets(st.tuples(KEYS, st.text(max_size=6), st.booleans()), max_size=3))
def test_text_of_a_field_selector_says_the_same(terms: set[tuple[str, str, bool]]) -> None:
    found = FieldSelector(
        terms=tuple(sorted(FieldTerm(path=p, value=v, negated=n) for p, v, n in terms))
    )
    assert selectors.parse_field_selector(str(found)) == found
