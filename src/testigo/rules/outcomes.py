"""How a run may end, as its holder reports it (spec A-05, A-13, A-14, B-13, B-14).

Each outcome is a value. Documents are exact JSON text; text for people is tidied by whoever makes
the outcome, so that recording a failure never fails.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from testigo.rules import fields
from testigo.rules.documents import Document

__all__ = ["Block", "Degrade", "Fail", "Outcome", "Release", "RunFacts", "Succeed", "Yield"]


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


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What is known of a run besides its outcome: the event that ends it tells it (spec P-27).

    `deployment` names the release of the code that ran. The run began at `started_at`, by its
    holder's clock, and took `run_seconds` by its monotonic one. `exit_signal` is what killed the
    process that ran it. What is not known is None. Raises `Invalid` for what no event could tell.
    """

    deployment: str | None = None
    started_at: datetime | None = None
    run_seconds: float | None = None
    exit_signal: int | None = None
    peak_memory_bytes: int | None = None

    def __post_init__(self) -> None:
        if self.deployment is not None:
            fields.name(self.deployment, field="facts.deployment")
        if self.started_at is not None:
            fields.moment(self.started_at, field="facts.started_at")
        if self.run_seconds is not None:
            fields.seconds(self.run_seconds, field="facts.run_seconds")
        if self.exit_signal is not None:
            fields.whole(self.exit_signal, field="facts.exit_signal", low=1, high=127)
        if self.peak_memory_bytes is not None:
            fields.whole(self.peak_memory_bytes, field="facts.peak_memory_bytes", low=0, high=2**53 - 1)

    def told(self) -> dict[str, object]:
        """What is known, as the members of a JSON object."""
        members = {
            "deployment": self.deployment,
            "started_at": None if self.started_at is None else self.started_at.astimezone(UTC).isoformat(),
            "run_seconds": self.run_seconds,
            "exit_signal": self.exit_signal,
            "peak_memory_bytes": self.peak_memory_bytes,
        }
        return {name: value for name, value in members.items() if value is not None}
