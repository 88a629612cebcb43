"""An analysis ends whatever becomes of its jobs, of the server's answers, and of who says that it publishes it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from testigo.authority.cancel import cancel
from testigo.authority.read import end
from testigo.authority.retire import retire_lapsed
from testigo.authority.submit import submit
from testigo.evidence.abandoned import end_abandoned
from testigo.evidence.analyses import begin_analysis
from testigo.evidence.listing import analysis
from testigo.evidence.model import AnalysisState
from testigo.rules.evidence.gate import Verdict
from testigo.scan.jobs import publish
from testigo.scan.plan import Wanted, plan
from testigo.scan.scope import scope
from tests.scan.kit import QUEUE, Scene, scene, tree
from tests.worker.kit import PATIENCE_SECONDS, await_end, await_that
from tests.world import World

pytestmark = pytest.mark.needs_linux

LAST_TRY = "UPDATE testigo.job SET failures = attempts - 1 WHERE id = CAST(:id AS uuid) RETURNING 1 AS one"


def test_a_part_that_was_cancelled_is_missing_and_the_rest_is_published(
    world: World, database_url: str, tmp_path: Path
) -> None:
    """As incomplete, with what became of the part (spec A-08, D-21, D-24)."""
    with scene(world, database_url, tmp_path) as it:
        it.server.kill()
        it.server.wait()
        it.begin("ruff", "bandit")
        gone = next(part.job.id for part in it.new.parts if part.analyser == "bandit")
        world.db.run(cancel, [gone], note="too slow", action=world.action())
        it.serve()
        assert await_end(world, it.new.publish.id) == ["succeeded"]
        found = it.detail()
        assert (found.view.state, found.gate.verdict) == (AnalysisState.INCOMPLETE, Verdict.INCOMPLETE)
        assert found.view.findings > 0
        assert {part.reasons for part in found.parts if part.analyser == "bandit"} == {
            ("its job is cancelled (cancelled)",)
        }


def test_an_analysis_whose_publication_is_cancelled_ends_by_itself(
    world: World, database_url: str, tmp_path: Path
) -> None:
    """Whoever cancelled the job knew of no analysis; the worker's sweeper ends it (spec D-20)."""
    with scene(world, database_url, tmp_path) as it:
        it.gate.hold("ask")
        it.begin()
        assert it.gate.reached.wait(PATIENCE_SECONDS)
        world.db.run(cancel, [it.new.publish.id], action=world.action())
        await_that(lambda: it.detail().view.state is AnalysisState.CANCELLED, "the end of the analysis")
        assert [world.state(part.job.id) for part in it.new.parts] == ["cancelling"]


def test_an_acknowledgement_that_cannot_be_delivered_fails_nothing(
    world: World, database_url: str, tmp_path: Path
) -> None:
    """What is published stands, and the job says what it leaves to the server's time limit (spec D-09, D-12)."""
    with scene(world, database_url, tmp_path) as it:
        it.gate.hold("ack")
        it.begin()
        world.query(LAST_TRY, id=it.new.publish.id)
        assert it.gate.reached.wait(PATIENCE_SECONDS)
        it.server.kill()
        it.server.wait()
        it.gate.open()
        assert await_end(world, it.new.publish.id) == ["succeeded_degraded"]
        (said,) = world.db.run(end, it.new.publish.id).limitations or ()
        assert said.startswith("1 result is not acknowledged: BUSY: The analyser server at ")
        assert it.detail().view.state is AnalysisState.COMPLETE


def test_a_job_that_is_not_the_analysis_s_own_touches_nothing_of_it(
    world: World, database_url: str, tmp_path: Path
) -> None:
    """Neither before it is published nor after (spec D-07)."""
    with scene(world, database_url, tmp_path) as it:
        it.gate.hold("ask")
        it.begin()
        assert _by_another(world, it) == "WRONG_PUBLISHER"
        assert it.detail().view.state is AnalysisState.RUNNING
        it.gate.open()
        assert await_end(world, it.new.publish.id) == ["succeeded"]
        acknowledged = it.gate.steps("ack")
        assert _by_another(world, it) == "WRONG_PUBLISHER"
        assert it.gate.steps("ack") == acknowledged
        assert it.detail().view.state is AnalysisState.COMPLETE


def _by_another(world: World, it: Scene) -> str:
    """What a job is refused with that somebody submitted to publish this analysis."""
    other = publish.options(queue=QUEUE).new_job(analysis=it.new.id)
    world.db.run(submit, other, action=world.action())
    assert await_end(world, other.id) == ["permanent_failure"]
    return str((world.db.run(end, other.id).error or {})["code"])


def test_a_scan_that_was_killed_with_its_worker_ends_by_its_date(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody serves its queue any more; whoever sweeps for others ends it, and all of its jobs (spec D-21)."""
    monkeypatch.setattr("testigo.scan.asked.WITHIN", timedelta(0))
    new = plan(scope(tree(tmp_path / "tree")), Wanted("shop", ("ruff",), queue="scan-gone"), apart=tmp_path)
    world.db.run(begin_analysis, new, action=world.action())
    world.admit()
    world.db.run(retire_lapsed)
    assert world.db.run(end_abandoned).analysis_id == new.id
    view = world.db.run(analysis, new.id).view
    assert (view.state, view.reason) == (
        AnalysisState.FAILED,
        "Nothing was published, for its job is permanent_failure (finish_by).",
    )
    assert [world.state(part.job.id) for part in new.parts] == ["cancelled"]
