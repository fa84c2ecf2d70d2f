"""Selecting: which services of a namespace select a pod, without asking each of them.

Services that name the same label keys are looked up by the values of those keys: so what it costs
grows with how many sorts of selectors there are, not with how many services.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from spinney.api import groupkinds
from spinney.api.core.pod import Pod
from spinney.api.core.services import Service
from spinney.decisions import endpoints
from spinney.meta.references import Ref
from spinney.ports import Change, Reader

_Keys: TypeAlias = tuple[str, ...]


class Selecting:
    """Knows the selectors of all services; kept up to date from their changes."""

    def __init__(self, reader: Reader) -> None:
        """Look at a reader's services when first asked, and at each that changes from then on."""
        self._reader = reader
        self._is_filled = False
        self._selectors: dict[Ref, Mapping[str, str]] = {}
        self._found: dict[str, dict[_Keys, dict[_Keys, set[Ref]]]] = {}
        reader.on_change(groupkinds.SERVICE, self._changed)

    def services_of(self, pod: Pod) -> Iterator[Ref]:
        """Yield the services that select a pod; none before it has an address."""
        if not pod.status.pod_ip:
            return
        if not self._is_filled:
            self._fill()
        labels = pod.metadata.labels
        for keys, by_values in self._found.get(pod.metadata.namespace, {}).items():
            values = tuple(labels.get(key, "") for key in keys)
            yield from sorted(by_values.get(values, ()))

    def _fill(self) -> None:
        self._is_filled = True
        for service in self._reader.list(Service):
            self._put(_ref(service), service)

    def _changed(self, ref: Ref, change: Change) -> None:
        if not self._is_filled or change is Change.BOOKMARK:
            return
        service = self._reader.get(Service, ref.namespace, ref.name)
        kept = service is not None and endpoints.is_kept(service)
        if service is not None and kept and self._selectors.get(ref) == service.spec.selector:
            return
        self._drop(ref)
        if service is not None:
            self._put(ref, service)

    def _put(self, ref: Ref, service: Service) -> None:
        if not endpoints.is_kept(service):
            return
        selector = service.spec.selector
        keys = tuple(sorted(selector))
        by_keys = self._found.setdefault(ref.namespace, {})
        by_values = by_keys.setdefault(keys, {})
        by_values.setdefault(tuple(selector[key] for key in keys), set()).add(ref)
        self._selectors[ref] = selector

    def _drop(self, ref: Ref) -> None:
        selector = self._selectors.pop(ref, None)
        if selector is None:
            return
        keys = tuple(sorted(selector))
        values = tuple(selector[key] for key in keys)
        by_keys = self._found[ref.namespace]
        by_values = by_keys[keys]
        by_values[values].discard(ref)
        if not by_values[values]:
            del by_values[values]
        if not by_values:
            del by_keys[keys]
        if not by_keys:
            del self._found[ref.namespace]


def _ref(service: Service) -> Ref:
    metadata = service.metadata
    return Ref(kind=groupkinds.SERVICE, namespace=metadata.namespace, name=metadata.name)
