"""time_out: end a run that went on past its hard limit under a keeper that beats and never settles (spec P-22).

A keeper enforces its runs' limits itself. This is for one that does not: whoever sweeps watches each run
(`read_runs`, aged by `rules.leases.Watch` on the watcher's own clock, from its own first sight), and takes
back one that had its limit and time enough for its keeper to stop it and to say so.
"""

from __future__ import annotations

import random

from sqlalchemy import Connection

from testigo.authority.actions import Action, JobId
from testigo.authority.expire import TakenBack, run_taken_back
from testigo.authority.jobs import lock_free
from testigo.authority.write import Change, error_text, write
from testigo.rules import decide, fields
from testigo.rules.leases import RunReading
from testigo.rules.outcomes import Fail
from testigo.rules.states import LEASED
from testigo.store.command import single_statement
from testigo.store.sql import Statement

__all__ = ["read_runs", "time_out"]

ALLOWANCE_TERMS = 2
"""How many terms of its session a run may be past its limit: to be stopped, killed and settled in."""

CODE = "TIMEOUT"

# All of them, every time: which one will stay past its limit, only who has seen it all the while can tell.
_RUNS = Statement(
    """
    SELECT CAST(j.id AS text) AS id, j.epoch, j.timeout_seconds, s.term_seconds
    FROM testigo.job j JOIN testigo.session s ON s.id = j.session_id
    WHERE j.lease_id IS NOT NULL AND s.state IN ('open', 'draining')
    """
)

_AGENT = Statement("SELECT agent FROM testigo.session WHERE id = CAST(:session AS uuid)")


@single_statement
def read_runs(c: Connection) -> tuple[RunReading, ...]:
    """Every run that a live session holds, with the age at which it has run out of time; locks nothing."""
    return tuple(
        RunReading(row.id, row.epoch, row.timeout_seconds + ALLOWANCE_TERMS * row.term_seconds, row.term_seconds)
        for row in _RUNS.rows(c)
    )


def time_out(c: Connection, job_id: JobId, epoch: int) -> TakenBack:
    """Take this run back as a failure, `TIMEOUT`, if it is still the job's; its holder has lost the lease.

    A cancel that was requested ends the job; else it is tried again as its contract says (spec A-14). A job that
    somebody else has locked is left to the next look.
    """
    fields.must_be_id(job_id, field="job")
    fields.whole(epoch, field="epoch", low=0, high=fields.INTEGER_MAX)
    job = lock_free(c, [job_id]).get(job_id)
    if job is None or job.state not in LEASED or job.epoch != epoch:
        return TakenBack(0, more=False)
    limit = f"{job.timeout_seconds:g} s"
    ended = Fail(CODE, f"The run went on past its limit of {limit}, and its keeper did not end it.")
    holder = _AGENT.row(c, session=job.session_id)
    told = run_taken_back(job, holder.agent if holder else None)
    move = decide.settle(job.position, ended, draw=random.random(), now=job.now)
    told |= {"code": ended.code, "message": ended.message}
    change = Change(job, move, told, error=error_text(ended.code, ended.message))
    return TakenBack(1, more=False, wakes=write(c, [change], action=Action("system")))
