"""Plans: whatever the server knows of the tables, and whenever it planned, a command touches its own rows."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import NamedTuple

import psycopg
import pytest
from sqlalchemy import Connection

from testigo.authority import claim, jobs, renew, save, settle, submit
from testigo.authority.submissions import NewJob
from testigo.rules.documents import encode
from testigo.store.database import Database
from testigo.store.schema import migrate
from tests.journal.everything import do_everything
from tests.services import create_database, drop_database
from tests.store.day import live_a_day
from tests.store.plans import Plan, Planning, Seen, explained, grow, never_vacuum
from tests.world import World, held

SERVERS = ["server_url", pytest.param("postgres15_url", marks=pytest.mark.needs_postgres15)]
HOT = {
    " ".join(statement.sql.split())[:24]: name
    for name, statement in {
        "claim": claim._CLAIM,
        "renew": renew._RENEW,
        "save": save._SAVE,
        "settle": settle._SETTLE,
        "submit": submit._SUBMIT,
        "lock": jobs._LOCK,
    }.items()
}


class Planned(NamedTuple):
    """An installation whose statistics only the test makes, and a hand in it."""

    url: str
    hand: psycopg.Connection


@pytest.fixture(params=SERVERS)
def planned(request: pytest.FixtureRequest) -> Iterator[Planned]:
    """An empty installation on a server of either version."""
    server: str = request.getfixturevalue(request.param)
    name = f"test_{uuid.uuid4().hex}"
    url = create_database(server, name)
    migrate(url)
    with psycopg.connect(url, autocommit=True) as hand:
        never_vacuum(hand)
        yield Planned(url, hand)
    drop_database(server, name)


def nothing(_: Planned) -> None:
    """Let nobody look at the tables."""


def look(planned: Planned) -> None:
    """Let the server look at the tables as they are now."""
    planned.hand.execute("VACUUM ANALYZE")


def live_and_look(planned: Planned) -> None:
    """Let it look when each table has a row or two."""
    with Database(planned.url) as db:
        live_a_day(db, "first")
    look(planned)


def rest_and_look(planned: Planned) -> None:
    """Let it look when nothing runs, so that the index of leased jobs is empty."""
    idle = "state = 'ready', lease_id = NULL, session_id = NULL, grant_n = NULL"
    planned.hand.execute(f"UPDATE testigo.job SET {idle} WHERE state = 'running'")
    look(planned)


Step = Callable[[Planned], None]
STATISTICS: dict[str, tuple[Step, Step]] = {
    "none": (nothing, nothing),
    "of empty tables": (look, nothing),
    "of tiny tables": (live_and_look, nothing),
    "of an idle installation": (nothing, rest_and_look),
    "fresh": (nothing, look),
}
"""What the server knows of the tables: what is done before they grow, and after it."""


@pytest.mark.parametrize("statistics", STATISTICS)
def test_a_hot_statement_finds_its_jobs_through_the_right_index(planned: Planned, statistics: str) -> None:
    """By any statistics, planned anew or long ago: no scan, no detour, as many blocks as rows (spec P-12, P-14).

    A claim walks the queue's claimable jobs from its hint, and every other statement asks for jobs by
    their ids: never through the index of leased jobs, which statistics may call empty.
    """
    before, after = STATISTICS[statistics]
    before(planned)
    with explained(planned.url, Planning.ONCE) as kept:
        for _ in range(2):
            _send(kept, 1)
        grow(planned.hand)
        after(planned)
        _check(kept)
    for planning in Planning:
        with explained(planned.url, planning) as seen:
            _check(seen)


def test_a_claim_leases_no_more_than_its_limit(planned: Planned, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pick is made once, in a plan from the day of the empty table too; rescanned, it leases more (spec P-12)."""
    look(planned)
    with explained(planned.url, Planning.ONCE) as kept, explained(planned.url, Planning.ONCE) as rescanning:
        World(kept.db).worker().claim(5)
        with monkeypatch.context() as patch:
            patch.setattr(claim._CLAIM, "sql", _rescanned(claim._CLAIM.sql))
            World(rescanning.db).worker().claim(5)
            grow(planned.hand)
            assert sum(_claimed(rescanning)) > 25
        assert _claimed(kept) == [5] * 5


def _claimed(seen: Seen) -> list[int]:
    """Claim five jobs five times; how many each of the five sessions holds then."""
    workers = [World(seen.db).worker() for _ in range(5)]
    for worker in workers:
        worker.claim(5)
    count = "SELECT count(*) AS held FROM testigo.job WHERE session_id = CAST(:id AS uuid) AND lease_id IS NOT NULL"
    return [World(seen.db).query(count, id=worker.id)[0].held for worker in workers]


def _rescanned(statement: str) -> str:
    """The claim with its pick where the planner may run it again: the fault of which P-12 tells."""
    pick = statement[statement.index("SELECT j.id, j.fit") : statement.index("),\n    got AS")]
    there = "FROM pick\n        WHERE j.id = ANY (ARRAY[pick.id])"
    assert there in statement
    return statement.replace(there, f"FROM ({pick}) pick\n        WHERE j.id = pick.id")


def test_no_command_takes_longer_for_what_its_connection_knew(planned: Planned) -> None:
    """A connection from the installation's first day sends every command without walking a table (spec P-12)."""
    live_and_look(planned)
    with explained(planned.url, Planning.ONCE) as kept:
        live_a_day(kept.db, "second")
        grow(planned.hand)
        kept.plans.clear()
        live_a_day(kept.db, "third")
        do_everything(World(kept.db), "fourth")
        walks = {" ".join(plan.query.split()): plan.blocks for plan in kept.plans if plan.blocks > 500}
    assert walks == {}
    assert len(kept.plans) > 300


def _check(seen: Seen) -> None:
    for size in (1, 5, 100, 400):
        sent = _send(seen, size)
        assert set(sent) == set(HOT.values())
        for name, plan in sent.items():
            allowed = {"claim": {"job_claimable", "job_pkey"}, "submit": set()}.get(name, {"job_pkey"})
            found = {scan.index for scan in plan.scans("job")}
            assert (name, size, found) == (name, size, allowed)
            assert plan.blocks <= 200 + 30 * size, (name, size)
            assert not plan.compiled, (name, size)
        (walk,) = (scan for scan in sent["claim"].scans("job") if scan.index == "job_claimable")
        assert "queue = q.name" in walk.condition
        assert "ROW(priority, ready_at, id) > ROW(q.priority, q.ready_at, q.id)" in walk.condition


def _send(seen: Seen, size: int) -> dict[str, Plan]:
    """Send each hot statement for so many jobs, and the slow path's lock; how each was run."""
    world = World(seen.db)
    worker = world.worker()
    seen.plans.clear()
    world.submit(*(NewJob("work", queue="q", key=f"{worker.id} {n}") for n in range(size)))
    leases = worker.claim(size).leases
    assert len(leases) == size
    seen.db.run(save.save, held(leases[0]), encode(1), number=1, action=worker.action())
    beat = {"epoch": worker.session.epoch, "beat": 1, "low_water": 0}
    assert seen.db.run(renew.renew, worker.id, [held(lease) for lease in leases], **beat).lost == ()
    seen.db.run(_lock, [lease.job_id for lease in leases[:100]])
    worker.succeed(leases[0]._replace(revision=leases[0].revision + 1), *leases[1:])
    return {HOT[start]: plan for plan in seen.plans if (start := plan.query[:24]) in HOT}


def _lock(c: Connection, ids: list[str]) -> None:
    jobs.lock(c, ids)
