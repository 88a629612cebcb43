"""Asking the authority until it answers: a keeper outlives its database's absence (spec P-03, P-17)."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Concatenate, ParamSpec, TypeVar

import psycopg
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from testigo.errors import Busy, Error
from testigo.settings import STORE
from testigo.store.database import Database
from testigo.store.failures import is_connection_lost, reason_of, sqlstate_of

__all__ = ["Asker", "Grumbler", "impatient", "is_passing"]

P = ParamSpec("P")
R = TypeVar("R")

_log = logging.getLogger("testigo.worker")

_AT_FAULT = frozenset({"0A", "22", "23", "42", "54"})
"""Classes of SQLSTATE that speak of what was sent: the same again would be refused again."""


class Grumbler:
    """Logs what goes on going wrong at most once a minute, and counts what it kept to itself."""

    def __init__(self, every_seconds: float = 60.0) -> None:
        self._every_seconds = every_seconds
        self._quiet_until = 0.0
        self._kept = 0

    def say(self, message: str, *arguments: object) -> None:
        """A warning, unless one was logged a moment ago."""
        now = time.monotonic()
        if now < self._quiet_until:
            self._kept += 1
            return
        more = f" ({self._kept} more like it)" if self._kept else ""
        self._quiet_until, self._kept = now + self._every_seconds, 0
        _log.warning(message + "%s", *arguments, more)


class Asker:
    """Sends commands for one thread of a keeper, each until its answer is known."""

    def __init__(self, db: Database, leaving: threading.Event) -> None:
        """Once `leaving` is set nothing is asked again."""
        self._db = db
        self._leaving = leaving
        self._grumbler = Grumbler()

    def ask(self, command: Callable[Concatenate[Connection, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """The answer to a command, sent again unchanged while the database is away or busy.

        Raises what the command refuses, and, once the keeper is leaving, what hindered the last try.
        """
        ceiling = STORE.retry_first_seconds
        while True:
            try:
                return self._db.run(command, *args, **kwargs)
            except Exception as error:
                if self._leaving.is_set() or not is_passing(error):
                    raise
                self._grumbler.say("%s is asked again: %s", command.__name__, _words(error))
            ceiling = min(STORE.retry_cap_seconds, ceiling * 2)
            self._leaving.wait(random.uniform(ceiling / 2, ceiling))


@contextmanager
def impatient(seconds: float, hang_up: Callable[[], object]) -> Iterator[None]:
    """While something is waited for here, `hang_up` is called whenever these seconds have passed."""
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.wait(seconds):
            hang_up()

    threading.Thread(target=watch, name="testigo-patience", daemon=True).start()
    try:
        yield
    finally:
        is_over.set()


def is_passing(error: Exception) -> bool:
    """Whether a command may be answered later, unchanged: the database is away, busy, or out of room."""
    if isinstance(error, Error):
        return isinstance(error, Busy)
    if is_connection_lost(error):
        return True
    state = sqlstate_of(error)
    return isinstance(error, DBAPIError | psycopg.Error) and (state is None or state[:2] not in _AT_FAULT)


def _words(error: Exception) -> str:
    return error.message if isinstance(error, Error) else reason_of(error)
