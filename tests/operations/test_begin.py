"""preview and begin: what an operation is for, and that it is frozen."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from testigo.authority.actions import Action, JobId, new_id
from testigo.authority.cancel import cancel
from testigo.authority.read import Count, Filter
from testigo.authority.reprocess import reprocess
from testigo.authority.submissions import NewJob
from testigo.errors import ActionIdCollision, Conflict, Invalid
from testigo.operations import (
    Operation,
    OperationId,
    OperationState,
    Outcome,
    Selection,
    Verb,
    advance,
    begin,
    items,
    operation,
    preview,
)
from testigo.operations.selection import from_text, to_text
from testigo.rules.outcomes import Block, Fail, Succeed
from testigo.rules.states import State
from testigo.settings import LIMITS
from tests.world import World

DEAD_END = Fail("E", "no", permanent=True)


def failed(world: World, count: int, **given: Any) -> list[JobId]:
    """So many jobs that failed for good."""
    jobs = world.submit(*(NewJob("work", queue=given.get("queue", "q"), priority=n) for n in range(count)))
    worker = world.worker(queues=(given.get("queue", "q"),))
    worker.settle(*((lease, DEAD_END) for lease in worker.claim(count).leases))
    return jobs


def began(world: World, verb: Verb, selection: Selection, action: Action | None = None) -> Operation:
    """An operation of the tester's."""
    return world.db.run(begin, verb, selection, reason="a test", action=action or world.action())


def jobs_of(world: World, going: Operation) -> list[JobId]:
    """The jobs of an operation, in its order."""
    return [item.job_id for item in world.db.run(items, going.id).items]


def test_a_preview_counts_what_would_be_begun_and_shows_the_newest(world: World) -> None:
    """The confirm page shows the exact set: how many, and a sample (panel.md *Access, actions, audit*)."""
    jobs = failed(world, 7)
    world.submit()
    chosen = Selection(wanted=Filter(queue="q"))
    seen = world.db.run(preview, Verb.RETRY, chosen)
    assert (seen.count, seen.complete) == (Count(7), True)
    assert [job.id for job in seen.sample] == jobs[:1:-1]
    assert jobs_of(world, began(world, Verb.RETRY, chosen)) == jobs
    assert world.db.run(preview, Verb.UNBLOCK, chosen).count == Count(0)


def test_what_is_frozen_stays_what_it_was_asked_for(world: World) -> None:
    """Whatever comes or changes afterwards is not meant; each job's revision of that moment is kept."""
    jobs = failed(world, 2)
    going = began(world, Verb.RETRY, Selection(wanted=Filter(queue="q")))
    failed(world, 1)
    assert jobs_of(world, going) == jobs
    assert [item.revision for item in world.db.run(items, going.id).items] == [world.job(job).revision for job in jobs]
    assert (going.state, going.total, going.waiting, going.complete) == (OperationState.RUNNING, 2, 2, True)
    assert (going.verb, going.reason, going.actor) == (Verb.RETRY, "a test", "tester")
    assert going == world.db.run(operation, going.id)


@pytest.mark.parametrize("verb", Verb)
def test_a_verb_takes_what_qualifies(world: World, verb: Verb) -> None:
    """Without states, a retry and a forget are for failures that nothing resolved, and never for what went well."""
    done, blocked, ready = world.submit(*(NewJob("work", queue="q", priority=n) for n in range(3)))
    worker = world.worker()
    worker.settle((worker.take(), Succeed()), (worker.take(), Block("approval")))
    bad, resolved = failed(world, 2, queue="bad")
    newer = world.db.run(reprocess, resolved, action=world.action()).job_id
    expected = {
        Verb.CANCEL: {blocked, ready, newer},
        Verb.RETRY: {bad},
        Verb.UNBLOCK: {blocked},
        Verb.FORGET: {bad},
    }
    chosen = Selection(wanted=Filter(kind="work"))
    assert set(jobs_of(world, began(world, verb, chosen))) == expected[verb]
    if verb in (Verb.RETRY, Verb.FORGET):
        done_too = Selection(wanted=Filter(states=(State.SUCCEEDED, State.LEASED)))
        assert jobs_of(world, began(world, verb, done_too)) == [done]


def test_what_was_done_again_is_not_retried_by_its_state(world: World) -> None:
    """A search for `state:failed` finds it, and a retry leaves it out: its successor is what counts."""
    first, second, last = failed(world, 3)
    for job in (first, second):
        world.db.run(reprocess, job, action=world.action())
    for states in ((State.PERMANENT_FAILURE,), (State.PERMANENT_FAILURE, State.SUCCEEDED)):
        chosen = Selection(wanted=Filter(states=states))
        seen = world.db.run(preview, Verb.RETRY, chosen)
        assert (seen.count, [job.id for job in seen.sample], seen.complete) == (Count(1), [last], True)
        assert jobs_of(world, began(world, Verb.RETRY, chosen)) == [last]
    named = world.db.run(preview, Verb.RETRY, Selection((first, second, last)))
    assert named.count == Count(1)


def test_states_that_a_verb_is_not_for_are_refused(world: World) -> None:
    """A filter that could find nothing fit is an error of who made it (INVALID)."""
    for verb, state in ((Verb.CANCEL, State.SUCCEEDED), (Verb.UNBLOCK, State.READY), (Verb.FORGET, State.RUNNING)):
        with pytest.raises(Invalid) as refused:
            began(world, verb, Selection(wanted=Filter(states=(state,))))
        assert refused.value.field == "states"


