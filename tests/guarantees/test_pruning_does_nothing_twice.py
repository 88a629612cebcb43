"""Promise 4 through pruning: no command is executed again because its receipt is gone, and no work is lost with it.

The sends that matter began before their refusal was written and go on after it: here they are stopped in
the middle of their statement, at a gate before the receipt.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection, create_engine, make_url

from testigo.authority.actions import JobId, new_id
from testigo.authority.admit import admit
from testigo.authority.claim import QueueClaim, claim
from testigo.authority.expire import expire
from testigo.authority.pause import Scope, pause, resume
from testigo.authority.prune import Pruned, prune_jobs, prune_receipts, prune_sessions
from testigo.authority.redact import Part, redact
from testigo.authority.renew import renew
from testigo.authority.reprocess import reprocess
from testigo.authority.retire import retire_lapsed
from testigo.authority.sessions import close_session
from testigo.authority.submissions import How, NewJob
from testigo.authority.submit import submit, submit_within
from testigo.errors import Busy, NotFound, ReceiptExpired
from testigo.rules.decide import Policy
from testigo.rules.outcomes import Fail, Succeed
from tests.guarantees.conftest import Rounds
from tests.races import in_line, race, seen_waiting
from tests.world import World

GATE = """
    CREATE FUNCTION testigo.at_the_gate() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM set_config(''lock_timeout'', ''0'', true), pg_advisory_xact_lock(1); RETURN NEW; END';
    CREATE TRIGGER gate BEFORE INSERT ON testigo.{table} FOR EACH ROW EXECUTE FUNCTION testigo.at_the_gate()
