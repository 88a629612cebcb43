"""Retries inside the contract: when a job may run again, and when it may not any more.

A failure costs one of the budget's attempts and waits; a loss (a crash, a dead session) costs one of
its crashes and waits zero. No retry begins beyond attempts, crashes, cost, total delay or `finish_by`
(spec A-14, B-15, C-02, D-04; promise 6). The draw of the jitter and the time are arguments.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, assert_never

from testigo.errors import Invalid
from testigo.rules import fields
from testigo.rules.text import tidy
from testigo.settings import LIMITS

__all__ = [
    "Backoff",
    "Budget",
    "Constant",
    "Exhausted",
    "Exponential",
    "Limit",
    "Listed",
    "Retry",
    "Spent",
    "after_failure",
    "after_loss",
    "backoff_from_json",
    "backoff_to_json",
    "exhausted",
    "wait_seconds",
]


@dataclass(frozen=True, slots=True)
class Constant:
    """The same wait after every failure."""

    seconds: float

    def __post_init__(self) -> None:
        fields.seconds(self.seconds, field="backoff.seconds")


@dataclass(frozen=True, slots=True)
class Listed:
    """One wait for each failure in turn; the last one repeats."""

    seconds: tuple[float, ...]

    def __post_init__(self) -> None:
        waits: object = self.seconds
        if not isinstance(waits, tuple) or not 1 <= len(waits) <= LIMITS.attempts_max:
            raise Invalid(
                "a list of waits is needed", field="backoff.seconds", limit=f"1 to {LIMITS.attempts_max} waits"
            )
        for at, wait in enumerate(self.seconds):
            fields.seconds(wait, field=f"backoff.seconds[{at}]")


@dataclass(frozen=True, slots=True)
class Exponential:
    """A ceiling that doubles from `first_seconds` up to `cap_seconds`.

    With `jitter` (full jitter) the wait is drawn evenly from zero to the ceiling, so that what failed
    together does not return together; without it the wait is the ceiling.
    """

    first_seconds: float
    cap_seconds: float
    jitter: bool = True

    def __post_init__(self) -> None:
        fields.seconds(self.first_seconds, field="backoff.first_seconds")
        fields.seconds(self.cap_seconds, field="backoff.cap_seconds")
        if self.cap_seconds < self.first_seconds:
            raise Invalid(
                "the cap is below the first wait",
                field="backoff.cap_seconds",
                limit=f"at least first_seconds, {self.first_seconds}",
            )
        jitter: object = self.jitter
        if not isinstance(jitter, bool):
            raise Invalid("true or false is needed", field="backoff.jitter")


Backoff = Constant | Listed | Exponential
"""How long to wait after a failure; a closed union."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What a job may spend, from its contract; None is no limit."""

    attempts: int
    """Failures: the one that reaches it is the last."""
    crash_limit: int
    """Losses: the one that reaches it is the last."""
    delay_limit_seconds: float | None = None
    """All waits between runs together."""
    cost_limit: float | None = None
    """A run begins only while the cost is below it."""
    finish_by: datetime | None = None
    """A run begins only before it."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What a job has spent so far, the failure or loss being decided included."""

    failures: int
    losses: int
    delay_seconds: float = 0.0
    cost: float = 0.0


class Limit(StrEnum):
    """The part of the budget that forbids another run."""

    ATTEMPTS = "attempts"
    CRASHES = "crashes"
    COST = "cost"
    DELAY = "delay"
    FINISH_BY = "finish_by"


@dataclass(frozen=True, slots=True)
class Retry:
    """The job runs again after the wait; zero means that it is ready at once."""

    wait_seconds: float


@dataclass(frozen=True, slots=True)
class Exhausted:
    """The job does not run again."""

    reason: Limit


def after_failure(
    budget: Budget,
    spent: Spent,
    backoff: Backoff,
    *,
    draw: float,
    now: datetime,
    asked_seconds: float | None = None,
) -> Retry | Exhausted:
    """What follows a retryable failure that `spent` already counts.

    The wait is the backoff's (`draw` as for `wait_seconds`) or, instead of it, the one that the handler
    asked for. A wait that would pass the delay limit, or would not end before `finish_by`, is exhausted
    and never shortened: a shorter wait would knock again just when backoff or handler say that it is
    too early, and the last failure would be hidden behind one that was certain.
    """
    if (end := exhausted(budget, spent, now=now)) is not None:
        return end
    if asked_seconds is None:
        wait = wait_seconds(backoff, spent.failures, draw)
    else:
        wait = fields.seconds(asked_seconds, field="asked_seconds")
    if budget.delay_limit_seconds is not None and spent.delay_seconds + wait > budget.delay_limit_seconds:
        return Exhausted(Limit.DELAY)
    if budget.finish_by is not None and (budget.finish_by - now).total_seconds() <= wait:
        return Exhausted(Limit.FINISH_BY)
    return Retry(wait)


