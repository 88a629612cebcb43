"""read: what stands now, in pages, at a bounded cost."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from testigo.authority.actions import JobId, new_id
from testigo.authority.admit import admit
from testigo.authority.expire import take_back
from testigo.authority.prune import prune_jobs
from testigo.authority.read import (
    Filter,
    by_key,
    job,
    jobs,
    late_results,
    lineage,
    paused,
    queues,
    receipt,
    sessions,
    tombstones,
)
from testigo.authority.reprocess import reprocess
from testigo.authority.submissions import NewJob
from testigo.authority.submit import submit, submit_within
from testigo.errors import Invalid, NotFound
from testigo.rules.decide import Policy
from testigo.rules.documents import encode
from testigo.rules.outcomes import Degrade, Fail, Succeed, Yield
from testigo.rules.retries import Constant
from testigo.rules.states import Phase, State
from testigo.settings import LIMITS
from tests.authority.paging import every, items, short_walks
from tests.world import Worker, World

LATER = datetime(2040, 1, 1, tzinfo=UTC)


# One job.


def test_a_job_shows_all_that_was_asked_and_where_it_stands(world: World) -> None:
    """What was asked for, the contract and the position are there, decoded; documents only on request (spec D-01)."""
    (job_id,) = world.submit(
        NewJob(
            "work",
            encode({"n": 1e2}),
            queue="q",
            client="shop",
            key="k",
            priority=3,
            finish_by=LATER,
            tags=("a", "b"),
            attempts=5,
            crash_limit=2,
            timeout_seconds=9.0,
            backoff=Constant(1.5),
            delay_limit_seconds=60.0,
            cost_limit=2.0,
        )
    )
    seen = world.db.run(job, job_id)
    assert (seen.id, seen.queue, seen.kind, seen.stream, seen.client, seen.key) == (
        job_id,
        "q",
        "work",
        "q",
        "shop",
        "k",
    )
    assert (seen.priority, seen.tags, seen.finish_by, seen.start_by) == (3, ("a", "b"), LATER, None)
    assert (seen.attempts, seen.crash_limit, seen.timeout_seconds) == (5, 2, 9.0)
    assert seen.terms == (Constant(1.5), 60.0, 2.0)
    assert (seen.state, seen.phase, seen.revision, seen.epoch) == (State.READY, Phase.QUEUED, 1, 0)
    assert (seen.owner, seen.error, seen.limitations, seen.successor, seen.unadmitted) == (None, None, (), None, False)
    assert (seen.payload_bytes, seen.output_bytes, seen.documents) == (len('{"n":100.0}'), None, None)


def test_documents_come_exactly_as_they_were_stored(world: World) -> None:
    """Payload, checkpoint and output are the exact texts (spec P-06)."""
    (job_id,) = world.submit(payload=encode({"z": -0.0}))
    worker = world.worker()
    worker.settle((worker.take(), Yield(encode([1e22]))))
    worker.settle((worker.take(), Degrade(encode("é"), ("mono",))))
    seen = world.db.run(job, job_id, documents=True)
    assert seen.documents == ('{"z":-0.0}', "[1e+22]", '"é"')
    assert (seen.output_bytes, seen.limitations, seen.phase) == (len('"é"'.encode()), ("mono",), Phase.COMPLETED)


def test_a_job_shows_its_owner_and_its_last_error(world: World) -> None:
    """Lease, agent and session are the job's own; the error is told by its parts (spec B-12, A-14)."""
    (job_id,) = world.submit(backoff=Constant(0))
    worker = world.worker("ana")
    worker.settle((worker.take(), Fail("E", "why", "trace")))
    lease = worker.take()
    seen = world.db.run(job, job_id)
    assert seen.owner is not None
    assert (seen.owner.lease_id, seen.owner.session_id, seen.owner.agent) == (lease.lease_id, worker.id, "ana")
    assert (seen.owner.session_epoch, seen.owner.session_state) == (1, "open")
    assert seen.error == {"code": "E", "message": "why", "detail": "trace"}
    assert (seen.failures, seen.epoch) == (1, 2)


