"""What a job went through, step by step, in words (spec P-27).

Each event is a step. Where a queue does not keep events in full, the event that ends a run tells when it
began: that is a step as well, and so is the run that goes on now.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from markupsafe import Markup

from testigo.authority.read import JobView
from testigo.journal.catalogue import CATALOGUE, RunData
from testigo.journal.events import Event
from testigo.rules.states import LEASED, State
from testigo.rules.transitions import EventType
from testigo.web.panel.reasons import why
from testigo.web.panel.words import Words
from testigo.web.panel.written import Written

__all__ = ["Step", "timeline"]

_LOOKS: Mapping[str, tuple[str, str]] = {
    EventType.REQUESTED: ("dot", "quiet"),
    EventType.PROMOTED: ("ring", "quiet"),
    EventType.LEASED: ("held", "run"),
    EventType.STARTED: ("play", "run"),
    EventType.CHECKPOINTED: ("diamond", "quiet"),
    EventType.RELEASED: ("again", "quiet"),
    EventType.LOST: ("warning", "warn"),
    EventType.COMPLETED: ("check", "ok"),
    EventType.DEGRADED: ("partly", "warn"),
    EventType.FAILED: ("cross", "bad"),
    EventType.BLOCKED: ("hand", "warn"),
    EventType.UNBLOCKED: ("ring", "quiet"),
    EventType.CANCEL_REQUESTED: ("stopping", "warn"),
    EventType.CANCELLED: ("off", "quiet"),
    EventType.SUPERSEDED: ("replaced", "quiet"),
    EventType.REDACTED: ("off", "warn"),
}

_SAID: Mapping[str, str] = {
    EventType.REQUESTED: "Submitted by {actor}",
    EventType.PROMOTED: "Ready to run",
    EventType.LEASED: "Run {epoch}: leased to {agent}",
    EventType.STARTED: "Run {epoch}: began at {agent}",
    EventType.CHECKPOINTED: "Run {epoch}: left its place to others, and goes on from its checkpoint",
    EventType.RELEASED: "Run {epoch}: given back by {agent}; nothing is counted against it",
    EventType.LOST: "Run {epoch}: lost, {losses} of {crash_limit} losses; it runs again",
    EventType.COMPLETED: "Run {epoch}: succeeded",
    EventType.DEGRADED: "Run {epoch}: succeeded, with limitations",
    EventType.BLOCKED: "Run {epoch}: blocked, needs something from outside",
    EventType.UNBLOCKED: "Unblocked by {actor}",
    EventType.CANCEL_REQUESTED: "Cancel requested by {actor}; the worker is asked to stop",
    EventType.CANCELLED: "Cancelled by {actor}",
    EventType.SUPERSEDED: "Another job took its place",
    EventType.REDACTED: "Redacted by {actor}",
}

_WORDED = ("message", "note", "needs", "limitations")
"""What people and handlers worded, in the order in which it is shown; a block's reason is theirs as well."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step: when it was, what it was in words, and what is known of it besides.

    `words` is what a handler or somebody said of it. `event` is where it is told; None for a beginning of which
    only an ending told, or nobody yet.
    """

    at: datetime
    icon: str
    tone: str
    said: str | Markup
    words: str | None = None
    known: tuple[str | Markup, ...] = ()
    follows: str | Markup | None = None
    event: Event | None = None


def timeline(events: Sequence[Event], view: JobView | None, t: Words, pen: Written) -> tuple[Step, ...]:
    """The steps of these events, the oldest first; with the run that goes on, where `view` is the job as it stands."""
    steps: list[Step] = []
    begun: set[int] = set()
    for event in events:
        epoch: int = event.data.get("epoch") or 0
        start = _start(event)
        if start is not None and epoch not in begun:
            steps.append(_began(start, epoch, event.data.get("agent") or event.actor, t))
        if start is not None or event.type == EventType.STARTED:
            begun.add(epoch)
        steps.append(_step(event, t, pen))
    if view is not None and view.owner is not None and view.state in LEASED and view.epoch not in begun:
        at = view.owner.started_at or view.owner.leased_at
        steps.append(_began(at, view.epoch, view.owner.agent, t))
    return tuple(steps)


def _start(event: Event) -> datetime | None:
    """When the run began that this event ended, if it tells."""
    model = CATALOGUE.get(event.type)
    at = event.data.get("started_at")
    if model is None or not issubclass(model, RunData) or at is None or event.data.get("epoch") is None:
        return None
    return datetime.fromisoformat(at)


def _began(at: datetime, epoch: int, agent: str, t: Words) -> Step:
    return Step(at, *_LOOKS[EventType.STARTED], t(_SAID[EventType.STARTED], epoch=epoch, agent=agent))


def _step(event: Event, t: Words, pen: Written) -> Step:
    icon, tone = _LOOKS.get(event.type, ("dot", "quiet"))
    return Step(
        at=event.time,
        icon=icon,
        tone=tone,
        said=_said(event, t),
        words=_words(event),
        known=tuple(_known(event.data, t, pen)),
        follows=_follows(event, t, pen),
        event=event,
    )


def _said(event: Event, t: Words) -> str:
    data = event.data
    agent = data.get("agent") or event.actor
    facts = {"actor": event.actor, "agent": agent, "epoch": data.get("epoch") or 0}
    match event.type:
        case EventType.FAILED if data.get("code") and data.get("epoch") is not None:
            return t("Run {epoch}: failed with {code}", code=data["code"], **facts)
        case EventType.FAILED if data.get("epoch") is not None:
            return t("Run {epoch}: failed", **facts)
        case EventType.FAILED:
            return t("Ended without another run")
        case EventType.REQUESTED if data.get("supersedes"):
            return t("Submitted by {actor}, to take the place of {job}", job=data["supersedes"], **facts)
        case EventType.PROMOTED if data.get("state") == State.INPUTS_PENDING:
            return t("Its time has come; it waits for its parents")
        case EventType.LOST:
            return t(_SAID[event.type], losses=data.get("losses"), crash_limit=data.get("crash_limit"), **facts)
    sentence = _SAID.get(event.type)
    return event.type if sentence is None else t(sentence, **facts)


def _words(event: Event) -> str | None:
    found = [event.data.get(name) for name in _WORDED]
    if event.type in (EventType.BLOCKED, EventType.RELEASED):
        found.insert(0, event.data.get("reason"))
    said = [", ".join(map(str, each)) if isinstance(each, list) else str(each) for each in found if each]
    return "\n".join(said) or None


def _known(data: Mapping[str, Any], t: Words, pen: Written) -> Iterator[str | Markup]:
    """Short facts beside the sentence."""
    if data.get("run_seconds") is not None:
        yield t("ran {span}", span=pen.span(data["run_seconds"]))
    if data.get("exit_signal"):
        yield t("killed by signal {signal}", signal=str(data["exit_signal"]))
    if data.get("peak_memory_bytes"):
        yield t("{size} at most", size=pen.size(data["peak_memory_bytes"]))
    if data.get("deployment"):
        yield t("release {deployment}", deployment=data["deployment"])
    if data.get("run_at"):
        yield t("not before {at}", at=pen.when(datetime.fromisoformat(data["run_at"])))
    if data.get("parents"):
        yield t("waits for {n} parent | waits for {n} parents", n=len(data["parents"]))


def _follows(event: Event, t: Words, pen: Written) -> str | Markup | None:
    """What a failure leads to: the next try, or the end and why."""
    if event.type != EventType.FAILED:
        return None
    data = event.data
    if data.get("state") == State.PERMANENT_FAILURE:
        because = why(data.get("reason"), t)
        return t("failed for good, because {why}", why=because) if because else t("failed for good")
    count = {"failures": data.get("failures"), "attempts": data.get("attempts")}
    if data.get("wait_seconds"):
        wait = pen.span(data["wait_seconds"])
        return t("failure {failures} of {attempts}; the next try in {span}", span=wait, **count)
    return t("failure {failures} of {attempts}; the next try at once", **count)
