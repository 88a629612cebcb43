"""Following a stream: each event once, in order, whatever becomes of the listener."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import replace
from itertools import islice
from typing import Any

import psycopg
import pytest
from sqlalchemy import make_url

from testigo.authority.submissions import NewJob
from testigo.errors import CursorInvalid, CursorTooOld, Invalid, NotFound
from testigo.journal.events import Event
from testigo.journal.streams import read
from testigo.journal.tail import tail, tail_async
from testigo.settings import STORE
from testigo.store.database import AsyncDatabase, Database
from testigo.store.hear import Listener
from tests.journal.conftest import Fill
from tests.journal.everything import keep_in_full
from tests.services import pgbouncer
from tests.store.day import until
from tests.wire import wire
from tests.world import World

FOREVER_SECONDS = 86_400.0
"""A poll that never comes: what arrives was told by a wake-up."""
SELDOM_SECONDS = 0.05
"""A poll that does not make a test wait."""
_END_LISTENERS = """
    SELECT count(pg_terminate_backend(pid))
    FROM pg_stat_activity
    WHERE datname = current_database() AND query LIKE 'LISTEN%'
"""


def take(events: Iterator[Event], count: int) -> list[int]:
    """The sequences of the next events, as many as asked for."""
    return [event.sequence for event in islice(events, count)]


def test_a_tail_goes_on_where_it_began_and_delivers_each_event_once(world: World, fill: Fill) -> None:
    """What was there comes first and what is appended follows, in order (spec B-03, B-06)."""
    fill(3)
    events = tail(world.db, "q", after=1, poll_seconds=SELDOM_SECONDS)
    assert take(events, 2) == [2, 3]
    fill(2)
    assert take(events, 1) == [4]
    fill(1)
    assert take(events, 2) == [5, 6]


def test_a_wake_up_is_enough(world: World, fill: Fill) -> None:
    """Where wake-ups arrive nobody waits for the next poll, for a hot queue's stripes neither (spec P-13)."""
    keep_in_full(world, "hot", stripes=2)
    fill(20, "hot")
    heads = {stream: world.db.run(read, stream).head for stream in ("hot#0", "hot#1")}
    with ThreadPoolExecutor(2) as pool:
        ends = [
            pool.submit(take, tail(world.db, stream, after=head, poll_seconds=FOREVER_SECONDS), 1)
            for stream, head in heads.items()
        ]
        while not all(end.done() for end in ends):
            fill(10, "hot")
    assert [end.result() for end in ends] == [[head + 1] for head in heads.values()]


def test_a_stream_is_waited_for_until_its_first_event(world: World, fill: Fill) -> None:
    """A consumer may be there before the first job; but a cursor into a stream that is not there is refused."""
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(take, tail(world.db, "q", poll_seconds=SELDOM_SECONDS), 1)
        assert next(tail(world.db, "other", stop=already_set()), None) is None
        fill(1)
        assert first.result() == [1]
    with pytest.raises(NotFound):
        next(tail(world.db, "nothing", after=1))


def already_set() -> threading.Event:
    """A stop that was asked for before the beginning."""
    stop = threading.Event()
    stop.set()
    return stop


def test_a_tail_stops_when_it_is_told(world: World, fill: Fill) -> None:
    """A stop ends the wait for a poll that is a day away, and comes before the next event of a page."""
    fill(3)
    stop = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        events = tail(world.db, "q", stop=stop, poll_seconds=FOREVER_SECONDS)
        assert take(events, 3) == [1, 2, 3]
        waiting = pool.submit(next, events, None)
        stop.set()
        assert waiting.result() is None
    stop.clear()
    events = tail(world.db, "q", stop=stop)
    assert take(events, 1) == [1]
    stop.set()
    assert take(events, 1) == []


def test_a_tail_is_refused_at_once_what_it_cannot_follow(world: World, fill: Fill) -> None:
    """A wrong name, cursor or poll is refused by the call itself; what it cannot read, by its first look."""
    fill(3)
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("stream", {"stream": "a\x00"}),
        ("after", {"after": -1}),
        ("poll_seconds", {"poll_seconds": 0}),
    ]
    doors: list[Any] = [tail, tail_async]
    for field, given in wrong:
        for follow in doors:
            with pytest.raises(Invalid) as refused:
                follow(world.db, **{"stream": "q", **given})
            assert refused.value.field == field
    world.prune_events("q", up_to=2)
    with pytest.raises(CursorTooOld):
        next(tail(world.db, "q", after=1))
    with pytest.raises(CursorInvalid):
        next(tail(world.db, "q", after=4))


