"""How a scan stands is told by the jobs that do its work now (spec A-06)."""

from __future__ import annotations

from pathlib import Path

from testigo.authority.prune import prune_jobs
from testigo.authority.reprocess import reprocess
from testigo.rules.outcomes import Fail
from testigo.rules.states import State
from testigo.scan.standing import Tally, standing
from tests.scan.beginning import scanning
from tests.world import World


def test_a_job_that_was_reprocessed_is_told_by_its_successor(world: World, tmp_path: Path) -> None:
    """So that a scan goes on while its publication does; and of what was pruned it is told how it ended."""
    run = scanning(world, tmp_path, "ruff", "bandit")
    counts = {part.analyser: part.files for part in run.new.parts}
    assert world.db.run(standing, run.id).publish is State.RUNNING
    run.worker.settle((run.lease, Fail("E", "never", permanent=True)))
    assert world.db.run(standing, run.id).ended
    world.db.run(reprocess, run.lease.job_id, action=world.action())
    world.db.run(reprocess, run.new.parts[0].job.id, action=world.action())
    now = world.db.run(standing, run.id)
    assert (now.publish, now.ended) == (State.READY, False)
    first, other = (part.analyser for part in run.new.parts)
    assert now.analysers == {
        first: Tally(1, 0, 0, counts[first], 0),
        other: Tally(1, 0, 1, counts[other], counts[other]),
    }
    run.worker.settle(*((lease, Fail("E", "never", permanent=True)) for lease in run.worker.claim(2).leases))
    while world.db.run(prune_jobs, older_than_days=0).more:
        pass
    now = world.db.run(standing, run.id)
    assert (now.publish, now.ended) == (State.PERMANENT_FAILURE, True)
    assert [tally.ended for tally in now.analysers.values()] == [1, 1]
