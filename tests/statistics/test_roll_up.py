"""roll_up: each event is counted once, whoever counts, and whatever is appended or pruned meanwhile."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from typing import Any

import pytest

from testigo.authority.cancel import cancel
from testigo.authority.deferred import settle_deferred
from testigo.authority.forget import forget
from testigo.authority.pause import configure_queue
from testigo.authority.settle import Settlement, settle
from testigo.authority.submissions import NewJob
from testigo.authority.submit import submit_many
from testigo.errors import Invalid
from testigo.rules.documents import encode
from testigo.rules.outcomes import Degrade, Fail, RunFacts, Succeed
from testigo.rules.retries import Constant
from testigo.statistics import Measure, Rolled, Span, roll_up, series
from tests.races import in_line, race
from tests.world import Worker, World, settlement

COUNTS = tuple(measure for measure in Measure if measure is not Measure.BACKLOG)


def rolled(world: World, limit: int = 5_000) -> int:
    """Roll up until there is nothing more; how many events that were."""
    steps = [world.db.run(roll_up, limit)]
    while steps[-1].more:
        steps.append(world.db.run(roll_up, limit))
    return sum(step.events for step in steps)


def counted(world: World, span: Span = Span.HOUR, **asked: Any) -> dict[str, int]:
    """What was counted over a span, where there is any."""
    found = world.db.run(series, COUNTS, span, **asked)
    return {str(measure): told.total for measure, told in found.items() if told.total}


def test_what_happened_is_counted_by_what_it_was(world: World) -> None:
    """Jobs by their ends, runs by theirs; each in the queue and the kind of its job, over every span."""
    world.submit(*(NewJob("work", queue="q", priority=n, backoff=Constant(0)) for n in range(4)))
    world.submit(NewJob("play", queue="r"))
    worker = world.worker()
    first, second, third = worker.claim(3).leases
    worker.settle((first, Succeed()), (second, Degrade(encode(1), ("mono",))), (third, Fail("E", "once")))
    worker.settle((worker.take(), Fail("E", "no", permanent=True)))
    (dropped,) = world.submit(queue="r")
    world.db.run(cancel, [dropped], action=world.action())
    told = rolled(world)
    assert told == len(world.query("SELECT 1 FROM testigo.event"))
    expected = {"requested": 6, "succeeded": 2, "failed": 1, "retried": 1, "cancelled": 1, "wait": 3}
    for span in Span:
        assert counted(world, span) == expected
    assert counted(world, queue="r") == {"requested": 2, "cancelled": 1}
    assert counted(world, kind="play") == {"requested": 1}


def test_nothing_is_counted_twice(world: World) -> None:
    """A step goes on where the last one ended; without news there is nothing to do."""
    world.submit(*(NewJob("work", queue="q") for _ in range(7)))
    steps = [world.db.run(roll_up, 3) for _ in range(4)]
    assert steps == [Rolled(3, True), Rolled(3, True), Rolled(1, False), Rolled(0, False)]
    world.submit()
    assert rolled(world) == 1
    assert counted(world) == {"requested": 8}


def test_every_stream_has_its_turn(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many streams are behind: those that a step left out come first in the next."""
    monkeypatch.setattr(sys.modules["testigo.statistics.roll_up"], "_STREAMS_MAX", 2)
    world.submit(*(NewJob("work", queue=queue) for queue in "abcde" for _ in range(3)))
    seen: Counter[str] = Counter()
    for _ in range(3):
        world.db.run(roll_up, 2)
        world.submit(queue="a")
    for queue in "abcde":
        seen[queue] = counted(world, queue=queue).get("requested", 0)
    assert all(seen[queue] for queue in "abcde")
    rolled(world, 2)
    assert counted(world) == {"requested": 18}


def test_a_queues_stripes_are_one_queue(world: World) -> None:
    """Whichever of its streams tells of a job, its queue is counted."""
    world.db.run(configure_queue, "hot", stripes=4, events="full", action=world.action())
    world.submit(*(NewJob("work", queue="hot") for _ in range(8)))
    rolled(world)
    assert len(world.query("SELECT 1 FROM testigo.stream")) > 1
    assert counted(world, queue="hot") == {"requested": 8}


def test_events_that_are_gone_before_they_were_counted_are_passed_over(world: World) -> None:
    """Nothing is known of them; what follows is counted whole (spec P-27)."""
    world.submit(*(NewJob("work", queue="q") for _ in range(6)))
    world.db.run(roll_up, 2)
    world.prune_events("q", up_to=4)
    assert rolled(world) == 2
    assert counted(world) == {"requested": 4}
    world.submit()
    world.prune_events("q", up_to=7)
    assert world.db.run(roll_up) == Rolled(0, more=False)
    assert world.db.run(roll_up) == Rolled(0, more=False)
    world.submit()
    assert rolled(world) == 1


def test_what_happened_long_ago_is_counted_where_it_is_still_kept(world: World) -> None:
    """Whoever begins to count an installation that is a month old makes no rows that are pruned at once."""
    world.submit()
    world.query("UPDATE testigo.event SET at = now() - interval '3 days' RETURNING 1")
    assert rolled(world) == 1
    steps = world.query("SELECT DISTINCT step_seconds FROM testigo.statistic WHERE measure = 'requested'")
    assert [row.step_seconds for row in steps] == [Span.WEEK.step_seconds]


def test_a_job_that_is_gone_is_counted_without_its_kind(world: World) -> None:
    """Its request tells the kind itself; of its end only the queue is known, and no wait."""
    (job,) = world.submit()
    worker = world.worker()
    worker.succeed(worker.take())
    world.db.run(forget, [job], action=world.action())
    rolled(world)
    assert counted(world) == {"requested": 1, "succeeded": 1}
    assert counted(world, kind="work") == {"requested": 1}


