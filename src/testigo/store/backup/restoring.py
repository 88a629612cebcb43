"""check and restore: a backup is looked at as a whole before anything is changed, and again where it was restored."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from testigo.errors import BackupInvalid, BlobCorrupt, Conflict, SchemaMismatch
from testigo.store.backup.manifest import BLOBS, Manifest, TableCopy, digest_of_names, table_file
from testigo.store.backup.tables import VERSION_TABLE, Table, connected, tables
from testigo.store.blobs import CHUNK_BYTES, BlobStore
from testigo.store.schema import EXPECTED_VERSION, migrate

__all__ = ["check", "restore"]


def check(source: Path) -> Manifest:
    """Read a whole backup, and compare everything with its manifest; raises `BackupInvalid` for what differs."""
    manifest = Manifest.read(source)
    for table in manifest.tables:
        taken, size, rows = hashlib.sha256(), 0, 0
        for data in _rows(source, table):
            taken.update(data)
            size += len(data)
            rows += data.count(b"\n")
        if (f"sha256:{taken.hexdigest()}", size, rows) != (table.digest, table.bytes, table.rows):
            raise BackupInvalid(f"The rows of the table {table.name} have changed.", field=f"tables.{table.name}")
    blobs = BlobStore(source / BLOBS)
    digests = list(blobs.digests())
    if (len(digests), digest_of_names(digests)) != (manifest.blobs, manifest.blobs_digest):
        raise BackupInvalid("Its blobs are not those that were backed up.", field="blobs")
    for digest in digests:
        try:
            with blobs.open(digest) as stream:
                while stream.read(CHUNK_BYTES):
                    pass
        except BlobCorrupt as error:
            raise BackupInvalid(f"The blob {digest} has changed.", field="blobs") from error
    return manifest


def restore(source: Path, url: Any, schema: str, blobs: BlobStore) -> Manifest:
    """Restore a backup into an installation that holds nothing; its schema is made if it is not there.

    What is there is looked at before anything is changed, and again under a lock. All rows come in one transaction,
    which compares each table with the backup before it commits: exact identities, or nothing. Blobs come first, so that
    no row names one that is not there. Raises `BackupInvalid`; `SchemaMismatch` for a backup of another release's
    schema; `Conflict` for an installation that holds something; and what `migrate` raises.
    """
    manifest = check(source)
    if manifest.schema_version != EXPECTED_VERSION:
        raise SchemaMismatch(
            f"The backup's schema is version {manifest.schema_version}; this release restores {EXPECTED_VERSION}.",
            remedy=f"Restore it with testigo {manifest.testigo}, which made it, and migrate then.",
            found=manifest.schema_version,
            expected=EXPECTED_VERSION,
        )
    with connected(url, read_only=True) as c:
        _must_be_free(c, schema)
    _copy_blobs(BlobStore(source / BLOBS), blobs)
    migrate(url, schema)
    with connected(url, read_only=False) as c:
        found = tables(c, schema)
        found.pop(VERSION_TABLE)
        if found.keys() != {table.name for table in manifest.tables}:
            raise BackupInvalid("Its tables are not those of this release.", field="tables")
        places = sql.SQL(", ").join(table.place for table in found.values())
        c.execute(sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(places))
        _empty(c, schema, found)
        for table in manifest.tables:
            _copy_in(c, source, found[table.name], table)
        for table in manifest.tables:
            _compare(c, found[table.name], table)
        c.execute(sql.SQL("ANALYZE {}").format(places))
    return manifest


def _must_be_free(c: psycopg.Connection, schema: str) -> None:
    """Refuse a schema that holds an installation, of whatever version, or what is another's."""
    found = tables(c, schema)
    if found and VERSION_TABLE not in found:
        raise Conflict(
            f"The schema {schema!r} holds what is not testigo's: the table {next(iter(found))}.",
            field="schema",
            remedy="Restore into an empty database, or with --schema beside what is there.",
        )
    for table in found.values():
        if table.name != VERSION_TABLE and not table.is_single:
            _must_be_empty(c, schema, table)


def _copy_blobs(source: BlobStore, target: BlobStore) -> None:
    for digest in source.digests():
        with source.open(digest) as stream:
            target.put(stream)


def _empty(c: psycopg.Connection, schema: str, found: dict[str, Table]) -> None:
    """Take away the rows that a migration inserts; whatever else is there is not restored over."""
    for table in found.values():
        if table.is_single:
            c.execute(sql.SQL("DELETE FROM {}").format(table.place))
        else:
            _must_be_empty(c, schema, table)


def _must_be_empty(c: psycopg.Connection, schema: str, table: Table) -> None:
    if c.execute(sql.SQL("SELECT 1 FROM {} LIMIT 1").format(table.place)).fetchone():
        raise Conflict(
            f"The schema {schema!r} holds an installation already: its table {table.name} has rows.",
            field="schema",
            remedy="Restore into an empty database, or with --schema beside what is there.",
        )


def _copy_in(c: psycopg.Connection, source: Path, table: Table, copied: TableCopy) -> None:
    with c.cursor() as cursor, cursor.copy(table.copy_in(copied.columns)) as rows_in:
        for data in _rows(source, copied):
            rows_in.write(data)


def _compare(c: psycopg.Connection, table: Table, copied: TableCopy) -> None:
    """Read back what was restored: it is what was backed up, to the last byte of its text."""
    taken = hashlib.sha256()
    with c.cursor() as cursor, cursor.copy(table.copy_out(copied.columns)) as rows_out:
        for data in rows_out:
            taken.update(data)
    if f"sha256:{taken.hexdigest()}" != copied.digest:
        raise BackupInvalid(
            f"The table {table.name} is not restored as it was.",
            field=f"tables.{table.name}",
            remedy="See that this server writes values as the other did: its version, its encoding. Nothing was kept.",
        )


def _rows(source: Path, table: TableCopy) -> Iterator[bytes]:
    try:
        with gzip.open(table_file(source, table.name), "rb") as file:
            while data := file.read(CHUNK_BYTES):
                yield data
    except (OSError, EOFError, zlib.error) as error:
        raise BackupInvalid(
            f"The rows of the table {table.name} cannot be read: {error}.", field=f"tables.{table.name}"
        ) from error
