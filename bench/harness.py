"""How a row of the table is measured: an installation of its own on a real server with fsync on."""

from __future__ import annotations

import gc
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
from sqlalchemy import make_url

from testigo.authority.actions import Action, SessionAction, new_id
from testigo.authority.claim import FROM_THE_FRONT, Claimed, QueueClaim, claim
from testigo.authority.sessions import NewSession, open_session
from testigo.authority.settle import Settlement, settle
from testigo.authority.submissions import NewJob
from testigo.authority.submit import submit_many
from testigo.rules.documents import encode
from testigo.rules.outcomes import Succeed
from testigo.store.database import Database

__all__ = [
    "KIND",
    "PAYLOAD",
    "Row",
    "Worker",
    "fill",
    "held_snapshot",
    "in_threads",
    "installation",
    "rate",
    "vacuum",
    "wal_position",
]

KIND = "bench.noop"
PAYLOAD = encode({"path": "a.mp4", "height": 720})
OUTPUT = encode(None)


@dataclass(frozen=True, slots=True)
class Row:
    """One figure: what was measured, how much, and the goal it is held to, if there is one."""

    name: str
    value: float
    unit: str
    goal: float | None = None
    lower_is_better: bool = False

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None without one."""
        if self.goal is None:
            return None
        return self.value <= self.goal if self.lower_is_better else self.value >= self.goal


@contextmanager
def installation(url: str, pool_size: int = 5) -> Iterator[Database]:
    """An installation of the row's own, in a schema that is dropped afterwards."""
    schema = f"bench_{uuid.uuid4().hex}"
    try:
        with Database(url, schema=schema, pool_size=pool_size) as db:
            db.migrate()
            yield db
    finally:
        with _outside(url) as c:
            c.execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE')


class Worker:
    """One session that claims and settles in a loop, with the claim hint, as a keeper does."""

    def __init__(self, db: Database, queue: str, slots: int) -> None:
        self.db = db
        self.queue = queue
        self.slots = slots
        self.n = 0
        agent = f"bench-{new_id()}"
        self.session = db.run(open_session, NewSession(agent, (queue,), (KIND,)), action=Action(agent))
        self.hint = FROM_THE_FRONT

    def action(self) -> SessionAction:
        """The session's next command."""
        self.n += 1
        return SessionAction(self.session.id, self.session.agent, self.n)

    def claim(self) -> Claimed:
        """Claim as much as fits."""
        wanted = [QueueClaim(self.queue, self.slots, self.hint)]
        claimed = self.db.run(claim, wanted, [KIND], slots=self.slots, lease_id=new_id(), action=self.action())
        self.hint = claimed.hints.get(self.queue, FROM_THE_FRONT)
        return claimed

    def settle(self, claimed: Claimed) -> None:
        """Settle all of it as succeeded."""
        ends = [Settlement(lease, Succeed(OUTPUT)) for lease in claimed.leases]
        self.db.run(settle, ends, action=self.action())

    def drain(self, most: int) -> int:
        """Claim and settle until the queue is empty or `most` jobs are done; returns how many."""
        done = 0
        while done < most:
            claimed = self.claim()
            if not claimed.leases:
                break
            self.settle(claimed)
            done += len(claimed.leases)
        return done


def fill(db: Database, queue: str, jobs: int, batch: int = 1_000, **given: object) -> None:
    """Submit so many no-op jobs."""
    for start in range(0, jobs, batch):
        rows = [NewJob(KIND, PAYLOAD, queue=queue, **given) for _ in range(min(batch, jobs - start))]  # type: ignore[arg-type]
        db.run(submit_many, rows, action=Action("bench"))


def rate(count: int, work: Callable[[], object]) -> float:
    """How many of `count` things a second `work` does."""
    gc.collect()
    started = time.perf_counter()
    work()
    return count / (time.perf_counter() - started)


def in_threads(count: int, work: Callable[[int], object]) -> Callable[[], None]:
    """Run `work(0) … work(count - 1)`, each in a thread, all beginning together."""

    def run() -> None:
        barrier = threading.Barrier(count)

        def one(at: int) -> None:
            barrier.wait()
            work(at)

        threads = [threading.Thread(target=one, args=(at,)) for at in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return run


@contextmanager
def held_snapshot(db: Database) -> Iterator[None]:
    """An open transaction of somebody else's whose snapshot keeps dead rows from being removed."""
    with _outside(db.given_url) as c, c.transaction():
        c.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        c.execute("SELECT count(*) FROM pg_class")
        yield


def wal_position(db: Database) -> int:
    """How many bytes of write-ahead log the server has written so far."""
    with _outside(db.given_url) as c:
        row = c.execute("SELECT CAST(pg_current_wal_insert_lsn() - '0/0' AS bigint)").fetchone()
    assert row is not None
    return int(row[0])


def vacuum(db: Database) -> None:
    """Bring statistics and visibility up to date, as autovacuum would have done by now."""
    with _outside(db.given_url) as c:
        for table in ("job", "event", "stream", "session"):
            c.execute(f'VACUUM (ANALYZE) "{db.schema}".{table}')


def _outside(url: str) -> psycopg.Connection:
    conninfo = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    return psycopg.connect(conninfo, autocommit=True)
