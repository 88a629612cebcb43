"""A term counts its commands and keeps its leases until their answers are known (spec P-04, P-16, P-17)."""

from __future__ import annotations

import pytest

from testigo.authority.actions import JobId, SessionId, new_id
from testigo.authority.claim import Lease
from testigo.authority.sessions import Session
from testigo.rules.documents import Document
from testigo.settings import SESSIONS
from testigo.worker.term import Term, clock


@pytest.fixture
def term() -> Term:
    """A term of ten seconds that was opened a second ago."""
    return Term(Session(SessionId(new_id()), "agent", 1, 10.0), opened_at=clock() - 1)


def lease() -> Lease:
    """Any lease."""
    job_id = JobId(new_id())
    return Lease(job_id, "kind", "q", new_id(), 1, 2, 0, 0, 9.0, None, True, Document("null"), None, None)


def test_low_water_stays_below_every_command_that_is_open(term: Term) -> None:
    """It passes a command once its answer is known, in whatever order answers come."""
    first, second, third = term.action(), term.action(), term.action()
    assert [each.n for each in (first, second, third)] == [1, 2, 3]
    for answered, low_water in ((second, 1), (first, 3), (third, 4)):
        term.answered(answered)
        beat, _, told = term.next_beat()
        assert told == low_water
        term.beaten(beat)


def test_a_lease_is_listed_from_its_grant_to_the_answer_of_its_settle(term: Term) -> None:
    """A beat names it, and what is taken back leaves it alone."""
    action = term.action()
    taken = [lease(), lease()]
    assert term.kept() == (0, [])
    term.granted(action, [7, 8], taken)
    assert term.kept() == (action.n, [each.job_id for each in taken])
    _, held, _ = term.next_beat()
    assert [each.job_id for each in held] == [each.job_id for each in taken]
    term.settled([7])
    assert term.kept() == (action.n, [taken[1].job_id])


def test_two_leases_of_one_job_are_listed_apart(term: Term) -> None:
    """The one that was lost may still be told of while the next one runs."""
    old = lease()
    young = old._replace(lease_id=new_id(), epoch=2)
    term.granted(term.action(), [1], [old])
    term.granted(term.action(), [2], [young])
    term.settled([1])
    _, held, _ = term.next_beat()
    assert [each.epoch for each in held] == [2]


def test_a_renewal_counts_from_before_its_first_send(term: Term) -> None:
    """What is sent again moves nothing, until it is answered."""
    opened = term.stop_at
    before = clock()
    beat, _, _ = term.next_beat()
    assert term.next_beat()[0] == beat
    assert term.stop_at == opened
    term.beaten(beat)
    share = SESSIONS.stop_after_terms * 10.0
    assert before + share <= term.stop_at <= clock() + share
    assert term.beat_age_seconds >= 0
