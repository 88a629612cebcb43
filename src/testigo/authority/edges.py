"""Who waits for whom: a row per parent and child, open until the parent has ended (spec A-08, P-25).

There is no counter of open parents: whoever holds a child's lock counts its open edges in a
statement of its own, and so sees every edge that was closed by those who held the lock before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import Connection

from testigo.authority.actions import JobId
from testigo.rules.decide import Policy
from testigo.rules.states import State
from testigo.store.sql import Statement

__all__ = [
    "FULFILLED",
    "Edge",
    "children_of",
    "close",
    "join",
    "mark_parents",
    "move_to_successor",
    "open_parents",
    "successors",
]

FULFILLED = frozenset({State.SUCCEEDED, State.SUCCEEDED_DEGRADED})
"""The ends of a parent that give its children what they wait for."""


class Edge(NamedTuple):
    """A child waits for a parent; `closed` is the state in which the parent ended, None while it is open."""

    parent: JobId
    child: JobId
    policy: Policy
    closed: State | None


_CHILDREN = Statement(
    """
    SELECT DISTINCT CAST(child AS text) AS child
    FROM testigo.edge
    WHERE parent = ANY (CAST(:parents AS uuid[])) AND closed IS NULL
    """
)

# A parent that failed leaves the edges of those open that are to wait for its successor.
_CLOSE = Statement(
    """
    UPDATE testigo.edge e
    SET closed = p.state
    FROM unnest(CAST(:parents AS uuid[]), CAST(:states AS text[])) AS p(id, state)
    WHERE e.parent = p.id AND e.closed IS NULL
      AND (p.state IN ('succeeded', 'succeeded_degraded') OR e.policy <> 'wait')
    RETURNING CAST(e.parent AS text) AS parent, CAST(e.child AS text) AS child, e.policy, e.closed
    """
)

_OPEN = Statement(
    """
    SELECT CAST(child AS text) AS child, count(*) AS open
    FROM testigo.edge
    WHERE child = ANY (CAST(:children AS uuid[])) AND closed IS NULL
    GROUP BY child
    """
)

_JOIN = Statement(
    """
    INSERT INTO testigo.edge (parent, child, policy, closed)
    SELECT e.parent, e.child, e.policy, e.closed
    FROM unnest(CAST(:parents AS uuid[]), CAST(:children AS uuid[]), CAST(:policies AS text[]),
                CAST(:closed AS text[])) AS e(parent, child, policy, closed)
    """
)

# No revision: that somebody waits for it is nothing a parent's holder should be refused for.
_MARK = Statement(
    """
    UPDATE testigo.job
    SET is_parent = true
    WHERE id = ANY (CAST(:ids AS uuid[])) AND NOT is_parent
      AND state NOT IN ('succeeded', 'succeeded_degraded', 'permanent_failure', 'cancelled', 'superseded')
    """
)

_MOVE = Statement(
    """
    UPDATE testigo.edge
    SET parent = CAST(:successor AS uuid)
    WHERE parent = CAST(:parent AS uuid) AND closed IS NULL
    RETURNING 1
    """
)


# Only the last job of a chain has no successor.
_SUCCESSORS = Statement(
    """
    WITH RECURSIVE chain AS (
        SELECT job_id AS of, successor_id AS head
        FROM testigo.successor
        WHERE job_id = ANY (CAST(:ids AS uuid[]))
        UNION ALL
        SELECT chain.of, s.successor_id
        FROM chain JOIN testigo.successor s ON s.job_id = chain.head
    )
    SELECT CAST(of AS text) AS of, CAST(head AS text) AS head
    FROM chain
    WHERE NOT EXISTS (SELECT FROM testigo.successor s WHERE s.job_id = chain.head)
    """
)


def children_of(c: Connection, parents: Iterable[str]) -> list[JobId]:
    """The jobs that wait for any of these parents."""
    return [JobId(row.child) for row in _CHILDREN.rows(c, parents=sorted(parents))]


def close(c: Connection, ended: Mapping[JobId, State]) -> list[Edge]:
    """Close the edges of parents that have ended; the caller holds the locks of their children."""
    rows = _CLOSE.rows(c, parents=list(ended), states=[str(state) for state in ended.values()])
    return [Edge(JobId(row.parent), JobId(row.child), Policy(row.policy), State(row.closed)) for row in rows]


def open_parents(c: Connection, children: Iterable[str]) -> dict[JobId, int]:
    """For each of these locked jobs, how many parents it still waits for; none is left out."""
    wanted = [JobId(child) for child in children]
    counted = {JobId(row.child): int(row.open) for row in _OPEN.rows(c, children=wanted)} if wanted else {}
    return {child: counted.get(child, 0) for child in wanted}


def join(c: Connection, edges: Sequence[Edge]) -> None:
    """Record these edges, and mark the parents that are waited for; the caller holds their locks."""
    if not edges:
        return
    _JOIN.rows(
        c,
        parents=[edge.parent for edge in edges],
        children=[edge.child for edge in edges],
        policies=[str(edge.policy) for edge in edges],
        closed=[None if edge.closed is None else str(edge.closed) for edge in edges],
    )
    mark_parents(c, {edge.parent for edge in edges if edge.closed is None})


def mark_parents(c: Connection, ids: Iterable[str]) -> None:
    """Mark jobs as waited for: a settle then takes the path that looks after children."""
    wanted = sorted(ids)
    if wanted:
        _MARK.rows(c, ids=wanted)


def successors(c: Connection, ids: Iterable[str]) -> dict[JobId, JobId]:
    """For each of these jobs that has a successor, the last one of the chain."""
    wanted = sorted(ids)
    return {JobId(row.of): JobId(row.head) for row in _SUCCESSORS.rows(c, ids=wanted)} if wanted else {}


def move_to_successor(c: Connection, parent: JobId, successor: JobId) -> bool:
    """Let those who wait for a job wait for its successor; whether there were any."""
    return bool(_MOVE.rows(c, parent=parent, successor=successor))
