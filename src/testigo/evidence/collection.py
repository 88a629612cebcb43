"""An analysis as the commands that change it hold it: locked first, and with its gate renewed last (spec P-08, D-17).

Whoever changes anything that the lists or the gate of an analysis tell holds its row, so that two of them never
overlap. Who holds a published analysis locks no project, and who publishes one locks its project; whoever holds a
project locks no analysis but a published one. Jobs come after both. So nobody waits in a circle.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row

from testigo.authority.actions import JobId
from testigo.errors import CollectionChanged, NotFound
from testigo.evidence.model import AnalysisId, AnalysisState
from testigo.rules import fields
from testigo.rules.evidence.coverage import Coverage, Outcome, together
from testigo.rules.evidence.gate import Evaluation, Looked, Policy, Tally, evaluate
from testigo.rules.evidence.review import Decision
from testigo.rules.evidence.severity import Severity
from testigo.store.sql import Statement

__all__ = [
    "Locked",
    "check_revision",
    "evaluation",
    "lock",
    "lock_latest",
    "looked",
    "renew",
    "told_evaluation",
]


@dataclass(frozen=True, slots=True)
class Locked:
    """An analysis under this transaction's lock. `baseline_is_set`: a person set its baseline, for its project."""

    id: AnalysisId
    project: str
    n: int
    state: AnalysisState
    revision: int
    persisted: bool
    analysers: tuple[str, ...]
    scope: tuple[str, ...] | None
    baseline: AnalysisId | None
    baseline_is_set: bool
    publish_job: JobId


_COLUMNS = """
    CAST(a.id AS text) AS id, a.project, a.n, a.state, a.revision, a.scanner_persisted, a.analysers, a.scope,
    CAST(a.baseline_id AS text) AS baseline, CAST(a.publish_job AS text) AS publish_job,
    EXISTS (SELECT FROM testigo.project p WHERE p.name = a.project AND p.baseline_id = a.baseline_id) AS baseline_is_set
"""

_LOCK = Statement(
    "SELECT $columns FROM testigo.analysis a WHERE a.id = CAST(:id AS uuid) FOR UPDATE".replace("$columns", _COLUMNS)
)

_LATEST = Statement(
    """
    SELECT $columns
    FROM testigo.analysis a
    WHERE a.project = :project AND a.scanner_persisted AND a.scope IS NULL
    ORDER BY a.n DESC
    LIMIT 1
    FOR UPDATE
    """.replace("$columns", _COLUMNS)
)

_POLICY = Statement(
    """
    SELECT a.analysers, a.policy AS own, p.policy, p.policy_revision
    FROM testigo.analysis a JOIN testigo.project p ON p.name = a.project
    WHERE a.id = CAST(:id AS uuid)
    """
)

_PARTS = Statement(
    """
    SELECT analyser, files, outcome, in_scope, skipped, failed
    FROM testigo.part
    WHERE analysis_id = CAST(:id AS uuid)
    ORDER BY n
    """
)

# A project has few exemptions, and each leads to one finding at most. Both counts are of one moment.
_TALLIES = Statement(
    """
    SELECT analyser, CAST(severity AS text) AS severity, decision, suppressed, known, findings, false AS exempt
    FROM testigo.summary
    WHERE analysis_id = CAST(:id AS uuid)
    UNION ALL
    SELECT f.analyser, CAST(f.severity AS text), f.decision, f.suppressed, f.known, count(*), true
    FROM testigo.analysis a
         JOIN testigo.exemption e ON e.project = a.project AND e.ended IS NULL
         CROSS JOIN LATERAL (
             SELECT * FROM testigo.finding f
             WHERE f.analysis_id = a.id AND f.analyser = e.analyser AND f.fingerprint = e.fingerprint
             OFFSET 0
         ) AS f
    WHERE a.id = CAST(:id AS uuid) AND (e.expires_at IS NULL OR e.expires_at > now())
    GROUP BY f.analyser, f.severity, f.decision, f.suppressed, f.known
    """
)

_RENEW = Statement(
    """
    UPDATE testigo.analysis
    SET revision = revision + 1, verdict = :verdict, gate = :gate, evaluated_at = now()
    WHERE id = CAST(:id AS uuid)
    RETURNING revision
    """
)


def lock(c: Connection, analysis_id: AnalysisId) -> Locked:
    """Lock an analysis and read it; raises `NotFound`. What its lock guards is read later (spec P-07)."""
    row = _LOCK.row(c, id=analysis_id)
    if row is None:
        raise NotFound(f"There is no analysis {analysis_id}.", field="analysis")
    return _locked(row)


