"""The command line as a test calls it: in this process, on the test's own database."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from psycopg import sql

from testigo.cli.root import run
from tests.store.roles import as_role, ordinary_role

__all__ = ["Cli", "Ran"]


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command answered: its exit status, and what it wrote to either side."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one object that it answered."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        """The objects that it answered, one a line."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def error(self) -> Any:
        """The error that it told in JSON."""
        return json.loads(self.err.splitlines()[-1])["error"]


Cli = Callable[..., Ran]


@pytest.fixture
def cli(database_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Run a command on the test's database."""
    monkeypatch.setenv("TESTIGO_URL", database_url)

    def called(*arguments: str) -> Ran:
        capsys.readouterr()
        status = run(arguments)
        written = capsys.readouterr()
        return Ran(status, written.out, written.err)

    return called


@pytest.fixture
def role(server_url: str, database_url: str) -> Iterator[str]:
    """A role that may log in to the test's database, and nothing else; what it was granted there goes with it."""
    with ordinary_role(server_url) as name:
        yield name
        with psycopg.connect(database_url, autocommit=True) as administrator:
            administrator.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(name)))


@pytest.fixture
def restricted_url(database_url: str, role: str) -> str:
    """The test's database for that role."""
    return as_role(database_url, role)
