"""Reading a stream from a cursor: every event that follows it, or a refusal."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from testigo.errors import CursorInvalid, CursorTooOld, Invalid, NotFound, StreamBroken
from testigo.journal.streams import read, streams
from testigo.rules.outcomes import Fail
from testigo.settings import LIMITS
from tests.journal.conftest import Fill
from tests.journal.everything import end, keep_in_full
from tests.world import World


def test_pages_follow_each_other_without_a_gap(world: World, fill: Fill) -> None:
    """Each page begins after the last one's end; the last says that there is no more (spec B-03)."""
    fill(7)
    first = world.db.run(read, "q", limit=3)
    assert [event.sequence for event in first.events] == [1, 2, 3]
    assert (first.floor, first.head, first.next_after, first.more) == (0, 7, 3, True)
    rest = world.db.run(read, "q", after=first.next_after)
    assert [event.sequence for event in rest.events] == [4, 5, 6, 7]
    assert (rest.next_after, rest.more) == (7, False)
    nothing_new = world.db.run(read, "q", after=rest.next_after)
    assert (nothing_new.events, nothing_new.next_after, nothing_new.more) == ((), 7, False)


def test_a_cursor_ahead_of_the_stream_is_refused_and_not_told_that_there_is_nothing_new(
    world: World, fill: Fill
) -> None:
    """After a restore the log is shorter than a cursor: never an empty page for it (field case R91)."""
    fill(3)
    assert world.db.run(read, "q", after=3).events == ()
    for ahead in (4, 900, 2**31, 2**63 - 1, 2**63, 10**30):
        with pytest.raises(CursorInvalid) as refused:
            world.db.run(read, "q", after=ahead)
        assert refused.value.field == "after"


def test_a_cursor_below_the_floor_is_too_old_and_one_at_the_floor_is_not(world: World, fill: Fill) -> None:
    """What was pruned is refused with the floor named; at the floor all that is left follows (spec B-10, P-27)."""
    fill(5)
    world.prune_events("q", up_to=3)
    page = world.db.run(read, "q", after=3)
    assert ([event.sequence for event in page.events], page.floor) == ([4, 5], 3)
    for old in (0, 2):
        with pytest.raises(CursorTooOld) as refused:
            world.db.run(read, "q", after=old)
        assert refused.value.facts == {"floor": 3, "head": 5}


def test_a_stream_that_is_pruned_whole_goes_on_counting(world: World, fill: Fill) -> None:
    """A sequence is never given twice: the next event follows the head, not the rows (spec B-03, P-27)."""
    fill(4)
    world.prune_events("q", up_to=4)
    assert world.db.run(read, "q", after=4).events == ()
    with pytest.raises(CursorTooOld):
        world.db.run(read, "q", after=3)
    fill(1)
    assert [event.sequence for event in world.db.run(read, "q", after=4).events] == [5]


def test_what_is_no_cursor_name_or_size_is_refused_by_its_field(world: World, fill: Fill) -> None:
    """A cursor is a whole number from 0, a name one that a stream can have, a page of 1 to 1,000 events."""
    fill(1)
    wrong: dict[str, list[Any]] = {
        "after": [-1, True, 1.0, "1", None],
        "stream": ["", " q", "a\x00b", "\ud800", "x" * 201, "q#", "q#x", "q#1#2", "q#\u0663", 7],
        "limit": [0, -1, LIMITS.page_max + 1, True, 1.5],
    }
    for field, values in wrong.items():
        for value in values:
            with pytest.raises(Invalid) as refused:
                world.db.run(read, **{"stream": "q", field: value})
            assert refused.value.field == field


def test_a_stream_that_nothing_was_appended_to_is_not_found(world: World) -> None:
    """A stream exists from its first event: an unknown name is no empty stream."""
    with pytest.raises(NotFound):
        world.db.run(read, "nobody-ever-wrote-here")


def test_a_page_of_large_events_ends_early_and_skips_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page ends before the event that would make it too large, and always shows one (spec B-03)."""
    worker = world.worker()
    for _ in range(3):
        world.submit()
        end(worker, worker.take(), Fail("E", "m" * 10_000, permanent=True))
    told = world.db.run(read, "q").events
    monkeypatch.setattr("testigo.journal.streams.LIMITS", replace(LIMITS, page_bytes_max=15_000))
    after, pages = 0, []
    while after < len(told):
        page = world.db.run(read, "q", after=after)
        pages.append(page.events)
        after = page.next_after
    assert [event for events in pages for event in events] == list(told)
    assert 1 < len(pages) <= len(told)


def test_a_stream_with_a_gap_is_not_read_over(world: World, fill: Fill) -> None:
    """Events that were removed otherwise than by pruning stop the reader: it skips nothing (spec B-06, Promise 5)."""
    fill(5)
    world.query("DELETE FROM testigo.event WHERE sequence = 3 RETURNING 1")
    assert [event.sequence for event in world.db.run(read, "q", limit=2).events] == [1, 2]
    for after in (0, 2):
        with pytest.raises(StreamBroken):
            world.db.run(read, "q", after=after)
    world.query("DELETE FROM testigo.event WHERE sequence > 3 RETURNING 1")
    with pytest.raises(StreamBroken):
        world.db.run(read, "q", after=3)


def test_streams_are_listed_by_name_in_pages(world: World, fill: Fill) -> None:
    """Every stream is listed once, in the order of names, with where it stands."""
    for queue, count in (("b", 2), ("a", 1), ("c", 3)):
        fill(count, queue)
    world.prune_events("c", up_to=1)
    first = world.db.run(streams, limit=2)
    assert [(stream.name, stream.floor, stream.head) for stream in first] == [("a", 0, 1), ("b", 0, 2)]
    rest = world.db.run(streams, after=first[-1].name, limit=2)
    assert [(stream.name, stream.floor, stream.head) for stream in rest] == [("c", 1, 3)]
    assert rest[0].appended_at == world.db.run(read, "c", after=1).events[-1].time


def test_a_hot_queues_stripes_are_streams_of_their_own(world: World, fill: Fill) -> None:
    """A queue with stripes has several streams; each is numbered in itself, without a gap (model.md *Events*)."""
    keep_in_full(world, "hot", stripes=4)
    fill(50, "hot")
    found = world.db.run(streams)
    assert {stream.name.partition("#")[0] for stream in found} == {"hot"}
    assert len(found) > 1
    assert sum(stream.head for stream in found) == 50
    for stream in found:
        events = world.db.run(read, stream.name).events
        assert [event.sequence for event in events] == list(range(1, stream.head + 1))
