"""`testigo doctor` finds each fault that is planted here, says why it matters and what to do, and else nothing."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from testigo.authority.actions import Action
from testigo.authority.sessions import NewSession, close_session, open_session
from testigo.authority.submissions import NewJob
from testigo.authority.submit import submit_within
from testigo.cli.doctor import examine, host, vacuum, work
from testigo.store.database import Database
from testigo.store.schema import migrate
from tests.cli.conftest import Cli
from tests.services import create_database, drop_database, embedded_bindir, pgbouncer, postgres, server_directory
from tests.store.roles import as_role
from tests.world import World

Doctor = Callable[..., dict[str, Any]]
GRANTS = "GRANT USAGE ON SCHEMA testigo TO {0}; GRANT ALL ON ALL TABLES IN SCHEMA testigo TO {0}"

OLD = """
    current_setting(text) RETURNS text LANGUAGE sql AS $$
        SELECT CASE $1 WHEN 'server_version_num' THEN '140012' WHEN 'server_version' THEN '14.12'
                       ELSE pg_catalog.current_setting($1) END
    $$
"""
STANDBY = "pg_is_in_recovery() RETURNS boolean LANGUAGE sql AS 'SELECT true'"
AHEAD = """
    clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$
        SELECT pg_catalog.clock_timestamp() + interval '1 hour'
    $$
"""


@pytest.fixture(scope="module")
def sound_server() -> Iterator[str]:
    """A server with which nothing is wrong: the one that the tests share is not durable."""
    with (
        server_directory() as directory,
        postgres(
            embedded_bindir(), directory, fsync="on", full_page_writes="on", max_prepared_transactions=2
        ) as server,
    ):
        yield server.url


@pytest.fixture
def sound_url(sound_server: str) -> Iterator[str]:
    """A migrated database on it, the test's own."""
    name = f"test_{uuid.uuid4().hex}"
    url = create_database(sound_server, name)
    migrate(url)
    yield url
    drop_database(sound_server, name)


@pytest.fixture
def world(sound_url: str) -> Iterator[World]:
    """That database with short words for what tests do to it."""
    with Database(sound_url) as db:
        yield World(db)


@pytest.fixture
def doctor(cli: Cli, sound_url: str, monkeypatch: pytest.MonkeyPatch) -> Doctor:
    """What it finds in that database, by code; whatever is late is found at once."""
    monkeypatch.setattr(work, "LATE_SECONDS", 0.0)

    def called(url: str = sound_url, *arguments: str) -> dict[str, Any]:
        ran = cli("doctor", "--json", "--url", url, *arguments)
        found = ran.json["findings"]
        assert all(each["what"] and each["why"] and each["remedy"] for each in found)
        assert ran.json["is_well"] == all(each["level"] == "note" for each in found)
        assert ran.status == (0 if ran.json["is_well"] else 1)
        return {each["code"]: each for each in found}

    return called


@contextmanager
def administrator(url: str) -> Iterator[psycopg.Connection]:
    """Somebody who plants faults."""
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


def have(url: str, *statements: str) -> None:
    """Plant a fault."""
    with administrator(url) as connection:
        for statement in statements:
            connection.execute(statement.format(connection.info.dbname).encode())


def shadow(url: str, function: str) -> None:
    """Let a function of the server's answer otherwise, as it does on a machine that is otherwise."""
    have(
        url,
        "CREATE SCHEMA shadow",
        f"CREATE FUNCTION shadow.{function}",
        "ALTER DATABASE {} SET search_path = shadow, pg_catalog",
    )


def test_nothing_is_found_where_all_is_well(doctor: Doctor, cli: Cli, sound_url: str) -> None:
    """Exit status 0, and three words."""
    assert doctor() == {}
    assert cli("doctor", "--url", sound_url).out == "All is well.\n"


@pytest.mark.needs_postgres15
def test_the_oldest_server_is_looked_at_as_well(doctor: Doctor, postgres15_url: str) -> None:
    """Every check asks what PostgreSQL 15 can answer; that shared server is not durable, and nothing else is wrong."""
    name = f"test_{uuid.uuid4().hex}"
    url = create_database(postgres15_url, name)
    migrate(url)
    assert set(doctor(url)) == {"NOT_DURABLE"}
    drop_database(postgres15_url, name)


def test_a_finding_is_told_with_its_reason_and_its_remedy(cli: Cli) -> None:
    """In words, with exit status 1."""
    ran = cli("doctor")
    assert ran.status == 1
    assert ran.out.splitlines()[:4] == [
        "fault NOT_DURABLE",
        "  fsync is off.",
        "  why: A power cut can destroy the whole database.",
        "  do:  Set fsync = on in postgresql.conf and reload the server.",
    ]


def test_a_server_that_is_away_is_found(doctor: Doctor) -> None:
    """Nothing else can be looked at."""
    found = doctor("postgresql://nobody@127.0.0.1:1/none")
    assert (list(found), found["UNREACHABLE"]["level"]) == (["UNREACHABLE"], "fault")
    assert list(doctor("mysql://db")) == ["INVALID"]


