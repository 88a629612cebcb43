"""Dates that pass while nobody claims: every job that waits ends by them, and no odd row stops the sweep.

No test waits for a date. It is moved into the past where it stands.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from testigo.authority.actions import JobId, new_id
from testigo.authority.admit import admit
from testigo.authority.jobs import lock
from testigo.authority.retire import retire, retire_lapsed
from testigo.authority.submissions import NewJob
from testigo.authority.submit import submit_within
from testigo.authority.unblock import unblock
from testigo.rules.outcomes import Block, Release
from tests.races import in_line
from tests.world import World

SOON = datetime.now(UTC) + timedelta(hours=1)


def pass_date(world: World, job_id: JobId, date: str) -> None:
    """Let a job's `start_by` or `finish_by` have passed, and let the sweep look at it now."""
    passed = "= now() - interval '1 second' WHERE"
    world.query(f"UPDATE testigo.job SET {date} {passed} id = CAST(:id AS uuid) RETURNING 1", id=job_id)
    world.query(f"UPDATE testigo.lapse SET at {passed} job_id = CAST(:id AS uuid) RETURNING 1", id=job_id)


def lapses(world: World, job_id: JobId) -> list[bool]:
    """The dates that are still watched for a job: for each, whether it is its `finish_by`."""
    watched = """
        SELECT l.at = j.finish_by AS finish FROM testigo.lapse l LEFT JOIN testigo.job j ON j.id = l.job_id
        WHERE l.job_id = CAST(:id AS uuid)
    """
    return [row.finish for row in world.query(watched, id=job_id)]


def test_a_blocked_job_past_its_date_stops_no_sweep(world: World) -> None:
    """A job that is blocked keeps its date until it is unblocked, and the others end meanwhile
    (spec P-24, B-14, field case R50)."""
    (blocked,) = world.submit(finish_by=SOON)
    worker = world.worker()
    worker.settle((worker.take(), Block("approval")))
    (waits,) = world.submit(finish_by=SOON)
    for job_id in (blocked, waits):
        pass_date(world, job_id, "finish_by")
    assert world.db.run(retire_lapsed) == 1
    assert (world.state(blocked), world.state(waits)) == ("blocked_by_quality", "permanent_failure")
    world.db.run(unblock, [blocked], action=world.action())
    pass_date(world, blocked, "finish_by")
    assert world.db.run(retire_lapsed) == 1
    assert (world.state(blocked), world.job(blocked).reason) == ("permanent_failure", "finish_by")


def test_a_job_that_is_owned_at_its_date_ends_when_it_comes_back(world: World) -> None:
    """Who holds it may finish; once it waits again, its date ends it although nobody claims (spec P-24)."""
    (job_id,) = world.submit(finish_by=SOON)
    worker = world.worker()
    lease = worker.take()
    pass_date(world, job_id, "finish_by")
    assert world.db.run(retire_lapsed) == 0
    assert world.state(job_id) == "running"
    assert lapses(world, job_id) == [False]
    worker.settle((lease, Release()))
    assert (world.state(job_id), world.job(job_id).reason) == ("permanent_failure", "finish_by")


def test_after_its_first_run_only_the_later_date_binds_a_job(world: World) -> None:
    """When `start_by` passes for a job that has run, its `finish_by` is still watched (spec P-24)."""
    (job_id,) = world.submit(start_by=SOON, finish_by=SOON + timedelta(hours=1))
    worker = world.worker()
    worker.settle((worker.take(), Release()))
    pass_date(world, job_id, "start_by")
    assert world.db.run(retire_lapsed) == 0
    assert (world.state(job_id), lapses(world, job_id)) == ("ready", [True])
    pass_date(world, job_id, "finish_by")
    assert world.db.run(retire_lapsed) == 1
    assert (world.state(job_id), world.job(job_id).reason, lapses(world, job_id)) == (
        "permanent_failure",
        "finish_by",
        [],
    )


def test_a_job_that_has_run_and_has_no_later_date_is_not_watched_any_more(world: World) -> None:
    """A `start_by` that has been kept is forgotten (spec P-24)."""
    (job_id,) = world.submit(start_by=SOON)
    worker = world.worker()
    worker.settle((worker.take(), Release()))
    pass_date(world, job_id, "start_by")
    assert world.db.run(retire_lapsed) == 0
    assert (world.state(job_id), lapses(world, job_id)) == ("ready", [])


def test_the_date_of_a_job_that_is_not_admitted_yet_is_not_forgotten(world: World) -> None:
    """It is admitted first, and ends by its date after that (spec P-11, P-24)."""
    job = NewJob("work", queue="q", finish_by=SOON)
    world.db.run(submit_within, [job], action=world.action())
    pass_date(world, job.id, "finish_by")
    assert world.db.run(retire_lapsed) == 0
    assert lapses(world, job.id) == [False]
    world.db.run(admit)
    pass_date(world, job.id, "finish_by")
    assert world.db.run(retire_lapsed) == 1
    assert world.events(job.id) == ["job.requested", "job.failed"]


def test_a_job_that_somebody_has_locked_keeps_no_other_from_its_end(world: World) -> None:
    """Nothing is waited for; it is ended once it is free, by a sweep or a claim (spec P-08, P-24)."""
    locked, free = world.submit(NewJob("work", queue="q", finish_by=SOON), NewJob("work", queue="q", finish_by=SOON))
    for job_id in (locked, free):
        pass_date(world, job_id, "finish_by")
    _, *retired = in_line(
        world.db,
        lambda c: lock(c, [locked]),
        lambda: world.db.run(retire, [locked]),
        lambda: world.db.run(retire_lapsed),
        undone=True,
    )
    assert retired == [0, 1]
    assert (world.state(locked), world.state(free)) == ("ready", "permanent_failure")
    assert lapses(world, locked) == [False]
    assert world.db.run(retire_lapsed) == 1
    assert (world.state(locked), lapses(world, locked)) == ("permanent_failure", [])


def test_what_is_watched_of_a_job_that_is_gone_is_forgotten(world: World) -> None:
    """The sweep does not meet the date of a job that was pruned a second time (spec P-24, field case R50)."""
    gone = JobId(new_id())
    at = "now() - interval '1 second'"
    world.query(f"INSERT INTO testigo.lapse (job_id, at) VALUES (CAST(:id AS uuid), {at}) RETURNING 1", id=gone)
    assert world.db.run(retire_lapsed) == 0
    assert lapses(world, gone) == []
