"""What comes out of a report: drafts of findings, artifacts, files that were not analysed, and other trouble."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from testigo.rules.evidence.sealing import Draft

__all__ = ["Attached", "Reading", "Trouble", "Unread"]


@dataclass(frozen=True, slots=True)
class Unread:
    """A file in scope that was not analysed, and why: `failed` where the analyser tried (spec D-24)."""

    path: str
    reason: str
    failed: bool


@dataclass(frozen=True, slots=True)
class Trouble:
    """What kept the analyser from completing its work, where that is no file's: its findings may not be all."""

    reason: str


@dataclass(frozen=True, slots=True)
class Attached:
    """An artifact: its sanitised, canonical bytes, the digest of the raw ones, counts of what was done (spec D-15)."""

    name: str
    media_type: str
    body: bytes
    raw_digest: str
    notes: Mapping[str, int] = field(default_factory=dict)


Reading: TypeAlias = Draft | Unread | Trouble | Attached
"""One thing of a report, in the order in which it stands there."""
