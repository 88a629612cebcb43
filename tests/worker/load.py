"""Hundreds of short jobs of several kinds, and the account of them: each has exactly the end that its kind must have.

    load = Load(world, chance)
    load.add(150)
    load.await_ended(100)          # here something is killed
    load.await_all()
    load.check()

Whatever dies meanwhile, the account is the same, because no job is near a limit that deaths count against.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from testigo.authority.pause import configure_queue
from testigo.authority.submissions import NewJob
from testigo.rules.documents import encode
from testigo.rules.retries import Constant
from testigo.store.sql import Statement
from tests.invariants import check
from tests.world import World

__all__ = ["KINDS", "MODULE", "Load"]

PATIENCE_SECONDS = 90.0
CRASHES_MAX = 1_000
"""Of one job: a loop may kill it as often as it likes."""

MODULE = """
import asyncio
import os
from pathlib import Path
from testigo import App, AsyncContext, Context, Degraded, Permanent, RetryAfter, Yielded

app = App("jobs")

@app.job("answers", queue="q")
async def answers(ctx: AsyncContext, n: int) -> int:
    return n

@app.job("computes", queue="q")
def computes(ctx: Context, n: int) -> int:
    return sum(range(n))

@app.job("sleeps", queue="q")
async def sleeps(ctx: AsyncContext, n: int) -> int:
    await asyncio.sleep(n / 1000)
    return n

@app.job("falters", queue="q")
async def falters(ctx: AsyncContext, n: int) -> int:
    if ctx.failures < 2:
        raise RuntimeError("not yet")
    return n

@app.job("refuses", queue="q")
async def refuses(ctx: AsyncContext, n: int) -> int:
    raise Permanent("NEVER", "not this one")

@app.job("halves", queue="q")
async def halves(ctx: AsyncContext, n: int) -> int | Degraded[int]:
    return Degraded(n, limitations=["a half"])

@app.job("steps", queue="q")
async def steps(ctx: AsyncContext, n: int) -> list[int]:
    done = ctx.load(list[int]) or []
    while len(done) < 3:
        done = [*done, n + len(done)]
        await ctx.save(done)
    return done

@app.job("yields", queue="q")
async def yields(ctx: AsyncContext, n: int) -> int:
    seen = ctx.load(int) or 0
    if seen < 2:
        raise Yielded(seen + 1)
    return n + seen

@app.job("begets", queue="q")
async def begets(ctx: AsyncContext, n: int) -> int:
    for which in range(2):
        await ctx.submit(begotten, parent=ctx.job_id, n=which)
    return n

@app.job("begotten", queue="q")
async def begotten(ctx: AsyncContext, parent: str, n: int) -> int:
    return n

@app.job("waits", queue="q")
async def waits(ctx: AsyncContext, gate: str) -> str:
    here = Path(f"{gate}.{os.getpid()}.{ctx.job_id}")
    here.touch()
    try:
        while not Path(gate).exists():
            await asyncio.sleep(0.01)
        # Whoever finds this file knows that the end of the run has left this process.
        asyncio.get_running_loop().call_later(0.1, Path(f"{gate}.{os.getpid()}").touch)
        return "through"
    finally:
        here.unlink()
