"""Promise 2: a job has one owner at a time, and each epoch at most one accepted outcome."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from sqlalchemy import Connection

from testigo.authority.actions import JobId, SessionId, new_id
from testigo.authority.claim import Claimed, QueueClaim, claim
from testigo.authority.expire import declare_dead, expire
from testigo.authority.renew import Renewed, renew
from testigo.authority.sessions import NewSession, Session, close_session, drain_session, open_session
from testigo.authority.submissions import NewJob
from testigo.errors import Error, SessionBusy, SessionReplaced
from tests.guarantees.conftest import Rounds
from tests.races import in_line, race
from tests.world import Worker, World


def jobs_of(answers: list[Claimed | Error]) -> list[JobId]:
    """The jobs that these claims took together."""
    return [lease.job_id for answer in answers if isinstance(answer, Claimed) for lease in answer.leases]


def test_workers_that_claim_at_once_share_the_queue_and_no_job(world: World, rounds: Rounds) -> None:
    """However many claim together, each job goes to one of them, and none of them waits (spec D-03, P-12)."""
    workers = [world.worker() for _ in range(4)]
    for _ in rounds(2):
        jobs = world.submit(*(NewJob("work", queue="q") for _ in range(500)))
        taken: list[JobId] = []
        while more := jobs_of(race(world.db, *(partial(worker.claim, 2) for worker in workers))):
            taken += more
        assert sorted(taken) == sorted(jobs)
    assert {row.epoch for row in world.query("SELECT epoch FROM testigo.job")} == {1}


def test_a_claim_passes_over_what_another_is_taking(world: World) -> None:
    """A claim that meets an uncommitted one takes the next jobs, and does not wait for it (spec D-03)."""
    first, second = world.submit(NewJob("work", queue="q"), NewJob("work", queue="q"))
    one, other = world.worker(), world.worker()
    take_one = partial(claim, queues=[QueueClaim("q", 1)], kinds=("work",), slots=1, lease_id=new_id())
    answers = in_line(world.db, partial(take_one, action=one.action()), partial(other.claim, 2))
    assert [jobs_of([answer]) for answer in answers] == [[first], [second]]


def test_a_job_that_is_taken_back_goes_to_one_of_those_who_claim_meanwhile(world: World, rounds: Rounds) -> None:
    """Expiry and claims race: a lost job has a new owner at the next epoch, or waits for one (spec P-18)."""
    claimers = [world.worker() for _ in range(2)]
    for _ in rounds(60):
        jobs = world.submit(*(NewJob("work", queue="q") for _ in range(3)))
        gone = world.worker()
        gone.claim(3)
        world.db.run(close_session, gone.id)
        _, *answers = race(world.db, partial(world.db.run, expire), *(partial(w.claim, 2) for w in claimers))
        answers += [worker.claim(3) for worker in claimers]
        assert sorted(jobs_of(answers)) == sorted(jobs)
        assert [world.job(job).epoch for job in jobs] == [2, 2, 2]


def test_what_a_replaced_session_claims_is_given_to_others(world: World, rounds: Rounds) -> None:
    """A claim that commits after its session was replaced is found by the level: the next sweep takes it back,
    and its holder is told (spec P-18, P-21)."""
    for at in rounds(60):
        jobs = world.submit(*(NewJob("work", queue=f"q-{at}") for _ in range(3)))
        old = world.worker(f"agent-{at}", queues=[f"q-{at}"])
        place = partial(world.db.run, open_session, replacing(old), action=world.action())
        new, answer = race(world.db, place, partial(old.claim, 2))
        assert isinstance(new, Session)
        assert isinstance(answer, Claimed | SessionReplaced)
        while world.db.run(expire).more:
            pass
        heir = Worker(world.db, new, old.queues, old.kinds)
        assert sorted(jobs_of([heir.claim(3)])) == sorted(jobs)


def test_a_beat_and_a_replacement_at_once_leave_one_session(world: World, rounds: Rounds) -> None:
    """The beat counts, or its holder is told that it was replaced; the agent has one live session (spec P-16, P-21)."""
    world.worker("agent")
    for _ in rounds(300):
        (live,) = world.query("SELECT CAST(id AS text) AS id, epoch FROM testigo.session WHERE state = 'open'")
        new = NewSession("agent", ("q",), ("work",), replace=True)
        opened, beaten = race(
            world.db,
            partial(world.db.run, open_session, new, action=world.action()),
            partial(world.db.run, renew, live.id, [], epoch=live.epoch, beat=1, low_water=0),
        )
        assert (opened.replaced, opened.epoch) == (live.id, live.epoch + 1)
        assert isinstance(beaten, Renewed | SessionReplaced)
        with pytest.raises(SessionReplaced):
            world.db.run(renew, live.id, [], epoch=live.epoch, beat=2, low_water=0)


def test_a_session_that_beats_while_it_is_declared_dead_is_one_of_the_two(world: World, rounds: Rounds) -> None:
    """Death takes effect only on the beat that was watched: who beats first lives, who is dead is told (spec P-18)."""
    deaths = 0
    for _ in rounds(300):
        worker = world.worker()
        epoch = worker.session.epoch
        dead, beaten = race(
            world.db,
            partial(world.db.run, declare_dead, worker.id, epoch=epoch, beat=0),
            partial(world.db.run, renew, worker.id, [], epoch=epoch, beat=1, low_water=0),
        )
        deaths += dead
        assert isinstance(beaten, SessionReplaced if dead else Renewed)
    (counted,) = world.query("SELECT count(*) AS dead FROM testigo.session WHERE state = 'dead'")
    assert counted.dead == deaths


def test_an_exclusive_name_is_opened_once_however_many_ask_at_once(world: World, rounds: Rounds) -> None:
    """One of those who open it has it, and the others are told who (spec P-21)."""
    for at in rounds(60):
        asks = [NewSession(f"agent-{at}", ("q",), ("work",), exclusive=True) for _ in range(3)]
        answers = race(world.db, *(partial(world.db.run, open_session, ask, action=world.action()) for ask in asks))
        (opened,) = [answer for answer in answers if isinstance(answer, Session)]
        assert [answer.facts["session"] for answer in answers if isinstance(answer, SessionBusy)] == [opened.id] * 2


@pytest.mark.parametrize("over", [close_session, drain_session], ids=["closed", "draining"])
def test_a_session_that_is_over_claims_nothing_more(
    world: World, rounds: Rounds, over: Callable[[Connection, SessionId], None]
) -> None:
    """A claim that begins when its session is not open any more is refused, whatever it raced with (spec P-18)."""
    world.submit(*(NewJob("work", queue="q") for _ in range(300)))
    for _ in rounds(60):
        worker = world.worker()
        race(world.db, partial(world.db.run, over, worker.id), partial(worker.claim, 1))
        with pytest.raises(SessionReplaced):
            worker.claim(1)


def replacing(worker: Worker) -> NewSession:
    """The session that takes this worker's place."""
    return NewSession(worker.session.agent, worker.queues, worker.kinds, replace=True)
