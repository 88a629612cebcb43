"""The evidence's row: findings published in one transaction, redacted and encoded included (spec D-07, D-08)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from bench.harness import KIND, OUTPUT, Row, Worker, installation, rate
from testigo.authority.actions import Action, new_id
from testigo.authority.admit import admit
from testigo.authority.deferred import settle_deferred
from testigo.authority.settle import Settlement, settle
from testigo.authority.start import Held
from testigo.authority.submissions import NewJob
from testigo.evidence.analyses import begin_analysis
from testigo.evidence.findings import findings
from testigo.evidence.model import AnalysisId, NewAnalysis, NewPart, Owner, SealedResult
from testigo.evidence.publication import publish
from testigo.evidence.review import decide
from testigo.rules.evidence.coverage import Coverage, Outcome
from testigo.rules.evidence.finding import Finding, FingerprintBy
from testigo.rules.evidence.review import Decision
from testigo.rules.evidence.severity import SEVERITIES, Level
from testigo.rules.identity import content_digest
from testigo.rules.outcomes import Succeed
from testigo.store.database import Database

__all__ = ["ROWS", "publish_one"]

QUEUE = "scans"
PAGE = 1_000


def publish_findings(url: str, scale: float) -> Iterator[Row]:
    """A first analysis, the same once more against the first as its baseline, and decisions in the second."""
    count = int(100_000 * scale)
    pages = _pages(count)
    with installation(url) as db:
        begun: AnalysisId | None = None
        for name in ("the first analysis of a project", "the same again, against a baseline"):
            begun, owner = _begun(db, begun)
            result = _result(pages)
            action = Action("bench")
            speed = rate(count, lambda: db.run(publish, begun, [result], owner=owner, action=action))  # noqa: B023
            yield Row(f"publish, {name}", speed, "findings/s", 20_000)
        assert begun is not None
        decisions = int(200 * scale) + 1
        page = db.run(findings, begun, limit=decisions).page.items

        def decide_each() -> None:
            for view in page:
                db.run(
                    decide,
                    view.id,
                    Decision.FALSE_POSITIVE,
                    expected_revision=1,
                    reason="a test",
                    action=Action("bench"),
                )

        yield Row("decide, one by one", rate(decisions, decide_each), "decisions/s")


def publish_one(db: Database, count: int) -> AnalysisId:
    """An analysis of so many findings, for those who measure how it is read."""
    begun, owner = _begun(db, None)
    db.run(publish, begun, [_result(_pages(count))], owner=owner, action=Action("bench"))
    return begun


def _pages(count: int) -> list[list[Finding]]:
    return [[_finding(n) for n in range(at, min(count, at + PAGE))] for at in range(0, count, PAGE)]


def _begun(db: Database, baseline: AnalysisId | None) -> tuple[AnalysisId, Owner]:
    """An analysis whose part has ended, and the run that may publish it."""
    part = NewPart("ruff", NewJob(KIND, queue=QUEUE), files=100)
    last = NewJob(KIND, queue=QUEUE, parents=(part.job.id,))
    new = NewAnalysis("bench", "bench", ("ruff",), (part,), last, baseline=baseline)
    db.run(begin_analysis, new, action=Action("bench"))
    worker = Worker(db, QUEUE, 1)
    db.run(admit)
    (lease,) = worker.claim().leases
    ended = Settlement(lease, Succeed(OUTPUT))
    action = worker.action()
    if db.run(settle, [ended], action=action).deferred:
        db.run(settle_deferred, [(0, ended)], action=action)
    db.run(admit)
    (lease,) = worker.claim().leases
    return new.id, Owner(Held(lease.job_id, lease.lease_id, lease.epoch), worker.session.id)


def _result(pages: Sequence[Sequence[Finding]]) -> SealedResult:
    now = datetime.now(UTC)
    return SealedResult(
        part=0,
        analyser="ruff",
        analyser_version="1",
        run=new_id(),
        request=content_digest("request"),
        result=content_digest(new_id()),
        started_at=now,
        ended_at=now,
        outcome=Outcome.COMPLETE,
        reasons=(),
        coverage=Coverage(100),
        findings=sum(map(len, pages)),
        pages=lambda: pages,
    )


def _finding(n: int) -> Finding:
    """One such as ruff's: a message of a line, a snippet of three, and where its rule is described."""
    return Finding(
        analyser="ruff",
        rule=f"S{n % 700:03}",
        severity=SEVERITIES[n % len(SEVERITIES)],
        level=Level.WARNING,
        message=f"Possible SQL injection vector through string-based query construction, place {n}",
        fingerprint=content_digest(str(n)),
        fingerprint_by=FingerprintBy.COMPUTED,
        rule_name="hardcoded-sql-expression",
        path=f"src/package_{n % 97}/module_{n % 1831}.py",
        line=n % 4000 + 1,
        end_line=n % 4000 + 2,
        column=9,
        end_column=40,
        snippet=f'def lookup_{n}(c, name):\n    query = "SELECT * FROM users WHERE name = " + name\n    return query',
        metadata={"help": "https://docs.example.org/rules/hardcoded-sql-expression"},
    )


ROWS = (publish_findings,)
