"""The proof of the demo finds each fault that it says it would: planted in a history that is whole."""

from __future__ import annotations

import pytest

from testigo.authority.actions import Action
from testigo.authority.submissions import NewJob
from testigo.authority.submit import submit_many
from testigo.demo.proof import Proof, prove
from testigo.rules.documents import encode
from testigo.rules.outcomes import Degrade, Fail, Lose, Succeed
from tests.world import World

REPORT = {"path": "a.py", "size_bytes": 10, "lines": 2, "tokens": 7, "digest": "0", "diagnostics": {"F401": 2}}
UNLINTED = {**REPORT, "diagnostics": None}


@pytest.fixture
def submission(world: World) -> Action:
    """Three jobs: the first was lost once before it succeeded, the second succeeded within limits, the third failed."""
    action = Action("demo")
    world.db.run(submit_many, [NewJob("work", encode({}), queue="q") for _ in range(3)], action=action)
    worker = world.worker()
    first, second, third = worker.claim(3, starts=True).leases
    worker.settle((first, Lose("KILLED", "its process died")))
    worker.settle((second, Degrade(encode(UNLINTED), ("half",))), (third, Fail("E", "no", permanent=True)))
    (again,) = worker.claim(1, starts=True).leases
    worker.settle((again, Succeed(encode(REPORT))))
    return action


def test_a_whole_history_is_told_as_it_was(world: World, submission: Action) -> None:
    """Every number is what happened (spec D-02, B-10)."""
    proof = _proved(world, submission)
    assert (proof.submitted, proof.succeeded, proof.degraded, proof.failed) == (3, 2, 1, 1)
    assert (proof.recovered, proof.late, proof.events) == (1, 0, 7)
    assert (proof.lost, proof.doubled, proof.gaps, proof.holds) == (0, 0, 0, True)
    found = proof.findings
    assert (found.files, found.size_bytes, found.lines, found.tokens) == (2, 20, 4, 14)
    assert (found.linted, found.diagnostics, found.often) == (1, 2, (("F401", 2),))


def test_a_job_without_an_end_is_lost(world: World, submission: Action) -> None:
    """It waits, and nobody runs it any more."""
    late = Action("demo")
    world.db.run(submit_many, [NewJob("work", encode({}), queue="q")], action=late)
    proof = _proved(world, submission, late)
    assert (proof.submitted, proof.lost, proof.holds) == (4, 1, False)


def test_a_job_that_is_not_there_is_lost(world: World, submission: Action) -> None:
    """The receipt says that it was accepted, and that counts."""
    world.query("ALTER TABLE testigo.job DISABLE TRIGGER deleted_behind_a_tombstone")
    world.query("DELETE FROM testigo.job WHERE state = 'permanent_failure'")
    proof = _proved(world, submission)
    assert (proof.submitted, proof.failed, proof.lost, proof.holds) == (3, 0, 1, False)


def test_an_end_that_no_event_tells_of_is_lost(world: World, submission: Action) -> None:
    """And its number is missing in the history."""
    world.query("DELETE FROM testigo.event WHERE type = 'job.degraded'")
    proof = _proved(world, submission)
    assert (proof.lost, proof.gaps, proof.holds) == (1, 1, False)


@pytest.mark.parametrize("type_", ["job.completed", "job.lost"])
def test_a_second_outcome_is_doubled(world: World, submission: Action, type_: str) -> None:
    """Be it a second end of the job, or a second end of one of its runs."""
    world.query(
        """
        INSERT INTO testigo.event (stream, sequence, id, type, subject, at, revision, actor, action, data)
        SELECT stream, 8, gen_random_uuid(), type, subject, at, 99, actor, action, data
        FROM testigo.event WHERE type = :type
        """,
        type=type_,
    )
    world.query("UPDATE testigo.stream SET head = 8 WHERE name = 'q'")
    proof = _proved(world, submission)
    assert (proof.doubled, proof.gaps, proof.holds) == (1, 0, False)


def test_a_job_that_nobody_accepted_is_doubled(world: World, submission: Action) -> None:
    """As if a submission that was sent twice had counted twice."""
    world.submit()
    proof = _proved(world, submission)
    assert (proof.submitted, proof.doubled, proof.holds) == (3, 1, False)


def _proved(world: World, *submissions: Action) -> Proof:
    return world.db.run(prove, "q", submissions)
