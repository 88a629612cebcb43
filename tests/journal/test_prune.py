"""Pruning: only ever a prefix, and always told."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import psycopg
import pytest

from testigo.authority.prune import Pruned
from testigo.errors import CursorTooOld, Invalid
from testigo.journal.prune import prune_events
from testigo.journal.streams import read, streams
from testigo.store.sql import Statement
from tests.invariants import INVARIANTS
from tests.journal.conftest import Fill
from tests.races import in_line
from tests.world import World

NUMBERED = INVARIANTS[0]
PRUNED_AT_ONCE = 4
APPENDS = Statement("UPDATE testigo.stream SET head = head WHERE name = 'q' RETURNING 1")
AGE = """
    UPDATE testigo.event
    SET at = now() - :days * interval '1 day'
    WHERE stream = 'q' AND sequence = CAST(:sequence AS bigint)
    RETURNING 1
"""
assert "numbered from its floor to its head" in NUMBERED.promise


def floors(world: World) -> dict[str, tuple[int, int]]:
    """Where each stream begins and ends."""
    return {stream.name: (stream.floor, stream.head) for stream in world.db.run(streams)}


def test_a_prune_removes_at_most_its_limit_and_says_whether_there_is_more(world: World, fill: Fill) -> None:
    """Each transaction removes a bounded prefix and raises the floor to its end (spec P-27, P-10)."""
    fill(7)
    world.age("q", 5)
    for pruned, floor, more in ((2, 2, True), (2, 4, True), (1, 5, False), (0, 5, False)):
        assert world.db.run(prune_events, limit=2) == Pruned(pruned, more)
        assert floors(world) == {"q": (floor, 7)}
    assert world.query(NUMBERED.breakers) == []


def test_events_go_by_their_age(world: World, fill: Fill) -> None:
    """What is kept for so many days stays for them (spec P-27)."""
    fill(3)
    for sequence, days in ((1, 40), (2, 20)):
        world.query(AGE, sequence=sequence, days=days)
    assert world.db.run(prune_events) == Pruned(1, more=False)
    assert world.db.run(prune_events) == Pruned(0, more=False)
    assert world.db.run(prune_events, older_than_days=10) == Pruned(1, more=False)
    assert world.db.run(prune_events, older_than_days=0) == Pruned(1, more=False)
    assert floors(world) == {"q": (3, 3)}


def test_streams_are_pruned_together_and_a_large_one_keeps_none_waiting(world: World, fill: Fill) -> None:
    """Each has its share of a transaction, and those that are young are left alone."""
    for queue, count in (("a", 9), ("b", 2), ("c", 1), ("young", 4)):
        fill(count, queue)
        if queue != "young":
            world.age(queue, count)
    assert world.db.run(prune_events, limit=6) == Pruned(5, more=True)
    assert floors(world) == {"a": (2, 9), "b": (2, 2), "c": (1, 1), "young": (0, 4)}
    assert world.db.run(prune_events, limit=6) == Pruned(6, more=True)
    assert world.db.run(prune_events, limit=6) == Pruned(1, more=False)
    assert world.query(NUMBERED.breakers) == []


def test_more_streams_than_rows_are_pruned_in_turn(world: World, fill: Fill) -> None:
    """One event of each at a time."""
    for n in range(5):
        fill(1, f"q{n}")
    answers = [world.db.run(prune_events, older_than_days=0, limit=2) for _ in range(4)]
    assert answers == [Pruned(2, more=True), Pruned(2, more=True), Pruned(1, more=False), Pruned(0, more=False)]


@pytest.mark.parametrize(("field", "given"), [("older_than_days", -1), ("limit", 0), ("limit", 10_001)])
def test_a_prune_without_bounds_is_refused(world: World, fill: Fill, field: str, given: int) -> None:
    """By its field, and nothing is removed."""
    fill(1)
    with pytest.raises(Invalid) as refused:
        world.db.run(prune_events, **{field: given})
    assert refused.value.field == field
    assert floors(world) == {"q": (0, 1)}


def test_a_prune_that_is_undone_has_removed_nothing(world: World, fill: Fill) -> None:
    """Rows and floor go together or not at all (spec P-27)."""
    fill(3)

    def undone(c: Any) -> None:
        assert prune_events(c, older_than_days=0).pruned == 3
        raise Invalid("the caller thought better of it")

    with pytest.raises(Invalid, match="thought better"):
        world.db.run(undone)
    assert len(world.db.run(read, "q").events) == 3


def test_a_stream_that_another_prunes_is_left_to_it(world: World, fill: Fill, database_url: str) -> None:
    """Nobody waits, and the others are pruned."""
    fill(2)
    fill(2, "other")
    with psycopg.connect(database_url) as another:
        another.execute("SELECT 1 FROM testigo.event WHERE stream = 'q' AND sequence = 1 FOR UPDATE")
        assert world.db.run(prune_events, older_than_days=0) == Pruned(2, more=False)
        assert floors(world) == {"other": (2, 2), "q": (0, 2)}
    assert world.db.run(prune_events, older_than_days=0) == Pruned(2, more=False)


def test_who_appends_is_waited_for_last_and_the_sequence_goes_on(world: World, fill: Fill) -> None:
    """The head is needed for the floor alone (spec P-08)."""
    fill(2)
    _, pruned = in_line(world.db, APPENDS.rows, partial(world.db.run, prune_events, older_than_days=0))
    assert pruned == Pruned(2, more=False)
    fill(1)
    assert floors(world) == {"q": (2, 3)}
    assert world.query(NUMBERED.breakers) == []


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
            if stream.head - stream.floor > 2 * PRUNED_AT_ONCE:  # by whoever else prunes as well
                removed += world.db.run(prune_events, older_than_days=0, limit=PRUNED_AT_ONCE).pruned
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
