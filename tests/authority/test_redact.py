"""redact: take out of a job that has ended what must not be kept, and leave a tombstone."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from testigo.authority.actions import JobId, new_id
from testigo.authority.cancel import cancel
from testigo.authority.expire import take_back
from testigo.authority.pause import configure_queue
from testigo.authority.prune import prune_jobs
from testigo.authority.read import job, late_results, tombstones
from testigo.authority.redact import Part, redact
from testigo.authority.report import LogLine, Progress, report
from testigo.authority.reprocess import reprocess
from testigo.authority.unblock import unblock
from testigo.errors import ActionIdCollision, Invalid, NotFound, StateConflict
from testigo.journal.catalogue import CATALOGUE, JobRedacted, data_of
from testigo.journal.history import history, runs
from testigo.journal.streams import read
from testigo.rules.documents import encode
from testigo.rules.identity import content_digest, digest
from testigo.rules.outcomes import Block, Degrade, Fail, Succeed, Yield
from testigo.rules.retries import Constant
from tests.invariants import check
from tests.races import in_line
from tests.world import World, held

SECRET = "s3cr3t"
ALL = tuple(Part)


def full_of_secrets(world: World) -> JobId:
    """A job that has ended, in a queue of full events, with a secret in all that anybody worded of it."""
    world.db.run(configure_queue, "q", events="full", action=world.action())
    secret = encode(SECRET)
    (job_id,) = world.submit(payload=secret, backoff=Constant(0), attempts=9)
    worker = world.worker()
    worker.settle((worker.take(), Block(SECRET, SECRET, secret)))
    world.db.run(unblock, [job_id], note=SECRET, action=world.action())
    worker.settle((worker.take(), Yield(secret)))
    worker.settle((worker.take(), Fail(SECRET, SECRET, SECRET)))
    for late in (Succeed(secret), Fail(SECRET, SECRET, SECRET)):
        lease = worker.take()
        world.db.run(take_back, worker.id, watermark=worker.n, listed=[])
        worker.settle((lease, late))
    lease = worker.take()
    now = datetime.now(UTC)
    told = Progress(held(lease), 1, now, 1.0, note=SECRET), LogLine(held(lease), 1, now, "info", SECRET)
    world.db.run(report, worker.id, told[:1], told[1:])
    worker.settle((lease, Degrade(secret, (SECRET,))))
    return job_id


def ended(world: World, **given: Any) -> JobId:
    """A job that succeeded."""
    (job_id,) = world.submit(**given)
    worker = world.worker()
    worker.settle((worker.take(), Succeed(encode({"made": SECRET}))))
    return job_id


def test_after_a_redaction_no_table_holds_any_of_the_text(world: World) -> None:
    """Every part redacted, the text is in no column of any table, while the job and its states are (spec B-11)."""
    job_id = full_of_secrets(world)
    assert world.holders(SECRET) == {"job", "event", "late", "job_log", "progress"}
    before = world.job(job_id)
    world.db.run(redact, job_id, ALL, note="a court order", action=world.action())
    assert world.holders(SECRET) == set()
    after = world.job(job_id)
    mark = f'{{"redacted":"{world.db.run(tombstones, job_id).items[0].id}"}}'
    assert (after.payload, after.checkpoint, after.output, after.error) == (mark, mark, mark, mark)
    same = ("id", "state", "epoch", "failures", "releases", "finished_at", "queue", "kind", "attempts", "cost")
    assert [getattr(after, name) for name in same] == [getattr(before, name) for name in same]
    assert after.revision == before.revision + 1
    check(world.db)


def test_a_cancelled_jobs_notes_go_as_well(world: World) -> None:
    """What was said when it was asked to stop is taken out of both events (spec B-11)."""
    (job_id,) = world.submit()
    worker = world.worker()
    lease = worker.take()
    world.db.run(cancel, [job_id], note=SECRET, action=world.action())
    worker.settle((lease, Block(SECRET, SECRET)))
    assert world.holders(SECRET) == {"event"}
    world.db.run(redact, job_id, [Part.EVENTS], note="x", action=world.action())
    assert world.holders(SECRET) == set()


@pytest.mark.parametrize("part", ALL)
def test_only_the_parts_that_are_named_are_taken_out(world: World, part: Part) -> None:
    """Each part alone: it is gone, and every other one is as it was."""
    job_id = full_of_secrets(world)
    before = world.job(job_id)._mapping
    late = world.db.run(late_results, job_id, documents=True).items
    told = world.db.run(history, job_id, limit=1000).events
    world.db.run(redact, job_id, [part], note="x", action=world.action())
    after = world.job(job_id)._mapping
    own = {"payload", "checkpoint", "output", "error"} & {part}
    changed = {name for name in before if before[name] != after[name]}
    assert changed == own | {"revision"} | ({"limitations"} if part is Part.OUTPUT else set())
    assert (world.db.run(late_results, job_id, documents=True).items != late) == (part is Part.LATE)
    assert (world.db.run(history, job_id, limit=1000).events[:-1] != told) == (part is Part.EVENTS)


def test_ids_and_sequences_stay_and_what_events_tell_still_has_its_type(world: World) -> None:
    """Every event keeps id, place, time, actor and type, and passes its schema; the runs are told as before
    (spec B-11, B-03, A-02, P-27)."""
    job_id = full_of_secrets(world)
    before, runs_before = world.db.run(read, "q", limit=1000), world.db.run(runs, job_id)
    made = world.db.run(redact, job_id, ALL, note="x", action=world.action("ana"))
    after = world.db.run(read, "q", limit=1000)
    for old, new in zip(before.events, after.events, strict=False):
        assert {**vars_of(old), "data": None} == {**vars_of(new), "data": None}
        assert new.data["redacted"] == made.tombstone
        assert {name: old.data.get(name) for name in ("state", "epoch")} == {
            name: new.data.get(name) for name in ("state", "epoch")
        }
        assert type(data_of(new)) is CATALOGUE[new.type]
    assert [(run.epoch, run.how, run.ended_at) for run in world.db.run(runs, job_id)] == [
        (run.epoch, run.how, run.ended_at) for run in runs_before
    ]
    told = after.events[-1]
    assert (len(after.events), told.type, told.actor) == (len(before.events) + 1, "job.redacted", "ana")
    assert (told.revision, told.sequence) == (made.revision, after.head)
    assert data_of(told) == JobRedacted(
        tombstone=made.tombstone, parts=tuple(sorted(ALL)), digest=made.digest, note="x"
    )


def vars_of(value: Any) -> dict[str, Any]:
    """The fields of a slotted value."""
    return {name: getattr(value, name) for name in value.__slots__}


def test_a_tombstone_says_who_and_why_and_digests_what_is_gone(world: World) -> None:
    """Actor, action and note are those of the redaction; whoever has the texts can show that it was they
    (spec B-11, P-06)."""
    job_id = ended(world)
    action = world.action("ana")
    made = world.db.run(redact, job_id, [Part.OUTPUT], note="a court\norder", action=action)
    (tombstone,) = world.db.run(tombstones, job_id).items
    assert (tombstone.id, tombstone.what, tombstone.state) == (made.tombstone, "redacted", "succeeded")
    assert (tombstone.actor, tombstone.action, tombstone.note) == ("ana", action.id, "a court\norder")
    texts = [["output", "output", content_digest(encode({"made": SECRET}))]]
    assert tombstone.digest == made.digest == digest("redacted", {"job": job_id, "texts": texts})


def test_a_redaction_is_repeatable_and_takes_only_what_is_left(world: World) -> None:
    """A second one leaves the marks of the first, so each text leads to the tombstone that digests it."""
    job_id = full_of_secrets(world)
    first = world.db.run(redact, job_id, [Part.PAYLOAD, Part.EVENTS], note="x", action=world.action())
    events = world.db.run(history, job_id, limit=1000).events[:-1]
    second = world.db.run(redact, job_id, ALL, note="y", action=world.action())
    third = world.db.run(redact, job_id, ALL, note="z", action=world.action())
    seen = world.db.run(job, job_id, documents=True)
    assert seen.documents is not None
    assert (seen.documents.payload, seen.documents.output) == tuple(
        f'{{"redacted":"{made.tombstone}"}}' for made in (first, second)
    )
    assert world.db.run(history, job_id, limit=1000).events[: len(events)] == events
    assert [one.id for one in world.db.run(tombstones, job_id).items] == [
        made.tombstone for made in (first, second, third)
    ]
    assert len({first.digest, second.digest, third.digest}) == 3
    check(world.db)


def test_a_late_result_that_comes_after_a_redaction_can_be_redacted_too(world: World) -> None:
    """Evidence that arrives afterwards is new text, and goes with the next redaction (spec B-16)."""
    (job_id,) = world.submit()
    worker = world.worker()
    lease = worker.take()
    world.db.run(take_back, worker.id, watermark=worker.n, listed=[])
    worker.succeed(worker.take())
    world.db.run(redact, job_id, ALL, note="x", action=world.action())
    worker.settle((lease, Succeed(encode(SECRET))))
    assert world.holders(SECRET) == {"late"}
    world.db.run(redact, job_id, [Part.LATE], note="x", action=world.action())
    assert world.holders(SECRET) == set()


def test_a_redaction_that_is_sent_again_answers_and_does_nothing(world: World) -> None:
    """The receipt is the answer (spec B-04); other parts under the same action are refused."""
    job_id = ended(world)
    action = world.action()
    made = world.db.run(redact, job_id, [Part.OUTPUT], note="x", action=action)
    again = world.db.run(redact, job_id, [Part.OUTPUT], note="x", action=action)
    assert (again.tombstone, again.digest, again.revision) == (made.tombstone, made.digest, made.revision)
    assert (made.replayed, again.replayed) == (False, True)
    assert len(world.db.run(tombstones, job_id).items) == 1
    with pytest.raises(ActionIdCollision):
        world.db.run(redact, job_id, [Part.PAYLOAD], note="x", action=action)


def test_what_has_not_ended_is_not_redacted(world: World) -> None:
    """A job that may run still needs its payload: refused, with what to do first (spec A-06)."""
    (job_id,) = world.submit()
    for _ in range(2):
        with pytest.raises(StateConflict) as refused:
            world.db.run(redact, job_id, ALL, note="x", action=world.action())
        assert "Cancel it, or wait until it has ended" in refused.value.remedy
        world.worker().claim(1)
    assert world.job(job_id).payload == "null"
    with pytest.raises(NotFound):
        world.db.run(redact, JobId(new_id()), ALL, note="x", action=world.action())


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"parts": []}, "parts"),
        ({"parts": ["everything"]}, "parts"),
        ({"parts": "payload"}, "parts"),
        ({"note": ""}, "note"),
        ({"note": " \n"}, "note"),
        ({"job_id": "7"}, "job"),
    ],
)
def test_bad_input_is_refused_by_field(world: World, asked: dict[str, Any], field: str) -> None:
    """No part, an unknown part, a note that says nothing: nothing is done."""
    job_id = ended(world)
    given: dict[str, Any] = {"job_id": job_id, "parts": [Part.OUTPUT], "note": "x"} | asked
    with pytest.raises(Invalid) as refused:
        world.db.run(redact, **given, action=world.action())
    assert refused.value.field == field
    assert not world.db.run(tombstones, job_id).items


def attempted(world: World, job_id: str, change: str, *, buried: bool) -> str | None:
    """What the database says to a change of a job by hand, behind a tombstone of the same transaction or not."""

    def change_by_hand(c: Connection) -> None:
        if buried:
            c.exec_driver_sql(
                "INSERT INTO testigo.tombstone (id, job_id, what, state, digest, actor, action, note, at)"
                " VALUES (gen_random_uuid(), %s, 'redacted', 'succeeded', '', '', '', '', now())",
                (job_id,),
            )
        c.exec_driver_sql(f"UPDATE testigo.job SET {change} WHERE id = %s", (job_id,))

    try:
        world.db.run(change_by_hand)
    except DBAPIError as refused:
        return str(getattr(refused.orig, "sqlstate", None))
    return None


def test_the_database_refuses_the_change_without_its_tombstone(world: World) -> None:
    """An UPDATE of what has ended fails by itself, and one behind a tombstone of another transaction as well
    (spec A-06, P-26)."""
    job_id = ended(world)
    change = "payload = '1', revision = revision + 1"
    assert attempted(world, job_id, change, buried=False) == "TG001"
    world.db.run(redact, job_id, [Part.OUTPUT], note="x", action=world.action())
    assert attempted(world, job_id, change, buried=False) == "TG001"
    assert attempted(world, job_id, change, buried=True) is None


@pytest.mark.parametrize(
    "change",
    [
        "state = 'cancelled', revision = revision + 1",
        "epoch = epoch + 1, revision = revision + 1",
        "id = gen_random_uuid(), revision = revision + 1",
        "payload = '1'",
        "payload = '1', revision = revision + 2",
    ],
)
def test_no_tombstone_lets_a_job_change_its_state_or_epoch(world: World, change: str) -> None:
    """Behind a tombstone too, state, epoch and id stay, and the revision rises by one (spec A-06, P-26)."""
    job_id = ended(world)
    assert attempted(world, job_id, change, buried=True) == "TG001"


def test_a_redaction_waits_for_a_prune_that_was_first_and_finds_nothing(world: World) -> None:
    """The job is gone, so there is nothing to redact and no tombstone of it (spec P-08)."""
    job_id = ended(world)
    pruned, refused = in_line(
        world.db,
        lambda c: prune_jobs(c, older_than_days=0),
        lambda: world.db.run(redact, job_id, ALL, note="x", action=world.action()),
    )
    assert pruned.pruned == 1
    assert isinstance(refused, NotFound)
    assert [one.what for one in world.db.run(tombstones, job_id).items] == ["pruned"]


def test_a_prune_passes_over_what_is_being_redacted(world: World) -> None:
    """It waits for nobody: the job goes with the next pass, behind both tombstones (spec P-08)."""
    job_id = ended(world)
    _, passed = in_line(
        world.db,
        lambda c: redact(c, job_id, ALL, note="x", action=world.action()),
        lambda: world.db.run(prune_jobs, older_than_days=0),
    )
    assert passed == (0, False)
    assert world.db.run(prune_jobs, older_than_days=0).pruned == 1
    assert [one.what for one in world.db.run(tombstones, job_id).items] == ["redacted", "pruned"]


def test_a_job_without_its_payload_is_not_run_again(world: World) -> None:
    """A reprocess would hand the mark to the handler: it is refused; without that part it is not (spec A-06)."""
    kept, gone = ended(world), ended(world)
    world.db.run(redact, kept, [Part.OUTPUT, Part.EVENTS], note="x", action=world.action())
    world.db.run(redact, gone, [Part.PAYLOAD], note="x", action=world.action())
    world.db.run(reprocess, kept, action=world.action())
    with pytest.raises(StateConflict, match="was redacted") as refused:
        world.db.run(reprocess, gone, action=world.action())
    assert "Submit the work anew" in refused.value.remedy
