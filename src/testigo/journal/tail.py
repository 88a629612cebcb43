"""Following a stream while it grows: every event once, in order (spec B-03, B-06, Promise 5).

Polling is the truth, and finds what is new however it came to be; a wake-up only makes the next look
come sooner. So whatever becomes of the listener, a tail loses time and never an event (field cases
R66, R67, R89).
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from functools import partial

from sqlalchemy import Connection

from testigo.errors import NotFound
from testigo.journal.events import Event
from testigo.journal.streams import Page, check_cursor, check_stream, read
from testigo.rules import fields
from testigo.settings import LIMITS, STORE
from testigo.store.command import single_statement
from testigo.store.database import AsyncDatabase, Database

__all__ = ["tail", "tail_async"]

_STOP_SECONDS = 0.05
"""How long a stop may be overlooked while nothing happens."""


def tail(
    db: Database,
    stream: str,
    *,
    after: int = 0,
    stop: threading.Event | None = None,
    poll_seconds: float = STORE.poll_seconds,
) -> Iterator[Event]:
    """The events of a stream that follow the cursor `after`, and then each new one, until `stop` is set.

    From the beginning (`after=0`) a stream is waited for that nothing was appended to yet. To go on
    after an error, begin again after the last event that was handled: the tail itself keeps nothing.
    Raises as `read` does (`CursorTooOld` also when a prune overtakes the tail), and
    `AuthorityUnavailable` when the database does not answer.
    """
    _check(stream, after, poll_seconds)
    return _follow(db, stream, after, stop, poll_seconds)


def tail_async(
    db: AsyncDatabase, stream: str, *, after: int = 0, poll_seconds: float = STORE.poll_seconds
) -> AsyncIterator[Event]:
    """As `tail`, for asynchronous callers: it ends when its task is cancelled or its iterator closed."""
    _check(stream, after, poll_seconds)
    return _follow_async(db, stream, after, poll_seconds)


def _follow(
    db: Database, stream: str, after: int, stop: threading.Event | None, poll_seconds: float
) -> Iterator[Event]:
    woken = threading.Event()
    with db.listener.subscribed(_queue(stream), woken.set):
        while not _is_set(stop):
            looked = time.monotonic()
            woken.clear()
            page = db.run(_look, stream, after)
            for event in page.events:
                yield event
                if _is_set(stop):
                    return
            after = page.next_after
            if not page.more:
                _wait(woken, stop, poll_seconds)
                time.sleep(_too_soon(looked))


async def _follow_async(db: AsyncDatabase, stream: str, after: int, poll_seconds: float) -> AsyncIterator[Event]:
    woken = asyncio.Event()
    wake = partial(asyncio.get_running_loop().call_soon_threadsafe, woken.set)
    listener = await asyncio.to_thread(lambda: db.listener)
    with listener.subscribed(_queue(stream), wake):
        while True:
            looked = time.monotonic()
            woken.clear()
            page = await db.run(_look, stream, after)
            for event in page.events:
                yield event
            after = page.next_after
            if not page.more:
                await _wait_async(woken, poll_seconds)
                await asyncio.sleep(_too_soon(looked))


@single_statement
def _look(c: Connection, stream: str, after: int) -> Page:
    """The next page; an empty one while the stream does not exist yet and was not read from."""
    try:
        return read(c, stream, after=after, limit=LIMITS.page_max)
    except NotFound:
        if after > 0:
            raise
        return Page((), floor=0, head=0, next_after=0)


def _check(stream: str, after: int, poll_seconds: float) -> None:
    check_stream(stream)
    check_cursor(after)
    fields.seconds(poll_seconds, field="poll_seconds", zero=False)


def _queue(stream: str) -> str:
    """The name that wake-ups have: that of the queue, for each of its stripes."""
    return stream.partition("#")[0]


def _is_set(stop: threading.Event | None) -> bool:
    return stop is not None and stop.is_set()


def _wait(woken: threading.Event, stop: threading.Event | None, seconds: float) -> None:
    if stop is None:
        woken.wait(seconds)
        return
    until = time.monotonic() + seconds
    while not stop.is_set() and (left := until - time.monotonic()) > 0:
        if woken.wait(min(left, _STOP_SECONDS)):
            return


async def _wait_async(woken: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await woken.wait()


def _too_soon(looked: float) -> float:
    """How long to let wake-ups gather, in seconds, so that many senders do not make a tail look all the time."""
    return max(0.0, looked + STORE.wake_seconds - time.monotonic())
