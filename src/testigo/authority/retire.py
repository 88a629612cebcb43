"""retire: end, as the system, what must not be started any more (spec P-24, field case R50).

A claim names the jobs that it passed over because they are past `start_by`, `finish_by` or a
budget; `retire` ends those, and `retire_lapsed` finds the ones whose date passed while nobody claimed.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection

from testigo.authority.actions import Action, JobId
from testigo.authority.jobs import LockedJob, lock
from testigo.authority.write import Change, write
from testigo.rules import decide
from testigo.rules.states import LEASED, TERMINAL
from testigo.settings import STORE
from testigo.store.sql import Statement

__all__ = ["retire", "retire_lapsed"]

_LAPSED = Statement(
    """
    SELECT CAST(job_id AS text) AS id
    FROM testigo.lapse
    WHERE at < now()
    ORDER BY at
    LIMIT :limit
    FOR UPDATE SKIP LOCKED
    """
)

# A job that runs is not ended by its date here: look again later, in case it comes back to wait.
_LATER = Statement(
    """
    WITH over AS (
        DELETE FROM testigo.lapse WHERE job_id = ANY (CAST(:over AS uuid[]))
    )
    UPDATE testigo.lapse l
    SET at = now() + interval '1 minute'
    WHERE job_id = ANY (CAST(:later AS uuid[]))
    """
)


def retire(c: Connection, ids: Iterable[JobId]) -> int:
    """End those of these jobs that wait and are unfit to be started; returns how many."""
    return _retire(c, lock(c, ids).values())


def retire_lapsed(c: Connection, *, limit: int = STORE.sweep_rows) -> int:
    """End jobs that still wait although their `start_by` or `finish_by` has passed; returns how many."""
    jobs = lock(c, (row.id for row in _LAPSED.rows(c, limit=limit)))
    retired = _retire(c, jobs.values())
    later = [job.id for job in jobs.values() if job.state in LEASED]
    _LATER.rows(c, over=[job_id for job_id in jobs if job_id not in later], later=later)
    return retired


def _retire(c: Connection, jobs: Iterable[LockedJob]) -> int:
    changes = []
    for job in jobs:
        if job.state in TERMINAL | LEASED or job.unadmitted:
            continue
        reason = decide.is_fit(job.position, now=job.now)
        if reason is not None:
            changes.append(Change(job, decide.retire(job.position, reason)))
    write(c, changes, action=Action("system"))
    return len(changes)
