"""A run that somebody ends for its keeper has one end, whoever else ends it at that moment (spec P-22, Promise 2)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from testigo.authority.actions import JobId
from testigo.authority.cancel import cancel
from testigo.authority.claim import Lease
from testigo.authority.expire import expire
from testigo.authority.sessions import close_session
from testigo.authority.time_out import time_out
from testigo.rules.outcomes import Fail, Lose, Outcome, Release, Succeed
from testigo.rules.retries import Constant
from tests.guarantees.conftest import Rounds
from tests.races import race
from tests.world import Worker, World

Ending = Callable[[World, Worker, Lease], Any]


def settles_as(outcome: Outcome) -> Ending:
    """Its holder reports at last."""
    return lambda _, worker, lease: worker.settle((lease, outcome))


def is_cancelled(world: World, _: Worker, lease: Lease) -> Any:
    """Somebody cancels the job."""
    return world.db.run(cancel, [lease.job_id], action=world.action())


def is_expired(world: World, worker: Worker, _: Lease) -> Any:
    """Its holder's session ends, and a sweep comes."""
    world.db.run(close_session, worker.id)
    return world.db.run(expire)


def is_timed_out_too(world: World, _: Worker, lease: Lease) -> Any:
    """Another sweeper has watched it as well."""
    return world.db.run(time_out, lease.job_id, lease.epoch)


ENDINGS: dict[str, Ending] = {
    "it succeeds": settles_as(Succeed()),
    "it fails": settles_as(Fail("E", "at last", wait_seconds=0.0)),
    "it is lost": settles_as(Lose("E", "gone")),
    "it is released": settles_as(Release()),
    "it is cancelled": is_cancelled,
    "it is expired": is_expired,
    "it is timed out": is_timed_out_too,
}


@pytest.mark.parametrize("name", ENDINGS)
def test_a_run_that_is_timed_out_while_it_ends_has_one_end(world: World, rounds: Rounds, name: str) -> None:
    """One of the two ends the run, the other changes nothing or finds the job asked to stop, or locked and looks
    again: the job is in nobody's hands, and its next run is the next epoch (spec D-20, P-15, P-22, Promise 2,
    Promise 3)."""
    for _ in rounds(8):
        (job_id,) = world.submit(backoff=Constant(0), attempts=9, crash_limit=9)
        worker = world.worker()
        lease = worker.take()
        race(
            world.db,
            partial(world.db.run, time_out, job_id, lease.epoch),
            partial(ENDINGS[name], world, worker, lease),
        )
        world.db.run(time_out, job_id, lease.epoch)
        ends_again(world, job_id)


def ends_again(world: World, job_id: JobId) -> None:
    """The job is ready and runs once more, or has ended."""
    row = world.job(job_id)
    assert row.lease_id is None
    assert row.failures + row.losses + row.releases <= 1
    if row.state in ("succeeded", "cancelled"):
        return
    assert row.state == "ready"
    worker = world.worker()
    again = worker.take()
    assert (again.job_id, again.epoch) == (job_id, 2)
    worker.succeed(again)
