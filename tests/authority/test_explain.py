"""explain: why a job does not run, and when it will; or that it runs, or how it ended."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from testigo.authority.actions import JobId, new_id
from testigo.authority.admit import admit
from testigo.authority.cancel import cancel
from testigo.authority.expire import declare_dead, expire
from testigo.authority.explain import Code, Explanation, explain
from testigo.authority.explain.seen import SHOWN
from testigo.authority.pause import Scope, pause
from testigo.authority.prune import prune_jobs
from testigo.authority.reprocess import reprocess
from testigo.authority.retire import retire
from testigo.authority.sessions import close_session, drain_session
from testigo.authority.submissions import NewJob
from testigo.authority.submit import submit_within
from testigo.errors import Invalid, NotFound
from testigo.rules.decide import Policy
from testigo.rules.documents import encode
from testigo.rules.outcomes import Block, Degrade, Fail, Succeed, Yield
from testigo.rules.retries import Constant
from tests.world import World

LATER = datetime.now(UTC) + timedelta(days=1)
SLOW = Constant(3600.0)
DEAD_END = Fail("E_DEAD", "no way", permanent=True)


def why(world: World, job_id: str) -> Explanation:
    """The explanation of a job."""
    return world.db.run(explain, JobId(job_id))


def codes(explanation: Explanation) -> list[Code]:
    """What keeps the job from running, in order."""
    return [blocker.code for blocker in explanation.blockers]


def pass_date(world: World, job_id: str, date: str) -> None:
    """Let a job's date have passed."""
    past = f"UPDATE testigo.job SET {date} = now() - interval '1 second' WHERE id = CAST(:id AS uuid) RETURNING 1"
    world.query(past, id=job_id)


def failed_parent(world: World) -> JobId:
    """A parent that failed for good."""
    (parent,) = world.submit()
    worker = world.worker()
    worker.settle((worker.take(), DEAD_END))
    return parent


def test_a_job_that_nothing_holds_back_is_next(world: World) -> None:
    """The first job of a queue that is served has no blocker (spec P-13)."""
    world.worker()
    (job_id,) = world.submit()
    found = why(world, job_id)
    assert (found.code, found.blockers, found.until) == (Code.NEXT, (), None)
    assert found.facts == {"queue": "q", "sessions": 1}


def test_a_job_says_how_many_are_before_it_and_which(world: World) -> None:
    """The jobs that a claim takes first, by priority and then by age, are counted and the first named (spec P-14)."""
    world.worker()
    later = world.submit(NewJob("work", queue="q"), NewJob("work", queue="q", priority=1))
    sooner = world.submit(NewJob("other", queue="q", priority=-1))
    world.submit(NewJob("work", queue="elsewhere", priority=-5))
    found = why(world, later[1])
    assert (found.code, codes(found)) == (Code.BEHIND, [Code.BEHIND])
    assert found.facts["jobs"] == [*sooner, later[0]]
    assert found.text == "2 jobs are before it in the queue 'q'."


def test_what_is_before_a_job_is_named_up_to_a_bound(world: World) -> None:
    """However many jobs are ahead, an explanation stays short."""
    world.worker()
    ids = world.submit(*(NewJob("work", queue="q", priority=n) for n in range(SHOWN + 3)))
    found = why(world, ids[-1])
    assert found.facts["jobs"] == ids[:SHOWN]
    assert found.facts["count"] == (SHOWN + 2, False)


def test_a_job_that_no_stream_has_told_of_waits_for_admission(world: World) -> None:
    """A job of a caller's transaction is admitted first, and then waits for all that it asked for (spec P-11)."""
    world.worker()
    (parent,) = world.submit()
    asked = NewJob("work", queue="q", run_at=LATER, parents=(parent,))
    world.db.run(submit_within, [asked], action=world.action())
    found = why(world, asked.id)
    assert codes(found) == [Code.UNADMITTED, Code.NOT_YET, Code.PARENTS]
    assert found.code is Code.UNADMITTED
    assert found.blockers[1].until == LATER
    assert found.blockers[2].facts["count"] == 1


def test_a_job_waits_until_the_time_that_was_asked_for(world: World) -> None:
    """`until` is the job's own date (spec P-13)."""
    world.worker()
    (job_id,) = world.submit(run_at=LATER)
    found = why(world, job_id)
    assert (found.code, found.until, codes(found)) == (Code.NOT_YET, LATER, [Code.NOT_YET])


def test_a_time_that_has_come_waits_for_the_promotion(world: World) -> None:
    """A job whose time has come is not called late: the next promotion makes it ready (spec P-13)."""
    world.worker()
    (job_id,) = world.submit(run_at=LATER)
    pass_date(world, job_id, "due_at")
    found = why(world, job_id)
    assert found.code is Code.NOT_YET
    assert "the next promotion makes it ready" in found.text


