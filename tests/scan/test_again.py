"""An analysis that has ended is done again by a new one, which supersedes it (spec D-10, D-18)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from testigo.authority.actions import JobId, new_id
from testigo.authority.prune import prune_jobs
from testigo.authority.read import job
from testigo.authority.redact import Part, redact
from testigo.errors import NotFound, StateConflict
from testigo.evidence.analyses import begin_analysis, finish
from testigo.evidence.listing import analysis
from testigo.evidence.model import AnalysisId, AnalysisState
from testigo.rules.evidence.gate import Policy
from testigo.rules.evidence.severity import Severity
from testigo.scan.again import looked_at, reprocess_analysis
from testigo.scan.plan import Wanted, plan
from testigo.scan.scope import scope
from tests.evidence.reports import sarif, written
from tests.evidence.store.kit import Going, found, going, published, sealed
from tests.races import race
from tests.scan.beginning import scanning
from tests.scan.kit import tree
from tests.world import World


def again(world: World, run: Going, **given: Any) -> AnalysisId:
    """Its successor."""
    return world.db.run(reprocess_analysis, run.id, action=world.action(), **given).analysis_id


def asked(world: World, job_id: JobId) -> dict[str, Any]:
    """What the job of a part is asked, but for the analysis that it belongs to."""
    documents = world.db.run(job, job_id, documents=True).documents
    assert documents is not None
    told: dict[str, Any] = json.loads(documents.payload)
    told["options"].pop("analysis")
    return told


def test_a_server_for_it_looks_where_the_first_one_did(world: World, tmp_path: Path) -> None:
    """At its source, and at the reports that it was given, as far as they are still there."""
    reports = [written(tmp_path, sarif(), name) for name in ("a.sarif", "b.sarif")]
    new = plan(scope(tree(tmp_path / "tree")), Wanted("shop", ("ruff",), {"sarif": reports}), apart=tmp_path)
    world.db.run(begin_analysis, new, action=world.action())
    assert world.db.run(looked_at, new.id) == (tmp_path / "tree", *reports)
    reports[0].unlink()
    assert world.db.run(looked_at, new.id) == (tmp_path / "tree", reports[1])
    with pytest.raises(NotFound):
        world.db.run(looked_at, AnalysisId(new_id()))


def test_the_same_is_asked_of_the_same_files(world: World, tmp_path: Path) -> None:
    """For the same gate and baseline, in a queue of its own; what is published stays (spec D-10)."""
    policy, baseline = Policy.fail_on(Severity.LOW), published(world)
    given = {"policy": policy, "baseline": baseline, "scope": ("shop/",), "left_out": {"link": 3}}
    run = scanning(world, tmp_path, "ruff", "bandit", **given)
    run.publish(sealed(found("a")), sealed(part=1, analyser="bandit"))
    before = world.query("SELECT * FROM testigo.finding")
    made = again(world, run, queue="elsewhere")
    old, new = world.db.run(analysis, run.id), world.db.run(analysis, made)
    assert [asked(world, part.job_id) for part in new.parts] == [asked(world, part.job_id) for part in old.parts]
    assert {world.job(part.job_id).queue for part in new.parts} == {"elsewhere"}
    assert (new.view.supersedes, new.view.scope, new.view.source) == (run.id, ("shop/",), old.view.source)
    assert new.view.left_out == old.view.left_out == {"link": 3}
    assert (new.view.baseline, new.gate.policy, new.gate.policy_revision) == (baseline, policy, None)
    assert (new.view.state, new.view.analysers) == (AnalysisState.RUNNING, ("ruff", "bandit"))
    assert (old.view.successor, old.view.state) == (made, AnalysisState.COMPLETE)
    assert world.query("SELECT * FROM testigo.finding") == before


def test_it_is_done_again_once(world: World, tmp_path: Path) -> None:
    """A chain never forks, whoever is first; its end may be done again (spec A-06)."""
    run = scanning(world, tmp_path)
    with pytest.raises(StateConflict):
        again(world, run)
    world.db.run(finish, run.id, AnalysisState.FAILED, reason="no room", action=world.action())
    answers = race(world.db, *(lambda: again(world, run) for _ in range(3)))
    (made,) = (answer for answer in answers if isinstance(answer, str))
    refused = [answer for answer in answers if isinstance(answer, StateConflict)]
    assert [error.facts["successor"] for error in refused] == [made, made]
    with pytest.raises(StateConflict):
        world.db.run(reprocess_analysis, AnalysisId(made), action=world.action())
    with pytest.raises(NotFound):
        world.db.run(reprocess_analysis, AnalysisId(new_id()), action=world.action())


def test_what_is_not_kept_any_more_is_not_done_again(world: World, tmp_path: Path) -> None:
    """Jobs that were redacted, pruned, or never said what they were asked: the source is scanned anew."""
    redacted, gone, bare = scanning(world, tmp_path), scanning(world, tmp_path), going(world)
    for run in (redacted, gone, bare):
        run.publish(sealed())
        run.worker.succeed(run.lease)
    for part in redacted.new.parts:
        world.db.run(redact, part.job.id, [Part.PAYLOAD], note="a test's", action=world.action())
    for run in (redacted, bare, gone):
        if run is gone:
            while world.db.run(prune_jobs, older_than_days=0).more:
                pass
        with pytest.raises(StateConflict) as refusal:
            again(world, run)
        assert refusal.value.field == "analysis"
