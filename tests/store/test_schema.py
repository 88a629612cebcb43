"""The schema: how it is made, brought up to date, and told from one that does not fit."""

from __future__ import annotations

import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.synchronize import Barrier

import psycopg
import pytest
from psycopg import sql

from testigo.errors import AuthorityUnavailable, SchemaMismatch
from testigo.store.database import Database
from testigo.store.schema import EXPECTED_VERSION, check_migrations, migrate, migration_sql
from tests.store.catalogue import described

# One server that has imported this module forks the processes, which is quick and has no threads.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload([__name__])

NAMES = ["testigo", 'Or%ders "of" it\'s.own:x']


@pytest.mark.parametrize("schema", NAMES)
def test_migrating_again_changes_nothing(fresh_database: str, schema: str) -> None:
    """An empty database gets everything, and one that is up to date is left as it is (spec R101)."""
    versions = [f"{number:04d}" for number in range(1, int(EXPECTED_VERSION) + 1)]
    assert check_migrations(fresh_database, schema) == versions
    migrate(fresh_database, schema)
    made = described(fresh_database, schema)
    assert check_migrations(fresh_database, schema) == []
    migrate(fresh_database, schema)
    assert described(fresh_database, schema) == made
    assert len(made) > 200


@pytest.mark.parametrize("schema", NAMES)
def test_the_sql_for_those_who_run_it_by_hand_makes_the_same(fresh_database: str, schema: str) -> None:
    """What `migration_sql` writes out makes, in one transaction, exactly what `migrate` makes (spec R101)."""
    migrate(fresh_database, schema)
    made = described(fresh_database, schema)
    with psycopg.connect(fresh_database, autocommit=True) as hand:
        hand.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(schema)))
        hand.execute(migration_sql(schema).encode())
    assert described(fresh_database, schema) == made
    assert check_migrations(fresh_database, schema) == []


def migrate_together(url: str, barrier: Barrier) -> None:
    """Migrate when everybody is there."""
    barrier.wait(60)
    migrate(url)


def test_processes_that_migrate_at_once_make_it_once(fresh_database: str, database_url: str) -> None:
    """However many start together on an empty database, all succeed and one does the work (spec R101)."""
    barrier = FORKS.Barrier(4)
    together = [FORKS.Process(target=migrate_together, args=(fresh_database, barrier)) for _ in range(4)]
    for process in together:
        process.start()
    for process in together:
        process.join(120)
    assert [process.exitcode for process in together] == [0, 0, 0, 0]
    assert described(fresh_database) == described(database_url)


def test_threads_that_migrate_at_once_make_it_once(fresh_database: str, database_url: str) -> None:
    """As those of a worker do that is the first on an embedded database (spec R101)."""
    together = threading.Barrier(4)

    def migrate_with_the_others() -> None:
        together.wait(60)
        migrate(fresh_database)

    with ThreadPoolExecutor(together.parties) as threads:
        for each in [threads.submit(migrate_with_the_others) for _ in range(together.parties)]:
            each.result(60)
    assert described(fresh_database) == described(database_url)


def test_a_database_without_the_schema_is_refused_with_the_remedy(fresh_database: str) -> None:
    """The first command says what is missing and how it is made; nothing is made unasked (spec R101)."""
    with Database(fresh_database) as db:
        with pytest.raises(SchemaMismatch, match="does not exist") as refused:
            db.run(lambda c: None)
        assert (refused.value.facts, "migrate" in refused.value.remedy) == ({"expected": EXPECTED_VERSION}, True)
        assert described(fresh_database) == []
        db.migrate()
        assert db.run(lambda c: "done") == "done"


def test_a_schema_that_is_older_than_the_code_is_refused(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both versions are named, and the remedy is to migrate (spec R101)."""
    monkeypatch.setattr("testigo.store.schema.EXPECTED_VERSION", "0998")
    with Database(database_url) as db, pytest.raises(SchemaMismatch, match=rf"{EXPECTED_VERSION}.*0998") as refused:
        db.run(lambda c: None)
    assert refused.value.facts == {"found": EXPECTED_VERSION, "expected": "0998"}
    assert "migrate" in refused.value.remedy


def test_a_schema_that_is_newer_than_the_code_is_refused(database_url: str) -> None:
    """Both versions are named, the remedy is a newer release, and nobody migrates it backwards (spec R101)."""
    with psycopg.connect(database_url, autocommit=True) as hand:
        hand.execute("UPDATE testigo.schema_version SET version_num = '0999'")
    with Database(database_url) as db:
        for door in (lambda: db.run(lambda c: None), db.migrate, lambda: check_migrations(database_url)):
            with pytest.raises(SchemaMismatch, match=rf"0999.*{EXPECTED_VERSION}") as refused:
                door()
            assert refused.value.facts == {"found": "0999", "expected": EXPECTED_VERSION}
            assert refused.value.remedy.startswith("Upgrade testigo")


@pytest.mark.parametrize("door", [migrate, check_migrations])
def test_migrating_a_database_that_is_away_says_so(door: type, tmp_path: object) -> None:
    """An absent server is an error of ours, with its reason (spec P-03)."""
    with pytest.raises(AuthorityUnavailable, match="No such file"):
        door(f"postgresql://somebody@/x?host={tmp_path}")
