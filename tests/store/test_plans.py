"""Plans: whatever the server knows of the tables, and whenever it planned, a command touches its own rows."""

from __future__ import annotations

import psycopg
import pytest
from sqlalchemy import Connection

from testigo.authority import claim, jobs, renew, save, settle, submit
from testigo.authority.prune import Pruned
from testigo.authority.submissions import NewJob
from testigo.journal.prune import prune_events
from testigo.rules.documents import encode
from tests.journal.everything import do_everything
from tests.store.day import live_a_day
from tests.store.planned import STATISTICS, Planned, live_and_look, look
from tests.store.plans import Plan, Planning, Seen, explained, grow, never_vacuum
from tests.world import World, held

HOT = {
    " ".join(statement.sql.split())[:24]: name
    for name, statement in {
        "claim": claim._CLAIM,
        "renew": renew._RENEW,
        "save": save._SAVE,
        "settle": settle._SETTLE,
        "submit": submit._SUBMIT,
        "lock": jobs._LOCK,
        "lock free": jobs._LOCK_FREE,
    }.items()
}


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


@pytest.mark.parametrize("statistics", STATISTICS)
def test_a_prune_of_events_goes_along_their_streams(planned: Planned, statistics: str) -> None:
    """By any statistics it reads what it removes and a little more, of however long a stream (spec P-12, P-27)."""
    before, after = STATISTICS[statistics]
    before(planned)
    with explained(planned.url, Planning.ONCE) as kept:
        for _ in range(2):
            kept.db.run(prune_events)
        grow(planned.hand)
        planned.hand.execute("UPDATE testigo.stream SET head = 20000 WHERE name = '1'")
        planned.hand.execute("UPDATE testigo.event SET stream = '1', at = now() - interval '1 year' WHERE stream = 's'")
        after(planned)
        for planning in Planning:
            with explained(planned.url, planning) as anew:
                for seen in (kept, anew):
                    seen.plans.clear()
                    assert seen.db.run(prune_events, limit=500) == Pruned(500, more=True)
                    scans = [scan for plan in seen.plans for scan in plan.scans("event")]
                    assert {scan.index for scan in scans} == {"event_pkey"}
                    assert len(scans) == 3
                    assert sum(plan.blocks for plan in seen.plans) < 5_000


def test_a_claim_leases_no_more_than_its_limit(planned: Planned) -> None:
    """The pick is made once, in a plan from the day of the empty table too (spec P-12)."""
    look(planned)
    with explained(planned.url, Planning.ONCE) as kept:
        World(kept.db).worker().claim(5)
        grow(planned.hand)
        assert _claimed(kept) == [5] * 5


def test_a_claim_whose_pick_is_made_again_leases_more(quiet_database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the test above would see. Where others make tables, the server now and then forgets all plans."""
    with psycopg.connect(quiet_database_url, autocommit=True) as hand:
        never_vacuum(hand)
        look(Planned(quiet_database_url, hand))
        with explained(quiet_database_url, Planning.ONCE) as rescanning:
            monkeypatch.setattr(claim._CLAIM, "sql", _rescanned(claim._CLAIM.sql))
            World(rescanning.db).worker().claim(5)
            grow(hand)
            assert sum(_claimed(rescanning)) > 25


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
    there = "WHERE j.id = ANY (ARRAY(SELECT pick.id FROM pick WHERE pick.fit))"
    assert there in statement
    joined = statement.replace(there, f"FROM ({pick}) pick\n        WHERE j.id = pick.id AND pick.fit")
    return joined.replace("AS text) FROM pick WHERE fit", "AS text) FROM got")  # the other pick has other jobs


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
    _send(seen, 1)  # what a connection reads once of the catalogue, and again when that changed, is no plan's
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
