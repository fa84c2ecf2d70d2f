"""The names under which pods of headless services are found, as Kubernetes' DNS has them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from spinney.api.core.pod import Pod
from spinney.decisions import pods

DOMAIN: Final = "cluster.local"


def names(members: Iterable[Pod]) -> dict[str, tuple[str, ...]]:
    """Return addresses by name, for pods that say a hostname and a subdomain.

    `HOST.SUBDOMAIN.NAMESPACE.svc` is one pod, `SUBDOMAIN.NAMESPACE.svc` all of them; shorter forms
    work as far as no two namespaces would have the same.
    """
    found: dict[str, dict[str, None]] = {}
    short: dict[str, set[str]] = {}
    there = [pod for pod in members if pod.status.pod_ip and not pods.is_ended(pod)]
    for pod in sorted(there, key=_order):
        if not pod.spec.subdomain:
            continue
        namespace, service = pod.metadata.namespace, pod.spec.subdomain
        services = [service]
        if pod.spec.hostname:
            services.append(f"{pod.spec.hostname}.{service}")
        for name in services:
            for form in (f"{name}.{namespace}.svc.{DOMAIN}", f"{name}.{namespace}.svc"):
                found.setdefault(form, {})[pod.status.pod_ip] = None
            for form in (f"{name}.{namespace}", name):
                short.setdefault(form, set()).add(f"{name}.{namespace}.svc")
    for form, meant in short.items():
        if len(meant) == 1 and form not in found:
            found[form] = found[next(iter(meant))]
    return {name: tuple(addresses) for name, addresses in found.items()}


def _order(pod: Pod) -> tuple[str, str]:
    return pod.metadata.namespace, pod.metadata.name
