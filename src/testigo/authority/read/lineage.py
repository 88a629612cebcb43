"""What a job has to do with others: what it superseded, waits for, and is waited for by (spec A-06, A-08, P-25)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row

from testigo.authority.actions import JobId
from testigo.authority.read.missing import no_job
from testigo.authority.read.pages import check_limit
from testigo.rules import fields
from testigo.rules.graph import Policy
from testigo.rules.states import State
from testigo.store.command import single_statement
from testigo.store.sql import Statement

__all__ = ["Lineage", "Related", "lineage"]


class Related(NamedTuple):
    """Another job and the state that it is in, or was pruned in; None where nothing is left of it.

    Of an edge, `policy` says what becomes of the child if the parent can never succeed, and `closed`
    how the parent ended; None while the child waits for it.
    """

    job_id: JobId
    state: State | None
    pruned: bool
    policy: Policy | None = None
    closed: State | None = None


@dataclass(frozen=True, slots=True)
class Lineage:
    """A job's relations, each list bounded by the read's `limit`; `more` names those that go on.

    `superseded` are the jobs in whose place it came, the nearest first, and `successors` those that
    came in its place.
    """

    job_id: JobId
    superseded: tuple[Related, ...]
    successors: tuple[Related, ...]
    parents: tuple[Related, ...]
    children: tuple[Related, ...]
    more: frozenset[str] = frozenset()


_LINEAGE = Statement(
    """
    WITH RECURSIVE older AS (
        SELECT supersedes AS id, 1 AS n
        FROM testigo.job
        WHERE id = CAST(:job AS uuid) AND supersedes IS NOT NULL
        UNION ALL
        SELECT j.supersedes, o.n + 1
        FROM older o JOIN testigo.job j ON j.id = o.id
        WHERE j.supersedes IS NOT NULL AND o.n <= :limit
    ),
    newer AS (
        SELECT successor_id AS id, 1 AS n
        FROM testigo.successor
        WHERE job_id = CAST(:job AS uuid)
        UNION ALL
        SELECT s.successor_id, r.n + 1
        FROM newer r JOIN testigo.successor s ON s.job_id = r.id
        WHERE r.n <= :limit
    ),
    related AS (
        SELECT 'superseded' AS what, id, n, NULL AS policy, NULL AS closed
        FROM older
        UNION ALL
        SELECT 'successors', id, n, NULL, NULL
        FROM newer
        UNION ALL
        (SELECT 'parents', parent, row_number() OVER (ORDER BY parent), policy, closed
         FROM testigo.edge
         WHERE child = CAST(:job AS uuid)
         ORDER BY parent
         LIMIT :limit + 1)
        UNION ALL
        (SELECT 'children', child, row_number() OVER (ORDER BY child), policy, closed
         FROM testigo.edge
         WHERE parent = CAST(:job AS uuid)
         ORDER BY child
         LIMIT :limit + 1)
    )
    SELECT r.what, CAST(r.id AS text) AS id, r.policy, r.closed, CAST(coalesce(j.state, t.state) AS text) AS state,
           t.state IS NOT NULL AS pruned
    FROM (SELECT FROM testigo.job WHERE id = CAST(:job AS uuid)) AS known
         LEFT JOIN related r ON true
         LEFT JOIN testigo.job j ON j.id = r.id
         LEFT JOIN testigo.tombstone t ON t.job_id = r.id AND t.what = 'pruned'
    ORDER BY r.what, r.n
    """
)

_LISTS = ("superseded", "successors", "parents", "children")


@single_statement
def lineage(c: Connection, job_id: JobId, *, limit: int = 100) -> Lineage:
    """A job's relations, at most `limit` of each kind; raises `NotFound` as `job` does."""
    fields.must_be_id(job_id, field="job")
    check_limit(limit)
    rows = _LINEAGE.rows(c, job=job_id, limit=limit)
    if not rows:
        raise no_job(c, job_id)
    found = {what: [_related(row) for row in rows if row.what == what] for what in _LISTS}
    more = frozenset(what for what, related in found.items() if len(related) > limit)
    return Lineage(job_id, **{what: tuple(related[:limit]) for what, related in found.items()}, more=more)


def _related(row: Row[Any]) -> Related:
    return Related(
        job_id=JobId(row.id),
        state=None if row.state is None else State(row.state),
        pruned=row.pruned,
        policy=None if row.policy is None else Policy(row.policy),
        closed=None if row.closed is None else State(row.closed),
    )
