"""Promise 4: a command that is sent twice takes effect once, even while its first send is on its way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Connection

from testigo.authority.actions import new_id
from testigo.authority.admit import admit
from testigo.authority.cancel import cancel
from testigo.authority.claim import Claimed, Lease, QueueClaim, claim
from testigo.authority.deferred import settle_deferred
from testigo.authority.expire import expire
from testigo.authority.pause import Scope, configure_queue, pause, resume
from testigo.authority.promote import promote
from testigo.authority.renew import renew
from testigo.authority.reprocess import reprocess
from testigo.authority.retire import retire
from testigo.authority.save import save
from testigo.authority.sessions import NewSession, close_session, open_session
from testigo.authority.settle import settle
from testigo.authority.start import start
from testigo.authority.submissions import NewJob
from testigo.authority.submit import submit, submit_many, submit_within
from testigo.authority.unblock import unblock
from testigo.errors import ActionIdCollision
from testigo.rules.documents import encode
from testigo.rules.outcomes import Block, Fail, Succeed
from testigo.store.database import Database
from testigo.store.sql import Statement
from tests.guarantees.conftest import Rounds
from tests.races import in_line, race
from tests.services import create_database, drop_database
from tests.world import Worker, World, held, settlement


@pytest.fixture(scope="module")
def world(server_url: str, template_name: str) -> Iterator[World]:
    """One installation for this file: what earlier tests left behind is in nobody's way."""
    name = f"test_{new_id()}"
    with Database(create_database(server_url, name, template=template_name), pool_size=5) as db:
        yield World(db)
    drop_database(server_url, name)


@pytest.fixture
def worker(world: World) -> Worker:
    """A worker for the one queue, in which every test leaves nothing to claim but what it began with."""
    worker = world.worker()
    while worker.claim(100).leases:
        pass
    return worker


@dataclass(frozen=True, slots=True)
class Sent:
    """A command with everything that was fixed before its first send."""

    command: Callable[..., Any]
    args: tuple[Any, ...]
    options: dict[str, Any]

    def through(self, db: Database) -> Any:
        """Send it through the door."""
        return db.run(self.command, *self.args, **self.options)

    def within(self, c: Connection) -> Any:
        """Send it inside a transaction that is open."""
        return self.command(c, *self.args, **self.options)


def command(function: Callable[..., Any], *args: Any, **options: Any) -> Sent:
    """Fix a command."""
    return Sent(function, args, options)


def submits_one(world: World, worker: Worker) -> Sent:
    """A job without a key."""
    return command(submit, NewJob("work", queue="q"), action=world.action())


def submits_a_key(world: World, worker: Worker) -> Sent:
    """A job with a key."""
    return command(submit, NewJob("work", queue="q", key=new_id()), action=world.action())


def submits_a_family(world: World, worker: Worker) -> Sent:
    """A batch in which one job waits for two others."""
    first, second = NewJob("work", queue="q"), NewJob("work", queue="p", key=new_id())
    batch = [first, second, NewJob("work", queue="q", parents=(first.id, second.id))]
    return command(submit_many, batch, action=world.action())


def submits_within(world: World, worker: Worker) -> Sent:
    """A job inside a caller's transaction."""
    return command(submit_within, [NewJob("work", queue="q")], action=world.action())


def claims(world: World, worker: Worker) -> Sent:
    """A claim of one of three jobs: its duplicate could take the next."""
    world.submit(*(NewJob("work", queue="q") for _ in range(3)))
    return command(claim, [QueueClaim("q", 1)], ("work",), slots=1, lease_id=new_id(), action=worker.action())


def claims_all(world: World, worker: Worker) -> Sent:
    """A claim of all that there is: its duplicate finds nothing to take."""
    queue = new_id()
    world.submit(queue=queue)
    return command(claim, [QueueClaim(queue, 5)], ("work",), slots=5, lease_id=new_id(), action=worker.action())