def test_two_who_count_at_once_count_once(world: World) -> None:
    """The second finds nothing to do, and waits for nobody (spec P-07)."""
    world.submit(*(NewJob("work", queue="q") for _ in range(5)))
    first, second = in_line(world.db, lambda c: roll_up(c), lambda: world.db.run(roll_up))
    assert (first, second) == (Rolled(5, more=False), Rolled(0, more=False))
    assert counted(world) == {"requested": 5}


def test_who_counts_while_others_append_and_prune_counts_each_once(world: World) -> None:
    """Several who submit, several who count, one who prunes what was counted: the sums are those of the jobs."""
    done = threading.Event()

    def submit(queue: str) -> int:
        for _ in range(20):
            batch = [NewJob("work", queue=queue) for _ in range(5)]
            world.db.run(submit_many, batch, action=world.action())
        return 100

    def count() -> int:
        seen = 0
        while not done.is_set():
            seen += world.db.run(roll_up, 17).events
        return seen

    def prune() -> int:
        while not done.is_set():
            for row in world.query("SELECT stream, sequence FROM testigo.statistic_cursor"):
                world.prune_events(row.stream, up_to=row.sequence)
        return 0

    def submit_all() -> int:
        try:
            return sum(submit(queue) for queue in ("a", "b"))
        finally:
            ended.append(True)
            if len(ended) == 2:
                done.set()

    ended: list[bool] = []
    *appended, first, second, _ = race(world.db, submit_all, submit_all, count, count, prune)
    rest = rolled(world)
    assert first + second + rest == sum(appended) == 400
    assert counted(world) == {"requested": 400}


def test_a_run_is_measured_by_its_holder_and_a_wait_by_the_database(world: World) -> None:
    """In buckets of a tenth of a decade; a run that is tried again is measured too, a wait that of the last run."""
    world.submit(*(NewJob("work", queue="q", priority=n, backoff=Constant(0)) for n in range(2)))
    worker = world.worker()
    for outcome, seconds in ((Fail("E", "once"), 0.25), (Succeed(), 40.0), (Succeed(), 0.0)):
        end = settlement(worker.take(), outcome, facts=RunFacts(run_seconds=seconds))
        report(world, worker, end)
    let_wait(world, 5.0)
    rolled(world)
    found = world.db.run(series, [Measure.RUN, Measure.WAIT], Span.HOUR)
    run, wait = (found[measure].points[-1] for measure in (Measure.RUN, Measure.WAIT))
    assert (run.n, wait.n) == (3, 2)
    assert run.durations is not None
    assert wait.durations is not None
    assert run.durations.p50 == pytest.approx(0.25, rel=0.13)
    assert run.durations.p99 == pytest.approx(40, rel=0.13)
    assert wait.durations.p95 == pytest.approx(5.0, rel=0.13)


def test_the_backlog_is_the_most_that_was_seen(world: World) -> None:
    """Sampled now and then, for each queue: what is claimable; the highest of a step stays."""
    world.submit(*(NewJob("work", queue="q") for _ in range(3)))
    world.submit(queue="r")
    rolled(world)
    worker = world.worker()
    worker.claim(2)
    world.query("UPDATE testigo.statistic_walk SET sampled_at = '-infinity' RETURNING 1")
    rolled(world)
    found = world.db.run(series, [Measure.BACKLOG], Span.DAY)[Measure.BACKLOG]
    assert (found.points[-1].n, found.total, found.points[0].n) == (4, 4, None)
    assert world.db.run(series, [Measure.BACKLOG], Span.DAY, queue="r")[Measure.BACKLOG].points[-1].n == 1


def test_steps_are_kept_for_twice_their_span_and_the_coarsest_longest(world: World) -> None:
    """What is older goes when the backlog is looked at, so many rows at a time."""
    ages = {Span.HOUR: "2 hours 2 minutes", Span.DAY: "49 hours", Span.WEEK: "401 days"}
    for span, age in ages.items():
        for n, kept in enumerate((age, "30 minutes")):
            world.query(
                """
                INSERT INTO testigo.statistic
                VALUES (:step, 'queue', now() - CAST(:age AS interval), :queue, 'requested', 0, 1)
                RETURNING 1
                """,
                step=span.step_seconds,
                age=kept,
                queue=str(n),
            )
    world.db.run(roll_up)
    left = world.query("SELECT step_seconds, name FROM testigo.statistic WHERE scope = 'queue' ORDER BY 1")
    assert [(row.step_seconds, row.name) for row in left] == [(60, "1"), (1440, "1"), (10080, "1")]


@pytest.mark.parametrize("limit", [0, 10_001])
def test_a_step_has_a_size_in_bounds(world: World, limit: int) -> None:
    """From 1 to the largest batch."""
    with pytest.raises(Invalid):
        world.db.run(roll_up, limit)


def report(world: World, worker: Worker, end: Settlement) -> None:
    """Settle one run, by whichever path it takes."""
    action = worker.action()
    if world.db.run(settle, [end], action=action).deferred:
        world.db.run(settle_deferred, [(0, end)], action=action)


def let_wait(world: World, seconds: float) -> None:
    """Let every job that has ended have waited so long before its last run."""
    world.query("ALTER TABLE testigo.job DISABLE TRIGGER terminal_is_final")
    world.query(
        "UPDATE testigo.job SET ready_at = started_at - :seconds * interval '1 second' RETURNING 1", seconds=seconds
    )
