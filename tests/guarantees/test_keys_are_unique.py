"""A key names one job, on every route, whoever submits it at once and whatever is rolled back (spec D-01)."""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections.abc import Callable
from functools import partial

import pytest
from sqlalchemy import Connection

from testigo.authority.actions import JobId, new_id
from testigo.authority.reprocess import reprocess
from testigo.authority.submissions import How, NewJob, Submitted, SubmittedJob
from testigo.authority.submit import submit, submit_many, submit_within
from testigo.errors import KeyBusy, KeyConflict
from testigo.rules.documents import encode
from testigo.rules.outcomes import Fail
from testigo.settings import STORE
from tests.guarantees.conftest import Rounds
from tests.races import deadlocks, in_line, race
from tests.world import World

RUINED = "rolled back"


def keyed(key: str, payload: object = None, priority: int | None = None) -> NewJob:
    """A job with a key."""
    return NewJob("work", encode(payload), queue="q", key=key, priority=priority)


@pytest.mark.parametrize("undone", [1, 4, 5])
def test_of_five_transactions_that_insert_one_key_the_first_that_commits_has_it(world: World, undone: int) -> None:
    """The first ones insert it and are rolled back: they leave neither job nor receipt, and those who waited for them
    insert it in their place or are given the job of who did (field case R59; spec P-02, P-11)."""
    inserted = itertools.count(1)

    class Ruin(Exception):
        """What rolls a transaction back that has inserted the key."""

    def transaction(c: Connection) -> SubmittedJob:
        (row,) = submit_within(c, [keyed("order-17")], action=world.action()).jobs
        if row.how is How.ACCEPTED and next(inserted) < undone:
            raise Ruin
        return row

    def attempt() -> SubmittedJob | str:
        try:
            return world.db.run(transaction)
        except Ruin:
            return RUINED

    insert = partial(submit_within, jobs=[keyed("order-17")], action=world.action())
    _, *answers = in_line(world.db, insert, *[attempt] * 4, undone=True)
    assert answers.count(RUINED) == undone - 1
    kept = [answer for answer in answers if answer != RUINED]
    jobs = [str(row.id) for row in world.query("SELECT id FROM testigo.job")]
    assert {answer.job_id for answer in kept} == set(jobs)
    assert [answer.how for answer in kept].count(How.ACCEPTED) == len(jobs) == (undone < 5)
    assert world.query("SELECT count(*) AS receipts FROM testigo.receipt")[0].receipts == 5 - undone


def test_of_many_who_submit_one_key_at_once_all_have_one_job(world: World, rounds: Rounds) -> None:
    """One of them is accepted, the others are given its job; who asked for other work is refused (spec D-01)."""
    for at in rounds(300):
        same = [partial(world.db.run, submit, keyed(f"key-{at}"), action=world.action()) for _ in range(2)]
        other = partial(world.db.run, submit, keyed(f"key-{at}", "other work"), action=world.action())
        answers = race(world.db, *same, other)
        refused = [answer.facts["job"] for answer in answers if isinstance(answer, KeyConflict)]
        rows = [answer.jobs[0] for answer in answers if isinstance(answer, Submitted)]
        assert len({*refused, *(row.job_id for row in rows)}) == 1
        assert [row.how for row in rows].count(How.ACCEPTED) == 1
        assert len(refused) in (1, 2)


def test_batches_that_share_keys_in_opposite_order_do_not_wait_in_a_circle(world: World, rounds: Rounds) -> None:
    """Keys are inserted in one order, whatever the order of the batch: no deadlock, and one job a key (spec P-08)."""
    before = deadlocks(world.db)
    for at in rounds(60):
        keys = [f"{at}-{n}" for n in range(20)]
        answers = race(
            world.db,
            *(
                partial(world.db.run, submit_many, [keyed(key) for key in order], action=world.action())
                for order in (keys, keys[::-1], random.sample(keys, 20))
            ),
        )
        rows = [row for answer in answers for row in answer.jobs]
        assert [row.how for row in rows].count(How.ACCEPTED) == len({row.job_id for row in rows}) == 20
    assert deadlocks(world.db) == before


