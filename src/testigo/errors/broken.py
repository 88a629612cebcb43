"""The installation needs a hand."""

from __future__ import annotations

from testigo.errors.root import Error

__all__ = [
    "BackupInvalid",
    "BlobCorrupt",
    "BlobsUnusable",
    "Broken",
    "EmbeddedUnusable",
    "IsolationUnsupported",
    "KeysUnusable",
    "ProtocolBroken",
    "SchemaMismatch",
    "StreamBroken",
]


class Broken(
    Error,
    code="BROKEN",
    http_status=500,
    exit_status=15,
    remedy="Follow the message; the installation needs a hand.",
):
    """The installation, not the command, is at fault."""


class SchemaMismatch(
    Broken, code="SCHEMA_MISMATCH", remedy="Run the migrations: `testigo migrate`, or Database.migrate()."
):
    """The database's schema and this code do not fit each other."""


class IsolationUnsupported(
    Broken,
    code="ISOLATION_UNSUPPORTED",
    remedy="ALTER ROLE <role> SET default_transaction_isolation = 'read committed';",
):
    """The role's default transaction isolation is not READ COMMITTED (spec P-02)."""


class EmbeddedUnusable(Broken, code="EMBEDDED_UNUSABLE"):
    """The embedded server cannot be started on this directory or machine."""


class KeysUnusable(
    Broken,
    code="KEYS_UNUSABLE",
    remedy="Make the folder 0700 and its files 0600, both owned by the account that runs testigo and no symlinks.",
):
    """The folder of keys cannot be trusted or written: others may read it, or it is not ours."""


class BlobsUnusable(
    Broken, code="BLOBS_UNUSABLE", remedy="See that the folder of blobs is writable and its disk has room."
):
    """The folder of blobs cannot be read or written. No part of a blob became visible."""


class BlobCorrupt(Broken, code="BLOB_CORRUPT", remedy="Restore the blob from a backup; its bytes have changed."):
    """A blob's bytes do not have the digest that names them."""


class BackupInvalid(
    Broken,
    code="BACKUP_INVALID",
    remedy="Restore another backup: this one is not what was written. Nothing was restored.",
):
    """A backup lacks something that its manifest tells of, or its bytes have changed (spec D-22)."""


class StreamBroken(
    Broken,
    code="STREAM_BROKEN",
    remedy="Stop what reads this stream and restore the database: events were removed by other means than pruning.",
):
    """A stream does not hold every event between its floor and its head (spec B-03)."""


class ProtocolBroken(
    Broken,
    code="PROTOCOL_BROKEN",
    remedy="See that no handler reads, writes or closes descriptors that it did not open.",
):
    """A keeper and its runner do not understand each other: what came is no frame, or no message."""