def starts(world: World, worker: Worker) -> Sent:
    """The start of a leased job."""
    world.submit()
    (lease,) = worker.claim(1, starts=False).leases
    return command(start, [held(lease)], action=worker.action())


def saves(world: World, worker: Worker) -> Sent:
    """A checkpoint."""
    return command(save, held(lease_of(world, worker)), encode({"at": 1}), number=1, action=worker.action())


def renews(world: World, worker: Worker) -> Sent:
    """A beat."""
    worker = world.worker()
    return command(renew, worker.id, [held(lease_of(world, worker))], epoch=worker.session.epoch, beat=1, low_water=0)


def settles(world: World, worker: Worker) -> Sent:
    """Two runs of which one succeeded and one must be deferred."""
    one, other = lease_of(world, worker), lease_of(world, worker)
    return command(settle, [settlement(one, Succeed()), settlement(other, Fail("E", "no"))], action=worker.action())


def settles_deferred(world: World, worker: Worker) -> Sent:
    """A failure, on the slow path."""
    end = settlement(lease_of(world, worker), Fail("E", "no", permanent=True))
    return command(settle_deferred, [(0, end)], action=worker.action())


def settles_with_a_child(world: World, worker: Worker) -> Sent:
    """A success that submits a job with it."""
    lease = lease_of(world, worker)
    end = settlement(lease, Succeed(), children=(NewJob("work", queue="q", parents=(lease.job_id,)),))
    return command(settle_deferred, [(0, end)], action=worker.action())


def settles_late(world: World, worker: Worker) -> Sent:
    """A result of a run that was lost."""
    worker = world.worker()
    lease = lease_of(world, worker)
    world.db.run(close_session, worker.id)
    world.db.run(expire)
    return command(settle_deferred, [(0, settlement(lease, Succeed()))], action=worker.action())


def cancels_what_waits(world: World, worker: Worker) -> Sent:
    """A cancel of a ready job."""
    return command(cancel, world.submit(), action=world.action())


def cancels_what_runs(world: World, worker: Worker) -> Sent:
    """A cancel of a running job."""
    return command(cancel, [lease_of(world, worker).job_id], action=world.action())


def cancels_what_is_unadmitted(world: World, worker: Worker) -> Sent:
    """A cancel of a job that no stream has told of."""
    parents = world.submit()
    return command(cancel, world.submit(NewJob("work", queue="q", parents=tuple(parents))), action=world.action())


def unblocks(world: World, worker: Worker) -> Sent:
    """An unblock."""
    lease = lease_of(world, worker)
    worker.settle((lease, Block("approval")))
    return command(unblock, [lease.job_id], action=world.action())


def reprocesses(world: World, worker: Worker) -> Sent:
    """A successor for a ready job."""
    (job,) = world.submit()
    return command(reprocess, job, action=world.action())


def pauses(world: World, worker: Worker) -> Sent:
    """A pause."""
    return command(pause, Scope.QUEUE, new_id(), action=world.action())


def resumes(world: World, worker: Worker) -> Sent:
    """A resume."""
    name = new_id()
    world.db.run(pause, Scope.KIND, name, action=world.action())
    return command(resume, Scope.KIND, name, action=world.action())


def configures(world: World, worker: Worker) -> Sent:
    """A queue's setting."""
    return command(configure_queue, new_id(), events="full", action=world.action())


def opens(world: World, worker: Worker) -> Sent:
    """A session with a name of its own."""
    return command(open_session, NewSession(new_id(), ("q",), ("work",)), action=world.action())


def opens_exclusively(world: World, worker: Worker) -> Sent:
    """A session whose name may live once."""
    return command(open_session, NewSession(new_id(), ("q",), ("work",), exclusive=True), action=world.action())


def opens_in_place(world: World, worker: Worker) -> Sent:
    """A session that takes the place of another."""
    agent = world.worker().session.agent
    return command(open_session, NewSession(agent, ("q",), ("work",), replace=True), action=world.action())