"""

prune_all = partial(prune_jobs, older_than_days=0)


@pytest.fixture
def database_url(quiet_database_url: str) -> str:
    """Nothing goes while any transaction of the server runs that is as old as its refusal: none of another test."""
    return quiet_database_url


@contextmanager
def stopped(world: World, url: str, table: str, send: Callable[[], Any]) -> Iterator[Future[Any]]:
    """A send that stands in its statement, about to insert into this table, until the block is left."""
    with psycopg.connect(url, autocommit=True) as keeper, ThreadPoolExecutor(1) as thread:
        keeper.execute(GATE.format(table=table))
        keeper.execute("SELECT pg_advisory_lock(1)")
        sending = thread.submit(send)
        try:
            seen_waiting(world.db, [sending])
            assert not sending.done()
            yield sending
        finally:
            keeper.execute("SELECT pg_advisory_unlock(1)")
        sending.exception()
        keeper.execute(f"DROP TRIGGER gate ON testigo.{table}")


def sweeps(world: World, command: Callable[..., Pruned], **asked: Any) -> int:
    """What a few sweeps in a row remove."""
    return sum(world.db.run(command, older_than_days=0, **asked).pruned for _ in range(4))


def go(world: World, command: Callable[..., Pruned], rows: int, **asked: Any) -> None:
    """Sweep until so many rows went."""
    deadline = time.monotonic() + 60
    while rows > 0:
        assert time.monotonic() < deadline, f"{rows} more rows should go"
        rows -= sweeps(world, command, **asked)
    assert rows == 0


def ended(world: World, outcome: Any = None, **given: Any) -> JobId:
    """A job that has ended."""
    (job_id,) = world.submit(**given)
    worker = world.worker()
    worker.settle((worker.take(), outcome or Succeed()))
    return job_id


def count(world: World, table: str) -> int:
    """How many rows a table has."""
    return len(world.query(f"SELECT 1 FROM testigo.{table}"))


# Receipts of actions.


def test_a_resend_that_began_before_the_floor_rose_finds_its_receipt(world: World, database_url: str) -> None:
    """It passed the floor as it was; so its receipt stays until it has ended, and is its answer (spec P-04, P-02)."""
    action = world.action()
    first = world.db.run(submit, NewJob("work", queue="q"), action=action).jobs
    again = NewJob("work", queue="q")
    with stopped(world, database_url, "receipt", lambda: world.db.run(submit, again, action=action)) as resend:
        assert sweeps(world, prune_receipts) == 0
    assert (resend.result().jobs, resend.result().replayed) == (first, True)
    go(world, prune_receipts, 1)
    with pytest.raises(ReceiptExpired):
        world.db.run(submit, again, action=action)
    assert count(world, "job") == 1


def test_a_caller_with_an_old_snapshot_executes_nothing_again(world: World, database_url: str) -> None:
    """A REPEATABLE READ transaction sees neither floor nor receipt: it is refused while it lives (spec P-02, P-04)."""
    action = world.action()
    engine = create_engine(
        make_url(database_url).set(drivername="postgresql+psycopg"), isolation_level="REPEATABLE READ"
    )
    with engine.connect() as caller:
        caller.exec_driver_sql("SELECT 1 FROM testigo.pause")
        world.db.run(pause, Scope.QUEUE, "q", action=action)
        world.db.run(resume, Scope.QUEUE, "q", action=world.action())
        assert sweeps(world, prune_receipts) == 0
        with pytest.raises(Busy):
            pause(caller, Scope.QUEUE, "q", action=action)
        caller.rollback()
    engine.dispose()
    go(world, prune_receipts, 2)
    with pytest.raises(ReceiptExpired):
        world.db.run(pause, Scope.QUEUE, "q", action=action)
    assert count(world, "pause") == 0


def test_duplicates_and_pruning_at_once_execute_a_command_once(world: World, rounds: Rounds) -> None:
    """Whoever is first, the queue is paused once by this action, and stays resumed after it (spec B-04, P-04)."""
    for _ in rounds(15):
        queue, action = new_id(), world.action()
        world.db.run(pause, Scope.QUEUE, queue, action=action)
        world.db.run(resume, Scope.QUEUE, queue, action=world.action())
        race(
            world.db,
            lambda: world.db.run(pause, Scope.QUEUE, queue, action=action),  # noqa: B023 - the race ends in its round
            lambda: sweeps(world, prune_receipts),
            lambda: sweeps(world, prune_receipts),
        )
        assert count(world, "pause") == 0


# Sessions and their receipts.


def test_a_claim_that_is_resent_below_the_low_water_mark_takes_nothing(world: World, database_url: str) -> None:
    """It began before the mark passed it; its receipt stays until it has ended (spec P-04, P-05)."""
    first, second = world.submit(NewJob("work", queue="q"), NewJob("work", queue="q"))
    worker = world.worker()
    worker.take()
    worker.n = 0
    with stopped(world, database_url, "session_receipt", lambda: worker.claim(1)) as resend:
        world.db.run(renew, worker.id, [], epoch=1, beat=1, low_water=2)
        assert sweeps(world, prune_sessions, limit=1) == 0
    assert [lease.job_id for lease in resend.result().leases] == [first]
    assert world.state(second) == "ready"
    go(world, prune_sessions, 1, limit=1)


def test_a_session_is_not_forgotten_while_a_claim_of_it_is_on_its_way(world: World, database_url: str) -> None:
    """The claim saw it open and commits after all; the sweep finds its session, and takes the job back (spec P-18)."""
    (job_id,) = world.submit()
    worker = world.worker()
    with stopped(world, database_url, "session_receipt", lambda: worker.claim(1)) as claiming:
        world.db.run(close_session, worker.id)
        assert sweeps(world, prune_sessions) == 0
    assert [lease.job_id for lease in claiming.result().leases] == [job_id]
    go(world, prune_sessions, 1)
    assert world.db.run(expire).taken == 1
    go(world, prune_sessions, 1)
    assert (count(world, "session"), world.state(job_id)) == (0, "ready")


def test_a_session_is_not_forgotten_while_a_claim_of_it_is_uncommitted(world: World) -> None:
    """Its statement is over, and only its transaction goes on: that is waited for as well (spec P-07, P-18)."""
    (job_id,) = world.submit()
    worker = world.worker()
    action = worker.action()

    def close_and_sweep() -> int:
        world.db.run(close_session, worker.id)
        return sweeps(world, prune_sessions)

    claimed, swept = in_line(
        world.db,
        lambda c: claim(c, [QueueClaim("q", 1)], ["work"], slots=1, lease_id=new_id(), action=action),
        close_and_sweep,
    )
    assert ([lease.job_id for lease in claimed.leases], swept) == ([job_id], 0)
    sweeps(world, prune_sessions)
    assert count(world, "session") == 1
    assert world.db.run(expire).taken == 1


def test_a_session_is_not_forgotten_while_a_transaction_runs_that_ran_when_it_was_marked(world: World) -> None:
    """It might have claimed by a statement that is over and saw the session open (spec P-07, P-18)."""
    worker = world.worker()
    world.db.run(close_session, worker.id)
    _, swept = in_line(
        world.db,
        lambda c: c.exec_driver_sql("SELECT CAST(pg_current_xact_id() AS text)").all(),
        lambda: sweeps(world, prune_sessions),
    )
    assert swept == 0
    go(world, prune_sessions, 1)


def test_a_session_is_not_marked_while_a_statement_runs_that_takes_it_for_open(world: World, database_url: str) -> None:
    """Whatever that statement does after the mark would not be waited for, so it is waited for before (spec P-07)."""
    worker = world.worker()

    def look(c: Connection) -> None:
        c.exec_driver_sql("SET LOCAL lock_timeout = 0")
        c.exec_driver_sql("SELECT state, pg_advisory_xact_lock(1) FROM testigo.session")

    with psycopg.connect(database_url, autocommit=True) as keeper, ThreadPoolExecutor(1) as thread:
        keeper.execute("SELECT pg_advisory_lock(1)")
        looking = thread.submit(world.db.run, look)
        try:
            seen_waiting(world.db, [looking])
            world.db.run(close_session, worker.id)
            sweeps(world, prune_sessions)
            (profile,) = world.query("SELECT receipts_below FROM testigo.session_profile")
        finally:
            keeper.execute("SELECT pg_advisory_unlock(1)")
        looking.result()
    assert profile.receipts_below == 0
    go(world, prune_sessions, 1)


# Jobs.


def test_a_reprocess_and_a_prune_of_one_job_never_both_happen(world: World, rounds: Rounds) -> None:
    """The job is gone and not done again, or done again and there; its key names what is left (spec A-06, P-04)."""
    for _ in rounds(20):
        key = new_id()
        job_id = ended(world, Fail("E", "no", permanent=True), key=key)
        again, _ = race(
            world.db,
            lambda: world.db.run(reprocess, job_id, action=world.action()),  # noqa: B023 - the race ends in its round
            lambda: world.db.run(prune_all),
        )
        there = bool(world.query("SELECT 1 FROM testigo.job WHERE id = CAST(:id AS uuid)", id=job_id))
        assert there != isinstance(again, NotFound)
        (answer,) = world.db.run(submit, NewJob("work", queue="q", key=key), action=world.action()).jobs
        assert answer == ((again.job_id if there else job_id), How.EXISTING)
        if there:
            worker = world.worker()
            worker.succeed(worker.take())
            assert world.db.run(prune_all).pruned == 2


@pytest.mark.parametrize("need", ["a successor", "a child"])
def test_what_comes_to_need_a_job_just_before_it_is_locked_keeps_it(
    world: World, monkeypatch: pytest.MonkeyPatch, need: str
) -> None:
    """What a lock guards is read after the lock: here it changes between the look and the lock (spec P-07)."""
    job_id = ended(world, Fail("E", "no", permanent=True), key="k")
    child = NewJob("work", queue="q", parents=(job_id,), policy=Policy.WAIT)
    world.db.run(submit_within, [child], action=world.action())
    module = sys.modules[prune_jobs.__module__]
    lock = module._LOCK

    class Late:
        """The statement that locks, sent a little later."""

        def rows(self, c: Connection, **parameters: Any) -> list[Any]:
            if need == "a child":
                world.db.run(admit)
            else:
                world.db.run(reprocess, job_id, action=world.action())
            return lock.rows(c, **parameters)  # type: ignore[no-any-return]

    monkeypatch.setattr(module, "_LOCK", Late())
    assert world.db.run(prune_all) == (0, False)
    assert world.state(job_id) == "permanent_failure"


def test_a_reprocess_behind_a_prune_finds_nothing(world: World) -> None:
    """It waits for the job's lock, and reads that the job is gone (spec P-07)."""
    job_id = ended(world)
    pruned, refused = in_line(world.db, prune_all, lambda: world.db.run(reprocess, job_id, action=world.action()))
    assert (pruned, type(refused)) == ((1, False), NotFound)


