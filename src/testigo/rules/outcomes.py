"""How a run may end, as its holder reports it (spec A-05, A-13, A-14, B-13, B-14).

Each outcome is a value. Documents are exact JSON text; text for people is tidied by whoever makes
the outcome, so that recording a failure never fails.
"""

from __future__ import annotations

from dataclasses import dataclass

from testigo.rules.documents import Document

__all__ = ["Block", "Degrade", "Fail", "Outcome", "Release", "Succeed", "Yield"]


@dataclass(frozen=True, slots=True)
class Succeed:
    """The work is done; `output` is what it made."""

    output: Document = Document("null")


@dataclass(frozen=True, slots=True)
class Degrade:
    """The work is done within named limitations (spec A-13)."""

    output: Document
    limitations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fail:
    """The work failed: `code` and `message` for people and machines, `detail` a traceback or log.

    A permanent failure is never retried. `wait_seconds` is the handler's own wish for the next
    try and replaces the contract's backoff; it never widens a budget (spec A-14).
    """

    code: str
    message: str
    detail: str = ""
    permanent: bool = False
    wait_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """The work cannot go on without something from outside, named in `needs` (spec A-13, B-14)."""

    reason: str
    needs: str = ""
    checkpoint: Document | None = None


@dataclass(frozen=True, slots=True)
class Yield:
    """The run leaves its place to others and goes on later from `checkpoint` (spec B-13)."""

    checkpoint: Document


@dataclass(frozen=True, slots=True)
class Release:
    """The holder gives the job back, as on a drain: no failure is counted (spec model.md)."""

    reason: str = "released"
    checkpoint: Document | None = None


Outcome = Succeed | Degrade | Fail | Block | Yield | Release
