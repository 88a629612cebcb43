"""The tables of an installation, and their rows as text that is the same wherever it is written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from testigo.errors import AuthorityUnavailable, Broken
from testigo.store.failures import is_connection_lost, is_out_of_room, reason_of
from testigo.store.urls import server_url

__all__ = ["VERSION_TABLE", "Table", "connected", "tables"]

VERSION_TABLE = "schema_version"
"""The one table that is not copied: a migration writes it."""

# What differs between two servers, or two roles, in how values are written as text.
_SAME_TEXT = """
    SET LOCAL TimeZone = 'UTC';
    SET LOCAL DateStyle = 'ISO, YMD';
    SET LOCAL IntervalStyle = 'postgres';
    SET LOCAL bytea_output = 'hex';
    SET LOCAL extra_float_digits = 1;
    SET LOCAL statement_timeout = 0;
    SET LOCAL idle_in_transaction_session_timeout = 0;
    SET LOCAL lock_timeout = '30s'
"""

_TABLES = """
    SELECT c.relname,
           (SELECT array_agg(CAST(a.attname AS text) ORDER BY a.attnum)
            FROM pg_attribute a
            WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''),
           (SELECT array_agg(CAST(a.attname AS text) ORDER BY k.place)
            FROM pg_index i
                 CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k(attnum, place)
                 JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum
            WHERE i.indrelid = c.oid AND i.indisprimary),
           (SELECT array_agg(CAST(a.attname AS text))
            FROM pg_attribute a
            WHERE a.attrelid = c.oid AND a.attnum > 0 AND a.attcollation <> 0)
    FROM pg_class c
         JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = %s AND c.relkind IN ('r', 'p') AND NOT c.relispartition
    ORDER BY c.relname COLLATE "C"
"""


@dataclass(frozen=True, slots=True)
class Table:
    """A table; `key` are the columns of its primary key, `texts` those whose order depends on a collation."""

    schema: str
    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    texts: frozenset[str]

    @property
    def is_single(self) -> bool:
        """Whether it has one row, which a migration inserts."""
        return self.key == ("singleton",)

    @property
    def place(self) -> sql.Composed:
        """Its qualified name."""
        return sql.SQL("{}.{}").format(sql.Identifier(self.schema), sql.Identifier(self.name))

    def copy_out(self, columns: tuple[str, ...]) -> sql.Composed:
        """The statement that writes all rows in the order of the key, by code points whatever the database's order."""
        by = [
            sql.SQL('{} COLLATE "C"' if name in self.texts else "{}").format(sql.Identifier(name)) for name in self.key
        ]
        return sql.SQL("COPY (SELECT {} FROM {} ORDER BY {}) TO STDOUT").format(
            _names(columns), self.place, sql.SQL(", ").join(by)
        )

    def copy_in(self, columns: tuple[str, ...]) -> sql.Composed:
        """The statement that takes such rows."""
        return sql.SQL("COPY {} ({}) FROM STDIN").format(self.place, _names(columns))


def tables(c: psycopg.Connection, schema: str) -> dict[str, Table]:
    """The tables of a schema by their names, in the order of these."""
    return {
        name: Table(schema, name, tuple(columns or ()), tuple(key or ()), frozenset(texts or ()))
        for name, columns, key, texts in c.execute(_TABLES, (schema,))
    }


@contextmanager
def connected(url: Any, *, read_only: bool) -> Iterator[psycopg.Connection]:
    """One transaction on a connection of its own, in which values are written alike.

    One that only reads sees one snapshot; one that writes sees what was committed before each of its locks.

    Raises `AuthorityUnavailable` where the server does not answer, and `Broken` for what it refuses.
    """
    conninfo = server_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    try:
        with psycopg.connect(conninfo, client_encoding="UTF8", connect_timeout=10, prepare_threshold=None) as c:
            level = psycopg.IsolationLevel
            c.isolation_level = level.REPEATABLE_READ if read_only else level.READ_COMMITTED
            c.read_only = read_only
            c.execute(_SAME_TEXT)
            yield c
    except psycopg.Error as error:
        if is_connection_lost(error):
            raise AuthorityUnavailable(f"The database did not answer: {reason_of(error)}.") from error
        what = "has no room" if is_out_of_room(error) else "refused it"
        raise Broken(
            f"The database {what}: {reason_of(error)}.", remedy="Look at the role's rights and the disk."
        ) from error


def _names(columns: tuple[str, ...]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, columns))
