"""What a runner tells of its runs is data from outside: what cannot be is refused before others' notes join it."""

from __future__ import annotations

import threading

import pytest

from testigo.authority.actions import JobId, SessionId, new_id
from testigo.authority.claim import Lease
from testigo.authority.sessions import Session
from testigo.errors import ProtocolBroken
from testigo.rules.documents import Document
from testigo.store.database import Database
from testigo.worker.desk import Desk
from testigo.worker.reporter import Reporter
from testigo.worker.runs import Run
from testigo.worker.term import Term

LEASE = Lease(JobId(new_id()), "k", "q", new_id(), 1, 2, 0, 0, 9.0, None, True, Document("null"), None, None)


@pytest.mark.parametrize(
    "told",
    [
        [1, "progress", -1, None, ""],
        [1, "progress", 1, -1, ""],
        [1, "progress", 10**30, None, ""],
        [1, "progress", True, None, ""],
        [1, "progress", 1, None],
        [1, "log", -1, "info", "a line"],
        [1, "log", 1e12, "info", "a line"],
        [1, "noise", 1],
    ],
    ids=str,
)
def test_a_note_that_cannot_be_is_the_end_of_its_own_runner(told: list[object]) -> None:
    """The authority refuses a report as a whole: it would take the notes of all other runs with it (spec B-12)."""
    reporter = Reporter(Desk(Database("postgresql://nowhere"), 1, leaving=threading.Event()), lambda call: call())
    run = Run(1, LEASE, Term(Session(SessionId(new_id()), "a", 1, 15.0), opened_at=0.0), 0)
    with pytest.raises(ProtocolBroken):
        reporter.note(run, told)
    assert run.unreported == 0
    reporter.note(run, [1, "progress", 1, 2.5, "half"])
    assert run.unreported == 1
