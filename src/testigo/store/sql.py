"""SQL written by hand: a statement stands beside the function that runs it, readable alone.

Every statement names its tables with the schema `testigo`; an installation under another name has
that prefix exchanged once, when the statement is first used. Parameters are written `:name`, and an
array parameter `CAST(:ids AS uuid[])`: SQLAlchemy does not see a parameter in `:ids::uuid[]`. A
statement's layout is not sent, so its comments stand above it and its literals hold single spaces.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Row, text
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.sql.elements import TextClause

__all__ = ["Statement", "array", "schema_of"]

SCHEMA_OPTION = "testigo_schema"
_PREFIX = re.compile(r"\btestigo\.")


class Statement:
    """One SQL statement, run by `rows` or, on the hot paths, by `fetch`."""

    __slots__ = ("sql",)

    def __init__(self, sql: str) -> None:
        self.sql = sql

    def rows(self, c: Connection, **parameters: Any) -> list[Row[Any]]:
        """Run the statement through SQLAlchemy and return every row; none if it returns no rows.

        A tuple or list is sent as a PostgreSQL array.
        """
        result = c.execute(_clause(self.sql, schema_of(c)), _parameters(c, parameters))
        return list(result.all()) if result.returns_rows else []

    def row(self, c: Connection, **parameters: Any) -> Row[Any] | None:
        """The first row, or None."""
        rows = self.rows(c, **parameters)
        return rows[0] if rows else None

    def fetch(self, c: Connection, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """Run the statement on the driver's own cursor and return plain tuples.

        For claim, settle and renew alone: it saves what SQLAlchemy spends per row. Arrays are
        already literals (`array`), and the connection is one of ours (psycopg).
        """
        cursor = c.connection.cursor()
        try:
            cursor.execute(_driver_sql(self.sql, schema_of(c)), parameters)
            return cursor.fetchall()  # type: ignore[return-value]
        finally:
            cursor.close()


def schema_of(c: Connection) -> str:
    """The schema in which this connection's installation lives."""
    return str(c.get_execution_options().get(SCHEMA_OPTION, "testigo"))


def in_schema(sql: str, schema: str) -> str:
    """The same SQL for an installation in `schema`."""
    if schema == "testigo":
        return sql
    quoted = '"' + schema.replace('"', '""') + '".'
    return _PREFIX.sub(lambda _: quoted, sql)


def array(values: Sequence[object]) -> str:
    """A PostgreSQL array literal of strings, numbers, booleans, UTC times and None.

    psycopg's own array adapter costs 1.5 to 6 µs an element, which was a quarter of a submission;
    this costs 0.2, and next to nothing for the columns in which every element is the same.
    """
    if len(values) > 1 and values.count(values[0]) == len(values):
        return "{" + ",".join([_element(values[0])] * len(values)) + "}"
    return "{" + ",".join([_element(value) for value in values]) + "}"


def _element(value: object) -> str:
    if isinstance(value, str):
        if "\\" in value or '"' in value:
            value = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{value}"'
    if value is None:
        return "NULL"
    if isinstance(value, datetime):
        return f'"{value.isoformat()}"'
    return str(value)


def _parameters(c: Connection, parameters: Mapping[str, Any]) -> dict[str, Any]:
    if c.dialect.driver == "asyncpg":
        return dict(parameters)
    return {name: array(value) if isinstance(value, list | tuple) else value for name, value in parameters.items()}


@lru_cache(maxsize=1024)
def _clause(sql: str, schema: str) -> TextClause:
    """The statement as SQLAlchemy takes it, to whom a colon in the schema's name is no parameter."""
    return text(in_schema(_packed(sql), schema.replace(":", r"\:")))


@lru_cache(maxsize=64)
def _driver_sql(sql: str, schema: str) -> str:
    return str(_clause(sql, schema).compile(dialect=PGDialect_psycopg()))


def _packed(sql: str) -> str:
    """The statement without its layout: psycopg remembers how to send only what is under 4,096 bytes."""
    return " ".join(sql.split())