SUBMITS = [submits_one, submits_a_key, submits_a_family, submits_within]
RUNS = [claims, starts, saves, renews, settles, settles_deferred, settles_with_a_child, settles_late]
CONTROLS = [cancels_what_waits, cancels_what_runs, cancels_what_is_unadmitted, unblocks, reprocesses]
SETTINGS = [pauses, resumes, configures, opens, opens_exclusively, opens_in_place]
COMMANDS = [*SUBMITS, *RUNS, *CONTROLS, *SETTINGS]
"""Every command that has a receipt, or is harmless to repeat."""

Prepare = Callable[[World, Worker], Sent]


def by_name(prepare: Prepare) -> str:
    """What a test's id shows of a command."""
    return prepare.__name__


@pytest.mark.parametrize("prepare", [*COMMANDS, claims_all], ids=by_name)
def test_a_command_that_was_undone_takes_effect_by_its_second_send_and_never_by_a_third(
    world: World, worker: Worker, prepare: Prepare
) -> None:
    """A first send that is rolled back at its end left nothing; once one counts, the next ones find its answer
    (spec B-04, P-01, P-02, P-03)."""
    sent = prepare(world, worker)

    class Undone(Exception):
        """What a send meets when all of its work is done."""

    def fail_at_the_end(c: Connection) -> None:
        sent.within(c)
        raise Undone

    before = tally(world)
    with pytest.raises(Undone):
        world.db.run(fail_at_the_end)
    assert tally(world) == before
    second = sent.through(world.db)
    done = tally(world)
    third = sent.through(world.db)
    assert not getattr(second, "replayed", False)
    assert repeats(third, second)
    assert tally(world) == done


@pytest.mark.parametrize("prepare", COMMANDS, ids=by_name)
def test_a_duplicate_that_meets_its_first_send_under_way_gets_its_answer(
    world: World, worker: Worker, prepare: Prepare
) -> None:
    """A send that finds the effects of another one uncommitted waits, and takes them for its own (spec P-02, P-03)."""
    sent = prepare(world, worker)
    first, second = in_line(world.db, sent.within, partial(sent.through, world.db))
    assert repeats(second, first)
    done = tally(world)
    assert repeats(sent.through(world.db), first)
    assert tally(world) == done


@pytest.mark.parametrize("prepare", [submits_a_key, claims, settles, cancels_what_waits], ids=by_name)
def test_of_two_sends_at_once_exactly_one_takes_effect(
    world: World, worker: Worker, prepare: Prepare, rounds: Rounds
) -> None:
    """Both sends get one answer, and the database changes as by one (spec D-01, D-03, B-04, P-02)."""
    alone = prepare(world, worker)
    before = tally(world)
    alone.through(world.db)
    by_one = difference(tally(world), before)
    sends = [prepare(world, worker) for _ in rounds(200)]
    before = tally(world)
    for sent in sends:
        one, other = race(world.db, *[partial(sent.through, world.db)] * 2)
        assert repeats(one, other) or repeats(other, one)
    assert difference(tally(world), before) == {name: count * len(sends) for name, count in by_one.items()}


OTHER_CONTENT: dict[Prepare, dict[str, Any]] = {
    cancels_what_waits: {"note": "for another reason"},
    pauses: {"note": "for another reason"},
    saves: {"number": 2},
}


@pytest.mark.parametrize("prepare", OTHER_CONTENT, ids=by_name)
def test_other_content_under_the_same_action_is_refused_while_the_first_is_under_way(
    world: World, worker: Worker, prepare: Prepare
) -> None:
    """An action id names one content: who comes second with another is told so (spec B-04, P-02)."""
    sent = prepare(world, worker)
    other = replace(sent, options=sent.options | OTHER_CONTENT[prepare])
    _, refused = in_line(world.db, sent.within, partial(other.through, world.db))
    assert isinstance(refused, ActionIdCollision)


def sweeps_admissions(world: World, worker: Worker) -> Sent:
    """Jobs that wait for admission."""
    world.submit(*(NewJob("work", queue="q", parents=tuple(world.submit())) for _ in range(3)))
    return command(admit)


