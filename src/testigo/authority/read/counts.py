"""How many jobs there are of each state, as far as that is cheap to know."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Connection

from testigo.authority.read.pages import Count
from testigo.rules.states import CLAIMABLE, LEASED, State
from testigo.settings import LIMITS
from testigo.store.command import single_statement
from testigo.store.sql import Statement

__all__ = ["states"]


# Each set is walked along its own index and to its bound; several states may share one.
_STATES = Statement(
    """
    WITH owned AS (
        SELECT CAST(state AS text) AS state, count(*) AS n
        FROM (SELECT j.state
              FROM testigo.job j
              WHERE j.lease_id IS NOT NULL
              ORDER BY j.session_id, j.grant_n
              LIMIT :count_max + 1) AS seen
        GROUP BY state
    ),
    claimable AS (
        SELECT CAST(state AS text) AS state, count(*) AS n
        FROM (SELECT j.state
              FROM testigo.job j
              WHERE j.state IN ('ready', 'checkpointed')
              ORDER BY j.queue, j.priority, j.ready_at, j.id
              LIMIT :count_max + 1) AS seen
        GROUP BY state
    ),
    due AS (
        SELECT CAST(state AS text) AS state, count(*) AS n
        FROM (SELECT j.state
              FROM testigo.job j
              WHERE j.state IN ('created', 'retry_waiting') AND j.due_at IS NOT NULL
              ORDER BY j.queue, j.due_at, j.priority, j.id
              LIMIT :count_max + 1) AS seen
        GROUP BY state
    ),
    stuck AS (
        SELECT s.state, (SELECT count(*)
                         FROM (SELECT
                               FROM testigo.job j
                               WHERE j.state IN ('permanent_failure', 'blocked_by_quality')
                                 AND j.state = CAST(s.state AS testigo.job_state)
                               ORDER BY j.state, j.id
                               LIMIT :count_max + 1) AS seen) AS n
        FROM (VALUES ('permanent_failure'), ('blocked_by_quality')) AS s(state)
    ),
    newest AS MATERIALIZED (
        SELECT j.state
        FROM testigo.job j
        ORDER BY j.id DESC
        LIMIT :walk + 1
    ),
    rest AS (
        SELECT CAST(state AS text) AS state, count(*) AS n
        FROM newest
        WHERE state IN ('inputs_pending', 'succeeded', 'succeeded_degraded', 'cancelled', 'superseded')
        GROUP BY state
    )
    SELECT 'owned' AS found, state, n FROM owned
    UNION ALL
    SELECT 'claimable', state, n FROM claimable
    UNION ALL
    SELECT 'due', state, n FROM due
    UNION ALL
    SELECT 'stuck', state, n FROM stuck
    UNION ALL
    SELECT 'rest', state, n FROM rest
    UNION ALL
    SELECT 'newest', '', count(*) FROM newest
    """
)

_SETS = {"owned": LEASED, "claimable": CLAIMABLE, "due": frozenset({State.CREATED, State.RETRY_WAITING})}


@single_statement
def states(c: Connection) -> Mapping[State, Count]:
    """How many jobs are in each state, each counted to `LIMITS.count_max` at most.

    Of what no index leads to (waiting for parents, and what ended well) only the newest `LIMITS.walk_rows` jobs
    are counted: there are at least so many, and `more` says that older ones were not looked at. States that share
    an index share its bound, and `more` with it.
    """
    rows = _STATES.rows(c, count_max=LIMITS.count_max, walk=LIMITS.walk_rows)
    walked = sum(row.n for row in rows if row.found == "newest")
    seen = {State(row.state): row for row in rows if row.found != "newest"}
    answer = {state: Count(0, walked > LIMITS.walk_rows) for state in State}
    for name, among in _SETS.items():
        more = sum(row.n for row in seen.values() if row.found == name) > LIMITS.count_max
        answer |= {state: Count(0, more) for state in among}
    for state, row in seen.items():
        more = row.n > LIMITS.count_max if row.found == "stuck" else answer[state].more
        answer[state] = Count(min(row.n, LIMITS.count_max), more)
    return answer
