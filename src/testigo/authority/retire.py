"""retire: end, as the system, what must not be started any more (spec P-24, field case R50).

A claim names the jobs that it passed over because they are past `start_by`, `finish_by` or a
budget; `retire` ends those, and `retire_lapsed` finds the ones whose date passed while nobody claimed.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from sqlalchemy import Connection

from testigo.authority.actions import Action, JobId
from testigo.authority.jobs import LockedJob, lock_free
from testigo.authority.write import Change, write
from testigo.rules import decide, fields
from testigo.rules.states import TERMINAL, WAITING, State
from testigo.settings import LIMITS, STORE
from testigo.store.sql import Statement

__all__ = ["retire", "retire_lapsed"]

_LAPSED = Statement(
    """
    SELECT CAST(l.job_id AS text) AS id, j.id IS NOT NULL AS there
    FROM testigo.lapse l LEFT JOIN testigo.job j ON j.id = l.job_id
    WHERE l.at < now()
    ORDER BY l.at
    LIMIT :limit
    FOR UPDATE OF l SKIP LOCKED
    """
)

_LOOK_AGAIN = Statement(
    """
    WITH look AS MATERIALIZED (
        SELECT *
        FROM unnest(CAST(:ids AS uuid[]), CAST(:ats AS timestamptz[])) AS l(id, at)
    ),
    over AS (
        DELETE FROM testigo.lapse l
        USING look
        WHERE l.job_id = look.id AND look.at IS NULL
    )
    UPDATE testigo.lapse l
    SET at = look.at
    FROM look
    WHERE l.job_id = look.id AND look.at IS NOT NULL
    """
)

_ENDS = WAITING - {State.BLOCKED_BY_QUALITY}
"""What a date ends. A blocked job is judged again once it is unblocked, one that is owned when it comes back."""

_PATIENCE = timedelta(minutes=1)
"""Until a job is looked at again that its date could not end yet."""


def retire(c: Connection, ids: Iterable[JobId]) -> int:
    """End those of these jobs that wait and are unfit to be started; returns how many.

    One that somebody else has locked is passed over, as claims do: the next claim that meets it names it again.
    """
    wanted = list(ids)
    for at, job_id in enumerate(wanted):
        fields.must_be_id(job_id, field=f"jobs[{at}]")
    return len(_retire(c, lock_free(c, wanted).values()))


def retire_lapsed(c: Connection, *, limit: int = STORE.sweep_rows) -> int:
    """End jobs that still wait although their `start_by` or `finish_by` has passed; returns how many.

    One that somebody else has locked is left to the next sweep.
    """
    fields.whole(limit, field="limit", low=1, high=LIMITS.batch_max)
    lapsed = {JobId(row.id): row.there for row in _LAPSED.rows(c, limit=limit)}
    jobs = lock_free(c, lapsed)
    retired = _retire(c, jobs.values())
    seen = [one for one, there in lapsed.items() if one in jobs or not there]
    looks = [_next_look(jobs[one]) if one in jobs and one not in retired else None for one in seen]
    _LOOK_AGAIN.rows(c, ids=seen, ats=looks)
    return len(retired)


def _retire(c: Connection, jobs: Iterable[LockedJob]) -> set[JobId]:
    changes = []
    for job in jobs:
        if job.state not in _ENDS or job.unadmitted:
            continue
        reason = decide.is_fit(job.position, now=job.now)
        if reason is not None:
            changes.append(Change(job, decide.retire(job.position, reason)))
    write(c, changes, action=Action("system"))
    return {change.job.id for change in changes}


def _next_look(job: LockedJob) -> datetime | None:
    """When to look again at a job that was not ended; None when no date of it can end it any more."""
    finish_by = job.position.finish_by
    if job.state in TERMINAL or (job.position.runs > 0 and finish_by is None):
        return None
    return max(job.now + _PATIENCE, finish_by or job.now)
