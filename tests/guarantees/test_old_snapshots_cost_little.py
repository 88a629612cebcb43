"""A transaction that somebody holds open makes claims no slower, and beats write one narrow row."""

from __future__ import annotations

import psycopg
from sqlalchemy import make_url

from testigo.authority.actions import new_id
from testigo.authority.claim import FROM_THE_FRONT, Hint, QueueClaim, claim
from testigo.authority.renew import renew
from testigo.authority.submissions import NewJob
from testigo.store.database import Database
from testigo.store.sql import Statement
from tests.world import Worker, World, held

_FLUSH = Statement("SELECT pg_stat_force_next_flush()")
_ENTRIES = Statement("SELECT idx_tup_read AS entries FROM pg_stat_user_indexes WHERE indexrelname = 'job_claimable'")
_PLACES = Statement("SELECT string_agg(CAST(ctid AS text), ' ' ORDER BY id) AS places FROM testigo.job")


def test_a_claim_with_its_hint_does_not_walk_what_an_old_snapshot_keeps(database_url: str) -> None:
    """While an old snapshot is held, dead entries pile up at the front of the claim index; the hint passes them by
    (spec P-14, field case R69)."""
    conninfo = make_url(database_url).set(drivername="postgresql").render_as_string(hide_password=False)
    with Database(database_url, pool_size=1) as db, psycopg.connect(conninfo) as old:
        world = World(db)
        old.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        old.execute("SELECT 1")
        world.submit(*[NewJob("work", queue="q") for _ in range(1_200)])
        worker = world.worker()
        hint = FROM_THE_FRONT
        for _ in range(10):
            hint = _claim(worker, hint)
        before = _entries(world)
        _claim(worker, hint)
        with_hint = _entries(world) - before
        _claim(worker, FROM_THE_FRONT)
        from_the_front = _entries(world) - before - with_hint
        assert with_hint <= 2 * 100
        assert from_the_front >= 1_000


def test_a_beat_writes_no_job_however_many_the_session_holds(world: World) -> None:
    """Heartbeats do not update the wide row: the jobs stay where they lie (spec P-16, field case R69)."""
    world.submit(*[NewJob("work", queue="q") for _ in range(50)])
    worker = world.worker()
    leases = [held(lease) for lease in worker.claim(50).leases]
    places = world.query(_PLACES)[0].places
    for beat in (1, 2, 3):
        world.db.run(renew, worker.id, leases, epoch=1, beat=beat, low_water=1)
    assert world.query(_PLACES)[0].places == places


def _claim(worker: Worker, hint: Hint) -> Hint:
    """Claim a hundred jobs after the hint, settle them, and return where the next claim looks on."""
    wanted = [QueueClaim("q", 100, hint)]
    claimed = worker.db.run(claim, wanted, ["work"], slots=100, lease_id=new_id(), action=worker.action())
    worker.succeed(*claimed.leases)
    return claimed.hints["q"]


def _entries(world: World) -> int:
    """How many entries of the claim index were read so far; the pool has one connection, which reports first."""
    world.query(_FLUSH)
    return int(world.query(_ENTRIES)[0].entries)
