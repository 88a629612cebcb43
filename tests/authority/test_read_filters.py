"""jobs: what a filter asks for, and by which walk it is found."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from testigo.authority.actions import JobId
from testigo.authority.admit import admit
from testigo.authority.cancel import cancel
from testigo.authority.read import Filter, causes, jobs
from testigo.authority.read.filters import Source
from testigo.authority.reprocess import reprocess
from testigo.authority.submissions import NewJob
from testigo.authority.submit import submit_within
from testigo.errors import CursorInvalid, Invalid
from testigo.rules.documents import encode
from testigo.rules.outcomes import Block, Fail, Outcome, Yield
from testigo.rules.retries import Constant
from testigo.rules.states import State
from testigo.settings import LIMITS
from tests.authority.paging import every, items, short_walks
from tests.world import World

DEAD_END = Fail("E", "no", permanent=True)
LATER = datetime(2040, 1, 1, tzinfo=UTC)


def found(world: World, limit: int = 100, **asked: Any) -> list[JobId]:
    """The ids of all jobs that a filter finds, page by page."""
    return [job.id for job in items(every(world, jobs, wanted=Filter(**asked), limit=limit))]


def one_of_each(world: World) -> dict[State, JobId]:
    """A job in each state that has a walk of its own, and one that has not; each in its queue."""
    jobs = {state: world.submit(queue=str(state), priority=0)[0] for state in STANDING}
    for state, outcome in ENDS.items():
        worker = world.worker(queues=(str(state),))
        worker.settle((worker.take(), outcome))
    world.worker("ana", queues=("running",)).take()
    world.worker("ben", queues=("leased",)).claim(1, starts=False)
    world.worker("eva", queues=("cancelling",)).take()
    ended = [jobs[State.CANCELLED], jobs[State.CANCELLING]]
    world.db.run(cancel, ended, action=world.action())
    worker = world.worker(queues=("succeeded",))
    worker.succeed(worker.take())
    (later,) = world.submit(run_at=LATER)
    (waiting,) = world.submit(parents=(later,))
    world.db.run(admit)
    return jobs | {State.CREATED: later, State.INPUTS_PENDING: waiting}


ENDS: dict[State, Outcome] = {
    State.PERMANENT_FAILURE: DEAD_END,
    State.BLOCKED_BY_QUALITY: Block("approval"),
    State.CHECKPOINTED: Yield(encode(1)),
    State.RETRY_WAITING: Fail("E", "later", wait_seconds=60.0),
}
STANDING = (
    *ENDS,
    State.READY,
    State.LEASED,
    State.RUNNING,
    State.CANCELLING,
    State.CANCELLED,
    State.SUCCEEDED,
)


def test_each_state_is_found_by_its_walk(world: World) -> None:
    """Whichever index leads to a state, exactly its jobs are found, alone and among others, page by page."""
    there = one_of_each(world)
    for state, job_id in there.items():
        assert found(world, states=(state,)) == [job_id], state
        assert found(world, states=(state,), queue=world.job(job_id).queue) == [job_id], state
        assert found(world, states=(state,), queue="nowhere") == [], state
    owned = (State.LEASED, State.RUNNING, State.CANCELLING)
    assert found(world, 1, states=owned) == sorted((there[state] for state in owned), reverse=True)
    assert set(found(world, states=tuple(there))) == set(there.values())


def test_what_no_stream_knows_yet_is_found_among_what_waits(world: World) -> None:
    """A job of somebody's transaction is created and has no date (spec P-11)."""
    (admitted,) = world.submit()
    asked = NewJob("work", queue="q")
    world.db.run(submit_within, [asked], action=world.action())
    assert (found(world, states=(State.CREATED,)), found(world, states=(State.READY,))) == ([asked.id], [admitted])


def test_the_walk_is_the_narrowest_that_holds_all_that_is_wanted() -> None:
    """A state that an index leads to is walked by it, and so is what only such a state can have."""
    walks = {
        Source.STUCK: [Filter(states=(State.PERMANENT_FAILURE,)), Filter(unresolved=True)],
        Source.ALIKE: [Filter(cause="0" * 16), Filter(cause="0" * 16, unresolved=True, queue="q")],
        Source.FEW: [
            Filter(states=(State.READY,)),
            Filter(worker="ana"),
            Filter(states=(State.CREATED, State.RUNNING)),
        ],
        Source.ALL: [Filter(), Filter(states=(State.SUCCEEDED,)), Filter(states=(State.READY, State.SUCCEEDED))],
        Source.NAMED: [Filter(ids=(JobId("00000000-0000-7000-8000-000000000000"),), states=(State.READY,))],
    }
    for source, filters in walks.items():
        assert {wanted.source for wanted in filters} == {source}


