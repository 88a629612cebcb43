"""Why a job does not run, or how it ended, in the words and the language of the panel.

What is so is found by `authority.explain`; its facts are put into sentences here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from testigo.authority.explain import Code, Explanation, Finding
from testigo.web.api.veil import REDACTED
from testigo.web.panel.words import Words
from testigo.web.panel.written import Written

__all__ = ["WHY", "Told", "explained", "why"]

WHY: Mapping[str, str] = {
    "attempts": "its failures have spent its attempts",
    "crashes": "its losses have reached its crash limit",
    "delay": "another wait would go beyond its delay limit",
    "cost": "its cost has reached its limit",
    "start_by": "the time by which it had to start passed before its first run",
    "finish_by": "the time by which it had to finish passed",
    "parent": "a parent of it can never succeed",
    "permanent": "its handler said that trying again cannot help",
}
"""The engine's words for why a job was ended, each as the second half of a sentence."""

_UNFIT: Mapping[str, str] = {
    "start_by": "The time by which it had to start has passed: it will be ended without another run.",
    "finish_by": "The time by which it had to finish has passed: it will be ended without another run.",
    "attempts": "Its failures have spent its attempts: it will be ended without another run.",
    "crashes": "Its losses have reached its crash limit: it will be ended without another run.",
}

_PLAIN: Mapping[Code, str] = {
    Code.UNADMITTED: "It is accepted and not yet admitted; a worker or server does that within a poll.",
    Code.NEXT: "It is the next of its queue: the next free slot takes it.",
    Code.PARENT_FAILED: "It waits for a parent that can never succeed. Retry that parent, or cancel this job.",
    Code.PARENTS: "It waits for {n} parent to end. | It waits for {n} parents to end.",
    Code.BEHIND: "{n} job is before it in the queue {queue}. | {n} jobs are before it in the queue {queue}.",
    Code.LEASED: "{agent} holds it since {leased_at}, and has not started it.",
    Code.RUNNING: "{agent} runs it since {started_at}.",
    Code.CANCELLING: "A cancel was requested; {agent} is told with its next beat and has not answered.",
    Code.OWNER_GONE: "{agent} held it, and that session is over: the next sweep takes it back.",
    Code.SUCCEEDED: "It succeeded at {finished_at}.",
    Code.DEGRADED: "It succeeded at {finished_at}, with limitations.",
    Code.SUPERSEDED: "Another job took its place at {finished_at}.",
}

_TONES: Mapping[Code, str] = {
    Code.FAILED: "bad",
    Code.SUCCEEDED: "ok",
    Code.DEGRADED: "warn",
    Code.RUNNING: "run",
    Code.LEASED: "run",
    Code.NEXT: "quiet",
    Code.CANCELLED: "quiet",
    Code.SUPERSEDED: "quiet",
    Code.BEHIND: "quiet",
    Code.NOT_YET: "quiet",
}


@dataclass(frozen=True, slots=True)
class Told:
    """One thing that is so, in words; `tone` is how much it matters: ok, run, quiet, warn or bad."""

    code: Code
    tone: str
    text: str


def explained(found: Explanation, t: Words, pen: Written) -> tuple[Told, ...]:
    """All that is to be said of how a job stands, the first thing first."""
    findings = found.blockers or (Finding(found.code, found.text, found.facts, found.until),)
    return tuple(Told(each.code, _TONES.get(each.code, "warn"), _said(each, t, pen)) for each in findings)


def why(reason: str | None, t: Words) -> str | None:
    """Why the engine ended a job, as the second half of a sentence; None for what it has no words for."""
    sentence = WHY.get(reason or "")
    return None if sentence is None else t(sentence)


def _said(finding: Finding, t: Words, pen: Written) -> str:
    facts: dict[str, Any] = dict(finding.facts)
    match finding.code:
        case Code.UNFIT:
            return t(_UNFIT[facts["reason"]])
        case Code.BLOCKED if facts["reason"] == REDACTED:
            return t("It is blocked, and needs something from outside. Unblock it once that is there.")
        case Code.BLOCKED if facts["needs"]:
            return t("It is blocked: {reason}. It needs {needs}. Unblock it once that is there.", **facts)
        case Code.BLOCKED:
            return t("It is blocked: {reason}. Unblock it once that is there.", **facts)
        case Code.NOT_YET:
            return t("It waits for the time that was asked for: {until}.", until=_until(finding, pen))
        case Code.RETRY:
            return _retry(finding, facts, t, pen)
        case Code.QUEUE_PAUSED | Code.KIND_PAUSED:
            return _paused(finding.code, facts, t, pen)
        case Code.UNSERVED:
            return _unserved(facts, t)
        case Code.FAILED | Code.CANCELLED:
            return _ended(finding.code, facts, t, pen)
    shown = {name: pen.when(fact) if isinstance(fact, datetime) else fact for name, fact in facts.items()}
    shown |= {"agent": facts.get("agent") or t("a worker that is not known"), "n": facts.get("count", 0)}
    return t(_PLAIN[finding.code], **shown)


def _retry(finding: Finding, facts: Mapping[str, Any], t: Words, pen: Written) -> str:
    tries = {"next": facts["failures"] + 1, "attempts": facts["attempts"], "until": _until(finding, pen)}
    if facts["code"]:
        return t("It failed with {code}, and waits for try {next} of {attempts}: {until}.", code=facts["code"], **tries)
    return t("It came back, and waits for try {next} of {attempts}: {until}.", **tries)


def _until(finding: Finding, pen: Written) -> str:
    return pen.ago(finding.until)


def _paused(code: Code, facts: Mapping[str, Any], t: Words, pen: Written) -> str:
    of = {"name": facts["name"], "at": pen.when(datetime.fromisoformat(facts["at"])), "actor": facts["actor"]}
    if code is Code.QUEUE_PAUSED:
        said = t("The queue {name} is paused since {at} by {actor}.", **of)
    else:
        said = t("The kind {name} is paused since {at} by {actor}.", **of)
    return said + " " + facts["note"] if facts["note"] else said


def _unserved(facts: Mapping[str, Any], t: Words) -> str:
    if not facts["queue_sessions"]:
        return t("No open session serves the queue {queue}: start a worker for it.", queue=facts["queue"])
    if not facts["kind_sessions"]:
        return t("No open session runs jobs of the kind {kind}: start a worker that knows it.", kind=facts["kind"])
    return t(
        "Sessions serve the queue {queue}, and others the kind {kind}, but none both.",
        queue=facts["queue"],
        kind=facts["kind"],
    )


def _ended(code: Code, facts: Mapping[str, Any], t: Words, pen: Written) -> str:
    at, because = pen.when(facts["finished_at"]), why(facts["reason"], t)
    if code is Code.FAILED:
        if because:
            return t("It failed for good at {at}, because {why}.", at=at, why=because)
        return t("It failed for good at {at}.", at=at)
    if because:
        return t("It was cancelled at {at}, because {why}.", at=at, why=because)
    return t("It was cancelled at {at}.", at=at)
