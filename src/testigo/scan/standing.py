"""How a scan stands, read from the database while it goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection

from testigo.errors import NotFound
from testigo.evidence.model import AnalysisId
from testigo.rules import fields
from testigo.rules.states import TERMINAL, State
from testigo.store.command import single_statement
from testigo.store.sql import Statement

__all__ = ["Standing", "Tally", "standing"]


@dataclass(frozen=True, slots=True)
class Tally:
    """How many parts of one analyser there are, how many run, how many have ended, and how many files they have."""

    parts: int
    running: int
    ended: int
    files: int
    files_ended: int


@dataclass(frozen=True, slots=True)
class Standing:
    """Every analyser's parts, in the order of the plan, and the job that publishes; each by its last successor.

    `unserved` is the queue of that one, as long as no worker serves it that has its kind.
    """

    analysers: Mapping[str, Tally]
    publish: State
    unserved: str | None = None

    @property
    def ended(self) -> bool:
        """Whether nothing more happens."""
        return self.publish in TERMINAL


_STANDING = Statement(
    """
    WITH RECURSIVE chain AS (
        SELECT n, analyser, files, job_id AS head
        FROM testigo.part
        WHERE analysis_id = CAST(:id AS uuid)
        UNION ALL
        SELECT NULL, NULL, NULL, publish_job
        FROM testigo.analysis
        WHERE id = CAST(:id AS uuid)
        UNION ALL
        SELECT c.n, c.analyser, c.files, s.successor_id
        FROM chain c JOIN testigo.successor s ON s.job_id = c.head
    ),
    last AS (
        SELECT c.n, c.analyser, c.files, CAST(coalesce(j.state, t.state, 'cancelled') AS text) AS state, j.queue, j.kind
        FROM chain c
             LEFT JOIN LATERAL (SELECT * FROM testigo.job j WHERE j.id = c.head OFFSET 0) AS j ON true
             LEFT JOIN LATERAL (
                 SELECT t.state FROM testigo.tombstone t WHERE t.job_id = c.head AND t.what = 'pruned' OFFSET 0
             ) AS t ON true
        WHERE NOT EXISTS (SELECT FROM testigo.successor s WHERE s.job_id = c.head)
    )
    SELECT p.state AS publish, a.*,
           CASE WHEN NOT EXISTS (SELECT
                                 FROM testigo.session s JOIN testigo.session_profile f ON f.session_id = s.id
                                 WHERE s.state = 'open' AND p.queue = ANY (f.queues) AND p.kind = ANY (f.kinds))
                THEN p.queue END AS unserved
    FROM (SELECT state, queue, kind FROM last WHERE n IS NULL) AS p
         LEFT JOIN (
             SELECT analyser, count(*) AS parts,
                    count(*) FILTER (WHERE state IN ('leased', 'running', 'cancelling')) AS running,
                    count(*) FILTER (WHERE state = ANY (CAST(:terminal AS text[]))) AS ended, sum(files) AS files,
                    coalesce(sum(files) FILTER (WHERE state = ANY (CAST(:terminal AS text[]))), 0) AS files_ended,
                    min(n) AS first
             FROM last
             WHERE n IS NOT NULL
             GROUP BY analyser
         ) AS a ON true
    ORDER BY a.first
    """
)


@single_statement
def standing(c: Connection, analysis_id: AnalysisId) -> Standing:
    """How the analysis stands, which has at most 1,000 parts, and perhaps none; raises `NotFound`."""
    fields.must_be_id(analysis_id, field="analysis")
    rows = _STANDING.rows(c, id=analysis_id, terminal=[str(state) for state in TERMINAL])
    if not rows:
        raise NotFound(f"There is no analysis {analysis_id}.", field="analysis")
    tallies = {
        row.analyser: Tally(row.parts, row.running, row.ended, row.files, row.files_ended)
        for row in rows
        if row.analyser is not None
    }
    return Standing(tallies, State(rows[0].publish), rows[0].unserved)