@pytest.mark.parametrize("verb", [Verb.CANCEL, Verb.UNBLOCK])
@pytest.mark.parametrize("wanted", [Filter(unresolved=True), Filter(cause="0" * 16)], ids=["unresolved", "cause"])
def test_a_search_for_failures_names_their_state(world: World, verb: Verb, wanted: Filter) -> None:
    """Nothing that failed for good can be cancelled or unblocked: it is neither counted so nor begun."""
    failed(world, 1)
    for look in (
        lambda: world.db.run(preview, verb, Selection(wanted=wanted)),
        lambda: began(world, verb, Selection(wanted=wanted)),
    ):
        with pytest.raises(Invalid) as refused:
            look()
        assert refused.value.field == "states"


def test_named_jobs_are_all_frozen(world: World) -> None:
    """Whoever names a job is told what became of it, be it gone or unfit."""
    ready, over = world.submit(*(NewJob("work", queue="q") for _ in range(2)))
    world.db.run(cancel, [over], action=world.action())
    missing = JobId(new_id())
    going = began(world, Verb.CANCEL, Selection((missing, over, ready)))
    assert (going.wanted, going.total) == (None, 3)
    assert jobs_of(world, going) == sorted([ready, over, missing])
    world.db.run(advance)
    told = {item.job_id: item for item in world.db.run(items, going.id).items}
    assert (told[ready].outcome, told[ready].state) == (Outcome.DONE, State.CANCELLED)
    assert (told[over].outcome, told[over].code) == (Outcome.REFUSED, "TERMINAL")
    assert (told[missing].outcome, told[missing].code, told[missing].state) == (Outcome.REFUSED, "NOT_FOUND", None)


def test_an_operation_on_nothing_is_done_at_once(world: World) -> None:
    """There is nothing to wait for."""
    going = began(world, Verb.RETRY, Selection(wanted=Filter(queue="nowhere")))
    assert (going.state, going.total) == (OperationState.DONE, 0)
    assert going.ended_at is not None
    assert world.db.run(advance) is None


def test_a_selection_is_bounded_and_says_so(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks at so many jobs and freezes so many: the newest, and that there may be more is told."""
    jobs = failed(world, 6)
    chosen = Selection(wanted=Filter(queue="q"))
    limits = replace(LIMITS, walk_rows=3, operation_walk_rows=4)
    monkeypatch.setattr(sys.modules["testigo.operations.begin"], "LIMITS", limits)
    seen = world.db.run(preview, Verb.RETRY, chosen)
    assert (seen.count, seen.complete) == (Count(3, more=True), False)
    going = began(world, Verb.RETRY, chosen)
    assert (jobs_of(world, going), going.complete) == (jobs[2:], False)
    limits = replace(LIMITS, operation_jobs_max=5)
    monkeypatch.setattr(sys.modules["testigo.operations.begin"], "LIMITS", limits)
    assert world.db.run(preview, Verb.RETRY, chosen).count == Count(6)
    going = began(world, Verb.RETRY, chosen)
    assert (jobs_of(world, going), going.complete) == (jobs[1:], False)


def test_a_resend_answers_with_the_operation_as_it_stands(world: World) -> None:
    """One action makes one operation, whatever became of it meanwhile (spec B-04)."""
    failed(world, 1)
    chosen, action = Selection(wanted=Filter(queue="q")), world.action()
    first = began(world, Verb.RETRY, chosen, action)
    world.db.run(advance)
    again = began(world, Verb.RETRY, chosen, action)
    assert (again.id, again.replayed, again.state) == (first.id, True, OperationState.DONE)
    with pytest.raises(ActionIdCollision):
        began(world, Verb.FORGET, chosen, action)
    with pytest.raises(Conflict):
        world.db.run(begin, Verb.RETRY, chosen, reason="x", action=world.action(), operation_id=OperationId(first.id))


@pytest.mark.parametrize("reason", ["", "  "])
def test_an_operation_has_a_reason(world: World, reason: str) -> None:
    """Required for what is done to many (panel.md *Access, actions, audit*)."""
    with pytest.raises(Invalid) as refused:
        world.db.run(begin, Verb.RETRY, Selection(wanted=Filter(queue="q")), reason=reason, action=world.action())
    assert refused.value.field == "reason"


def test_a_selection_names_jobs_or_asks_for_some() -> None:
    """Not both, and never everything by saying nothing."""
    named = (JobId(new_id()),)
    unfit: tuple[dict[str, Any], ...] = ({}, {"ids": named, "wanted": Filter(queue="q")}, {"ids": (*named, *named)})
    for given in unfit:
        with pytest.raises(Invalid):
            Selection(**given)


def test_what_was_asked_for_is_told_as_it_was() -> None:
    """A filter is kept whole, whatever it asks for."""
    wanted = Filter(
        queue="q",
        states=(State.READY, State.LEASED),
        created_after=datetime(2026, 11, 30, tzinfo=UTC),
        failures_min=2,
        payload=(("a", "b"), "é"),
    )
    assert from_text(to_text(wanted)) == wanted
    assert from_text(to_text(None)) is None