def test_what_is_called_few_is_walked_by_id_where_it_is_many(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A backlog beyond the bound is listed like all else, and a cursor goes on from one walk to the other."""
    ids = world.submit(*(NewJob("work", queue="q") for _ in range(6)))
    worker = world.worker()
    first = world.db.run(jobs, wanted := Filter(states=(State.READY,)), limit=2)
    short_walks(monkeypatch, "jobs", walk_rows=4)
    rest = items(every(world, jobs, wanted=wanted, limit=2))
    assert [job.id for job in rest] == ids[::-1]
    assert [job.id for job in world.db.run(jobs, wanted, limit=9, before=first.next).items] == ids[3::-1]
    worker.take()
    worker.take()
    assert found(world, 2, states=(State.READY,)) == ids[:1:-1]


def test_an_agent_is_found_by_what_it_holds(world: World) -> None:
    """The jobs of the live agent of that name, shown with it; of one that is gone there are none."""
    world.submit(*(NewJob("work", queue="q") for _ in range(3)))
    ana = world.worker("ana")
    held = [lease.job_id for lease in ana.claim(2).leases]
    world.worker("ben").take()
    assert found(world, worker="ana") == sorted(held, reverse=True)
    assert [job.agent for job in world.db.run(jobs, Filter(worker="ana")).items] == ["ana", "ana"]
    assert found(world, worker="eva") == []


def test_an_id_is_found_by_its_beginning(world: World) -> None:
    """From one digit to all of them, the dashes where they stand in an id."""
    (job_id,) = world.submit()
    for length in (1, 8, 9, 13, 14, 36):
        assert found(world, id_prefix=job_id[:length]) == [job_id]
    other = ("0" if job_id[0] != "0" else "1") + job_id[1:]
    assert found(world, id_prefix=other[:8]) == []


def test_times_bound_what_is_found(world: World) -> None:
    """The first is included and the second is not; they are those at which ids were made."""
    (job_id,) = world.submit()
    made = datetime.fromtimestamp(int(job_id.replace("-", "")[:12], 16) / 1000, UTC)
    step = timedelta(milliseconds=1)
    assert found(world, created_after=made, created_before=made + step) == [job_id]
    assert found(world, created_after=made + step) == []
    assert found(world, created_before=made) == []


def test_failures_are_found_by_code_and_count(world: World) -> None:
    """By the last failure's code, and by how often it failed at least."""
    first, second = world.submit(*(NewJob("work", queue="q", priority=n, backoff=Constant(0)) for n in range(2)))
    worker = world.worker()
    for code in ("E_A", "E_B", "E_A"):
        worker.settle((worker.take(), Fail(code, "no")))
    worker.settle((worker.take(), Fail("E_B", "no", permanent=True)))
    assert (found(world, error="E_A"), found(world, error="E_B")) == ([first], [second])
    assert (found(world, failures_min=2), found(world, failures_min=1)) == ([first], [second, first])
    assert found(world, error="E_A", states=(State.PERMANENT_FAILURE,)) == [first]


def test_what_came_in_a_failed_jobs_place_resolves_it(world: World) -> None:
    """Unresolved is what failed for good and has no successor; a cause finds them all, and shows the successor."""
    first, second = world.submit(*(NewJob("work", queue="q", priority=n) for n in range(2)))
    worker = world.worker()
    worker.settle(*((lease, DEAD_END) for lease in worker.claim(2).leases))
    newer = world.db.run(reprocess, first, action=world.action()).job_id
    assert found(world, unresolved=True) == [second]
    (cause,) = world.db.run(causes).causes
    assert found(world, cause=cause.id) == [second, first]
    assert found(world, cause=cause.id, unresolved=True) == [second]
    assert [job.successor for job in world.db.run(jobs, Filter(cause=cause.id)).items] == [None, newer]


@pytest.mark.parametrize(
    ("payload", "path", "value", "is_found"),
    [
        ({"order": {"id": 881}}, ("order", "id"), "881", True),
        ({"order": {"id": "881"}}, ("order", "id"), "881", True),
        ({"lines": [{"n": 9007199254740993}]}, ("lines", "0", "n"), "9007199254740993", True),
        ({"a": True}, ("a",), "true", True),
        ({"order": {"id": 881}}, ("order", "id"), "88", False),
        ({"order": {"id": 881}}, ("order",), "881", False),
        ([1], ("x",), "1", False),
        (None, ("x",), "1", False),
        ({"x": "1", "pad": "p" * LIMITS.searched_bytes_max}, ("x",), "1", False),
    ],
)
def test_a_payload_is_searched_by_a_path(
    world: World, payload: Any, path: tuple[str, ...], value: str, is_found: bool
) -> None:
    """The text of the value at a path; numbers as they were written, and nothing in payloads that are too large."""
    (job_id,) = world.submit(payload=encode(payload))
    assert found(world, payload=(path, value)) == ([job_id] if is_found else [])


def test_named_jobs_are_found_and_filtered(world: World) -> None:
    """Those that are there, from the newest, each once; what else is asked for holds as well."""
    first, second, _ = world.submit(*(NewJob("work", queue=queue) for queue in ("a", "b", "c")))
    missing = JobId("00000000-0000-7000-8000-000000000000")
    assert found(world, 1, ids=(first, missing, second)) == [second, first]
    assert found(world, ids=(first, second), queue="a") == [first]


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"id_prefix": ""}, "id_prefix"),
        ({"id_prefix": "0198F"}, "id_prefix"),
        ({"id_prefix": "01-"}, "id_prefix"),
        ({"id_prefix": "0" * 37}, "id_prefix"),
        ({"cause": "x"}, "cause"),
        ({"cause": "0" * 17}, "cause"),
        ({"states": ("gone",)}, "states"),
        ({"states": "ready"}, "states"),
        ({"unresolved": True, "states": (State.READY,)}, "states"),
        ({"unresolved": 1}, "unresolved"),
        ({"created_after": datetime(2026, 1, 1)}, "created_after"),  # noqa: DTZ001
        ({"failures_min": -1}, "failures_min"),
        ({"worker": "a\x00"}, "worker"),
        ({"payload": (("a\x00",), "1")}, "payload"),
        ({"payload": (("a",), "\ud800")}, "payload"),
        ({"payload": ("a", "1")}, "payload"),
        ({"payload": (("a",) * 65, "1")}, "payload"),
        ({"ids": ("x",)}, "ids[0]"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(asked: dict[str, Any], field: str) -> None:
    """By field, before anything is looked for (INVALID)."""
    with pytest.raises(Invalid) as refused:
        Filter(**asked)
    assert refused.value.field == field


def test_a_cursor_of_one_filter_is_refused_by_another(world: World) -> None:
    """Whatever member of the filter differs, its places are other places (CURSOR_INVALID)."""
    world.submit(*(NewJob("work", queue="q") for _ in range(3)))
    wanted = Filter(queue="q")
    cursor = world.db.run(jobs, wanted, limit=1).next
    for other in (replace(wanted, failures_min=0), replace(wanted, states=(State.READY,)), replace(wanted, tag="t")):
        with pytest.raises(CursorInvalid):
            world.db.run(jobs, other, before=cursor)


def test_a_page_of_jobs_walks_an_index_and_stops(world: World) -> None:
    """The plan of a walk by id gives the ids in their order: nothing is sorted, with and without statistics."""
    world.submit(*(NewJob("work", queue="q") for _ in range(200)))
    listing = sys.modules["testigo.authority.read.jobs"]._LIST
    bounds = {"before": "ffffffff-ffff-ffff-ffff-ffffffffffff", "walk": 10, "limit": 5}
    for wanted, index in ((Filter(tag="x"), "job_pkey"), (Filter(unresolved=True), "job_stuck")):
        sql = "EXPLAIN " + listing[wanted.source].sql
        for _ in range(2):
            plan = "\n".join(row[0] for row in world.query(sql, **wanted.parameters(), **bounds))
            assert f"using {index}" in plan, plan
            assert "Sort" not in plan, plan
            world.db.run(lambda c: c.exec_driver_sql("ANALYZE testigo.job"))