def test_a_failed_job_says_which_try_it_waits_for_and_why(world: World) -> None:
    """The retry is numbered, dated, and names the error that it follows (spec A-14, D-04)."""
    worker = world.worker()
    (job_id,) = world.submit(backoff=SLOW, attempts=4)
    worker.settle((worker.take(), Fail("E_NET", "unreachable")))
    found = why(world, job_id)
    assert (found.code, found.until) == (Code.RETRY, world.job(job_id).due_at)
    assert found.facts == {"failures": 1, "attempts": 4, "code": "E_NET", "message": "unreachable"}
    assert found.text.startswith("It failed with E_NET and waits for the time of try 2 of 4, ")


def test_a_child_names_the_parents_that_it_waits_for(world: World) -> None:
    """Open parents are named with the state that they are in; those that ended well are not (spec A-08, P-25)."""
    worker = world.worker()
    done, runs, waits = world.submit(*(NewJob("work", queue="q", priority=n) for n in range(3)))
    (child,) = world.submit(parents=(done, runs, waits))
    world.db.run(admit)
    worker.succeed(worker.take())
    worker.take()
    found = why(world, child)
    assert (found.code, found.facts["count"]) == (Code.PARENTS, 2)
    assert found.facts["parents"] == [
        {"job": runs, "state": "running", "policy": "fail"},
        {"job": waits, "state": "ready", "policy": "fail"},
    ]


def test_a_child_that_waits_for_a_failed_parent_says_to_reprocess_it(world: World) -> None:
    """With the policy `wait`, only the parent's successor can help, and the explanation says so (spec A-08)."""
    parent = failed_parent(world)
    (open_parent,) = world.submit()
    (child,) = world.submit(parents=(parent, open_parent), policy=Policy.WAIT)
    world.db.run(admit)
    found = why(world, child)
    assert codes(found) == [Code.PARENT_FAILED, Code.PARENTS]
    assert found.facts["parents"] == [{"job": parent, "state": "permanent_failure", "policy": "wait"}]
    assert "Reprocess it." in found.text


def test_a_child_of_a_pruned_parent_says_that_only_a_cancel_ends_the_wait(world: World) -> None:
    """A parent that was pruned before its child was admitted cannot be reprocessed (spec P-25, P-26)."""
    parent = failed_parent(world)
    asked = NewJob("work", queue="q", parents=(parent,), policy=Policy.WAIT)
    world.db.run(submit_within, [asked], action=world.action())
    assert world.db.run(prune_jobs, older_than_days=0).pruned == 1
    world.db.run(admit)
    found = why(world, asked.id)
    assert found.code is Code.PARENT_FAILED
    assert "only a cancel ends the wait" in found.text


def test_a_pause_is_named_with_who_and_why(world: World) -> None:
    """A paused queue and a paused kind are both in the way, with actor, time and note (spec P-14)."""
    world.worker()
    (job_id,) = world.submit()
    world.db.run(pause, Scope.QUEUE, "q", note="flood", action=world.action("ana"))
    world.db.run(pause, Scope.KIND, "work", action=world.action("ben"))
    world.db.run(pause, Scope.QUEUE, "work", action=world.action())
    found = why(world, job_id)
    assert codes(found) == [Code.QUEUE_PAUSED, Code.KIND_PAUSED]
    assert (found.facts["actor"], found.facts["note"]) == ("ana", "flood")
    assert "'q' is paused since" in found.text
    assert found.text.endswith("by ana: flood.")


@pytest.mark.parametrize(
    ("queues", "kinds", "text"),
    [
        (("other",), ("work",), "No open session serves the queue 'q'."),
        (("q",), ("other",), "No open session runs jobs of the kind 'work'."),
    ],
)
def test_a_job_that_nobody_serves_says_so(
    world: World, queues: tuple[str, ...], kinds: tuple[str, ...], text: str
) -> None:
    """What no open session takes is called unserved: by its queue, or by its kind."""
    world.worker(queues=queues, kinds=kinds)
    (job_id,) = world.submit()
    found = why(world, job_id)
    assert (found.code, found.text) == (Code.UNSERVED, text)


def test_sessions_that_are_over_or_drain_serve_nobody(world: World) -> None:
    """Only an open session claims: one that drains, or is closed, is not counted (spec P-18)."""
    drains, closes = world.worker(), world.worker()
    world.db.run(drain_session, drains.id)
    world.db.run(close_session, closes.id)
    (job_id,) = world.submit()
    assert why(world, job_id).code is Code.UNSERVED


