"""Which server a command asks, and asking it.

In this order: `--kubeconfig`; `--data`, where it is typed and its world is up; `$KUBECONFIG`; the
world under the data folder, where it is up; `~/.kube/config`.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from spinney.app.real import SystemClock, SystemEntropy
from spinney.cli import folders, screen
from spinney.cli.screen import Screen
from spinney.cli.usage import NoServer
from spinney.kube import kubeconfig
from spinney.kube.client import Client, Selection
from spinney.kube.kubeconfig import Connection
from spinney.kube.resources import Resource
from spinney.kube.transport import Transport
from spinney.kube.watching import Watch
from spinney.ports import Clock, Entropy

WATCH_FAILURES_MAX = 4


class Session:
    """One server, and the screen of the call that asks it."""

    def __init__(
        self,
        client: Client,
        connection: Connection,
        namespace: str,
        output: Screen,
        clock: Clock,
        entropy: Entropy,
    ) -> None:
        """Hold what every verb needs."""
        self.client = client
        self.connection = connection
        self.namespace = namespace
        self.screen = output
        self.clock = clock
        self.entropy = entropy

    def place(self, resource: Resource) -> str:
        """Return the namespace an object of a resource is in, "" for cluster scope."""
        return self.namespace if resource.namespaced else ""

    def watch(self, resource: Resource, selection: Selection, **form: str) -> Watch:
        """Return a watch that ends when the server is gone for good."""
        return Watch(
            self.client,
            resource,
            selection,
            clock=self.clock,
            entropy=self.entropy,
            failures_max=WATCH_FAILURES_MAX,
            **form,
        )


def talk(arguments: argparse.Namespace, work: Callable[[Session], Awaitable[int]]) -> int:
    """Run a verb against the server a call means; returns its exit code."""
    return asyncio.run(_talk(arguments, work))


async def _talk(arguments: argparse.Namespace, work: Callable[[Session], Awaitable[int]]) -> int:
    output = screen.for_call(arguments)
    connection = chosen(arguments)
    namespace = arguments.namespace or connection.namespace
    if arguments.verbose:
        output.note(f"asking {connection.server} ({connection.origin}), namespace {namespace}")
    clock = SystemClock()
    carrier = Transport(connection, clock, on_warning=output.warn)
    async with Client(carrier) as client:
        return await work(Session(client, connection, namespace, output, clock, SystemEntropy()))


def chosen(arguments: argparse.Namespace) -> Connection:
    """Return how to reach the server a call means; raises NoServer, BadKubeconfig."""
    if arguments.kubeconfig:
        return _of([Path(arguments.kubeconfig).expanduser()], arguments, "--kubeconfig")
    folder = folders.data(arguments)
    if arguments.data:
        if folder.holder() is None:
            raise NoServer(f"nothing is up under {folder.root}: start it with {_up(arguments)}")
        return _of([folder.kubeconfig], arguments, "the world under --data")
    given = folders.kubeconfigs()
    if given:
        found = kubeconfig.read(given, must_exist=False)
        return _told(found.connection(arguments.context or ""), "$KUBECONFIG")
    if folder.holder() is not None:
        return _of([folder.kubeconfig], arguments, f"the world under {folder.root}")
    home = folders.home_kubeconfig()
    if home.exists():
        return _of([home], arguments, "nothing is up here")
    raise NoServer(
        f"there is no server to ask: nothing is up under {folder.root}, and neither $KUBECONFIG "
        f"nor {home} names one. Start one with: {_up(arguments)}"
    )


def _up(arguments: argparse.Namespace) -> str:
    return f"spinney --data {arguments.data} up" if arguments.data else "spinney up"


def _of(paths: list[Path], arguments: argparse.Namespace, why: str) -> Connection:
    return _told(kubeconfig.read(paths).connection(arguments.context or ""), why)


def _told(connection: Connection, why: str) -> Connection:
    return connection.because(why)
