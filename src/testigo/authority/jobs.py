"""The job table's rows, as the commands that lock and decide read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row

from testigo.authority.actions import JobId, SessionId
from testigo.errors import NotFound
from testigo.rules.contract import contract_terms
from testigo.rules.decide import Position
from testigo.rules.states import State
from testigo.store.sql import Statement

__all__ = ["LockedJob", "existing", "lock", "lock_free", "position_of"]


@dataclass(frozen=True, slots=True)
class LockedJob:
    """A job under this transaction's lock: what it is, who owns it, and what the rules read of it."""

    id: JobId
    queue: str
    kind: str
    stream: str
    priority: int
    revision: int
    epoch: int
    lease_id: str | None
    session_id: SessionId | None
    started_at: datetime | None
    timeout_seconds: float
    is_parent: bool
    full_events: bool
    unadmitted: bool
    now: datetime
    position: Position

    @property
    def state(self) -> State:
        """Where the job stands."""
        return self.position.state


# The rows come locked in the order of their ids, each in its newest version; whatever else a
# decision needs is read by a later statement (P-07, P-08).
_LOCK = Statement(
    """
    SELECT CAST(j.id AS text) AS id, j.queue, j.kind, j.stream, j.priority, j.revision, j.epoch,
           CAST(j.lease_id AS text) AS lease_id, CAST(j.session_id AS text) AS session_id,
           j.started_at, j.timeout_seconds, j.is_parent, j.full_events, CAST(j.state AS text) AS state,
           j.failures, j.losses, j.waited_seconds, j.cost, j.attempts, j.crash_limit, j.contract, j.start_by,
           j.finish_by, j.checkpoint IS NOT NULL AS has_checkpoint,
           EXISTS (SELECT FROM testigo.admission a WHERE a.job_id = j.id) AS unadmitted,
           now() AS now
    FROM testigo.job j
    WHERE j.id = ANY (CAST(:ids AS uuid[]))
    ORDER BY j.id
    FOR UPDATE OF j
    """
)


_LOCK_FREE = Statement(f"{_LOCK.sql} SKIP LOCKED")


def lock(c: Connection, ids: Iterable[str]) -> dict[JobId, LockedJob]:
    """Lock these jobs in the order of their ids and read them; ids without a job are left out."""
    return _lock(c, ids, _LOCK)


def lock_free(c: Connection, ids: Iterable[str]) -> dict[JobId, LockedJob]:
    """The same without a wait: what somebody else has locked is left out as well.

    For threads that have more to do, where whoever is left out is found again.
    """
    return _lock(c, ids, _LOCK_FREE)


def existing(jobs: Mapping[JobId, LockedJob], ids: Iterable[str]) -> list[LockedJob]:
    """The jobs in the order asked for; raises `NotFound` for the first that does not exist."""
    found = []
    for wanted in ids:
        job = jobs.get(JobId(wanted))
        if job is None:
            raise NotFound(f"There is no job {wanted}.", field="job")
        found.append(job)
    return found


def position_of(row: Row[Any]) -> Position:
    """What the rules read of a job's row; its epoch counts the runs."""
    terms = contract_terms(row.contract)
    return Position(
        state=State(row.state),
        failures=row.failures,
        losses=row.losses,
        waited_seconds=row.waited_seconds,
        cost=row.cost,
        attempts=row.attempts,
        crash_limit=row.crash_limit,
        delay_limit_seconds=terms.delay_limit_seconds,
        cost_limit=terms.cost_limit,
        start_by=row.start_by,
        finish_by=row.finish_by,
        backoff=terms.backoff,
        has_checkpoint=row.has_checkpoint,
        runs=row.epoch,
    )


def _lock(c: Connection, ids: Iterable[str], statement: Statement) -> dict[JobId, LockedJob]:
    wanted = sorted(set(ids))
    if not wanted:
        return {}
    return {JobId(row.id): _locked(row) for row in statement.rows(c, ids=wanted)}


def _locked(row: Row[Any]) -> LockedJob:
    return LockedJob(
        id=JobId(row.id),
        queue=row.queue,
        kind=row.kind,
        stream=row.stream,
        priority=row.priority,
        revision=row.revision,
        epoch=row.epoch,
        lease_id=row.lease_id,
        session_id=SessionId(row.session_id) if row.session_id else None,
        started_at=row.started_at,
        timeout_seconds=row.timeout_seconds,
        is_parent=row.is_parent,
        full_events=row.full_events,
        unadmitted=row.unadmitted,
        now=row.now,
        position=position_of(row),
    )
