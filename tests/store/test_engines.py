"""The engine's own connections: which are refused, and which are used in full because they are direct."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import Connection

from testigo.authority import claim, renew, save, settle, submit
from testigo.authority.actions import Action, new_id
from testigo.authority.submissions import NewJob
from testigo.errors import IsolationUnsupported
from testigo.store.command import single_statement
from testigo.store.database import AsyncDatabase, Database
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


def test_times_are_read_whatever_style_the_role_has_them_written_in(database_url: str, role: str) -> None:
    """A claim tells where the next one looks on, by a time as text; where nobody is in between, both are read."""
    configure(database_url, "ALTER ROLE {} SET DateStyle = 'German'", role)
    configure(database_url, "GRANT ALL ON SCHEMA testigo TO PUBLIC")
    configure(database_url, "GRANT ALL ON ALL TABLES IN SCHEMA testigo TO PUBLIC")
    with Database(as_role(database_url, role)) as db:
        world = World(db)
        submitted = world.submit(*(NewJob("work", queue="q") for _ in range(2)))
        worker = world.worker()
        claimed = worker.claim(1)
        wanted = [claim.QueueClaim("q", 1, claimed.hints["q"])]
        more = db.run(claim.claim, wanted, ("work",), slots=1, lease_id=new_id(), action=worker.action())
        assert [lease.job_id for lease in (*claimed.leases, *more.leases)] == submitted
