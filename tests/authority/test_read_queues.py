"""read: queues and what waits in them, what is paused, and sessions."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta

import pytest

from testigo.authority.pause import Scope, configure_queue, pause
from testigo.authority.read import (
    Count,
    SessionState,
    paused,
    queues,
    sessions,
)
from testigo.authority.sessions import close_session
from testigo.authority.submissions import NewJob
from testigo.rules.documents import encode
from testigo.rules.outcomes import Fail, Yield
from testigo.store.sql import Statement
from tests.authority.paging import every, items, short_walks
from tests.world import World

LATER = datetime(2040, 1, 1, tzinfo=UTC)


def test_queues_are_known_from_streams_settings_pauses_and_sessions(world: World) -> None:
    """A queue is listed by whichever of them knows it, once, a striped one by its own name (spec P-14)."""
    world.db.run(configure_queue, "striped", stripes=8, events="full", action=world.action())
    world.submit(*(NewJob("work", queue=queue) for queue in ("b", "striped", "striped", "striped")))
    world.db.run(pause, Scope.QUEUE, "held", note="flood", action=world.action("ana"))
    world.db.run(pause, Scope.KIND, "no-queue", action=world.action())
    world.worker(queues=("served", "b"))
    assert [one.name for one in items(every(world, queues, limit=2))] == ["b", "held", "served", "striped"]
    b, held, served, striped = world.db.run(queues).items
    assert (b.ready, b.sessions, b.pause, b.stripes, b.events) == (Count(1), Count(1), None, 1, "default")
    assert (striped.ready, striped.sessions, striped.stripes, striped.events) == (Count(3), Count(0), 8, "full")
    assert (served.ready, served.sessions) == (Count(0), Count(1))
    assert held.pause is not None
    assert (held.pause.actor, held.pause.note) == ("ana", "flood")


def test_a_queue_counts_what_is_ready_delayed_and_leased(world: World) -> None:
    """Each job is counted where it stands, and the next date is the earliest (spec P-13)."""
    sooner = LATER - timedelta(days=1)
    dates = (LATER, sooner, None, None, None)
    world.submit(*(NewJob("work", queue="q", run_at=run_at) for run_at in dates))
    worker = world.worker()
    worker.settle((worker.take(), Fail("E", "again", wait_seconds=5.0)))
    worker.settle((worker.take(), Yield(encode(1))))
    worker.take()
    (queue,) = world.db.run(queues).items
    assert (queue.ready, queue.delayed, queue.leased) == (Count(1), Count(3), Count(1))
    assert queue.next_due_at is not None
    assert queue.next_due_at < sooner


def test_counts_stop_at_their_bound(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond it, a count says that there are more; at the bound itself it does not."""
    short_walks(monkeypatch, "queues", count_max=3)
    short_walks(monkeypatch, "pages", count_max=3)
    world.submit(*(NewJob("work", queue="q", run_at=LATER if n < 3 else None) for n in range(11)))
    world.worker().claim(4)
    (queue,) = world.db.run(queues).items
    assert (queue.ready, queue.delayed) == (Count(3, more=True), Count(3))
    assert queue.leased.more
    assert [str(count) for count in (queue.ready, queue.delayed, Count(12_345))] == ["3+", "3", "12,345"]


def test_a_count_reads_its_index_alone(world: World) -> None:
    """No count of a queue visits a row that is known to everybody: their plans are index-only scans."""
    world.submit(*(NewJob("work", queue="q", run_at=LATER if n % 2 else None) for n in range(2_000)))
    world.db.run(lambda c: c.exec_driver_sql("ANALYZE testigo.job"))
    statement: Statement = sys.modules["testigo.authority.read.queues"]._QUEUES
    asked = {"after": "", "only": None, "limit": 10, "count_max": 100}
    plan = "\n".join(row[0] for row in world.query("EXPLAIN " + statement.sql, **asked))
    assert plan.count("Index Only Scan using job_claimable") == 1, plan
    assert plan.count("Index Only Scan using job_due") == 2, plan
    assert "Index Scan using job_leased" in plan, plan


def test_what_is_paused_is_listed_with_who_and_why(world: World) -> None:
    """Kinds first, then queues, by name; pages by key (spec P-14)."""
    for scope, name in ((Scope.QUEUE, "b"), (Scope.KIND, "z"), (Scope.QUEUE, "a")):
        world.db.run(pause, scope, name, note=f"no {name}", action=world.action("ana"))
    found = items(every(world, paused, limit=1))
    assert [(one.scope, one.name, one.actor, one.note) for one in found] == [
        ("kind", "z", "ana", "no z"),
        ("queue", "a", "ana", "no a"),
        ("queue", "b", "ana", "no b"),
    ]


# Sessions.


def test_sessions_show_what_they_said_of_themselves_and_hold(world: World) -> None:
    """Queues, kinds, beat and leases of each, from the newest; those that are over as well (spec P-16)."""
    world.submit(*(NewJob("work", queue="q") for _ in range(3)))
    first = world.worker("ana")
    first.claim(2)
    second = world.worker("ben", queues=("a", "b"), kinds=("x",))
    world.db.run(close_session, second.id)
    found = items(every(world, sessions, limit=1))
    assert [one.id for one in found] == [second.id, first.id]
    closed, opened = found
    assert (closed.agent, closed.state, closed.queues, closed.kinds) == ("ben", SessionState.CLOSED, ("a", "b"), ("x",))
    assert closed.closed_at is not None
    assert (opened.state, opened.epoch, opened.beat, opened.leases) == (SessionState.OPEN, 1, 0, Count(2))
    assert (opened.term_seconds, opened.exclusive, opened.processes, opened.closed_at) == (15.0, False, {}, None)


def test_sessions_are_found_by_agent_and_state(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Filters hold together, and the walk is bounded as that of jobs is."""
    short_walks(monkeypatch, "sessions", walk_rows=2)
    ana, ben, eva = (world.worker(agent) for agent in ("ana", "ben", "eva"))
    world.db.run(close_session, ana.id)
    assert [one.id for one in items(every(world, sessions, agent="ana"))] == [ana.id]
    assert [one.id for one in items(every(world, sessions, state=SessionState.OPEN))] == [eva.id, ben.id]
    assert not items(every(world, sessions, agent="ben", state=SessionState.CLOSED))
    assert not world.db.run(sessions, agent="ana").complete
