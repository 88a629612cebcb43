"""Sending wake-ups: gathered, never lost to that, and nobody's trouble when they cannot be sent."""

from __future__ import annotations

import socket
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import make_url

from testigo.authority.actions import Action
from testigo.authority.submissions import NewJob
from testigo.authority.submit import submit_many
from testigo.rules.documents import encode
from testigo.settings import LIMITS, STORE
from testigo.store.database import Database
from testigo.store.wake import Waker, channel

PATIENCE_SECONDS = 90.0


class Ear:
    """Somebody who listens to an installation's wake-ups, apart from the code that is tested."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self.connection = connection
        self._heard: deque[str] = deque()
        connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel("testigo"))))

    def next(self) -> str:
        """The next wake-up; a failure where none comes."""
        self._listen(PATIENCE_SECONDS, at_least=1 - len(self._heard))
        assert self._heard, "no wake-up came"
        return self._heard.popleft()

    def all(self) -> list[str]:
        """What is there to hear now."""
        self._listen(0, at_least=None)
        heard, self._heard = list(self._heard), deque()
        return heard

    def _listen(self, seconds: float, *, at_least: int | None) -> None:
        if at_least is None or at_least > 0:
            notes = self.connection.notifies(timeout=seconds, stop_after=at_least)
            self._heard += [note.payload for note in notes]


@pytest.fixture
def ear(database_url: str) -> Iterator[Ear]:
    """Somebody who listens to the installation."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        yield Ear(connection)


@pytest.fixture
def waker(database_url: str) -> Iterator[Waker]:
    """A waker of the installation."""
    with closing(Waker(make_url(database_url), "testigo")) as waker:
        yield waker


def test_the_last_wake_up_is_never_lost(waker: Waker, ear: Ear) -> None:
    """A wake-up that comes right after another was sent is gathered, and sent a little later (spec P-13)."""
    for _ in range(50):
        waker.wake(["q"])
        assert ear.next() == "q"


def test_wake_ups_of_one_moment_are_one(waker: Waker, ear: Ear) -> None:
    """However often one stream is woken, at most one wake-up in ten milliseconds is sent (field case R68)."""
    began = time.monotonic()
    for _ in range(20_000):
        waker.wake(["q"])
    lasted = time.monotonic() - began
    waker.wake(["end"])
    notes = []
    while "end" not in notes:
        notes.append(ear.next())
    assert 1 <= notes.count("q") <= lasted / STORE.wake_seconds + 2


def test_a_stream_is_woken_once_for_all_its_wake_ups_and_every_stream_is(waker: Waker, ear: Ear) -> None:
    """Many streams woken by many threads at once are each heard of (spec P-13)."""
    names = [f"queue-{n}" for n in range(200)]
    threads = [threading.Thread(target=waker.wake, args=(names[n::4],)) for n in range(4)]
    for thread in threads:
        thread.start()
    missing = set(names)
    while missing:
        missing.discard(ear.next())


def test_what_no_notification_can_carry_does_not_hold_up_the_others(waker: Waker, ear: Ear) -> None:
    """A NUL, a lone surrogate, a name that is empty or too long: passed over; the longest name arrives."""
    longest = "ü" * LIMITS.name_chars_max
    waker.wake(["a\x00b", "\ud800", "", "x" * 8_000, "x" * 10_000_000, longest])
    assert ear.next() == longest
    waker.wake(["x" * 7_999])
    assert ear.next() == "x" * 7_999


def test_a_broken_connection_costs_no_wake_up(waker: Waker, ear: Ear) -> None:
    """What could not be sent is sent on the next connection (spec P-13)."""
    waker.wake(["before"])
    assert ear.next() == "before"
    for name in ("one", "two"):
        (ended,) = ear.connection.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name = 'testigo wake-ups'"
        ).fetchone() or (0,)
        assert ended == 1
        waker.wake([name])
        assert ear.next() == name


def test_what_is_due_is_sent_before_the_end(database_url: str, ear: Ear) -> None:
    """Closing sends what is gathered, and then sends nothing any more."""
    waker = Waker(make_url(database_url), "testigo")
    names = [f"queue-{n}" for n in range(20)]
    for name in names:
        waker.wake([name])
    waker.close()
    missing = set(names)
    while missing:
        missing.discard(ear.next())
    waker.wake(["later"])
    assert ear.all() == []


def test_nobody_who_wakes_notices_that_the_database_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing waits and nothing fails, whether connections are refused or never answered; closing ends."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        refused = socket.create_server(("127.0.0.1", 0))
        refusing_port = refused.getsockname()[1]
        refused.close()
        monkeypatch.setattr("testigo.store.wake._CONNECT_SECONDS", 2)
        for away in (port, refusing_port):
            waker = Waker(make_url(f"postgresql://nobody@127.0.0.1:{away}/nothing?sslmode=disable"), "testigo")
            for n in range(1000):
                waker.wake([f"queue-{n}"])
            waker.close()


def test_wake_ups_carry_no_data_however_large_what_was_submitted(db: Database, ear: Ear) -> None:
    """5,000 jobs, megabytes of payloads, one commit: it succeeds, and the wake-up is a name (field case R68)."""
    payload = encode("x" * (LIMITS.inline_bytes_max - 2))
    large = [NewJob("work", payload, queue="q") for _ in range(20)]
    small = [NewJob("work", queue="q") for _ in range(4_980)]
    receipt = db.run(submit_many, large + small, action=Action("tester"))
    assert len(receipt.jobs) == 5_000
    assert ear.next() == "q"


def test_a_channels_name_fits_whatever_the_schemas_is() -> None:
    """PostgreSQL refuses a channel of 64 bytes: a long schema's is cut between two characters."""
    for schema in ("testigo", 'a "quoted" one', "ü" * 31, "x" * 63):
        assert len(channel(schema).encode()) <= 63
        assert f"testigo:{schema}".startswith(channel(schema))
    assert channel("a") != channel("b")
