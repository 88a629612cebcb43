"""A database in which one world is set up and put back as often as it takes, and pictures of its state.

A picture holds every row of every table. What a command makes up for itself, times and ids, and what is
made of these, a link of the audit's chain, appears in it as such: two runs of one command from one world
give equal pictures.
"""

from __future__ import annotations

import difflib
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import sql

from testigo.store.database import Database
from tests.crash import Breaker, await_that, install
from tests.services import create_database, drop_database

__all__ = ["Picture", "Stage", "differences", "staged"]

_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?\+00:00")
_CHAIN = re.compile(r'(?<="chain":")sha256:[0-9a-f]{64}')
_TABLES = """
    SELECT relname
    FROM pg_class
    WHERE relnamespace = 'testigo'::regnamespace AND relkind = 'r' AND relname <> 'schema_version'
    ORDER BY relname
"""
_OVER = """
    SELECT
    FROM (SELECT max(age(backend_xmin)) AS oldest FROM pg_stat_activity WHERE datname = current_database()) AS here
    WHERE age(CAST(CAST(%s AS xid8) AS xid)) >
          greatest(age(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS xid)), here.oldest)
"""

Picture = list[str]
"""The state of an installation: a line per row."""


@contextmanager
def staged(server_url: str, template: str) -> Iterator[Stage]:
    """A stage in a new database on the server, a copy of `template`, which is migrated."""
    name = f"stage_{uuid.uuid4().hex}"
    stage = Stage(create_database(server_url, name, template=template))
    try:
        yield stage
    finally:
        stage.close()
        drop_database(server_url, name)


class Stage:
    """An installation that is put back to one state again and again, and breaks as its `breaker` is told.

    Beside the engine's tables there is `testigo.note`, in which callers keep rows of their own.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        # As a replica it runs no triggers: neither those that forbid a change, nor those that break.
        self._hand = psycopg.connect(
            url, autocommit=True, options="-c timezone=UTC -c session_replication_role=replica"
        )
        self._hand.execute("CREATE TABLE testigo.note (note text PRIMARY KEY)")
        self._tables = [name for (name,) in self._hand.execute(_TABLES)]
        install(self._hand, [sql.Identifier("testigo", table) for table in self._tables])
        self._known = frozenset[str]()
        for place in ("empty", "kept"):
            self._hand.execute(f"CREATE SCHEMA {place}")
            self._on_each(f"CREATE TABLE {place}.{{0}} AS TABLE testigo.{{0}}")
        self.db = Database(url)
        self.breaker = Breaker(url)
        self.breaker.hook(self.db._open())

    def clear(self) -> None:
        """Forget everything."""
        self._on_each("DELETE FROM testigo.{0}", "INSERT INTO testigo.{0} TABLE empty.{0}")

    def keep(self) -> None:
        """Remember the state as it is now, and leave no connection of whoever made it: the next is the only one."""
        self.db._open().dispose()
        self._on_each("DELETE FROM kept.{0}", "INSERT INTO kept.{0} TABLE testigo.{0}")
        kept = "\n".join(self.rows())
        self._known = frozenset(found for each in (_ID, _TIME, _CHAIN) for found in each.findall(kept))

    def put_back(self) -> None:
        """Bring back the state that was kept, to the last bit."""
        self._on_each("DELETE FROM testigo.{0}", "INSERT INTO testigo.{0} TABLE kept.{0}")

    def await_all(self) -> None:
        """Wait until nothing runs on the server that began before now, so that everybody sees what is there."""
        (now,) = self._hand.execute("SELECT CAST(pg_current_xact_id() AS text)").fetchone() or ("",)
        await_that(lambda: self._hand.execute(_OVER, (now,)).fetchone() is not None)

    def picture(self, given: object, answer: object) -> Picture:
        """The answer, and every row as it is; an id or time that is neither kept nor in `given` is only named."""
        known = self._known | frozenset(_ID.findall(repr(given)))
        return _anonymous([f"answer {answer}", *self.rows()], known)

    def rows(self) -> Picture:
        """Every row as it is, word for word."""
        rows = " UNION ALL ".join(f"SELECT '{table} ' || to_json(t) FROM testigo.{table} t" for table in self._tables)
        return sorted(line for (line,) in self._hand.execute(rows))

    def _on_each(self, *statements: str) -> None:
        self._hand.execute(";".join(s.format(table) for table in self._tables for s in statements))

    def close(self) -> None:
        """Close every connection."""
        self.db.close()
        self.breaker.close()
        self._hand.close()


def _anonymous(lines: Picture, known: frozenset[str]) -> Picture:
    """The lines in an order of their own, each unknown time as `a time`, each unknown id by its number."""
    names: dict[str, str] = {}

    def unnamed(match: re.Match[str]) -> str:
        return match[0] if match[0] in known else "an id"

    def named(match: re.Match[str]) -> str:
        return match[0] if match[0] in known else names.setdefault(match[0], f"id {len(names) + 1}")

    unchained = [_CHAIN.sub(lambda m: m[0] if m[0] in known else "a link", line) for line in lines]
    timeless = [_TIME.sub(lambda m: m[0] if m[0] in known else "a time", line) for line in unchained]
    ordered = sorted(timeless, key=lambda line: _ID.sub(unnamed, line))
    return [_ID.sub(named, line) for line in ordered]


def differences(found: Picture, expected: Picture) -> str:
    """What is in one and not in the other, as a diff; empty when they are equal."""
    return "\n".join(difflib.unified_diff(expected, found, "expected", "found", n=0, lineterm=""))
