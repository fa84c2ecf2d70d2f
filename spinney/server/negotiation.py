"""Negotiation: in which form a client takes the answer."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import ClassVar

from spinney.meta.errors import ApiError
from spinney.meta.records import Record

JSON = "application/json"
YAML = "application/yaml"
META = "meta.k8s.io"
DISCOVERY = "apidiscovery.k8s.io"

TABLE = "Table"
PARTIAL = "PartialObjectMetadata"
PARTIAL_LIST = "PartialObjectMetadataList"

ACCEPT_LENGTH_MAX = 2000


class NotAcceptable(ApiError):
    """The caller takes none of the forms there are."""

    code: ClassVar[int] = 406
    reason: ClassVar[str] = "NotAcceptable"


class Form(Record):
    """A form of an answer."""

    media: str = JSON
    shape: str = ""
    """"" for the object itself; else what it is turned into: `Table` and the like."""

    version: str = "v1"
    group: str = ""


def _offers(accept: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield what a client takes, what it likes best first."""
    found: list[tuple[int, int, str, dict[str, str]]] = []
    for index, part in enumerate(accept[:ACCEPT_LENGTH_MAX].split(",")):
        media, *rest = (piece.strip() for piece in part.split(";"))
        parameters: dict[str, str] = {}
        for piece in rest:
            key, _, value = piece.partition("=")
            parameters[key.strip().casefold()] = value.strip()
        weight = _weight(parameters.pop("q", "1"))
        if weight:
            found.append((-weight, index, media.casefold(), parameters))
    for _, _, media, parameters in sorted(found, key=lambda offer: offer[:2]):
        yield media, parameters


def _weight(text: str) -> int:
    """Return a quality such as `0.8` in thousandths; what is no quality counts full."""
    whole, _, fraction = text.partition(".")
    digits = (fraction + "000")[:3]
    if whole not in ("0", "1") or not (digits.isascii() and digits.isdigit()):
        return 1000
    return min(1000, int(whole) * 1000 + int(digits))


_SHAPES = (TABLE, PARTIAL, PARTIAL_LIST)


@functools.lru_cache(maxsize=256)
def form(accept: str) -> Form:
    """Return the form for an object or a list; raises NotAcceptable."""
    for media, parameters in _offers(accept or "*/*"):
        chosen = _MEDIA.get(media)
        if chosen is None:
            continue
        shape = parameters.get("as", "")
        if not shape:
            return Form(media=chosen)
        group, version = parameters.get("g", META), parameters.get("v", "v1")
        if shape in _SHAPES and group == META and version in ("v1", "v1beta1"):
            return Form(media=chosen, shape=shape, version=version)
    raise NotAcceptable(
        f"only the following media types are accepted: {JSON}, {YAML}, "
        f"{JSON};as={TABLE};v=v1;g={META}, {JSON};as={PARTIAL};v=v1;g={META}, "
        f"{JSON};as={PARTIAL_LIST};v=v1;g={META}"
    )


@functools.lru_cache(maxsize=256)
def discovery_version(accept: str) -> str:
    """Return the version of aggregated discovery a client takes, "" for the legacy form."""
    for media, parameters in _offers(accept or "*/*"):
        if media not in _MEDIA:
            continue
        if not parameters:
            return ""
        version = parameters.get("v", "")
        wanted = parameters.get("as"), parameters.get("g"), version
        if wanted in (
            ("APIGroupDiscoveryList", DISCOVERY, "v2"),
            ("APIGroupDiscoveryList", DISCOVERY, "v2beta1"),
        ):
            return version
    return ""


_MEDIA: Mapping[str, str] = {
    "*/*": JSON,
    "application/*": JSON,
    JSON: JSON,
    YAML: YAML,
}
