"""Addresses: the one each service is reached at, of loopback's wide network.

Which are taken is asked of the store's heads, through an index, so nothing has to be given back
or restored: an address is free when no service has it. It is looked for from a place the
service's name decides, so a service that is made anew gets the address it had, if it is free.
"""

from __future__ import annotations

import ipaddress
import zlib
from collections.abc import Iterator

from spinney.api.core.services import HEADLESS
from spinney.api.kinds import Kind
from spinney.meta import errors
from spinney.meta.documents import Document, Json, list_at, object_at, string_at
from spinney.meta.errors import FieldError, Internal
from spinney.meta.references import GroupKind
from spinney.registry import requests
from spinney.store.store import Store, Stored

SERVICE = GroupKind(group="", kind="Service")
NETWORK = ipaddress.IPv4Network("127.96.0.0/12")
"""Where services live; the rest of 127.0.0.0/8 is the pods' and the machine's own."""

_INDEX = "address"
_ALLOCATED = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")


def register(store: Store) -> None:
    """Have the store find services by address."""
    store.register(SERVICE, _INDEX, _address_of)


def _address_of(stored: Stored) -> Iterator[str]:
    address = string_at(stored.document(), ("spec", "clusterIP"))
    if address and address != HEADLESS:
        yield address


def addressed(store: Store, kind: Kind, service: Document) -> Document:
    """Return a service with its address and what goes with it; raises Invalid where it is taken."""
    spec = object_at(service, ("spec",))
    if spec.get("type") == "ExternalName":
        bare: Document = {key: value for key, value in spec.items() if key not in _ALLOCATED}
        return {**service, "spec": bare}
    name = string_at(service, ("metadata", "name"))
    namespace = string_at(service, ("metadata", "namespace"))
    asked = _asked(spec)
    if asked and asked != HEADLESS:
        _check(store, kind, name, namespace, asked)
    address = asked or _free(store, f"{namespace}/{name}")
    filled: Document = {
        **spec,
        "clusterIP": address,
        "clusterIPs": [address],
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
    }
    return {**service, "spec": filled}


def carried_over(before: Document, after: Document) -> Document:
    """Return a changed service with the address it has, where its writer says none."""
    was, spec = object_at(before, ("spec",)), object_at(after, ("spec",))
    if was.get("type") == "ExternalName" or not was.get("clusterIP"):
        return after
    if spec.get("type") == "ExternalName":
        if spec.get("clusterIP") not in (None, "", was["clusterIP"]):
            return after
        bare: Document = {key: value for key, value in spec.items() if key not in _ALLOCATED}
        return {**after, "spec": bare}
    kept: Document = {
        key: was[key] for key in _ALLOCATED if key in was and spec.get(key) in (None, "", [])
    }
    return {**after, "spec": {**spec, **kept}} if kept else after


def _asked(spec: Document) -> str:
    listed = list_at(spec, ("clusterIPs",))
    first = listed[0] if listed and isinstance(listed[0], str) else ""
    return string_at(spec, ("clusterIP",)) or first


def _check(store: Store, kind: Kind, name: str, namespace: str, address: str) -> None:
    fault = ""
    try:
        inside = ipaddress.IPv4Address(address) in NETWORK
    except ValueError:
        fault = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
    else:
        if not inside:
            fault = (
                f"failed to allocate IP {address}: the provided IP is not in the valid range. "
                f"The range of valid IPs is {NETWORK}"
            )
        elif any(
            (stored.ref.namespace, stored.ref.name) != (namespace, name)
            for stored in store.heads(SERVICE, by=(_INDEX, address))
        ):
            fault = f"failed to allocate IP {address}: provided IP is already allocated"
    if fault:
        listed: list[Json] = [address]
        raise requests.invalid(
            kind,
            name,
            FieldError(path="spec.clusterIPs", reason=errors.INVALID, message=fault, found=listed),
        )


def _free(store: Store, key: str) -> str:
    """Return the first address nobody has, from where the key decides, past both ends."""
    places = NETWORK.num_addresses - 2
    first = zlib.crc32(key.encode())
    for step in range(places):
        address = str(NETWORK[1 + (first + step) % places])
        if not store.heads(SERVICE, by=(_INDEX, address)):
            return address
    raise Internal(f"every address of {NETWORK} is taken")
