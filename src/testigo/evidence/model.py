"""What the evidence of an installation is, as its commands take it and its readings tell it (spec D-05 to D-24)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, NewType

from testigo.authority.actions import JobId, SessionId, new_id
from testigo.authority.start import Held
from testigo.authority.submissions import NewJob
from testigo.rules.evidence.coverage import Coverage, Outcome
from testigo.rules.evidence.exemption import ExemptionState
from testigo.rules.evidence.finding import Finding
from testigo.rules.evidence.gate import Policy, Reason, Verdict
from testigo.rules.evidence.occurrence import Presence
from testigo.rules.evidence.review import Decision, Review
from testigo.rules.evidence.severity import Severity

__all__ = [
    "AnalysisId",
    "AnalysisState",
    "AnalysisView",
    "ArtifactId",
    "ArtifactView",
    "Exempted",
    "FindingId",
    "FindingView",
    "Gate",
    "Identity",
    "NewAnalysis",
    "NewArtifact",
    "NewPart",
    "Occurrence",
    "Owner",
    "Pages",
    "PartView",
    "ProjectView",
    "SealedResult",
]

AnalysisId = NewType("AnalysisId", str)
FindingId = NewType("FindingId", str)
ArtifactId = NewType("ArtifactId", str)

Pages = Callable[[], Iterable[Sequence[Finding]]]
"""What opens a result's checked findings, page by page and in their order, anew at each call.

What is wrong with a page or with the whole is raised by the iteration, inside the transaction that inserts.
"""


class AnalysisState(StrEnum):
    """What an analysis is; how its jobs ended and what its gate says are told apart from it (spec D-21)."""

    RUNNING = "running"
    """Its evidence is not published yet."""
    COMPLETE = "complete"
    """Published: every analyser that was asked for looked at everything in scope."""
    INCOMPLETE = "incomplete"
    """Published, and something was not looked at."""
    FAILED = "failed"
    """Nothing was published, and nothing will be."""
    CANCELLED = "cancelled"
    """Somebody cancelled it before it was published."""


class Identity(NamedTuple):
    """Who a finding is over all analyses of a project."""

    analyser: str
    fingerprint: str


class Owner(NamedTuple):
    """The run in whose name evidence is published: its lease and the session that holds it (spec P-15)."""

    held: Held
    session_id: SessionId


@dataclass(frozen=True, slots=True)
class NewPart:
    """One analyser's share of an analysis: the job that does it, and how many files it is given."""

    analyser: str
    job: NewJob
    files: int = 0


@dataclass(frozen=True, slots=True)
class NewAnalysis:
    """An analysis as it is asked for.

    `analysers` are all that are asked for, those that no part could be made for among them: they will be missing.
    `publish` is the job that publishes; it waits for the parts' jobs, which its `parents` name. `policy` replaces the
    project's gate for this analysis, and `baseline` its baseline. `source` says in words what is looked at. `scope`
    names the files, and with a slash at their end the folders, that it looks at; None for all of the source.
    `left_out` counts what is in none of its parts, by why. It `supersedes` another that has ended, if it does that
    one's work again.
    """

    project: str
    source: str
    analysers: tuple[str, ...]
    parts: tuple[NewPart, ...]
    publish: NewJob
    policy: Policy | None = None
    baseline: AnalysisId | None = None
    scope: tuple[str, ...] | None = None
    left_out: Mapping[str, int] | None = None
    supersedes: AnalysisId | None = None
    id: AnalysisId = field(default_factory=lambda: AnalysisId(new_id()))


@dataclass(frozen=True, slots=True)
class NewArtifact:
    """An artifact whose sanitised bytes, and whose envelope, lie in the blob store under their digests (spec D-15)."""

    name: str
    media_type: str
    bytes: int
    digest: str
    raw_digest: str
    attestation: str