def test_a_queue_and_a_kind_that_are_served_apart_serve_no_job(world: World) -> None:
    """Two sessions that list the queue and the kind, but none both, take no such job."""
    world.worker(queues=("q",), kinds=("other",))
    world.worker(queues=("other",), kinds=("work",))
    (job_id,) = world.submit()
    found = why(world, job_id)
    assert (found.code, found.facts["queue_sessions"], found.facts["kind_sessions"]) == (Code.UNSERVED, 1, 1)


def test_a_blocked_job_says_what_it_needs(world: World) -> None:
    """The reason and the needs are those of its last block (spec A-13, B-14)."""
    worker = world.worker()
    (job_id,) = world.submit()
    worker.settle((worker.take(), Block("approval", "a signature")))
    found = why(world, job_id)
    assert (found.code, found.facts) == (Code.BLOCKED, {"reason": "approval", "needs": "a signature"})


@pytest.mark.parametrize("date", ["start_by", "finish_by"])
def test_a_job_past_its_date_will_be_ended(world: World, date: str) -> None:
    """It is not called ready, since no claim takes it; the same rule ends it (spec P-24, field case R50)."""
    world.worker()
    (job_id,) = world.submit(**{date: LATER})
    pass_date(world, job_id, date)
    found = why(world, job_id)
    assert (found.code, found.facts["reason"], codes(found)) == (Code.UNFIT, date, [Code.UNFIT])
    assert world.db.run(retire, [job_id]) == 1
    assert (why(world, job_id).code, why(world, job_id).facts["reason"]) == (Code.FAILED, date)


def test_a_checkpointed_job_waits_like_a_ready_one(world: World) -> None:
    """What yielded is claimable, and says so (spec P-13)."""
    worker = world.worker()
    (job_id,) = world.submit()
    worker.settle((worker.take(), Yield(encode(1))))
    assert why(world, job_id).code is Code.NEXT


def test_a_leased_and_a_running_job_name_their_holder(world: World) -> None:
    """Agent, session, beat and epoch of who owns it; nothing is in its way (spec B-12, P-16)."""
    worker = world.worker("ana")
    (job_id,) = world.submit()
    worker.claim(1, starts=False)
    leased = why(world, job_id)
    assert (leased.code, leased.blockers) == (Code.LEASED, ())
    (runs,) = world.submit()
    worker.take()
    found = why(world, runs)
    assert (found.code, found.blockers) == (Code.RUNNING, ())
    assert (found.facts["agent"], found.facts["session"], found.facts["session_state"]) == ("ana", worker.id, "open")
    assert (found.facts["epoch"], found.facts["beat"], found.facts["term_seconds"]) == (1, 0, 15.0)
    assert found.facts["started_at"] == world.job(runs).started_at


def test_a_draining_holder_is_a_holder(world: World) -> None:
    """A session that drains settles what it holds (spec P-16)."""
    worker = world.worker()
    (job_id,) = world.submit()
    worker.take()
    world.db.run(drain_session, worker.id)
    found = why(world, job_id)
    assert (found.code, found.facts["session_state"]) == (Code.RUNNING, "draining")


def test_a_job_whose_holder_is_gone_waits_for_the_next_sweep(world: World) -> None:
    """The session is dead, the job still says running; the sweep takes it back (spec P-18)."""
    worker = world.worker()
    (job_id,) = world.submit()
    worker.take()
    assert world.db.run(declare_dead, worker.id, epoch=worker.session.epoch, beat=0)
    found = why(world, job_id)
    assert (found.code, found.facts["session_state"]) == (Code.OWNER_GONE, "dead")
    world.db.run(expire)
    assert why(world, job_id).code is Code.UNSERVED


def test_a_cancel_waits_for_the_holder(world: World) -> None:
    """Until its holder answers, or is gone, the job is cancelling (spec D-20, P-24)."""
    worker = world.worker("ana")
    (job_id,) = world.submit()
    worker.take()
    world.db.run(cancel, [job_id], action=world.action())
    found = why(world, job_id)
    assert (found.code, codes(found)) == (Code.CANCELLING, [Code.CANCELLING])
    assert "'ana'" in found.text
    world.db.run(close_session, worker.id)
    assert why(world, job_id).code is Code.OWNER_GONE


def test_a_job_that_succeeded_says_when(world: World) -> None:
    """An end without a reason needs none."""
    worker = world.worker()
    (job_id,) = world.submit()
    worker.settle((worker.take(), Succeed()))
    found = why(world, job_id)
    assert (found.code, found.blockers, found.until) == (Code.SUCCEEDED, (), None)
    assert found.facts["finished_at"] == world.job(job_id).finished_at


