"""Pruning: only ever a prefix, and always told."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from testigo.errors import CursorInvalid, CursorTooOld, Invalid, NotFound
from testigo.journal.prune import PrunedEvents, prune_events
from testigo.journal.streams import read, streams
from tests.invariants import INVARIANTS
from tests.journal.conftest import Fill
from tests.world import World

NUMBERED = INVARIANTS[0]
assert "numbered from its floor to its head" in NUMBERED.promise


def test_a_prune_removes_at_most_its_limit_and_says_whether_there_is_more(world: World, fill: Fill) -> None:
    """Each transaction removes a bounded prefix and raises the floor to its end (spec P-27, P-10)."""
    fill(7)
    assert world.db.run(prune_events, "q", up_to=5, limit=2) == PrunedEvents(2, 2, more=True)
    assert world.db.run(prune_events, "q", up_to=5, limit=2) == PrunedEvents(2, 4, more=True)
    assert world.db.run(prune_events, "q", up_to=5, limit=2) == PrunedEvents(1, 5, more=False)
    assert world.db.run(prune_events, "q", up_to=5, limit=2) == PrunedEvents(0, 5, more=False)
    assert world.db.run(prune_events, "q", up_to=900, limit=2) == PrunedEvents(2, 7, more=False)
    assert world.query(NUMBERED.breakers) == []


def test_events_are_pruned_by_age_from_the_oldest(world: World, fill: Fill) -> None:
    """What was appended before the date goes, and nothing younger does (spec P-27)."""
    fill(2)
    fill(3)
    told = world.db.run(read, "q").events
    assert world.db.run(prune_events, "q", older_than=told[0].time) == PrunedEvents(0, 0, more=False)
    assert world.db.run(prune_events, "q", older_than=told[2].time) == PrunedEvents(2, 2, more=False)
    future = datetime.now(UTC) + timedelta(days=1)
    assert world.db.run(prune_events, "q", older_than=future, up_to=4) == PrunedEvents(2, 4, more=False)
    assert world.db.run(prune_events, "q", older_than=future) == PrunedEvents(1, 5, more=False)


def test_a_prune_is_for_a_stream_that_exists_and_with_a_bound(world: World, fill: Fill) -> None:
    """Without a bound nothing is pruned; a wrong one is refused by its field."""
    fill(1)
    with pytest.raises(NotFound):
        world.db.run(prune_events, "nothing", up_to=1)
    with pytest.raises(CursorInvalid):
        world.db.run(prune_events, "q", up_to=-1)
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("older_than", {}),
        ("older_than", {"older_than": datetime(2026, 1, 1)}),  # noqa: DTZ001 - the fault that is looked for
        ("limit", {"up_to": 1, "limit": 0}),
    ]
    for field, given in wrong:
        with pytest.raises(Invalid) as refused:
            world.db.run(prune_events, "q", **given)
        assert refused.value.field == field
    assert len(world.db.run(read, "q").events) == 1


def test_a_prune_that_is_undone_has_removed_nothing(world: World, fill: Fill) -> None:
    """Rows and floor go together or not at all (spec P-27)."""
    fill(3)

    def undone(c: Any) -> None:
        prune_events(c, "q", up_to=2)
        raise Invalid("the caller thought better of it")

    with pytest.raises(Invalid, match="thought better"):
        world.db.run(undone)
    assert len(world.db.run(read, "q").events) == 3


def test_readers_writers_and_prunes_meet_without_a_gap(world: World, fill: Fill) -> None:
    """A reader that a prune overtakes is told so; no page that it is given has a hole (spec B-10, P-27)."""
    fill(1)
    written = threading.Event()

    def write() -> None:
        for _ in range(40):
            fill(3)
        written.set()

    def prune() -> int:
        removed = 0
        while not written.is_set():
            (stream,) = world.db.run(streams)
            removed += world.db.run(prune_events, "q", up_to=max(0, stream.head - 2), limit=4).removed
        return removed

    def follow() -> list[int]:
        after, got = 0, list[int]()
        while True:
            last_look = written.is_set()
            try:
                page = world.db.run(read, "q", after=after, limit=2)
            except CursorTooOld as overtaken:
                after = overtaken.facts["floor"]
                continue
            got += [event.sequence for event in page.events]
            after = page.next_after
            if last_look and not page.more:
                return got

    with ThreadPoolExecutor(5) as pool:
        readers = [pool.submit(follow) for _ in range(2)]
        pruners = [pool.submit(prune) for _ in range(2)]
        write()
        for reader in readers:
            got = reader.result()
            assert got == sorted(set(got))
            assert got[-1] == 121
        assert sum(pruner.result() for pruner in pruners) > 0
    assert world.query(NUMBERED.breakers) == []
