"""Short words for what tests do to the evidence of an installation: begin, publish as some worker, look."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from testigo.authority.claim import Lease
from testigo.authority.submissions import NewJob
from testigo.evidence.analyses import begin_analysis
from testigo.evidence.findings import FindingFilter, findings
from testigo.evidence.model import (
    AnalysisId,
    FindingView,
    NewAnalysis,
    NewArtifact,
    NewPart,
    Owner,
    SealedResult,
)
from testigo.evidence.publication import Published, publish
from testigo.rules.evidence.coverage import Coverage, Outcome
from testigo.rules.evidence.finding import Finding, FingerprintBy
from testigo.rules.evidence.severity import Level, Severity
from testigo.rules.identity import content_digest
from testigo.rules.outcomes import Succeed
from tests.world import Worker, World, held

KINDS = ("testigo.analyse", "testigo.publish")
WHEN = datetime(2026, 3, 1, 12, tzinfo=UTC)
RUN = "0198f3c2-0000-7000-8000-000000000001"

Batches = Iterable[Sequence[Finding]]


def found(name: str, severity: Severity = Severity.HIGH, **given: Any) -> Finding:
    """A finding of ruff, told from others by its name alone."""
    fields: dict[str, Any] = {
        "analyser": "ruff",
        "rule": "S105",
        "severity": severity,
        "level": Level.WARNING,
        "message": f"there is something in {name}",
        "fingerprint": content_digest(name),
        "fingerprint_by": FingerprintBy.COMPUTED,
        "path": f"src/{name}.py",
        "line": 1,
    }
    return Finding(**{**fields, **given})


def sealed(*made: Finding, part: int = 0, analyser: str = "ruff", **given: Any) -> SealedResult:
    """The result of one part that has these findings, on two pages, and looked at all its ten files."""
    half = len(made) // 2
    fields: dict[str, Any] = {
        "part": part,
        "analyser": analyser,
        "analyser_version": "1.0",
        "run": RUN,
        "request": content_digest(f"request {part}"),
        "result": content_digest(f"result {part} {made!r}"),
        "started_at": WHEN,
        "ended_at": WHEN,
        "outcome": Outcome.COMPLETE,
        "reasons": (),
        "coverage": Coverage(10),
        "findings": len(made),
        "pages": lambda: [made[:half], made[half:]],
        "artifact_manifest": content_digest("none"),
        "provenance": {"host": "a-host"},
    }
    return SealedResult(**{**fields, **given})


def attached(name: str = "sbom.json") -> NewArtifact:
    """An artifact whose bytes lie elsewhere."""
    return NewArtifact(
        name, "application/vnd.cyclonedx+json", 12, content_digest(name), content_digest("raw"), content_digest("dsse")
    )


def asked(*analysers: str, project: str = "shop", **given: Any) -> NewAnalysis:
    """An analysis with one part of ten files for each of these analysers, some of them twice perhaps, or for ruff."""
    parts = tuple(NewPart(name, NewJob(KINDS[0], queue="scans"), files=10) for name in analysers or ("ruff",))
    publish_job = NewJob(KINDS[1], queue="scans", parents=tuple(part.job.id for part in parts))
    fields: dict[str, Any] = {
        "project": project,
        "source": "src",
        "analysers": tuple(dict.fromkeys(part.analyser for part in parts)),
        "parts": parts,
        "publish": publish_job,
    }
    return NewAnalysis(**{**fields, **given})


@dataclass(frozen=True, slots=True)
class Going:
    """An analysis whose parts are done and whose publication has begun, by a worker that holds its job."""

    world: World
    new: NewAnalysis
    worker: Worker
    lease: Lease

    @property
    def id(self) -> AnalysisId:
        """The analysis."""
        return self.new.id

    @property
    def owner(self) -> Owner:
        """The run that publishes."""
        return Owner(held(self.lease), self.worker.id)

    def publish(self, *results: SealedResult) -> Published:
        """Publish these results by a new action."""
        return self.world.db.run(publish, self.id, results, owner=self.owner, action=self.world.action())


def going(world: World, *analysers: str, **given: Any) -> Going:
    """Begin an analysis and bring it to where its publication can begin."""
    new = asked(*analysers, **given)
    world.db.run(begin_analysis, new, action=world.action())
    world.admit()
    worker = world.worker(queues=("scans",), kinds=KINDS)
    left = len(new.parts)
    while left:  # a server of the test's may be admitting them as well: what it holds is claimed the next time
        leases = worker.claim(left).leases
        if leases:
            worker.settle(*((lease, Succeed()) for lease in leases))
        left -= len(leases)
    return Going(world, new, worker, worker.take())


def published(world: World, *made: Finding, **given: Any) -> AnalysisId:
    """An analysis by ruff that is published, complete and over."""
    run = going(world, **given)
    run.publish(sealed(*made))
    run.worker.succeed(run.lease)
    return run.id


def listed(world: World, analysis_id: AnalysisId, **wanted: Any) -> dict[str, FindingView]:
    """The findings of an analysis, by the names that `found` gave them."""
    page = world.db.run(findings, analysis_id, FindingFilter(**wanted), limit=1000).page
    return {str(view.finding.path)[len("src/") : -len(".py")]: view for view in page.items}


def one(world: World, analysis_id: AnalysisId, name: str) -> FindingView:
    """The finding of this name."""
    return listed(world, analysis_id)[name]


def with_pages(result: SealedResult, pages: Callable[[], Batches]) -> SealedResult:
    """The same result with other pages."""
    return replace(result, pages=pages)
