"""The embedded world: store, registry, controllers and server of one data folder, in this process.

Opened in this order: the folder and its lock, certificates and tokens, the journal, the server,
and last the kubeconfig; so whoever finds a kubeconfig finds a server that answers, and two
processes never have one journal.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import ipaddress
import logging
import os
import socket
import ssl
from datetime import timedelta

import yaml

import spinney
from spinney.api.kinds import KINDS
from spinney.app import credentials, files, listeners, local_node, pki
from spinney.app.credentials import Tokens
from spinney.app.datafolder import DataFolder, Holder, Lock
from spinney.app.listeners import BadAddress, PortTaken
from spinney.app.nodes import Grounds
from spinney.app.pki import Certificates
from spinney.controllers import catalog as controllers
from spinney.controllers import upkeep
from spinney.engine.manager import Manager
from spinney.engine.metrics import CONTENT_TYPE, PrometheusMetrics
from spinney.meta.records import Record
from spinney.nodes.fleet.shapes import Nodes
from spinney.ports import Clock, Entropy, Identity, Journal
from spinney.registry import world as worlds
from spinney.registry.world import World
from spinney.server.access import Access, Grant
from spinney.server.serving import Server
from spinney.store.journals import MemoryJournal
from spinney.store.reader import StoreReader
from spinney.store.sqlite import SqliteJournal
from spinney.store.store import Store

LOG = logging.getLogger("spinney.app")

CONTROLLERS = Identity(user="system:spinney:controllers", manager="spinney-controllers")
"""Who the controllers write as."""

GC_THRESHOLDS = (50_000, 50, 1000)
"""Objects live long and hold no cycles: Python need not look for garbage often."""

RENEWAL_PERIOD_MOST = timedelta(days=1)
"""A clock may jump: whether the certificate is near its end is looked up at least so often."""

_NO_SUCH_ADDRESS = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


class Options(Record):
    """How a world is opened."""

    host: str = "127.0.0.1"
    port: int = 7443
    durability: str = "full"
    """`full`, `relaxed` or `memory`."""

    nodes: Nodes = Nodes()
    """Which nodes there are; none, unless said."""


class Embedded:
    """A world that is up."""

    def __init__(
        self, folder: DataFolder, options: Options, clock: Clock, entropy: Entropy, lock: Lock
    ) -> None:
        """Own a held folder; `open_embedded` makes one that answers."""
        self.folder = folder
        self.options = options
        self.address = ""
        self.store: Store | None = None
        self.world: World | None = None
        self._clock = clock
        self._entropy = entropy
        self._lock = lock
        self._server: Server | None = None
        self._manager: Manager | None = None
        self._grounds: Grounds | None = None
        self._since = clock.now()

    async def open(self) -> None:
        """Load what was kept, and answer."""
        hosts = _names_of(self.options.host)
        with self.folder.explained():
            certificates = pki.prepare(self.folder.pki, hosts, self._clock.now())
            tokens = credentials.prepare(self.folder.tokens, self._entropy)
        self._certificates = certificates
        self._tls = pki.server_context(certificates)
        self.store = await Store.open(self._journal(), self._clock)
        self.world = await worlds.open_world(self.store, self._clock, self._entropy)
        _settle_garbage_collector()
        metrics = PrometheusMetrics()
        self._put_together(self.world, metrics)
        assert self._grounds is not None
        self._server = Server(
            self.world,
            _access(tokens),
            self._clock,
            checks={"controllers": self._controllers_fault, **self._grounds.checks},
            pages={"/metrics": lambda: (metrics.text(), CONTENT_TYPE)},
            nodes=self._grounds.roster,
        )
        host, port = await self._listen(self._server)
        self.address = f"https://{_reached_by(host)}:{port}"
        with self.folder.explained():
            self._write_kubeconfig(certificates, tokens)
        self._lock.tell(self.holder)
        LOG.info(
            "up",
            extra={
                "address": self.address,
                "data": self.folder.root,
                "objects": self.store.statistics().objects,
                "version": spinney.__version__,
            },
        )

    def _put_together(self, world: World, metrics: PrometheusMetrics) -> None:
        """Have controllers and nodes over the store itself, so that nothing they see is old."""
        kinds = [kind for kind in KINDS.values() if kind.stored_as is None]
        reader = StoreReader(world.store, kinds)
        self._grounds = Grounds(
            self.options.nodes, self.folder, world, reader, self._clock, self._entropy, metrics
        )
        self._manager = Manager(
            reader,
            world.writer(CONTROLLERS),
            self._clock,
            self._entropy,
            (
                *controllers.controllers(reader, metrics=self._grounds.roster),
                *(upkeep.controllers(reader) if self.options.nodes.are_any else ()),
            ),
            metrics=metrics,
        )

    def _controllers_fault(self) -> str:
        """Return why controllers cannot be relied on yet, "" where they can."""
        if self._manager is not None and self._manager.ready:
            return ""
        return "controllers have not looked at everything yet"

    @property
    def holder(self) -> Holder:
        """Who holds the folder: this process, and where it listens."""
        return Holder(
            pid=os.getpid(),
            since=self._since,
            address=self.address,
            durability=self.options.durability,
            version=spinney.__version__,
            nodes=self.options.nodes.texts,
        )

    async def run(self) -> None:
        """Keep everything in order, until cancelled; an exception is a bug of ours."""
        assert self.world is not None
        assert self._manager is not None
        assert self._grounds is not None
        async with asyncio.TaskGroup() as group:
            group.create_task(self.world.run(), name="world")
            group.create_task(self._manager.run(), name="controllers")
            group.create_task(self._grounds.run(), name="nodes")
            group.create_task(self._renew_certificates(), name="certificates")

    async def wait_ready(self) -> None:
        """Wait until `/readyz` says so: nodes are there, and everything was looked at."""
        assert self._manager is not None
        assert self._grounds is not None
        await self._grounds.wait_ready()
        await self._manager.wait_ready()

    async def close(self) -> None:
        """End what runs, answer no more, commit what is queued, and let the folder go."""
        try:
            if self._grounds is not None:
                await self._grounds.end()
            if self._server is not None:
                await self._server.stop()
            if self.store is not None:
                await self.store.close()
        finally:
            self._lock.release()
            if self.address:
                LOG.info("down", extra={"data": self.folder.root})

    def _journal(self) -> Journal:
        if self.options.durability == "memory":
            return MemoryJournal()
        is_relaxed = self.options.durability == "relaxed"
        return SqliteJournal(self.folder.root, "relaxed" if is_relaxed else "full")

    async def _listen(self, server: Server) -> tuple[str, int]:
        host, port = self.options.host, self.options.port
        try:
            return await server.start(host, port, self._tls)
        except socket.gaierror as error:
            raise BadAddress(f"--listen {host}: no such host: {error.strerror}") from error
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise PortTaken(host, port) from error
            if error.errno in _NO_SUCH_ADDRESS:
                raise BadAddress(f"--listen {host}: this machine has no such address") from error
            if error.errno == errno.EACCES:
                raise BadAddress(
                    f"--listen {host}:{port}: ports below 1024 are root's: choose another"
                ) from error
            raise

    def _write_kubeconfig(self, certificates: Certificates, tokens: Tokens) -> None:
        document = credentials.kubeconfig(self.address, certificates.authority, tokens.admin)
        text = yaml.safe_dump(document, sort_keys=False)
        files.write_if_changed(self.folder.kubeconfig, text.encode())

    async def _renew_certificates(self) -> None:
        """Take a new server certificate before the old one ends; open connections keep theirs."""
        while True:
            left = self._certificates.renew_at - self._clock.now()
            await self._clock.sleep(max(min(left, RENEWAL_PERIOD_MOST), timedelta(minutes=1)))
            if self._clock.now() < self._certificates.renew_at:
                continue
            try:
                self._certificates = pki.prepare(
                    self.folder.pki, _names_of(self.options.host), self._clock.now()
                )
                self._tls.load_cert_chain(self._certificates.server_file)
            except (OSError, ssl.SSLError):
                LOG.exception("the server certificate could not be renewed")
            else:
                LOG.info("the server certificate is renewed")


async def open_embedded(
    folder: DataFolder, options: Options, clock: Clock, entropy: Entropy
) -> Embedded:
    """Open the world of a data folder.

    Raises Held, BadDataFolder, CorruptJournal, JournalFailed, PortTaken, BadAddress; then nothing
    is held.
    """
    folder.make()
    starting = Holder(pid=os.getpid(), since=clock.now(), version=spinney.__version__)
    lock = Lock.take(folder, starting)
    embedded = Embedded(folder, options, clock, entropy, lock)
    try:
        await embedded.open()
    except BaseException as error:
        LOG.error("not up", extra={"data": folder.root, "reason": error})
        await embedded.close()
        raise
    return embedded


def _access(tokens: Tokens) -> Access:
    return Access(
        (
            Grant(token=tokens.admin),
            Grant(token=tokens.read_only, user="reader", groups=(), read_only=True),
            Grant(token=tokens.agent, user=local_node.USER, groups=("system:nodes",)),
        )
    )


def _names_of(host: str) -> tuple[str, ...]:
    """Return what the server is reached by, beyond loopback, when it listens on a host."""
    if listeners.is_loopback(host):
        return ()
    if not _is_everywhere(host):
        return (host,)
    own = socket.gethostname()
    found = {own: None}
    with contextlib.suppress(OSError):
        for _, _, _, _, address in socket.getaddrinfo(own, None, type=socket.SOCK_STREAM):
            found[str(address[0]).partition("%")[0]] = None
    for family, somewhere in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((somewhere, 9))
            found[str(probe.getsockname()[0])] = None
    return tuple(found)


def _is_everywhere(host: str) -> bool:
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_unspecified
    return False


def _reached_by(host: str) -> str:
    """Return the host that clients on this machine use."""
    if _is_everywhere(host):
        return "127.0.0.1" if "." in host else "[::1]"
    return f"[{host}]" if ":" in host else host


def _settle_garbage_collector() -> None:
    """Take what was loaded out of what Python searches for garbage, and search on."""
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    gc.enable()
