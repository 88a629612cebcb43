"""Promise 1, of what is done to many jobs: whoever is killed while doing it, each job is done once, and all are."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path

from testigo.authority.read import Filter
from testigo.authority.submissions import NewJob
from testigo.operations import OperationState, Outcome, Selection, Verb, advance, begin, items, operation
from testigo.rules.outcomes import Fail
from testigo.statistics import Measure, Span, roll_up, series
from tests.invariants import check
from tests.store.day import until
from tests.world import World

JOBS = 60

SERVER = """
import sys
from testigo.operations import advance
from testigo.statistics import roll_up
from testigo.store.database import Database

with Database(sys.argv[1]) as db:
    while True:
        db.run(advance)
        db.run(roll_up, 7)
"""


def test_a_server_that_is_killed_leaves_nothing_half_done(world: World, database_url: str, kills: range) -> None:
    """SIGKILL between two statements, anywhere: another goes on, and nothing is done or counted twice (spec B-02)."""
    jobs = world.submit(*(NewJob("work", queue="q") for _ in range(JOBS)))
    worker = world.worker()
    worker.settle(*((lease, Fail("E", "no", permanent=True)) for lease in worker.claim(JOBS).leases))
    chosen = Selection(wanted=Filter(unresolved=True))
    going = world.db.run(begin, Verb.RETRY, chosen, reason="again", action=world.action())
    assert going.total == JOBS

    def moved(before: int) -> bool:
        done = world.db.run(operation, going.id).done
        return done > before or done == JOBS

    for _ in kills:
        before = world.db.run(operation, going.id).done
        server = subprocess.Popen([sys.executable, "-c", SERVER, database_url], cwd=Path(__file__).parents[2])
        try:
            until(partial(moved, before), "a step of the operation")
        finally:
            server.kill()
            server.wait()
    while world.db.run(advance) is not None:
        pass
    while world.db.run(roll_up).more:
        pass
    over = world.db.run(operation, going.id)
    assert (over.state, over.done, over.refused) == (OperationState.DONE, JOBS, 0)
    told = world.db.run(items, going.id).items
    assert {item.outcome for item in told} == {Outcome.DONE}
    assert {item.job_id for item in told} == set(jobs)
    successors = {item.successor for item in told}
    assert len(successors) == JOBS
    assert {world.state(job) for job in successors if job} == {"ready"}
    counted = world.db.run(series, [Measure.REQUESTED, Measure.FAILED], Span.DAY)
    assert (counted[Measure.REQUESTED].total, counted[Measure.FAILED].total) == (2 * JOBS, JOBS)
    check(world.db)
