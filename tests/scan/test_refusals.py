"""Evidence that does not hold is not published, and the analysis says why (spec D-07, D-08, D-11)."""

from __future__ import annotations

from pathlib import Path

import pytest

from testigo.authority.read import end
from testigo.evidence.analyses import cancel_analysis
from testigo.evidence.model import AnalysisState
from testigo.rules.evidence.gate import Verdict
from tests.scan.kit import Scene, scene
from tests.worker.kit import PATIENCE_SECONDS, await_end
from tests.world import World


def _nothing_published(it: Scene, world: World, state: AnalysisState) -> str:
    """Why the analysis has ended so."""
    assert world.query("SELECT count(*) AS n FROM testigo.finding")[0].n == 0
    found = it.detail().view
    assert (found.state, found.persisted, found.findings) == (state, False, 0)
    assert it.gate.steps("ack") == []
    assert found.reason is not None
    return found.reason


@pytest.mark.needs_linux
def test_a_page_that_lies(world: World, database_url: str, tmp_path: Path) -> None:
    """A byte of it was changed on the way; no other try is made, for none would end otherwise (spec D-07)."""
    with scene(world, database_url, tmp_path) as it:
        it.gate.changes = lambda step, answer: answer.replace(b"shop/", b"shap/", 1) if step == "page" else answer
        it.begin()
        assert await_end(world, it.new.publish.id) == ["permanent_failure"]
        error = world.db.run(end, it.new.publish.id).error or {}
        assert error["code"] == "PAGE_INVALID"
        assert _nothing_published(it, world, AnalysisState.FAILED).startswith("PAGE_INVALID: Page 0")


@pytest.mark.needs_linux
def test_a_cancel_before_the_boundary(world: World, database_url: str, tmp_path: Path) -> None:
    """While a page is awaited: nothing is published, and the job ends cancelled (spec D-20)."""
    with scene(world, database_url, tmp_path) as it:
        it.gate.hold("page")
        it.begin()
        assert it.gate.reached.wait(PATIENCE_SECONDS)
        world.db.run(cancel_analysis, it.new.id, reason="not needed", action=world.action())
        it.gate.open()
        assert await_end(world, it.new.publish.id) == ["cancelled"]
        assert _nothing_published(it, world, AnalysisState.CANCELLED) == "not needed"


@pytest.mark.needs_linux
def test_a_server_that_is_away_to_the_last(world: World, database_url: str, tmp_path: Path) -> None:
    """Its parts are missing, so what is published is incomplete, and the gate does not pass (spec D-24)."""
    with scene(world, database_url, tmp_path) as it:
        it.server.kill()
        it.server.wait()
        it.begin()
        for part in it.new.parts:
            world.query(
                "UPDATE testigo.job SET failures = attempts - 1 WHERE id = CAST(:id AS uuid) RETURNING 1 AS one",
                id=part.job.id,
            )
        assert await_end(world, it.new.publish.id) == ["succeeded"]
        found = it.detail()
        assert (found.view.state, found.gate.verdict) == (AnalysisState.INCOMPLETE, Verdict.INCOMPLETE)
        for left in found.parts:
            (why,) = left.reasons
            assert why.startswith("not analysed: BUSY: The analyser server at "), why
