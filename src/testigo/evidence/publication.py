"""publish: evidence is inserted once, whole, in one transaction (spec D-05 to D-11, P-30).

The analysis is locked, then every page is taken from where the caller has it at hand, redacted once more and
inserted; then come artifacts, coverage, occurrences and the gate. The job's row is locked last: that is the
protected boundary, before which a lost lease or a cancel undoes everything and after which neither does anything.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from sqlalchemy import Connection

from testigo.authority.actions import Action, new_id
from testigo.authority.jobs import lock as lock_jobs
from testigo.authority.receipts import digest_of, exactly_once
from testigo.errors import Invalid, LeaseLost, ManifestInvalid, ScanEvidenceConflict, StateConflict
from testigo.evidence.collection import Locked, lock, looked, renew
from testigo.evidence.following import must_publish
from testigo.evidence.insertion import Counts, insert_pages
from testigo.evidence.model import AnalysisId, AnalysisState, Owner, SealedResult
from testigo.evidence.occurrences import advance_occurrences
from testigo.evidence.projects import hold
from testigo.rules import fields
from testigo.rules.evidence.gate import Policy, Verdict, evaluate
from testigo.rules.evidence.review import NEW
from testigo.rules.states import LEASED, State
from testigo.settings import LIMITS
from testigo.store.command import single_statement
from testigo.store.sql import Statement

__all__ = ["Acknowledged", "Persisted", "Published", "persisted", "publish"]


class Acknowledged(NamedTuple):
    """What an ACK names: exactly that run, request and result (spec D-09)."""

    run: str
    request: str
    result: str


@dataclass(frozen=True, slots=True)
class Persisted:
    """What is durably published of an analysis, and the results that its analysers may forget."""

    analysis_id: AnalysisId
    state: AnalysisState
    verdict: Verdict
    findings: int
    artifacts: int
    results: tuple[Acknowledged, ...]


@dataclass(frozen=True, slots=True)
class Published:
    """The receipt of a publication; `repeated` findings were said by more than one part, and are kept once."""

    analysis_id: AnalysisId
    state: AnalysisState
    verdict: Verdict
    revision: int
    findings: int
    repeated: int
    artifacts: int
    replayed: bool


_EVIDENCE = Statement(
    """
    SELECT EXISTS (SELECT FROM testigo.finding WHERE analysis_id = CAST(:id AS uuid)) AS findings,
           EXISTS (SELECT FROM testigo.artifact WHERE analysis_id = CAST(:id AS uuid)) AS artifacts
    """
)

_PARTS = Statement("SELECT n, analyser, files FROM testigo.part WHERE analysis_id = CAST(:id AS uuid) ORDER BY n")

_SUMMARISE = Statement(
    """
    INSERT INTO testigo.summary (analysis_id, analyser, severity, decision, suppressed, known, findings)
    SELECT CAST(:analysis AS uuid), s.analyser, s.severity, :decision, s.suppressed, s.known, s.findings
    FROM unnest(CAST(:analysers AS text[]), CAST(:severities AS testigo.severity[]), CAST(:suppressed AS boolean[]),
                CAST(:known AS boolean[]), CAST(:findings AS integer[]))
             AS s(analyser, severity, suppressed, known, findings)
    """
)

_PART = Statement(
    """
    UPDATE testigo.part
    SET analyser_version = :analyser_version, run = CAST(:run AS uuid), request = :request, result = :result,
        artifact_manifest = :artifact_manifest, provenance = :provenance, outcome = :outcome,
        reasons = CAST(:reasons AS text[]), in_scope = :in_scope, skipped = :skipped, failed = :failed,
        coverage = :coverage, findings = :findings, started_at = :started_at, ended_at = :ended_at
    WHERE analysis_id = CAST(:analysis AS uuid) AND n = :part
    """
)

_MISSING = Statement(
    """
    UPDATE testigo.part p
    SET reasons = ARRAY[m.why]
    FROM unnest(CAST(:parts AS integer[]), CAST(:whys AS text[])) AS m(n, why)
    WHERE p.analysis_id = CAST(:analysis AS uuid) AND p.n = m.n
    """
)

_ARTIFACTS = Statement(
    """
    INSERT INTO testigo.artifact (id, analysis_id, part, bytes, name, media_type, digest, raw_digest, attestation,
                                  published_at)
    SELECT a.id, CAST(:analysis AS uuid), :part, a.bytes, a.name, a.media_type, a.digest, a.raw_digest, a.attestation,
           now()
    FROM unnest(CAST(:ids AS uuid[]), CAST(:bytes AS bigint[]), CAST(:names AS text[]), CAST(:media_types AS text[]),
                CAST(:digests AS text[]), CAST(:raw_digests AS text[]), CAST(:attestations AS text[]))
             AS a(id, bytes, name, media_type, digest, raw_digest, attestation)
    """
)

_PUBLISH = Statement(
    """
    UPDATE testigo.analysis
    SET state = :state, scanner_persisted = true, findings = :findings, artifacts = :artifacts, ended_at = now()
    WHERE id = CAST(:analysis AS uuid)
    """
)

_SESSION = Statement(
    "SELECT 1 FROM testigo.session WHERE id = CAST(:session AS uuid) AND state IN ('open', 'draining')"
)

_PERSISTED = Statement(
    """
    SELECT a.state, a.verdict, a.findings, a.artifacts, CAST(p.run AS text) AS run, p.request, p.result
    FROM testigo.analysis a
         LEFT JOIN testigo.part p ON p.analysis_id = a.id AND p.outcome IS NOT NULL
    WHERE a.id = CAST(:id AS uuid) AND a.scanner_persisted
    ORDER BY p.n
    """
)


def publish(
    c: Connection,
    analysis_id: AnalysisId,
    results: Sequence[SealedResult],
    *,
    missing: Mapping[int, str] = MappingProxyType({}),
    owner: Owner,
    action: Action,
) -> Published:
    """Publish the results of an analysis's parts as its evidence, whole or not at all; parts may be missing.

    `missing` says of such parts, by their numbers, why: that is kept with them.

    Pages are read once for each try, while the transaction is open, by a thread of their own, and no more than two
    are held in memory. An analysis is
    complete when every analyser that was asked for looked at everything; then it moves the project's occurrences.
    Raises `WrongPublisher` for a job that is not the analysis's own, `ScanEvidenceConflict` when there is evidence
    already, `StateConflict` for an analysis or job that was ended or is to be cancelled, `LeaseLost` for a run that
    does not own the job any more, `PageInvalid` and `ManifestInvalid` for a result that is not what it says, and what
    the pages raise. Then nothing was published.
    """
    fields.must_be_id(analysis_id, field="analysis")
    fields.fence(*owner.held, field="owner.held")
    fields.must_be_id(owner.session_id, field="owner.session_id")
    fields.sequence(results, field="results", most=LIMITS.parents_max)
    named = [[one.part, one.analyser, one.run, one.request, one.result, one.artifact_manifest] for one in results]
    digest = digest_of(action, "evidence.publish", [analysis_id, named, sorted(missing.items())])
    receipt = exactly_once(c, action, digest, lambda: _publish(c, analysis_id, results, missing, owner, action))
    state, verdict, revision, findings, repeated, artifacts = receipt.answer
    return Published(
        analysis_id,
        AnalysisState(state),
        Verdict(verdict),
        revision,
        findings,
        repeated,
        artifacts,
        receipt.replayed,
    )


@single_statement
def persisted(c: Connection, analysis_id: AnalysisId) -> Persisted | None:
    """What is durably published of an analysis; None while nothing is.

    Whoever does not know whether its publication was committed asks here before it cleans up (spec D-11).
    """
    fields.must_be_id(analysis_id, field="analysis")
    rows = _PERSISTED.rows(c, id=analysis_id)
    if not rows:
        return None
    results = tuple(Acknowledged(row.run, row.request, row.result) for row in rows if row.run is not None)
    first = rows[0]
    return Persisted(
        analysis_id,
        AnalysisState(first.state),
        Verdict(first.verdict),
        first.findings,
        first.artifacts,
        results,
    )


def _publish(
    c: Connection,
    analysis_id: AnalysisId,
    results: Sequence[SealedResult],
    missing: Mapping[int, str],
    owner: Owner,
    action: Action,
) -> list[object]:
    locked = lock(c, analysis_id)
    must_publish(c, analysis_id, locked.publish_job, owner.held.job_id)
    _check_unpublished(c, locked)
    _check_parts(c, locked, results)
    counts: Counts = Counter()
    given = 0
    for result in results:
        given += insert_pages(c, locked, result, counts)
        _keep_part(c, locked, result)
    if missing:
        _MISSING.rows(c, analysis=locked.id, parts=list(missing), whys=list(missing.values()))
    found = counts.total()
    _summarise(c, locked, counts)
    left = looked(c, analysis_id, locked.analysers)
    whole = evaluate(Policy(), left, ()).verdict is not Verdict.INCOMPLETE
    # From here on whoever grants an exemption or sets the gate waits, or was seen.
    project = hold(c, locked.project, make=False)
    if whole and locked.n > project.moved_by:
        advance_occurrences(c, locked, tuple(left), action.id)
    state = AnalysisState.COMPLETE if whole else AnalysisState.INCOMPLETE
    artifacts = sum(len(result.artifacts) for result in results)
    _PUBLISH.rows(c, analysis=analysis_id, state=str(state), findings=found, artifacts=artifacts)
    revision, verdict = renew(c, analysis_id)
    _cross_boundary(c, owner)
    return [str(state), verdict, revision, found, given - found, artifacts]


def _check_unpublished(c: Connection, locked: Locked) -> None:
    """Read in a later statement than the one that took the lock: what it guards is seen as it is (spec P-07)."""
    (there,) = _EVIDENCE.rows(c, id=locked.id)
    if locked.persisted or there.findings or there.artifacts:
        raise ScanEvidenceConflict(
            f"The analysis {locked.id} is {locked.state} and has evidence already; nothing was replaced.",
            analysis=locked.id,
            state=str(locked.state),
        )
    if locked.state is not AnalysisState.RUNNING:
        raise StateConflict(
            f"The analysis {locked.id} is {locked.state}, and gets no evidence any more.",
            state=str(locked.state),
            remedy="Begin a new analysis.",
        )


def _check_parts(c: Connection, locked: Locked, results: Sequence[SealedResult]) -> None:
    """Refuse what is no part of the analysis, a part twice, and a result that is silent about files it was given."""
    parts = {row.n: row for row in _PARTS.rows(c, id=locked.id)}
    if len({result.part for result in results}) < len(results):
        raise Invalid("Two results are of one part.", field="results")
    for at, result in enumerate(results):
        part = parts.get(result.part)
        if part is None or part.analyser != result.analyser:
            raise ManifestInvalid(
                f"The analysis has no part {result.part} by {result.analyser}.",
                field=f"results[{at}].analyser",
                check="part",
            )
        if result.coverage.in_scope < part.files:
            raise ManifestInvalid(
                f"{result.analyser} was given {part.files} files and tells of {result.coverage.in_scope}.",
                field=f"results[{at}].coverage",
                check="coverage",
            )


def _keep_part(c: Connection, locked: Locked, result: SealedResult) -> None:
    coverage = result.coverage
    _PART.rows(
        c,
        analysis=locked.id,
        part=result.part,
        analyser_version=result.analyser_version,
        run=result.run,
        request=result.request,
        result=result.result,
        artifact_manifest=result.artifact_manifest,
        provenance=json.dumps(dict(result.provenance), ensure_ascii=False, separators=(",", ":")),
        outcome=str(result.outcome),
        reasons=list(result.reasons),
        in_scope=coverage.in_scope,
        skipped=coverage.skipped_total,
        failed=coverage.failed_total,
        coverage=json.dumps(coverage.to_json(), ensure_ascii=False, separators=(",", ":")),
        findings=result.findings,
        started_at=result.started_at,
        ended_at=result.ended_at,
    )
    if result.artifacts:
        _ARTIFACTS.rows(
            c,
            analysis=locked.id,
            part=result.part,
            ids=[new_id() for _ in result.artifacts],
            bytes=[one.bytes for one in result.artifacts],
            names=[one.name for one in result.artifacts],
            media_types=[one.media_type for one in result.artifacts],
            digests=[one.digest for one in result.artifacts],
            raw_digests=[one.raw_digest for one in result.artifacts],
            attestations=[one.attestation for one in result.artifacts],
        )


def _summarise(c: Connection, locked: Locked, counts: Counts) -> None:
    alike = sorted(counts)
    _SUMMARISE.rows(
        c,
        analysis=locked.id,
        decision=str(NEW.decision),
        analysers=[each[0] for each in alike],
        severities=[each[1] for each in alike],
        suppressed=[each[2] for each in alike],
        known=[each[3] for each in alike],
        findings=[counts[each] for each in alike],
    )


def _cross_boundary(c: Connection, owner: Owner) -> None:
    """Lock the job, and go on only while this run owns it and nobody wants it cancelled (spec D-20, P-15, P-18)."""
    held = owner.held
    job = lock_jobs(c, [held.job_id]).get(held.job_id)
    if (
        job is None
        or job.state not in LEASED
        or (job.lease_id, job.epoch, job.session_id) != (held.lease_id, held.epoch, owner.session_id)
        or not _SESSION.rows(c, session=owner.session_id)
    ):
        raise LeaseLost(f"The lease of job {held.job_id} is lost; nothing was published.", job=held.job_id)
    if job.state is State.CANCELLING:
        raise StateConflict(
            f"The job {held.job_id} is to be cancelled; nothing was published.",
            state=str(job.state),
            remedy="End the run as cancelled.",
        )