def test_a_degraded_job_names_its_limitations(world: World) -> None:
    """What was allowed to be missing is named (spec A-13)."""
    worker = world.worker()
    (job_id,) = world.submit()
    worker.settle((worker.take(), Degrade(encode(1), ("no sound",))))
    found = why(world, job_id)
    assert (found.code, found.facts["limitations"]) == (Code.DEGRADED, ["no sound"])
    assert "(no sound)" in found.text


def test_a_job_that_failed_says_which_bound_it_reached(world: World) -> None:
    """Spent attempts and a failure that is permanent are told apart, with the last error (spec A-14, Promise 6)."""
    worker = world.worker()
    spent, dead = world.submit(NewJob("work", queue="q", attempts=1), NewJob("work", queue="q", priority=1))
    worker.settle((worker.take(), Fail("E_NET", "unreachable")))
    worker.settle((worker.take(), DEAD_END))
    found = why(world, spent)
    assert (found.code, found.facts["reason"], found.facts["code"]) == (Code.FAILED, "attempts", "E_NET")
    assert "its failures have spent its attempts (1 of 1)" in found.text
    assert (why(world, dead).facts["reason"], why(world, dead).facts["code"]) == ("permanent", "E_DEAD")


def test_a_job_that_kills_its_workers_says_so(world: World) -> None:
    """The crash limit is a reason of its own (spec P-24, Promise 6)."""
    (job_id,) = world.submit(crash_limit=1)
    worker = world.worker()
    worker.take()
    world.db.run(close_session, worker.id)
    world.db.run(expire)
    found = why(world, job_id)
    assert (found.code, found.facts["reason"], found.facts["losses"]) == (Code.FAILED, "crashes", 1)


def test_a_child_that_a_parent_ended_says_so(world: World) -> None:
    """Failing and cancelling after a parent both give the parent as the reason (spec A-08)."""
    parent = failed_parent(world)
    fails, stops = world.submit(
        *(NewJob("work", queue="q", parents=(parent,), policy=policy) for policy in (Policy.FAIL, Policy.CANCEL))
    )
    world.db.run(admit)
    assert (why(world, fails).code, why(world, fails).facts["reason"]) == (Code.FAILED, "parent")
    assert (why(world, stops).code, why(world, stops).facts["reason"]) == (Code.CANCELLED, "parent")
    assert "because a parent of it can never succeed" in why(world, stops).text


def test_a_superseded_job_names_its_successor(world: World) -> None:
    """Whether it had ended before or not, the job that took its place is named (spec A-06)."""
    (waits,) = world.submit()
    ended = failed_parent_after(world, waits)
    taken = world.db.run(reprocess, waits, action=world.action()).job_id
    again = world.db.run(reprocess, ended, action=world.action()).job_id
    found = why(world, waits)
    assert (found.code, found.facts["successor"]) == (Code.SUPERSEDED, taken)
    assert found.text.endswith(f"The job {taken} took its place.")
    assert (why(world, ended).code, why(world, ended).facts["successor"]) == (Code.FAILED, again)


def failed_parent_after(world: World, waits: JobId) -> JobId:
    """A job that failed for good while another one of its queue still waits."""
    (ended,) = world.submit(priority=-1)
    worker = world.worker()
    worker.settle((worker.take(), DEAD_END))
    assert world.state(waits) == "ready"
    return ended


def test_what_is_in_the_way_is_told_in_the_order_in_which_it_must_happen(world: World) -> None:
    """Time, parents, pauses and a server: all that is missing is named at once, what comes first before the rest."""
    (parent,) = world.submit()
    (job_id,) = world.submit(run_at=LATER, parents=(parent,))
    world.db.run(admit)
    world.db.run(pause, Scope.KIND, "work", action=world.action())
    found = why(world, job_id)
    assert codes(found) == [Code.NOT_YET, Code.PARENTS, Code.KIND_PAUSED, Code.UNSERVED]
    assert (found.code, found.until) == (Code.NOT_YET, LATER)


def test_a_pruned_job_is_refused_with_its_end(world: World) -> None:
    """Of what was pruned, the refusal tells the state in which it ended; of what never was, nothing (spec P-26)."""
    job_id = failed_parent(world)
    world.db.run(prune_jobs, older_than_days=0)
    with pytest.raises(NotFound) as pruned:
        why(world, job_id)
    assert pruned.value.facts["state"] == "permanent_failure"
    with pytest.raises(NotFound) as unknown:
        why(world, new_id())
    assert not unknown.value.facts
    with pytest.raises(Invalid):
        why(world, "7")
