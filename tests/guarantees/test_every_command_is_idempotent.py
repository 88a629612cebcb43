"""Promise 4: every command is idempotent, and the answer lost on the wire is found again by its receipt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import psycopg
import pytest
from psycopg import IsolationLevel

from testigo.authority.actions import Action, new_id
from testigo.authority.claim import QueueClaim, claim
from testigo.authority.deferred import How, settle_deferred
from testigo.authority.pause import Scope, pause, resume
from testigo.authority.prune import prune_jobs
from testigo.authority.save import save
from testigo.authority.sessions import NewSession, open_session
from testigo.authority.settle import Settlement, settle
from testigo.authority.submissions import NewJob
from testigo.authority.submit import submit
from testigo.errors import ActionIdCollision, Busy, Conflict
from testigo.rules.decide import Policy
from testigo.rules.documents import Document
from testigo.rules.outcomes import Fail, Succeed
from testigo.rules.retries import Constant
from testigo.store.connections import run_within
from testigo.store.failures import is_retryable
from tests.races import in_line
from tests.scenes import SCENES, Call, told
from tests.scenes.call import LATER
from tests.stage import Stage
from tests.world import World, held, settlement

RECEIPTED = sorted(name for name, scene in SCENES.items() if scene.keeps_a_receipt)
WITHIN = sorted(
    name
    for name in RECEIPTED
    if not SCENES[name].is_a_workers and name != "submit inside a transaction of its callers own"
)
"""The scenes of commands that anybody may send, on any connection."""

Run = Callable[..., Any]


@pytest.fixture
def world(stage: Stage) -> World:
    """A world that is empty, in a database of which every row can be seen."""
    stage.clear()
    return World(stage.db)


@pytest.mark.parametrize("name", SCENES)
def test_a_command_that_is_sent_again_has_the_same_answer_and_changes_nothing(
    stage: Stage, world: World, name: str
) -> None:
    """However often it is sent: one effect, one answer, and not a row is different (spec B-04, P-01)."""
    call = SCENES[name].prepare(world)
    first = call.send(world.db.run)
    for _ in range(call.steps):
        stage.await_all()
        call.send(world.db.run)
    done = facts(stage)
    for _ in range(2):
        again = call.send(world.db.run)
        assert told(again) == told(first) or again in call.leftovers
        assert getattr(again, "replayed", True)
        assert facts(stage) == done


@pytest.mark.parametrize("name", RECEIPTED)
def test_other_content_under_the_same_action_is_refused_and_changes_nothing(
    stage: Stage, world: World, name: str
) -> None:
    """An action id names one content; the receipt of the first stays what it was (spec B-04, P-02)."""
    call = SCENES[name].prepare(world)
    assert call.other is not None
    first = call.send(world.db.run)
    done = facts(stage)
    with pytest.raises(ActionIdCollision):
        call.other.send(world.db.run)
    assert facts(stage) == done
    assert told(call.send(world.db.run)) == told(first)


JOB_INPUTS: dict[str, Any] = {
    "kind": "play",
    "payload": Document("2"),
    "queue": "r",
    "client": "other",
    "key": "l",
    "priority": 1,
    "run_at": LATER,
    "start_by": LATER,
    "finish_by": LATER,
    "tags": ("tag",),
    "parents": (),
    "policy": Policy.CANCEL,
    "attempts": 7,
    "crash_limit": 7,
    "timeout_seconds": 7.0,
    "backoff": Constant(7.0),
    "delay_limit_seconds": 7.0,
    "cost_limit": 7.0,
}


@pytest.mark.parametrize("name", JOB_INPUTS)
def test_whatever_was_asked_of_a_job_is_content(world: World, name: str) -> None:
    """All but the id that was made for it and the trace in which it was asked: a submission that differs in
    anything else is another (spec B-04)."""
    job = NewJob("work", Document("1"), queue="q", key="k", parents=tuple(world.submit()))
    action = world.action()
    world.db.run(submit, job, action=action)
    with pytest.raises(ActionIdCollision):
        world.db.run(submit, replace(job, **{name: JOB_INPUTS[name]}), action=action)
    assert {field.name for field in fields(NewJob)} == {"id", "trace", *JOB_INPUTS}


SESSION_INPUTS: dict[str, Any] = {
    "agent": "other",
    "queues": ("r",),
    "kinds": ("play",),
    "exclusive": True,
    "replace": True,
    "term_seconds": 20.0,
    "host": "there",
    "processes": {"keeper": 2},
}


@pytest.mark.parametrize("name", SESSION_INPUTS)
def test_whatever_was_asked_of_a_session_is_content(world: World, name: str) -> None:
    """The same for an opening: what it answers is what was asked first (spec B-04)."""
    new = NewSession("agent", ("q",), ("work",), host="here", processes={"keeper": 1})
    action = world.action()
    world.db.run(open_session, new, action=action)
    with pytest.raises(ActionIdCollision):
        world.db.run(open_session, replace(new, **{name: SESSION_INPUTS[name]}), action=action)
    assert {field.name for field in fields(NewSession)} == {"id", *SESSION_INPUTS}


CLAIM_INPUTS: dict[str, dict[str, Any]] = {
    "queues": {"queues": [QueueClaim("r", 1)]},
    "slots of a queue": {"queues": [QueueClaim("q", 2)]},
    "kinds": {"kinds": ["play"]},
    "slots": {"slots": 2},
    "starts": {"starts": False},
}


@pytest.mark.parametrize("name", CLAIM_INPUTS)
def test_whatever_a_claim_asks_for_is_content(world: World, name: str) -> None:
    """Where it looks on is a hint and its lease id is made for it; all else is what was asked (spec B-04)."""
    world.submit()
    action = world.worker().action()
    asked: dict[str, Any] = {"queues": [QueueClaim("q", 1)], "kinds": ["work"], "slots": 1, "starts": True}
    made: dict[str, Any] = {"lease_id": new_id(), "action": action}
    world.db.run(claim, **asked, **made)
    with pytest.raises(ActionIdCollision):
        world.db.run(claim, **asked | CLAIM_INPUTS[name], **made)


END_INPUTS: dict[str, Callable[[Settlement], Settlement]] = {
    "outcome": lambda end: end._replace(outcome=Succeed(Document("2"))),
    "cost": lambda end: end._replace(cost=1.0),
    "children": lambda end: end._replace(children=(NewJob("work", queue="q"),)),
    "lease": lambda end: end._replace(lease=end.lease._replace(lease_id=new_id())),
    "epoch": lambda end: end._replace(lease=end.lease._replace(epoch=7)),
}


@pytest.mark.parametrize("name", END_INPUTS)
@pytest.mark.parametrize("deferred", [False, True])
def test_whatever_was_reported_of_a_run_is_content(world: World, name: str, deferred: bool) -> None:
    """The revision of its job is a guess, and its facts ride along; all else is what was reported (spec B-04, P-15)."""
    world.submit()
    worker = world.worker()
    end = settlement(worker.take(), Succeed(Document("1")))
    action = worker.action()

    def send(end: Settlement) -> None:
        world.db.run(settle_deferred, [(0, end)], action=action) if deferred else world.db.run(
            settle, [end], action=action
        )

    send(end)
    with pytest.raises(ActionIdCollision):
        send(END_INPUTS[name](end))


def test_another_command_under_the_same_action_is_refused(stage: Stage, world: World) -> None:
    """The command itself is content, for anybody's actions and for a session's (spec B-04, P-04)."""
    world.submit()
    worker = world.worker()
    action, turn = world.action(), worker.action()
    world.db.run(pause, Scope.QUEUE, "r", action=action)
    claimed = world.db.run(claim, [QueueClaim("q", 1)], ["work"], slots=1, lease_id=new_id(), action=turn)
    done = facts(stage)
    with pytest.raises(ActionIdCollision):
        world.db.run(resume, Scope.QUEUE, "r", action=action)
    with pytest.raises(ActionIdCollision):
        world.db.run(save, held(claimed.leases[0]), Document("1"), number=1, action=turn)
    assert facts(stage) == done


def test_an_action_is_its_actors_own(world: World) -> None:
    """Two actors may use one action id, each for a command of its own (spec B-04)."""
    first = world.db.run(pause, Scope.QUEUE, "q", action=Action("one", "1"))
    second = world.db.run(resume, Scope.QUEUE, "q", action=Action("other", "1"))
    assert (first.changed, second.changed, second.replayed) == (True, True, False)


def test_what_is_made_for_one_command_is_refused_to_another(stage: Stage, world: World) -> None:
    """A job and a session are made once: their ids are resent with their own action only (spec P-01)."""
    job, new = NewJob("work", queue="q"), NewSession("agent", ("q",), ("work",))
    world.db.run(submit, job, action=world.action())
    world.db.run(open_session, new, action=world.action())
    done = facts(stage)
    with pytest.raises(Conflict):
        world.db.run(submit, job, action=world.action())
    with pytest.raises(Conflict):
        world.db.run(open_session, new, action=world.action())
    assert facts(stage) == done


def test_a_receipt_is_found_when_what_its_command_needed_is_gone(world: World) -> None:
    """A submission is answered again after its parents were pruned (spec B-04, D-02)."""
    (parent,) = world.submit()
    worker = world.worker()
    worker.succeed(worker.take())
    job, action = NewJob("work", queue="q", parents=(parent,)), world.action()
    first = world.db.run(submit, job, action=action)
    world.db.run(prune_jobs, older_than_days=0)
    assert not world.query("SELECT 1 FROM testigo.job WHERE id = CAST(:id AS uuid)", id=parent)
    assert world.db.run(submit, job, action=action) == replace(first, replayed=True)


def test_a_duplicate_claim_in_flight_takes_no_other_jobs(world: World) -> None:
    """What the first send took is the answer to both, and the rest is there for others (spec P-02, P-05)."""
    jobs = world.submit(*(NewJob("work", queue="q") for _ in range(5)))
    asked: dict[str, Any] = {"slots": 2, "lease_id": new_id(), "action": world.worker().action()}
    first, second = in_line(
        world.db,
        lambda c: claim(c, [QueueClaim("q", 2)], ["work"], **asked),
        lambda: world.db.run(claim, [QueueClaim("q", 2)], ["work"], **asked),
    )
    assert (second.replayed, second.leases) == (True, first.leases)
    assert [world.state(job) for job in jobs] == ["running"] * 2 + ["ready"] * 3


def test_a_duplicate_settle_in_flight_does_not_file_its_own_success_as_late(world: World) -> None:
    """The second send finds that its run has ended, and by its receipt that it was itself who ended it (spec P-02)."""
    (job,) = world.submit()
    worker = world.worker()
    ends, action = [settlement(worker.take(), Succeed())], worker.action()
    first, second = in_line(
        world.db, lambda c: settle(c, ends, action=action), lambda: world.db.run(settle, ends, action=action)
    )
    assert first.accepted == {0}
    assert second == replace(first, replayed=True)
    assert world.state(job) == "succeeded"
    assert not world.query("SELECT 1 FROM testigo.late")


def test_a_deferred_row_is_accepted_by_a_receipt_of_its_own(stage: Stage, world: World) -> None:
    """Until then it is owned, whatever is sent again; from then on both receipts are found (spec P-09)."""
    _, failed = world.submit(NewJob("work", queue="q"), NewJob("work", queue="q", priority=1))
    worker = world.worker()
    leases, action = worker.claim(2).leases, worker.action()
    ends = [settlement(leases[0], Succeed()), settlement(leases[1], Fail("E", "no", permanent=True))]
    first = world.db.run(settle, ends, action=action)
    assert (sorted(first.accepted), first.deferred) == ([0], (1,))
    assert world.db.run(settle, ends, action=action) == replace(first, replayed=True)
    assert (world.state(failed), world.job(failed).lease_id is None) == ("running", False)
    (row,) = world.db.run(settle_deferred, [(1, ends[1])], action=action).rows
    assert (row.job_id, row.how, row.state) == (failed, How.ACCEPTED, "permanent_failure")
    done = facts(stage)
    assert world.db.run(settle, ends, action=action) == replace(first, replayed=True)
    assert world.db.run(settle_deferred, [(1, ends[1])], action=action).rows == (row,)
    assert facts(stage) == done


@pytest.mark.parametrize("level", [IsolationLevel.REPEATABLE_READ, IsolationLevel.SERIALIZABLE])
@pytest.mark.parametrize("name", WITHIN)
def test_a_caller_whose_snapshot_is_too_old_for_the_receipt_is_told_to_try_again(
    stage: Stage, world: World, name: str, level: IsolationLevel
) -> None:
    """Above READ COMMITTED an earlier send may be unseen: then the answer is never that there was none (spec P-02)."""
    call = SCENES[name].prepare(world)
    with psycopg.connect(stage.url) as caller:
        caller.isolation_level = level

        def within(command: Callable[..., Any], *args: Any, **options: Any) -> Any:
            return run_within(caller, command, *args, **options)

        caller.execute("SELECT set_config('lock_timeout', '7s', true), count(*) FROM testigo.job")
        first = call.send(world.db.run)
        done = facts(stage)
        refused = refusal(call, within)
        assert isinstance(refused, Busy) or is_retryable(refused)
        assert caller.execute("SHOW lock_timeout").fetchone() == ("7s",)
        caller.rollback()
        assert told(call.send(within)) == told(first)
        caller.commit()
    assert facts(stage) == done


def refusal(call: Call, run: Run) -> Exception:
    """The error that the command ends with."""
    try:
        answer = call.send(run)
    except Exception as error:
        return error
    raise AssertionError(f"it was answered {answer}")


def facts(stage: Stage) -> list[str]:
    """Every row but the one that says where the walk of pruning is, which every walk changes."""
    return [row for row in stage.rows() if not row.startswith("prune_walk ")]
