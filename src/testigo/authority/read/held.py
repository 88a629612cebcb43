"""What sessions hold now: the jobs behind their leases (spec P-13, P-16)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from testigo.authority.actions import JobId, SessionId
from testigo.authority.read.pages import check_limit
from testigo.rules import fields
from testigo.rules.states import State
from testigo.store.command import single_statement
from testigo.store.sql import Statement, id_array

__all__ = ["HeldJob", "held_by"]


@dataclass(frozen=True, slots=True)
class HeldJob:
    """A job that a session holds: in which run, and since when it runs; None while it is only leased."""

    id: JobId
    kind: str
    queue: str
    state: State
    epoch: int
    started_at: datetime | None


_HELD = Statement(
    """
    SELECT CAST(s.id AS text) AS session, CAST(j.id AS text) AS id, j.kind, j.queue,
           CAST(j.state AS text) AS state, j.epoch, j.started_at
    FROM unnest(CAST(:sessions AS uuid[])) AS s(id)
         CROSS JOIN LATERAL (
             SELECT *
             FROM testigo.job
             WHERE session_id = s.id AND lease_id IS NOT NULL
             ORDER BY session_id, grant_n
             LIMIT :limit) AS j
    ORDER BY s.id, j.grant_n
    """
)


@single_statement
def held_by(
    c: Connection, sessions: Sequence[SessionId], *, limit: int = 20
) -> Mapping[SessionId, tuple[HeldJob, ...]]:
    """What each of these sessions holds, in the order in which it was granted: at most `limit` jobs of each."""
    check_limit(limit)
    for session in sessions:
        fields.must_be_id(session, field="session")
    found: dict[SessionId, list[HeldJob]] = {session: [] for session in sessions}
    for row in _HELD.rows(c, sessions=id_array(sessions), limit=limit):
        job = HeldJob(JobId(row.id), row.kind, row.queue, State(row.state), row.epoch, row.started_at)
        found[SessionId(row.session)].append(job)
    return {session: tuple(jobs) for session, jobs in found.items()}
