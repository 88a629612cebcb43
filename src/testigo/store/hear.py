"""Hearing wake-ups: quicker than polling, and never instead of it (spec P-13; field cases R66, R67).

A listener may be deaf at any time: behind a transaction pooler, while its server is away, on a
connection that went silent. Its subscribers poll, so that costs them the time to their next look
and nothing else.
"""

from __future__ import annotations

import os
import random
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import psycopg
from psycopg import sql
from sqlalchemy import URL

from testigo.settings import STORE
from testigo.store.log import log
from testigo.store.wake import channel, connect

__all__ = ["Listener"]

Woken = Callable[[], object]
"""What a subscriber has called, from the listener's thread: it returns at once and says nothing."""


class Listener:
    """Hears wake-ups for everybody in this process, on one connection and in one thread of its own."""

    def __init__(self, url: URL, schema: str) -> None:
        self._url = url
        self._channel = channel(schema)
        self._lock = threading.Lock()
        self._subscribers: dict[str, list[Woken]] = {}
        self._connection: psycopg.Connection | None = None
        self._hears = False
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="testigo-hear", daemon=True)
        self._thread.start()

    @property
    def hears(self) -> bool:
        """Whether wake-ups arrive, as far as is known, and everybody was told to look for what came before.

        While they do not, polling alone finds what is new.
        """
        return self._hears

    @contextmanager
    def subscribed(self, stream: str, woken: Woken) -> Iterator[None]:
        """Have `woken` called for each wake-up of `stream`, and whenever some may have been missed."""
        with self._lock:
            self._subscribers.setdefault(stream, []).append(woken)
        try:
            yield
        finally:
            with self._lock:
                self._subscribers[stream].remove(woken)
                if not self._subscribers[stream]:
                    del self._subscribers[stream]

    def close(self) -> None:
        """Stop, at once unless a connection is just being made."""
        self._closing.set()
        self._cut()
        self._thread.join(timeout=STORE.lock_timeout_seconds)

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                with self._connected() as connection:
                    if _is_pooled(connection):
                        log.info("a pooler stands before the database: nothing is listened to, polling goes on")
                        return
                    self._hear(connection)
            except Exception as error:  # whatever it is, the next connection may be better
                if not self._closing.is_set():
                    log.info("listening failed, polling goes on: %s", type(error).__name__)
            finally:
                self._hears = False
            self._closing.wait(random.uniform(0.5, 1.0) * STORE.poll_seconds)

    @contextmanager
    def _connected(self) -> Iterator[psycopg.Connection]:
        connection = connect(self._url)
        try:
            with self._lock:
                self._connection = connection
            yield connection
        finally:
            with self._lock:
                self._connection = None
            connection.close()

    def _hear(self, connection: psycopg.Connection) -> None:
        connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._channel)))
        self._call([woken for each in self._subscribed() for woken in each])
        self._hears = True
        while not self._closing.is_set():
            for note in connection.notifies(timeout=STORE.hearing_seconds):
                with self._lock:
                    subscribers = list(self._subscribers.get(note.payload, ()))
                self._call(subscribers)
            self._ask(connection)

    def _ask(self, connection: psycopg.Connection) -> None:
        """See that the server is still there; where nothing comes back, this connection ends in an error."""
        patience = threading.Timer(STORE.hearing_answer_seconds, self._cut)
        patience.start()
        try:
            connection.execute("SELECT 1")
        finally:
            patience.cancel()

    def _cut(self) -> None:
        """Shut the connection's socket, which ends any wait for it."""
        with self._lock, suppress(OSError, psycopg.Error):
            if self._connection is not None:
                with socket.socket(fileno=os.dup(self._connection.fileno())) as end:
                    end.shutdown(socket.SHUT_RDWR)

    def _subscribed(self) -> list[list[Woken]]:
        with self._lock:
            return [list(each) for each in self._subscribers.values()]

    def _call(self, subscribers: list[Woken]) -> None:
        for woken in subscribers:
            try:
                woken()
            except Exception:
                log.exception("a subscriber failed to be woken")


def _is_pooled(connection: psycopg.Connection) -> bool:
    """Whether another server connection may answer next time, so that LISTEN would be somebody else's."""
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    return row is None or row[0] != connection.info.backend_pid
