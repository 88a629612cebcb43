"""Wake-ups: hints that a stream has something new, never the reason why it is found (spec P-13).

They are sent after the commit and outside its transaction, because NOTIFY makes commits wait for
each other; they carry a stream's name and no data (field case R68). What one process sends for one
stream is gathered: at most one wake-up in ten milliseconds, and the last one is never lost to that.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import psycopg
from sqlalchemy import URL

from testigo.settings import STORE

__all__ = ["Listener", "Waker", "listening"]

_log = logging.getLogger("testigo.store")

_NOTIFY = "SELECT pg_notify(%s, name) FROM unnest(%s::text[]) AS name"


class Waker:
    """Sends wake-ups from a thread of its own, so that nobody who submits waits for them."""

    def __init__(self, url: URL, schema: str) -> None:
        self._conninfo = conninfo(url)
        self._channel = channel(schema)
        self._due: set[str] = set()
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._send_all, name="testigo-wake", daemon=True)
        self._thread.start()

    def wake(self, streams: Iterable[str]) -> None:
        """Have the listeners of these streams look again, soon; never waits and never fails."""
        with self._changed:
            self._due.update(streams)
            self._changed.notify()

    def close(self) -> None:
        """Send what is due and stop."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join(timeout=STORE.lock_timeout_seconds)

    def _send_all(self) -> None:
        connection: psycopg.Connection | None = None
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._due or self._closed)
                if not self._due:
                    break
                due, self._due = sorted(self._due), set()
            try:
                if connection is None or connection.closed:
                    connection = psycopg.connect(self._conninfo, autocommit=True, prepare_threshold=None)
                connection.execute(_NOTIFY, (self._channel, due))
            except psycopg.Error as error:
                _log.info("a wake-up was not sent, polling finds the work: %s", type(error).__name__)
                connection = None
            with self._changed:
                self._changed.wait_for(lambda: self._closed, timeout=STORE.wake_seconds)
        if connection is not None:
            connection.close()


class Listener:
    """Waits for wake-ups on a connection of its own; when that fails, waiting is all that is left."""

    def __init__(self, url: URL, schema: str) -> None:
        self._conninfo = conninfo(url)
        self._channel = channel(schema)
        self._connection: psycopg.Connection | None = None

    def wait(self, stream: str, seconds: float) -> bool:
        """Wait for a wake-up of `stream`, at most so long; whether there was one.

        The answer is a hint: whoever waited looks at the truth either way.
        """
        try:
            if self._connection is None or self._connection.closed:
                self._connection = psycopg.connect(self._conninfo, autocommit=True, prepare_threshold=None)
                self._connection.execute(f'LISTEN "{self._channel}"')
                return True
            for note in self._connection.notifies(timeout=seconds):
                if note.payload == stream:
                    return True
        except psycopg.Error as error:
            _log.info("listening failed, polling goes on: %s", type(error).__name__)
            self.close()
            threading.Event().wait(seconds)
        return False

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


@contextmanager
def listening(url: URL, schema: str) -> Iterator[Listener]:
    """A listener that is closed at the end."""
    listener = Listener(url, schema)
    try:
        yield listener
    finally:
        listener.close()


def channel(schema: str) -> str:
    """The NOTIFY channel of an installation."""
    return f"testigo:{schema}"[:60].replace('"', "")


def conninfo(url: URL) -> str:
    """The URL as libpq reads it."""
    return url.set(drivername="postgresql").render_as_string(hide_password=False)
