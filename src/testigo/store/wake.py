"""Wake-ups: hints that a stream has something new, never the reason why it is found (spec P-13).

They are sent after the commit and outside its transaction, because NOTIFY makes commits wait for
each other; they carry a stream's name and no data (field case R68). What one process sends for one
stream is gathered: at most one wake-up in ten milliseconds, and the last one is never lost to that.
Whoever listens is in `hear`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

import psycopg
from sqlalchemy import URL

from testigo.settings import STORE
from testigo.store.engines import keepalive
from testigo.store.log import log

__all__ = ["Waker", "channel", "connect"]

_NOTIFY = "SELECT pg_notify(%s, name) FROM unnest(%s::text[]) AS name"
_NAME_BYTES_MAX = 7_999
"""PostgreSQL refuses a notification of 8,000 bytes."""
_CHANNEL_BYTES_MAX = 63
_CONNECT_SECONDS = 5


class Waker:
    """Sends wake-ups from a thread of its own, so that nobody who submits waits for them."""

    def __init__(self, url: URL, schema: str) -> None:
        self._url = url
        self._channel = channel(schema)
        self._due: set[str] = set()
        self._changed = threading.Condition()
        self._closed = False
        self._connection: psycopg.Connection | None = None
        self._thread = threading.Thread(target=self._send_all, name="testigo-wake", daemon=True)
        self._thread.start()

    def wake(self, streams: Iterable[str]) -> None:
        """Have the listeners of these streams look again, soon; never waits and never fails.

        While the database is away the wake-ups wait; what cannot be a stream's name is passed over.
        """
        fit = [name for name in streams if _is_fit(name)]
        with self._changed:
            self._due.update(fit)
            self._changed.notify()

    def close(self) -> None:
        """Send what is due, once, and stop."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join(timeout=STORE.lock_timeout_seconds)

    def _send_all(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._due or self._closed)
                due, self._due = self._due, set()
            if not due:
                break
            kept_connection = self._connection is not None
            pause = STORE.wake_seconds
            if not self._send(sorted(due)):
                # A connection that was kept may be the only thing that is broken: try another at once.
                pause = STORE.wake_seconds if kept_connection else STORE.poll_seconds
                with self._changed:
                    self._due |= due
                    if self._closed and not kept_connection:
                        break
            with self._changed:
                self._changed.wait_for(lambda: self._closed, timeout=pause)
        self._hang_up()

    def _send(self, due: list[str]) -> bool:
        try:
            if self._connection is None:
                self._connection = connect(self._url)
            self._connection.execute(_NOTIFY, (self._channel, due))
        except (psycopg.Error, OSError) as error:
            log.info("wake-ups were not sent, polling finds the work: %s", type(error).__name__)
            self._hang_up()
            return False
        return True

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def channel(schema: str) -> str:
    """The NOTIFY channel of an installation: at most 63 bytes, which two long schemas may share.

    A listener that hears another installation's wake-ups looks once too often, and no more.
    """
    return f"testigo:{schema}".encode()[:_CHANNEL_BYTES_MAX].decode(errors="ignore")


def connect(url: URL) -> psycopg.Connection:
    """A connection for wake-ups alone; raises `psycopg.Error` or `OSError`."""
    options: dict[str, Any] = {
        "connect_timeout": _CONNECT_SECONDS,
        "fallback_application_name": "testigo wake-ups",
        **keepalive(url),
    }
    conninfo = url.set(drivername="postgresql").render_as_string(hide_password=False)
    return psycopg.connect(conninfo, autocommit=True, prepare_threshold=None, **options)


def _is_fit(name: object) -> bool:
    """Whether a notification can carry this name: one that cannot would take the others with it."""
    if not isinstance(name, str) or "\x00" in name:
        return False
    try:
        return 0 < len(name.encode()) <= _NAME_BYTES_MAX
    except UnicodeEncodeError:
        return False
