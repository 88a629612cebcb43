"""What the jobs of an analysis left, whatever was done to them (spec A-06, D-21)."""

from __future__ import annotations

import pytest

from testigo.authority.actions import new_id
from testigo.authority.admit import admit
from testigo.authority.cancel import cancel
from testigo.authority.prune import prune_jobs
from testigo.authority.reprocess import reprocess
from testigo.errors import NotFound, WrongPublisher
from testigo.evidence.analyses import begin_analysis
from testigo.evidence.following import check_publisher, left_by_parts
from testigo.evidence.model import AnalysisId
from testigo.rules.documents import encode
from testigo.rules.outcomes import Degrade, Fail, Outcome, Succeed
from tests.evidence.store.kit import KINDS, asked
from tests.world import World


def test_each_part_points_to_a_result_or_says_why_there_is_none(world: World) -> None:
    """By the last successor of its job, and without secrets."""
    new = asked(*["ruff"] * 7)
    world.db.run(begin_analysis, new, action=world.action())
    world.db.run(admit)
    worker = world.worker(queues=("scans",), kinds=KINDS)
    leases = {lease.job_id: lease for lease in worker.claim(6).leases}
    held = [part.job.id for part in new.parts if part.job.id in leases]
    (waiting,) = (part.job.id for part in new.parts if part.job.id not in leases)
    ends: list[Outcome] = [
        Succeed(encode({"run": "…"})),
        Succeed(encode(None)),
        Degrade(encode(None), ("not analysed: BUSY", "password='hunter2hunter2'")),
        Fail("NO", "password='hunter2hunter2'", permanent=True),
        Fail("NO", "never", permanent=True),
        Succeed(encode({"run": "…"})),
    ]
    worker.settle(*((leases[job], end) for job, end in zip(held, ends, strict=True)))
    world.db.run(cancel, [waiting], action=world.action())
    again = world.db.run(reprocess, held[4], action=world.action()).job_id
    worker.settle((worker.take(), Succeed(encode({"run": "…"}))))
    left = {each.job_id: each.why for each in world.db.run(left_by_parts, new.id)}
    assert left[held[3]].startswith("its job is permanent_failure (NO: password=")
    assert "hunter2" not in left.pop(held[3])
    assert "hunter2" not in left[held[2]]
    assert left == {
        held[0]: "",
        held[1]: "its job left no result",
        held[2]: "not analysed: BUSY; password='[redacted:password]'",
        again: "",
        held[5]: "",
        waiting: "its job is cancelled (cancelled)",
    }


def test_a_part_whose_job_is_not_kept_any_more_is_missing(world: World) -> None:
    """Its tombstone tells how it ended."""
    new = asked()
    world.db.run(begin_analysis, new, action=world.action())
    world.db.run(admit)
    worker = world.worker(queues=("scans",), kinds=KINDS)
    worker.settle((worker.take(), Succeed(encode({"run": "…"}))))
    while world.db.run(prune_jobs, older_than_days=0).more:
        pass
    (left,) = world.db.run(left_by_parts, new.id)
    assert left.why == "its job was succeeded, and is not kept any more"


def test_a_publisher_is_the_job_that_began_with_the_analysis_or_its_successor(world: World) -> None:
    """No other, and none of an analysis that is not there (spec D-07)."""
    new = asked()
    world.db.run(begin_analysis, new, action=world.action())
    world.db.run(admit)
    world.db.run(check_publisher, new.id, new.publish.id)
    with pytest.raises(WrongPublisher):
        world.db.run(check_publisher, new.id, new.parts[0].job.id)
    with pytest.raises(NotFound):
        world.db.run(check_publisher, AnalysisId(new_id()), new.publish.id)
