"""Where claims look, and when: the hint that is kept and dropped (spec P-14), on a real database."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

import pytest

from testigo.authority.actions import JobId, new_id
from testigo.authority.claim import FROM_THE_FRONT, Claimed, Hint, Lease
from testigo.authority.pause import Scope, pause, resume
from testigo.rules.documents import Document
from testigo.settings import STORE
from testigo.worker.claimer import Claimer, Walk
from testigo.worker.runs import Run
from testigo.worker.term import Term, clock
from tests.worker.kit import await_that, new
from tests.world import World

HERE = Hint(0, "2026-01-01 00:00:00+00", "00000000-0000-7000-8000-000000000001")
LEASE = Lease(JobId(new_id()), "k", "q", new_id(), 1, 2, 0, 0, 9.0, None, True, Document("null"), None, None)


def took(walk: Walk, leases: int, slots: int, *, now: float, seconds: float = 0.0) -> None:
    """A claim at this time that came back with so many leases."""
    looks = walk.looks(("q",), slots, now - seconds)
    walk.took(Claimed((LEASE,) * leases, {"q": HERE}), looks, slots, now - seconds, now)


def test_a_full_claim_is_followed_at_once_from_where_it_ended() -> None:
    """The hint is kept."""
    walk = Walk(0, ("k",))
    took(walk, 5, 5, now=100.0)
    assert walk.due_at == 100.0
    assert walk.looks(("q",), 5, 100.1)[0].hint == HERE


def test_a_short_claim_drops_the_hint_and_looks_at_the_front_before_it_sleeps() -> None:
    """What is new at the front is not left until the next poll."""
    walk = Walk(0, ("k",))
    took(walk, 5, 5, now=100.0)
    took(walk, 3, 5, now=100.1)
    assert walk.due_at == 100.1
    assert walk.looks(("q",), 5, 100.1)[0].hint is FROM_THE_FRONT
    took(walk, 0, 5, now=100.2)
    assert walk.due_at == 100.2 + STORE.poll_seconds


def test_the_front_is_walked_every_second_or_less_often_when_that_is_costly() -> None:
    """A walk from the front takes at most a tenth of the time."""
    walk = Walk(0, ("k",))
    took(walk, 5, 5, now=100.0, seconds=0.5)
    assert walk.looks(("q",), 5, 104.0)[0].hint == HERE
    assert walk.looks(("q",), 5, 104.6)[0].hint is FROM_THE_FRONT
    quick = Walk(0, ("k",))
    took(quick, 5, 5, now=100.0)
    assert quick.looks(("q",), 5, 100.9)[0].hint == HERE
    assert quick.looks(("q",), 5, 101.0)[0].hint is FROM_THE_FRONT


def test_a_wake_up_drops_the_hint_once_a_second_after_full_claims() -> None:
    """Else a busy queue would be walked from its front by each claim."""
    walk = Walk(0, ("k",))
    took(walk, 5, 5, now=100.0)
    walk.wake("q", 100.5)
    assert walk.looks(("q",), 5, 100.5)[0].hint == HERE
    walk.wake("q", 101.5)
    assert "q" not in walk.hints


def test_a_wake_up_ends_the_sleep_of_an_idle_walk() -> None:
    """And what it names is looked at from the front."""
    walk = Walk(0, ("k",))
    took(walk, 0, 5, now=100.0)
    walk.wake("q", 100.2)
    assert walk.due_at == 100.2


def test_a_wake_up_that_comes_while_a_claim_is_answered_is_heard() -> None:
    """The claim may have looked before there was anything, so another follows at once, and one only (spec P-13)."""
    walk = Walk(0, ("k",))
    looks = walk.looks(("q",), 5, 100.0)
    walk.wake("q", 100.1)
    walk.took(Claimed((), {}), looks, 5, 100.0, 100.2)
    assert walk.due_at == 100.2
    took(walk, 0, 5, now=100.3, seconds=0.1)
    assert walk.due_at == 100.3 + STORE.poll_seconds


class Taking:
    """A keeper that notes what it is told."""

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self.errors: list[BaseException] = []
        self.is_drained = threading.Event()

    def taken(self, runs: Sequence[Run], *, seconds: float) -> None:
        """A claim took these."""
        self.runs.extend(runs)

    def drained(self) -> None:
        """Nothing follows."""
        self.is_drained.set()

    def fatal(self, error: BaseException) -> None:
        """The thread came to an end."""
        self.errors.append(error)


@pytest.fixture
def taking() -> Taking:
    """Who is told."""
    return Taking()


@pytest.fixture
def claimer(world: World, taking: Taking) -> Iterator[Claimer]:
    """A claimer of queue q, for a session of its own."""
    leaving = threading.Event()
    made = Claimer(world.db, taking, leaving=leaving, queues=("q",), slots=10)
    made.serve(["k"], ["lonely"])
    made.hold(Term(world.worker(kinds=("k", "lonely")).session, opened_at=clock()))
    made.start()
    yield made
    made.drain()
    assert taking.is_drained.wait(90)
    leaving.set()
    assert not taking.errors


def test_no_more_is_claimed_than_there_are_slots(world: World, claimer: Claimer, taking: Taking) -> None:
    """What was claimed and is not yet known to the keeper counts as taken."""
    world.submit(*(new("k") for _ in range(10)))
    claimer.offer(4, 0, received=(0, 0))
    await_that(lambda: len(taking.runs) == 4)
    claimer.offer(4, 0, received=(0, 0))
    claimer.wake(["q"])
    claimer.offer(1, 0, received=(4, 0))
    await_that(lambda: len(taking.runs) == 5)
    assert len({run.ticket for run in taking.runs}) == 5


def test_what_needs_a_runner_of_its_own_waits_for_one(world: World, claimer: Claimer, taking: Taking) -> None:
    """Free slots of shared runners are none of its."""
    world.submit(new("lonely"), new("k"))
    claimer.offer(5, 0, received=(0, 0))
    await_that(lambda: len(taking.runs) == 1)
    assert taking.runs[0].lease.kind == "k"
    claimer.offer(4, 1, received=(1, 0))
    await_that(lambda: len(taking.runs) == 2)
    assert taking.runs[1].alone


def test_a_claimer_without_a_wake_up_finds_work_by_polling(world: World, claimer: Claimer, taking: Taking) -> None:
    """A paused queue is looked at again, though nobody tells of its end."""
    world.db.run(pause, Scope.QUEUE, "q", action=world.action())
    world.submit(new("k"))
    claimer.offer(5, 0, received=(0, 0))
    world.db.run(resume, Scope.QUEUE, "q", action=world.action())
    await_that(lambda: len(taking.runs) == 1)


def test_what_must_not_be_started_is_ended(world: World, claimer: Claimer, taking: Taking) -> None:
    """A claim names what is unfit, and the claimer retires it."""
    (job,) = world.submit(new("k"))
    world.query("UPDATE testigo.job SET losses = crash_limit WHERE id = CAST(:id AS uuid)", id=job)
    claimer.offer(5, 0, received=(0, 0))
    await_that(lambda: world.state(job) == "permanent_failure")
    assert not taking.runs