def test_a_schema_that_is_missing_or_of_another_release_is_found(doctor: Doctor, sound_url: str) -> None:
    """One that is newer asks for another release here, not for migrations."""
    missing = doctor(sound_url, "--schema", "elsewhere")
    assert missing["SCHEMA_MISMATCH"]["remedy"] == "Run `testigo migrate`."
    have(sound_url, "UPDATE testigo.schema_version SET version_num = '9999'")
    assert "Upgrade testigo here" in doctor()["SCHEMA_MISMATCH"]["remedy"]
    have(sound_url, "UPDATE testigo.schema_version SET version_num = '0000'")
    assert doctor()["SCHEMA_MISMATCH"]["remedy"] == "Run `testigo migrate`."


@pytest.mark.parametrize(
    ("function", "code"), [(OLD, "SERVER_TOO_OLD"), (STANDBY, "SERVER_IS_STANDBY"), (AHEAD, "CLOCKS_APART")]
)
def test_a_server_of_another_kind_is_found(doctor: Doctor, sound_url: str, function: str, code: str) -> None:
    """Too old, only a standby, with a clock an hour ahead."""
    shadow(sound_url, function)
    assert code in doctor()


def test_a_clock_that_jumps_is_found(doctor: Doctor, sound_url: str) -> None:
    """Two reads that are further apart than the time between them."""
    have(sound_url, "CREATE SEQUENCE reads")
    ahead = "pg_catalog.clock_timestamp() + nextval('public.reads') * interval '1 hour'"
    shadow(sound_url, f"clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$ SELECT {ahead} $$")
    assert round(doctor()["CLOCK_JUMPS"]["facts"]["seconds"] / 3_600) == 1


