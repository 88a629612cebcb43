"""What a database error means: whether to send the command again, and what its code says.

The drivers differ (psycopg, and asyncpg on a caller's connection) and SQLAlchemy wraps them; here
they are read by SQLSTATE alone (spec P-01 to P-03, performance.md *Growing past one machine*).
"""

from __future__ import annotations

from typing import Any

import psycopg
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from testigo.store.replication import UnreplicatedError

__all__ = [
    "constraint_of",
    "is_connection_lost",
    "is_lock_timeout",
    "is_out_of_room",
    "is_pool_exhausted",
    "is_retryable",
    "is_undefined_table",
    "reason_of",
    "sqlstate_of",
]

_SERIALISATION = frozenset({"40001", "40P01"})
_NO_ROOM = frozenset({"53000", "53100", "53200", "53400"})
_SHUTDOWN = frozenset({"57P01", "57P02", "57P03", "57P05", "25P03", "53300"})


def is_retryable(error: BaseException) -> bool:
    """Whether the same command, sent whole and unchanged, may succeed (spec P-01).

    Serialisation failures and deadlocks were rolled back; a lost connection leaves it open whether
    the command was committed, and so does one that no standby may have; its receipt decides (spec P-03).
    """
    return sqlstate_of(error) in _SERIALISATION or is_connection_lost(error) or isinstance(error, UnreplicatedError)


def is_connection_lost(error: BaseException) -> bool:
    """Whether the connection is gone, or there was none, so that the command's fate is not known."""
    state = sqlstate_of(error)
    if state is not None:
        return state.startswith("08") or state in _SHUTDOWN
    if isinstance(error, DBAPIError):
        return bool(error.connection_invalidated) or _is_lost(error.orig)
    return _is_lost(error)


def is_lock_timeout(error: BaseException) -> bool:
    """Whether a wait for a lock took longer than its lock_timeout."""
    return sqlstate_of(error) == "55P03"


def is_out_of_room(error: BaseException) -> bool:
    """Whether the server had no disk, memory or other room for the command, which it therefore undid."""
    return sqlstate_of(error) in _NO_ROOM


def is_pool_exhausted(error: BaseException) -> bool:
    """Whether no connection of the pool became free in time; nothing was sent."""
    return isinstance(error, PoolTimeout)


def is_undefined_table(error: BaseException) -> bool:
    """Whether a table, or the schema that should hold it, does not exist."""
    return sqlstate_of(error) in {"42P01", "3F000"}


def sqlstate_of(error: BaseException) -> str | None:
    """The five characters of the server's answer; None if the server gave none."""
    state = getattr(_origin(error), "sqlstate", None)
    return str(state) if state else None


def constraint_of(error: BaseException) -> str | None:
    """The name of the constraint that a statement broke, if one was."""
    origin = _origin(error)
    name = getattr(getattr(origin, "diag", origin), "constraint_name", None)
    return str(name) if name else None


def reason_of(error: BaseException) -> str:
    """The driver's own words, in one line: without the statement, its parameters and the rows it met."""
    return str(_origin(error)).partition("\n")[0]


def _origin(error: BaseException) -> Any:
    """The driver's own error: below SQLAlchemy's wrapper, and below its asyncpg adapter's."""
    if not isinstance(error, DBAPIError):
        return error
    cause = getattr(error.orig, "__cause__", None)
    return cause if hasattr(cause, "sqlstate") else error.orig


def _is_lost(error: BaseException | None) -> bool:
    """Of an error without a code: psycopg has no other word for a connection that broke or never was."""
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
