"""Whatever the engine can say of a job, the panel has words for it, in every language."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from testigo.authority.actions import JobId, new_id
from testigo.authority.explain import Code, Explanation
from testigo.journal.events import Event
from testigo.operations import Verb
from testigo.rules.states import State
from testigo.rules.transitions import EventType
from testigo.web.panel.looks import Looks
from testigo.web.panel.reasons import explained
from testigo.web.panel.timeline import timeline
from testigo.web.panel.verbs import ACTS
from testigo.web.panel.words import LANGUAGES, Words, words_in
from testigo.web.panel.written import Written

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
JOB = JobId(new_id())

FACTS = {
    "reason": "attempts",
    "needs": "template 7",
    "failures": 2,
    "attempts": 3,
    "code": "HTTPError",
    "name": "media",
    "actor": "user:ana",
    "note": "for a deployment",
    "at": NOON.isoformat(),
    "queue": "media",
    "kind": "transcode",
    "queue_sessions": 1,
    "kind_sessions": 1,
    "count": 2,
    "agent": "host-a/17",
    "leased_at": NOON,
    "started_at": NOON,
    "finished_at": NOON,
    "sessions": 1,
}
"""What findings tell, all of it together."""

TOLD = {
    "epoch": 2,
    "state": "permanent_failure",
    "reason": "crashes",
    "code": "HTTPError",
    "losses": 1,
    "crash_limit": 3,
    "failures": 1,
    "attempts": 3,
    "started_at": NOON.isoformat(),
    "run_seconds": 2.5,
    "exit_signal": 9,
    "peak_memory_bytes": 1_000_000,
    "deployment": "4f2c",
    "limitations": ["no thumbnails"],
    "note": "words of somebody",
    "parents": [new_id()],
    "run_at": NOON.isoformat(),
}
"""What events tell, all of it together."""


def pens() -> list[tuple[Words, Written]]:
    """The words and the pen of each language."""
    return [(words_in(language), Written(words_in(language), Looks(), NOON)) for language in LANGUAGES]


@pytest.mark.parametrize("code", list(Code))
def test_every_finding_is_told_in_every_language(code: Code) -> None:
    """With the facts that it has, and differently in each."""
    found = Explanation(JOB, State.READY, code, "as explain says it", FACTS, NOON, ())
    said = [explained(found, t, pen)[0].text for t, pen in pens()]
    assert all(said)
    assert len(set(said)) == len(LANGUAGES)
    assert not any("{" in each for each in said)


@pytest.mark.parametrize("kind", [*EventType, "job.of_a_later_release"])
def test_every_event_is_a_step(kind: str) -> None:
    """What ends a run whose beginning was not told is two of them; a later release's is told by its type."""
    event = Event(new_id(), kind, JOB, NOON, "q", 1, 2, "host-a/17", new_id(), TOLD)
    for t, pen in pens():
        *began, step = timeline([event], None, t, pen)
        assert step.said
        assert "{" not in step.said
        assert len(began) <= 1
        assert timeline([replace(event, data={})], None, t, pen)[-1].said


def test_every_verb_can_be_done_in_the_panel() -> None:
    """And each is asked for in words of its own."""
    assert set(ACTS) == set(Verb)
    assert len({act.one for act in ACTS.values()}) == len(Verb)
