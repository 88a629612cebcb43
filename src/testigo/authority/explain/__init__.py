"""explain: why a job does not run, and when it will (spec P-11, P-13, P-14, P-24, A-06).

Everything is seen by one statement, at one moment; it locks nothing and decides nothing: whether a job
may still start is asked of the same rule as `retire` asks.
"""

from __future__ import annotations

from sqlalchemy import Connection

from testigo.authority.actions import JobId
from testigo.authority.explain.findings import Code, Explanation, Finding
from testigo.authority.explain.seen import see
from testigo.authority.explain.standing import ended, owned, unfinished
from testigo.authority.explain.waiting import blockers, next_in_line
from testigo.rules import fields
from testigo.rules.states import LEASED, TERMINAL
from testigo.store.command import single_statement

__all__ = ["Code", "Explanation", "Finding", "explain"]


@single_statement
def explain(c: Connection, job_id: JobId) -> Explanation:
    """Why this job does not run, in the order of what must happen next; or that it runs, or how it ended.

    Raises `NotFound`, with the tombstone of a job that was pruned.
    """
    fields.must_be_id(job_id, field="job")
    seen = see(c, job_id)
    found: tuple[Finding, ...] = ()
    if seen.state in TERMINAL:
        first = ended(seen)
    elif seen.state in LEASED:
        found = tuple(unfinished(seen))
        first = found[0] if found else owned(seen)
    else:
        found = tuple(blockers(seen))
        first = found[0] if found else next_in_line(seen)
    return Explanation(seen.id, seen.state, first.code, first.text, first.facts, first.until, found)
