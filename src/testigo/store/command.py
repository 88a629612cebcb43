"""What a command is to the store: a function of a Connection, and how it is sent.

A command of one statement is sent in autocommit: no transaction of ours holds a lock while somebody
thinks (spec P-10). Any other runs in a transaction with time limits on waiting and on idling.
An answer that has `wakes` names with them the streams whose listeners should look again once it is
committed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from sqlalchemy import Connection

from testigo.settings import STORE
from testigo.store.sql import Statement

__all__ = [
    "AUTOCOMMIT_OPTION",
    "bounded",
    "is_single_statement",
    "keeping_lock_timeout",
    "savepoint",
    "single_statement",
]

F = TypeVar("F", bound=Callable[..., Any])

AUTOCOMMIT_OPTION = "testigo_autocommit"
"""Set on our own connections, whose engine opens them in autocommit."""

_MARK = "__testigo_single_statement__"

_BOUND = Statement(
    """
    SELECT set_config('lock_timeout', :lock_ms, true),
           set_config('idle_in_transaction_session_timeout', :idle_ms, true)
    """
)

_LOCK_TIMEOUT = Statement("SELECT current_setting('lock_timeout') AS lock_timeout")

_RESTORE = Statement("SELECT set_config('lock_timeout', :lock_timeout, true)")


def single_statement(command: F) -> F:
    """Mark a command that is one statement on its fast path: it is sent in autocommit."""
    setattr(command, _MARK, True)
    return command


def is_single_statement(command: Callable[..., Any]) -> bool:
    """Whether the command was marked by `single_statement`."""
    return bool(getattr(command, _MARK, False))


def bounded(c: Connection) -> None:
    """Bound this transaction's waits for locks and its idle time, until it ends (spec P-08, P-10)."""
    _BOUND.rows(
        c,
        lock_ms=str(int(STORE.lock_timeout_seconds * 1000)),
        idle_ms=str(int(STORE.idle_in_transaction_seconds * 1000)),
    )


@contextmanager
def keeping_lock_timeout(c: Connection) -> Iterator[None]:
    """On a caller's own connection: what we set for our statement is put back after it (spec P-02).

    A statement that fails, or is refused, is rolled back by the caller, and what it set with it.
    """
    found = _LOCK_TIMEOUT.rows(c)[0].lock_timeout
    yield
    _RESTORE.rows(c, lock_timeout=found)


@contextmanager
def savepoint(c: Connection) -> Iterator[None]:
    """A part of a transaction that can fail alone; in autocommit each statement already is one."""
    if is_autocommit(c):
        yield
        return
    with c.begin_nested():
        yield


def is_autocommit(c: Connection) -> bool:
    """Whether each statement on this connection commits by itself."""
    options = c.get_execution_options()
    return bool(options.get(AUTOCOMMIT_OPTION)) or options.get("isolation_level") == "AUTOCOMMIT"
