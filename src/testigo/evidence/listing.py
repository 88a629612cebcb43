"""Analyses as they stand: in lists, and one with its parts and the summary of its findings."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row

from testigo.authority.actions import JobId
from testigo.authority.read import Cursor, Page
from testigo.authority.read.pages import FROM_NEWEST, Listing, an_id, check_limit
from testigo.errors import NotFound
from testigo.evidence.gates import gate
from testigo.evidence.model import AnalysisId, AnalysisState, AnalysisView, Gate, PartView
from testigo.rules import fields
from testigo.rules.evidence.coverage import Coverage, Outcome
from testigo.rules.evidence.gate import Verdict
from testigo.rules.evidence.review import DECISIONS, Decision
from testigo.rules.evidence.severity import SEVERITIES, Severity
from testigo.settings import LIMITS
from testigo.store.command import single_statement
from testigo.store.sql import Statement

__all__ = ["Alike", "AnalysisDetail", "analyses", "analysis"]

_FROM_NEWEST_OF_PROJECT = (str(fields.INTEGER_MAX),)

_BEFORE = 20
"""Earlier analyses of a project whose analysers are compared: one that was given up is forgotten after so many."""


class Alike(NamedTuple):
    """How many findings of an analysis are alike in what its summary tells."""

    analyser: str
    severity: Severity
    decision: Decision
    suppressed: bool
    known: bool
    findings: int


@dataclass(frozen=True, slots=True)
class AnalysisDetail:
    """An analysis, its parts, the summary of its findings, and what the gate says of it now.

    `not_asked` are analysers that the newest 20 analyses of the whole source before it asked for and this one, if it is
    of the whole, did not: of what they would find it says nothing, and neither does its gate.
    """

    view: AnalysisView
    parts: tuple[PartView, ...]
    summary: tuple[Alike, ...]
    gate: Gate
    not_asked: tuple[str, ...] = ()


_VIEWS = """
    SELECT a.*, CAST(a.id AS text) AS name, CAST(a.publish_job AS text) AS job, CAST(a.baseline_id AS text) AS baseline,
           CAST(a.supersedes AS text) AS old,
           (SELECT CAST(later.id AS text) FROM testigo.analysis later WHERE later.supersedes = a.id) AS successor,
           s.counts, s.counting
    FROM ($chosen) AS a
         CROSS JOIN LATERAL (
             SELECT json_object_agg(t.severity, t.findings) AS counts,
                    json_object_agg(t.severity, t.counting) AS counting
             FROM (SELECT severity, sum(findings) AS findings,
                          coalesce(sum(findings) FILTER (WHERE decision = ANY (CAST(:counting AS text[]))), 0)
                              AS counting
                   FROM testigo.summary
                   WHERE analysis_id = a.id
                   GROUP BY severity) AS t
         ) AS s
    ORDER BY a.id DESC
