"""Two ways to make commands meet: all at once, or one behind another at the very lock they share.

    taken, answered = race(db, lambda: worker.take(), lambda: db.run(cancel, [id], action=action))
    first, second = in_line(db, lambda c: reprocess(c, id, action=one), lambda: db.run(reprocess, id, action=two))

A move that is refused answers with the refusal; any other error is the test's failure. Who wins a
race is chance: each move has a head start that is drawn from `random`, whose seed pytest prints.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from sqlalchemy import Connection

from testigo.errors import Error
from testigo.store.database import Database
from testigo.store.sql import Statement

__all__ = ["DEADLINE_SECONDS", "deadlocks", "in_line", "race", "seen_waiting"]

T = TypeVar("T")

DEADLINE_SECONDS = 60.0
HEAD_START = 3
"""A move may be behind the others by up to so many round trips to the database, less one."""


_WAITING = Statement(
    """
    SELECT count(*) AS waiting
    FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'
    """
)


_SEEN = Statement(
    """
    SELECT d.deadlocks,
           (SELECT count(*)
            FROM pg_stat_activity a
            WHERE a.datname = d.datname AND a.pid <> pg_backend_pid()) AS sessions
    FROM pg_stat_database d
    WHERE d.datname = current_database()
    """
)


def race(db: Database, *moves: Callable[[], Any]) -> list[Any]:
    """Make all moves at once, each in a thread of its own; their answers, in the order given."""
    barrier = threading.Barrier(len(moves))
    handicaps = [random.randrange(HEAD_START) for _ in moves]

    def run(move: Callable[[], Any], handicap: int) -> Any:
        barrier.wait(DEADLINE_SECONDS)
        for _ in range(handicap):
            db.run(_waiting)
        return _answer(move)

    with ThreadPoolExecutor(len(moves)) as threads:
        return [
            running.result() for running in [threads.submit(run, *pair) for pair in zip(moves, handicaps, strict=True)]
        ]


def in_line(
    db: Database,
    first: Callable[[Connection], Any],
    *others: Callable[[], Any],
    then: Callable[[Connection], Any] | None = None,
    undone: bool = False,
) -> list[Any]:
    """Make the first move in a transaction, and commit it when each other one waits for a lock or has ended.

    The others are begun one after another, so their order at the lock is the order given. `then` is
    what the first one goes on with, still in its transaction, while the others wait. With `undone` it
    is rolled back instead; its answer is what it would have been.
    """
    behind: list[Future[Any]] = []

    def hold(c: Connection) -> Any:
        answer = first(c)
        c.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")  # the others may take their time
        for other in others:
            behind.append(threads.submit(_answer, other))
            seen_waiting(db, behind)
        if then is not None:
            then(c)
        if undone:
            raise _UndoneError(answer)
        return answer

    with ThreadPoolExecutor(len(others)) as threads:
        try:
            answer = db.run(hold)
        except _UndoneError as late:
            (answer,) = late.args
        return [answer, *(move.result() for move in behind)]


def seen_waiting(db: Database, moves: list[Future[Any]]) -> None:
    """Return when each of these moves waits for a lock or has ended."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while db.run(_waiting) < sum(not move.done() for move in moves):
        assert time.monotonic() < deadline, "a move neither ended nor waited for a lock"


def deadlocks(db: Database) -> int:
    """How many deadlocks the server has ended in this database since it was made.

    A session reports what happened to it when it feels like it, and at the latest when it ends: so all are ended first.
    """
    db.close()
    deadline = time.monotonic() + DEADLINE_SECONDS
    while (seen := db.run(_seen)).sessions > 0:
        assert time.monotonic() < deadline, "a session did not end"
    return int(seen.deadlocks)


class _UndoneError(Exception):
    """Rolls a transaction back, with the answer that it had."""


def _answer(move: Callable[[], T]) -> T | Error:
    try:
        return move()
    except Error as refused:
        return refused


def _waiting(c: Connection) -> int:
    return int(_WAITING.rows(c)[0].waiting)


def _seen(c: Connection) -> Any:
    return _SEEN.rows(c)[0]
