"""The engine's own connections: which are refused, and which are used in full because they are direct."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import Connection, make_url, text

from testigo.authority import claim, read, renew, save, settle, submit
from testigo.authority.actions import Action, new_id
from testigo.authority.submissions import NewJob
from testigo.errors import IsolationUnsupported
from testigo.store.command import single_statement
from testigo.store.database import AsyncDatabase, Database
from tests.services import pgbouncer
from tests.store.day import live_a_day
from tests.store.roles import as_role, ordinary_role
from tests.world import World


@pytest.fixture
def role(server_url: str) -> Iterator[str]:
    """An ordinary role."""
    with ordinary_role(server_url) as name:
        yield name


def configure(url: str, statement: str, *names: str) -> None:
    """Have an administrator say it."""
    with psycopg.connect(url, autocommit=True) as administrator:
        administrator.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_a_role_above_read_committed_is_refused_and_its_remedy_works(database_url: str, role: str, level: str) -> None:
    """The refusal comes before the first command, and names the ALTER ROLE that mends it (spec P-02)."""
    configure(database_url, f"ALTER ROLE {{}} SET default_transaction_isolation = '{level}'", role)
    configure(database_url, "GRANT USAGE ON SCHEMA testigo TO PUBLIC")
    configure(database_url, "GRANT SELECT ON testigo.schema_version TO PUBLIC")
    with Database(as_role(database_url, role)) as db:
        with pytest.raises(IsolationUnsupported, match=level.upper()) as refused:
            db.run(lambda c: None)
        assert refused.value.remedy == f"ALTER ROLE {role} SET default_transaction_isolation = 'read committed';"
        configure(database_url, refused.value.remedy)
        assert db.run(lambda c: "done") == "done"


def test_a_database_above_read_committed_is_refused_and_its_remedy_works(database_url: str) -> None:
    """Where the database says so, the role's own word is the remedy too, since it weighs more (spec P-02)."""
    name = database_url.partition("?")[0].rpartition("/")[2]
    configure(database_url, "ALTER DATABASE {} SET default_transaction_isolation = 'serializable'", name)
    with Database(database_url) as db, pytest.raises(IsolationUnsupported) as refused:
        db.run(lambda c: None)
    assert refused.value.remedy == "ALTER ROLE postgres SET default_transaction_isolation = 'read committed';"


def test_a_refused_role_is_refused_to_asynchronous_callers_too(database_url: str, role: str) -> None:
    """The check belongs to the connection, whoever opens it (spec P-02)."""
    configure(database_url, "ALTER ROLE {} SET default_transaction_isolation = 'serializable'", role)

    async def work() -> None:
        async with AsyncDatabase(as_role(database_url, role)) as db:
            with pytest.raises(IsolationUnsupported):
                await db.run(lambda c: None)

    asyncio.run(work())


@single_statement
def settings(c: Connection) -> tuple[object, ...]:
    """What is set in the session where nobody is in between."""
    shown = "SELECT current_setting('enable_seqscan'), current_setting('jit'), current_setting('plan_cache_mode')"
    return tuple(c.exec_driver_sql(shown).one())


@single_statement
def prepared(c: Connection) -> list[str]:
    """The statements that the session keeps prepared, by their first words."""
    return sorted(c.exec_driver_sql("SELECT left(statement, 24) FROM pg_prepared_statements").scalars())


def test_a_direct_connection_neither_scans_nor_compiles(database_url: str) -> None:
    """Where nobody is in between, plans are made as if tables were large (decision record 0011)."""
    with Database(database_url) as db:
        assert db.run(settings) == ("off", "off", "force_generic_plan")


def test_a_direct_connection_prepares_the_hot_statements_and_no_other(database_url: str) -> None:
    """Five statements are planned once for all; a rare one is planned for what it meets (decision record 0011)."""
    with Database(database_url, pool_size=1) as db:
        for queue in ("one", "two", "three"):
            live_a_day(db, queue)
        statements = [claim._CLAIM, renew._RENEW, save._SAVE, settle._SETTLE, submit._SUBMIT]
        hot = sorted(" ".join(statement.sql.split())[:24] for statement in statements)
        assert sorted(set(db.run(prepared))) == sorted(set(hot))


def test_a_direct_connection_of_an_event_loop_does_the_same(database_url: str) -> None:
    """The driver's asynchronous connection is recognised as well (decision record 0011)."""

    async def work() -> tuple[object, object]:
        async with AsyncDatabase(database_url, pool_size=1) as db:
            await db.run(submit.submit, NewJob("work"), action=Action("me"))
            return await db.run(settings), await db.run(prepared)

    hot = " ".join(submit._SUBMIT.sql.split())[:24]
    assert asyncio.run(work()) == (("off", "off", "force_generic_plan"), [hot])


