"""Values for the laws of meta: any JSON, also what no JSON text can hold."""

from hypothesis import strategies as st

TEXTS = st.text(st.characters(exclude_categories=()), max_size=12)
CLEAN_TEXTS = st.text(max_size=12)
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
_POWERS = st.integers(4990, 5010).map(lambda power: 10**power)
HUGE = st.integers(-(10**30), 10**30) | _POWERS | st.floats()


def _json(scalars: st.SearchStrategy, texts: st.SearchStrategy) -> st.SearchStrategy:
    return st.recursive(
        st.none() | st.booleans() | scalars | texts,
        lambda below: st.lists(below, max_size=4) | st.dictionaries(texts, below, max_size=4),
        max_leaves=12,
    )


JSON = _json(NUMBERS, CLEAN_TEXTS)
"""JSON that a text can hold."""

ANY_JSON = _json(NUMBERS | HUGE, TEXTS)
"""What Python can hold in the types of JSON, half surrogate pairs and huge integers too."""


def nested(depth: int) -> dict:
    """Return an object nested to a depth."""
    value: dict = {}
    for _ in range(depth - 1):
        value = {"a": value}
    return value