def after_loss(budget: Budget, spent: Spent, *, now: datetime) -> Retry | Exhausted:
    """What follows a loss that `spent` already counts: a retry at once, for nothing says that waiting
    helps, or the end. A loss burns no attempt (spec model.md, *A job*)."""
    return exhausted(budget, spent, now=now) or Retry(0.0)


def exhausted(budget: Budget, spent: Spent, *, now: datetime) -> Exhausted | None:
    """The first limit, in the order of `Limit`, that forbids a run that would begin now; None if none does."""
    if spent.failures >= budget.attempts:
        return Exhausted(Limit.ATTEMPTS)
    if spent.losses >= budget.crash_limit:
        return Exhausted(Limit.CRASHES)
    if budget.cost_limit is not None and spent.cost >= budget.cost_limit:
        return Exhausted(Limit.COST)
    if budget.delay_limit_seconds is not None and spent.delay_seconds > budget.delay_limit_seconds:
        return Exhausted(Limit.DELAY)
    if budget.finish_by is not None and now >= budget.finish_by:
        return Exhausted(Limit.FINISH_BY)
    return None


def wait_seconds(backoff: Backoff, failures: int, draw: float) -> float:
    """The wait after failure number `failures`, counted from 1; `draw` is a random number in [0, 1)."""
    fields.whole(failures, field="failures", low=1, high=LIMITS.attempts_max)
    if not 0.0 <= draw < 1.0:
        raise Invalid("the draw is out of range", field="draw", limit="0 up to, but not including, 1")
    match backoff:
        case Constant(seconds):
            return seconds
        case Listed(listed):
            return listed[min(failures, len(listed)) - 1]
        case Exponential(first_seconds, cap_seconds, jitter):
            ceiling = min(cap_seconds, first_seconds * 2.0 ** (failures - 1))
            return ceiling * draw if jitter else ceiling
    assert_never(backoff)


def backoff_to_json(backoff: Backoff) -> dict[str, object]:
    """The backoff as it is stored in a contract; `backoff_from_json` reads it back, equal."""
    match backoff:
        case Constant(seconds):
            return {"type": "constant", "seconds": seconds}
        case Listed(listed):
            return {"type": "listed", "seconds": list(listed)}
        case Exponential(first_seconds, cap_seconds, jitter):
            return {
                "type": "exponential",
                "first_seconds": first_seconds,
                "cap_seconds": cap_seconds,
                "jitter": jitter,
            }
    assert_never(backoff)


def backoff_from_json(value: object) -> Backoff:
    """A backoff from JSON; raises `Invalid` for an unknown type, and for a member that is missing, unknown,
    of the wrong type or out of range."""
    if not isinstance(value, dict):
        raise Invalid("an object is needed", field="backoff")
    members = dict(value)
    match members.pop("type", None):
        case "constant":
            return Constant(*_members(members, ("seconds",)))
        case "listed":
            (listed,) = _members(members, ("seconds",))
            return Listed(tuple(listed) if isinstance(listed, list) else listed)
        case "exponential":
            first_seconds, cap_seconds, jitter = _members(members, ("first_seconds", "cap_seconds", "jitter"))
            return Exponential(first_seconds, cap_seconds, jitter)
    raise Invalid("the type of backoff is not known", field="backoff.type", limit="constant, listed or exponential")


def _members(members: dict[object, Any], names: tuple[str, ...]) -> list[Any]:
    """The values of exactly these members, in this order."""
    for name in names:
        if name not in members:
            raise Invalid("the member is missing", field=f"backoff.{name}")
    for unknown in members.keys() - set(names):
        raise Invalid(
            f"a member is not known: {tidy(unknown, bytes_max=64)!r}", field="backoff", limit=", ".join(names)
        )
    return [members[name] for name in names]
