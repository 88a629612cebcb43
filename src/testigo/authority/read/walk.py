"""The walks over jobs: by which index, row by row, until enough was found or looked at.

Each is the inside of a statement: it gives the ids from the newest, numbered, and whether each is wanted.
Besides what a `Filter` asks for it takes `before`, an id, and `walk`, the number of rows at which it stops.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Connection

from testigo.authority.read.filters import Filter, Source
from testigo.store.sql import Statement

__all__ = ["over", "source_of"]

_CAUSE = """\
        WHEN CAST(:cause AS text) IS NOT NULL
             AND testigo.cause(testigo.code_of(j.error, j.reason), testigo.message_of(j.error, j.reason)) <> :cause
        THEN false
"""

# What costs much is asked last, and of those rows alone that have all the rest: a CASE has an order where
# AND has none.
_WANTED = """
    CASE
        WHEN CAST(:queue AS text) IS NOT NULL AND j.queue <> :queue THEN false
        WHEN CAST(:kind AS text) IS NOT NULL AND j.kind <> :kind THEN false
        WHEN CAST(:states AS testigo.job_state[]) IS NOT NULL
             AND j.state <> ALL (CAST(:states AS testigo.job_state[])) THEN false
        WHEN CAST(:client AS text) IS NOT NULL AND j.client <> :client THEN false
        WHEN CAST(:failures_min AS integer) IS NOT NULL AND j.failures < CAST(:failures_min AS integer) THEN false
        WHEN CAST(:tag AS text) IS NOT NULL AND CAST(:tag AS text) <> ALL (coalesce(j.tags, '{}')) THEN false
        WHEN CAST(:worker AS text) IS NOT NULL
             AND j.session_id IS DISTINCT FROM (SELECT s.id
                                                FROM testigo.session s
                                                WHERE s.agent = :worker AND s.state IN ('open', 'draining')) THEN false
        WHEN :unresolved AND EXISTS (SELECT FROM testigo.successor s WHERE s.job_id = j.id) THEN false
        WHEN CAST(:error AS text) IS NOT NULL
             AND CAST(j.error AS json) ->> 'code' IS DISTINCT FROM :error THEN false
$cause        WHEN CAST(:value AS text) IS NOT NULL
             AND CASE WHEN octet_length(j.payload) <= :searched
                      THEN CAST(j.payload AS json) #>> CAST(:path AS text[]) IS DISTINCT FROM :value
                      ELSE true END THEN false
        ELSE true
    END
""".replace("$cause", _CAUSE)

_ALL = """
    SELECT j.id, row_number() OVER (ORDER BY j.id DESC) AS n, $wanted AS wanted
    FROM testigo.job j
    WHERE j.id < CAST(:before AS uuid) AND j.id BETWEEN CAST(:from AS uuid) AND CAST(:to AS uuid)
    ORDER BY j.id DESC
    LIMIT :walk
"""

# One state alone, so that the index gives the ids in their order; its name twice, so that the planner sees
# that the index has it.
_STUCK = """
    SELECT j.id, row_number() OVER (ORDER BY j.id DESC) AS n, $wanted AS wanted
    FROM testigo.job j
    WHERE j.state = (CAST(:states AS testigo.job_state[]))[1]
      AND j.state IN ('permanent_failure', 'blocked_by_quality')
      AND j.id < CAST(:before AS uuid) AND j.id BETWEEN CAST(:from AS uuid) AND CAST(:to AS uuid)
    ORDER BY j.id DESC
    LIMIT :walk
"""

# The index takes a job's cause once, when it fails; to take it from thousands here would cost more than a page may.
_ALIKE = """
    SELECT j.id, row_number() OVER (ORDER BY j.id DESC) AS n, $wanted AS wanted
    FROM testigo.job j
    WHERE j.state = 'permanent_failure'
      AND testigo.cause(testigo.code_of(j.error, j.reason), testigo.message_of(j.error, j.reason)) = :cause
      AND j.id < CAST(:before AS uuid) AND j.id BETWEEN CAST(:from AS uuid) AND CAST(:to AS uuid)
    ORDER BY j.id DESC
    LIMIT :walk
"""

_NAMED = """
    SELECT j.id, row_number() OVER (ORDER BY j.id DESC) AS n, $wanted AS wanted
    FROM unnest(CAST(:ids AS uuid[])) AS named(id)
         CROSS JOIN LATERAL (SELECT * FROM testigo.job j WHERE j.id = named.id OFFSET 0) AS j
    WHERE j.id < CAST(:before AS uuid) AND j.id BETWEEN CAST(:from AS uuid) AND CAST(:to AS uuid)
    ORDER BY j.id DESC
    LIMIT :walk
"""

_SETS = """
    (SELECT j.id
     FROM testigo.job j
     WHERE :leased AND j.lease_id IS NOT NULL
     ORDER BY j.session_id, j.grant_n
     LIMIT :walk + 1)
    UNION ALL
    (SELECT j.id
     FROM testigo.job j
     WHERE :claimable AND j.state IN ('ready', 'checkpointed')
     ORDER BY j.queue, j.priority, j.ready_at, j.id
     LIMIT :walk + 1)
    UNION ALL
    (SELECT j.id
     FROM testigo.job j
     WHERE :due AND j.state IN ('created', 'retry_waiting') AND j.due_at IS NOT NULL
     ORDER BY j.queue, j.due_at, j.priority, j.id
     LIMIT :walk + 1)
    UNION ALL
    (SELECT a.job_id
     FROM testigo.admission a
     WHERE :due
     ORDER BY a.job_id
     LIMIT :walk + 1)
"""

_FEW = """
    SELECT j.id, row_number() OVER (ORDER BY j.id DESC) AS n, $wanted AS wanted
    FROM (SELECT DISTINCT id FROM ($sets) AS each) AS few
         CROSS JOIN LATERAL (SELECT * FROM testigo.job j WHERE j.id = few.id OFFSET 0) AS j
    WHERE j.id < CAST(:before AS uuid) AND j.id BETWEEN CAST(:from AS uuid) AND CAST(:to AS uuid)
    ORDER BY j.id DESC
    LIMIT :walk
"""

_WALKS: Mapping[Source, str] = {
    Source.ALL: _ALL.replace("$wanted", _WANTED),
    Source.STUCK: _STUCK.replace("$wanted", _WANTED),
    Source.ALIKE: _ALIKE.replace("$wanted", _WANTED.replace(_CAUSE, "")),
    Source.NAMED: _NAMED.replace("$wanted", _WANTED),
    Source.FEW: _FEW.replace("$wanted", _WANTED).replace("$sets", _SETS),
}

_ARE_FEW = Statement(
    """
    SELECT count(*) <= :walk AS few
    FROM (SELECT FROM ($sets) AS each LIMIT :walk + 1) AS counted
    """.replace("$sets", _SETS)
)


def over(statement: str) -> Mapping[Source, Statement]:
    """A statement that has `$walk` in it, over each of the walks."""
    return {source: Statement(statement.replace("$walk", walk)) for source, walk in _WALKS.items()}


def source_of(c: Connection, wanted: Filter, walk: int) -> Source:
    """The walk by which what is wanted is found: what is called few is counted first, for it may be many."""
    if wanted.source is not Source.FEW:
        return wanted.source
    (row,) = _ARE_FEW.rows(c, **wanted.sets(), walk=walk)
    return Source.FEW if row.few else Source.ALL
