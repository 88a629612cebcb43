"""causes and states: what waits for somebody, by its cause, and how much there is of each state."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from testigo.authority.actions import JobId
from testigo.authority.admit import admit
from testigo.authority.cancel import cancel
from testigo.authority.expire import expire
from testigo.authority.read import Count, Failures, Filter, causes, jobs, open_failures, states
from testigo.authority.reprocess import reprocess
from testigo.authority.sessions import close_session
from testigo.authority.submissions import NewJob
from testigo.errors import Invalid
from testigo.rules.outcomes import Fail, Succeed
from testigo.rules.retries import Constant
from testigo.rules.states import State
from tests.authority.paging import short_walks
from tests.world import World


def fail(world: World, *messages: str, code: str = "E", **given: str) -> list[JobId]:
    """A job that failed for good for each of these messages."""
    queue = given.get("queue", "q")
    kind = given.get("kind", "work")
    made = world.submit(*(NewJob(kind, queue=queue, priority=n) for n in range(len(messages))))
    worker = world.worker(queues=(queue,), kinds=(kind,))
    for message in messages:
        worker.settle((worker.take(), Fail(code, message, permanent=True)))
    return made


def test_what_failed_alike_is_one_cause(world: World) -> None:
    """Ids, dates, addresses and long numbers do not tell causes apart; short numbers and codes do."""
    one = fail(
        world,
        "no answer from 10.0.0.1 for 0198f3c2-0000-7000-8000-000000000001 at 2026-11-30",
        "no answer from 10.0.0.1 for 0198f3c2-ffff-7000-8000-00000000abcd at 2026-12-01",
        "no answer from 10.0.0.1 for 0xdeadbeef01 at 12345678",
    )
    two = fail(world, "status 502", "status 502")
    other = fail(world, "status 503")
    coded = fail(world, "status 502", code="E_OTHER")
    seen = world.db.run(causes)
    assert [(cause.code, cause.open) for cause in seen.causes] == [("E", 3), ("E", 2), ("E_OTHER", 1), ("E", 1)]
    assert (seen.open, seen.retrying, seen.complete) == (Count(7), Count(0), True)
    for cause, expected in zip(seen.causes, (one, two, coded, other), strict=True):
        assert [job.id for job in world.db.run(jobs, Filter(cause=cause.id)).items] == expected[::-1]
        assert (cause.sample, cause.kinds, cause.queues) == (expected[-1], ("work",), ("q",))
        assert cause.first_at <= cause.last_at
    assert seen.causes[0].message == "no answer from 10.0.0.1 for 0xdeadbeef01 at 12345678"


def test_what_is_open_is_counted_as_its_causes_are(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """What has a successor is not; of more than are looked at there may be more."""
    first, _, _ = fail(world, "a", "b", "b")
    world.db.run(reprocess, first, action=world.action())
    since = datetime.now(UTC) - timedelta(days=1)
    assert world.db.run(open_failures, since) == world.db.run(causes).open == Count(2)
    assert world.db.run(open_failures, datetime.now(UTC) + timedelta(days=1)) == Count(0)
    short_walks(monkeypatch, "failed", causes_walk_rows=2)
    assert world.db.run(open_failures, since).more


def test_the_same_of_another_file_is_the_same_cause(world: World) -> None:
    """A path does not tell causes apart; the host of an address and an option's name do."""
    fail(world, "No such file: '/data/in/a-1.py'", "No such file: '/data/out/b.py'", "No such file: '/etc/x.py'")
    fail(world, "refused by https://one.example/api", "refused by https://two.example/api")
    fail(world, "either/or", "neither/nor")
    seen = world.db.run(causes)
    assert sorted(cause.open for cause in seen.causes) == [1, 1, 1, 1, 3]


def test_a_failed_job_is_retrying_while_its_successor_lives_and_then_it_leaves(world: World) -> None:
    """The list is of what waits for somebody: what was done again is not on it (horizon #290, #310)."""
    (first,) = fail(world, "no")
    newer = world.db.run(reprocess, first, action=world.action()).job_id
    (cause,) = world.db.run(causes).causes
    assert (cause.open, cause.retrying) == (0, 1)
    worker = world.worker()
    worker.settle((worker.take(), Fail("E", "no", permanent=True)))
    (cause,) = world.db.run(causes).causes
    assert (cause.open, cause.retrying, cause.sample) == (1, 0, newer)
    world.db.run(reprocess, newer, action=world.action())
    worker.succeed(worker.take())
    assert world.db.run(causes) == Failures((), Count(0), Count(0), complete=True)


