"""Scenes of what takes work back and ends what must not be started: the sweeps that anybody may send."""

from __future__ import annotations

from testigo.authority.admit import admit
from testigo.authority.cancel import cancel
from testigo.authority.expire import TakenBack, declare_dead, expire, read_beats, take_back
from testigo.authority.probe import probe
from testigo.authority.processes import holding, sessions_on, terminate_backends
from testigo.authority.retire import retire, retire_lapsed
from testigo.authority.sessions import NewSession, close_session, open_session
from testigo.authority.submissions import NewJob
from testigo.authority.time_out import read_runs, time_out
from testigo.rules.retries import Constant
from tests.scenes.call import LATER, Call, call, scene
from tests.world import World


@scene(read_beats)
def read_the_beats(world: World) -> Call:
    """Of a session that lives."""
    world.worker()
    return call(read_beats)


@scene(declare_dead)
def declare_a_session_dead(world: World) -> Call:
    """Its beat was watched unchanged."""
    worker = world.worker()
    return call(declare_dead, worker.id, epoch=worker.session.epoch, beat=0)


@scene(expire)
def expire_what_a_session_held(world: World) -> Call:
    """A run that is tried again, one at its crash limit, waited for, one that was cancelled, one not started."""
    jobs = [NewJob("work", queue="q", priority=n, crash_limit=1 if n == 1 else 3) for n in range(4)]
    world.submit(*jobs, NewJob("work", queue="q", parents=(jobs[1].id,), run_at=LATER))
    world.db.run(admit)
    worker = world.worker()
    worker.claim(3)
    worker.claim(1, starts=False)
    world.db.run(cancel, [jobs[2].id], action=world.action())
    world.db.run(close_session, worker.id)
    return call(expire).then(TakenBack(0, more=False))


@scene(take_back)
def take_back_what_a_session_does_not_list(world: World) -> Call:
    """The grants of a claim whose answer never came, but not those of a later one."""
    world.submit(*(NewJob("work", queue="q") for _ in range(4)))
    worker = world.worker()
    listed = worker.take().job_id
    worker.claim(1, starts=False)
    worker.take()
    watermark = worker.n
    worker.take()
    return call(take_back, worker.id, watermark=watermark, listed=[listed]).then(TakenBack(0, more=False))


@scene(retire)
def retire_what_a_claim_passed_over(world: World) -> Call:
    """Jobs past their date, one of which others wait for."""
    (parent,) = world.submit(finish_by=LATER)
    world.submit(NewJob("work", queue="q", parents=(parent,)))
    world.db.run(admit)
    world.query("UPDATE testigo.job SET finish_by = now() - interval '1 second' WHERE finish_by IS NOT NULL")
    return call(retire, [parent]).then(0)


@scene(retire_lapsed)
def retire_what_lapsed(world: World) -> Call:
    """One job still waits and is ended, one runs and is looked at again later, one has ended."""
    _, ended, _ = world.submit(*(NewJob("work", queue="q", priority=n, finish_by=LATER) for n in range(3)))
    worker = world.worker()
    worker.take()
    world.db.run(cancel, [ended], action=world.action())
    world.query("UPDATE testigo.job SET finish_by = now() - interval '1 second' WHERE state IN ('ready', 'running')")
    world.query("UPDATE testigo.lapse SET at = now() - interval '1 second'")
    return call(retire_lapsed).then(0)


@scene(read_runs)
def read_what_runs(world: World) -> Call:
    """One run, and a job that nobody has."""
    world.submit(*(NewJob("work", queue="q") for _ in range(2)))
    world.worker().take()
    return call(read_runs)


@scene(time_out)
def end_a_run_past_its_limit(world: World) -> Call:
    """It is tried again later; others wait for its end."""
    (job,) = world.submit(timeout_seconds=1.0, backoff=Constant(60))
    world.submit(NewJob("work", queue="q", parents=(job,)))
    world.db.run(admit)
    lease = world.worker().take()
    return call(time_out, job, lease.epoch).then(TakenBack(0, more=False))


@scene(probe)
def look_what_a_sweep_would_find(world: World) -> Call:
    """A job that waits to be admitted."""
    (parent,) = world.submit()
    world.submit(NewJob("work", queue="q", parents=(parent,)))
    return call(probe)


@scene(sessions_on)
def look_who_works_here(world: World) -> Call:
    """One session here, and one elsewhere."""
    for host in ("here", "there"):
        new = NewSession(f"at {host}", ("q",), ("work",), host=host, processes={"keeper": 1})
        world.db.run(open_session, new, action=world.action())
    return call(sessions_on, "here")


@scene(holding)
def look_who_holds_what_is_not_theirs(world: World) -> Call:
    """One session is over and was not swept, one lives."""
    world.submit(*(NewJob("work", queue="q") for _ in range(2)))
    workers = [world.worker(), world.worker()]
    for worker in workers:
        worker.take()
    world.db.run(close_session, workers[0].id)
    return call(holding)


@scene(terminate_backends)
def end_the_connections_of_a_session_that_is_over(world: World) -> Call:
    """It told of none."""
    worker = world.worker()
    world.db.run(close_session, worker.id)
    return call(terminate_backends, worker.id)
