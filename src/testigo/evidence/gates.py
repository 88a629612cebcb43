"""set_gate and reevaluate: what a project lets through, and what its gate says of an analysis (spec D-21, D-23)."""

from __future__ import annotations

import json
from dataclasses import dataclass

from sqlalchemy import Connection

from testigo.authority.actions import Action
from testigo.authority.receipts import digest_of, exactly_once
from testigo.errors import Invalid, NotFound, RevisionMismatch
from testigo.evidence.collection import evaluation, lock, lock_latest, renew
from testigo.evidence.model import AnalysisId, Gate
from testigo.evidence.projects import hold
from testigo.rules import fields
from testigo.rules.discreet import discreet
from testigo.rules.evidence.gate import Policy, Verdict
from testigo.store.sql import Statement

__all__ = ["GateSet", "Reevaluated", "check_gate", "gate", "reevaluate", "set_gate"]


@dataclass(frozen=True, slots=True)
class GateSet:
    """The receipt of a set gate: its revision, and what it says of the newest published analysis, if there is one."""

    project: str
    revision: int
    analysis_id: AnalysisId | None
    verdict: Verdict | None
    replayed: bool


@dataclass(frozen=True, slots=True)
class Reevaluated:
    """The receipt of an evaluation: what the gate said then, and the revision of the collection."""

    analysis_id: AnalysisId
    verdict: Verdict
    revision: int
    replayed: bool


_SET = Statement(
    """
    UPDATE testigo.project
    SET policy = :policy, policy_revision = policy_revision + 1, policy_by = :actor, policy_at = now(),
        policy_reason = :reason, baseline_id = CAST(:baseline AS uuid)
    WHERE name = :project
    RETURNING policy_revision
    """
)

_PUBLISHED = Statement(
    """
    SELECT 1
    FROM testigo.analysis
    WHERE id = CAST(:id AS uuid) AND project = :project AND scanner_persisted
    """
)

_KEPT = Statement("SELECT verdict, evaluated_at FROM testigo.analysis WHERE id = CAST(:id AS uuid)")


def set_gate(
    c: Connection,
    project: str,
    policy: Policy,
    *,
    expected_revision: int,
    baseline: AnalysisId | None = None,
    reason: str = "",
    action: Action,
) -> GateSet:
    """Set what a project lets through, and the baseline of analyses that begin from now on; made if it is new.

    Revision 0 is that of a gate that nobody set. The newest published analysis is evaluated anew. Raises
    `RevisionMismatch` when somebody set it since it was seen, `NotFound` for a baseline that is no published
    analysis of the project, and `Invalid` for a policy that cannot be.
    """
    fields.name(project, field="project")
    fields.whole(expected_revision, field="expected_revision", low=0, high=fields.INTEGER_MAX)
    if not isinstance(policy, Policy):
        raise Invalid("a policy is needed", field="policy")
    text = json.dumps(Policy.from_json(policy.to_json()).to_json(), separators=(",", ":"))
    if baseline is not None:
        fields.must_be_id(baseline, field="baseline")
    said = discreet(reason).strip()
    digest = digest_of(action, "evidence.set_gate", [project, text, expected_revision, baseline, said])

    def body() -> object:
        held = hold(c, project, make=True)
        check_gate(project, held.policy_revision, expected_revision)
        if baseline is not None and not _PUBLISHED.rows(c, id=baseline, project=project):
            raise NotFound(f"{baseline} is no published analysis of {project!r}.", field="baseline")
        (row,) = _SET.rows(c, project=project, policy=text, actor=action.actor, reason=said, baseline=baseline)
        latest = lock_latest(c, project)
        verdict = None if latest is None else renew(c, latest.id)[1]
        return [row.policy_revision, latest and latest.id, verdict]

    receipt = exactly_once(c, action, digest, body)
    revision, analysis_id, verdict = receipt.answer
    return GateSet(project, revision, analysis_id, None if verdict is None else Verdict(verdict), receipt.replayed)


def check_gate(project: str, revision: int, expected: int) -> None:
    """Refuse what was decided from a gate that somebody set since: `RevisionMismatch`."""
    if revision != expected:
        raise RevisionMismatch(
            f"The gate of {project!r} is at revision {revision}, not {expected}.",
            remedy="Look at the gate as it is now, and set it again: somebody changed it since you saw it.",
            revision=revision,
        )


def reevaluate(c: Connection, analysis_id: AnalysisId, *, action: Action) -> Reevaluated:
    """Have the gate look at a published analysis again, and keep what it says.

    Raises `NotFound`, also for an analysis without published evidence.
    """
    fields.must_be_id(analysis_id, field="analysis")
    digest = digest_of(action, "evidence.reevaluate", [analysis_id])

    def body() -> object:
        if not lock(c, analysis_id).persisted:
            raise NotFound(f"The analysis {analysis_id} has no published evidence.", field="analysis")
        return renew(c, analysis_id)

    receipt = exactly_once(c, action, digest, body)
    revision, verdict = receipt.answer
    return Reevaluated(analysis_id, Verdict(verdict), revision, receipt.replayed)


def gate(c: Connection, analysis_id: AnalysisId) -> Gate:
    """What the gate says of an analysis at this moment; raises `NotFound`.

    It may differ from what was kept when an exemption has expired, or one was granted or a gate set since
    the analysis was the newest.
    """
    fields.must_be_id(analysis_id, field="analysis")
    made, policy, revision = evaluation(c, analysis_id)
    (row,) = _KEPT.rows(c, id=analysis_id)
    kept = None if row.verdict is None else Verdict(row.verdict)
    return Gate(made.verdict, made.reasons, made.counted, policy, revision, kept, row.evaluated_at)
