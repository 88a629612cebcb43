"""Running jobs in the test's own process until none is left to run."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from sqlalchemy import Connection

from testigo.app import App
from testigo.errors import Invalid, NotEnded
from testigo.store.command import single_statement
from testigo.store.sql import Statement
from testigo.testing.crashes import CrashingWorker

__all__ = ["run_until_idle"]

RUNS_MAX = 10_000

_QUEUES = Statement(
    """
    SELECT DISTINCT queue
    FROM testigo.job
    WHERE state NOT IN ('succeeded', 'succeeded_degraded', 'permanent_failure', 'cancelled', 'superseded')
    """
)


def run_until_idle(app: App, *, runs_max: int = RUNS_MAX) -> int:
    """Run the App's jobs here, one at a time, until none can be run now; returns how many runs there were.

    All queues are served. What waits for a time (a retry, `run_at`) is left for after `Clock.advance`,
    what is blocked or of no kind of this App as well. Handlers run in the calling thread, coroutines on a
    loop of their own. Raises `NotEnded` when there is still work after `runs_max` runs, and `Invalid` in
    a thread whose event loop runs: have a thread call it there, `await asyncio.to_thread(app.run_until_idle)`.
    """
    with suppress(RuntimeError):
        asyncio.get_running_loop()
        raise Invalid(
            "Jobs cannot be run by a thread whose event loop runs.",
            remedy="await asyncio.to_thread(app.run_until_idle)",
        )
    database = app.database
    queues = database.run(_waiting)
    if not queues:
        return 0
    with CrashingWorker(database, app.registry, queues=queues) as worker:
        for runs in range(runs_max):
            if not worker.step():
                return runs
            worker.queues = database.run(_waiting) or worker.queues
    raise NotEnded(
        f"There is still work after {runs_max} runs.",
        limit=f"{runs_max} runs",
        remedy="See which job yields, or submits another, without end.",
    )


@single_statement
def _waiting(c: Connection) -> tuple[str, ...]:
    """The queues of all jobs that have not ended."""
    return tuple(sorted(row.queue for row in _QUEUES.rows(c)))
