"""How a scan stands, read from the database while it goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection

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
    """Every analyser's parts, in the order of the plan, and the job that publishes."""

    analysers: Mapping[str, Tally]
    publish: State

    @property
    def ended(self) -> bool:
        """Whether nothing more happens."""
        return self.publish in TERMINAL


_STANDING = Statement(
    """
    SELECT p.analyser, count(*) AS parts,
           count(*) FILTER (WHERE j.state IN ('leased', 'running', 'cancelling')) AS running,
           count(*) FILTER (WHERE j.state = ANY(CAST(CAST(:terminal AS text[]) AS testigo.job_state[]))) AS ended,
           sum(p.files) AS files,
           coalesce(sum(p.files) FILTER (WHERE j.state = ANY(CAST(CAST(:terminal AS text[]) AS testigo.job_state[]))),
                    0) AS files_ended,
           (SELECT CAST(l.state AS text)
            FROM testigo.analysis a
                 JOIN testigo.job l ON l.id = a.publish_job
            WHERE a.id = CAST(:id AS uuid)) AS publish
    FROM testigo.part p
         CROSS JOIN LATERAL (SELECT j.state FROM testigo.job j WHERE j.id = p.job_id OFFSET 0) AS j
    WHERE p.analysis_id = CAST(:id AS uuid)
    GROUP BY p.analyser
    ORDER BY min(p.n)
    """
)


@single_statement
def standing(c: Connection, analysis_id: AnalysisId) -> Standing:
    """How the analysis stands, which has parts: at most 1,000."""
    fields.must_be_id(analysis_id, field="analysis")
    rows = _STANDING.rows(c, id=analysis_id, terminal=[str(state) for state in TERMINAL])
    return Standing(
        {row.analyser: Tally(row.parts, row.running, row.ended, row.files, row.files_ended) for row in rows},
        State(rows[0].publish),
    )
