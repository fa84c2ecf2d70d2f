"""Ports: what the outside must provide, in every world.

The embedded world, a cluster and the simulator each fill them; nothing above knows which.
"""

from __future__ import annotations

import enum
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol, TypeVar

from spinney.meta.documents import Document
from spinney.meta.records import Record
from spinney.meta.references import GroupKind, Precondition, Ref

if TYPE_CHECKING:
    from spinney.api.core.pod import Pod
    from spinney.decisions.usage import NodeUsage, PodUsage

R = TypeVar("R", bound=Record)


class Change(enum.Enum):
    """What happened to an object."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"
    """Nothing happened up to the version it carries."""


class WatchEvent(Record):
    """One change of one object, or a bookmark."""

    change: Change
    resource_version: str
    ref: Ref | None = None
    document: Document | None = None
    """The object as it is now, or as it last was."""


class Page(Record):
    """Part of a list."""

    items: tuple[Document, ...]
    resource_version: str
    """The version the whole list is of: where a watch goes on."""

    token: str = ""
    """What to ask for the next page with; "" after the last."""


class Written(Record):
    """What a write left behind."""

    ref: Ref
    uid: str
    resource_version: str


class Identity(Record):
    """Who writes."""

    user: str
    groups: tuple[str, ...] = ()
    manager: str = ""
    """The field manager its writes are recorded under."""


class Entry(Record):
    """One version of one object, as a journal keeps it."""

    version: int
    ref: Ref
    uid: str
    body: bytes | None
    """The document in JSON; None where the object was deleted."""

    last: bytes | None = None
    """Where it was deleted: the document as it last was, with the deletion's version."""


class VolumeContent(Record):
    """What a volume of a pod holds, with secrets and config maps resolved."""

    files: Mapping[str, bytes] = {}
    """What it holds, by path below it: replaced as a whole when the pod is prepared again."""

    path: str = ""
    """For a folder of the node: where it stands."""

    read_only: bool = False
    mode: int = 0o644
    """Who may read its files; 0o600 for secrets."""

    modes: Mapping[str, int] = {}
    """By path, where a file's differs."""

    in_memory: bool = False
    """For an empty folder: whether memory shall hold it."""


class Sandbox(Record):
    """Where a pod's containers run."""

    pod_uid: str
    ip: str
    hostname: str
    root: str
    """The pod's folder on the node."""

    scope: str = ""
    """The cgroup or namespace that holds the pod's processes, where there is one."""

    volumes: Mapping[str, str] = {}
    """By name: where the volume's folder is on the node."""


class Mount(Record):
    """A volume, or a part of it, at a path of a container."""

    volume: str
    path: str
    sub_path: str = ""
    read_only: bool = False


class ContainerPlan(Record):
    """One container to be started, with everything resolved."""

    name: str
    attempt: int
    command: tuple[str, ...]
    environment: Mapping[str, str] = {}
    working_directory: str = ""
    log_path: str = ""
    """Where its output goes; "" for a file in the pod's folder."""

    mounts: tuple[Mount, ...] = ()
    ports: tuple[int, ...] = ()
    """The TCP ports it says it listens on."""

    devices: Mapping[str, int] = {}
    """How many of each extended resource it asks for: `nvidia.com/gpu`."""

    memory_bytes: int | None = None
    """Its limit, held where the machine can hold it."""

    stop_signal: int = 15


class ContainerState(Record):
    """What became of one attempt of one container."""

    pod_uid: str
    container: str
    attempt: int
    started_at: datetime | None = None
    ended_at: datetime | None = None
    exit_code: int | None = None
    signal: int | None = None
    reason: str = ""
    """Once it ended: `Completed`, `Error`, `OOMKilled`, `StartError`, `AddressInUse`,
    `ContainerStatusUnknown`."""

    message: str = ""


class LogOptions(Record):
    """Which part of a container's log is wanted."""

    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    since: datetime | None = None
    limit_bytes: int | None = None


class Streams(Protocol):
    """The two directions of something that talks: a command in a container, a connection."""

    async def read(self) -> bytes:
        """Return what came in, b"" at the end."""

    async def write(self, data: bytes) -> None:
        """Send; waits while the other side does not read."""

    async def end(self) -> None:
        """Send nothing more; what comes in is still read."""

    async def close(self) -> None:
        """End both directions."""


class Reader(Protocol):
    """A synchronous, indexed view of objects, in memory. It may lag behind the truth."""

    def get(self, record: type[R], namespace: str, name: str) -> R | None:
        """Return an object, None where there is none."""

    def list(
        self,
        record: type[R],
        *,
        namespace: str | None = None,
        by: tuple[str, str] | None = None,
    ) -> Sequence[R]:
        """Return objects sorted by Ref.

        `by` is an index and a value: ("owner", uid), ("node", name), ("label:<key>", value),
        what `meta.indexes.by_labels` returns of several labels, or one the app registered.
        """

    def seen(self, kind: GroupKind) -> int:
        """Return the highest resource version this view holds of a kind."""

    def on_change(self, kind: GroupKind, call: Callable[[Ref, Change], None]) -> None:
        """Have a function called after each change of a kind.

        A view that lags calls it with BOOKMARK and an empty name too: `seen` has risen, though no
        object need have changed.
        """


class Source(Protocol):
    """Lists and watches objects; an informer makes a Reader of one."""

    async def list(self, kind: GroupKind, *, limit: int, token: str = "") -> Page:
        """Return the next part of all objects of a kind."""

    def watch(self, kind: GroupKind, since: str) -> AsyncIterator[WatchEvent]:
        """Yield every change after a version; raises Expired where that is compacted away."""