@pytest.mark.parametrize(
    ("outcome", "policy", "state"),
    [
        (Succeed(), Policy.FAIL, "ready"),
        (Fail("E", "no", permanent=True), Policy.FAIL, "permanent_failure"),
        (Fail("E", "no", permanent=True), Policy.CANCEL, "cancelled"),
        (Fail("E", "no", permanent=True), Policy.WAIT, "inputs_pending"),
    ],
)
def test_a_child_that_is_admitted_while_its_parent_is_pruned_learns_how_it_ended(
    world: World, rounds: Rounds, outcome: Any, policy: Policy, state: str
) -> None:
    """By the job or by its tombstone, the child is judged the same (spec P-25, P-26)."""
    for _ in rounds(8):
        parent = ended(world, outcome, priority=-1)
        child = NewJob("work", queue="q", parents=(parent,), policy=policy)
        world.db.run(submit_within, [child], action=world.action())
        race(world.db, lambda: world.db.run(admit), lambda: world.db.run(prune_all))
        # One that ended at once may be gone by now as well, behind its own tombstone.
        (row,) = world.query(
            """
            SELECT CAST(state AS text) AS state FROM testigo.job WHERE id = CAST(:id AS uuid)
            UNION ALL SELECT CAST(state AS text) FROM testigo.tombstone WHERE job_id = CAST(:id AS uuid)
            """,
            id=child.id,
        )
        assert row.state == state


