"""prune_receipts and prune_sessions: what commands answered goes, refusal first, and sessions long over."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import pytest

from testigo.authority.actions import Action
from testigo.authority.expire import expire
from testigo.authority.pause import Scope, pause, resume
from testigo.authority.prune import Pruned, prune_receipts, prune_sessions
from testigo.authority.renew import renew
from testigo.authority.sessions import close_session, drain_session
from testigo.authority.settle import settle
from testigo.errors import Invalid, ReceiptExpired, SessionReplaced
from testigo.rules.outcomes import Succeed
from tests.invariants import check
from tests.world import Worker, World, settlement


@pytest.fixture
def database_url(quiet_database_url: str) -> str:
    """Nothing goes while any transaction of the server runs that is as old as its refusal: none of another test."""
    return quiet_database_url


def prune(world: World, command: Any, rows: int, *, limit: int = 1000) -> list[Pruned]:
    """Send it until so many rows went, and twice more; the answers that were not "nothing"."""
    deadline = time.monotonic() + 60
    steps: list[Pruned] = []
    while len(steps) < 2 or sum(step.pruned for step in steps[:-2]) < rows:
        assert time.monotonic() < deadline, f"{rows} rows should go, and these went: {steps}"
        steps.append(world.db.run(command, older_than_days=0, limit=limit))
    return [step for step in steps if step != (0, False)]


def pruned(steps: list[Pruned]) -> int:
    """How many rows went."""
    return sum(step.pruned for step in steps)


def receipts(world: World, table: str = "receipt") -> int:
    """How many receipts there are."""
    return len(world.query(f"SELECT 1 FROM testigo.{table}"))


def floor(world: World) -> Any:
    """The newest creation time of a receipt that was pruned."""
    return world.query("SELECT receipt_floor AS floor FROM testigo.installation")[0].floor


def age_receipts(world: World, days: int) -> None:
    """Let every receipt, and its command, be older by so many days."""
    world.query(f"UPDATE testigo.receipt SET created_at = created_at - interval '{days} days' RETURNING 1")


# Receipts of actions.


def test_the_floor_is_raised_first_and_receipts_go_in_a_later_transaction(world: World) -> None:
    """The newest creation time that is to be pruned is the floor before anything is deleted (spec P-04)."""
    actions = [world.action() for _ in range(3)]
    for action in actions:
        world.db.run(pause, Scope.KIND, action.id, action=action)
    assert world.db.run(prune_receipts, older_than_days=0) == (0, True)
    assert floor(world) == actions[-1].created_at
    assert receipts(world) == 3
    assert prune(world, prune_receipts, 3) == [Pruned(3, more=False)]
    assert receipts(world) == 0


def test_a_command_whose_receipt_was_pruned_is_refused_and_not_executed(world: World) -> None:
    """Sent again, it would pause what was resumed since: it is told that it is too old (spec P-04, RECEIPT_EXPIRED)."""
    action = world.action()
    world.db.run(pause, Scope.QUEUE, "q", action=action)
    world.db.run(resume, Scope.QUEUE, "q", action=world.action())
    prune(world, prune_receipts, 2)
    with pytest.raises(ReceiptExpired):
        world.db.run(pause, Scope.QUEUE, "q", action=action)
    assert not world.query("SELECT 1 FROM testigo.pause")


def test_the_floor_and_no_clock_decides(world: World) -> None:
    """At the floor and below it a command is refused, above it executed, whatever time it is (spec P-04, Promise 9)."""
    world.db.run(pause, Scope.QUEUE, "q", action=world.action())
    prune(world, prune_receipts, 1)
    at = floor(world)
    below, above = (Action("tester", created_at=at + step) for step in (timedelta(0), timedelta(microseconds=1)))
    with pytest.raises(ReceiptExpired):
        world.db.run(pause, Scope.QUEUE, "p", action=below)
    assert world.db.run(pause, Scope.QUEUE, "p", action=above).changed


def test_young_receipts_stay_and_answer(world: World) -> None:
    """Receipts are kept for seven days; what is younger is untouched and answers again (spec B-04, P-04)."""
    world.db.run(pause, Scope.QUEUE, "q", action=world.action())
    age_receipts(world, 8)
    action = world.action()
    world.db.run(pause, Scope.QUEUE, "p", action=action)
    assert world.db.run(prune_receipts) == (0, True)
    deadline = time.monotonic() + 60
    while receipts(world) > 1 and time.monotonic() < deadline:
        world.db.run(prune_receipts)
    assert world.db.run(prune_receipts) == (0, False)
    assert receipts(world) == 1
    assert world.db.run(pause, Scope.QUEUE, "p", action=action).replayed


def test_the_floor_never_sinks(world: World) -> None:
    """A receipt that was filed with an older time than the floor goes, and leaves the floor where it is."""
    world.db.run(pause, Scope.QUEUE, "q", action=world.action())
    prune(world, prune_receipts, 1)
    before = floor(world)
    world.db.run(pause, Scope.QUEUE, "p", action=Action("tester", created_at=before + timedelta(microseconds=1)))
    age_receipts(world, 1)
    assert pruned(prune(world, prune_receipts, 1)) == 1
    assert floor(world) == before


def test_receipts_go_in_bounded_steps_and_the_oldest_first(world: World) -> None:
    """At most so many a transaction; the answer says whether there are more."""
    for n in range(5):
        world.db.run(pause, Scope.KIND, str(n), action=world.action())
    steps = prune(world, prune_receipts, 5, limit=2)
    assert steps == [Pruned(0, more=True), Pruned(2, more=True), Pruned(2, more=True), Pruned(1, more=False)]


# Receipts of sessions.


def busy(world: World, commands: int) -> Worker:
    """A worker that has sent so many commands that were answered: claims of one job each."""
    worker = world.worker()
    for _ in range(commands):
        world.submit()
        worker.take()
    return worker


def beat(worker: Worker, low_water: int) -> None:
    """Let the worker's low-water mark be so high."""
    row = worker.db.run(renew, worker.id, [], epoch=1, beat=1, low_water=low_water)
    assert not row.draining


