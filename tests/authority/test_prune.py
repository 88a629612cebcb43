"""prune_jobs and prune_tombstones: what has ended goes, in bounded steps, and nothing that is needed does."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy.exc import DBAPIError

from testigo.authority.actions import JobId
from testigo.authority.admit import admit
from testigo.authority.cancel import cancel
from testigo.authority.expire import take_back
from testigo.authority.prune import Pruned, prune_jobs, prune_tombstones
from testigo.authority.read import lineage, tombstones
from testigo.authority.redact import Part, redact
from testigo.authority.reprocess import reprocess
from testigo.authority.submissions import How, NewJob
from testigo.authority.submit import submit, submit_within
from testigo.errors import Invalid, KeyConflict, NotFound
from testigo.rules.decide import Policy
from testigo.rules.documents import encode
from testigo.rules.identity import content_digest, digest
from testigo.rules.outcomes import Block, Fail, Succeed
from testigo.settings import LIMITS
from tests.invariants import check
from tests.races import in_line
from tests.world import World

DEAD_END = Fail("E", "no", permanent=True)
BESIDE = ("edge", "late", "lapse", "admission", "successor")


def end(world: World, outcome: Any = None, **given: Any) -> JobId:
    """A job that has ended, as the next of its queue."""
    (job_id,) = world.submit(**{"priority": -1, **given})
    worker = world.worker()
    worker.settle((worker.take(), outcome or Succeed()))
    return job_id


def prune(world: World, days: int = 0, **given: Any) -> int:
    """Prune until there is no more; how many jobs went."""
    steps = [world.db.run(prune_jobs, older_than_days=days, **given)]
    while steps[-1].more:
        steps.append(world.db.run(prune_jobs, older_than_days=days, **given))
    return sum(step.pruned for step in steps)


def left(world: World) -> set[str]:
    """The ids of the jobs that are left."""
    return {row.id for row in world.query("SELECT CAST(id AS text) AS id FROM testigo.job")}


def beside(world: World) -> dict[str, int]:
    """How many rows there are in the tables beside the jobs, where there are any."""
    counts = {table: len(world.query(f"SELECT 1 FROM testigo.{table}")) for table in BESIDE}
    return {table: count for table, count in counts.items() if count}


def short_walks(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    """Let a step of the walk look at few jobs."""
    monkeypatch.setattr(sys.modules["testigo.authority.prune.jobs"], "LIMITS", replace(LIMITS, walk_rows=rows))


def test_a_job_that_ended_goes_and_leaves_a_tombstone(world: World) -> None:
    """Its state, its key and the digests of its payload and output are kept, by the system (spec P-26)."""
    job_id = end(world, Succeed(encode("out")), payload=encode({"in": 1}), client="shop", key="k")
    finished_at = world.job(job_id).finished_at
    assert prune(world) == 1
    assert left(world) == set()
    (tombstone,) = world.db.run(tombstones, job_id).items
    assert (tombstone.what, tombstone.state, tombstone.actor) == ("pruned", "succeeded", "system")
    texts = {"payload": content_digest('{"in":1}'), "output": content_digest('"out"')}
    assert tombstone.digest == digest("pruned", {"job": job_id, **texts})
    assert finished_at.isoformat() in tombstone.note
    assert world.events(job_id) == ["job.requested", "job.completed"]
    check(world.db)


def test_nothing_is_left_beside_a_job_that_went(world: World) -> None:
    """Its edges in both directions, late results, dates and successor rows go with it."""
    parent = end(world)
    finish_by = world.query("SELECT now() + interval '1 hour' AS at")[0].at
    (job_id,) = world.submit(parents=(parent,), finish_by=finish_by, priority=-1)
    world.submit(parents=(job_id,), policy=Policy.CANCEL)
    world.db.run(admit)
    worker = world.worker()
    lease = worker.take()
    world.db.run(take_back, worker.id, watermark=worker.n, listed=[])
    worker.settle((lease, Succeed()))
    worker.settle((worker.take(), DEAD_END))
    again = world.db.run(reprocess, job_id, action=world.action()).job_id
    worker.settle((worker.take(), DEAD_END))
    assert beside(world) == {"edge": 2, "late": 1, "lapse": 2, "successor": 1}
    assert world.state(again) == "permanent_failure"
    assert prune(world) == 4
    assert beside(world) == {}
    check(world.db)


def test_what_lives_or_ended_lately_stays(world: World) -> None:
    """A job goes when it ended longer ago than the stated time, however long ago it was made."""
    worker = world.worker()
    blocked = end(world, Block("approval"))
    lately = end(world)
    waits, runs = world.submit(NewJob("work", queue="q"), NewJob("work", queue="q", priority=-1))
    worker.take()
    assert prune(world, days=30) == 0
    assert left(world) == {blocked, lately, waits, runs}
    assert prune(world) == 1
    assert left(world) == {blocked, waits, runs}


def test_a_parent_that_somebody_waits_for_stays(world: World) -> None:
    """What failed is kept for as long as a child waits for its successor; then it goes (spec A-08, P-25)."""
    parent = end(world, DEAD_END)
    (child,) = world.submit(parents=(parent,), policy=Policy.WAIT)
    world.db.run(admit)
    assert prune(world) == 0
    world.db.run(cancel, [child], action=world.action())
    assert prune(world) == 1
    assert left(world) == {parent}
    assert prune(world) == 1


def test_a_closed_edge_holds_no_parent(world: World) -> None:
    """A parent that gave its children what they waited for goes before them; they stay as they are (spec P-25)."""
    parent = end(world)
    (child,) = world.submit(parents=(parent,))
    world.db.run(admit)
    assert prune(world) == 1
    assert world.state(child) == "ready"
    assert not world.db.run(lineage, child).parents
    check(world.db)


def test_a_child_admitted_after_its_parent_went_is_judged_by_the_tombstone(world: World) -> None:
    """How the parent ended is known as long as its tombstone: it gave its input, or it failed (spec P-25)."""
    good, bad = end(world), end(world, DEAD_END)
    asked = [NewJob("work", queue="q", parents=(parent,)) for parent in (good, bad)]
    world.db.run(submit_within, asked, action=world.action())
    assert prune(world) == 2
    world.db.run(admit)
    assert [world.state(job.id) for job in asked] == ["ready", "permanent_failure"]
    check(world.db)


# Keys.


def test_a_key_outlives_its_job_and_does_no_work_twice(world: World) -> None:
    """Resubmitted, it is answered with the job that is gone; with other content, with a conflict (spec P-04, D-01)."""
    asked = NewJob("work", encode(1), queue="q", key="k")
    job_id = end(world, payload=encode(1), priority=None, key="k")
    assert prune(world) == 1
    assert world.db.run(submit, asked, action=world.action()).jobs == ((job_id, How.EXISTING),)
    with pytest.raises(KeyConflict) as refused:
        world.db.run(submit, replace(asked, payload=encode(2)), action=world.action())
    assert refused.value.facts["job"] == job_id
    assert left(world) == set()
    check(world.db)


def test_a_key_is_forgotten_with_the_tombstone_of_its_job(world: World) -> None:
    """After the stated time the key is free, and names new work (spec P-04)."""
    end(world, key="k")
    world.db.run(prune_jobs, older_than_days=0)
    assert world.db.run(prune_tombstones) == (0, False)
    assert world.db.run(prune_tombstones, older_than_days=0) == (1, False)
    asked = NewJob("work", queue="q", key="k")
    assert world.db.run(submit, asked, action=world.action()).jobs == ((asked.id, How.ACCEPTED),)


def test_tombstones_go_in_bounded_steps(world: World) -> None:
    """At most so many a transaction; the answer says whether there are more."""
    for _ in range(3):
        end(world)
    prune(world)
    steps = [world.db.run(prune_tombstones, older_than_days=0, limit=2) for _ in range(2)]
    assert steps == [Pruned(2, more=True), Pruned(1, more=False)]


def test_the_tombstone_of_a_redaction_stays_as_long_as_the_job(world: World) -> None:
    """It says which text of the job is a mark; once the job is gone, it goes as others do (spec B-11)."""
    job_id = end(world)
    world.db.run(redact, job_id, [Part.PAYLOAD], note="x", action=world.action())
    assert world.db.run(prune_tombstones, older_than_days=0).pruned == 0
    prune(world)
    assert world.db.run(prune_tombstones, older_than_days=0).pruned == 2


# Chains of reprocesses.


def test_a_chain_goes_at_once_and_its_key_with_its_last_job(world: World) -> None:
    """A key names the newest of its chain, also when all of them are gone (spec P-04, model.md)."""
    first = end(world, DEAD_END, key="k")
    worker = world.worker()
    second = world.db.run(reprocess, first, action=world.action()).job_id
    worker.settle((worker.take(), DEAD_END))
    third = world.db.run(reprocess, second, action=world.action()).job_id
    worker.succeed(worker.take())
    assert prune(world) == 3
    (row,) = world.query("SELECT CAST(job_id AS text) AS job, client, kind, key FROM testigo.tombstone WHERE key = 'k'")
    assert (row.job, row.client, row.kind) == (third, "default", "work")
    check(world.db)
    assert world.db.run(prune_tombstones, older_than_days=0).pruned == 3
    assert not world.query("SELECT 1 FROM testigo.submission")


def test_a_chain_stays_while_its_last_job_lives(world: World) -> None:
    """The first job knows the chain's key, so a later reprocess still moves it (spec A-06)."""
    first = end(world, DEAD_END, key="k")
    second = world.db.run(reprocess, first, action=world.action()).job_id
    assert prune(world) == 0
    third = world.db.run(reprocess, second, action=world.action()).job_id
    answer = world.db.run(submit, NewJob("work", queue="q", key="k", priority=-1), action=world.action())
    assert answer.jobs == ((third, How.EXISTING),)
    assert left(world) == {first, second, third}


