"""admit: tell the streams of jobs that were accepted unadmitted (spec P-11, P-25).

Such a job was submitted inside a caller's own transaction, or has parents. It is sent by workers
and servers when `waits_for_admission` finds some, and by any command that meets such a job. Its
events carry the submission's actor and action; its place in the queue is the admission's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row

from testigo.authority.actions import Action, JobId
from testigo.authority.edges import FULFILLED, Edge, join
from testigo.authority.jobs import LockedJob, lock
from testigo.authority.write import Change, write
from testigo.rules import decide
from testigo.rules.decide import Inputs, Policy
from testigo.rules.states import TERMINAL, State
from testigo.settings import STORE
from testigo.store.command import single_statement
from testigo.store.sql import Statement

__all__ = ["Admitted", "admit", "admit_these", "waits_for_admission"]

_PROBE = Statement("SELECT EXISTS (SELECT FROM testigo.admission) AS found")

_PICK = Statement(
    """
    SELECT CAST(job_id AS text) AS job_id
    FROM testigo.admission
    ORDER BY job_id
    LIMIT :limit
    FOR UPDATE SKIP LOCKED
    """
)

_TAKE = Statement(
    """
    DELETE FROM testigo.admission
    WHERE job_id = ANY (CAST(:ids AS uuid[]))
    RETURNING CAST(job_id AS text) AS job_id, actor, action, run_at, CAST(parents AS text[]) AS parents,
              policy, CAST(event_id AS text) AS event_id, coalesce(run_at > now(), false) AS early
    """
)

# A parent that was pruned meanwhile is judged by its tombstone.
_PRUNED = Statement(
    """
    SELECT CAST(job_id AS text) AS job_id, CAST(state AS text) AS state
    FROM testigo.tombstone
    WHERE job_id = ANY (CAST(:ids AS uuid[])) AND what = 'pruned'
    """
)


class Admitted(NamedTuple):
    """How many jobs were admitted, and whose listeners should look again."""

    admitted: int
    wakes: tuple[str, ...] = ()


@single_statement
def waits_for_admission(c: Connection) -> bool:
    """Whether any job waits to be admitted; a look that locks nothing."""
    row = _PROBE.row(c)
    return bool(row and row.found)


def admit(c: Connection, *, limit: int = STORE.sweep_rows) -> Admitted:
    """Admit at most `limit` jobs that nobody else is admitting."""
    picked = [row.job_id for row in _PICK.rows(c, limit=limit)]
    jobs = admit_these(c, picked)
    return Admitted(len(jobs), tuple(sorted({job.queue for job in jobs.values()})))


def admit_these(c: Connection, ids: Iterable[str]) -> dict[JobId, LockedJob]:
    """Admit those of these jobs that wait for it, and return them locked, as they were before.

    The locks are taken in the one order: parents by id, then their children by id (P-08).
    """
    admissions = {JobId(row.job_id): row for row in _TAKE.rows(c, ids=sorted(ids))}
    if not admissions:
        return {}
    parents = lock(c, {parent for row in admissions.values() for parent in row.parents})
    jobs = parents | lock(c, admissions)
    pruned = _pruned(c, admissions.values(), jobs)
    states = {job.id: job.state for job in jobs.values()} | pruned
    edges = [edge for job_id, row in admissions.items() for edge in _edges(job_id, row, states)]
    join(c, edges)
    changes: list[Change] = []
    for job_id, row in admissions.items():
        own = [edge for edge in edges if edge.child == job_id]
        changes += _changes(jobs[job_id], row, own, {edge.parent for edge in edges})
    write(c, changes, action=Action("system"))
    return {job_id: jobs[job_id] for job_id in admissions}


def _pruned(c: Connection, rows: Iterable[Row[Any]], jobs: Mapping[JobId, LockedJob]) -> dict[JobId, State]:
    gone = sorted({parent for row in rows for parent in row.parents} - set(jobs))
    if not gone:
        return {}
    return {JobId(row.job_id): State(row.state) for row in _PRUNED.rows(c, ids=gone)}


def _edges(child: JobId, row: Row[Any], states: Mapping[JobId, State]) -> list[Edge]:
    """An edge per distinct parent, closed at once where the parent has already ended."""
    policy = Policy(row.policy)
    edges = []
    for parent in dict.fromkeys(map(JobId, row.parents)):
        state = states.get(parent, State.CANCELLED)
        waits = state not in TERMINAL or (state not in FULFILLED and policy is Policy.WAIT)
        edges.append(Edge(parent, child, policy, None if waits else state))
    return edges


def _changes(job: LockedJob, row: Row[Any], edges: Sequence[Edge], waited_for: set[JobId]) -> list[Change]:
    broken = [edge.policy for edge in edges if edge.closed is not None and edge.closed not in FULFILLED]
    parents = Inputs(sum(edge.closed is None for edge in edges), broken)
    move = decide.admit(job.position, parents, due=not row.early)
    job = replace(job, is_parent=job.is_parent or job.id in waited_for)
    data = {
        "queue": job.queue,
        "kind": job.kind,
        "priority": job.priority,
        "run_at": _text(row.run_at),
        "parents": list(row.parents) or None,
    }
    due_at = row.run_at if move.target is State.CREATED else None
    admitted = Change(job, move, data, due_at=due_at, event_id=row.event_id, actor=row.actor, action=row.action)
    after = decide.inputs(replace(job.position, state=move.target), parents) if broken else None
    return [admitted] if after is None else [admitted, Change(job, after)]


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
