"""Whoever says why does not thereby keep a secret: reasons and notes are kept without it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from testigo.access.audit import audits
from testigo.access.roles import Right, Role
from testigo.authority.actions import JobId
from testigo.authority.cancel import cancel
from testigo.authority.forget import forget
from testigo.authority.pause import Scope, pause
from testigo.authority.redact import Part, redact
from testigo.authority.reprocess import reprocess
from testigo.authority.unblock import unblock
from testigo.operations import Selection, Verb, begin
from testigo.rules.outcomes import Block, Outcome, Succeed
from tests.access.people import People
from tests.world import World

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
WHY = f"it was sent with {TOKEN} by mistake"
KEPT = "it was sent with [redacted:github-token] by mistake"

Command = Callable[[World, JobId], object]


def ended(world: World, outcome: Outcome) -> JobId:
    """A job whose run ended so."""
    (job_id,) = world.submit()
    worker = world.worker()
    worker.settle((worker.take(), outcome))
    return job_id


@pytest.mark.parametrize(
    ("outcome", "command", "where"),
    [
        (None, lambda world, job: world.db.run(cancel, [job], note=WHY, action=world.action()), {"event"}),
        (Block("x"), lambda world, job: world.db.run(unblock, [job], note=WHY, action=world.action()), {"event"}),
        (Succeed(), lambda world, job: world.db.run(reprocess, job, note=WHY, action=world.action()), {"event"}),
        (Succeed(), lambda world, job: world.db.run(forget, [job], note=WHY, action=world.action()), {"tombstone"}),
        (
            Succeed(),
            lambda world, job: world.db.run(redact, job, [Part.OUTPUT], note=WHY, action=world.action()),
            {"tombstone", "event"},
        ),
        (None, lambda world, _: world.db.run(pause, Scope.QUEUE, "q", note=WHY, action=world.action()), {"pause"}),
        (
            None,
            lambda world, job: world.db.run(begin, Verb.CANCEL, Selection((job,)), reason=WHY, action=world.action()),
            {"operation"},
        ),
    ],
    ids=["cancel", "unblock", "reprocess", "forget", "redact", "pause", "operation"],
)
def test_a_note_is_kept_without_the_secret_in_it(
    world: World, outcome: Outcome | None, command: Command, where: set[str]
) -> None:
    """It is in no table, its receipt included; the words around it are where they were (spec D-14)."""
    job_id = world.submit()[0] if outcome is None else ended(world, outcome)
    command(world, job_id)
    assert world.holders(TOKEN) == set()
    assert world.holders(KEPT) == where


def test_the_audit_keeps_a_reason_without_the_secret_in_it(world: World) -> None:
    """And a resend is known all the same, for the digest is that of what was said."""
    people = People(world.db)
    who = people.user(Role.ADMIN)
    (job_id,) = world.submit()
    order = people.order(who, Right.CANCEL, objects=(f"job:{job_id}",), reason=WHY)
    for _ in range(2):
        people.cancel(order, [job_id])
    assert [row.reason for row in world.db.run(audits).items] == [KEPT]
    assert world.holders(TOKEN) == set()