ROUTES: dict[str, Callable[[World, NewJob], SubmittedJob]] = {
    "alone": lambda world, job: world.db.run(submit, job, action=world.action()).jobs[0],
    "in a batch": lambda world, job: world.db.run(
        submit_many, [keyed("another"), job, NewJob("work", queue="q")], action=world.action()
    ).jobs[1],
    "inside a transaction": lambda world, job: world.db.run(submit_within, [job], action=world.action()).jobs[0],
    "twice in a batch": lambda world, job: world.db.run(
        submit_many, [job, dataclasses.replace(job, id=JobId(new_id()))], action=world.action()
    ).jobs[1],
}


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("end", ["failed", "reprocessed"])
def test_a_key_has_one_rule_on_every_route(world: World, route: str, end: str) -> None:
    """The key of a job that failed is given that job, or the one that took its place; other content is a conflict,
    and nothing is submitted (field case R61; spec C-06, D-01)."""
    (job,) = world.submit(keyed("order-17"))
    worker = world.worker()
    worker.settle((worker.take(), Fail("E", "never", permanent=True)))
    if end == "reprocessed":
        job = world.db.run(reprocess, job, action=world.action()).job_id
    assert ROUTES[route](world, keyed("order-17")) == (job, How.EXISTING)
    other = partial(ROUTES[route], world, keyed("order-17", "other"))
    if route == "alone":
        with pytest.raises(KeyConflict) as refused:
            other()
        assert refused.value.facts["job"] == job
    else:
        assert other() == (job, How.CONFLICT)
    (found,) = world.query("SELECT count(*) AS jobs FROM testigo.job WHERE key = 'order-17'")
    assert found.jobs == 1


def test_a_trace_is_no_part_of_what_was_asked(world: World) -> None:
    """Who submits the same again under its key does so in another trace, and has the same job (spec D-01, P-06)."""
    (first,) = world.submit(key="k", trace=f"00-{'1' * 32}-{'2' * 16}-01")
    assert world.submit(key="k", trace=f"00-{'3' * 32}-{'4' * 16}-01") == [first]


@pytest.mark.parametrize("how", [How.EXISTING, How.CONFLICT])
def test_of_two_rows_of_a_batch_with_one_key_the_first_has_it(world: World, how: How) -> None:
    """Within a batch the key belongs to the row that comes first, for any number and order of others
    (field case R61; spec D-01)."""
    for size in (2, 5, 40):
        batch = [keyed(f"{size}-{n // 2}", n if how is How.CONFLICT else None) for n in range(2 * size)]
        rows = world.db.run(submit_many, batch, action=world.action()).jobs
        assert [row.how for row in rows] == [How.ACCEPTED, how] * size
        assert [row.job_id for row in rows] == [job.id for job in batch[::2] for _ in range(2)]


def test_a_key_that_is_held_too_long_is_named(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits for a key longer than its lock time-out is told which key, and may send it again (spec P-08)."""
    short = dataclasses.replace(STORE, lock_timeout_seconds=0.05)
    monkeypatch.setattr("testigo.authority.submit.STORE", short)
    again = partial(world.db.run, submit_many, [keyed("free"), keyed("order-17")], action=world.action())

    def hold_until_it_is_refused(c: Connection) -> None:
        submit_within(c, [keyed("order-17")], action=world.action())
        with pytest.raises(KeyBusy, match="'order-17'"):
            again()

    world.db.run(hold_until_it_is_refused)
    assert [row.how for row in again().jobs] == [How.ACCEPTED, How.EXISTING]


def test_an_earlier_send_without_keys_is_waited_for_no_longer(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits for a receipt longer than the lock time-out is told so, and may send it again (spec P-03, P-08)."""
    short = dataclasses.replace(STORE, lock_timeout_seconds=0.05)
    monkeypatch.setattr("testigo.authority.submit.STORE", short)
    asked, action = [NewJob("work", queue="q")], world.action()
    again = partial(world.db.run, submit_many, asked, action=action)

    def hold_until_it_is_refused(c: Connection) -> None:
        submit_within(c, asked, action=action)
        with pytest.raises(KeyBusy, match="an earlier send"):
            again()

    world.db.run(hold_until_it_is_refused)
    assert again().replayed
