"""expire: take work back from sessions that are over, and declare dead those that stopped beating (P-17, P-18).

Whether a session still beats is observed, never dated: `read_beats` shows every live session's beat,
`rules.leases.Watch` ages it on the reader's own monotonic clock, and `declare_dead` takes effect only if
the beat is still the one that was watched. The rest is level-triggered: every sweep takes back any lease
whose session is not open, whoever closed it and whenever its claim committed.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC
from typing import NamedTuple

from sqlalchemy import Connection

from testigo.authority.actions import Action, JobId, SessionId
from testigo.authority.jobs import LockedJob, lock
from testigo.authority.write import Change, write
from testigo.rules import decide, fields
from testigo.rules.leases import Reading
from testigo.rules.outcomes import Release
from testigo.settings import LIMITS, STORE
from testigo.store.command import single_statement
from testigo.store.sql import Statement

__all__ = ["Beats", "TakenBack", "declare_dead", "expire", "read_beats", "run_taken_back", "take_back"]


class Beats(NamedTuple):
    """Every live session's beat, and the incarnation of the database that shows them (spec P-23)."""

    readings: tuple[Reading, ...]
    incarnation: str


class TakenBack(NamedTuple):
    """How many jobs were taken back, and whether another sweep would find more."""

    taken: int
    more: bool
    wakes: tuple[str, ...] = ()


_BEATS = Statement(
    """
    SELECT CAST(s.id AS text) AS id, s.epoch, s.beat, s.term_seconds, i.incarnation
    FROM (SELECT system_identifier || ':' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) AS incarnation
          FROM pg_control_system()) AS i
         LEFT JOIN testigo.session s ON s.state IN ('open', 'draining')
    """
)

_DEAD = Statement(
    """
    WITH dead AS (
        UPDATE testigo.session
        SET state = 'dead'
        WHERE id = CAST(:id AS uuid) AND epoch = :epoch AND beat = :beat AND state IN ('open', 'draining')
        RETURNING id
    ),
    profile AS (
        UPDATE testigo.session_profile p
        SET closed_at = now()
        FROM dead
        WHERE p.session_id = dead.id
    )
    SELECT 1 FROM dead
    """
)

_IS_DEAD = Statement(
    """
    SELECT 1
    FROM testigo.session
    WHERE id = CAST(:id AS uuid) AND epoch = :epoch AND beat = :beat AND state = 'dead'
    """
)

# A session of which at least one lease can be taken back now: a transaction that sits on the leases
# of one session keeps nobody from those of the others.
_OVER = Statement(
    """
    SELECT CAST(s.id AS text) AS id, s.agent
    FROM testigo.session s JOIN testigo.job j ON j.session_id = s.id
    WHERE s.state NOT IN ('open', 'draining') AND j.lease_id IS NOT NULL
    LIMIT 1
    FOR UPDATE OF j SKIP LOCKED
    """
)

_HELD = Statement(
    """
    SELECT CAST(id AS text) AS id
    FROM testigo.job
    WHERE session_id = CAST(:session AS uuid) AND lease_id IS NOT NULL
    ORDER BY id
    LIMIT :limit
    FOR UPDATE SKIP LOCKED
    """
)

_AGENT = Statement("SELECT agent FROM testigo.session WHERE id = CAST(:session AS uuid)")

_UNLISTED = Statement(
    """
    SELECT CAST(id AS text) AS id
    FROM testigo.job
    WHERE session_id = CAST(:session AS uuid) AND lease_id IS NOT NULL AND grant_n <= :watermark
      AND id <> ALL (CAST(:listed AS uuid[]))
    ORDER BY id
    LIMIT :limit
    FOR UPDATE SKIP LOCKED
    """
)


@single_statement
def read_beats(c: Connection) -> Beats:
    """Read every live session's beat; one read serves all sessions. Locks nothing."""
    rows = _BEATS.rows(c)
    readings = tuple(Reading(row.id, row.epoch, row.beat, row.term_seconds) for row in rows if row.id is not None)
    return Beats(readings, rows[0].incarnation)


@single_statement
def declare_dead(c: Connection, session_id: str, *, epoch: int, beat: int) -> bool:
    """End a session whose beat was watched unchanged for its whole term; False if it beat meanwhile.

    Repeating it changes nothing, and has the same answer (spec P-03).
    """
    fields.must_be_id(session_id, field="session")
    fields.whole(epoch, field="epoch", low=0, high=fields.INTEGER_MAX)
    fields.whole(beat, field="beat", low=0, high=fields.BIGINT_MAX)
    watched = {"id": session_id, "epoch": epoch, "beat": beat}
    return bool(_DEAD.rows(c, **watched) or _IS_DEAD.rows(c, **watched))


def expire(c: Connection, *, limit: int = STORE.sweep_rows) -> TakenBack:
    """Take back what a session that is over still holds: one session, at most `limit` leases.

    What was running is a loss, counted against the crash limit; what was only leased returns unharmed;
    what was being cancelled is cancelled (spec P-24, model.md).
    """
    fields.whole(limit, field="limit", low=1, high=LIMITS.batch_max)
    over = _OVER.row(c)
    if over is None:
        return TakenBack(0, more=False)
    jobs = lock(c, (row.id for row in _HELD.rows(c, session=over.id, limit=limit)))
    changes = [
        Change(job, decide.expire(job.position, now=job.now), run_taken_back(job, over.agent)) for job in jobs.values()
    ]
    write(c, changes, action=Action("system"))
    return TakenBack(len(changes), more=bool(changes), wakes=_queues(jobs.values()))


def take_back(
    c: Connection, session_id: SessionId, *, watermark: int, listed: Iterable[JobId], limit: int = STORE.sweep_rows
) -> TakenBack:
    """Release what a live session was granted by claims up to `watermark` and does not list.

    Its keeper sends it for grants whose answer never came; nothing of them was started, so nothing
    is counted as a loss (spec P-17).
    """
    kept = list(listed)
    fields.must_be_id(session_id, field="session")
    fields.whole(watermark, field="watermark", low=0, high=fields.BIGINT_MAX)
    fields.whole(limit, field="limit", low=1, high=LIMITS.batch_max)
    for at, job_id in enumerate(kept):
        fields.must_be_id(job_id, field=f"listed[{at}]")
    rows = _UNLISTED.rows(c, session=session_id, watermark=watermark, listed=sorted(kept), limit=limit)
    jobs = lock(c, (row.id for row in rows))
    given_back = Release("the holder does not list it")
    holder = _AGENT.row(c, session=session_id)
    agent = holder.agent if holder else None
    changes = [
        Change(job, decide.settle(job.position, given_back, draw=0.0, now=job.now), run_taken_back(job, agent))
        for job in jobs.values()
    ]
    write(c, changes, action=Action("system"))
    return TakenBack(len(changes), more=len(changes) == limit, wakes=_queues(jobs.values()))


def run_taken_back(job: LockedJob, agent: str | None) -> dict[str, object]:
    """What is known of the run that is taken back: it was another's than the one who tells of it (spec P-27)."""
    started_at = None if job.started_at is None else job.started_at.astimezone(UTC).isoformat()
    return {"epoch": job.epoch, "agent": agent, "session": job.session_id, "started_at": started_at}


def _queues(jobs: Iterable[LockedJob]) -> tuple[str, ...]:
    return tuple(sorted({job.queue for job in jobs}))
