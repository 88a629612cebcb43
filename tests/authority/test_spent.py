"""A run that is given back when its contract allows no other ends its job, and its event says why."""

from __future__ import annotations

import json

import pytest

from testigo.authority.deferred import settle_deferred
from testigo.journal.catalogue import JobFailed
from testigo.journal.streams import read
from testigo.rules.documents import Document
from testigo.rules.outcomes import Release, Yield
from tests.world import World, settlement


@pytest.mark.parametrize("given_back", [Yield(Document("1")), Release("drained"), Release("drained", Document("1"))])
def test_a_job_that_has_cost_too_much_is_not_given_back_to_the_queue(world: World, given_back: Yield | Release) -> None:
    """It ends with the budget's name, keeps its checkpoint and its count, and tells what its event's schema says
    (spec A-02, D-04, Promise 6)."""
    (job_id,) = world.submit(cost_limit=5.0)
    worker = world.worker()
    worker.settle((worker.take(), Release()))
    spent = settlement(worker.take(), given_back, cost=5.0)
    world.db.run(settle_deferred, [(0, spent)], action=worker.action())
    job = world.job(job_id)
    assert (job.state, job.reason, job.releases, job.cost) == ("permanent_failure", "cost", 2, 5.0)
    assert job.checkpoint == given_back.checkpoint
    (told,) = [event for event in world.db.run(read, "q", limit=10).events if event.type == "job.failed"]
    assert JobFailed.model_validate_json(json.dumps(told.data)).reason == "cost"
