"""Metadata: what every object carries, and the rules Kubernetes has for it."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Annotated

import msgspec

from spinney.meta import errors
from spinney.meta.cursors import Cursor
from spinney.meta.documents import Document, Json
from spinney.meta.errors import FieldError
from spinney.meta.records import Field, Record
from spinney.meta.schemas import Schema, schema_of

ANNOTATION_BYTES_MAX = 256 * 1024
"""How much all annotations of an object may hold, keys and values."""

LABEL_LENGTH_MAX = 63
SUBDOMAIN_LENGTH_MAX = 253

TEXTS_KEPT = 4096
"""For how many names, keys and values it is remembered what is wrong with them: most come often."""


class OwnerReference(Record):
    """An object this one belongs to, and is deleted with."""

    api_version: Annotated[str, Field("API version of the owner.", required=True)]
    kind: Annotated[str, Field("Kind of the owner.", required=True)]
    name: Annotated[str, Field("Name of the owner.", required=True)]
    uid: Annotated[str, Field("UID of the owner.", required=True)]
    controller: Annotated[bool | None, Field("Whether the owner is the managing controller.")] = (
        None
    )
    block_owner_deletion: Annotated[
        bool | None, Field("Whether deleting the owner in the foreground waits for this object.")
    ] = None


class ObjectMeta(Record):
    """What every object carries, whatever its kind.

    Who owns which fields (`managedFields`) is not read: it is half of many an object, and nobody's
    business who decides.
    """

    name: Annotated[str, Field("Name, unique in its namespace; cannot be changed.")] = ""
    generate_name: Annotated[
        str, Field("Prefix a unique name is made from where no name is given.")
    ] = ""
    namespace: Annotated[str, Field("Namespace the name is unique in.")] = ""
    uid: Annotated[str, Field("Identity in time and space; given by the server.")] = ""
    resource_version: Annotated[
        str, Field("Version of the stored object, opaque; given by the server.")
    ] = ""
    generation: Annotated[
        int, Field("Counts changes of the desired state; given by the server.", format="int64")
    ] = 0
    creation_timestamp: Annotated[
        datetime | None, Field("When the object was created; given by the server.")
    ] = None
    deletion_timestamp: Annotated[
        datetime | None, Field("When the object is to be gone; given by the server.")
    ] = None
    deletion_grace_period_seconds: Annotated[
        int | None, Field("How long deletion may take; given by the server.", format="int64")
    ] = None
    labels: Annotated[Mapping[str, str], Field("By which objects are selected.")] = {}
    annotations: Annotated[Mapping[str, str], Field("What tools keep with an object.")] = {}
    owner_references: Annotated[
        tuple[OwnerReference, ...],
        Field("Objects this one belongs to.", list_keys=("uid",)),
    ] = ()
    finalizers: Annotated[
        tuple[str, ...], Field("Who must act before the object is gone.", set_list=True)
    ] = ()
    self_link: Annotated[str, Field("No longer filled by anyone.")] = ""


class _Managed(Record):
    managed_fields: Annotated[
        tuple[Mapping[str, Json], ...],
        Field("Who owns which fields; kept by the server.", core="ManagedFieldsEntry"),
    ] = ()


def _schema() -> Schema:
    def resolve(name: str) -> Schema:
        return Schema(open=True, type_name=name)

    made = schema_of(ObjectMeta, resolve)
    properties = {**made.properties, **schema_of(_Managed, resolve).properties}
    properties["generation"] = msgspec.structs.replace(
        properties["generation"], default=msgspec.UNSET
    )
    owners = properties["ownerReferences"]
    owner = msgspec.structs.replace(owners.items or Schema(), atomic_map=True)
    properties["ownerReferences"] = msgspec.structs.replace(
        owners, items=owner, merge_key="uid", patch_strategy=("merge",)
    )
    properties["finalizers"] = msgspec.structs.replace(
        properties["finalizers"], patch_strategy=("merge",)
    )
    return msgspec.structs.replace(made, properties=properties)


METADATA: Schema = _schema()
"""The shape of `metadata` in every kind."""

_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(rf"{_LABEL.pattern}(?:\.{_LABEL.pattern})*")
_NAME_PART = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")

LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    r"for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
NAME_PART_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
LABEL_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  "
    "or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def _too_long(most: int) -> str:
    return f"must be no more than {most} characters"


@functools.lru_cache(maxsize=TEXTS_KEPT)
def dns_label_fault(text: str) -> str:
    """Return what must hold of a DNS label such as a namespace; "" if it does."""
    if len(text) > LABEL_LENGTH_MAX:
        return _too_long(LABEL_LENGTH_MAX)
    return "" if _LABEL.fullmatch(text) else LABEL_RULE


@functools.lru_cache(maxsize=TEXTS_KEPT)
def dns_subdomain_fault(text: str) -> str:
    """Return what must hold of a DNS subdomain such as most names; "" if it does."""
    if len(text) > SUBDOMAIN_LENGTH_MAX:
        return _too_long(SUBDOMAIN_LENGTH_MAX)
    return "" if _SUBDOMAIN.fullmatch(text) else SUBDOMAIN_RULE


@functools.lru_cache(maxsize=TEXTS_KEPT)
def qualified_name_fault(text: str) -> str:
    """Return what must hold of a qualified name such as a label's key; "" if it does."""
    prefix, slash, name = text.rpartition("/")
    if slash:
        if not prefix:
            return "prefix part must be non-empty"
        if fault := dns_subdomain_fault(prefix):
            return f"prefix part {fault}"
    if not name:
        return "name part must be non-empty"
    if len(name) > LABEL_LENGTH_MAX:
        return f"name part {_too_long(LABEL_LENGTH_MAX)}"
    return "" if _NAME_PART.fullmatch(name) else NAME_PART_RULE