"""

_ONE = Statement(_VIEWS.replace("$chosen", "SELECT * FROM testigo.analysis WHERE id = CAST(:id AS uuid)"))

# There are as many as people scanned, so a page looks at a bounded number of them and no filter is needed.
_ALL = Statement(
    _VIEWS.replace(
        "$chosen",
        "SELECT * FROM testigo.analysis WHERE id < CAST(:before AS uuid) ORDER BY id DESC LIMIT :limit + 1",
    )
)

_OF_PROJECT = Statement(
    _VIEWS.replace(
        "$chosen",
        "SELECT * FROM testigo.analysis WHERE project = :project AND n < :before ORDER BY n DESC LIMIT :limit + 1",
    ).replace("ORDER BY a.id DESC", "ORDER BY a.n DESC")
)

_PARTS = Statement(
    """
    SELECT *, CAST(job_id AS text) AS job, CAST(run AS text) AS run_id
    FROM testigo.part
    WHERE analysis_id = CAST(:id AS uuid)
    ORDER BY n
    """
)

_SUMMARY = Statement(
    """
    SELECT analyser, CAST(severity AS text) AS word, decision, suppressed, known, findings
    FROM testigo.summary
    WHERE analysis_id = CAST(:id AS uuid) AND findings > 0
    ORDER BY severity, analyser, decision, suppressed, known
    LIMIT :limit
    """
)

_NOT_ASKED = Statement(
    """
    SELECT DISTINCT name
    FROM testigo.analysis a
         CROSS JOIN LATERAL (
             SELECT b.analysers
             FROM testigo.analysis b
             WHERE b.project = a.project AND b.scanner_persisted AND b.scope IS NULL AND b.n < a.n
             ORDER BY b.n DESC
             LIMIT :looks
         ) AS before
         CROSS JOIN LATERAL unnest(before.analysers) AS name
    WHERE a.id = CAST(:id AS uuid) AND a.scope IS NULL AND name <> ALL (a.analysers)
    ORDER BY name
    """
)

_COUNTING = [str(row.decision) for row in DECISIONS if row.counts]


def analysis(c: Connection, analysis_id: AnalysisId) -> AnalysisDetail:
    """An analysis as it stands, with its coverage, its summary and its gate; raises `NotFound`."""
    fields.must_be_id(analysis_id, field="analysis")
    row = _ONE.row(c, id=analysis_id, counting=_COUNTING)
    if row is None:
        raise NotFound(f"There is no analysis {analysis_id}.", field="analysis")
    parts = tuple(_part(each) for each in _PARTS.rows(c, id=analysis_id))
    summary = tuple(_alike(each) for each in _SUMMARY.rows(c, id=analysis_id, limit=LIMITS.page_max))
    not_asked = tuple(each.name for each in _NOT_ASKED.rows(c, id=analysis_id, looks=_BEFORE))
    return AnalysisDetail(_view(row), parts, summary, gate(c, analysis_id), not_asked)


@single_statement
def analyses(
    c: Connection, *, project: str | None = None, before: Cursor | None = None, limit: int = 100
) -> Page[AnalysisView]:
    """Analyses from the newest: all, or those of a project."""
    check_limit(limit)
    if project is None:
        listing = Listing("analyses", (None,), (an_id,))
        (start,) = listing.position(before, FROM_NEWEST)
        rows = _ALL.rows(c, before=start, limit=limit, counting=_COUNTING)
        return listing.page([(_view(row), (row.name,)) for row in rows], limit)
    fields.name(project, field="project")
    listing = Listing("analyses", (project,), (_a_number,))
    (start,) = listing.position(before, _FROM_NEWEST_OF_PROJECT)
    rows = _OF_PROJECT.rows(c, project=project, before=int(start), limit=limit, counting=_COUNTING)
    return listing.page([(_view(row), (str(row.n),)) for row in rows], limit)


def _view(row: Row[Any]) -> AnalysisView:
    counts, counting = row.counts or {}, row.counting or {}
    return AnalysisView(
        id=AnalysisId(row.name),
        project=row.project,
        n=row.n,
        source=row.source,
        state=AnalysisState(row.state),
        revision=row.revision,
        analysers=tuple(row.analysers),
        actor=row.actor,
        began_at=row.began_at,
        ended_at=row.ended_at,
        reason=row.reason,
        persisted=row.scanner_persisted,
        publish_job=JobId(row.job),
        baseline=None if row.baseline is None else AnalysisId(row.baseline),
        scope=None if row.scope is None else tuple(row.scope),
        left_out=None if row.left_out is None else json.loads(row.left_out),
        supersedes=None if row.old is None else AnalysisId(row.old),
        successor=None if row.successor is None else AnalysisId(row.successor),
        findings=row.findings,
        artifacts=row.artifacts,
        counts={severity: counts.get(severity, 0) for severity in SEVERITIES},
        counting={severity: counting.get(severity, 0) for severity in SEVERITIES},
        verdict=None if row.verdict is None else Verdict(row.verdict),
        evaluated_at=row.evaluated_at,
    )


def _part(row: Row[Any]) -> PartView:
    return PartView(
        n=row.n,
        analyser=row.analyser,
        job_id=JobId(row.job),
        files=row.files,
        analyser_version=row.analyser_version,
        run=row.run_id,
        request=row.request,
        result=row.result,
        artifact_manifest=row.artifact_manifest,
        provenance={} if row.provenance is None else json.loads(row.provenance),
        outcome=None if row.outcome is None else Outcome(row.outcome),
        reasons=tuple(row.reasons or ()),
        coverage=None if row.coverage is None else Coverage.from_json(json.loads(row.coverage)),
        findings=row.findings,
        started_at=row.started_at,
        ended_at=row.ended_at,
    )


def _alike(row: Row[Any]) -> Alike:
    return Alike(row.analyser, Severity(row.word), Decision(row.decision), row.suppressed, row.known, row.findings)


def _a_number(part: str) -> None:
    fields.whole(int(part), field="cursor", low=1, high=fields.INTEGER_MAX)
