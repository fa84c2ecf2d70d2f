"""The tables of the database, how a row is checked, and how older databases are brought along.

Every entry carries a checksum of all it says. The one row of `journal` says how many entries there
must be and what their checksums come to together, so that an entry that is gone is missed too.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

import apsw

from spinney.meta.errors import CorruptJournal
from spinney.meta.records import Record
from spinney.meta.references import GroupKind, Ref
from spinney.ports import Entry

APPLICATION_ID = 0x53504E59
"""What says in the file's header that it is one of ours: "SPNY"."""

Row: TypeAlias = "tuple[int, str, str, str, str, str, int, int, bytes]"

INSERT = "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
DELETE = "DELETE FROM entries WHERE version = ? RETURNING checksum"
SELECT = "SELECT * FROM entries ORDER BY version"


class Totals(Record):
    """What the entries must come to together."""

    newest: int = 0
    floor: int = 0
    count: int = 0
    digest: int = 0

    def with_entries(self, newest: int, checksums: Iterable[int]) -> Totals:
        """Return the totals with newer entries."""
        digest, count = self.digest, self.count
        for checksum in checksums:
            digest ^= checksum
            count += 1
        return Totals(newest=newest, floor=self.floor, count=count, digest=digest)

    def without_entries(self, checksums: Iterable[int]) -> Totals:
        """Return the totals with entries gone."""
        gone = Totals().with_entries(0, checksums)
        return Totals(
            newest=self.newest,
            floor=self.floor,
            count=self.count - gone.count,
            digest=self.digest ^ gone.digest,
        )

    def with_floor(self, floor: int) -> Totals:
        """Return the totals once entries may be forgotten up to a version."""
        return Totals(newest=self.newest, floor=floor, count=self.count, digest=self.digest)


def _make_first_tables(connection: apsw.Connection) -> None:
    connection.execute(
        """
        CREATE TABLE entries (
          version INTEGER PRIMARY KEY, api_group TEXT NOT NULL, kind TEXT NOT NULL,
          namespace TEXT NOT NULL, name TEXT NOT NULL, uid TEXT NOT NULL,
          is_deletion INTEGER NOT NULL, checksum INTEGER NOT NULL, document BLOB NOT NULL
        ) STRICT;
        CREATE TABLE journal (
          id INTEGER PRIMARY KEY CHECK (id = 1), schema INTEGER NOT NULL, newest INTEGER NOT NULL,
          floor INTEGER NOT NULL, count INTEGER NOT NULL, digest INTEGER NOT NULL,
          checksum INTEGER NOT NULL
        ) STRICT;
        """
    )
    connection.pragma("application_id", APPLICATION_ID)
    write_totals(connection, Totals(), 1)


MIGRATIONS: tuple[Callable[[apsw.Connection], None], ...] = (_make_first_tables,)
"""Each brings a database from one schema to the next, the first from nothing."""


class NewerJournal(CorruptJournal):
    """The database was written by a newer Spinney: use that one."""


class ForeignJournal(CorruptJournal):
    """The file is a database, but not one of ours: move it out of the way."""


def migrate(connection: apsw.Connection, path: Path, schema: int) -> None:
    """Bring a database to the newest schema; raises NewerJournal where it is beyond that."""
    if schema > len(MIGRATIONS):
        raise NewerJournal(
            f"{path} has schema {schema}, this Spinney knows up to {len(MIGRATIONS)}: "
            "use the newer Spinney that wrote it"
        )
    for step in range(schema, len(MIGRATIONS)):
        with connection:
            totals = read_totals(connection, path) if step else Totals()
            MIGRATIONS[step](connection)
            write_totals(connection, totals, step + 1)


def schema_of(connection: apsw.Connection, path: Path) -> int:
    """Return the number of the schema, 0 for a database with nothing in it.

    Raises CorruptJournal where it is none of ours. Changes nothing in it.
    """
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
    application = connection.pragma("application_id")
    if not names and not application:
        return 0
    if application != APPLICATION_ID:
        raise ForeignJournal(
            f"{path} is a database of another program (application id {application}): "
            "move it away, or give another --data"
        )
    if "journal" not in names:
        raise CorruptJournal(f"{path} has lost its tables")
    return _journal_row(connection, path)[0]