@functools.lru_cache(maxsize=TEXTS_KEPT)
def label_value_fault(text: str) -> str:
    """Return what must hold of a label's value; "" if it does."""
    if len(text) > LABEL_LENGTH_MAX:
        return _too_long(LABEL_LENGTH_MAX)
    return "" if not text or _NAME_PART.fullmatch(text) else LABEL_VALUE_RULE


def is_dns_label(text: str) -> bool:
    """Whether a text is a lowercase RFC 1123 label."""
    return not dns_label_fault(text)


def is_dns_subdomain(text: str) -> bool:
    """Whether a text is a lowercase RFC 1123 subdomain."""
    return not dns_subdomain_fault(text)


def is_qualified_name(text: str) -> bool:
    """Whether a text is a name with or without a DNS prefix, as keys of labels are."""
    return not qualified_name_fault(text)


def is_label_value(text: str) -> bool:
    """Whether a text may be a label's value."""
    return not label_value_fault(text)


def metadata_faults(
    cursor: Cursor, *, namespaced: bool, name_fault: Callable[[str], str] = dns_subdomain_fault
) -> Iterator[FieldError]:
    """Yield what breaks the rules for metadata; the cursor stands at `metadata`.

    `name_fault` says what must hold of a name of the kind, "" if it does.
    """
    yield from _name_faults(cursor, name_fault)
    yield from _namespace_faults(cursor["namespace"], namespaced=namespaced)
    yield from label_faults(cursor["labels"])
    yield from annotation_faults(cursor["annotations"])
    yield from _owner_faults(cursor["ownerReferences"])
    for finalizer in cursor["finalizers"]:
        text = finalizer.string()
        if text is not None and (fault := qualified_name_fault(text)):
            yield finalizer.invalid(fault)


def _name_faults(cursor: Cursor, name_fault: Callable[[str], str]) -> Iterator[FieldError]:
    name, prefix = cursor["name"], cursor["generateName"]
    if (text := prefix.string()) and (fault := name_fault(_masked(text))):
        yield prefix.invalid(fault)
    if text := name.string():
        if fault := name_fault(text):
            yield name.invalid(fault)
    elif name.value in (None, "") and not prefix.string():
        yield name.required("name or generateName is required")


def _masked(prefix: str) -> str:
    """Return a prefix as it would look with a suffix: it may end with a dash."""
    return f"{prefix[:-1]}a" if len(prefix) > 1 and prefix.endswith("-") else prefix


def _namespace_faults(cursor: Cursor, *, namespaced: bool) -> Iterator[FieldError]:
    text = cursor.string()
    if not namespaced:
        if text:
            yield cursor.forbidden("not allowed on this type")
    elif text:
        if fault := dns_label_fault(text):
            yield cursor.invalid(fault)
    elif cursor.value in (None, ""):
        yield cursor.required()


def _invalid(cursor: Cursor, found: Json, message: str) -> FieldError:
    return FieldError(path=cursor.path, reason=errors.INVALID, message=message, found=found)


def label_faults(cursor: Cursor) -> Iterator[FieldError]:
    """Yield faults of keys and values, all told of `metadata.labels` as Kubernetes does."""
    labels = cursor.object() or {}
    for key, text in labels.items():
        if fault := qualified_name_fault(key):
            yield _invalid(cursor, key, fault)
        if isinstance(text, str) and (fault := label_value_fault(text)):
            yield _invalid(cursor, text, fault)


def annotation_faults(cursor: Cursor) -> Iterator[FieldError]:
    """Yield faults of keys and of the size all annotations have together."""
    size = 0
    annotations = cursor.object() or {}
    for key, text in annotations.items():
        if fault := qualified_name_fault(key.lower()):
            yield _invalid(cursor, key, fault)
        size += _byte_count(key) + (_byte_count(text) if isinstance(text, str) else 0)
    if size > ANNOTATION_BYTES_MAX:
        message = f"may not be more than {ANNOTATION_BYTES_MAX} bytes"
        yield FieldError(path=cursor.path, reason=errors.TOO_LONG, message=message)


def _byte_count(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))


def _owner_faults(cursor: Cursor) -> Iterator[FieldError]:
    controller: Document | None = None
    for owner in cursor:
        if not isinstance(owner.value, dict):
            continue
        for field in ("apiVersion", "kind", "name", "uid"):
            if owner.value.get(field) == "":
                yield owner[field].invalid("must not be empty")
        if owner["controller"].boolean():
            if controller is not None:
                message = (
                    "Only one reference can have Controller set to true. Found "
                    f'"true" in references for {_named(controller)} and {_named(owner.value)}'
                )
                yield _invalid(cursor, None, message)
            controller = owner.value


def _named(owner: Document) -> str:
    return f"{owner.get('kind')}/{owner.get('name')}"
