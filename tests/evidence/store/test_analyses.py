"""begin_analysis, finish and cancel_analysis: how an analysis begins, and how it ends without evidence (spec D-21)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from testigo.authority.actions import new_id
from testigo.authority.admit import admit
from testigo.authority.submissions import NewJob
from testigo.errors import Conflict, Invalid, KeyConflict, NotFound, StateConflict
from testigo.evidence.analyses import begin_analysis, cancel_analysis, finish
from testigo.evidence.listing import analyses, analysis
from testigo.evidence.model import AnalysisId, AnalysisState, NewPart
from testigo.evidence.projects import project
from testigo.rules.evidence.gate import Verdict
from tests.evidence.store.kit import asked, found, going, published, sealed
from tests.races import race
from tests.world import World


def test_an_analysis_begins_with_its_project_and_its_jobs(world: World) -> None:
    """Numbered in its project; the job that publishes waits for the others (spec D-02)."""
    new = asked("ruff", "bandit")
    answer = world.db.run(begin_analysis, new, action=world.action("user:ana"))
    assert (answer.analysis_id, answer.n, answer.project, answer.replayed) == (new.id, 1, "shop", False)
    assert answer.jobs == tuple(part.job.id for part in new.parts)
    assert answer.wakes == ("scans",)
    world.db.run(admit)
    assert [world.state(job) for job in (*answer.jobs, answer.publish_job)] == ["ready", "ready", "inputs_pending"]
    detail = world.db.run(analysis, new.id)
    view = detail.view
    assert (view.state, view.revision, view.actor, view.source) == (AnalysisState.RUNNING, 1, "user:ana", "src")
    assert (view.analysers, view.verdict, detail.gate.verdict) == (("ruff", "bandit"), None, Verdict.INCOMPLETE)
    assert [(part.analyser, part.files, part.outcome) for part in detail.parts] == [
        ("ruff", 10, None),
        ("bandit", 10, None),
    ]
    assert world.db.run(project, "shop").analyses == 1
    assert world.db.run(begin_analysis, asked(), action=world.action()).n == 2


def test_analyses_of_one_project_that_begin_at_once_are_numbered_apart(world: World) -> None:
    """Of a new project too."""
    news = [asked() for _ in range(5)]
    actions = [world.action() for _ in news]
    answers = race(
        world.db,
        *(
            lambda new=new, action=action: world.db.run(begin_analysis, new, action=action)
            for new, action in zip(news, actions, strict=True)
        ),
    )
    assert sorted(answer.n for answer in answers) == [1, 2, 3, 4, 5]


def test_what_cannot_be_begun_leaves_nothing(world: World) -> None:
    """No project, no analysis and no job."""
    new = asked()
    (part,) = new.parts
    lonely = NewJob("testigo.publish", queue="scans")
    for wrong, field in (
        (replace(new, project=""), "project"),
        (replace(new, source=" "), "source"),
        (replace(new, analysers=()), "analysers"),
        (replace(new, analysers=("ruff", "ruff")), "analysers"),
        (replace(new, analysers=("bandit",)), "parts[0].analyser"),
        (replace(new, parts=(NewPart("ruff", part.job, files=-1),)), "parts[0].files"),
        (replace(new, publish=lonely), "publish.parents"),
        (replace(new, baseline=AnalysisId("x")), "baseline"),
        (replace(new, left_out={"": 1}), "left_out"),
        (replace(new, left_out={"link": -1}), "left_out.link"),
    ):
        with pytest.raises(Invalid) as refusal:
            world.db.run(begin_analysis, wrong, action=world.action())
        assert refusal.value.field == field
    with pytest.raises(NotFound):
        world.db.run(begin_analysis, replace(new, baseline=AnalysisId(new_id())), action=world.action())
    world.submit(NewJob("testigo.analyse", queue="scans", key="taken"))
    keyed = replace(new, parts=(NewPart("ruff", replace(part.job, key="taken")),))
    with pytest.raises(KeyConflict):
        world.db.run(begin_analysis, keyed, action=world.action())
    assert world.query("SELECT 1 FROM testigo.project") == []
    assert world.query("SELECT 1 FROM testigo.analysis") == []
    assert world.query("SELECT count(*) AS n FROM testigo.job")[0].n == 1


def test_what_is_not_in_scope_is_kept_with_the_analysis(world: World) -> None:
    """Whoever reads its evidence later knows what it says nothing of (spec D-24)."""
    told = [
        world.db.run(analysis, world.db.run(begin_analysis, asked(left_out=given), action=world.action()).analysis_id)
        for given in (None, {}, {"link": 2, "repository": 1})
    ]
    assert [each.view.left_out for each in told] == [None, {}, {"link": 2, "repository": 1}]


def test_a_baseline_is_of_the_same_project(world: World) -> None:
    """What another one knows is not known in this."""
    elsewhere = published(world, project="elsewhere")
    with pytest.raises(Invalid) as refusal:
        world.db.run(begin_analysis, asked(baseline=elsewhere), action=world.action())
    assert refusal.value.field == "baseline"
    with pytest.raises(NotFound):
        world.db.run(project, "shop")


def test_an_id_is_of_one_analysis(world: World) -> None:
    """Another beginning with it is refused."""
    new = asked()
    world.db.run(begin_analysis, new, action=world.action())
    with pytest.raises(Conflict):
        world.db.run(begin_analysis, replace(asked(), id=new.id), action=world.action())


def test_an_analysis_that_failed_stays_failed(world: World) -> None:
    """Final states stay final, and whoever ends it again is told what it is (spec D-20)."""
    run = going(world)
    ended = world.db.run(finish, run.id, AnalysisState.FAILED, reason="no result", action=world.action())
    assert (ended.state, ended.ended) == (AnalysisState.FAILED, True)
    again = world.db.run(finish, run.id, AnalysisState.CANCELLED, reason="late", action=world.action())
    assert (again.state, again.ended) == (AnalysisState.FAILED, False)
    view = world.db.run(analysis, run.id).view
    assert (view.state, view.reason, view.persisted) == (AnalysisState.FAILED, "no result", False)
    assert view.ended_at is not None
    with pytest.raises(Invalid):
        world.db.run(finish, run.id, AnalysisState.COMPLETE, reason="x", action=world.action())
    with pytest.raises(Invalid):
        world.db.run(finish, run.id, AnalysisState.FAILED, reason="", action=world.action())
    with pytest.raises(NotFound):
        world.db.run(finish, AnalysisId(new_id()), AnalysisState.FAILED, reason="x", action=world.action())


def test_an_analysis_is_cancelled_with_its_jobs(world: World) -> None:
    """Those that ended stay, what waits ends, and what runs is asked to stop (spec D-20)."""
    new = asked("ruff", "bandit")
    world.db.run(begin_analysis, new, action=world.action())
    world.db.run(admit)
    worker = world.worker(queues=("scans",), kinds=("testigo.analyse",))
    worker.succeed(worker.take())
    lease = worker.take()
    answer = world.db.run(cancel_analysis, new.id, reason="wrong tree", action=world.action())
    assert (answer.state, answer.ended, answer.wakes) == (AnalysisState.CANCELLED, True, (f"session:{worker.id}",))
    states = sorted(world.state(job.id) for job in (*(part.job for part in new.parts), new.publish))
    assert states == ["cancelled", "cancelling", "succeeded"]
    assert world.state(lease.job_id) == "cancelling"
    assert not world.db.run(cancel_analysis, new.id, reason="again", action=world.action()).ended


def test_published_evidence_is_not_cancelled(world: World) -> None:
    """It has crossed its boundary (spec D-20)."""
    analysis_id = published(world, found("a"))
    with pytest.raises(StateConflict):
        world.db.run(cancel_analysis, analysis_id, reason="late", action=world.action())
    assert world.db.run(analysis, analysis_id).view.state is AnalysisState.COMPLETE
    ended = world.db.run(finish, analysis_id, AnalysisState.FAILED, reason="late", action=world.action())
    assert (ended.state, ended.ended) == (AnalysisState.COMPLETE, False)


def test_analyses_are_listed_from_the_newest(world: World) -> None:
    """All, or those of a project, page by page."""
    ids = [published(world, found("a"), project=name) for name in ("one", "two", "one", "one")]
    every, of_one = [], []
    cursor = None
    while True:
        page = world.db.run(analyses, before=cursor, limit=3)
        every += [view.id for view in page.items]
        if (cursor := page.next) is None:
            break
    assert every == ids[::-1]
    while True:
        page = world.db.run(analyses, project="one", before=cursor, limit=2)
        of_one += [(view.id, view.n) for view in page.items]
        if (cursor := page.next) is None:
            break
    assert of_one == [(ids[3], 3), (ids[2], 2), (ids[0], 1)]
    assert world.db.run(analyses, project="nobody's").items == ()
    assert going(world).publish(sealed()).findings == 0
