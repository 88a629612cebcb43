"""The hot statements, as they are sent."""

from __future__ import annotations

import importlib

import pytest

from testigo.store.sql import Statement, _driver_sql


@pytest.mark.parametrize("command", ["submit", "claim", "settle", "renew", "save"])
def test_the_driver_remembers_how_a_hot_statement_is_sent(command: str) -> None:
    """psycopg parses a statement of more than 4,096 bytes anew each time that it is sent."""
    module = importlib.import_module(f"testigo.authority.{command}")
    statements = [value.sql for value in vars(module).values() if isinstance(value, Statement)]
    assert statements
    assert max(len(_driver_sql(sql, "testigo").encode()) for sql in statements) <= 4_096
