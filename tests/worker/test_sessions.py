"""One name, one worker: a second one waits, or takes the place if it was told to (spec P-21)."""

from __future__ import annotations

import signal
from pathlib import Path

import psycopg

from testigo.authority.sessions import NewSession, close_session, open_session
from tests.worker.kit import await_end, await_that, new, worker
from tests.world import World

MODULE = """
from testigo import App, AsyncContext

app = App("jobs")

@app.job("work", queue="q")
async def work(ctx: AsyncContext) -> str:
    return "done"
"""
ARGUMENTS = ("--runners", "1", "--slots", "4", "--agent", "the one")


def test_a_second_worker_of_a_set_name_waits_until_the_first_has_ended(
    world: World, tmp_path: Path, database_url: str
) -> None:
    """It says whom it waits for, and then works."""
    with worker(tmp_path, database_url, MODULE, *ARGUMENTS) as first:
        first.ready()
        with worker(tmp_path, database_url, MODULE, *ARGUMENTS, name="second") as second:
            second.said("waits")
            first.signal(signal.SIGTERM)
            assert first.wait() == 0
            second.ready()
            (job,) = world.submit(new("work"))
            assert await_end(world, job) == ["succeeded"]


def test_a_worker_whose_name_is_taken_ends_and_says_so(world: World, tmp_path: Path, database_url: str) -> None:
    """The newcomer was told to replace it; the status is that of the error."""
    with worker(tmp_path, database_url, MODULE, *ARGUMENTS, "--term-seconds", "2") as first:
        first.ready()
        with worker(tmp_path, database_url, MODULE, *ARGUMENTS, "--replace", name="second") as second:
            second.ready()
            assert first.wait() == 12
            assert "SESSION_REPLACED" in first.log
            (job,) = world.submit(new("work"))
            assert await_end(world, job) == ["succeeded"]


def test_a_worker_whose_session_was_ended_opens_another(world: World, tmp_path: Path, database_url: str) -> None:
    """Somebody closed it; nobody replaced it."""
    with worker(tmp_path, database_url, MODULE, "--runners", "1", "--term-seconds", "2") as it:
        it.ready()
        (session,) = world.query("SELECT CAST(id AS text) AS id FROM testigo.session")
        world.db.run(close_session, session.id)
        it.ready(times=2)
        (job,) = world.submit(new("work"))
        assert await_end(world, job) == ["succeeded"]


def test_a_dead_worker_of_another_host_is_waited_for(world: World, tmp_path: Path, database_url: str) -> None:
    """Its beat is watched for its whole term: only then the name is free."""
    gone = NewSession("the one", ("q",), ("work",), exclusive=True, term_seconds=2, host="another")
    world.db.run(open_session, gone, action=world.action("the one"))
    (job,) = world.submit(new("work"))
    with worker(tmp_path, database_url, MODULE, *ARGUMENTS) as it:
        it.said("waits")
        assert await_end(world, job) == ["succeeded"]


HELD_BEAT = """
    CREATE FUNCTION public.wait_for_the_test() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM pg_advisory_xact_lock(7);
        RETURN NULL;
    END $$;
    CREATE TRIGGER first_beat AFTER UPDATE ON testigo.session
        FOR EACH ROW WHEN (NEW.beat = 1 AND OLD.beat = 0) EXECUTE FUNCTION public.wait_for_the_test()
"""


def test_a_session_that_was_just_opened_when_its_worker_is_told_to_end_is_closed(
    world: World, tmp_path: Path, database_url: str
) -> None:
    """Else whoever comes next under a name that was set waits for its whole term (spec P-21)."""
    with psycopg.connect(database_url, autocommit=True) as c:
        c.execute(HELD_BEAT)
        c.execute("SELECT pg_advisory_lock(7)")
        with worker(tmp_path, database_url, MODULE, *ARGUMENTS) as it:
            await_that(lambda: world.query("SELECT 1 FROM testigo.session"), "the opening of a session")
            it.signal(signal.SIGTERM)
            it.said("draining")
            c.execute("SELECT pg_advisory_unlock(7)")
            assert it.wait() == 0
    assert [row.state for row in world.query("SELECT state FROM testigo.session")] == ["closed"]
