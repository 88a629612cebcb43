"""A sealed result in the hands of somebody who may change anything about it, and have the rest fit again."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from testigo.evidence.transport.cursors import Cursors
from testigo.evidence.transport.manifest import Manifest
from testigo.evidence.transport.pages import checked
from testigo.evidence.transport.request import Request
from testigo.rules.evidence.coverage import Coverage, Outcome
from testigo.rules.evidence.finding import Finding, FingerprintBy
from testigo.rules.evidence.severity import SEVERITIES, Level, Severity
from testigo.rules.identity import canonical, content_digest

__all__ = ["REQUEST", "RUN", "Result", "finding", "manifest"]

RUN = "0190b5a2-0000-7000-8000-000000000001"
REQUEST = Request("bandit", "/src", ("a.py",))
AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def finding(n: int, **members: Any) -> Finding:
    """The `n`th finding of a result."""
    given: dict[str, Any] = {
        "analyser": "bandit",
        "rule": "B101",
        "severity": Severity.LOW,
        "level": Level.NOTE,
        "message": f"Use of assert, the {n}th.",
        "fingerprint": content_digest(str(n)),
        "fingerprint_by": FingerprintBy.COMPUTED,
        "path": "a.py",
        "line": n + 1,
        "snippet": "assert x  # ä",
        "metadata": {"cwe": "703"},
    }
    return Finding(**{**given, **members})


def manifest(**members: Any) -> Manifest:
    """The manifest of a result without findings, and with these members."""
    empty = Manifest(
        run=RUN,
        request=REQUEST.digest,
        analyser="bandit",
        analyser_version="1.9",
        started_at=AT,
        ended_at=AT,
        outcome=Outcome.COMPLETE,
        reasons=(),
        result=content_digest(b""),
        findings=0,
        bytes=0,
        pages=0,
        summary=dict.fromkeys(SEVERITIES, 0),
        coverage=Coverage(in_scope=1),
        artifacts=(),
        artifact_manifest=Manifest.digest_of(()),
        provenance={"host": "here"},
        cursor=None,
    )
    return replace(empty, **members)


@dataclass
class Result:
    """Pages as objects that a test may edit; `fit` makes sizes, digests and the manifest agree with them again."""

    pages: list[dict[str, Any]]
    manifest: Manifest
    bodies: dict[int, bytes] = field(default_factory=dict)
    """Bytes that stand for a page, whatever it is."""

    @classmethod
    def of(cls, *pages: int) -> Result:
        """A result with so many findings on each page."""
        cursors, made, n = Cursors(), [], 0
        for count in pages:
            values = [finding(n + each).to_json() for each in range(count)]
            made.append({"v": 1, "run": RUN, "request": REQUEST.digest, "first": n, "findings": values})
            n += count
        result = cls(made, manifest())
        result.fit()
        for page in result.pages:
            page["cursor"] = cursors.made(RUN, REQUEST.digest, result.manifest.result, page["first"])
        result.chain()
        return result

    def fit(self) -> None:
        """Make the pages' counts and digests, and what the manifest says of the whole, what they must be."""
        whole = b""
        values = []
        for page in self.pages:
            values += page["findings"]
            lines = b"".join(canonical(value) + b"\n" for value in page["findings"])
            page.update(count=len(page["findings"]), bytes=len(lines), digest=content_digest(lines))
            whole += lines
        severities = [value["severity"] for value in values]
        others = sum(severities.count(each) for each in SEVERITIES if each is not Severity.LOW)
        self.manifest = replace(
            self.manifest,
            findings=len(values),
            bytes=len(whole),
            pages=len(self.pages),
            result=f"sha256:{hashlib.sha256(whole).hexdigest()}",
            summary={each: severities.count(each) for each in SEVERITIES} | {Severity.LOW: len(values) - others},
        )
        for page in self.pages:
            page["result"] = self.manifest.result

    def chain(self) -> None:
        """Have each page lead to the next."""
        cursors = [page["cursor"] for page in self.pages]
        for page, following in zip(self.pages, [*cursors[1:], None], strict=False):
            page["next"] = following
        self.manifest = replace(self.manifest, cursor=cursors[0] if cursors else None)

    def change(self, page: int, finding: int, **members: Any) -> None:
        """Change members of a finding, and nothing else that would tell."""
        self.pages[page]["findings"][finding].update(members)
        self.fit()

    def written(self) -> list[bytes]:
        """The pages as they are sent."""
        return [self.bodies.get(n, canonical(page)) for n, page in enumerate(self.pages)]

    def read(self, told: Callable[[bytes], bytes] = lambda body: body) -> list[Finding]:
        """Everything that is read of it, each page as `told` has it."""
        found = checked(Manifest.from_bytes(canonical(self.manifest.to_json())), map(told, self.written()))
        return [each for page in found for each in page]
