"""What somebody sees who may look at jobs and not into them: names, states, counts and times, and no words.

Payloads, checkpoints, outputs and log lines are behind the right `documents`, and with them whatever a handler
worded: messages, details, notes of progress, what a blocked job needs. Names stay: codes, tags, limitations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from testigo.authority.explain import Code, Explanation, Finding
from testigo.authority.read import JobSummary, JobView, LateResult
from testigo.journal.catalogue import CATALOGUE, RunData
from testigo.journal.events import Event
from testigo.journal.history import Run
from testigo.rules.states import State
from testigo.rules.transitions import EventType

__all__ = [
    "REDACTED",
    "veiled_event",
    "veiled_explanation",
    "veiled_job",
    "veiled_late",
    "veiled_run",
    "veiled_summary",
]

REDACTED = "redacted"
"""What stands in the place of words that are not shown."""

_WORDED = frozenset({"message", "needs"})
_BLOCKED = "It is blocked, and needs something from outside. Unblock it once that is there."


def veiled_summary(job: JobSummary) -> JobSummary:
    """A row of a listing."""
    return replace(job, reason=_reason(job.state, job.reason), error_message=None)


def veiled_job(job: JobView) -> JobView:
    """A job as it stands."""
    error = None if job.error is None else {"code": job.error.get("code")}
    progress = None if job.progress is None else replace(job.progress, note="")
    return replace(job, reason=_reason(job.state, job.reason), error=error, documents=None, progress=progress)


def veiled_event(event: Event) -> Event:
    """An event; one of a type that this release does not know tells its type alone."""
    model = CATALOGUE.get(event.type)
    return replace(event, data={} if model is None else _veiled(event.type, event.data))


def veiled_run(run: Run) -> Run:
    """A run, with the event that ended it."""
    if run.ending is None or run.how is None:
        return run
    words = _words(run.how) & run.ending.model_fields_set
    told = {name: REDACTED for name in words if getattr(run.ending, name) is not None}
    return replace(run, ending=run.ending.model_copy(update=told))


def veiled_explanation(found: Explanation) -> Explanation:
    """Why a job does not run."""
    first = _finding(Finding(found.code, found.text, found.facts, found.until))
    blockers = tuple(_finding(each) for each in found.blockers)
    return replace(found, text=first.text, facts=first.facts, blockers=blockers)


def veiled_late(late: LateResult) -> LateResult:
    """A late result."""
    return replace(late, note=None, document=None)


def _finding(finding: Finding) -> Finding:
    hidden = _WORDED | {"reason"} if finding.code is Code.BLOCKED else _WORDED
    facts = {name: REDACTED if name in hidden and value else value for name, value in finding.facts.items()}
    return replace(finding, facts=facts, text=_BLOCKED if finding.code is Code.BLOCKED else finding.text)


def _veiled(event_type: str, data: Mapping[str, Any]) -> dict[str, Any]:
    words = _words(event_type)
    return {name: REDACTED if name in words and value is not None else value for name, value in data.items()}


def _words(event_type: str) -> frozenset[str]:
    """The members of such an event that a handler or its holder worded."""
    words = _WORDED
    if issubclass(CATALOGUE[event_type], RunData):
        words |= {"note"}
    if event_type in (EventType.BLOCKED, EventType.RELEASED):
        words |= {"reason"}
    return words


def _reason(state: State, reason: str | None) -> str | None:
    return REDACTED if reason is not None and state is State.BLOCKED_BY_QUALITY else reason
