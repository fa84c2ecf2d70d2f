"""What merging must know of a schema beyond what it says itself."""

from __future__ import annotations

import msgspec

from spinney.meta.metadata import METADATA
from spinney.meta.schemas import Schema


def with_metadata(schema: Schema) -> Schema:
    """Return the schema with `METADATA` in it, unless it tells of metadata itself."""
    if "metadata" in schema.properties:
        return schema
    properties = {**schema.properties, "metadata": METADATA}
    return msgspec.structs.replace(schema, properties=properties)


def child(schema: Schema | None, key: str) -> Schema | None:
    """Return the schema of one field or entry of an object, None where nothing is known of it."""
    if schema is None:
        return None
    found = schema.properties.get(key)
    return schema.values if found is None else found
