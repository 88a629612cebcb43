"""SIGSTOP past the term, SIGCONT: whoever was called dead meanwhile changes nothing any more (promises 2, 3)."""

from __future__ import annotations

import random
import signal
from pathlib import Path
from typing import Any

from testigo.store.sql import Statement
from tests.worker.fleet import Supervised, fleet, send
from tests.worker.load import Load
from tests.world import World

JOBS = 60
WAITING = 10
"""More than one worker has slots for: each has some of them."""

_HELD = Statement(
    """
    SELECT CAST(j.id AS text) AS id, j.epoch, CAST(j.lease_id AS text) AS lease_id, s.agent
    FROM testigo.job j JOIN testigo.session s ON s.id = j.session_id
    WHERE j.kind = 'waits' AND j.state = 'running'
    """
)
_LATE = Statement(
    "SELECT CAST(job_id AS text) AS id, epoch, CAST(lease_id AS text) AS lease_id, outcome, document FROM testigo.late"
)


def test_a_stopped_worker_finds_its_jobs_with_others(
    world: World, database_url: str, tmp_path: Path, chance: random.Random, kills: range
) -> None:
    """Its jobs are ended by another; what it reports when it wakes is kept, and it works on (spec P-15 to P-19).

    Sometimes its keeper sleeps alone while its runners finish, sometimes all of them sleep. Sometimes
    the keeper wakes first and kills its runners before they end anything: then there is nothing to keep.
    """
    with fleet(tmp_path, [database_url] * 2) as workers:
        load = Load(world, chance, workers.tend)
        workers.ready()
        for turn in kills:
            gate = tmp_path / f"gate-{turn}"
            load.add(0, *(load.job("waits", gate=str(gate)) for _ in range(WAITING)))
            load.await_that(lambda: len(world.query(_HELD)) == WAITING)
            load.add(JOBS)
            load.await_ended(chance.randrange(JOBS // 2))
            _let_one_sleep(world, load, chance.choice(workers.workers), gate, chance)
            load.check()
        assert {row.outcome for row in world.query(_LATE)} <= {"succeed", "degrade", "fail", "yield"}
        assert all(each.starts == 1 for each in workers.workers), "a worker outlives its session"


def _let_one_sleep(world: World, load: Load, sleeper: Supervised, gate: Path, chance: random.Random) -> None:
    """Have it sleep until all that it held was ended by the other, and wake."""
    sessions, runners = sleeper.sessions, sleeper.runners()
    all_sleep, keeper_is_first = chance.choice([(False, False), (True, False), (True, True)])
    sleepers = [sleeper.pid, *(runners if all_sleep else ())]
    chance.shuffle(sleepers)
    send(signal.SIGSTOP, *sleepers)
    here = {path.suffix[1:] for pid in runners for path in gate.parent.glob(f"{gate.name}.{pid}.*")}
    held = {_lease(row) for row in world.query(_HELD) if f":{sleeper.pid}:" in row.agent and row.id in here}
    gate.touch()
    load.await_all()
    if held and not keeper_is_first:
        send(signal.SIGCONT, *runners)
        load.await_that(lambda: any(Path(f"{gate}.{pid}").exists() for pid in runners))
    send(signal.SIGCONT, sleeper.pid)
    if held:  # a machine so slow that its session had ended before has nothing to show here
        load.await_that(lambda: sleeper.sessions > sessions)
    if not keeper_is_first:
        load.await_that(lambda: held <= {_lease(row) for row in world.query(_LATE)})
    send(signal.SIGCONT, *runners)


def _lease(row: Any) -> tuple[str, int, str]:
    return row.id, row.epoch, row.lease_id
