"""What a sealed result says of itself, before any of it is read (spec D-05, D-06)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from testigo.errors import EvidenceInvalid, ManifestInvalid
from testigo.evidence.transport import wire
from testigo.evidence.transport.cursors import CURSOR
from testigo.evidence.transport.request import Request
from testigo.rules.evidence.coverage import Coverage, Outcome
from testigo.rules.evidence.severity import SEVERITIES, Severity
from testigo.rules.identity import canonical, content_digest
from testigo.rules.text import tidy
from testigo.settings import EVIDENCE, LIMITS

__all__ = ["ARTIFACTS_MAX", "ARTIFACT_BYTES_MAX", "MANIFEST_BYTES_MAX", "Attested", "Binding", "Manifest", "refused"]

MANIFEST_BYTES_MAX = 32 * 1024**2
"""A manifest names up to 2,000 files that were not analysed, each by a path of at most 4 KiB."""
ARTIFACTS_MAX = 100
ARTIFACT_BYTES_MAX = 64 * 1024**2
REASON_BYTES_MAX = 2 * 1024
PROVENANCE_MAX = 32

Bytes: TypeAlias = bytes
"""The type, where a member has its name."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,199}")
_MEDIA_TYPE = re.compile(r"[a-z0-9.+-]{1,80}/[a-z0-9.+-]{1,80}")
_MEMBERS = frozenset(
    {"v", "run", "request", "analyser", "analyser_version", "started_at", "ended_at", "outcome", "reasons"}
    | {"result", "findings", "bytes", "pages", "summary", "coverage", "artifacts", "artifact_manifest"}
    | {"provenance", "cursor"}
)
_ARTIFACT = frozenset({"name", "media_type", "bytes", "digest", "raw_digest", "attestation"})


