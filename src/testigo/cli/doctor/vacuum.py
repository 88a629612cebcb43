"""Checks of what keeps the server from cleaning up: old snapshots, prepared transactions, replication slots."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection

from testigo.cli.doctor.findings import Finding, Level
from testigo.cli.written import size, span
from testigo.store.sql import Statement

__all__ = ["autovacuum", "prepared", "slots", "transactions"]

TRANSACTION_SECONDS_MAX = 300.0
PREPARED_SECONDS_MAX = 60.0
SLOT_BYTES_MAX = 1024**3
SHOWN = 5

_WHY = (
    "What changes fast, as the queue's index does, cannot be cleaned meanwhile: claims become slower and tables "
    "grow, and receipts are not pruned."
)

# Of other roles' sessions the server tells when they began only to who may read all statistics; that
# they hold something, it tells everybody.
_TRANSACTIONS = Statement(
    """
    SELECT pid, usename AS role, application_name AS application, coalesce(state, '') AS state,
           CAST(extract(epoch FROM clock_timestamp() - xact_start) AS double precision) AS seconds
    FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
      AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
      AND xact_start < clock_timestamp() - CAST(:seconds AS double precision) * interval '1 second'
    ORDER BY xact_start
    LIMIT :shown
    """
)

_PREPARED = Statement(
    """
    SELECT gid, owner, CAST(extract(epoch FROM clock_timestamp() - prepared) AS double precision) AS seconds
    FROM pg_prepared_xacts
    WHERE database = current_database()
      AND prepared < clock_timestamp() - CAST(:seconds AS double precision) * interval '1 second'
    ORDER BY prepared
    LIMIT :shown
    """
)

_SLOTS = Statement(
    """
    SELECT slot_name AS slot, active, xmin IS NOT NULL OR catalog_xmin IS NOT NULL AS holds_rows,
           CAST(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn) AS bigint) AS bytes
    FROM pg_replication_slots
    WHERE NOT pg_is_in_recovery()
      AND (pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn) > CAST(:bytes AS bigint) OR NOT active)
    ORDER BY bytes DESC NULLS LAST
    LIMIT :shown
    """
)

_AUTOVACUUM = Statement("SELECT current_setting('autovacuum') AS autovacuum")


def transactions(c: Connection) -> Iterator[Finding]:
    """Transactions that have been open for long."""
    for row in _TRANSACTIONS.rows(c, seconds=TRANSACTION_SECONDS_MAX, shown=SHOWN):
        who = f"{row.role}, {row.application}" if row.application else str(row.role)
        yield Finding(
            "LONG_TRANSACTION",
            Level.WARNING,
            f"A transaction of {who} (pid {row.pid}, {row.state}) has been open for {span(row.seconds)}.",
            _WHY,
            f"Let its owner end it, or: SELECT pg_terminate_backend({row.pid}); and set "
            "idle_in_transaction_session_timeout for that role.",
            {"pid": row.pid, "role": row.role, "application": row.application, "seconds": row.seconds},
        )


def prepared(c: Connection) -> Iterator[Finding]:
    """Transactions that were prepared (two-phase commit) and forgotten."""
    for row in _PREPARED.rows(c, seconds=PREPARED_SECONDS_MAX, shown=SHOWN):
        yield Finding(
            "PREPARED_TRANSACTION",
            Level.WARNING,
            f"The transaction {row.gid!r} of {row.owner} has been prepared for {span(row.seconds)}, and not ended.",
            f"It holds its locks, restarts included. {_WHY}",
            "Ask its coordinator, then COMMIT PREPARED or ROLLBACK PREPARED by its name.",
            {"gid": row.gid, "owner": row.owner, "seconds": row.seconds},
        )


def slots(c: Connection) -> Iterator[Finding]:
    """Replication slots that nobody reads, or that are far behind."""
    for row in _SLOTS.rows(c, bytes=SLOT_BYTES_MAX, shown=SHOWN):
        state = "is behind" if row.active else "has no reader"
        held = f" It holds back {size(row.bytes)} of write-ahead log." if row.bytes else ""
        yield Finding(
            "REPLICATION_SLOT",
            Level.WARNING,
            f"The replication slot {row.slot!r} {state}.{held}",
            "The log that a slot holds back fills the disk in the end, and then the server stops.",
            f"Start its reader again, or: SELECT pg_drop_replication_slot('{row.slot}');",
            {"slot": row.slot, "active": row.active, "bytes": row.bytes, "holds_rows": row.holds_rows},
        )


def autovacuum(c: Connection) -> Iterator[Finding]:
    """A server that does not clean up by itself."""
    (row,) = _AUTOVACUUM.rows(c)
    if row.autovacuum == "off":
        yield Finding(
            "AUTOVACUUM_OFF",
            Level.WARNING,
            "autovacuum is off.",
            _WHY.replace("cannot be cleaned meanwhile", "is not cleaned"),
            "Set autovacuum = on in postgresql.conf and reload the server.",
        )
