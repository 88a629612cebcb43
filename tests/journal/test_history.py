"""A job's history and its runs, told by its events."""

from __future__ import annotations

from dataclasses import replace

import pytest

from testigo.authority.actions import JobId, new_id
from testigo.authority.cancel import cancel
from testigo.authority.expire import expire
from testigo.authority.sessions import close_session
from testigo.authority.start import start
from testigo.errors import CursorInvalid, Invalid, NotFound
from testigo.journal.catalogue import JobCompleted
from testigo.journal.history import history, runs
from testigo.journal.streams import read
from testigo.rules.documents import encode
from testigo.rules.outcomes import Fail, Succeed, Yield
from testigo.rules.transitions import EventType
from testigo.settings import LIMITS
from tests.journal.conftest import Fill
from tests.journal.everything import FACTS, end, keep_in_full
from tests.world import World, held


def test_a_jobs_history_is_its_events_in_order_and_no_other_jobs(
    world: World, fill: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The events of one job come in the order of its revisions, page by page (spec B-03, P-27)."""
    fill(1)
    (job,) = world.submit(attempts=3, priority=-1)
    worker = world.worker()
    for _ in range(2):
        end(worker, worker.take(), Fail("E", "m" * 5_000, wait_seconds=0))
        fill(1)
    world.db.run(cancel, [job], action=world.action())
    told = [event for event in world.db.run(read, "q").events if event.subject == job]
    assert [event.type for event in told] == ["job.requested", "job.failed", "job.failed", "job.cancelled"]
    whole = world.db.run(history, job)
    assert (list(whole.events), whole.next_after) == (told, None)
    for limit, most in ((1, LIMITS.page_bytes_max), (3, LIMITS.page_bytes_max), (4, 6_000)):
        monkeypatch.setattr("testigo.journal.history.LIMITS", replace(LIMITS, page_bytes_max=most))
        pages = [world.db.run(history, job, limit=limit)]
        while pages[-1].next_after is not None:
            pages.append(world.db.run(history, job, after=pages[-1].next_after, limit=limit))
        assert [event for page in pages for event in page.events] == told
        assert len(pages) > 1


def test_what_never_was_a_job_has_no_history(world: World, fill: Fill) -> None:
    """An unknown id is not found; a job of which nothing is told, or is told any more, has an empty history."""
    with pytest.raises(NotFound):
        world.db.run(history, JobId(new_id()))
    with pytest.raises(NotFound):
        world.db.run(runs, JobId(new_id()))
    with pytest.raises(Invalid) as refused:
        world.db.run(history, JobId("no-id"))
    assert refused.value.field == "job"
    for look in (history, runs):
        with pytest.raises(CursorInvalid):
            world.db.run(look, JobId(new_id()), after=-1)
    (parent,) = world.submit()
    (unadmitted,) = world.submit(parents=(parent,))
    assert world.db.run(history, unadmitted) == ((), None)
    assert world.db.run(runs, unadmitted) == ()
    world.prune_events("q", up_to=1)
    assert world.db.run(history, parent) == ((), None)


def test_a_jobs_runs_are_told_by_the_events_that_ended_them(world: World) -> None:
    """Each run shows its epoch, agent, end and facts, although it has no row of its own (spec P-27, model.md)."""
    (job,) = world.submit()
    ant, bee = world.worker("ant"), world.worker("bee")
    end(ant, ant.take(), Fail("E42", "no luck", wait_seconds=0), facts=FACTS)
    bee.take()
    world.db.run(close_session, bee.id)
    world.db.run(expire)
    end(ant, ant.take(), Succeed(), facts=FACTS)
    failed, lost, done = world.db.run(runs, job)
    assert [(run.epoch, run.agent, run.how) for run in (failed, lost, done)] == [
        (1, "ant", EventType.FAILED),
        (2, "bee", EventType.LOST),
        (3, "ant", EventType.COMPLETED),
    ]
    assert isinstance(done.ending, JobCompleted)
    assert (done.ending.deployment, done.ending.peak_memory_bytes) == (FACTS.deployment, FACTS.peak_memory_bytes)
    assert done.started_at == FACTS.started_at
    assert lost.started_at is not None
    assert lost.ended_at is not None
    assert lost.started_at <= lost.ended_at
    assert [run.epoch for run in world.db.run(runs, job, limit=2)] == [1, 2]
    assert [run.epoch for run in world.db.run(runs, job, after=1, limit=2)] == [2, 3]
    assert world.db.run(runs, job, after=3) == ()


def test_where_events_are_kept_in_full_beginnings_and_what_was_given_back_are_runs_too(world: World) -> None:
    """A queue with all its events tells of lease, start and yield, and of the run that goes on (spec P-27)."""
    keep_in_full(world, "q")
    (job,) = world.submit()
    worker = world.worker("ant")
    (lease,) = worker.claim(1, starts=False).leases
    world.db.run(start, [held(lease)], action=worker.action())
    end(worker, lease, Yield(encode(1)))
    worker.take()
    yielded, going_on = world.db.run(runs, job)
    assert (yielded.epoch, yielded.how) == (1, EventType.CHECKPOINTED)
    assert None not in (yielded.leased_at, yielded.started_at, yielded.ended_at)
    assert (going_on.epoch, going_on.agent, going_on.how, going_on.ending) == (2, "ant", None, None)
    assert going_on.started_at is not None


def test_a_job_that_never_ran_has_no_runs(world: World) -> None:
    """A request and a cancel are no run, nor is the system's own end of a job that must not start (spec P-24)."""
    (job,) = world.submit()
    world.db.run(cancel, [job], action=world.action())
    assert world.db.run(runs, job) == ()
