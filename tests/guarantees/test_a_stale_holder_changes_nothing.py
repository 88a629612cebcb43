"""Promise 3: a stale holder changes nothing, and what it computed late is kept; a live one is never refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from testigo.authority.actions import SessionAction, new_id
from testigo.authority.admit import admit
from testigo.authority.cancel import cancel
from testigo.authority.claim import Claimed, Lease, QueueClaim, claim
from testigo.authority.deferred import How, settle_deferred
from testigo.authority.expire import expire, take_back
from testigo.authority.renew import renew
from testigo.authority.save import Saved, save
from testigo.authority.sessions import close_session
from testigo.authority.settle import settle
from testigo.authority.start import start
from testigo.authority.submissions import NewJob
from testigo.errors import LeaseLost, SessionReplaced
from testigo.rules.documents import encode
from testigo.rules.outcomes import Block, Degrade, Fail, Lose, Outcome, Release, Succeed, Yield
from testigo.rules.states import State
from testigo.store.database import Database
from tests.guarantees.conftest import Rounds
from tests.races import race
from tests.world import Worker, World, held, settlement

AT_ONCE = 10
"""How many runs end in one round, each on its own, while one sweep takes back what it can."""


def end(db: Database, lease: Lease, outcome: Outcome, action: SessionAction) -> How:
    """Settle a run by the fast path, and what that leaves by the slow one, as a keeper does."""
    ends = [settlement(lease, outcome)]
    try:
        if db.run(settle, ends, action=action).accepted:
            return How.ACCEPTED
    except SessionReplaced:
        pass
    return db.run(settle_deferred, [(0, ends[0])], action=action).rows[0].how


def test_a_settle_and_an_expiry_end_a_run_in_exactly_one_way(world: World, rounds: Rounds) -> None:
    """They race for a job, a thousand times: its holder ended it, or it was lost and waits again. Who came second is
    told so, and what it made is kept (field case R15; spec B-13, B-16, P-15, P-18)."""
    output = encode({"pages": 3})
    for at in rounds(1_000 // AT_ONCE):
        jobs = world.submit(*(NewJob("work", queue=f"q-{at}") for _ in range(AT_ONCE)))
        worker = world.worker(queues=[f"q-{at}"])
        leases = {lease.job_id: lease for lease in worker.claim(AT_ONCE).leases}
        ends = [partial(end, world.db, leases[job], Succeed(output), worker.action()) for job in jobs]

        def sweep(worker: Worker = worker) -> None:
            world.db.run(close_session, worker.id)
            world.db.run(expire)

        *answers, _ = race(world.db, *ends, sweep)
        while world.db.run(expire).more:
            pass
        kept = {row.id for row in world.query("SELECT CAST(job_id AS text) AS id FROM testigo.late")}
        for job, how in zip(jobs, answers, strict=True):
            row = world.job(job)
            accepted = (row.state, row.output, row.losses, job in kept) == ("succeeded", output, 0, False)
            lost = (row.state, row.output, row.losses, job in kept) == ("ready", None, 1, True)
            assert (accepted, lost) == (how is How.ACCEPTED, how is How.LATE)


def its_session_ended(world: World, worker: Worker, lease: Lease) -> None:
    """The session is over, and the job waits again."""
    world.db.run(close_session, worker.id)
    world.db.run(expire)
    assert world.state(lease.job_id) == "ready"


def another_has_it(world: World, worker: Worker, lease: Lease) -> None:
    """The session is over, and another one runs the job."""
    its_session_ended(world, worker, lease)
    assert world.worker().take().job_id == lease.job_id


def it_has_it_again(world: World, worker: Worker, lease: Lease) -> None:
    """The same session was granted the job anew: only the epoch and the lease are others."""
    world.db.run(take_back, worker.id, watermark=worker.n, listed=[])
    assert worker.take().job_id == lease.job_id


def it_was_cancelled(world: World, worker: Worker, lease: Lease) -> None:
    """The job was cancelled and its holder declared gone."""
    world.db.run(cancel, [lease.job_id], action=world.action())
    world.db.run(close_session, worker.id)
    world.db.run(expire)
    assert world.state(lease.job_id) == "cancelled"


def it_ended_it(world: World, worker: Worker, lease: Lease) -> None:
    """The same holder ended the run already."""
    worker.succeed(lease)


Loss = Callable[[World, Worker, Lease], None]

OUTCOMES: list[Outcome] = [
    Succeed(encode({"n": 1e2})),
    Degrade(encode([1]), ("half",)),
    Fail("E", "no"),
    Fail("E", "never", permanent=True),
    Block("approval"),
    Yield(encode({"at": 1})),
    Release(),
    Release(checkpoint=encode({"at": 2})),
    Lose("RUNNER_DIED", "gone"),
]


@pytest.mark.parametrize("lose", [its_session_ended, another_has_it, it_has_it_again, it_was_cancelled, it_ended_it])
def test_who_lost_a_lease_is_told_and_changes_nothing(world: World, lose: Loss) -> None:
    """Save, start, a beat and every kind of end are fenced by lease and epoch, even within one session; only the
    evidence grows (spec B-16, D-03, P-15; field case R36)."""
    world.submit()
    worker = world.worker()
    lease = worker.take()
    lose(world, worker, lease)
    before = world.job(lease.job_id), world.events(lease.job_id)
    with pytest.raises((LeaseLost, SessionReplaced)):
        world.db.run(save, held(lease), encode("late"), number=9, action=worker.action())
    assert world.db.run(start, [held(lease)], action=worker.action()).lost == (lease.job_id,)
    try:
        own = {"epoch": worker.session.epoch, "beat": 1, "low_water": 0}
        assert world.db.run(renew, worker.id, [held(lease)], **own).lost == (held(lease),)
    except SessionReplaced:
        assert lose is not it_has_it_again
    for outcome in OUTCOMES:
        assert end(world.db, lease, outcome, worker.action()) is How.LATE
    assert (world.job(lease.job_id), world.events(lease.job_id)) == before


@pytest.mark.parametrize("forged", [{"lease_id": new_id()}, {"epoch": 2}], ids=["lease", "epoch"])
def test_lease_and_epoch_are_both_the_fence(world: World, forged: dict[str, Any]) -> None:
    """Who names another lease or epoch than the job's own is refused, even at the job's own revision: after a failover
    that lost commits, epochs and revisions come again (spec D-03, P-15, P-23)."""
    (job,) = world.submit()
    worker = world.worker()
    lease = worker.take()._replace(**forged)
    before = world.job(job)
    assert end(world.db, lease, Succeed(), worker.action()) is How.LATE
    with pytest.raises(LeaseLost):
        world.db.run(save, held(lease), encode(1), number=1, action=worker.action())
    assert world.db.run(start, [held(lease)], action=worker.action()).lost == (job,)
    renewed = world.db.run(renew, worker.id, [held(lease)], epoch=1, beat=1, low_water=0)
    assert renewed.lost == (held(lease),)
    assert world.job(job) == before


def test_what_came_late_is_kept_word_for_word(world: World) -> None:
    """A late result names the run that made it, what it made, and the state that it found. That a run was given back
    with nothing, or lost, is none (spec B-16, P-06)."""
    world.submit()
    worker = world.worker()
    lease = worker.take()
    another_has_it(world, worker, lease)
    for outcome in OUTCOMES:
        end(world.db, lease, outcome, worker.action())
    rows = world.query("SELECT * FROM testigo.late ORDER BY id")
    expected = (lease.job_id, lease.epoch, lease.lease_id, worker.id, "running")
    assert {(str(row.job_id), row.epoch, str(row.lease_id), str(row.session_id), row.found_state) for row in rows} == {
        expected
    }
    documents = ['{"n":100.0}', "[1]", None, None, None, '{"at":1}', '{"at":2}']
    outcomes = ["succeed", "degrade", "fail", "fail", "block", "yield", "release"]
    assert [(row.outcome, row.document) for row in rows] == list(zip(outcomes, documents, strict=True))
    assert json.loads(rows[2].note)["message"] == "no"


def test_whatever_happened_to_a_job_meanwhile_its_holder_ends_it(world: World, rounds: Rounds) -> None:
    """A cancel, a save whose answer was lost and a child that begins to wait change the revision while the run is
    being settled: under a live lease that is never a refusal (spec P-15, P-25)."""
    worker = world.worker()
    for _ in rounds(2):
        world.submit(*(NewJob("work", queue="q") for _ in range(100)))
        leases = worker.claim(100).leases
        world.submit(*(NewJob("work", queue="children", parents=(lease.job_id,)) for lease in leases))
        for lease in leases:
            how, cancelled, saved, _ = race(
                world.db,
                partial(end, world.db, lease, Succeed(), worker.action()),
                partial(world.db.run, cancel, [lease.job_id], action=world.action()),
                partial(world.db.run, save, held(lease), encode(1), number=1, action=worker.action()),
                partial(world.db.run, admit, limit=1),
            )
            assert how is How.ACCEPTED
            assert cancelled.jobs[0].how in ("requested", "ended")
            assert isinstance(saved, Saved | LeaseLost)
        assert {world.state(lease.job_id) for lease in leases} == {"succeeded"}


@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda outcome: type(outcome).__name__)
def test_a_holder_that_knows_an_old_revision_ends_its_run_in_any_way(world: World, outcome: Outcome) -> None:
    """The revision is a guess that only costs time when it is wrong (spec P-09, P-15)."""
    (job,) = world.submit()
    worker = world.worker()
    lease = worker.take()
    for number in (1, 2):
        world.db.run(save, held(lease), encode(number), number=number, action=worker.action())
    assert end(world.db, lease, outcome, worker.action()) is How.ACCEPTED
    assert world.job(job).lease_id is None


def test_taking_back_leaves_the_grants_whose_answer_is_on_its_way(world: World, rounds: Rounds) -> None:
    """A claim that is answered late loses nothing to a take-back below it (spec P-17)."""
    world.submit(*(NewJob("work", queue="q") for _ in range(len(rounds(300)))))
    worker = world.worker()
    for _ in rounds(300):
        action = worker.action()
        claimed, _ = race(
            world.db,
            partial(claim_one, world.db, action),
            partial(world.db.run, take_back, worker.id, watermark=action.n - 1, listed=[]),
        )
        (lease,) = claimed.leases
        row = world.job(lease.job_id)
        assert (row.state, str(row.lease_id), row.epoch) == ("running", lease.lease_id, lease.epoch)
        worker.succeed(lease)


def test_a_claim_that_is_taken_back_while_it_is_answered_names_what_it_lost(world: World, rounds: Rounds) -> None:
    """A keeper that gave up a claim and asks again is told which leases it still has: never one that was taken back
    (spec P-05, P-17)."""
    worker = world.worker()
    for _ in rounds(100):
        (job,) = world.submit()
        action = worker.action()
        claimed, _ = race(
            world.db,
            partial(claim_one, world.db, action),
            partial(world.db.run, take_back, worker.id, watermark=action.n, listed=[]),
        )
        asked = claim_one(world.db, action)
        row = world.job(job)
        assert [lease.job_id for lease in claimed.leases] == [job]
        assert asked.lost == (() if row.lease_id else (job,))
        assert [lease.lease_id for lease in asked.leases] == ([str(row.lease_id)] if row.lease_id else [])
        worker.succeed(*(asked.leases or worker.claim(1).leases))


def claim_one(db: Database, action: SessionAction) -> Claimed:
    """Claim one job."""
    return db.run(claim, [QueueClaim("q", 1)], ("work",), slots=1, lease_id=new_id(), action=action)


def test_a_session_that_names_another_ones_lease_changes_nothing(world: World) -> None:
    """The owner is part of the fence: who knows a lease does not thereby hold it (spec D-03, P-15)."""
    (job_id,) = world.submit()
    owner, stranger = world.worker(), world.worker()
    lease = owner.take()
    assert world.db.run(start, [held(lease)], action=stranger.action()).lost == (job_id,)
    with pytest.raises(LeaseLost):
        world.db.run(save, held(lease), encode(1), number=1, action=stranger.action())
    (row,) = stranger.settle_slowly((lease, Succeed()))
    assert (row.how, row.state) == (How.LATE, State.RUNNING)
    owner.succeed(lease)
    assert world.state(job_id) == "succeeded"
