"""Connections that stay out of the pool between two short commands.

To give a connection back and to take it again is a fifth of what a short command costs its client. So one that
ran a command of one statement, and has nothing of it left, waits here for the next command.
"""

from __future__ import annotations

import threading

from sqlalchemy import Connection, Engine, event

from testigo.store.backends import Backends

__all__ = ["Spares"]


class Spares:
    """Those of one engine, for any thread. They count as taken from its pool, so whoever waits there comes first."""

    def __init__(self, engine: Engine, backends: Backends) -> None:
        self._engine = engine
        self._backends = backends
        self._lock = threading.Lock()
        self._spare: list[Connection] = []
        self._waiting = 0
        self._round = 0
        """How often all were let go: one that was in use meanwhile is let go when it is put back."""
        event.listen(engine, "engine_disposed", lambda _: self.let_go())

    def take(self) -> tuple[Connection, int]:
        """The connection that was used last, or else one of the pool's; and the round in which it was taken."""
        with self._lock:
            now = self._round
            if self._spare:
                c = self._spare.pop()
                self._backends.taken(c)
                return c, now
            self._waiting += 1
        try:
            return self._engine.connect(), now
        finally:
            with self._lock:
                self._waiting -= 1

    def put(self, c: Connection, taken_in: int) -> None:
        """Keep it for the next command, unless a transaction is open or somebody waits for one of the pool's."""
        with self._lock:
            is_old = taken_in != self._round
            if not (is_old or self._waiting or c.closed or c.invalidated or c.in_transaction()):
                self._backends.given_back(c)
                self._spare.append(c)
                return
        if is_old and not c.closed:
            c.invalidate()
        c.close()

    def let_go(self) -> None:
        """End those that wait here, and those in use once they are put back."""
        with self._lock:
            self._round += 1
            spare, self._spare = self._spare, []
        for c in spare:
            c.invalidate()
            c.close()