def _journal_row(connection: apsw.Connection, path: Path) -> tuple[int, Totals]:
    rows = list(
        connection.execute("SELECT schema, newest, floor, count, digest, checksum FROM journal")
    )
    if len(rows) != 1 or not all(isinstance(value, int) for value in rows[0]):
        raise CorruptJournal(f"{path}: the table journal is damaged: {rows!r:.200}")
    schema, newest, floor, count, digest, checksum = rows[0]
    totals = Totals(newest=newest, floor=floor, count=count, digest=digest)
    if checksum != _totals_checksum(totals, schema):
        raise CorruptJournal(f"{path}: the table journal is damaged: its checksum is wrong")
    return schema, totals


def read_totals(connection: apsw.Connection, path: Path) -> Totals:
    """Return what the entries must come to; raises CorruptJournal where that is damaged."""
    return _journal_row(connection, path)[1]


def write_totals(connection: apsw.Connection, totals: Totals, schema: int | None = None) -> None:
    """Put on record what the entries must come to."""
    schema = len(MIGRATIONS) if schema is None else schema
    connection.execute(
        "INSERT OR REPLACE INTO journal VALUES (1, ?, ?, ?, ?, ?, ?)",
        (
            schema,
            totals.newest,
            totals.floor,
            totals.count,
            totals.digest,
            _totals_checksum(totals, schema),
        ),
    )


def _totals_checksum(totals: Totals, schema: int) -> int:
    text = f"{schema} {totals.newest} {totals.floor} {totals.count} {totals.digest}"
    return zlib.crc32(text.encode())


def _entry_checksum(heading: str, document: bytes) -> int:
    return zlib.crc32(document, zlib.crc32(heading.encode()))


def row_of(entry: Entry) -> Row:
    """Return an entry as the row that keeps it."""
    ref = entry.ref
    document = entry.last if entry.body is None else entry.body
    assert document is not None, f"{ref} at version {entry.version} has no document"
    is_deletion = int(entry.body is None)
    heading = (
        f"{entry.version}\0{ref.kind.group}\0{ref.kind.kind}\0{ref.namespace}\0{ref.name}"
        f"\0{entry.uid}\0{is_deletion}"
    )
    checksum = _entry_checksum(heading, document)
    return (
        entry.version,
        ref.kind.group,
        ref.kind.kind,
        ref.namespace,
        ref.name,
        entry.uid,
        is_deletion,
        checksum,
        document,
    )


class Rows:
    """Makes entries of rows again, checked, sharing the kinds and namespaces they name."""

    def __init__(self, path: Path) -> None:
        """Name a database in what is raised."""
        self._path = path
        self._kinds: dict[tuple[str, str], GroupKind] = {}
        self._namespaces: dict[str, str] = {}

    def entry(self, row: Row) -> Entry:
        """Return the entry of a row; raises CorruptJournal naming it where it is damaged."""
        version, group, kind, namespace, name, uid, is_deletion, checksum, document = row
        heading = f"{version}\0{group}\0{kind}\0{namespace}\0{name}\0{uid}\0{is_deletion}"
        try:
            found = _entry_checksum(heading, document)
        except (TypeError, UnicodeEncodeError):
            found = -1
        if found != checksum:
            raise CorruptJournal(
                f"{self._path}: the entry at version {version!r:.40} is damaged: its checksum is "
                f"wrong; it says it is {kind!r:.80} {namespace!r:.80} {name!r:.80}"
            )
        group_kind = self._kinds.get((group, kind))
        if group_kind is None:
            group_kind = self._kinds[group, kind] = GroupKind(group=group, kind=kind)
        namespace = self._namespaces.setdefault(namespace, namespace)
        ref = Ref(kind=group_kind, namespace=namespace, name=name)
        if is_deletion:
            return Entry(version=version, ref=ref, uid=uid, body=None, last=document)
        return Entry(version=version, ref=ref, uid=uid, body=document)