def sweeps_what_is_due(world: World, worker: Worker) -> Sent:
    """Jobs whose time has come."""
    leases = [lease_of(world, worker) for _ in range(3)]
    worker.settle(*((lease, Fail("E", "again", wait_seconds=1e-6)) for lease in leases))
    return command(promote, "q")


def sweeps_what_was_lost(world: World, worker: Worker) -> Sent:
    """Jobs of a session that is over."""
    worker = world.worker()
    for _ in range(3):
        lease_of(world, worker)
    world.db.run(close_session, worker.id)
    return command(expire)


def sweeps_what_is_unfit(world: World, worker: Worker) -> Sent:
    """Jobs that must not start any more."""
    jobs = world.submit(*(NewJob("work", queue="q") for _ in range(3)))
    world.query(_UNFIT, ids=jobs)
    return command(retire, jobs)


SWEEPS = [sweeps_admissions, sweeps_what_is_due, sweeps_what_was_lost, sweeps_what_is_unfit]


@pytest.mark.parametrize("prepare", SWEEPS, ids=by_name)
def test_sweeps_at_once_do_each_thing_once(world: World, worker: Worker, prepare: Prepare, rounds: Rounds) -> None:
    """Any number may sweep: what one of them took, the others pass over or find done (spec P-08, P-11, P-13, P-18)."""
    prepare(world, worker).through(world.db)
    alone = prepare(world, worker)
    before = tally(world)
    alone.through(world.db)
    by_one = difference(tally(world), before)
    for _ in rounds(30):
        sent = prepare(world, worker)
        before = tally(world)
        race(world.db, *[partial(sent.through, world.db)] * 3)
        sent.through(world.db)
        assert difference(tally(world), before) == by_one


def lease_of(world: World, worker: Worker) -> Lease:
    """The lease of one of the queue's jobs, of which there is at least one; it bears any number of failures."""
    world.submit(attempts=1_000, crash_limit=1_000)
    return worker.take()


def repeats(second: Any, first: Any) -> bool:
    """Whether the second answer is the first one again, and says so where it can."""
    if isinstance(first, Claimed):
        return second.replayed and not first.replayed and second.leases == first.leases
    if not hasattr(first, "replayed"):
        return bool(second == first)
    told = {"replayed": True} | ({"wakes": second.wakes} if hasattr(second, "wakes") else {})
    return bool(not first.replayed and second == replace(first, **told))


_UNFIT = Statement(
    "UPDATE testigo.job SET start_by = now() - interval '1 second' WHERE id = ANY (CAST(:ids AS uuid[]))"
)

_TALLY = Statement(
    """
    SELECT (SELECT count(*) FROM testigo.job) AS jobs, (SELECT sum(revision + epoch) FROM testigo.job) AS changes,
           (SELECT sum(failures + losses + releases) FROM testigo.job) AS counted,
           (SELECT count(*) FROM testigo.submission) AS keys, (SELECT count(*) FROM testigo.admission) AS waiting,
           (SELECT count(*) FROM testigo.edge) AS edges, (SELECT count(*) FROM testigo.pause) AS pauses,
           (SELECT count(*) FROM testigo.queue) AS queues, (SELECT count(*) FROM testigo.session) AS sessions,
           (SELECT sum(beat) FROM testigo.session) AS beats, (SELECT count(*) FROM testigo.event) AS events,
           (SELECT count(*) FROM testigo.receipt) + (SELECT count(*) FROM testigo.session_receipt) AS receipts,
           (SELECT count(*) FROM testigo.late) AS late, (SELECT count(*) FROM testigo.lapse) AS lapses
    """
)


def tally(world: World) -> dict[str, int]:
    """How many rows there are of everything, and how often the jobs were changed."""
    (row,) = world.query(_TALLY)
    return {name: int(count or 0) for name, count in row._mapping.items()}


def difference(after: dict[str, int], before: dict[str, int]) -> dict[str, int]:
    """What became more."""
    return {name: after[name] - before[name] for name in after}
