"""Checks of the server and of the role's settings: version, standby, isolation, time limits, durability."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection

from testigo.cli.doctor.findings import Finding, Level
from testigo.store.sql import Statement

__all__ = ["connections", "durability", "isolation", "limits", "pooler", "version"]

OLDEST = 15
"""The oldest PostgreSQL that is served."""
STATEMENT_SECONDS_MIN = 30.0
"""A statement_timeout below it may end a long settle or prune of ours."""
IDLE_SECONDS_MIN = 2.0
"""An idle transaction of ours that is ended sooner is one of a slow network."""
USED_SHARE_MAX = 0.8

_VERSION = Statement(
    """
    SELECT current_setting('server_version') AS version,
           CAST(current_setting('server_version_num') AS integer) / 10000 AS major,
           pg_is_in_recovery() AS is_standby, current_setting('server_encoding') AS encoding
    """
)

# What a new session of this role begins with; our own may have been changed since.
_SETTINGS = Statement(
    """
    SELECT name, reset_val AS value, unit
    FROM pg_settings
    WHERE name = ANY (CAST(:names AS text[]))
    """
)

_CONNECTIONS = Statement(
    """
    SELECT (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS used,
           CAST(current_setting('max_connections') AS integer) AS most,
           (SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user) AS role_limit,
           (SELECT count(*) FROM pg_stat_activity WHERE usename = current_user) AS role_used
    """
)

_WHO = Statement("SELECT pg_backend_pid() AS pid, quote_ident(current_user) AS role")


def version(c: Connection) -> Iterator[Finding]:
    """A server that is too old, only a standby, or not in UTF-8."""
    (row,) = _VERSION.rows(c)
    if row.major < OLDEST:
        yield Finding(
            "SERVER_TOO_OLD",
            Level.FAULT,
            f"The server is PostgreSQL {row.version}.",
            f"testigo is written and tested for PostgreSQL {OLDEST} and newer.",
            "Upgrade the server.",
            {"version": row.version},
        )
    if row.is_standby:
        yield Finding(
            "SERVER_IS_STANDBY",
            Level.FAULT,
            "The server is a standby: it can be read, and nothing can be written.",
            "Every submit, claim and settle writes.",
            "Connect to the primary, for instance with target_session_attrs=read-write in the URL.",
        )
    if row.encoding != "UTF8":
        yield Finding(
            "DATABASE_NOT_UTF8",
            Level.FAULT,
            f"The database is in {row.encoding}.",
            "Payloads and outputs that hold other characters are refused by it, and their jobs fail.",
            "Create the database anew with ENCODING 'UTF8'.",
            {"encoding": row.encoding},
        )


def isolation(c: Connection) -> Iterator[Finding]:
    """A role whose transactions do not begin as READ COMMITTED."""
    found = _settings(c, "default_transaction_isolation")["default_transaction_isolation"][0]
    if found != "read committed":
        yield Finding(
            "ISOLATION_UNSUPPORTED",
            Level.FAULT,
            f"Transactions of this role begin as {found.upper()}.",
            "The protocol reads after it has locked what was committed meanwhile; no command is run otherwise.",
            f"ALTER ROLE {_role(c)} SET default_transaction_isolation = 'read committed';",
            {"default_transaction_isolation": found},
        )


def limits(c: Connection) -> Iterator[Finding]:
    """Time limits of the role that are shorter than what testigo does."""
    least = {
        "statement_timeout": STATEMENT_SECONDS_MIN,
        "transaction_timeout": STATEMENT_SECONDS_MIN,
        "idle_in_transaction_session_timeout": IDLE_SECONDS_MIN,
    }
    found = _settings(c, *least)
    for name, (value, _) in found.items():
        seconds = int(value) / 1000
        if 0 < seconds < least[name]:
            yield Finding(
                "TIME_LIMIT_SHORT",
                Level.WARNING,
                f"{name} is {seconds:g} s for this role.",
                "A large batch or a slow disk then ends a command in its middle, over and over.",
                f"ALTER ROLE {_role(c)} SET {name} = '{max(60.0, least[name]):g}s'; or 0 for none.",
                {"setting": name, "seconds": seconds},
            )


def durability(c: Connection) -> Iterator[Finding]:
    """Settings with which a power cut loses what was acknowledged."""
    found = _settings(c, "fsync", "synchronous_commit", "full_page_writes")
    for name in ("fsync", "full_page_writes"):
        if found[name][0] == "off":
            yield Finding(
                "NOT_DURABLE",
                Level.FAULT,
                f"{name} is off.",
                "A power cut can destroy the whole database.",
                f"Set {name} = on in postgresql.conf and reload the server.",
                {"setting": name},
            )
    if found["synchronous_commit"][0] == "off":
        yield Finding(
            "NOT_DURABLE",
            Level.WARNING,
            "synchronous_commit is off for this role.",
            "A crash of the server loses the last half second: jobs that were acknowledged, results that were settled.",
            f"ALTER ROLE {_role(c)} SET synchronous_commit = on; see also ALTER DATABASE and postgresql.conf.",
            {"setting": "synchronous_commit"},
        )


def connections(c: Connection) -> Iterator[Finding]:
    """A server, or a role, that has few connections left."""
    (row,) = _CONNECTIONS.rows(c)
    for used, most, whose in ((row.used, row.most, "server"), (row.role_used, row.role_limit, "role")):
        if most > 0 and used > USED_SHARE_MAX * most:
            yield Finding(
                "FEW_CONNECTIONS_LEFT",
                Level.WARNING,
                f"{used} of the {whose}'s {most} connections are in use.",
                "Workers that find none cannot renew their sessions, and lose their jobs.",
                "Raise max_connections or the role's CONNECTION LIMIT, run fewer workers, or put a pooler in between.",
                {"used": used, "most": most, "whose": whose},
            )


def pooler(c: Connection) -> Iterator[Finding]:
    """A pooler between here and the server."""
    (row,) = _WHO.rows(c)
    driver: Any = c.connection.driver_connection
    if row.pid != driver.info.backend_pid:
        yield Finding(
            "POOLER",
            Level.NOTE,
            "A pooler stands between here and the server.",
            "All works through it; but nothing is woken, so work is found by polling once a second, and statements "
            "are not prepared.",
            "Let workers connect directly if that second matters.",
        )


def _settings(c: Connection, *names: str) -> dict[str, tuple[str, str | None]]:
    return {row.name: (row.value, row.unit) for row in _SETTINGS.rows(c, names=list(names))}


def _role(c: Connection) -> str:
    (row,) = _WHO.rows(c)
    return str(row.role)