def test_a_live_sessions_receipts_go_up_to_its_low_water_mark(world: World) -> None:
    """What the keeper said that it will not ask for again goes; the rest stays and answers (spec P-04)."""
    worker = busy(world, 5)
    beat(worker, 4)
    assert pruned(prune(world, prune_sessions, 3, limit=2)) == 3
    assert [row.n for row in world.query("SELECT n FROM testigo.session_receipt ORDER BY n")] == [4, 5]
    worker.n = 0
    with pytest.raises(ReceiptExpired):
        worker.claim(1)
    worker.n = 4
    assert worker.claim(1).replayed


def test_a_live_session_is_marked_once_for_many_commands(world: World) -> None:
    """Its profile is not written at every sweep: only when so many receipts can go."""
    worker = busy(world, 3)
    beat(worker, 3)
    for _ in range(3):
        assert world.db.run(prune_sessions, older_than_days=0, limit=4) == (0, False)
    assert world.query("SELECT receipts_below AS below FROM testigo.session_profile")[0].below == 0
    assert pruned(prune(world, prune_sessions, 2, limit=3)) == 2


def closed_days_ago(world: World, worker: Worker, days: int) -> None:
    """Let the worker's session have been over for so long."""
    world.db.run(close_session, worker.id)
    world.query(
        f"UPDATE testigo.session_profile SET closed_at = now() - interval '{days} days' "
        "WHERE session_id = CAST(:id AS uuid) RETURNING 1",
        id=worker.id,
    )


def test_a_session_that_is_over_keeps_its_receipts_for_seven_days(world: World) -> None:
    """Its last commands' fates can be resolved until then; after it they are refused, and never executed
    (spec P-04, P-29)."""
    (job_id,) = world.submit()
    worker = world.worker()
    lease, action = worker.take(), worker.action()
    world.db.run(settle, [settlement(lease, Succeed())], action=action)
    closed_days_ago(world, worker, 6)
    for _ in range(4):
        assert world.db.run(prune_sessions) == (0, False)
    assert world.db.run(settle, [settlement(lease, Succeed())], action=action).replayed
    closed_days_ago(world, worker, 8)
    deadline = time.monotonic() + 60
    while receipts(world, "session") and time.monotonic() < deadline:
        world.db.run(prune_sessions)
    assert (receipts(world, "session_receipt"), receipts(world, "session")) == (0, 0)
    with pytest.raises(SessionReplaced):
        world.db.run(settle, [settlement(lease, Succeed())], action=action)
    assert world.state(job_id) == "succeeded"
    check(world.db)


def test_a_session_is_marked_before_anything_of_it_goes(world: World) -> None:
    """The mark has a transaction of its own, so that whatever runs when it goes has seen it (spec P-04, P-07)."""
    worker = busy(world, 2)
    world.db.run(close_session, worker.id)
    world.db.run(expire)
    assert world.db.run(prune_sessions, older_than_days=0) == (0, False)
    assert receipts(world, "session_receipt") == 2
    assert prune(world, prune_sessions, 3) == [Pruned(2 + 1, more=False)]
    assert not world.query("SELECT 1 FROM testigo.session_profile")


def test_a_session_stays_while_it_holds_leases(world: World) -> None:
    """Its row is what tells the sweeps to take them back; once they did, it goes (spec P-18)."""
    worker = busy(world, 2)
    world.db.run(close_session, worker.id)
    assert pruned(prune(world, prune_sessions, 2)) == 2
    assert receipts(world, "session") == 1
    assert world.db.run(expire).taken == 2
    assert pruned(prune(world, prune_sessions, 1)) == 1
    assert (receipts(world, "session"), receipts(world, "session_profile")) == (0, 0)
    check(world.db)


def test_a_session_that_drains_is_live(world: World) -> None:
    """It settles what it holds, and its receipts stay above its mark (spec P-16)."""
    worker = busy(world, 1)
    world.db.run(drain_session, worker.id)
    assert pruned(prune(world, prune_sessions, 0)) == 0
    worker.n = 0
    assert worker.claim(1).replayed


@pytest.mark.parametrize("command", [prune_receipts, prune_sessions])
def test_bounds_are_refused_by_field(world: World, command: Any) -> None:
    """A retention and a batch in bounds, or nothing is done."""
    asked: list[dict[str, Any]] = [{"older_than_days": -1}, {"limit": 0}]
    for one in asked:
        with pytest.raises(Invalid) as refused:
            world.db.run(command, **one)
        assert refused.value.field == next(iter(one))