@dataclass(frozen=True, slots=True)
class SealedResult:
    """What one part left behind, as its manifest says; `part` is its place in the analysis, from 0.

    `findings` is how many `pages` yield. Digests are `sha256:<hex>`.
    """

    part: int
    analyser: str
    analyser_version: str
    run: str
    request: str
    result: str
    started_at: datetime
    ended_at: datetime
    outcome: Outcome
    reasons: tuple[str, ...]
    coverage: Coverage
    findings: int
    pages: Pages
    artifacts: tuple[NewArtifact, ...] = ()
    artifact_manifest: str = ""
    provenance: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProjectView:
    """A project. `policy_revision` 0 is the gate that nobody set.

    `latest` is the newest published analysis of its whole source.
    """

    name: str
    created_at: datetime
    analyses: int
    policy: Policy
    policy_revision: int
    policy_by: str | None
    policy_at: datetime | None
    policy_reason: str
    baseline: AnalysisId | None
    latest: AnalysisId | None
    latest_state: AnalysisState | None
    latest_verdict: Verdict | None


@dataclass(frozen=True, slots=True)
class AnalysisView:
    """An analysis as a list tells it. `n` counts those of its project from 1 in the order of their beginning.

    `revision` is that of its collection of findings. `scope` is the part of the source that it looks at, None for all
    of it; `left_out` counts what of that is not in scope, by why, None where nobody said. `supersedes` is the analysis
    whose work it does again, `successor` the one that does its own again. `counts` are all findings by severity;
    `counting` of them those that stand open or need a review. `verdict` is what the gate said when it was last
    evaluated, at `evaluated_at`.
    """

    id: AnalysisId
    project: str
    n: int
    source: str
    state: AnalysisState
    revision: int
    analysers: tuple[str, ...]
    actor: str
    began_at: datetime
    ended_at: datetime | None
    reason: str | None
    persisted: bool
    publish_job: JobId
    baseline: AnalysisId | None
    scope: tuple[str, ...] | None
    left_out: Mapping[str, int] | None
    supersedes: AnalysisId | None
    successor: AnalysisId | None
    findings: int
    artifacts: int
    counts: Mapping[Severity, int]
    counting: Mapping[Severity, int]
    verdict: Verdict | None
    evaluated_at: datetime | None


@dataclass(frozen=True, slots=True)
class PartView:
    """One analyser's share; what its result would tell is None or empty while there is none."""

    n: int
    analyser: str
    job_id: JobId
    files: int
    analyser_version: str | None
    run: str | None
    request: str | None
    result: str | None
    artifact_manifest: str | None
    provenance: Mapping[str, str]
    outcome: Outcome | None
    reasons: tuple[str, ...]
    coverage: Coverage | None
    findings: int | None
    started_at: datetime | None
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class Gate:
    """What the gate says of an analysis now, exemptions that expired meanwhile considered, and by which policy.

    `policy_revision` is None where the analysis has a policy of its own. `kept` is the verdict that was written last.
    """

    verdict: Verdict
    reasons: tuple[Reason, ...]
    counted: Mapping[Severity, int]
    policy: Policy
    policy_revision: int | None
    kept: Verdict | None
    evaluated_at: datetime | None


@dataclass(frozen=True, slots=True)
class FindingView:
    """A finding and where it stands. `known`: the baseline accepts it; `exempt`: an exemption of it is in force."""

    id: FindingId
    analysis_id: AnalysisId
    part: int
    finding: Finding
    review: Review
    decided_by: str | None
    decided_at: datetime | None
    advised_at: datetime | None
    known: bool
    exempt: bool

    @property
    def decision(self) -> Decision:
        """What was decided, `open` while nothing was."""
        return self.review.decision


@dataclass(frozen=True, slots=True)
class Occurrence:
    """What a project knows of one fingerprint over its analyses; numbers are those of analyses."""

    identity: Identity
    presence: Presence
    first_n: int
    moved_n: int


@dataclass(frozen=True, slots=True)
class Exempted:
    """An exemption, and what it is now."""

    project: str
    identity: Identity
    state: ExemptionState
    reason: str
    reviewer: str
    granted_at: datetime
    expires_at: datetime | None
    revision: int
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class ArtifactView:
    """An artifact's index entry: what a download is checked against (spec D-15)."""

    id: ArtifactId
    analysis_id: AnalysisId
    part: int
    name: str
    media_type: str
    bytes: int
    digest: str
    raw_digest: str
    attestation: str
    published_at: datetime
