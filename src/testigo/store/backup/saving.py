"""save: write a backup, which is there whole or not at all."""

from __future__ import annotations

import gzip
import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from testigo.errors import BlobCorrupt, Broken, Invalid, NotFound, SchemaMismatch
from testigo.store.backup.manifest import BLOBS, MANIFEST, Manifest, TableCopy, digest_of_names, table_file
from testigo.store.backup.tables import VERSION_TABLE, Table, connected, tables
from testigo.store.blobs import BlobStore
from testigo.store.schema import EXPECTED_VERSION

__all__ = ["save"]

_LEVEL = 3


def save(url: Any, schema: str, blobs: BlobStore, target: Path) -> Manifest:
    """Write a backup of the installation in `schema` and of `blobs` into the folder `target`, which is made.

    While it is written nobody waits for it, but migrations. A blob that is not there or has changed is told by the
    manifest, and does not end it. Raises `Invalid` for a folder that is not empty, `SchemaMismatch` for a schema that
    is not this release's, and `Broken` for a disk that cannot be written.
    """
    with _folder(target) as folder:
        with connected(url, read_only=True) as c:
            found = tables(c, schema)
            about = _about(c, schema, found)
            c.execute(
                sql.SQL("LOCK TABLE {} IN ACCESS SHARE MODE").format(
                    sql.SQL(", ").join(table.place for table in found.values())
                )
            )
            copied = tuple(_copy(c, table, folder) for name, table in found.items() if name != VERSION_TABLE)
            named = {digest for (digest,) in c.execute(_NAMED.format(found["artifact"].place))}
        kept = _copy_blobs(blobs, BlobStore(folder / BLOBS), named)
        manifest = Manifest(testigo=version("testigo"), schema=schema, tables=copied, **about, **kept)
        _write(folder / MANIFEST, manifest.to_text().encode())
    return manifest


_ABOUT = sql.SQL(
    """
    SELECT v.version_num, CAST(i.id AS text), current_setting('server_version'),
           to_char(now(), 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
    FROM {} v, {} i
    """
)

_NAMED = sql.SQL("SELECT unnest(ARRAY[digest, attestation]) FROM {}")


def _about(c: psycopg.Connection, schema: str, found: dict[str, Table]) -> dict[str, Any]:
    if VERSION_TABLE not in found:
        raise SchemaMismatch(f"The schema {schema!r} does not exist in this database yet.", expected=EXPECTED_VERSION)
    (row,) = c.execute(_ABOUT.format(found[VERSION_TABLE].place, found["installation"].place))
    at, installation, server, taken_at = map(str, row)
    if at != EXPECTED_VERSION:
        raise SchemaMismatch(
            f"The database's schema is version {at}; this release backs up {EXPECTED_VERSION}.",
            found=at,
            expected=EXPECTED_VERSION,
        )
    return {"schema_version": at, "installation": installation, "server": server, "taken_at": taken_at}


def _copy(c: psycopg.Connection, table: Table, folder: Path) -> TableCopy:
    taken, rows, size = hashlib.sha256(), 0, 0
    file = table_file(folder, table.name)
    with file.open("xb") as raw:
        with (
            gzip.GzipFile("", "wb", _LEVEL, raw, mtime=0) as packed,
            c.cursor() as cursor,
            cursor.copy(table.copy_out(table.columns)) as rows_out,
        ):
            for data in rows_out:
                taken.update(data)
                size += len(data)
                rows += bytes(data).count(b"\n")  # COPY escapes those in values
                packed.write(data)
        raw.flush()
        os.fsync(raw.fileno())
    return TableCopy(table.name, table.columns, rows, size, f"sha256:{taken.hexdigest()}")


def _copy_blobs(source: BlobStore, target: BlobStore, named: set[str]) -> dict[str, Any]:
    """Copy all blobs; those that rows name are told where they are missing."""
    size, copied, corrupt = 0, [], []
    for digest in source.digests():
        try:
            with source.open(digest) as stream:
                blob = target.put(stream)
        except NotFound:  # it was deleted since it was seen
            continue
        except BlobCorrupt:
            corrupt.append(digest)
            continue
        copied.append(digest)
        size += blob.size
    return {
        "blobs": len(copied),
        "blob_bytes": size,
        "blobs_digest": digest_of_names(copied),
        "missing": tuple(sorted(named - {*copied, *corrupt})),
        "corrupt": tuple(corrupt),
    }


@contextmanager
def _folder(target: Path) -> Iterator[Path]:
    """A folder that gets its name when everything is in it and on disk; for its owner alone: it tells everything."""
    new = target.absolute().with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise Invalid(f"{target} is there already.", field="directory", limit="a folder that is new or empty")
        new.mkdir(mode=0o700, parents=True)
        (new / "tables").mkdir(mode=0o700)
        yield new
        for folder in (new / "tables", new):
            _sync(folder)
        new.rename(target)
        _sync(new.parent)
    except OSError as error:
        raise Broken(
            f"{target} cannot be written: {error}.", remedy="See that there is room, and try again."
        ) from error
    finally:
        with suppress(FileNotFoundError):
            shutil.rmtree(new)


def _write(file: Path, data: bytes) -> None:
    with file.open("xb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
