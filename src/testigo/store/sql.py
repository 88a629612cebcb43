"""SQL written by hand: a statement stands beside the function that runs it, readable alone.

Every statement names its tables with the schema `testigo`; an installation under another name has
that prefix exchanged once, when the statement is first used. Parameters are written `:name`, and an
array parameter `CAST(:ids AS uuid[])`: SQLAlchemy does not see a parameter in `:ids::uuid[]`. A
statement's layout is not sent, so its comments stand above it and its literals hold single spaces.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import lru_cache
from typing import Any

import psycopg
from sqlalchemy import Connection, Row, text
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.sql.elements import TextClause

from testigo.store.reading import AsyncRawBinaryCursor, RawBinaryCursor

__all__ = ["Statement", "array", "id_array", "schema_of"]

SCHEMA_OPTION = "testigo_schema"
PREPARE_OPTION = "testigo_prepare"
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
        """Run the statement on the driver's own cursor and return plain tuples; arrays as for `rows`.

        For the hot paths alone: it saves what SQLAlchemy spends per row, and on a direct connection of
        ours the statement is prepared. So each has to keep a good plan while its tables grow from
        nothing (decision record 0011), which `tests/store/test_plans.py` shows.
        """
        if not isinstance(c.connection.driver_connection, psycopg.Connection | psycopg.AsyncConnection):
            return [tuple(row) for row in self.rows(c, **parameters)]  # asyncpg's, or one that is borrowed
        sql, names = _driver_sql(self.sql, schema_of(c))
        values = [parameters[name] for name in names]
        cursor = _raw_cursor(c)
        try:
            with _prepared(c):
                cursor.execute(sql, [array(value) if isinstance(value, list | tuple) else value for value in values])
            return list(cursor.fetchall())
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
    this costs 0.2, and next to nothing for the columns in which every element is the same, or is text
    in which nothing is to be escaped.
    """
    if len(values) == 1:
        return f"{{{_element(values[0])}}}"
    if values and values.count(values[0]) == len(values):
        return "{" + ",".join([_element(values[0])] * len(values)) + "}"
    if {*map(type, values)} == {str}:
        plain = id_array(values)  # type: ignore[arg-type]  # all are text
        if "\\" not in plain and plain.count('"') == 2 * len(values):
            return plain
    return "{" + ",".join([_element(value) for value in values]) + "}"


def id_array(ids: Sequence[str]) -> str:
    """The array literal of ids that were checked: nothing in them needs a second look."""
    return '{"' + '","'.join(ids) + '"}' if ids else "{}"


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


def _raw_cursor(c: Connection) -> Any:
    """The driver's cursor that takes a statement with $1 as it is: to parse one costs more than to send it."""
    driver: Any = c.connection.driver_connection
    factory = driver.cursor_factory
    driver.cursor_factory = RawBinaryCursor if isinstance(driver, psycopg.Connection) else AsyncRawBinaryCursor
    try:
        return c.connection.cursor()
    finally:
        driver.cursor_factory = factory


@contextmanager
def _prepared(c: Connection) -> Iterator[None]:
    """Have psycopg prepare what is executed meanwhile, if the engine has opened this connection for that."""
    driver: Any = c.connection.driver_connection if c.get_execution_options().get(PREPARE_OPTION) else None
    threshold = driver.prepare_threshold if driver else None
    if threshold is None:
        yield
        return
    driver.prepare_threshold = 0
    try:
        yield
    finally:
        driver.prepare_threshold = threshold


def _parameters(c: Connection, parameters: Mapping[str, Any]) -> dict[str, Any]:
    if c.dialect.driver == "asyncpg":
        return dict(parameters)
    return {name: array(value) if isinstance(value, list | tuple) else value for name, value in parameters.items()}


@lru_cache(maxsize=1024)
def _clause(sql: str, schema: str) -> TextClause:
    """The statement as SQLAlchemy takes it, to whom a colon in the schema's name is no parameter."""
    return text(in_schema(_packed(sql), schema.replace(":", r"\:")))


@lru_cache(maxsize=64)
def _driver_sql(sql: str, schema: str) -> tuple[str, tuple[str, ...]]:
    """The statement with $1, $2 …, and the names of these parameters."""
    compiled = _clause(sql, schema).compile(dialect=PGDialect_psycopg(paramstyle="numeric_dollar"))
    return str(compiled), tuple(compiled.positiontup or ())


def _packed(sql: str) -> str:
    """The statement without its layout, which the server would read as well."""
    return " ".join(sql.split())
