"""Plans of what is read: whatever the server knows of the tables, no reading walks all jobs or all events."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from testigo import settings
from testigo.authority.actions import JobId
from testigo.authority.read import Filter, causes, jobs, open_failures, states
from testigo.operations import Selection, Verb, begin, preview
from testigo.rules.states import State
from testigo.settings import LIMITS
from testigo.statistics import By, Measure, Span, roll_up, series, totals
from testigo.store.database import Database
from tests.store.planned import STATISTICS, Planned
from tests.store.plans import Planning, Seen, explained, grow
from tests.world import World

BOUND = 500
"""Rows that a reading looks at, of 50,000."""

Reading = Callable[[Database], object]

FILTERS: dict[str, Filter] = {
    "all": Filter(),
    "a queue's": Filter(queue="other"),
    "tagged": Filter(tag="rare"),
    "of an hour": Filter(created_after=datetime.now(UTC) - timedelta(hours=1)),
    "by the beginning of an id": Filter(id_prefix="0198f3c2"),
    "failed": Filter(states=(State.PERMANENT_FAILURE,), error="E_1"),
    "failed and unresolved": Filter(unresolved=True, queue="other"),
    "of a cause": Filter(cause="0123456789abcdef"),
    "blocked": Filter(states=(State.BLOCKED_BY_QUALITY,)),
    "running": Filter(states=(State.RUNNING,)),
    "ready": Filter(states=(State.READY,)),
    "delayed": Filter(states=(State.CREATED, State.RETRY_WAITING)),
    "a worker's": Filter(worker="ana"),
    "by what is in them": Filter(payload=(("order", "id"), "881")),
    "done": Filter(states=(State.SUCCEEDED,)),
    "named": Filter(ids=tuple(JobId(f"00000000-0000-7000-8000-{n:012d}") for n in range(100))),
}


def readings() -> Iterator[tuple[str, Reading]]:
    """Every reading that may meet a million jobs, by its name."""
    for name, wanted in FILTERS.items():
        yield f"jobs, {name}", partial(_jobs, wanted)
    yield "states", lambda db: db.run(states)
    yield "causes", lambda db: db.run(causes)
    yield "open failures", lambda db: db.run(open_failures, datetime.now(UTC) - timedelta(days=7))
    yield "causes of a queue", lambda db: db.run(causes, queue="q")
    yield "roll_up", lambda db: db.run(roll_up, BOUND)
    yield "series", lambda db: db.run(series, list(Measure), Span.DAY)
    yield "totals", lambda db: db.run(totals, Span.HOUR, by=By.KIND)
    for verb in Verb:
        yield f"preview of {verb}", partial(_preview, verb)
    chosen = Selection(wanted=Filter(states=(State.PERMANENT_FAILURE,)))
    yield "begin", lambda db: db.run(begin, Verb.RETRY, chosen, reason="again", action=World(db).action())


def _jobs(wanted: Filter, db: Database) -> object:
    return db.run(jobs, wanted)


def _preview(verb: Verb, db: Database) -> object:
    return db.run(preview, verb, Selection(wanted=Filter(queue="other")))


@pytest.fixture(autouse=True)
def small_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let readings look at a hundredth of the jobs that there are, as they do of a million."""
    bounds = ("walk_rows", "causes_walk_rows", "count_max", "operation_walk_rows", "operation_jobs_max")
    small = dict.fromkeys(bounds, BOUND)
    for name, module in list(sys.modules.items()):
        if name.startswith("testigo.") and getattr(module, "LIMITS", None) is LIMITS and module is not settings:
            monkeypatch.setattr(module, "LIMITS", replace(LIMITS, **small))


@pytest.mark.parametrize("statistics", STATISTICS)
def test_no_reading_walks_a_table(planned: Planned, statistics: str) -> None:
    """By any statistics, and planned as behind a pooler: jobs by an index, a bounded number of them (panel.md)."""
    before, after = STATISTICS[statistics]
    before(planned)
    grow(planned.hand)
    for statement in FAILED:
        planned.hand.execute(statement)
    after(planned)
    for planning in Planning:
        with explained(planned.url, planning) as seen:
            World(seen.db).worker("ana", queues=("nowhere",))
            for name, read in readings():
                seen.plans.clear()
                read(seen.db)
                _check(seen, name)


FAILED = (
    """
    UPDATE testigo.job
    SET state = 'permanent_failure', finished_at = now(), reason = 'attempts', failures = 3,
        lease_id = NULL, session_id = NULL, grant_n = NULL,
        error = '{"code":"E_' || length(kind) || '","message":"no answer from ' || id || '","detail":""}'
    WHERE id IN (SELECT id FROM testigo.job WHERE state = 'running' ORDER BY id LIMIT 2500)
    """,
    """
    UPDATE testigo.job
    SET state = 'blocked_by_quality', reason = 'approval'
    WHERE id IN (SELECT id FROM testigo.job WHERE state = 'ready' ORDER BY id LIMIT 100)
    """,
    "UPDATE testigo.stream SET head = 20000 WHERE name = '1'",
    "UPDATE testigo.event SET stream = '1' WHERE stream = 's'",
)


def _check(seen: Seen, name: str) -> None:
    assert seen.plans, name
    for plan in seen.plans:
        for table in ("job", "event"):
            scanned = [scan for scan in plan.scans(table) if not scan.index]
            assert not scanned, (name, table, plan.query)
        assert plan.blocks <= 20 * BOUND, (name, plan.blocks, plan.query)
