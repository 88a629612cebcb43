"""What is said of a job that somebody owns, or that has ended."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from testigo.authority.explain.findings import Code, Finding, in_utc
from testigo.authority.explain.seen import Seen
from testigo.rules.states import State

__all__ = ["ended", "owned", "unfinished"]

_WHY = {
    "attempts": "its failures have spent its attempts ({failures} of {attempts})",
    "crashes": "its losses have reached its crash limit ({losses} of {crash_limit})",
    "delay": "another wait would go beyond its delay limit",
    "cost": "its cost has reached its limit",
    "start_by": "the time by which it had to start passed before its first run",
    "finish_by": "the time by which it had to finish passed",
    "parent": "a parent of it can never succeed",
    "permanent": "its handler said that trying again cannot help",
}

_ENDED = {
    State.SUCCEEDED: Code.SUCCEEDED,
    State.SUCCEEDED_DEGRADED: Code.DEGRADED,
    State.PERMANENT_FAILURE: Code.FAILED,
    State.CANCELLED: Code.CANCELLED,
    State.SUPERSEDED: Code.SUPERSEDED,
}


def owned(seen: Seen) -> Finding:
    """What is said of a job that somebody holds."""
    who = _who(seen)
    facts = _facts(seen)
    if seen.state is State.LEASED:
        return Finding(Code.LEASED, f"{who} holds it since {_at(seen.leased_at)}, and has not started it.", facts)
    return Finding(Code.RUNNING, f"{who} runs it since {_at(seen.started_at or seen.leased_at)}.", facts)


def unfinished(seen: Seen) -> Iterator[Finding]:
    """What must happen before a job that is owned can go on."""
    session = seen.session or {"session_state": "unknown"}
    if session["session_state"] not in ("open", "draining"):
        text = f"{_who(seen)} held it, and that session is {session['session_state']}: the next sweep takes it back."
        yield Finding(Code.OWNER_GONE, text, _facts(seen))
    elif seen.state is State.CANCELLING:
        text = f"A cancel was requested; {_who(seen)} is told with its next beat and has not answered."
        yield Finding(Code.CANCELLING, text, _facts(seen))


def ended(seen: Seen) -> Finding:
    """How a job ended, and why."""
    position = seen.position
    facts: dict[str, object] = {
        "reason": seen.reason,
        "finished_at": seen.finished_at,
        "failures": position.failures,
        "losses": position.losses,
        "successor": seen.successor,
    }
    if seen.error:
        facts |= {"code": seen.error.get("code"), "message": seen.error.get("message")}
    if seen.limitations:
        facts["limitations"] = list(seen.limitations)
    after = f" The job {seen.successor} took its place." if seen.successor else ""
    return Finding(_ENDED[seen.state], f"It {_end(seen)} at {_at(seen.finished_at)}.{after}", facts)


def _end(seen: Seen) -> str:
    position = seen.position
    why = _WHY.get(seen.reason or "", "").format(
        failures=position.failures,
        attempts=position.attempts,
        losses=position.losses,
        crash_limit=position.crash_limit,
    )
    because = f", because {why}," if why else ""
    match seen.state:
        case State.SUCCEEDED:
            return "succeeded"
        case State.SUCCEEDED_DEGRADED:
            return f"succeeded with limitations ({', '.join(seen.limitations)})"
        case State.PERMANENT_FAILURE:
            return f"failed for good{because}"
        case State.CANCELLED:
            return f"was cancelled{because}"
        case _:
            return "was superseded"


def _who(seen: Seen) -> str:
    return f"The agent {seen.session['agent']!r}" if seen.session else "An agent that is not known"


def _facts(seen: Seen) -> dict[str, object]:
    facts = {"epoch": seen.position.runs, "leased_at": seen.leased_at, "started_at": seen.started_at}
    return facts | {"timeout_seconds": seen.timeout_seconds, **(seen.session or {})}


def _at(moment: datetime | None) -> str:
    return "a time that is not known" if moment is None else in_utc(moment)
