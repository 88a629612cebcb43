"""Promise 5: a stream has no gap, no duplicate and no reordering, and whoever reads it skips nothing."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise

import psycopg
from sqlalchemy import Connection

from testigo.authority.actions import Action, JobId
from testigo.authority.admit import admit
from testigo.authority.pause import configure_queue
from testigo.authority.submissions import NewJob
from testigo.authority.submit import submit_many, submit_within
from testigo.errors import NotFound
from testigo.journal.events import Event
from testigo.journal.streams import Page, read, streams
from testigo.journal.tail import tail
from testigo.store.command import AUTOCOMMIT_OPTION
from testigo.store.database import Database
from tests.guarantees.conftest import Rounds
from tests.guarantees.writers import Writer
from tests.races import in_line
from tests.world import World

QUEUES = ("plain", "full", "hot")
WRITERS = 16


def appended(world: World, stream: str = "q") -> list[Event]:
    """All events of a stream, as they stand now."""
    return list(world.db.run(read, stream, limit=1000).events)


def subjects(events: list[Event]) -> list[JobId]:
    """The jobs that these events tell of."""
    return [event.subject for event in events]


def append(c: Connection, job: NewJob) -> None:
    """Append to a job's stream inside a transaction that goes on."""
    submit_within(c, [job], action=Action("first"))
    admit(c)


def test_an_append_that_commits_late_has_its_place_and_nobody_reads_past_it(world: World) -> None:
    """Who appends next waits for who appended first; until both have committed a reader sees neither (R89)."""
    early, late = NewJob("work", queue="q"), NewJob("work", queue="q")
    (before,) = world.submit()
    _, _, page = in_line(
        world.db,
        lambda c: append(c, early),
        lambda: world.db.run(submit_many, [late], action=Action("second")),
        lambda: world.db.run(read, "q"),
    )
    assert isinstance(page, Page)
    assert (subjects(list(page.events)), page.head) == ([before], 1)
    events = appended(world)
    assert subjects(events) == [before, early.id, late.id]
    assert [event.sequence for event in events] == [1, 2, 3]


def test_time_never_goes_backwards_along_a_stream(world: World) -> None:
    """An append that waited for another one is not dated before it, although it began before (spec P-27)."""
    one, two, waiting = (NewJob("work", queue="q") for _ in range(3))
    connections: list[Connection] = []

    def begin(c: Connection) -> None:
        connections.append(c)
        append(c, one)

    in_line(
        world.db,
        begin,
        lambda: world.db.run(submit_many, [waiting], action=Action("second")),
        lambda: append(connections[0], two),
    )
    events = appended(world)
    assert subjects(events) == [one.id, two.id, waiting.id]
    assert all(earlier.time <= later.time for earlier, later in pairwise(events))


def test_an_append_that_is_undone_leaves_its_number_to_the_next(world: World) -> None:
    """A rollback and the death of the server's process take the number back with the event (spec B-02, B-03)."""
    engine = world.db._open()
    for ends in (lambda c: c.rollback(), lambda c: kill(world, c)):
        with engine.connect() as c:
            c.execution_options(isolation_level="READ COMMITTED", **{AUTOCOMMIT_OPTION: False})
            append(c, NewJob("work", queue="q"))
            ends(c)
            world.submit()
            c.invalidate()
    events = appended(world)
    assert [event.sequence for event in events] == [1, 2]
    assert [event.actor for event in events] == ["tester", "tester"]


def kill(world: World, c: Connection) -> None:
    """End the server's process behind a connection."""
    pid = c.connection.driver_connection.info.backend_pid  # type: ignore[union-attr]
    world.query(f"SELECT pg_terminate_backend({pid}, 10000)")


def test_nobody_skips_an_event_under_many_writers_that_abort_and_are_killed(
    world: World, database_url: str, rounds: Rounds
) -> None:
    """Sixteen writers of every kind, undone and killed on their way; readers who keep up see 1 to n, once, in order.

    (spec B-03, B-06, P-08; field case R89)
    """
    world.db.run(configure_queue, "full", events="full", action=world.action())
    world.db.run(configure_queue, "hot", events="full", stripes=2, action=world.action())
    names = ("plain", "full", "hot#0", "hot#1")
    written = threading.Event()
    known: list[JobId] = []
    writers = [Writer(world, QUEUES, known, random.Random(random.random())) for _ in range(WRITERS)]
    with ThreadPoolExecutor(WRITERS + len(names) + 1) as pool, killing(database_url, writers):
        readers = {name: pool.submit(follow, world.db, name, written) for name in names}
        tailing = pool.submit(follow_tail, world.db, "plain", written)
        try:
            for writing in [pool.submit(writer.write, len(rounds(20))) for writer in writers]:
                writing.result()
        finally:
            written.set()
        seen = {name: reader.result() for name, reader in readers.items()}
        tailed = tailing.result()
    kept = {name: list(whole(world.db, name)) for name in names}
    assert {stream.name for stream in world.db.run(streams)} == set(names)
    for name in names:
        assert [event.sequence for event in kept[name]] == list(range(1, len(kept[name]) + 1))
        assert all(earlier.time <= later.time for earlier, later in pairwise(kept[name]))
        assert seen[name] == kept[name]
    assert tailed == kept["plain"][: len(tailed)]
    ids = [event.id for events in kept.values() for event in events]
    assert len(set(ids)) == len(ids)
    assert sum(writer.undone for writer in writers) > 0


def whole(db: Database, stream: str) -> Iterator[Event]:
    """Every event of a stream that nobody writes to any more."""
    after, more = 0, True
    while more:
        page = db.run(read, stream, after=after, limit=1000)
        yield from page.events
        after, more = page.next_after, page.more


def follow(db: Database, stream: str, written: threading.Event) -> list[Event]:
    """Look at a stream again and again, as a consumer with a cursor does; all that was seen of it."""
    seen: list[Event] = []
    while True:
        last_look = written.is_set()
        try:
            page = db.run(read, stream, after=len(seen), limit=50)
        except NotFound:
            if last_look:
                return seen
            continue
        seen += page.events
        if last_look and not page.more:
            return seen


def follow_tail(db: Database, stream: str, written: threading.Event) -> list[Event]:
    """The same by a tail, as far as it came."""
    return list(tail(db, stream, stop=written, poll_seconds=0.01))


@contextmanager
def killing(url: str, writers: list[Writer]) -> Iterator[None]:
    """Meanwhile, whenever so much has been written, end the server's process behind somebody's connection."""
    victim = """
        SELECT pg_terminate_backend(pid)
        FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()
        ORDER BY (state = 'active') DESC, random()
        LIMIT 1
    """
    over = threading.Event()

    def kill_on() -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            done = 0
            while not over.is_set():
                if sum(writer.deeds for writer in writers) >= done + 8:
                    done += 8
                    connection.execute(victim)
                else:
                    over.wait(0.001)

    killer = threading.Thread(target=kill_on)
    killer.start()
    try:
        yield
    finally:
        over.set()
        killer.join()
