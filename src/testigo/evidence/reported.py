"""What comes out of a report: drafts of findings, artifacts, and files that were not analysed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from testigo.rules.evidence.sealing import Draft

__all__ = ["Attached", "Reading", "Unread"]


@dataclass(frozen=True, slots=True)
class Unread:
    """A file in scope that was not analysed, and why: `failed` where the analyser tried (spec D-24)."""

    path: str
    reason: str
    failed: bool


@dataclass(frozen=True, slots=True)
class Attached:
    """An artifact: its sanitised, canonical bytes, the digest of the raw ones, counts of what was done (spec D-15)."""

    name: str
    media_type: str
    body: bytes
    raw_digest: str
    notes: Mapping[str, int] = field(default_factory=dict)


Reading: TypeAlias = Draft | Unread | Attached
"""One thing of a report, in the order in which it stands there."""