def test_a_prune_that_overtakes_a_tail_ends_it_with_a_word(world: World, fill: Fill) -> None:
    """A tail never goes on over what it did not see (spec P-27, Promise 5)."""
    fill(1)
    events = tail(world.db, "q", poll_seconds=SELDOM_SECONDS)
    assert take(events, 1) == [1]
    fill(2)
    world.prune_events("q", up_to=2)
    with pytest.raises(CursorTooOld) as overtaken:
        next(events)
    assert overtaken.value.facts["floor"] == 2


def test_a_tail_misses_nothing_while_its_listener_is_killed_again_and_again(
    world: World, fill: Fill, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The listener's connection dies under writers; every event comes once and in order (field case R89, Promise 5)."""
    monkeypatch.setattr("testigo.store.hear.STORE", replace(STORE, poll_seconds=0.01))
    killed_often, done = threading.Event(), threading.Event()

    def follow() -> list[int]:
        got = []
        try:
            for event in tail(world.db, "q", poll_seconds=SELDOM_SECONDS):
                got.append(event.sequence)
                if killed_often.is_set():
                    break
        finally:
            done.set()
        return got

    def write() -> None:
        while not done.is_set():
            fill(2)

    with ThreadPoolExecutor(4) as pool, psycopg.connect(database_url, autocommit=True) as other:
        following = pool.submit(follow)
        writing = [pool.submit(write) for _ in range(2)]
        killed = 0
        while killed < 5 and not following.done():
            (ended,) = other.execute(_END_LISTENERS).fetchone() or (0,)
            killed += ended
        killed_often.set()
        got = following.result()
        for writer in writing:
            writer.result()
    assert got == list(range(1, len(got) + 1))
    assert killed >= 5


def test_a_tail_whose_listener_hears_nothing_finds_everything_by_polling(
    world: World, fill: Fill, database_url: str
) -> None:
    """The listening socket goes silent without a reset; that costs time and no event (field case R66)."""
    with wire(database_url) as (laid, url):
        listener = world.db._listener = Listener(make_url(url), "testigo")
        until(lambda: listener.hears, "the listener")
        laid.fall_silent()
        events = tail(world.db, "q", poll_seconds=SELDOM_SECONDS)
        for sequence in range(1, 6):
            fill(1)
            assert take(events, 1) == [sequence]
        assert world.db.listener is listener
        world.db.close()


@pytest.mark.needs_pgbouncer
def test_a_tail_works_behind_a_transaction_pooler_by_polling(server_url: str, database_url: str) -> None:
    """No session state and no LISTEN: tails and writers share three server connections (field case R67)."""
    with pgbouncer(server_url) as front:
        url = make_url(front.url).set(database=make_url(database_url).database)
        with Database(url.render_as_string(hide_password=False)) as db, ThreadPoolExecutor(4) as pool:
            follow = [tail(db, "q", poll_seconds=SELDOM_SECONDS) for _ in range(4)]
            ends = [pool.submit(take, events, 50) for events in follow]
            world = World(db)
            for _ in range(10):
                world.submit(*(NewJob("work", queue="q") for _ in range(5)))
            assert [end.result() for end in ends] == [list(range(1, 51))] * 4
            assert not db.listener.hears


def test_asynchronous_callers_follow_as_well_and_end_by_cancelling(world: World, fill: Fill, database_url: str) -> None:
    """The same events in the same order; a task that is cancelled while it waits ends at once (spec B-03)."""

    async def main() -> list[int]:
        async with AsyncDatabase(database_url) as db, aclosing(follow(db)) as events:
            got = [(await anext(events)).sequence for _ in range(3)]
            waiting = asyncio.create_task(anext(events))
            await asyncio.to_thread(fill, 2)
            got.append((await waiting).sequence)
            got.append((await anext(events)).sequence)
            waiting = asyncio.create_task(anext(events))
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            return got

    def follow(db: AsyncDatabase) -> Any:
        return tail_async(db, "q", poll_seconds=FOREVER_SECONDS)

    fill(3)
    assert asyncio.run(main()) == [1, 2, 3, 4, 5]
