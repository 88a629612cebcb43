"""The engine as an ordinary role, on the oldest and the newest PostgreSQL that it serves."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import NamedTuple

import psycopg
import pytest
from psycopg import sql

from testigo.store.database import Database
from testigo.store.schema import migrate
from tests.invariants import check
from tests.journal.everything import do_everything
from tests.services import create_database, drop_database
from tests.store.day import live_a_day
from tests.store.roles import as_role, ordinary_role
from tests.world import World


class Given(NamedTuple):
    """A database, as an administrator and as the ordinary role that works in it."""

    administrators: str
    roles: str
    role: str


@pytest.fixture(params=["server_url", pytest.param("postgres15_url", marks=pytest.mark.needs_postgres15)])
def given(request: pytest.FixtureRequest) -> Iterator[Given]:
    """An empty database on a server of either version."""
    server: str = request.getfixturevalue(request.param)
    name = f"test_{uuid.uuid4().hex}"
    with ordinary_role(server) as role:
        url = create_database(server, name)
        yield Given(url, as_role(url, role), role)
        drop_database(server, name)


def have(given: Given, statement: str) -> None:
    """Have the administrator say it of the role."""
    with psycopg.connect(given.administrators, autocommit=True) as administrator:
        names = sql.Identifier(administrator.info.dbname), sql.Identifier(given.role)
        administrator.execute(sql.SQL(statement).format(database=names[0], role=names[1]))


def test_the_owner_of_a_schema_migrates_it_and_sends_every_command(given: Given) -> None:
    """On either version, one schema made for the role is all it needs: no superuser, no membership (issue 2, P-12)."""
    have(given, "CREATE SCHEMA testigo AUTHORIZATION {role}")
    migrate(given.roles)
    with Database(given.roles) as db:
        live_a_day(db, "day")
        do_everything(World(db), "everything")
        check(db)


def test_the_owner_of_a_database_makes_the_schema_as_well(given: Given) -> None:
    """A role that may create schemas needs no administrator, and may migrate as often as it likes (issue 2)."""
    have(given, "ALTER DATABASE {database} OWNER TO {role}")
    migrate(given.roles)
    migrate(given.roles)
    with Database(given.roles) as db:
        assert len(World(db).submit()) == 1
