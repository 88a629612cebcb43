"""Hearing wake-ups: as long as it can be done, never in anybody's way, and begun anew when it failed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import psycopg
import pytest
from sqlalchemy import make_url

from testigo.settings import STORE
from testigo.store.hear import Listener
from testigo.store.wake import Waker
from tests.services import free_port, pgbouncer
from tests.store.day import until
from tests.wire import wire

PATIENCE_SECONDS = 90.0
_OF_LISTENERS = "datname = current_database() AND query LIKE 'LISTEN%'"


@pytest.fixture
def listener(database_url: str) -> Iterator[Listener]:
    """A listener that hears."""
    with closing(Listener(make_url(database_url), "testigo")) as listener:
        until(lambda: listener.hears, "the listener")
        yield listener


@pytest.fixture
def waker(database_url: str) -> Iterator[Waker]:
    """A waker of the same installation."""
    with closing(Waker(make_url(database_url), "testigo")) as waker:
        yield waker


def test_a_subscriber_is_woken_for_its_own_stream_only(listener: Listener, waker: Waker) -> None:
    """Each wake-up reaches all who subscribed to its stream, and nobody else (spec P-13)."""
    mine, yours = threading.Event(), threading.Event()
    ours = threading.Event()
    with listener.subscribed("a", mine.set), listener.subscribed("a", ours.set), listener.subscribed("b", yours.set):
        waker.wake(["c", "a"])
        assert mine.wait(PATIENCE_SECONDS)
        assert ours.wait(PATIENCE_SECONDS)
        assert not yours.is_set()
        waker.wake(["b"])
        assert yours.wait(PATIENCE_SECONDS)
    mine.clear()
    with listener.subscribed("a", yours.set):
        yours.clear()
        waker.wake(["a"])
        assert yours.wait(PATIENCE_SECONDS)
    assert not mine.is_set()


def test_a_subscriber_that_fails_is_nobody_elses_trouble(listener: Listener, waker: Waker) -> None:
    """The listener goes on hearing, for those who subscribed before and after."""
    woken = threading.Event()

    def fail() -> None:
        raise RuntimeError("the loop is closed")

    with listener.subscribed("a", fail), listener.subscribed("a", woken.set):
        for _ in range(2):
            waker.wake(["a"])
            assert woken.wait(PATIENCE_SECONDS)
            woken.clear()


def test_a_listener_whose_connection_is_ended_has_everybody_look_and_hears_again(
    database_url: str, listener: Listener, waker: Waker
) -> None:
    """What was sent meanwhile is not heard, so whoever subscribed is woken when hearing begins again (spec P-13)."""
    woken = threading.Event()
    with listener.subscribed("a", woken.set), psycopg.connect(database_url, autocommit=True) as other:
        for _ in range(2):
            woken.clear()
            ended = other.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {_OF_LISTENERS}")
            assert ended.fetchall() == [(True,)]
            assert woken.wait(PATIENCE_SECONDS)
            until(lambda: listener.hears, "the listener")
        woken.clear()
        waker.wake(["a"])
        assert woken.wait(PATIENCE_SECONDS)


def test_a_connection_that_goes_silent_is_replaced(
    database_url: str, waker: Waker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A half-open socket gives no error: the listener asks for an answer, and connects anew (field case R66)."""
    quick = replace(STORE, hearing_seconds=0.2, hearing_answer_seconds=1.0, poll_seconds=0.01)
    monkeypatch.setattr("testigo.store.hear.STORE", quick)
    woken = threading.Event()
    with wire(database_url) as (laid, url), closing(Listener(make_url(url), "testigo")) as listener:
        until(lambda: listener.hears, "the listener")
        with listener.subscribed("a", woken.set):
            laid.fall_silent()
            assert woken.wait(PATIENCE_SECONDS)
            until(lambda: listener.hears, "the listener")
            woken.clear()
            waker.wake(["a"])
            assert woken.wait(PATIENCE_SECONDS)


def test_a_listener_closes_while_it_waits_and_while_nobody_answers(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No wait holds up the end: none for a wake-up, none for an answer, none between two tries (spec P-13)."""
    monkeypatch.setattr("testigo.store.hear.STORE", replace(STORE, hearing_seconds=0.05, hearing_answer_seconds=3600.0))
    with wire(database_url) as (laid, url):
        silent = Listener(make_url(url), "testigo")
        until(lambda: silent.hears, "the listener")
        laid.fall_silent()
        refused = Listener(make_url(f"postgresql://nobody@127.0.0.1:{free_port()}/nothing"), "testigo")
        for listener in (silent, refused):
            listener.close()
            assert not listener._thread.is_alive()


@pytest.mark.needs_pgbouncer
def test_behind_a_transaction_pooler_nothing_is_listened_to(database_url: str, server_url: str) -> None:
    """LISTEN there would be left on a server connection that is somebody else's next (spec P-12, field case R67)."""
    name = make_url(database_url).database
    with pgbouncer(server_url) as front, psycopg.connect(database_url, autocommit=True) as other:
        url = make_url(front.url).set(database=name)
        with closing(Listener(url, "testigo")) as listener:
            until(lambda: not listener._thread.is_alive(), "the listener giving up")
            assert not listener.hears
            found = other.execute(f"SELECT count(*) FROM pg_stat_activity WHERE {_OF_LISTENERS}").fetchone()
            assert found == (0,)