def test_a_database_that_is_not_in_utf8_is_found(doctor: Doctor, sound_server: str) -> None:
    """It would refuse payloads one by one."""
    name = f"test_{uuid.uuid4().hex}"
    have(sound_server, f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'LATIN1'")
    url = sound_server.replace("/postgres?", f"/{name}?")
    assert doctor(url)["DATABASE_NOT_UTF8"]["facts"] == {"encoding": "LATIN1"}
    drop_database(sound_server, name)


@pytest.mark.parametrize(
    ("setting", "code", "remedy"),
    [
        ("default_transaction_isolation = 'repeatable read'", "ISOLATION_UNSUPPORTED", "default_transaction_isolation"),
        ("statement_timeout = '5s'", "TIME_LIMIT_SHORT", "statement_timeout = '60s'"),
        ("idle_in_transaction_session_timeout = '500ms'", "TIME_LIMIT_SHORT", "idle_in_transaction_session_timeout"),
        ("synchronous_commit = off", "NOT_DURABLE", "synchronous_commit = on"),
    ],
)
def test_a_setting_that_harms_is_found(doctor: Doctor, sound_url: str, setting: str, code: str, remedy: str) -> None:
    """With the statement that puts it right."""
    have(sound_url, f"ALTER DATABASE {{}} SET {setting}")
    found = doctor()
    assert list(found) == [code]
    assert f"ALTER ROLE postgres SET {remedy}" in found[code]["remedy"]


def test_a_server_that_does_not_clean_up_is_found(doctor: Doctor, sound_server: str) -> None:
    """autovacuum is off for all."""
    with administrator(sound_server) as connection:
        connection.execute("ALTER SYSTEM SET autovacuum = off")
        connection.execute("SELECT pg_reload_conf()")
        while connection.execute("SHOW autovacuum").fetchone() != ("off",):
            pass
        try:
            assert list(doctor()) == ["AUTOVACUUM_OFF"]
        finally:
            connection.execute("ALTER SYSTEM RESET autovacuum")
            connection.execute("SELECT pg_reload_conf()")


def test_what_holds_the_cleaning_back_is_found(doctor: Doctor, sound_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A transaction that stays open, one that was prepared and forgotten, a slot that nobody reads."""
    monkeypatch.setattr(vacuum, "TRANSACTION_SECONDS_MAX", 0.0)
    monkeypatch.setattr(vacuum, "PREPARED_SECONDS_MAX", 0.0)
    have(
        sound_url,
        "BEGIN; CREATE TABLE public.t (); PREPARE TRANSACTION 'forgotten'",
        "SELECT pg_create_physical_replication_slot('unread', true)",
    )
    try:
        with psycopg.connect(sound_url, application_name="report") as forgetful:
            forgetful.execute("SELECT pg_current_xact_id()")
            found = doctor()
            assert sorted(found) == ["LONG_TRANSACTION", "PREPARED_TRANSACTION", "REPLICATION_SLOT"]
            pid = forgetful.info.backend_pid
    finally:
        have(sound_url, "ROLLBACK PREPARED 'forgotten'", "SELECT pg_drop_replication_slot('unread')")
    assert f"pg_terminate_backend({pid})" in found["LONG_TRANSACTION"]["remedy"]
    assert "report" in found["LONG_TRANSACTION"]["what"]
    assert found["PREPARED_TRANSACTION"]["facts"]["gid"] == "forgotten"
    assert "pg_drop_replication_slot('unread')" in found["REPLICATION_SLOT"]["remedy"]
    assert doctor() == {}


def test_rights_that_a_role_lacks_are_found(doctor: Doctor, database_url: str, role: str) -> None:
    """By table; the statement that grants them puts it right."""
    url = as_role(database_url, role)
    assert doctor(url)["RIGHTS_LACKING"]["facts"]["lacks"] == ["USAGE of the schema"]
    have(database_url, GRANTS.replace("{0}", role), f"REVOKE DELETE ON testigo.edge FROM {role}")
    found = doctor(url)
    assert found["RIGHTS_LACKING"]["facts"]["lacks"] == ["edge: DELETE"]
    have(database_url, found["RIGHTS_LACKING"]["remedy"])
    assert "RIGHTS_LACKING" not in doctor(url)


def test_a_role_that_has_few_connections_left_is_found(doctor: Doctor, database_url: str, role: str) -> None:
    """The doctor's own is the last one."""
    have(database_url, GRANTS.replace("{0}", role), f"ALTER ROLE {role} CONNECTION LIMIT 1")
    facts = doctor(as_role(database_url, role))["FEW_CONNECTIONS_LEFT"]["facts"]
    assert facts == {"used": 1, "most": 1, "whose": "role"}


@pytest.mark.needs_pgbouncer
def test_a_pooler_is_noted(doctor: Doctor, sound_url: str) -> None:
    """It is no fault: all works, only later."""
    with pgbouncer(sound_url) as front:
        found = doctor(front.url.replace("/postgres?", f"/{sound_url.rpartition('/')[2].partition('?')[0]}?"))
    assert {code: each["level"] for code, each in found.items()} == {"POOLER": "note"}


def test_jobs_that_nobody_serves_are_found(doctor: Doctor, world: World) -> None:
    """By queue and kind; a worker that serves the queue and lacks the kind does not count."""
    world.submit(kind="report"), world.submit(kind="report"), world.submit(kind="work")
    new = NewSession("worker", ("q",), ("work",), term_seconds=2.0)
    world.db.run(open_session, new, action=Action("tester"))
    assert doctor()["UNSERVED"]["facts"] == {"queue": "q", "kind": "report", "jobs": 2}


def test_what_nobody_sweeps_is_found(doctor: Doctor, world: World, sound_url: str) -> None:
    """Due jobs, jobs of transactions, and jobs of a session that is over."""
    world.submit(run_at=datetime.now(UTC) + timedelta(hours=1))
    have(sound_url, "UPDATE testigo.job SET due_at = now() - interval '1 minute'")
    assert list(doctor()) == ["NOT_PROMOTED"]
    world.db.run(submit_within, [NewJob("work", queue="q")], action=Action("tester"))
    world.submit()
    worker = world.worker()
    assert worker.claim(1).leases
    world.db.run(close_session, worker.id)
    found = doctor()
    assert sorted(found) == ["NOT_ADMITTED", "NOT_PROMOTED", "NOT_TAKEN_BACK"]
    assert found["NOT_ADMITTED"]["what"].startswith("1 job ")


def test_a_worker_that_went_silent_is_found(doctor: Doctor, world: World, sound_url: str) -> None:
    """One that beats is not: it is watched until it does."""
    for agent in ("silent", "lively"):
        new = NewSession(agent, ("q",), ("work",), term_seconds=2.0)
        world.db.run(open_session, new, action=Action("tester"))
    done = threading.Event()
    beating = threading.Thread(target=_beat, args=(sound_url, done))
    beating.start()
    try:
        found = doctor()
    finally:
        done.set()
        beating.join()
    assert found["SILENT_WORKER"]["facts"]["agent"] == "silent"
    have(sound_url, "DELETE FROM testigo.session WHERE agent = 'silent'")


def test_what_cannot_be_looked_at_is_said(doctor: Doctor, sound_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock in the way ends one check and no other."""
    monkeypatch.setattr(examine, "ANSWER_SECONDS", 0.2)
    with psycopg.connect(sound_url) as locking:
        locking.execute("LOCK TABLE testigo.admission IN ACCESS EXCLUSIVE MODE")
        found = doctor()
    assert found["UNCHECKED"]["facts"] == {"check": "admission"}


def test_a_disk_that_is_nearly_full_is_found(tmp_path: Path) -> None:
    """That of an embedded server, whose data is ours to look after."""
    assert list(host.disk(tmp_path, free_bytes_min=0)) == []
    (found,) = host.disk(tmp_path, free_bytes_min=2**62)
    assert (found.code, found.facts["directory"]) == ("DISK_NEARLY_FULL", str(tmp_path))


def _beat(url: str, done: threading.Event) -> None:
    with administrator(url) as connection:
        while not done.wait(0.05):
            connection.execute("UPDATE testigo.session SET beat = beat + 1 WHERE agent = 'lively'")