def test_a_job_that_is_not_there_is_refused_and_a_pruned_one_by_its_tombstone(world: World) -> None:
    """The refusal of a pruned job tells the state in which it ended, and when it went (spec P-26)."""
    (job_id,) = world.submit()
    worker = world.worker()
    worker.succeed(worker.take())
    world.db.run(prune_jobs, older_than_days=0)
    with pytest.raises(NotFound, match="ended as succeeded and was pruned") as refused:
        world.db.run(job, job_id)
    (tombstone,) = world.db.run(tombstones, job_id).items
    assert refused.value.facts == {"tombstone": tombstone.id, "state": "succeeded", "at": tombstone.at}
    with pytest.raises(NotFound, match="There is no job"):
        world.db.run(job, JobId(new_id()))
    with pytest.raises(Invalid):
        world.db.run(job, JobId("none"))


def test_a_key_finds_its_job_and_of_a_chain_the_newest(world: World) -> None:
    """A key names one job of its client and kind; after a reprocess, the newest (spec D-01, model.md)."""
    (job_id,) = world.submit(client="shop", key="k")
    assert world.db.run(by_key, "shop", "work", "k").id == job_id
    newest = world.db.run(reprocess, job_id, action=world.action()).job_id
    assert world.db.run(by_key, "shop", "work", "k", documents=True).id == newest
    for client, kind, key in (("shop", "work", "x"), ("shop", "play", "k"), ("other", "work", "k")):
        with pytest.raises(NotFound):
            world.db.run(by_key, client, kind, key)


def test_the_key_of_a_pruned_job_still_tells_how_it_ended(world: World) -> None:
    """A key lives as long as the tombstone, and leads to it (spec P-04)."""
    world.submit(key="k")
    worker = world.worker()
    worker.succeed(worker.take())
    world.db.run(prune_jobs, older_than_days=0)
    with pytest.raises(NotFound) as refused:
        world.db.run(by_key, "default", "work", "k")
    assert refused.value.facts["state"] == "succeeded"


# Jobs in pages.


def test_jobs_come_from_the_newest_each_once(world: World) -> None:
    """Pages by key: whatever the size of a page, every job is on exactly one, in the order of ids."""
    ids = world.submit(*(NewJob("work", queue="q") for _ in range(7)))
    for limit in (1, 2, 3, 7, 8):
        pages = every(world, jobs, limit=limit)
        assert [one.id for one in items(pages)] == ids[::-1]
        assert [len(page.items) for page in pages[:-1]] == [limit] * (len(pages) - 1)
        assert all(page.complete for page in pages)


def test_jobs_that_come_while_a_list_is_read_move_nothing(world: World) -> None:
    """A page after a cursor is the same whatever was submitted meanwhile: no offset shifts."""
    first = world.submit(*(NewJob("work", queue="q") for _ in range(4)))
    page = world.db.run(jobs, limit=2)
    world.submit(*(NewJob("work", queue="q") for _ in range(3)))
    assert [one.id for one in world.db.run(jobs, limit=2, before=page.next).items] == first[:2][::-1]


def test_filters_hold_together(world: World) -> None:
    """A job is listed if it has all that is asked for: queue, kind, state, tag and client."""
    wanted = NewJob("work", queue="q", client="shop", tags=("a", "b"))
    others = [
        replace(NewJob("work", client="shop", tags=("b",)), queue="p"),
        NewJob("play", queue="q", client="shop", tags=("b",)),
        NewJob("work", queue="q", client="shop", tags=("c",)),
        NewJob("work", queue="q", tags=("b",)),
        NewJob("work", queue="q", client="shop", tags=("b",), run_at=LATER),
    ]
    world.submit(wanted, *others)
    asked: dict[str, Any] = {"queue": "q", "kind": "work", "states": (State.READY,), "tag": "b", "client": "shop"}
    assert [one.id for one in world.db.run(jobs, Filter(**asked)).items] == [wanted.id]
    for left_out, other in zip(("queue", "kind", "tag", "client", "states"), others, strict=True):
        some = {name: value for name, value in asked.items() if name != left_out}
        assert {one.id for one in world.db.run(jobs, Filter(**some)).items} == {wanted.id, other.id}


