"""Installations under names of their own: any name that PostgreSQL keeps whole."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import sql

from testigo.errors import Invalid, SchemaMismatch
from testigo.store.database import AsyncDatabase, Database
from testigo.store.schema import check_migrations, migrate, migration_sql
from tests.store.day import live_a_day
from tests.world import World

EVERYTHING = """Or%ders 100%s, "of"  it's.own:x {a} \\:y ß #1; --"""


def test_every_command_works_in_a_schema_of_any_name(fresh_database: str) -> None:
    """Quotes, colons, percent signs and blanks reach no statement as syntax, and nothing lands elsewhere (P-12)."""
    migrate(fresh_database, EVERYTHING)
    with Database(fresh_database, schema=EVERYTHING) as db:
        live_a_day(db, "q")
    with psycopg.connect(fresh_database) as hand:
        made = hand.execute("SELECT nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg\\_%' ORDER BY 1").fetchall()
        assert made == [(EVERYTHING,), ("information_schema",), ("public",)]


@pytest.mark.parametrize("schema", ["Upper", "select", "a.b", "é" * 31 + "x"])
def test_a_job_comes_and_goes_in_a_schema_of_this_name(fresh_database: str, schema: str) -> None:
    """Case, keywords, dots and 63 bytes are kept as they are."""
    migrate(fresh_database, schema)
    with Database(fresh_database, schema=schema) as db:
        world = World(db)
        (job,) = world.submit()
        worker = world.worker()
        worker.succeed(worker.take())
        assert world.state(job) == "succeeded"
    with psycopg.connect(fresh_database) as hand:
        finished = sql.SQL("SELECT count(*) FROM {} WHERE state = 'succeeded'").format(sql.Identifier(schema, "job"))
        assert hand.execute(finished).fetchone() == (1,)


def test_two_installations_in_one_database_know_nothing_of_each_other(database_url: str) -> None:
    """What is submitted to one is in no table of the other, even where the names differ in case alone."""
    migrate(database_url, "Testigo")
    with Database(database_url) as one, Database(database_url, schema="Testigo") as other:
        (job,) = World(one).submit()
        assert World(one).state(job) == "ready"
        assert not World(other).query("SELECT FROM testigo.job")


def test_the_environment_names_the_schema_where_the_caller_does_not(
    fresh_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TESTIGO_URL and TESTIGO_SCHEMA are what a door without arguments opens, and arguments weigh more."""
    monkeypatch.setenv("TESTIGO_URL", fresh_database)
    monkeypatch.setenv("TESTIGO_SCHEMA", "elsewhere")
    with Database() as db:
        db.migrate()
        assert db.run(lambda c: "done") == "done"
    with Database(schema="testigo") as db, pytest.raises(SchemaMismatch):
        db.run(lambda c: None)


@pytest.mark.parametrize("schema", ["", "é" * 32, "x" * 64, "a\x00b", "pg_own", "\udcff"])
def test_what_postgresql_would_cut_or_refuse_is_refused_at_every_door(fresh_database: str, schema: str) -> None:
    """A longer name would be cut to another's without a word, so it never reaches the server."""
    doors = (
        lambda: Database(fresh_database, schema=schema),
        lambda: AsyncDatabase(fresh_database, schema=schema),
        lambda: migrate(fresh_database, schema),
        lambda: check_migrations(fresh_database, schema),
        lambda: migration_sql(schema),
    )
    for door in doors:
        with pytest.raises(Invalid) as refused:
            door()
        assert (refused.value.field, refused.value.limit) == ("schema", "1 to 63 bytes, not pg_…")
