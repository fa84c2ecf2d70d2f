"""Documents made by Hypothesis for the laws of patches, and a schema they mostly fit."""

from __future__ import annotations

import hypothesis.strategies as st

from spinney.meta.errors import SpinneyError
from spinney.meta.schemas import Schema

NAMES = st.sampled_from(["a", "b", "c"])
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from(["", "x", "1"]), st.just(1.0)
)


def json_values():
    """Any small JSON value."""
    return st.recursive(
        SCALARS,
        lambda below: st.lists(below, max_size=3) | st.dictionaries(NAMES, below, max_size=3),
        max_leaves=6,
    )


def documents():
    """Any small JSON object."""
    return st.dictionaries(NAMES, json_values(), max_size=4)


def without_nulls():
    """Small JSON objects without a null in them, save in lists."""
    scalars = SCALARS.filter(lambda value: value is not None)
    below = st.recursive(
        scalars | st.lists(SCALARS, max_size=2),
        lambda below: st.dictionaries(NAMES, below, max_size=3),
        max_leaves=6,
    )
    return st.dictionaries(NAMES, below, max_size=4)


STRING = Schema(type="string")
INTEGER = Schema(type="integer")
PORT = Schema(
    type="object",
    properties={"number": INTEGER, "protocol": Schema(type="string", default="TCP")},
)
ITEM = Schema(
    type="object",
    properties={
        "name": STRING,
        "image": STRING,
        "args": Schema(type="array", items=STRING),
        "ports": Schema(
            type="array",
            items=PORT,
            list_type="map",
            list_keys=("number", "protocol"),
        ),
        "flags": Schema(type="array", items=STRING, list_type="set", patch_strategy=("merge",)),
    },
)
SCHEMA = Schema(
    type="object",
    properties={
        "spec": Schema(
            type="object",
            open=True,
            properties={
                "replicas": INTEGER,
                "items": Schema(
                    type="array",
                    items=ITEM,
                    list_type="map",
                    list_keys=("name",),
                    merge_key="name",
                    patch_strategy=("merge",),
                ),
                "selector": Schema(type="object", values=STRING, atomic_map=True),
                "data": Schema(type="object", values=STRING),
                "strategy": Schema(
                    type="object",
                    properties={"type": STRING, "rolling": Schema(type="object", values=INTEGER)},
                    patch_strategy=("retainKeys",),
                ),
                "nested": Schema(
                    type="object",
                    properties={"inner": Schema(type="object", values=Schema(type="object"))},
                ),
            },
        ),
        "status": Schema(type="object", open=True),
    },
)
"""Every way of merging there is: by key, by value, by field, whole, keeping keys, unknown."""

TEXTS = st.sampled_from(["", "x", "y"])
ALL_NAMES = ["a", "b", "c"]


def _optional(fields):
    return st.fixed_dictionaries({}, optional=fields)


def _unique(strategy, key):
    return st.lists(strategy, max_size=3, unique_by=key)


PORTS = _unique(
    st.fixed_dictionaries(
        {"number": st.integers(1, 2)}, optional={"protocol": st.sampled_from(["TCP", "UDP"])}
    ),
    lambda port: (port["number"], port.get("protocol", "TCP")),
)
ITEMS = _unique(
    st.fixed_dictionaries(
        {"name": st.sampled_from(ALL_NAMES)},
        optional={
            "image": TEXTS,
            "args": st.lists(TEXTS, max_size=2),
            "ports": PORTS,
            "flags": st.lists(st.sampled_from(ALL_NAMES), max_size=3, unique=True),
        },
    ),
    lambda item: item["name"],
)
SPECS = _optional(
    {
        "replicas": st.integers(0, 2),
        "items": ITEMS,
        "selector": st.dictionaries(NAMES, TEXTS, max_size=2),
        "data": st.dictionaries(NAMES, TEXTS, max_size=2),
        "strategy": _optional(
            {"type": TEXTS, "rolling": st.dictionaries(NAMES, st.integers(0, 1), max_size=2)}
        ),
        "nested": _optional(
            {"inner": st.dictionaries(NAMES, st.dictionaries(NAMES, TEXTS, max_size=2), max_size=2)}
        ),
        "unknown": without_nulls(),
    }
)
METADATA = _optional(
    {
        "labels": st.dictionaries(NAMES, TEXTS, max_size=2),
        "finalizers": st.lists(st.sampled_from(ALL_NAMES), max_size=3, unique=True),
        "ownerReferences": _unique(
            st.fixed_dictionaries({"uid": st.sampled_from(ALL_NAMES)}, optional={"kind": TEXTS}),
            lambda owner: owner["uid"],
        ),
    }
)


def objects():
    """Objects that fit `SCHEMA`."""
    fixed = {"apiVersion": st.just("v1"), "kind": st.just("Thing")}
    optional = {"metadata": METADATA, "spec": SPECS, "status": without_nulls()}
    return st.fixed_dictionaries(fixed, optional=optional)


HOSTILE_KEYS = st.sampled_from(
    [
        "apiVersion", "kind", "metadata", "labels", "finalizers", "managedFields", "manager",
        "operation", "fieldsV1", "fieldsType", "spec", "items", "ports", "name", "number", "uid",
        "selector", "strategy", "flags", "$patch", "$retainKeys", "op", "path", "from", "value",
        "$setElementOrder/items", "$setElementOrder/finalizers", "$deleteFromPrimitiveList/flags",
        "$setElementOrder/", "f:spec", 'k:{"name":"a"}', "v:1", "i:0", "k:", "v:", "i:x", ".", "",
        "\ud800", "\x00", "é",
    ]
)  # fmt: skip
HOSTILE_SCALARS = st.one_of(
    SCALARS,
    st.sampled_from(
        ["delete", "replace", "merge", "v1", "Apply", "Update", "FieldsV1", "/spec", "add", "copy",
         "\ud800", "\x00", "TCP"]
    ),
    st.sampled_from([2**63, -(2**70), 10**400, 1e300, 0.5]),
)  # fmt: skip


def hostile():
    """JSON-shaped values that fit nothing, in the words a patch is made of."""
    small = st.recursive(
        HOSTILE_SCALARS,
        lambda below: (
            st.lists(below, max_size=3) | st.dictionaries(HOSTILE_KEYS, below, max_size=4)
        ),
        max_leaves=15,
    )
    return st.one_of(small, small.map(_deep))


def hostile_objects():
    """Objects that fit nothing."""
    return st.dictionaries(HOSTILE_KEYS, hostile(), max_size=5)


def _deep(value):
    for depth in range(90):
        value = {"spec": value} if depth % 2 else [value]
    return value


def outcome(call, *arguments, **named):
    """Return what a call gives, or the error of ours it raises; any other error goes on."""
    try:
        return call(*arguments, **named)
    except SpinneyError as error:
        return error
