"""Runs on their way through a keeper, before any runner has them."""

from __future__ import annotations

import pytest

from testigo.authority.actions import JobId, SessionId, new_id
from testigo.authority.claim import Lease
from testigo.authority.sessions import Session
from testigo.rules.documents import Document
from testigo.rules.outcomes import Release
from testigo.settings import WORKER
from testigo.worker.dispatch import Dispatch
from testigo.worker.runners import Runners
from testigo.worker.runs import Run
from testigo.worker.term import Term, clock
from tests.world import held

JOB = JobId(new_id())


@pytest.fixture
def dispatch() -> Dispatch:
    """A keeper's table while no runner is ready."""
    return Dispatch(Runners([], WORKER, 0), kill_grace_seconds=1.0, wait_seconds=9.0)


@pytest.fixture
def twice() -> list[Run]:
    """Two runs of one job: its lease was lost here, and granted here again."""
    term = Term(Session(SessionId(new_id()), "agent", 1, 10.0), opened_at=clock())
    return [Run(epoch, _lease(epoch), term, 0) for epoch in (1, 2)]


def _lease(epoch: int) -> Lease:
    return Lease(JOB, "k", "q", new_id(), epoch, epoch, 0, 0, 9.0, None, True, Document("null"), None, None)


def test_a_lost_lease_stops_the_run_that_had_it(dispatch: Dispatch, twice: list[Run]) -> None:
    """The next run of the same job goes on. Nothing is reported."""
    dispatch.take(twice, 0.0)
    dispatch.stop([held(twice[0].lease)], "lease_lost", 0.0)
    assert dispatch.dropped == [twice[0]]
    assert not dispatch.ended
    assert len(dispatch) == 1


def test_a_lost_lease_whose_run_is_gone_stops_no_other(dispatch: Dispatch, twice: list[Run]) -> None:
    """A beat that was sent before a run's end was accepted is answered after the job was claimed here again."""
    dispatch.take(twice[1:], 0.0)
    dispatch.stop([held(twice[0].lease)], "lease_lost", 0.0)
    dispatch.stop([held(twice[0].lease)], "cancelled", 0.0)
    assert not dispatch.dropped
    assert not dispatch.ended
    assert len(dispatch) == 1


def test_both_runs_of_a_job_are_stopped_when_both_leases_are_lost(dispatch: Dispatch, twice: list[Run]) -> None:
    """Then a beat names both."""
    dispatch.take(twice, 0.0)
    dispatch.stop([held(run.lease) for run in twice], "lease_lost", 0.0)
    assert dispatch.dropped == twice


def test_a_cancel_is_for_the_run_that_it_names(dispatch: Dispatch, twice: list[Run]) -> None:
    """It has not begun, so it is given back, and the authority cancels the job."""
    dispatch.take(twice, 0.0)
    dispatch.stop([held(twice[1].lease)], "cancelled", 0.0)
    assert dispatch.ended == [twice[1]]
    assert twice[1].end is not None
    assert twice[1].end.outcome == Release("cancelled")


def test_what_waits_takes_the_place_of_a_slot(dispatch: Dispatch, twice: list[Run]) -> None:
    """Nothing is claimed for slots that runs wait for."""
    dispatch.take(twice, 0.0)
    assert dispatch.free() == (-2, 0, 0)
    dispatch.give_back("the worker takes no work")
    assert dispatch.free() == (0, 0, 0)
    assert len(dispatch) == 0


def test_what_no_runner_took_in_time_is_given_back(dispatch: Dispatch, twice: list[Run]) -> None:
    """It has not begun, so it must not be taken for a run that goes on past its limit (spec P-22)."""
    first, second = twice
    second.alone = True
    dispatch.take([first], 0.0)
    dispatch.take([second], 1.0)
    dispatch.enforce(8.9)
    assert not dispatch.ended
    assert dispatch.next_at == 9.0
    dispatch.enforce(9.0)
    assert dispatch.ended == [first]
    assert dispatch.next_at == 10.0
    dispatch.enforce(10.0)
    assert dispatch.ended == [first, second]
    assert [run.end and run.end.outcome for run in twice] == [Release("no runner was free in time")] * 2
    assert len(dispatch) == 0
