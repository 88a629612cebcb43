"""Scenes of what a worker does to have and to keep work: sessions, claim, start, renew, save."""

from __future__ import annotations

from testigo.authority.actions import new_id
from testigo.authority.cancel import cancel
from testigo.authority.claim import Claimed, QueueClaim, claim
from testigo.authority.pause import configure_queue
from testigo.authority.processes import record_processes
from testigo.authority.renew import renew
from testigo.authority.report import LogLine, Progress, report
from testigo.authority.save import save
from testigo.authority.sessions import NewSession, close_session, drain_session, open_session
from testigo.authority.start import start
from testigo.authority.submissions import NewJob
from testigo.rules.documents import Document
from testigo.rules.outcomes import Release, Yield
from testigo.settings import LIMITS
from tests.scenes.call import LATER, Call, call, scene
from tests.world import World, held


@scene(open_session)
def open_a_session(world: World) -> Call:
    """The first of its agent."""
    new = NewSession("agent", ("q",), ("work",), host="here", processes={"keeper": 1})
    return call(open_session, new, action=world.action()).but(NewSession("agent", ("q", "r"), ("work",)))


@scene(open_session)
def open_a_session_in_place_of_another(world: World) -> Call:
    """Its agent has a session that lives."""
    world.submit()
    world.worker("agent").take()
    new = NewSession("agent", ("q",), ("work",))
    return call(open_session, new, action=world.action()).but(NewSession("agent", ("r",), ("work",)))


@scene(open_session)
def open_an_exclusive_session(world: World) -> Call:
    """No other may take its place, so its own second send must not either."""
    new = NewSession("agent", ("q",), ("work",), exclusive=True)
    return call(open_session, new, action=world.action()).but(NewSession("agent", ("r",), ("work",), exclusive=True))


@scene(drain_session)
def drain_a_session(world: World) -> Call:
    """It shall claim nothing more."""
    return call(drain_session, world.worker().id)


@scene(close_session)
def close_a_session(world: World) -> Call:
    """It ends, and what it holds waits for the sweep."""
    world.submit()
    worker = world.worker()
    worker.take()
    return call(close_session, worker.id)


@scene(claim)
def claim_and_start_from_several_queues(world: World) -> Call:
    """There is more work than slots, some of it is large, and some is not fit to be started."""
    for queue in ("r", "q"):
        world.submit(*(NewJob("work", Document(f'"{n}"'), queue=queue, priority=-n) for n in range(4)))
    world.submit(NewJob("work", Document(f'"{"x" * LIMITS.answer_bytes_max}"'), queue="q", priority=-9))
    world.submit(NewJob("work", queue="q", priority=-10, finish_by=LATER))
    world.query("UPDATE testigo.job SET finish_by = now() - interval '1 second' WHERE finish_by IS NOT NULL")
    worker = world.worker(queues=("r", "q"))
    queues = [QueueClaim("r", 2), QueueClaim("q", 4)]
    return call(claim, queues, ["work"], slots=5, lease_id=new_id(), action=worker.action()).but(slots=4)


@scene(claim)
def claim_all_that_there_is(world: World) -> Call:
    """While a first send of it is on its way, a second one finds nothing: what it took is taken back (spec P-17)."""
    world.submit(*(NewJob("work", queue="q") for _ in range(2)))
    made = {"lease_id": new_id(), "action": world.worker().action()}
    asked = call(claim, [QueueClaim("q", 3)], ["work"], slots=3, **made)
    return asked.but([QueueClaim("q", 3), QueueClaim("r", 3)], ["work"]).then(Claimed((), {}))


@scene(claim)
def claim_from_a_queue_that_tells_everything(world: World) -> Call:
    """The claim takes the heads of streams; the jobs are leased and not started, but for one with a checkpoint."""
    world.db.run(configure_queue, "q", events="full", stripes=2, action=world.action())
    world.submit(*(NewJob("work", queue="q") for _ in range(4)))
    worker = world.worker()
    worker.settle((worker.take(), Yield(Document('"here"'))))
    queues = [QueueClaim("q", 3)]
    made = {"slots": 3, "lease_id": new_id(), "starts": False}
    return call(claim, queues, ["work"], action=worker.action(), **made).but(queues, ["work", "play"])


@scene(start)
def start_leased_jobs(world: World) -> Call:
    """One begins, one was cancelled, one's lease is lost."""
    world.db.run(configure_queue, "q", events="full", action=world.action())
    world.submit(*(NewJob("work", queue="q") for _ in range(3)))
    worker = world.worker()
    leases = worker.claim(3, starts=False).leases
    world.db.run(cancel, [leases[1].job_id], action=world.action())
    holds = [held(lease) for lease in leases]
    holds[2] = holds[2]._replace(lease_id=new_id())
    return call(start, holds, action=worker.action())


@scene(renew)
def renew_a_session(world: World) -> Call:
    """One beat; one job shall be cancelled, one lease is lost."""
    world.submit(*(NewJob("work", queue="q") for _ in range(3)))
    worker = world.worker()
    leases = worker.claim(3).leases
    world.db.run(cancel, [leases[1].job_id], action=world.action())
    holds = [held(lease) for lease in leases]
    holds[2] = holds[2]._replace(epoch=7)
    return call(renew, worker.id, holds, epoch=worker.session.epoch, beat=1, low_water=1)


@scene(save)
def save_a_checkpoint(world: World) -> Call:
    """A second one of the same lease."""
    world.submit()
    worker = world.worker()
    lease = held(worker.take())
    world.db.run(save, lease, Document("1"), number=1, action=worker.action())
    return call(save, lease, Document("2"), number=2, action=worker.action()).but(lease, Document("3"))


@scene(save)
def save_a_checkpoint_that_was_overtaken(world: World) -> Call:
    """A later one of the same lease was there first."""
    world.submit()
    worker = world.worker()
    lease = held(worker.take())
    first, second = worker.action(), worker.action()
    world.db.run(save, lease, Document("2"), number=2, action=second)
    return call(save, lease, Document("1"), number=1, action=first).but(number=3)


@scene(report)
def report_what_runs_tell(world: World) -> Call:
    """Of one how far it is and what it logs, of one that is not held any more nothing."""
    world.submit(*(NewJob("work", queue="q") for _ in range(2)))
    worker = world.worker()
    mine, lost = worker.claim(2).leases
    worker.settle((lost, Release()))
    fence, other = held(mine), held(lost)
    lines = [LogLine(run, n, LATER, "info", f"line {n}") for run in (fence, other) for n in (1, 2)]
    return call(report, worker.id, [Progress(fence, 1, LATER, 1.0, 2.0, "half"), Progress(other, 1, LATER, 1.0)], lines)


@scene(record_processes)
def record_the_processes_of_a_session(world: World) -> Call:
    """A runner was replaced."""
    return call(record_processes, world.worker().id, {"keeper": {"pid": 1, "started": "7"}, "runners": []})