"""


class _End(NamedTuple):
    """What must become of a job: its state, its output if it has one, and its failures, exactly."""

    state: str
    output: Callable[[dict[str, Any]], object]
    failures: int = 0


def _same(given: dict[str, Any]) -> object:
    return given["n"]


KINDS = {
    "answers": _End("succeeded", _same),
    "computes": _End("succeeded", lambda given: sum(range(given["n"]))),
    "sleeps": _End("succeeded", _same),
    "falters": _End("succeeded", _same, failures=2),
    "refuses": _End("permanent_failure", lambda _: None, failures=1),
    "halves": _End("succeeded_degraded", _same),
    "steps": _End("succeeded", lambda given: [given["n"] + step for step in range(3)]),
    "yields": _End("succeeded", lambda given: given["n"] + 2),
    "begets": _End("succeeded", _same),
    "begotten": _End("succeeded", _same),
    "waits": _End("succeeded", lambda _: "through"),
}
"""What must become of the jobs of each kind of `MODULE`."""

_CHOSEN = [kind for kind in KINDS if kind not in ("begotten", "waits")]

_ENDED = Statement("SELECT count(*) AS jobs FROM testigo.job WHERE finished_at IS NOT NULL")
_OPEN = Statement("SELECT CAST(state AS text) AS state, kind FROM testigo.job WHERE finished_at IS NULL")
_JOBS = Statement(
    """
    SELECT CAST(id AS text) AS id, kind, CAST(state AS text) AS state, payload, output, failures, losses, epoch, error
    FROM testigo.job
    """
)
_UNTOLD = Statement(
    """
    SELECT CAST(j.id AS text) AS id, j.kind, j.epoch, e.epochs
    FROM testigo.job j
         JOIN LATERAL (
             SELECT count(DISTINCT CAST(data AS json) ->> 'epoch') AS epochs
             FROM testigo.event
             WHERE subject = j.id
               AND type IN ('job.completed', 'job.degraded', 'job.failed', 'job.lost', 'job.released',
                            'job.checkpointed')
         ) AS e ON true
    WHERE e.epochs <> j.epoch
    """
)


class Load:
    """The jobs of one test, as they were submitted."""

    def __init__(self, world: World, chance: random.Random, tend: Callable[[], object] = lambda: None) -> None:
        """`tend` is called again and again while something is waited for."""
        # Only a queue that tells everything tells how each run of a job ended.
        world.db.run(configure_queue, "q", events="full", action=world.action())
        self._world = world
        self._chance = chance
        self._tend = tend
        self._asked: Counter[str] = Counter()
        self.ended_before = 0
        """Jobs that had ended when `add` was last called."""

    def add(self, count: int, *first: NewJob) -> None:
        """Submit these jobs, and so many of any kind after them."""
        self.ended_before = self.ended
        jobs = [*first, *(self.job(self._chance.choice(_CHOSEN), n=self._chance.randrange(200)) for _ in range(count))]
        self._world.submit(*jobs)
        self._asked.update(job.kind for job in jobs)

    def job(self, kind: str, **given: object) -> NewJob:
        """A job that no number of deaths ends, and that is tried again at once."""
        return NewJob(
            kind=kind,
            queue="q",
            payload=encode(given),
            attempts=3,
            crash_limit=CRASHES_MAX,
            backoff=Constant(0.0),
        )

    @property
    def ended(self) -> int:
        """How many jobs have ended."""
        return int(self._world.query(_ENDED)[0].jobs)

    def await_ended(self, count: int) -> None:
        """Wait until so many jobs have ended since the last `add`."""
        self.await_that(lambda: self.ended >= self.ended_before + count)

    def await_all(self) -> None:
        """Wait until every job has ended."""
        self.await_that(lambda: not self._world.query(_OPEN))

    def await_that(self, condition: Callable[[], object]) -> None:
        """Wait for something, and tend meanwhile."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            if time.monotonic() > deadline:
                left = Counter((row.kind, row.state) for row in self._world.query(_OPEN))
                raise AssertionError(f"still open after {PATIENCE_SECONDS:g} s: {dict(left)}")
            self._tend()
            time.sleep(0.02)

    def check(self) -> None:
        """Assert the account: what was submitted is there once, with its end; what it begot as well; no run is untold.

        All of it is read from the database.
        """
        check(self._world.db)
        rows = self._world.query(_JOBS)
        wrong = [row._mapping for row in rows if not _is_right(row)]
        assert not wrong, f"{len(wrong)} of {len(rows)} jobs did not end as they must: {wrong[:5]}"
        found = Counter(row.kind for row in rows)
        assert found == self._asked + Counter({"begotten": 2 * self._asked["begets"]})
        parents = Counter(json.loads(row.payload)["parent"] for row in rows if row.kind == "begotten")
        assert parents == {row.id: 2 for row in rows if row.kind == "begets"}
        untold = [row._mapping for row in self._world.query(_UNTOLD)]
        assert not untold, f"not every run of these ended in exactly one way: {untold[:5]}"


def _is_right(row: Any) -> bool:
    end = KINDS[row.kind]
    output = None if row.output is None else json.loads(row.output)
    return (row.state, output, row.failures) == (end.state, end.output(json.loads(row.payload)), end.failures)