# The walk.


def test_a_step_looks_at_a_bounded_number_of_jobs_and_the_next_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old jobs that live are looked at once a pass: they stand in the way of no later step."""
    short_walks(monkeypatch, 4)
    world.submit(*(NewJob("work", queue="q") for _ in range(9)))
    job_id = end(world)
    steps = [world.db.run(prune_jobs, older_than_days=0) for _ in range(3)]
    assert steps == [Pruned(0, more=True), Pruned(0, more=True), Pruned(1, more=False)]
    assert job_id not in left(world)
    assert prune(world) == 0


@pytest.mark.parametrize("limit", [1, 2, 3, 5])
@pytest.mark.parametrize("rows", [1, 2, 3, 10])
def test_wherever_a_step_ends_a_pass_takes_all(
    world: World, monkeypatch: pytest.MonkeyPatch, rows: int, limit: int
) -> None:
    """At the bound of the walk, at the bound of the step, and where both meet: none is passed over."""
    short_walks(monkeypatch, rows)
    stay = world.submit(*(NewJob("work", queue="q") for _ in range(2)))
    gone = [end(world) for _ in range(3)]
    stay += world.submit(queue="p")
    gone += [end(world)]
    assert prune(world, limit=limit) == len(gone)
    assert left(world) == set(stay)


@pytest.mark.parametrize(
    "odd",
    [
        "00000000-0000-0000-0000-000000000001",
        "f47ac10b-58cc-4372-a567-0e02b2c3d479",
        "0f000000-0000-7000-8000-000000000000",
        "ffffffff-ffff-ffff-ffff-fffffffffffe",
    ],
)
def test_a_job_whose_id_is_not_of_its_time_goes_as_well(
    world: World, monkeypatch: pytest.MonkeyPatch, odd: str
) -> None:
    """Ids are their makers' to make: by chance, or by a clock that is years ahead; none is kept for ever."""
    short_walks(monkeypatch, 1)
    world.submit(*(NewJob("work", queue="q", priority=1) for _ in range(2)))
    end(world, priority=-1)
    end(world, id=JobId(odd))
    end(world, priority=-1)
    assert prune(world) == 3
    assert len(left(world)) == 2
    assert world.query("SELECT place FROM testigo.prune_walk")[0].place is None


