"""The envelope: an event as CloudEvents 1.0 has it."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta, timezone

from testigo.journal.events import Event
from testigo.journal.streams import read
from tests.world import World


def test_an_event_is_a_cloudevent_in_json(world: World) -> None:
    """What was appended is read in the envelope of CloudEvents 1.0, with our extensions (spec A-02, B-03)."""
    (job,) = world.submit(priority=7)
    (event,) = world.db.run(read, "q").events
    envelope = json.loads(json.dumps(event.to_cloudevent()))
    moment = datetime.fromisoformat(envelope.pop("time"))
    assert abs(datetime.now(UTC) - moment) < timedelta(hours=1)
    assert envelope == {
        "specversion": "1.0",
        "id": event.id,
        "source": "/organisations/default",
        "type": "job.requested",
        "subject": job,
        "datacontenttype": "application/json",
        "dataschema": "urn:testigo:event:job.requested:1",
        "stream": "q",
        "sequence": "0000000000000000001",
        "revision": 1,
        "actor": "tester",
        "action": event.action,
        "data": {"queue": "q", "kind": "work", "priority": 7, "run_at": None},
    }


def test_an_event_can_be_kept_in_a_set(world: World) -> None:
    """Whoever deduplicates keeps events, or their ids, in sets (spec B-06)."""
    world.submit()
    (event,) = world.db.run(read, "q").events
    assert {event, *world.db.run(read, "q").events} == {event}


def test_attributes_keep_the_rules_of_cloudevents() -> None:
    """Names are lower-case letters and digits, numbers fit 32 bits, time is RFC 3339 in UTC (spec A-02).

    The order of sequences as text is the order of events, as CloudEvents' extension of that name asks.
    """
    east = timezone(timedelta(hours=2))
    events = [
        Event("i", "job.ready", "j", datetime(2026, 1, 1, 1, tzinfo=east), "q", n, 2**31 - 1, "a", "b", {})  # type: ignore[arg-type]
        for n in (1, 2, 9, 10, 99, 100, 2**31, 2**63 - 1)
    ]
    envelopes = [event.to_cloudevent() for event in events]
    for name, value in envelopes[0].items():
        assert re.fullmatch(r"[a-z0-9]{1,20}", name)
        assert name == "data" or isinstance(value, str | int)
    assert envelopes[0]["time"] == "2025-12-31T23:00:00Z"
    sequences = [envelope["sequence"] for envelope in envelopes]
    assert sequences == sorted(sequences)
    assert [int(sequence) for sequence in sequences] == [event.sequence for event in events]
