"""The ends of runs are reported together, and each is answered for itself (spec P-09, P-17), on a real database."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import partial

import pytest

from testigo.authority.actions import JobId
from testigo.authority.cancel import cancel
from testigo.authority.renew import renew
from testigo.authority.sessions import close_session
from testigo.authority.settle import Settlement
from testigo.authority.submissions import NewJob
from testigo.rules.documents import Document
from testigo.rules.outcomes import Fail, Lose, Outcome, Release, Succeed
from testigo.worker.runs import Run
from testigo.worker.settler import Settler
from testigo.worker.term import Term, clock
from tests.worker.kit import await_that
from tests.world import World


class Holding:
    """A keeper of one session, which claims in one go and notes what is answered."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.worker = world.worker()
        self.term = Term(self.worker.session, opened_at=clock())
        self.answered: list[Run] = []
        self.errors: list[BaseException] = []
        self.beats_meanwhile = False
        self._tickets = iter(range(1, 10_000))

    def settled(self, runs: Sequence[Run], *, seconds: float) -> None:
        """The answer to these is known."""
        self.answered.extend(runs)
        if self.beats_meanwhile:
            beat, held, low_water = self.term.next_beat()
            session = self.term.session
            self.world.db.run(renew, session.id, held, epoch=session.epoch, beat=beat, low_water=low_water)
            self.term.beaten(beat)

    def has(self, count: int) -> bool:
        """Whether the answers to so many are known."""
        return len(self.answered) == count

    def fatal(self, error: BaseException) -> None:
        """A thread came to an end."""
        self.errors.append(error)

    def claim(self, count: int) -> list[Run]:
        """Runs of so many new jobs."""
        self.world.submit(*(NewJob("work", queue="q") for _ in range(count)))
        leases = self.worker.claim(count).leases
        tickets = [next(self._tickets) for _ in leases]
        self.term.granted(self.term.action(), tickets, leases)  # as the worker's own count has it
        return [Run(ticket, lease, self.term, 0) for ticket, lease in zip(tickets, leases, strict=True)]


def ended(run: Run, outcome: Outcome, *children: NewJob) -> Run:
    """A run with its end."""
    run.end = Settlement(run.lease, outcome, children=children)
    return run


@pytest.fixture
def holding(world: World) -> Holding:
    """Who holds leases."""
    return Holding(world)


@pytest.fixture
def settler(world: World, holding: Holding) -> Iterator[Settler]:
    """A settler that runs."""
    leaving = threading.Event()
    made = Settler(world.db, holding, look=lambda: None, leaving=leaving)
    made.start()
    yield made
    leaving.set()
    assert not holding.errors


def test_a_batch_is_answered_whatever_it_holds(world: World, holding: Holding, settler: Settler) -> None:
    """Successes, failures, releases, losses and a cancel on its way: no lease is listed any more."""
    good, bad, back, lost, cancelled = holding.claim(5)
    world.db.run(cancel, [cancelled.lease.job_id], action=world.action())
    settler.put(
        [
            ended(good, Succeed(Document("1"))),
            ended(bad, Fail("NO", "no luck", permanent=True)),
            ended(back, Release("drained")),
            ended(lost, Lose("RUNNER_DIED", "it died")),
            ended(cancelled, Release("cancelled")),
        ]
    )
    await_that(lambda: len(holding.answered) == 5)
    states = [world.state(run.lease.job_id) for run in (good, bad, back, lost, cancelled)]
    assert states == ["succeeded", "permanent_failure", "ready", "ready", "cancelled"]
    assert holding.term.kept()[1] == []
    assert settler.unanswered == 0
    _, _, low_water = holding.term.next_beat()
    assert low_water == holding.term.action().n


def test_ends_that_come_one_by_one_are_each_sent_at_once(
    holding: Holding, settler: Settler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where one slot works, nothing else can come for which its end would wait."""
    monkeypatch.setattr("testigo.worker.settler.BUSY_SECONDS", 3600)
    monkeypatch.setattr("testigo.worker.settler.GATHER_SECONDS", 3600)
    for count, run in enumerate(holding.claim(3), 1):
        settler.put([ended(run, Succeed())])
        await_that(partial(holding.has, count), "the answer to an end")


def test_ends_gather_after_several_that_came_together(
    world: World, holding: Holding, settler: Settler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More are likely to come, and two in one statement cost the server no more than one."""
    monkeypatch.setattr("testigo.worker.settler.BUSY_SECONDS", 3600)
    monkeypatch.setattr("testigo.worker.settler.GATHER_SECONDS", 3600)
    monkeypatch.setattr("testigo.worker.settler.ROWS_MAX", 2)
    first, second, third, fourth = holding.claim(4)
    before = len(world.query("SELECT 1 FROM testigo.session_receipt"))
    settler.put([ended(first, Succeed()), ended(second, Succeed())])
    await_that(partial(holding.has, 2), "the answer to both")
    settler.put([ended(third, Succeed())])
    settler.put([ended(fourth, Succeed())])
    await_that(partial(holding.has, 4), "the answer to all")
    assert len(world.query("SELECT 1 FROM testigo.session_receipt")) == before + 2


def test_an_end_that_is_refused_fails_alone(world: World, holding: Holding, settler: Settler) -> None:
    """A child whose key names other work refuses its parent's end, which becomes a failure with that code."""
    world.submit(NewJob("other", queue="q", key="taken", client="c", payload=Document("1")))
    first, second = holding.claim(2)
    child = NewJob("other", queue="q", key="taken", client="c", payload=Document("2"))
    settler.put([ended(first, Succeed(), child), ended(second, Fail("NO", "", permanent=True))])
    await_that(lambda: len(holding.answered) == 2)
    assert "KEY_CONFLICT" in world.job(_id(first)).error
    assert world.state(_id(second)) == "permanent_failure"


def test_no_end_is_lost_to_a_beat_that_comes_while_ends_are_reported_one_by_one(
    world: World, holding: Holding, settler: Settler
) -> None:
    """A beat says below which command nothing will be asked for again: not before the last row's answer (spec P-04)."""
    world.submit(NewJob("other", queue="q", key="taken", client="c", payload=Document("1")))
    *fine, refused = holding.claim(4)
    child = NewJob("other", queue="q", key="taken", client="c", payload=Document("2"))
    holding.beats_meanwhile = True
    settler.put([*(ended(run, Fail("NO", "", permanent=True)) for run in fine), ended(refused, Succeed(), child)])
    await_that(partial(holding.has, 4), "the answers to all")
    assert [world.state(_id(run)) for run in fine] == ["permanent_failure"] * 3
    assert "KEY_CONFLICT" in world.job(_id(refused)).error
    _, _, low_water = holding.term.next_beat()
    assert low_water == holding.term.action().n


def test_what_a_session_that_is_over_reports_is_kept_as_late(world: World, holding: Holding, settler: Settler) -> None:
    """A result is evidence; that a run was given back is none."""
    result, given_back = holding.claim(2)
    world.db.run(close_session, holding.term.session.id)
    holding.term.over = "closed"
    settler.put([ended(result, Succeed(Document("7"))), ended(given_back, Release("fenced"))])
    await_that(lambda: len(holding.answered) == 2)
    late = world.query("SELECT CAST(job_id AS text) AS job, document FROM testigo.late")
    assert [(row.job, row.document) for row in late] == [(_id(result), "7")]


def _id(run: Run) -> JobId:
    return run.lease.job_id
