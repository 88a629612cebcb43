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
from testigo.authority.edges import FULFILLED, Edge, children_of, join, successors
from testigo.authority.jobs import LockedJob, lock
from testigo.authority.write import Change, write
from testigo.rules import decide, fields
from testigo.rules.decide import Inputs, Policy
from testigo.rules.states import TERMINAL, State
from testigo.settings import LIMITS, STORE
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
    fields.whole(limit, field="limit", low=1, high=LIMITS.batch_max)
    picked = [row.job_id for row in _PICK.rows(c, limit=limit)]
    jobs, changes = admit_these(c, picked)
    write(c, changes, action=Action("system"))
    return Admitted(len(picked), tuple(sorted({jobs[JobId(job_id)].queue for job_id in picked})))


def admit_these(c: Connection, ids: Iterable[str]) -> tuple[dict[JobId, LockedJob], list[Change]]:
    """Lock these jobs, and admit those of them that wait for it.

    Returns the jobs as they stand once they are admitted, and the changes that admit them: the caller
    writes those together with its own, because whoever holds a head waits for no job (P-08, P-09).
    """
    wanted = sorted(ids)
    admissions = {JobId(row.job_id): row for row in _TAKE.rows(c, ids=wanted)}
    named = {parent for row in admissions.values() for parent in row.parents}
    # One statement locks them all in one order: a parent here may be a child elsewhere.
    jobs = lock(c, {*wanted, *children_of(c, wanted), *named, *successors(c, named).values()})
    heads = successors(c, named)
    jobs |= lock(c, set(heads.values()) - set(jobs))
    states = {job.id: job.state for job in jobs.values()} | _pruned(c, {*named, *heads.values()} - set(jobs))
    edges = {job_id: _edges(job_id, row, states, heads) for job_id, row in admissions.items()}
    join(c, [edge for own in edges.values() for edge in own])
    for parent in {edge.parent for own in edges.values() for edge in own if edge.closed is None} & set(jobs):
        jobs[parent] = replace(jobs[parent], is_parent=True)
    changes: list[Change] = []
    for job_id, row in admissions.items():
        job = jobs[job_id]
        admitted = _changes(job, row, edges[job_id])
        changes += admitted
        jobs[job_id] = replace(job, position=replace(job.position, state=admitted[-1].move.target))
    return {job_id: jobs[job_id] for job_id in map(JobId, wanted) if job_id in jobs}, changes


def _pruned(c: Connection, ids: Iterable[str]) -> dict[JobId, State]:
    gone = sorted(ids)
    return {JobId(row.job_id): State(row.state) for row in _PRUNED.rows(c, ids=gone)} if gone else {}


def _edges(child: JobId, row: Row[Any], states: Mapping[JobId, State], heads: Mapping[JobId, JobId]) -> list[Edge]:
    """An edge per distinct parent, closed at once where the parent has already ended."""
    policy = Policy(row.policy)
    edges: dict[JobId, Edge] = {}
    for named in map(JobId, row.parents):
        parent = heads[named] if named in heads and _gave_way(states[named], policy) else named
        state = states.get(parent, State.CANCELLED)
        waits = state not in TERMINAL or (state not in FULFILLED and policy is Policy.WAIT)
        edges[parent] = Edge(parent, child, policy, None if waits else state)
    return list(edges.values())


def _gave_way(state: State, policy: Policy) -> bool:
    """Whether who names a parent in this state waits for its successor: as if its edge had been there to move."""
    return state is State.SUPERSEDED or (state in TERMINAL - FULFILLED and policy is Policy.WAIT)


def _changes(job: LockedJob, row: Row[Any], edges: Sequence[Edge]) -> list[Change]:
    broken = [edge.policy for edge in edges if edge.closed is not None and edge.closed not in FULFILLED]
    parents = Inputs(sum(edge.closed is None for edge in edges), broken)
    move = decide.admit(job.position, parents, due=not row.early)
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
    if after is None:
        return [admitted]
    system = Action("system")
    return [admitted, Change(job, after, actor=system.actor, action=system.id)]


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
