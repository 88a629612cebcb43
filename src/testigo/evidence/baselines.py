"""What counts as known when only what is new is to count: nothing that nobody accepted (spec D-20, D-21, D-23).

Running twice accepts nothing. A baseline is what a person set for the project, or the newest complete analysis of its
whole source that passed: by the project's gate as it is set now, or by one of its own that lets through no more than
the one asked for.

What a person set is accepted whole. Of the other, what counted there within its limits, or was decided, is accepted;
not what passed for as long as an exemption, or a comment in the source, stands: when that ends, it counts as new, and
until it is decided. Nor is what was said to be fixed, and is found again.
"""

from __future__ import annotations

import json

from sqlalchemy import Connection

from testigo.evidence.model import AnalysisId
from testigo.rules import fields
from testigo.rules.evidence.gate import Policy
from testigo.store.command import single_statement
from testigo.store.sql import Statement

__all__ = ["baseline_of"]

_LOOKS = 1_000
"""Analyses of a project that are looked at, the newest."""

_PASSED = Statement(
    """
    SELECT CAST(p.baseline_id AS text) AS baseline, CAST(a.id AS text) AS id, a.policy
    FROM testigo.project p
         LEFT JOIN LATERAL (
             SELECT a.id, a.n, a.policy, a.state, a.verdict, a.evaluated_at
             FROM testigo.analysis a
             WHERE a.project = p.name AND a.scanner_persisted AND a.scope IS NULL
             ORDER BY a.n DESC
             LIMIT :looks
         ) AS a ON a.state = 'complete' AND a.verdict = 'passed'
                   AND (a.policy IS NOT NULL OR p.policy_at IS NULL OR a.evaluated_at >= p.policy_at)
    WHERE p.name = :project
    ORDER BY a.n DESC
    """
)


@single_statement
def baseline_of(c: Connection, project: str, policy: Policy) -> AnalysisId | None:
    """The baseline of an analysis of the project that this policy judges; None where nothing was accepted yet.

    A project that is not there has none.
    """
    fields.name(project, field="project")
    for row in _PASSED.rows(c, project=project, looks=_LOOKS):
        if row.baseline is not None:
            return AnalysisId(row.baseline)
        if row.id is not None and (row.policy is None or Policy.from_json(json.loads(row.policy)).covers(policy)):
            return AnalysisId(row.id)
    return None
