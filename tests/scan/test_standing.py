"""How a scan stands is told by the jobs that do its work now (spec A-06)."""

from __future__ import annotations

from pathlib import Path

import pytest

from testigo.authority.actions import new_id
from testigo.authority.prune import prune_jobs
from testigo.authority.reprocess import reprocess
from testigo.authority.sessions import close_session
from testigo.authority.submissions import NewJob
from testigo.errors import NotFound
from testigo.evidence.model import AnalysisId, AnalysisState
from testigo.rules.outcomes import Fail
from testigo.rules.states import State
from testigo.scan.running import followed
from testigo.scan.standing import Standing, Tally, standing
from tests.evidence.store.kit import KINDS, Going, going, sealed
from tests.scan.beginning import scanning
from tests.world import World


def test_one_without_parts_stands_by_its_publication_alone(world: World) -> None:
    """Nobody was there to look; one that is not there is not found."""
    run = going(world, parts=(), publish=NewJob("testigo.publish", queue="scans"), analysers=("ruff",))
    assert world.db.run(standing, run.id) == Standing({}, State.RUNNING)
    run.publish()
    run.worker.succeed(run.lease)
    assert world.db.run(standing, run.id) == Standing({}, State.SUCCEEDED)
    with pytest.raises(NotFound):
        world.db.run(standing, AnalysisId(new_id()))


def test_a_queue_that_nobody_serves_is_named(world: World) -> None:
    """As long as nothing has ended it waits for a worker, and goes on with the next one."""
    run = going(world)
    assert world.db.run(standing, run.id).unserved is None
    world.db.run(close_session, run.worker.id)
    assert world.db.run(standing, run.id).unserved == "scans"
    world.worker(queues=("scans",), kinds=("another",))
    world.worker(queues=("others",), kinds=KINDS)
    assert world.db.run(standing, run.id).unserved == "scans"
    world.worker(queues=("scans",), kinds=KINDS)
    assert world.db.run(standing, run.id).unserved is None


def test_whoever_follows_one_whose_publication_is_reprocessed_follows_it_to_its_end(
    world: World,
) -> None:
    """Though it was seen to have ended (spec A-06)."""
    run = going(world)
    run.worker.settle((run.lease, Fail("E", "never", permanent=True)))
    seen: list[State] = []

    def shows(now: Standing) -> None:
        seen.append(now.publish)
        if len(seen) == 1:
            world.db.run(reprocess, run.lease.job_id, action=world.action())
        elif now.publish is State.READY:
            lease = run.worker.take()
            Going(world, run.new, run.worker, lease).publish(sealed())
            run.worker.succeed(lease)

    detail = followed(world.db, run.id, shows=shows, check=lambda: None)
    assert (detail.view.state, seen) == (
        AnalysisState.COMPLETE,
        [State.PERMANENT_FAILURE, State.READY, State.SUCCEEDED],
    )


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
