"""claim: what it grants, and what it says of what it did not grant."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import event

from testigo.authority.actions import new_id
from testigo.authority.claim import QueueClaim, claim
from testigo.authority.expire import expire
from testigo.authority.reprocess import reprocess
from testigo.authority.sessions import close_session
from testigo.errors import Invalid
from testigo.rules.documents import encode
from testigo.rules.outcomes import Lose
from tests.world import World

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def test_what_may_not_be_started_is_named_although_others_kinds_stand_before_it(world: World) -> None:
    """A claim that picked only unfit jobs names them, or the next one would pick them again (spec P-24)."""
    world.submit(kind="other")
    (unfit,) = world.submit(start_by=LONG_AGO)
    world.submit()
    claimed = world.worker().claim(1)
    assert (claimed.leases, claimed.unfit) == ((), (unfit,))


def test_a_lease_that_is_lost_before_its_payload_was_read_is_named_as_lost(world: World) -> None:
    """A large payload is read after the claim: a job taken back meanwhile is not run without it (spec P-10)."""
    (job_id,) = world.submit(payload=encode("x" * 100_000))
    worker = world.worker()
    engine = world.db._open()

    def take_back(_c: object, _cursor: object, statement: str, *_rest: Any) -> None:
        if statement.startswith("SELECT CAST(id AS text) AS id, payload, checkpoint, trace FROM"):
            world.db.run(close_session, worker.id)
            world.db.run(expire)

    event.listen(engine, "before_cursor_execute", take_back)
    claimed = worker.claim(1)
    event.remove(engine, "before_cursor_execute", take_back)
    assert (claimed.leases, claimed.lost) == ((), (job_id,))
    assert world.worker().take().payload == encode("x" * 100_000)


def test_a_claim_without_a_lease_id_is_refused(world: World) -> None:
    """A lease is named by an id before the first try, or it would fence nobody (spec P-01, P-15)."""
    world.submit()
    worker = world.worker()
    nobody: Any = None
    with pytest.raises(Invalid) as refused:
        world.db.run(claim, [QueueClaim("q", 1)], ["work"], slots=1, lease_id=nobody, action=worker.action())
    assert refused.value.field == "lease_id"


def test_a_claim_that_names_a_queue_twice_is_refused(world: World) -> None:
    """It would pick each of its jobs twice, and what is picked twice would be run twice (spec D-03)."""
    (job_id,) = world.submit()
    worker = world.worker(queues=("q", "other", "q"))
    with pytest.raises(Invalid) as refused:
        worker.claim(4)
    assert refused.value.field == "queues"
    assert world.state(job_id) == "ready"


def test_a_lease_tells_of_the_losses_before_it_and_of_the_trace_that_asked_for_it(world: World) -> None:
    """What was lost before may run alone, and a handler's span has its submitter's for a parent, also when the claim
    is sent again and when the work is done again (spec model.md, *A job*)."""
    (job_id,) = world.submit(trace=TRACE)
    worker = world.worker()
    worker.settle((worker.take(), Lose("RUNNER_DIED", "signal 9")))
    action, lease_id = worker.action(), new_id()
    claimed, again = (
        world.db.run(claim, [QueueClaim("q", 1)], ["work"], slots=1, lease_id=lease_id, action=action) for _ in range(2)
    )
    assert [(lease.losses, lease.failures, lease.trace) for lease in claimed.leases] == [(1, 0, TRACE)]
    assert again.leases == claimed.leases
    worker.succeed(*claimed.leases)
    world.db.run(reprocess, job_id, action=world.action())
    assert worker.take().trace == TRACE
