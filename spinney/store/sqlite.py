"""The journal on disk: one SQLite database in the data folder, written ahead, flushed in groups.

Nothing is read from it after loading. What is damaged is found then: every page is looked over by
SQLite, every entry has a checksum, all entries together must come to what the table `journal` says,
and the newest must not be older than the mark. Nothing is written to a database before it passed.

After a commit or a compaction that failed, what is on the disk is in doubt. The connection is
closed, and the next call opens another, looks at what was kept, and undoes it if need be. Then the
log is folded into the database and starts over: what a failed flush left in the log may be lost
without a further error, and everything after it with it.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import apsw

from spinney.meta.errors import CorruptJournal, JournalFailed, JournalFull, SpinneyError
from spinney.ports import Entry
from spinney.store import tables
from spinney.store.journals import Superseded
from spinney.store.locks import FolderLock
from spinney.store.marks import Mark
from spinney.store.tables import Totals

NAME = "store.db"

Durability: TypeAlias = Literal["full", "relaxed"]
"""Full: what is acknowledged survives a loss of power. Relaxed: it survives a crash of ours."""

PAGE_BYTES = 4096
HEADER_BYTES = 100
"""What SQLite takes for an empty database if it is shorter, and would write over."""

WAL_BYTES_MAX = 32 * 1024 * 1024
"""How long the write-ahead log may grow before it is copied into the database at once."""

_FULL_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_DISK_ERRORS = (
    apsw.FullError,
    apsw.IOError,
    apsw.CantOpenError,
    apsw.PermissionsError,
    apsw.ReadOnlyError,
    apsw.BusyError,
    apsw.LockedError,
    apsw.NoMemError,
)


class SqliteJournal:
    """Keeps entries in `store.db` of a data folder, which it locks while it is open."""

    def __init__(self, folder: Path, durability: Durability = "full", *, vfs: str = "") -> None:
        """Touch nothing yet: `load` opens the folder. `vfs` is SQLite's way to the disk."""
        self.path = folder / NAME
        self._durability = durability
        self._vfs = vfs
        self._lock: FolderLock | None = None
        self._mark: Mark | None = None
        self._connection: apsw.Connection | None = None
        self._totals = Totals()
        self._attempt = Totals()
        self._going: list[int] = []
        self._superseded = Superseded()
        self._wal_pages = 0
        self._is_sound = False

    @property
    def floor(self) -> int:
        """The version up to which entries may have been forgotten."""
        return self._totals.floor

    @property
    def is_overdue(self) -> bool:
        """Whether the write-ahead log has grown too long."""
        return self._wal_pages * PAGE_BYTES > WAL_BYTES_MAX

    # Loading

    def load(self) -> Iterator[Entry]:
        """Yield what was kept; raises CorruptJournal, Held where another process has the folder."""
        self._superseded = Superseded()
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = FolderLock(self.path.parent)
            self._mark = Mark(self.path, self._durability)
            acknowledged = self._mark.read()
            size_bytes = self.path.stat().st_size if self.path.exists() else 0
            if size_bytes == 0 and acknowledged is not None:
                raise CorruptJournal(f"{self.path} is gone or empty, the mark beside it is not")
            if 0 < size_bytes < HEADER_BYTES:
                raise CorruptJournal(f"{self.path} is no database, it has {size_bytes} bytes")
            os.close(os.open(self.path, os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError as error:
            raise JournalFailed(f"{self.path.parent}: {error}") from error
        try:
            yield from self._load(acknowledged)
        except (apsw.Error, UnicodeDecodeError) as error:
            if isinstance(error, _DISK_ERRORS) and not _is_short(error):
                raise self._failure(error) from error
            raise CorruptJournal(f"{self.path}: {error}") from error
        self._is_sound = True
        self._begin_marking()

    def _load(self, acknowledged: int | None) -> Iterator[Entry]:
        self._connection = connection = self._open()
        schema = tables.schema_of(connection, self.path)
        if schema == 0 and acknowledged is not None:
            raise CorruptJournal(f"{self.path} has lost its tables")
        self._check_pages(connection)
        self._write_ahead(connection)
        tables.migrate(connection, self.path, schema)
        self._totals = expected = tables.read_totals(connection, self.path)
        newest, checksums = 0, []
        rows = tables.Rows(self.path)
        for row in connection.execute(tables.SELECT):
            entry = rows.entry(row)
            self._superseded.add(entry.version, entry.ref, is_deletion=entry.body is None)
            newest = entry.version
            checksums.append(row[7])
            yield entry
        found = Totals(floor=expected.floor).with_entries(newest, checksums)
        self._check_totals(found, expected, acknowledged or 0)

    def _begin_marking(self) -> None:
        """Make sure of what was found before the mark says so; an old mark is no harm."""
        assert self._connection is not None
        assert self._mark is not None
        with contextlib.suppress(apsw.Error, OSError):
            self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            self._mark.write(self._totals.newest)
            self._mark.flush()

    def _check_pages(self, connection: apsw.Connection) -> None:
        (verdict,) = next(iter(connection.execute("PRAGMA quick_check(1)")))
        if verdict != "ok":
            told = " ".join(verdict.removeprefix("*** in database main ***").split())
            raise CorruptJournal(f"{self.path}: {told}")

    def _check_totals(self, found: Totals, expected: Totals, acknowledged: int) -> None:
        if found != expected:
            raise CorruptJournal(
                f"{self.path}: entries are lost or stale: there are {found.count} up to version "
                f"{found.newest}, there should be {expected.count} up to {expected.newest}"
            )
        if found.newest < acknowledged:
            raise CorruptJournal(
                f"{self.path} ends at version {found.newest}, but version {acknowledged} was "
                "acknowledged: the end of the write-ahead log is lost"
            )

    def _open(self) -> apsw.Connection:
        """Open the database without changing anything in it."""
        connection = apsw.Connection(str(self.path), vfs=self._vfs or None)
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        connection.pragma("locking_mode", "exclusive")
        connection.pragma("page_size", PAGE_BYTES)
        connection.pragma("cell_size_check", True)
        return connection

    def _write_ahead(self, connection: apsw.Connection) -> None:
        """Have the database written ahead, and flushed as the durability asks."""
        connection.pragma("journal_mode", "wal")
        connection.pragma("synchronous", "full" if self._durability == "full" else "normal")
        connection.pragma("journal_size_limit", 2 * WAL_BYTES_MAX)
        connection.set_wal_hook(self._note_wal)

    def _note_wal(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        """Take note of the log's length; that this is called turns automatic checkpoints off."""
        self._wal_pages = pages
        return apsw.SQLITE_OK

    # Writing

    def commit(self, batch: Sequence[Entry]) -> None:
        """Keep a batch, wholly or not at all; raises JournalFull or JournalFailed."""
        rows = [tables.row_of(entry) for entry in batch]

        def insert(connection: apsw.Connection) -> Totals:
            connection.executemany(tables.INSERT, rows)
            return self._totals.with_entries(rows[-1][0], (row[7] for row in rows))

        self._transact(self._sound_connection(), insert)
        for entry in batch:
            self._superseded.add(entry.version, entry.ref, is_deletion=entry.body is None)
        if self._mark is not None and self._durability == "full":
            with contextlib.suppress(OSError):  # it may lag: what it speaks of is durable
                self._mark.write(self._totals.newest)

    def compact(self, before: int) -> None:
        """Forget superseded versions below a version; the space is used again."""
        connection = self._sound_connection()
        self._going = self._superseded.below(before)

        def delete(connection: apsw.Connection) -> Totals:
            gone = [
                checksum
                for version in self._going
                for (checksum,) in connection.execute(tables.DELETE, (version,))
            ]
            floor = max(self._totals.floor, before - 1)
            return self._totals.without_entries(gone).with_floor(floor)

        self._transact(connection, delete)
        self._superseded.drop(len(self._going))

    def _transact(
        self, connection: apsw.Connection, work: Callable[[apsw.Connection], Totals]
    ) -> None:
        """Do what leads to other totals in one transaction, wholly or not at all."""
        try:
            connection.execute("BEGIN IMMEDIATE")
            self._attempt = work(connection)
            tables.write_totals(connection, self._attempt)
            connection.execute("COMMIT")
        except apsw.Error as error:
            failure = self._failure(error)
            self._drop_connection()
            raise failure from error
        self._totals = self._attempt

    def _sound_connection(self) -> apsw.Connection:
        """Return the connection; where there is none, settle what the last failure left."""
        if self._connection is None:
            try:
                self._connection = self._open()
                self._write_ahead(self._connection)
                self._settle(self._connection)
                self._fold_in(self._connection)
            except (apsw.Error, CorruptJournal) as error:
                failure = self._failure(error)
                self._drop_connection()
                raise failure from error
        return self._connection

    def _settle(self, connection: apsw.Connection) -> None:
        """See to it that the database holds what was acknowledged, and nothing else."""
        found = tables.read_totals(connection, self.path)
        if found == self._totals:
            return
        if found != self._attempt:
            raise CorruptJournal(
                f"{self.path} lost entries while it was in use: it ends at version "
                f"{found.newest}, not at {self._totals.newest}"
            )
        if found.newest == self._totals.newest:
            self._totals = found
            self._superseded.drop(len(self._going))
            return
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("DELETE FROM entries WHERE version > ?", (self._totals.newest,))
        tables.write_totals(connection, self._totals)
        connection.execute("COMMIT")

    def _failure(self, error: Exception) -> SpinneyError:
        """Return what a failed write is told: whether space is short, or the disk failed."""
        if isinstance(error, apsw.FullError):
            return JournalFull(f"{self.path}: {error}")
        number = self._connection.system_errno if self._connection is not None else 0
        if isinstance(error, (apsw.IOError, apsw.CantOpenError)) and number in _FULL_ERRNOS:
            return JournalFull(f"{self.path}: {errno.errorcode[number]}: {error}")
        return JournalFailed(f"{self.path}: {error}")

    def _drop_connection(self) -> None:
        """Close a connection that failed, without writing anything."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(apsw.Error):
                connection.close(True)

    # Upkeep

    def tend(self) -> None:
        """Copy the write-ahead log into the database, so that it starts over."""
        connection = self._sound_connection()
        try:
            self._fold_in(connection)
        except apsw.Error as error:
            raise self._failure(error) from error

    def _fold_in(self, connection: apsw.Connection) -> None:
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        self._wal_pages = 0

    def close(self) -> None:
        """Fold the log into the database where the disk lets it, and give the folder back."""
        if self._connection is not None and self._is_sound:
            with contextlib.suppress(apsw.Error):
                self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        self._drop_connection()
        if self._mark is not None:
            self._mark.close()
            self._mark = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None


def _is_short(error: apsw.Error) -> bool:
    """Whether a file ended where it should go on; the disk itself did nothing wrong."""
    found: object = getattr(error, "extendedresult", None)
    return found == apsw.SQLITE_IOERR_SHORT_READ
