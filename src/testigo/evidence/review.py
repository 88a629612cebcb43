"""decide, advise and delete_finding: what people decide about findings, one after another (spec D-16 to D-19).

Every command holds the analysis, so two reviewers of one finding come one after the other and the second is refused
by the revision that they saw. Summary and gate are renewed before the receipt, in the same transaction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row

from testigo.authority.actions import Action
from testigo.authority.batch import check_batch
from testigo.authority.receipts import digest_of, exactly_once
from testigo.errors import Invalid, NotFound, RevisionMismatch, StateConflict
from testigo.evidence.collection import check_revision, lock, renew
from testigo.evidence.following import open_jobs
from testigo.evidence.model import AnalysisId, FindingId
from testigo.rules import fields
from testigo.rules.discreet import discreet
from testigo.rules.evidence import review as rules
from testigo.rules.evidence.gate import Verdict
from testigo.rules.evidence.redaction import redact
from testigo.rules.evidence.review import Advice, Decision, Review
from testigo.rules.text import tidy
from testigo.settings import LIMITS
from testigo.store.sql import Statement

__all__ = ["Advised", "Decided", "DecidedRow", "DeletedFinding", "advise", "decide", "decide_many", "delete_finding"]


class DecidedRow(NamedTuple):
    """What became of one finding of a batch: where it stands now, and whether this command put it there.

    One that somebody else decided since it was seen is not `decided`; one that is gone has no `decision`.
    """

    finding_id: FindingId
    decided: bool
    decision: Decision | None
    revision: int


@dataclass(frozen=True, slots=True)
class Decided:
    """The receipt of decisions: a row per finding in the order given, and the gate and collection as they left them."""

    analysis_id: AnalysisId
    findings: tuple[DecidedRow, ...]
    verdict: Verdict
    revision: int
    replayed: bool


@dataclass(frozen=True, slots=True)
class Advised:
    """The receipt of an advice."""

    finding_id: FindingId
    replayed: bool


@dataclass(frozen=True, slots=True)
class DeletedFinding:
    """The receipt of a deletion, with the gate and collection as it left them."""

    finding_id: FindingId
    analysis_id: AnalysisId
    verdict: Verdict
    revision: int
    replayed: bool


_ANALYSIS_OF = Statement(
    "SELECT CAST(analysis_id AS text) AS analysis FROM testigo.finding WHERE id = CAST(:id AS uuid)"
)

_READ = Statement(
    """
    SELECT CAST(f.id AS text) AS id, f.revision, f.decision, coalesce(f.reason, '') AS reason,
           CAST(f.severity AS text) AS severity, f.analyser, f.suppressed, f.known
    FROM unnest(CAST(:ids AS uuid[])) AS given(id)
         CROSS JOIN LATERAL (SELECT * FROM testigo.finding f WHERE f.id = given.id OFFSET 0) AS f
    WHERE f.analysis_id = CAST(:analysis AS uuid)
    """
)

_WRITE = Statement(
    """
    WITH given AS MATERIALIZED (
        SELECT * FROM unnest(CAST(:ids AS uuid[]), CAST(:revisions AS integer[])) AS g(id, revision)
    ),
    written AS (
        UPDATE testigo.finding f
        SET decision = :decision, reason = :reason, revision = g.revision, decided_by = :actor, decided_at = now()
        FROM given g
        WHERE f.id = ANY (ARRAY[g.id])
        RETURNING f.id, f.revision
    )
    INSERT INTO testigo.decision (finding_id, revision, decision, reason, actor, action, at)
    SELECT id, revision, :decision, :reason, :actor, :action, now()
    FROM written
    """
)

# Each kind of findings becomes more or fewer, so that no row is written twice.
_MORE = Statement(
    """
    INSERT INTO testigo.summary AS s (analysis_id, analyser, severity, decision, suppressed, known, findings)
    SELECT CAST(:analysis AS uuid), m.analyser, m.severity, m.decision, m.suppressed, m.known, m.findings
    FROM unnest(CAST(:analysers AS text[]), CAST(:severities AS testigo.severity[]), CAST(:decisions AS text[]),
                CAST(:suppressed AS boolean[]), CAST(:known AS boolean[]), CAST(:findings AS integer[]))
             AS m(analyser, severity, decision, suppressed, known, findings)
    ON CONFLICT (analysis_id, analyser, severity, decision, suppressed, known) DO UPDATE
        SET findings = s.findings + excluded.findings
    """
)

_FEWER = Statement(
    """
    UPDATE testigo.summary s
    SET findings = s.findings - m.findings
    FROM unnest(CAST(:analysers AS text[]), CAST(:severities AS testigo.severity[]), CAST(:decisions AS text[]),
                CAST(:suppressed AS boolean[]), CAST(:known AS boolean[]), CAST(:findings AS integer[]))
             AS m(analyser, severity, decision, suppressed, known, findings)
    WHERE s.analysis_id = CAST(:analysis AS uuid)
      AND (s.analyser, s.severity, s.decision, s.suppressed, s.known)
          = (m.analyser, m.severity, m.decision, m.suppressed, m.known)
    """
)

_ADVISE = Statement(
    """
    UPDATE testigo.finding
    SET advisor = :advisor, advice = :advice, advice_because = :because,
        advised_at = CASE WHEN CAST(:advisor AS text) IS NULL THEN NULL ELSE now() END
    WHERE id = CAST(:id AS uuid)
    RETURNING 1
    """
)

_DELETE = Statement(
    """
    WITH history AS (
        DELETE FROM testigo.decision WHERE finding_id = CAST(:id AS uuid)
    ),
    gone AS (
        DELETE FROM testigo.finding WHERE id = CAST(:id AS uuid) RETURNING analysis_id
    )
    UPDATE testigo.analysis a
    SET findings = a.findings - 1
    FROM gone
    WHERE a.id = gone.analysis_id
    """
)


def decide(
    c: Connection,
    finding_id: FindingId,
    decision: Decision,
    *,
    expected_revision: int,
    reason: str = "",
    collection_revision: int | None = None,
    action: Action,
) -> Decided:
    """Decide about a finding as it was seen, and renew the summary and the gate of its analysis.

    Raises `RevisionMismatch` when somebody decided since, its facts telling what; `CollectionChanged` when the
    collection is not at `collection_revision` any more; `NotFound`; and `Invalid` for an exclusion without a reason.
    """
    fields.must_be_id(finding_id, field="finding")
    _check(decision, [expected_revision], reason)
    digest = digest_of(
        action, "evidence.decide", [finding_id, decision, expected_revision, reason, collection_revision]
    )

    def body() -> list[object]:
        analysis_id = _analysis_of(c, finding_id)
        check_revision(lock(c, analysis_id), collection_revision)
        rows, refusals = _decide(c, analysis_id, {finding_id: expected_revision}, decision, reason, action)
        if finding_id in refusals:
            raise refusals[finding_id]
        return [analysis_id, rows, *renew(c, analysis_id)]

    return _decided(exactly_once(c, action, digest, body))


def decide_many(
    c: Connection,
    analysis_id: AnalysisId,
    expected: Mapping[FindingId, int],
    decision: Decision,
    *,
    reason: str = "",
    collection_revision: int | None = None,
    action: Action,
) -> Decided:
    """Decide the same about several findings of one analysis, each at the revision at which it was seen.

    One that somebody decided since, or that is gone, is left alone and told in its row; the others are decided.
    Raises `CollectionChanged`, `NotFound` for an unknown analysis, and `Invalid` as `decide` does.
    """
    fields.must_be_id(analysis_id, field="analysis")
    ids = list(expected)
    check_batch(ids, "findings")
    fields.sequence(ids, field="findings", most=LIMITS.page_max)
    _check(decision, list(expected.values()), reason)
    content = [analysis_id, sorted(expected.items()), decision, reason, collection_revision]
    digest = digest_of(action, "evidence.decide_many", content)

    def body() -> list[object]:
        check_revision(lock(c, analysis_id), collection_revision)
        rows, _ = _decide(c, analysis_id, expected, decision, reason, action)
        return [analysis_id, rows, *renew(c, analysis_id)]

    return _decided(exactly_once(c, action, digest, body))


def advise(c: Connection, finding_id: FindingId, advice: Advice | None, *, action: Action) -> Advised:
    """Keep what an advisor thinks of a finding, or nothing any more: no decision, revision or gate moves (spec D-19).

    Raises `NotFound`, and `Invalid` for an advice that names nobody or no decision.
    """
    fields.must_be_id(finding_id, field="finding")
    if advice is not None:
        fields.name(advice.advisor, field="advice.advisor")
        fields.member(advice.suggests, Decision, field="advice.suggests")
    told = None if advice is None else [advice.advisor, advice.suggests, advice.because]
    digest = digest_of(action, "evidence.advise", [finding_id, told])

    def body() -> None:
        advised = _ADVISE.rows(
            c,
            id=finding_id,
            advisor=None if advice is None else advice.advisor,
            advice=None if advice is None else str(advice.suggests),
            because=None if advice is None else discreet(advice.because),
        )
        if not advised:
            raise _unknown(finding_id)

    return Advised(finding_id, exactly_once(c, action, digest, body).replayed)


def delete_finding(
    c: Connection, finding_id: FindingId, *, expected_revision: int, reason: str, action: Action
) -> DeletedFinding:
    """Remove a finding and what was decided about it; what the project knows of its fingerprint stays (spec D-18).

    Raises `RevisionMismatch` as `decide` does, `StateConflict` while a job of the analysis has not ended, `NotFound`,
    and `Invalid` without a reason.
    """
    fields.must_be_id(finding_id, field="finding")
    fields.whole(expected_revision, field="expected_revision", low=1, high=fields.INTEGER_MAX)
    if not tidy(reason).strip():
        raise Invalid("Say why: it cannot be brought back.", field="reason")
    digest = digest_of(action, "evidence.delete_finding", [finding_id, expected_revision, reason])

    def body() -> list[object]:
        analysis_id = _analysis_of(c, finding_id)
        lock(c, analysis_id)
        row = _READ.row(c, ids=[finding_id], analysis=analysis_id)
        if row is None:
            raise _unknown(finding_id)
        rules.decide(_review(row), expected_revision, Decision.OPEN)  # it refuses what was not seen as it is
        if open_jobs(c, analysis_id):
            raise StateConflict(
                f"Jobs of the analysis {analysis_id} have not ended.",
                field="finding",
                remedy="Delete it when they have, or cancel them.",
            )
        _DELETE.rows(c, id=finding_id)
        _move(c, analysis_id, Counter({(row.analyser, row.severity, row.decision, row.suppressed, row.known): -1}))
        return [analysis_id, *renew(c, analysis_id)]

    receipt = exactly_once(c, action, digest, body)
    analysis_id, revision, verdict = receipt.answer
    return DeletedFinding(finding_id, AnalysisId(analysis_id), Verdict(verdict), revision, receipt.replayed)


def _decide(
    c: Connection,
    analysis_id: AnalysisId,
    expected: Mapping[FindingId, int],
    decision: Decision,
    reason: str,
    action: Action,
) -> tuple[list[DecidedRow], dict[FindingId, RevisionMismatch | NotFound]]:
    """Decide about what is as it was seen, under the analysis's lock; what is not is told and refused."""
    found = {FindingId(row.id): row for row in _READ.rows(c, ids=list(expected), analysis=analysis_id)}
    said = redact(reason)
    refusals: dict[FindingId, RevisionMismatch | NotFound] = {}
    made: dict[FindingId, Review] = {}
    moves: Counter[tuple[str, str, str, bool, bool]] = Counter()
    for finding_id, revision in expected.items():
        row = found.get(finding_id)
        if row is None:
            refusals[finding_id] = _unknown(finding_id)
            continue
        try:
            made[finding_id] = rules.decide(_review(row), revision, decision, said)
        except RevisionMismatch as refusal:
            refusals[finding_id] = refusal
            continue
        moves[row.analyser, row.severity, row.decision, row.suppressed, row.known] -= 1
        moves[row.analyser, row.severity, str(decision), row.suppressed, row.known] += 1
    if made:
        _WRITE.rows(
            c,
            ids=sorted(made),
            revisions=[made[finding_id].revision for finding_id in sorted(made)],
            decision=str(decision),
            reason=next(iter(made.values())).reason,
            actor=action.actor,
            action=action.id,
        )
        _move(c, analysis_id, moves)
    stands = {finding_id: _review(row) for finding_id, row in found.items()} | made
    return [_row(finding_id, stands.get(finding_id), finding_id in made) for finding_id in expected], refusals