def lock_latest(c: Connection, project: str) -> Locked | None:
    """Lock the newest published analysis of a project's whole source, if there is one; the project is held."""
    row = _LATEST.row(c, project=project)
    return None if row is None else _locked(row)


def check_revision(locked: Locked, expected: int | None) -> None:
    """Refuse what was decided from a list or detail that has changed since (`CollectionChanged`; spec D-19)."""
    if expected is None:
        return
    fields.whole(expected, field="collection_revision", low=1, high=fields.INTEGER_MAX)
    if locked.revision != expected:
        raise CollectionChanged(
            f"The findings of analysis {locked.id} are at revision {locked.revision}, not {expected}.",
            field="collection_revision",
            revision=locked.revision,
        )


def looked(c: Connection, analysis_id: AnalysisId, analysers: tuple[str, ...]) -> dict[str, Looked | None]:
    """What each analyser that was asked for left behind, over all its parts.

    A part without a result counts as files that were not analysed; an analyser without any left nothing.
    """
    parts: dict[str, list[Row[Any]]] = defaultdict(list)
    for row in _PARTS.rows(c, id=analysis_id):
        parts[row.analyser].append(row)
    return {name: _over(parts[name]) for name in sorted({*analysers, *parts})}


def evaluation(c: Connection, analysis_id: AnalysisId) -> tuple[Evaluation, Policy, int | None]:
    """What the gate says of an analysis now, by which policy, and that policy's revision if it is the project's."""
    row = _POLICY.row(c, id=analysis_id)
    if row is None:
        raise NotFound(f"There is no analysis {analysis_id}.", field="analysis")
    policy = Policy.from_json(json.loads(row.own or row.policy))
    left = looked(c, analysis_id, tuple(row.analysers))
    tallies = [_tally(each) for each in _TALLIES.rows(c, id=analysis_id)]
    exempt = {each._replace(exempt=False, findings=0): each for each in tallies if each.exempt}
    rest = [
        each._replace(findings=each.findings - exempt[alike].findings)
        if (alike := each._replace(findings=0)) in exempt
        else each
        for each in tallies
        if not each.exempt
    ]
    return evaluate(policy, left, [*rest, *exempt.values()]), policy, None if row.own else row.policy_revision


def renew(c: Connection, analysis_id: AnalysisId) -> tuple[int, str]:
    """Evaluate the gate of an analysis that is held, keep what it says, raise the revision; returns both."""
    made, _, _ = evaluation(c, analysis_id)
    (row,) = _RENEW.rows(c, id=analysis_id, verdict=str(made.verdict), gate=told_evaluation(made))
    return row.revision, str(made.verdict)


def told_evaluation(made: Evaluation) -> str:
    """An evaluation as JSON, as it is kept."""
    reasons = [reason._asdict() for reason in made.reasons]
    counted: Mapping[Severity, int] = made.counted
    return json.dumps({"reasons": reasons, "counted": counted}, ensure_ascii=False, separators=(",", ":"))


def _over(parts: list[Row[Any]]) -> Looked | None:
    ended = {Outcome(row.outcome) for row in parts if row.outcome is not None}
    if not ended:
        return None
    whole = ended == {Outcome.COMPLETE} and all(row.outcome for row in parts)
    outcome = Outcome.COMPLETE if whole else Outcome.FAILED if ended == {Outcome.FAILED} else Outcome.INCOMPLETE
    return Looked(outcome, together(_coverage(row) for row in parts))


def _coverage(row: Row[Any]) -> Coverage:
    if row.outcome is None:
        return Coverage(row.files, failed_total=row.files)
    return Coverage(row.in_scope, row.skipped, row.failed)


def _tally(row: Row[Any]) -> Tally:
    return Tally(
        row.analyser,
        Severity(row.severity),
        Decision(row.decision),
        row.exempt,
        row.suppressed,
        row.known,
        row.findings,
    )


def _locked(row: Row[Any]) -> Locked:
    return Locked(
        id=AnalysisId(row.id),
        project=row.project,
        n=row.n,
        state=AnalysisState(row.state),
        revision=row.revision,
        persisted=row.scanner_persisted,
        analysers=tuple(row.analysers),
        scope=None if row.scope is None else tuple(row.scope),
        baseline=None if row.baseline is None else AnalysisId(row.baseline),
        baseline_is_set=row.baseline_is_set,
        publish_job=JobId(row.publish_job),
    )