class Writer(Protocol):
    """Writes one object a call, as one Identity. There are no transactions."""

    async def create(self, document: Document) -> Written:
        """Make an object; raises AlreadyExists."""

    async def apply(self, document: Document, *, force: bool) -> Written:
        """Server-side apply; raises ApplyConflict."""

    async def patch(
        self, target: Ref, merge: Document, only_if: Precondition, subresource: str = ""
    ) -> Written:
        """Merge-patch an object; raises NotFound, or Conflict where the precondition fails."""

    async def put_status(self, target: Ref, status: Document, resource_version: str) -> Written:
        """Replace the whole status; raises Conflict where the object is of another version."""

    async def delete(
        self,
        target: Ref,
        only_if: Precondition,
        *,
        grace_seconds: int | None,
        propagation: str,
    ) -> None:
        """Delete an object; raises NotFound, or Conflict where the precondition fails."""

    async def evict(self, target: Ref, only_if: Precondition) -> None:
        """Delete a pod; raises TooManyRequests where a disruption budget forbids it now."""

    async def bind(self, pod: Ref, node: str, only_if: Precondition) -> None:
        """Give a pod its node; raises Conflict where it has one."""


class Clock(Protocol):
    """Time, passed in."""

    def now(self) -> datetime:
        """Return the wall time, in UTC. It may jump."""

    def elapsed(self) -> timedelta:
        """Return monotonic time, for back-off, probes and metrics."""

    async def sleep(self, duration: timedelta) -> None:
        """Wait."""


class Entropy(Protocol):
    """Chance, passed in."""

    def uid(self) -> str:
        """Return a new uid."""

    def suffix(self, length: int) -> str:
        """Return letters and digits for a generated name."""

    def token(self, size_bytes: int) -> str:
        """Return a secret."""

    def jitter(self, most: timedelta) -> timedelta:
        """Return a duration from nothing to `most`."""


class Journal(Protocol):
    """Where the store keeps what it must not lose. Called on the one writer thread only."""

    @property
    def floor(self) -> int:
        """The version up to which entries may have been forgotten; known once loading began."""

    @property
    def is_overdue(self) -> bool:
        """Whether upkeep should wait for a quiet moment no longer."""

    def load(self) -> Iterator[Entry]:
        """Yield what was kept, oldest version first; raises CorruptJournal naming the row."""

    def commit(self, batch: Sequence[Entry]) -> None:
        """Keep a batch, wholly or not at all; returns when it is durable.

        Raises JournalFull or JournalFailed.
        """

    def compact(self, before: int) -> None:
        """Forget superseded versions below a version; raises as `commit` does."""

    def tend(self) -> None:
        """Do the upkeep that waits for a quiet moment; raises as `commit` does."""

    def close(self) -> None:
        """Let go of the files."""


class Window(Record):
    """How large a terminal is."""

    columns: int
    rows: int


class Console(Protocol):
    """Who talks to a command that runs in a container."""

    async def read(self) -> bytes:
        """Return what was typed next; b"" once nothing more will come."""

    async def write(self, data: bytes) -> None:
        """Take what the command printed; waits while the other side does not read."""

    async def write_error(self, data: bytes) -> None:
        """Take what it printed as errors; with a terminal all of it goes to `write`."""

    async def resized(self) -> Window | None:
        """Wait for the terminal's next size; None once there will be no other."""


class PodMetrics(Protocol):
    """What is known of how much pods use, in memory. What is old is not told."""

    def usage(self, pod_uid: str) -> PodUsage | None:
        """Return what was last measured of a pod; None where nothing is known."""


class PodRuntime(Protocol):
    """One node's pods. All calls are idempotent by (pod uid, container, attempt)."""

    async def prepare(self, pod: Pod, volumes: Mapping[str, VolumeContent]) -> Sandbox:
        """Make the place a pod's containers run in."""

    async def start(self, sandbox: Sandbox, container: ContainerPlan) -> None:
        """Start one attempt of a container."""

    async def stop(self, pod_uid: str, container: str, grace_seconds: int) -> None:
        """Ask a container to end, and end it after the grace period."""

    async def remove(self, pod_uid: str) -> None:
        """End and forget a pod."""

    async def adopt(self) -> tuple[ContainerState, ...]:
        """Return, after a restart, what still runs, and what ended meanwhile and how."""

    def events(self) -> AsyncIterator[ContainerState]:
        """Yield what becomes of containers."""

    def logs(self, pod_uid: str, container: str, options: LogOptions) -> AsyncIterator[bytes]:
        """Yield a container's output; one that is followed ends with the container's attempt."""

    async def exec(
        self,
        pod_uid: str,
        container: str,
        command: tuple[str, ...],
        console: Console,
        *,
        terminal: bool = False,
    ) -> int:
        """Run a command in a container; returns its exit code.

        With `terminal` it gets a terminal of its own; without, its output and errors stay apart.
        Cancelling ends the command.
        """

    async def connect(self, pod_uid: str, port: int) -> Streams:
        """Open a connection to a port of a pod; raises Unavailable where nobody listens."""


class Nodes(PodMetrics, Protocol):
    """The nodes whose pods this process can reach."""

    def runtime(self, node: str) -> PodRuntime:
        """Return what runs a node's pods.

        Raises Unavailable, saying why, where there is no such node or it is not connected.
        """

    def node_usage(self, node: str) -> NodeUsage | None:
        """Return what was last measured of a node; None where nothing is known."""
