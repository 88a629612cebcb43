"""A table of tallies that commands raise, and a hand of its own that gets in their way.

raising = Raising(terminated)      # raises the tally by one, and is terminated in its first send
assert db.run(raising) == 2        # so it was sent twice
assert tally.value == 1            # and took effect once
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg.pq import Trace
from sqlalchemy import Connection

from testigo.store.command import single_statement
from testigo.store.database import Database
from testigo.store.failures import sqlstate_of
from testigo.store.sql import Statement

__all__ = ["Raising", "Tally", "backend_pid", "overheard", "raised", "session", "tallies"]

_RAISE = Statement("UPDATE tally SET n = n + 1 WHERE id = :id RETURNING n")


class Tally:
    """The table, seen by a connection of the test's own that commits each statement."""

    def __init__(self, hand: psycopg.Connection) -> None:
        self.hand = hand

    @property
    def value(self) -> int:
        """The sum of all tallies."""
        return self.number("SELECT sum(n) FROM tally")

    @property
    def connections(self) -> int:
        """How many other connections to this database there are."""
        mine = "datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
        return self.number(f"SELECT count(*) FROM pg_stat_activity WHERE {mine}")

    def number(self, query: str, *parameters: object) -> int:
        """The one number that a query returns."""
        row = self.hand.execute(query, parameters).fetchone()
        assert row is not None
        return int(row[0])

    def runs(self, pid: int) -> bool:
        """Whether this process of the server is there."""
        return bool(self.number("SELECT count(*) FROM pg_stat_activity WHERE pid = %s", pid))


@dataclass
class Raising:
    """A command that raises the first tally, meets a mishap in its first send, and answers how often it was sent.

    `met` holds the SQLSTATEs of what it met; None stands for an error that had none.
    """

    mishap: Callable[[Connection], object]
    sent: int = 0
    met: list[str | None] = field(default_factory=list)

    def __call__(self, c: Connection) -> int:
        """Be the command."""
        self.sent += 1
        raised(c)
        if self.sent == 1:
            try:
                self.mishap(c)
            except Exception as error:
                self.met.append(sqlstate_of(error))
                raise
        return self.sent


@contextmanager
def tallies(url: str) -> Iterator[Tally]:
    """A new table of ten tallies."""
    with psycopg.connect(url, autocommit=True) as hand:
        hand.execute("CREATE TABLE tally (id integer PRIMARY KEY, n integer NOT NULL CHECK (n < 1000))")
        hand.execute("INSERT INTO tally SELECT id, 0 FROM generate_series(0, 9) AS id")
        yield Tally(hand)


def raised(c: Connection, number: int = 0) -> int:
    """Raise a tally by one and return it."""
    return int(_RAISE.rows(c, id=number)[0].n)


def backend_pid(c: Connection) -> int:
    """The server's process behind the connection."""
    return int(c.exec_driver_sql("SELECT pg_backend_pid()").scalar_one())


@single_statement
def session(c: Connection) -> dict[str, Any]:
    """What the server's session behind the connection is like between two transactions."""
    queries = {
        "settings": "SELECT json_object_agg(name, setting ORDER BY name) FROM pg_settings",
        "locks": "SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory'",
        "held cursors": "SELECT count(*) FROM pg_cursors WHERE is_holdable",
        "channels": "SELECT count(*) FROM pg_listening_channels()",
        "temporary tables": "SELECT count(*) FROM pg_class WHERE relpersistence = 't'",
    }
    return {"pid": backend_pid(c), **{name: c.exec_driver_sql(query).scalar_one() for name, query in queries.items()}}


@single_statement
def _driver(c: Connection) -> object:
    return c.connection.driver_connection


@contextmanager
def overheard(db: Database) -> Iterator[list[str]]:
    """What the one connection of a pool of one tells the server meanwhile: libpq's own trace, a line per message.

    The list is filled at the end.
    """
    connection = db.run(_driver)
    assert isinstance(connection, psycopg.Connection)
    told: list[str] = []
    with tempfile.TemporaryFile() as trace:
        connection.pgconn.trace(trace.fileno())
        connection.pgconn.set_trace_flags(Trace.SUPPRESS_TIMESTAMPS)
        yield told
        connection.pgconn.untrace()
        trace.seek(0)
        told += [line for line in trace.read().decode().splitlines() if line.startswith("F\t")]
