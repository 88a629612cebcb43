"""How a run may end, as its holder reports it (spec A-05, A-13, A-14, B-13, B-14).

Each outcome is a value. Documents are exact JSON text; text for people is tidied by whoever makes
the outcome, so that recording a failure never fails.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

from testigo.rules import fields
from testigo.rules.documents import Document
from testigo.settings import LIMITS

__all__ = ["Block", "Degrade", "Fail", "Lose", "Outcome", "Release", "RunFacts", "Succeed", "Yield", "is_result"]


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


@dataclass(frozen=True, slots=True)
class Lose:
    """What ran the job is gone without a word of it: a loss, as if its holder were gone (spec P-24, model.md).

    `code` and `message` tell people and machines how it was found, such as by an exit signal.
    """

    code: str
    message: str


Outcome = Succeed | Degrade | Fail | Block | Yield | Release | Lose


def is_result(outcome: Outcome) -> bool:
    """Whether a run came to something, which is evidence though it comes too late (spec B-16).

    That it was lost, or given back with nothing, is none.
    """
    match outcome:
        case Release(checkpoint=checkpoint):
            return checkpoint is not None
        case Lose():
            return False
        case _:
            return True


class RunFacts(NamedTuple):
    """What is known of a run besides its outcome: the event that ends it tells it (spec P-27).

    `deployment` names the release of the code that ran. The run began at `started_at`, by its
    holder's clock, and took `run_seconds` by its monotonic one. `exit_signal` is what killed the
    process that ran it. What is not known is None.
    """

    deployment: str | None = None
    started_at: datetime | None = None
    run_seconds: float | None = None
    exit_signal: int | None = None
    peak_memory_bytes: int | None = None

    def check(self) -> None:
        """Raise `Invalid` for what no event could tell. What a keeper knows of every run is told apart at once."""
        deployment, at, seconds, signal, peak = self
        if type(deployment) is str:
            _check_deployment(deployment)
        elif deployment is not None:
            fields.name(deployment, field="facts.deployment")
        if at is not None and not (type(at) is datetime and at.tzinfo is UTC and 1970 <= at.year <= 9998):
            fields.moment(at, field="facts.started_at")
        if seconds is not None and not (type(seconds) is float and 0 <= seconds <= LIMITS.seconds_max):
            fields.seconds(seconds, field="facts.run_seconds")
        if peak is not None and not (type(peak) is int and 0 <= peak < 2**53):
            fields.whole(peak, field="facts.peak_memory_bytes", low=0, high=2**53 - 1)
        if signal is not None:
            fields.whole(signal, field="facts.exit_signal", low=1, high=127)

    def text(self) -> str:
        """What is known, as members of a JSON object, each after a comma.

        It is written out here because an encoder takes four times as long, for every run there is.
        """
        deployment, at, seconds, signal, peak = self
        text = "" if deployment is None else f',"deployment":{_quoted(deployment)}'
        if at is not None:
            text += f',"started_at":"{(at if at.tzinfo is UTC else at.astimezone(UTC)).isoformat()}"'
        if seconds is not None:
            text += f',"run_seconds":{float(seconds)!r}'
        if signal is not None:
            text += f',"exit_signal":{int(signal)}'
        if peak is not None:
            text += f',"peak_memory_bytes":{int(peak)}'
        return text

    def told(self) -> dict[str, object]:
        """What is known, as the members of a JSON object."""
        members: dict[str, object] = json.loads(f"{{{self.text()[1:]}}}")
        return members


@lru_cache(maxsize=64)
def _check_deployment(name: str) -> None:
    fields.name(name, field="facts.deployment")


@lru_cache(maxsize=64)
def _quoted(name: str) -> str:
    return json.dumps(name)