ODD = {
    "DateStyle": "German",
    "IntervalStyle": "sql_standard",
    "TimeZone": "America/New_York",
    "bytea_output": "escape",
    "client_encoding": "LATIN1",
    "extra_float_digits": "-15",
}
"""How a server may be told to write what it answers."""
AT = datetime(2035, 2, 1, 23, 59, 59, 123456, UTC)
LONG = 1234.0 + 0.1 + 0.2


def reads_what_was_written(db: Database) -> None:
    """Times, numbers and letters come back as they went in, and a claim goes on where the last one ended."""
    world = World(db)
    jobs = [NewJob("work", queue="q", finish_by=AT, timeout_seconds=LONG, tags=("€ → ∞",)) for _ in range(2)]
    submitted = world.submit(*jobs)
    worker = world.worker()
    claimed = worker.claim(1)
    wanted = [claim.QueueClaim("q", 1, claimed.hints["q"])]
    more = db.run(claim.claim, wanted, ("work",), slots=1, lease_id=new_id(), action=worker.action())
    leases = (*claimed.leases, *more.leases)
    assert [lease.job_id for lease in leases] == submitted
    assert {(lease.finish_by, lease.timeout_seconds) for lease in leases} == {(AT, LONG)}
    assert {each.finish_by.tzinfo for each in leases if each.finish_by} == {UTC}
    found = db.run(read.job, submitted[0])
    assert (found.state, found.finish_by, found.tags) == ("running", AT, ("€ → ∞",))
    blob, span = db.run(lambda c: tuple(c.execute(text("SELECT '\\xff'::bytea, '-1 day -1 s'::interval")).one()))
    assert (blob, span) == (b"\xff", timedelta(days=-1, seconds=-1))
    (ours, theirs) = db.run(
        lambda c: tuple(c.execute(text("SELECT CAST('ready' AS testigo.job_state), '1'::xid8")).one())
    )
    assert (ours, theirs) == ("ready", b"\0\0\0\0\0\0\0\1")


def test_what_is_read_does_not_depend_on_how_the_role_has_it_written(database_url: str, role: str) -> None:
    """Whatever ALTER ROLE says, nothing of it changes what comes back."""
    for name, value in ODD.items():
        configure(database_url, f"ALTER ROLE {{}} SET {name} = '{value}'", role)
    configure(database_url, "GRANT ALL ON SCHEMA testigo TO PUBLIC")
    configure(database_url, "GRANT ALL ON ALL TABLES IN SCHEMA testigo TO PUBLIC")
    with Database(as_role(database_url, role)) as db:
        reads_what_was_written(db)


def test_nor_does_it_for_an_event_loop(database_url: str, role: str) -> None:
    """Which has cursors of its own."""
    for name, value in ODD.items():
        configure(database_url, f"ALTER ROLE {{}} SET {name} = '{value}'", role)
    configure(database_url, "GRANT ALL ON SCHEMA testigo TO PUBLIC")
    configure(database_url, "GRANT ALL ON ALL TABLES IN SCHEMA testigo TO PUBLIC")

    async def work() -> read.JobView:
        async with AsyncDatabase(as_role(database_url, role)) as db:
            job = NewJob("work", finish_by=AT, timeout_seconds=LONG, tags=("€ → ∞",))
            await db.run(submit.submit, job, action=Action("me"))
            return await db.run(read.job, job.id)

    found = asyncio.run(work())
    assert (found.finish_by, found.timeout_seconds, found.tags) == (AT, LONG, ("€ → ∞",))
    assert found.created_at.tzinfo is UTC


@pytest.mark.needs_pgbouncer
def test_nor_on_how_the_database_has_it_written_behind_a_pooler(server_url: str, database_url: str) -> None:
    """Where no session is ours and nothing is set in it (spec P-12)."""
    database = str(make_url(database_url).database)
    for name, value in ODD.items():
        configure(server_url, f"ALTER DATABASE {{}} SET {name} = '{value}'", database)
    with pgbouncer(server_url) as front, Database(behind(front.url, database_url)) as db:
        reads_what_was_written(db)


@pytest.mark.needs_pgbouncer
def test_nor_on_what_others_have_set_on_the_same_connection_of_a_pooler(server_url: str, database_url: str) -> None:
    """A pooler that clears nothing lends each transaction a connection as the last client left it."""
    with pgbouncer(server_url, pool_size=1) as front, Database(behind(front.url, database_url)) as db:
        with psycopg.connect(behind(front.url, database_url), autocommit=True, prepare_threshold=None) as other:
            for name, value in ODD.items():
                other.execute(f"SET {name} = '{value}'")
        assert db.run(lambda c: c.exec_driver_sql("SHOW extra_float_digits").scalar_one()) == "-15"
        reads_what_was_written(db)


def behind(front: str, url: str) -> str:
    """The same database through the pooler."""
    return make_url(front).set(database=make_url(url).database).render_as_string(hide_password=False)