@dataclass(frozen=True, slots=True)
class Attested:
    """An artifact of a result: its sanitised bytes, what they were made of, and the envelope that says so."""

    name: str
    media_type: str
    bytes: int
    digest: str
    raw_digest: str
    attestation: str
    """The digest of the envelope's bytes, which are fetched as the artifact's own are."""

    def to_json(self) -> dict[str, Any]:
        """The members of its JSON object."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Binding:
    """Exactly one result: what the publisher writes into its checkpoint before it reads a page (spec D-06)."""

    run: str
    request: str
    result: str
    artifact_manifest: str
    provenance: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Manifest:
    """A sealed result. `bytes` and `result` are the sum of, and the digest over, each finding's canonical bytes and a
    line feed, in order; `summary` counts findings by severity. `cursor` opens the first page, if there is one."""

    run: str
    request: str
    analyser: str
    analyser_version: str
    started_at: datetime
    ended_at: datetime
    outcome: Outcome
    reasons: tuple[str, ...]
    result: str
    findings: int
    bytes: int
    pages: int
    summary: Mapping[Severity, int]
    coverage: Coverage
    artifacts: tuple[Attested, ...]
    artifact_manifest: str
    provenance: Mapping[str, str]
    cursor: str | None

    @property
    def binding(self) -> Binding:
        """What the checkpoint holds."""
        return Binding(self.run, self.request, self.result, self.artifact_manifest, self.provenance)

    def to_json(self) -> dict[str, Any]:
        """The members of its JSON object."""
        return {
            "v": wire.VERSION,
            "run": self.run,
            "request": self.request,
            "analyser": self.analyser,
            "analyser_version": self.analyser_version,
            "started_at": self.started_at.isoformat(),
            "ended_at": self.ended_at.isoformat(),
            "outcome": self.outcome,
            "reasons": list(self.reasons),
            "result": self.result,
            "findings": self.findings,
            "bytes": self.bytes,
            "pages": self.pages,
            "summary": {severity: self.summary.get(severity, 0) for severity in SEVERITIES},
            "coverage": self.coverage.to_json(),
            "artifacts": [artifact.to_json() for artifact in self.artifacts],
            "artifact_manifest": self.artifact_manifest,
            "provenance": dict(self.provenance),
            "cursor": self.cursor,
        }

    @staticmethod
    def digest_of(artifacts: Sequence[Attested]) -> str:
        """The artifact-manifest digest."""
        return content_digest(canonical({"artifacts": [artifact.to_json() for artifact in artifacts]}))

    @classmethod
    def from_bytes(cls, body: Bytes) -> Manifest:
        """The manifest as it was sent, in canonical form. Raises `ManifestInvalid`, as `from_json` does."""
        if len(body) > MANIFEST_BYTES_MAX:
            raise refused("size", "body", f"it takes more than {MANIFEST_BYTES_MAX} bytes")
        return cls.from_json(wire.stated(body, refused))

    @classmethod
    def from_json(cls, value: object) -> Manifest:
        """The manifest that a JSON object is, each member checked and all of them against each other.

        Raises `ManifestInvalid` with the field; its facts name the `check`.
        """
        if not isinstance(value, dict):
            raise refused("json", "manifest", "a JSON object is needed")
        wire.members(value, _MEMBERS, refused)
        artifacts = _artifacts(value["artifacts"])
        manifest = cls(
            run=wire.text(value["run"], "run", refused, pattern=wire.RUN),
            request=wire.text(value["request"], "request", refused, pattern=wire.DIGEST),
            analyser=_line(value["analyser"], "analyser"),
            analyser_version=_line(value["analyser_version"], "analyser_version"),
            started_at=wire.instant(value["started_at"], "started_at", refused),
            ended_at=wire.instant(value["ended_at"], "ended_at", refused),
            outcome=_outcome(value["outcome"]),
            reasons=_reasons(value["reasons"]),
            result=wire.text(value["result"], "result", refused, pattern=wire.DIGEST),
            findings=wire.positive(value["findings"], "findings", refused),
            bytes=wire.positive(value["bytes"], "bytes", refused),
            pages=wire.positive(value["pages"], "pages", refused),
            summary=_summary(value["summary"]),
            coverage=_coverage(value["coverage"]),
            artifacts=artifacts,
            artifact_manifest=wire.text(value["artifact_manifest"], "artifact_manifest", refused, pattern=wire.DIGEST),
            provenance=_provenance(value["provenance"]),
            cursor=None if value["cursor"] is None else wire.text(value["cursor"], "cursor", refused, pattern=CURSOR),
        )
        manifest._check()
        return manifest

    def check_request(self, request: Request) -> None:
        """Refuse a result that answers another request than this."""
        if self.request != request.digest:
            raise refused("request", "request", "it answers another request")
        if self.analyser != request.analyser:
            raise refused("analyser", "analyser", "it is another analyser's")

    def _check(self) -> None:
        if sum(self.summary.values()) != self.findings:
            raise refused("summary", "summary", "it does not add up to the number of findings")
        fewest = -(-self.findings // EVIDENCE.page_findings_max)
        if not fewest <= self.pages <= self.findings:
            raise refused("pages", "pages", "so many findings do not take so many pages")
        if (self.cursor is None) != (self.pages == 0):
            raise refused("cursor", "cursor", "there is a first page exactly if there is a cursor of it")
        if self.ended_at < self.started_at:
            raise refused("value", "ended_at", "it ended before it began")
        if self.artifact_manifest != self.digest_of(self.artifacts):
            raise refused("artifact_manifest", "artifact_manifest", "it is not the digest over these artifacts")
        whole = self.coverage.whole and self.outcome is Outcome.COMPLETE
        if whole == bool(self.reasons):
            raise refused("reasons", "reasons", "there are reasons exactly if something is not complete")
        if self.outcome is Outcome.COMPLETE and not self.coverage.whole:
            raise refused("outcome", "outcome", "what left files out is not complete")
        if self.outcome is Outcome.FAILED and (self.findings or self.artifacts):
            raise refused("outcome", "outcome", "what failed has no findings and no artifacts")


def refused(check: str, field: str, why: str) -> ManifestInvalid:
    """The refusal of a manifest, or of the whole that its pages make."""
    return ManifestInvalid(f"The result does not hold: {why}.", field=field, check=check)


def _line(found: object, at: str) -> str:
    if not isinstance(found, str) or not 1 <= len(found) <= LIMITS.name_chars_max or tidy(found) != found:
        raise refused("value", at, f"a line of 1 to {LIMITS.name_chars_max} characters is needed")
    return found


def _fit(found: object, at: str, bytes_max: int) -> str:
    if not isinstance(found, str) or not found or tidy(found, bytes_max=bytes_max) != found:
        raise refused("value", at, f"fit text of 1 to {bytes_max} bytes is needed")
    return found


def _outcome(found: object) -> Outcome:
    if not isinstance(found, str) or found not in set(Outcome):
        raise refused("value", "outcome", f"one of {', '.join(Outcome)} is needed")
    return Outcome(found)


def _reasons(found: object) -> tuple[str, ...]:
    if not isinstance(found, list) or len(found) > EVIDENCE.reasons_max:
        raise refused("value", "reasons", f"a list of at most {EVIDENCE.reasons_max} texts is needed")
    return tuple(_fit(one, f"reasons[{n}]", REASON_BYTES_MAX) for n, one in enumerate(found))


def _summary(found: object) -> dict[Severity, int]:
    if not isinstance(found, dict) or found.keys() != set(SEVERITIES):
        raise refused("value", "summary", f"an object of {', '.join(SEVERITIES)} is needed")
    return {one: wire.positive(found[one], f"summary.{one}", refused) for one in SEVERITIES}


def _coverage(found: object) -> Coverage:
    try:
        return Coverage.from_json(found)
    except EvidenceInvalid as error:
        raise refused("coverage", error.field or "coverage", error.message) from None


def _artifacts(found: object) -> tuple[Attested, ...]:
    if not isinstance(found, list) or len(found) > ARTIFACTS_MAX:
        raise refused("value", "artifacts", f"a list of at most {ARTIFACTS_MAX} artifacts is needed")
    read = tuple(_artifact(one, f"artifacts[{n}]") for n, one in enumerate(found))
    names = [artifact.name for artifact in read]
    if names != sorted(set(names)):
        raise refused("artifacts", "artifacts", "they are not in the order of their names, each once")
    return read


def _artifact(found: object, at: str) -> Attested:
    if not isinstance(found, dict) or found.keys() != _ARTIFACT:
        raise refused("members", at, f"an object of {', '.join(sorted(_ARTIFACT))} is needed")
    return Attested(
        name=wire.text(found["name"], f"{at}.name", refused, pattern=_NAME),
        media_type=wire.text(found["media_type"], f"{at}.media_type", refused, pattern=_MEDIA_TYPE),
        bytes=wire.positive(found["bytes"], f"{at}.bytes", refused, high=ARTIFACT_BYTES_MAX),
        digest=wire.text(found["digest"], f"{at}.digest", refused, pattern=wire.DIGEST),
        raw_digest=wire.text(found["raw_digest"], f"{at}.raw_digest", refused, pattern=wire.DIGEST),
        attestation=wire.text(found["attestation"], f"{at}.attestation", refused, pattern=wire.DIGEST),
    )


def _provenance(found: object) -> dict[str, str]:
    if not isinstance(found, dict) or len(found) > PROVENANCE_MAX:
        raise refused("value", "provenance", f"an object of at most {PROVENANCE_MAX} texts is needed")
    return {
        _line(name, "provenance"): _fit(said, f"provenance.{name}", REASON_BYTES_MAX) for name, said in found.items()
    }