def test_a_listed_job_shows_its_error_by_its_code(world: World) -> None:
    """A page stays small however long the errors are: of each, the code alone."""
    worker = world.worker()
    world.submit()
    worker.settle((worker.take(), Fail("E_NET", "x" * 10_000)))
    (one,) = world.db.run(jobs).items
    assert (one.error_code, one.failures, one.phase) == ("E_NET", 1, Phase.QUEUED)
    assert one.due_at is not None


def test_a_rare_filter_ends_its_page_at_its_bound_and_the_search_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page looks at so many rows and no more; it says that it is not complete, and where to go on."""
    short_walks(monkeypatch, "jobs", walk_rows=4)
    ids = world.submit(*(NewJob("work", queue="q", tags=("rare",) if n in (2, 5) else ()) for n in range(10)))
    pages = every(world, jobs, wanted=Filter(tag="rare"), limit=5)
    assert [[ids.index(one.id) for one in page.items] for page in pages] == [[], [5, 2], []]
    assert [page.complete for page in pages] == [False, False, True]


@pytest.mark.parametrize("wanted", [set(), {0}, {3}, {4}, {7}, {3, 4}, set(range(8))])
@pytest.mark.parametrize("limit", [1, 2, 4, 5])
def test_wherever_a_page_ends_the_next_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch, wanted: set[int], limit: int
) -> None:
    """At the bound of the walk, at the bound of the page, and where both meet: nothing is skipped or repeated."""
    short_walks(monkeypatch, "jobs", walk_rows=4)
    ids = world.submit(*(NewJob("work", queue="q", tags=("t",) if n in wanted else ()) for n in range(8)))
    pages = every(world, jobs, wanted=Filter(tag="t"), limit=limit)
    assert [one.id for one in items(pages)] == [ids[n] for n in sorted(wanted, reverse=True)]
    assert all(page.complete == (len(page.items) == limit) for page in pages[:-1])


@pytest.mark.parametrize("limit", [0, LIMITS.page_max + 1, True, "3"])
def test_a_page_has_a_size_in_bounds(world: World, limit: Any) -> None:
    """From 1 to 1,000; anything else is refused by field."""
    for read in (jobs, sessions, queues, paused):
        with pytest.raises(Invalid) as refused:
            world.db.run(read, limit=limit)
        assert refused.value.field == "limit"


def test_a_filter_that_cannot_be_is_refused(world: World) -> None:
    """A NUL, an empty name and a state that does not exist are refused, not looked for."""
    unfit: list[dict[str, Any]] = [{"queue": "a\x00b"}, {"kind": ""}, {"tag": "x" * 201}, {"client": "\ud800"}]
    for asked in unfit:
        with pytest.raises(Invalid) as refused:
            world.db.run(jobs, Filter(**asked))
        assert refused.value.field == next(iter(asked))


# What is kept beside a job.


def lost_and_reported(world: World, outcome: Any) -> tuple[JobId, Worker]:
    """A job whose lease was taken back, and then reported by who had it."""
    (job_id,) = world.submit()
    worker = world.worker()
    lease = worker.take()
    world.db.run(take_back, worker.id, watermark=worker.n, listed=[])
    worker.settle((lease, outcome))
    return job_id, worker


def test_late_results_are_shown_as_evidence(world: World) -> None:
    """What came without a lease is there, whole on request, and the job is as it was (spec B-16, Promise 3)."""
    job_id, worker = lost_and_reported(world, Succeed(encode({"n": 1})))
    (late,) = world.db.run(late_results, job_id).items
    assert (late.outcome, late.epoch, late.session_id, late.found_state) == ("succeed", 1, worker.id, State.READY)
    assert (late.document, late.document_bytes) == (None, 7)
    assert world.db.run(late_results, job_id, documents=True).items[0].document == '{"n":1}'
    assert world.state(job_id) == "ready"


def test_late_results_come_in_pages(world: World) -> None:
    """Each once, in the order of their coming."""
    job_id, worker = lost_and_reported(world, Fail("E", "one"))
    for n in (2, 3):
        lease = worker.take()
        world.db.run(take_back, worker.id, watermark=worker.n, listed=[])
        worker.settle((lease, Fail("E", str(n))))
    found = items(every(world, late_results, job_id=job_id, limit=1))
    assert [late.epoch for late in found] == [1, 2, 3]
    assert all(late.note is not None for late in found)


def test_a_receipt_is_found_by_actor_and_action(world: World) -> None:
    """The answer is what the command answered (spec B-04); an absent receipt is no proof of anything (spec P-03)."""
    action = world.action("ana")
    world.db.run(submit, new := NewJob("work"), action=action)
    found = world.db.run(receipt, "ana", action.id)
    assert (found.answer["jobs"], found.created_at) == ([new.id], action.created_at)
    for actor, name in (("ben", action.id), ("ana", "other")):
        with pytest.raises(NotFound) as refused:
            world.db.run(receipt, actor, name)
        assert "Send the command again" in refused.value.remedy


# Lineage.


def test_a_lineage_shows_both_directions(world: World) -> None:
    """What a job superseded and its successors, its parents and its children (spec A-06, A-08)."""
    (parent,) = world.submit()
    (first,) = world.submit(parents=(parent,), policy=Policy.WAIT)
    (child,) = world.submit(parents=(first,), policy=Policy.CANCEL)
    world.db.run(admit)
    worker = world.worker()
    worker.succeed(worker.take())
    worker.settle((worker.take(), Fail("E", "no", permanent=True)))
    second = world.db.run(reprocess, first, action=world.action()).job_id
    worker.settle((worker.take(), Fail("E", "no", permanent=True)))
    third = world.db.run(reprocess, second, action=world.action()).job_id
    seen = world.db.run(lineage, first)
    assert [one.job_id for one in seen.successors] == [second, third]
    assert [(one.job_id, one.state, one.policy, one.closed) for one in seen.parents] == [
        (parent, State.SUCCEEDED, Policy.WAIT, State.SUCCEEDED)
    ]
    assert [(one.job_id, one.state, one.policy) for one in seen.children] == [(child, State.CANCELLED, Policy.CANCEL)]
    assert [one.job_id for one in world.db.run(lineage, third).superseded] == [second, first]
    assert not seen.more


def test_a_lineage_is_bounded_and_says_so(world: World) -> None:
    """However many children a job has, so many are shown, and the list is named as going on."""
    (parent,) = world.submit()
    children = world.submit(*(NewJob("work", queue="q", parents=(parent,)) for _ in range(4)))
    world.db.run(admit)
    seen = world.db.run(lineage, parent, limit=3)
    assert [one.job_id for one in seen.children] == children[:3]
    assert seen.more == {"children"}
    assert not world.db.run(lineage, parent, limit=4).more


def test_a_job_without_relations_has_an_empty_lineage(world: World) -> None:
    """That it exists is all that is needed; what does not is refused."""
    (job_id,) = world.submit()
    seen = world.db.run(lineage, job_id)
    assert (seen.superseded, seen.successors, seen.parents, seen.children) == ((), (), (), ())
    with pytest.raises(NotFound):
        world.db.run(lineage, JobId(new_id()))


def test_an_unadmitted_job_is_shown_as_such(world: World) -> None:
    """A job of a caller's transaction is there once that commits, and says that no stream knows it (spec P-11)."""
    asked = NewJob("work", queue="q")
    world.db.run(submit_within, [asked], action=world.action())
    assert world.db.run(job, asked.id).unadmitted
    world.db.run(admit)
    assert not world.db.run(job, asked.id).unadmitted