def test_a_pass_rests_until_it_is_time_for_the_next(world: World) -> None:
    """With 30 days, a pass begins once a day: nothing is looked at in between."""
    end(world)
    assert world.db.run(prune_jobs) == (0, False)
    (began,) = world.query("SELECT began_at FROM testigo.prune_walk")
    assert world.db.run(prune_jobs) == (0, False)
    assert world.query("SELECT began_at FROM testigo.prune_walk") == [began]
    world.query("UPDATE testigo.prune_walk SET began_at = now() - interval '25 hours' RETURNING 1")
    world.db.run(prune_jobs)
    assert world.query("SELECT began_at FROM testigo.prune_walk")[0] > began


def test_one_walks_at_a_time(world: World) -> None:
    """A second pruner finds nothing to do instead of waiting (spec P-08)."""
    end(world)
    first, second = in_line(
        world.db,
        lambda c: prune_jobs(c, older_than_days=0),
        lambda: world.db.run(prune_jobs, older_than_days=0),
    )
    assert (first, second) == ((1, False), (0, False))


def test_the_database_deletes_no_job_without_a_tombstone(world: World) -> None:
    """Neither one that has ended nor one that lives, nor behind the tombstone of another transaction (spec P-26)."""
    job_id = end(world)
    world.db.run(redact, job_id, [Part.PAYLOAD], note="x", action=world.action())
    (lives,) = world.submit()
    for wanted in (job_id, lives):
        with pytest.raises(DBAPIError) as refused:
            world.query("DELETE FROM testigo.job WHERE id = CAST(:id AS uuid) RETURNING 1", id=wanted)
        assert getattr(refused.value.orig, "sqlstate", None) == "TG001"
    assert left(world) == {job_id, lives}


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"older_than_days": -1}, "older_than_days"),
        ({"older_than_days": 10_001}, "older_than_days"),
        ({"older_than_days": 1.5}, "older_than_days"),
        ({"limit": 0}, "limit"),
        ({"limit": 10_001}, "limit"),
    ],
)
def test_bounds_are_refused_by_field(world: World, asked: dict[str, Any], field: str) -> None:
    """A retention and a batch in bounds, or nothing is done."""
    for command in (prune_jobs, prune_tombstones):
        with pytest.raises(Invalid) as refused:
            world.db.run(command, **asked)
        assert refused.value.field == field


def test_a_pruned_parent_is_no_parent_for_new_jobs(world: World) -> None:
    """A child names parents that exist: one that is gone is refused by field (spec P-25)."""
    parent = end(world)
    prune(world)
    with pytest.raises(NotFound) as refused:
        world.submit(parents=(parent,))
    assert refused.value.field == "jobs[0].parents"