def test_a_successor_that_was_superseded_leads_on(world: World) -> None:
    """A job that waits in a failed one's place may be replaced before it runs: what came then counts."""
    (first,) = fail(world, "no")
    second = world.db.run(reprocess, first, action=world.action()).job_id
    third = world.db.run(reprocess, second, action=world.action()).job_id
    assert [cause.retrying for cause in world.db.run(causes).causes] == [1]
    world.db.run(cancel, [third], action=world.action())
    assert world.db.run(causes).causes == ()


def test_what_did_not_fail_itself_is_told_by_its_reason(world: World) -> None:
    """A parent's end, or one loss too many: the code is the job's reason, whatever an earlier run said."""
    (parent,) = world.submit()
    (child,) = world.submit(parents=(parent,))
    (lost,) = world.submit(queue="r", crash_limit=1, backoff=Constant(0))
    world.db.run(admit)
    worker = world.worker()
    worker.settle((worker.take(), Fail("E", "no", permanent=True)))
    other = world.worker(queues=("r",))
    other.settle((other.take(), Fail("E_EARLIER", "once")))
    other.take()
    world.db.run(close_session, other.id)
    world.db.run(expire)
    told = {cause.code: cause for cause in world.db.run(causes).causes}
    assert {code: cause.sample for code, cause in told.items()} == {"E": parent, "parent": child, "crashes": lost}
    for cause in told.values():
        assert [job.id for job in world.db.run(jobs, Filter(cause=cause.id)).items] == [cause.sample]


def test_causes_are_those_of_a_queue_or_a_kind(world: World) -> None:
    """What else is asked for holds as well; the most frequent come first, and no more than were asked for."""
    fail(world, "one", queue="a")
    fail(world, "two", "two", queue="b", kind="play")
    assert [cause.message for cause in world.db.run(causes).causes] == ["two", "one"]
    assert [cause.message for cause in world.db.run(causes, queue="a").causes] == ["one"]
    assert [cause.message for cause in world.db.run(causes, kind="play").causes] == ["two"]
    cut = world.db.run(causes, limit=1)
    assert ([cause.message for cause in cut.causes], cut.open) == (["two"], Count(3))
    with pytest.raises(Invalid):
        world.db.run(causes, queue="")


def test_causes_look_at_the_newest_and_say_so(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the bound the counts are of the newest, and there are more (panel.md *Query rules*)."""
    fail(world, "old", "new", "newest")
    short_walks(monkeypatch, "failed", causes_walk_rows=2)
    seen = world.db.run(causes)
    assert {cause.message for cause in seen.causes} == {"new", "newest"}
    assert (seen.open, seen.complete) == (Count(2, more=True), False)


def test_each_state_is_counted(world: World) -> None:
    """Every state has a count; what no index leads to is counted among the newest jobs."""
    done, _, _, later = world.submit(*(NewJob("work", queue="q", priority=n) for n in range(4)))
    worker = world.worker()
    worker.settle((worker.take(), Succeed()))
    worker.settle((worker.take(), Fail("E", "no", permanent=True)))
    worker.take()
    world.submit(parents=(later,))
    world.db.run(admit)
    seen = world.db.run(states)
    counted = {state: count.n for state, count in seen.items() if count.n}
    assert set(seen) == set(State)
    assert counted == {
        State.SUCCEEDED: 1,
        State.PERMANENT_FAILURE: 1,
        State.RUNNING: 1,
        State.READY: 1,
        State.INPUTS_PENDING: 1,
    }
    assert not any(count.more for count in seen.values())
    assert world.state(done) == "succeeded"


def test_counts_of_states_stop_at_their_bounds(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A count that stopped says that there are more, and so does each that shares its bound."""
    world.submit(*(NewJob("work", queue="q") for _ in range(5)))
    fail(world, "one", "two", "three", queue="r")
    worker = world.worker()
    worker.claim(2)
    short_walks(monkeypatch, "counts", count_max=2, walk_rows=4)
    seen = world.db.run(states)
    assert seen[State.READY] == Count(2, more=True)
    assert seen[State.CHECKPOINTED] == Count(0, more=True)
    assert seen[State.PERMANENT_FAILURE] == Count(2, more=True)
    assert seen[State.RUNNING] == Count(2)
    assert seen[State.SUCCEEDED] == Count(0, more=True)