def _row(finding_id: FindingId, review: Review | None, decided: bool) -> DecidedRow:
    if review is None:
        return DecidedRow(finding_id, decided, None, 0)
    return DecidedRow(finding_id, decided, review.decision, review.revision)


def _move(c: Connection, analysis_id: AnalysisId, moves: Mapping[tuple[str, str, str, bool, bool], int]) -> None:
    """Add to the summary what became more, and take from it what became fewer."""
    for statement, sign in ((_MORE, 1), (_FEWER, -1)):
        alike = sorted(each for each, findings in moves.items() if findings * sign > 0)
        if alike:
            statement.rows(
                c,
                analysis=analysis_id,
                analysers=[each[0] for each in alike],
                severities=[each[1] for each in alike],
                decisions=[each[2] for each in alike],
                suppressed=[each[3] for each in alike],
                known=[each[4] for each in alike],
                findings=[moves[each] * sign for each in alike],
            )


def _analysis_of(c: Connection, finding_id: FindingId) -> AnalysisId:
    """The analysis of a finding, which never changes: it is locked before the finding is looked at."""
    row = _ANALYSIS_OF.row(c, id=finding_id)
    if row is None:
        raise _unknown(finding_id)
    return AnalysisId(row.analysis)


def _check(decision: Decision, revisions: Sequence[int], reason: str) -> None:
    """Refuse by the rules what could be of no finding, before anything is locked."""
    for revision in revisions:
        fields.whole(revision, field="expected_revision", low=1, high=fields.INTEGER_MAX)
        rules.decide(Review(revision=revision), revision, decision, reason)


def _decided(receipt: Any) -> Decided:
    analysis_id, rows, revision, verdict = receipt.answer
    findings = tuple(
        DecidedRow(FindingId(finding_id), decided, None if word is None else Decision(word), at)
        for finding_id, decided, word, at in rows
    )
    return Decided(AnalysisId(analysis_id), findings, Verdict(verdict), revision, receipt.replayed)


def _review(row: Row[Any]) -> Review:
    return Review(Decision(row.decision), row.reason, row.revision)


def _unknown(finding_id: FindingId) -> NotFound:
    return NotFound(f"There is no finding {finding_id}.", field="finding")