def test_an_admission_behind_a_prune_judges_by_the_tombstone(world: World) -> None:
    """It waits for the parent's lock, and reads the tombstone that was written meanwhile (spec P-07, P-25)."""
    parent = ended(world)
    child = NewJob("work", queue="q", parents=(parent,))
    world.db.run(submit_within, [child], action=world.action())
    pruned, admitted = in_line(world.db, prune_all, lambda: world.db.run(admit))
    assert (pruned.pruned, admitted.admitted) == (1, 1)
    assert world.state(child.id) == "ready"


def test_a_key_that_is_submitted_while_its_job_is_pruned_is_never_new(world: World, rounds: Rounds) -> None:
    """Before, meanwhile and after, the answer is the job that did the work (spec P-04, D-01)."""
    for _ in rounds(15):
        key = new_id()
        job_id = ended(world, key=key)
        answer, _, _ = race(
            world.db,
            lambda: world.db.run(submit, NewJob("work", queue="q", key=key), action=world.action()),  # noqa: B023
            lambda: world.db.run(prune_all),
            lambda: world.db.run(prune_all),
        )
        assert answer.jobs == ((job_id, How.EXISTING),)
    assert not world.worker().claim(1).leases


def test_prunes_redactions_and_sweeps_meet_without_a_deadlock(world: World, rounds: Rounds, database_url: str) -> None:
    """All of them lock what has ended; a date that just passed is swept at the same time (spec P-08)."""
    soon = world.query("SELECT now() + interval '1 hour' AS at")[0].at
    for _ in rounds(10):
        jobs = [ended(world, finish_by=soon) for _ in range(4)]
        world.query("UPDATE testigo.lapse SET at = now() - interval '1 second' RETURNING 1")
        race(
            world.db,
            lambda: world.db.run(prune_all),
            lambda: world.db.run(redact, jobs[0], [Part.EVENTS], note="x", action=world.action()),  # noqa: B023
            lambda: world.db.run(retire_lapsed),
            lambda: world.db.run(prune_all),
        )
        world.db.run(prune_all)
        assert count(world, "job") == 0
    with psycopg.connect(database_url, autocommit=True) as c:
        c.execute("SELECT pg_stat_force_next_flush()")
        row = c.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").fetchone()
    assert row == (0,)
