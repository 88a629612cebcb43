"""The connections of an engine, to be ended, and the server's processes behind them where no pooler hides these."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import psycopg
from sqlalchemy import Connection, Engine, event

from testigo.store.backend import Backend

__all__ = ["Backends"]

_SELF = "SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()"


class Backends:
    """Those of one engine, as its pool opens and closes connections; any thread may look (spec P-10)."""

    def __init__(self, engine: Engine, opened: Callable[[], object] | None = None) -> None:
        """`opened` is called before a connection of this engine is used, once its server process is known."""
        self._told = opened
        self._lock = threading.RLock()  # garbage that is found meanwhile may close a connection
        self._connections: WeakSet[psycopg.Connection] = WeakSet()
        self._open: dict[Any, Backend] = {}
        self._in_use_since: WeakKeyDictionary[Any, float] = WeakKeyDictionary()
        # First of all that is done with a new connection: whatever is asked on it may wait for an answer.
        event.listen(engine, "connect", self._made, insert=True)
        event.listen(engine, "connect", self._opened)
        event.listen(engine, "checkout", self._taken)
        event.listen(engine, "checkin", self._given_back)
        event.listen(engine, "close", self._closed)

    def all(self) -> tuple[Backend, ...]:
        """Those that are open now, by their pids."""
        with self._lock:
            return tuple(sorted(self._open.values()))

    def cut(self, after_seconds: float = 0.0) -> int:
        """Shut the socket of every connection, which ends any wait for an answer on it; how many were shut.

        With `after_seconds`, only of those that one command has had for so long.
        """
        before = time.monotonic() - after_seconds
        with self._lock:
            chosen = [
                c for c in self._connections if not after_seconds or self._in_use_since.get(c, before + 1) <= before
            ]
            for connection in chosen:
                with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.fileno())) as end:
                    end.shutdown(socket.SHUT_RDWR)
        return len(chosen)

    def taken(self, c: Connection) -> None:
        """A command has this connection from now on, without the pool's knowing."""
        self._taken(c.connection.dbapi_connection, None, None)

    def given_back(self, c: Connection) -> None:
        """Nobody has it any more."""
        self._given_back(c.connection.dbapi_connection, None)

    def _made(self, connection: psycopg.Connection, _record: object) -> None:
        with self._lock:
            self._connections.add(connection)
            self._in_use_since[connection] = time.monotonic()

    def _opened(self, connection: Any, _record: object) -> None:
        with connection.cursor() as cursor:
            pid, started = cursor.execute(_SELF).fetchone()
        if pid == connection.info.backend_pid:  # else another answers next time: a pooler is in between
            with self._lock:
                self._open[connection] = Backend(pid, started)
            if self._told is not None:
                try:
                    self._told()
                except BaseException:  # it is closed, and nobody says so
                    self._closed(connection, None)
                    raise

    def _taken(self, connection: Any, _record: object, _fairy: object) -> None:
        with self._lock:
            self._in_use_since[connection] = time.monotonic()

    def _given_back(self, connection: Any, _record: object) -> None:
        if connection is not None:  # one that was given up is not given back
            with self._lock:
                self._in_use_since.pop(connection, None)

    def _closed(self, connection: Any, _record: object) -> None:
        with self._lock:
            self._in_use_since.pop(connection, None)
            self._connections.discard(connection)
            self._open.pop(connection, None)
