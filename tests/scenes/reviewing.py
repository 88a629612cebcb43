"""Scenes of evidence: analyses that begin, are published and end, and what people decide about them."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from testigo.authority.actions import new_id
from testigo.authority.admit import admit
from testigo.authority.cancel import cancel
from testigo.evidence.abandoned import Abandoned, end_abandoned
from testigo.evidence.analyses import begin_analysis, cancel_analysis, finish
from testigo.evidence.exemptions import end_exemption, exempt
from testigo.evidence.gates import reevaluate, set_gate
from testigo.evidence.model import AnalysisId, AnalysisState, Identity
from testigo.evidence.publication import publish
from testigo.evidence.review import advise, decide, decide_many, delete_finding
from testigo.rules.evidence.gate import Policy
from testigo.rules.evidence.review import Advice, Decision
from testigo.rules.evidence.severity import Severity
from testigo.rules.identity import content_digest
from testigo.scan.again import reprocess_analysis
from tests.evidence.store.kit import asked, attached, found, going, one, published, sealed
from tests.scan.beginning import scanning
from tests.scenes.call import Call, call, scene
from tests.world import World

KNOWN = Identity("ruff", content_digest("a"))


@scene(begin_analysis)
def begin_an_analysis_of_a_new_project(world: World) -> Call:
    """By two analysers, with a gate of its own."""
    new = asked("ruff", "bandit", policy=Policy.fail_on(Severity.LOW))
    return call(begin_analysis, new, action=world.action()).but(asked())


@scene(finish)
def finish_an_analysis_that_failed(world: World) -> Call:
    """Its parts are done, and its publication goes on."""
    options = {"reason": "no result", "action": world.action()}
    return call(finish, going(world).id, AnalysisState.FAILED, **options).but(reason="none")


@scene(cancel_analysis)
def cancel_an_analysis_with_its_jobs(world: World) -> Call:
    """One of its jobs is done and one is held."""
    return call(cancel_analysis, going(world).id, reason="wrong tree", action=world.action()).but(reason="none")


@scene(end_abandoned)
def end_an_analysis_that_nobody_will_publish(world: World) -> Call:
    """The job that publishes was cancelled, and one that looks for findings still runs."""
    new = asked("ruff", "bandit")
    world.db.run(begin_analysis, new, action=world.action())
    world.db.run(admit)
    world.worker(queues=("scans",), kinds=("testigo.analyse",)).take()
    world.db.run(cancel, [new.publish.id], action=world.action())
    return call(end_abandoned).then(Abandoned(None))


@scene(reprocess_analysis)
def do_an_analysis_again(world: World) -> Call:
    """It is published; its successor asks the same in another queue."""
    with TemporaryDirectory() as folder:
        run = scanning(world, Path(folder), "ruff", "bandit")
    run.publish(sealed(found("a")), sealed(part=1, analyser="bandit"))
    made = AnalysisId(new_id())
    return call(reprocess_analysis, run.id, new_analysis_id=made, action=world.action()).but(queue="elsewhere")


@scene(publish)
def publish_an_analysis(world: World) -> Call:
    """Something is new, something vanished with what exempted it, something is back, and there is an artifact."""
    published(world, found("a"), found("b"))
    published(world, found("a"))
    world.db.run(exempt, "shop", KNOWN, reason="a test's", action=world.action())
    run = going(world)
    results = [sealed(found("b"), found("c"), found("d", Severity.LOW), artifacts=(attached(),))]
    return call(publish, run.id, results, owner=run.owner, action=world.action()).but(run.id, [sealed()])


@scene(decide)
def decide_about_a_finding(world: World) -> Call:
    """It was decided before."""
    target = one(world, published(world, found("a"), found("b")), "a").id
    world.db.run(decide, target, Decision.NEEDS_REVIEW, expected_revision=1, action=world.action())
    options = {"expected_revision": 2, "reason": "a test's", "action": world.action()}
    return call(decide, target, Decision.FALSE_POSITIVE, **options).but(reason="another")


@scene(decide_many)
def decide_about_several_findings(world: World) -> Call:
    """Of one, somebody has decided since it was seen."""
    analysis_id = published(world, found("a"), found("b"))
    first, second = (one(world, analysis_id, name).id for name in "ab")
    world.db.run(decide, second, Decision.NEEDS_REVIEW, expected_revision=1, action=world.action())
    options = {"reason": "a test's", "action": world.action()}
    return call(decide_many, analysis_id, {first: 1, second: 1}, Decision.IGNORE, **options).but(reason="another")


@scene(advise)
def advise_about_a_finding(world: World) -> Call:
    """An advisor is sure."""
    target = one(world, published(world, found("a")), "a").id
    advice = Advice("a-model", Decision.IGNORE, "it is a test's")
    return call(advise, target, advice, action=world.action()).but(target, None)


@scene(delete_finding)
def delete_a_finding(world: World) -> Call:
    """It was decided before."""
    target = one(world, published(world, found("a"), found("b")), "a").id
    world.db.run(decide, target, Decision.NEEDS_REVIEW, expected_revision=1, action=world.action())
    options = {"expected_revision": 2, "reason": "a test's", "action": world.action()}
    return call(delete_finding, target, **options).but(reason="another")


@scene(exempt)
def exempt_a_fingerprint(world: World) -> Call:
    """It is found in the newest analysis."""
    published(world, found("a"))
    return call(exempt, "shop", KNOWN, reason="a risk", action=world.action()).but(reason="another")


@scene(end_exemption)
def end_an_exemption(world: World) -> Call:
    """It is in force."""
    published(world, found("a"))
    world.db.run(exempt, "shop", KNOWN, reason="a risk", action=world.action())
    options = {"expected_revision": 1, "reason": "no more", "action": world.action()}
    return call(end_exemption, "shop", KNOWN, **options).but(reason="another")


@scene(set_gate)
def set_a_gate(world: World) -> Call:
    """With what is published as its baseline."""
    first = published(world, found("a"))
    options = {"expected_revision": 0, "baseline": first, "reason": "we begin", "action": world.action()}
    return call(set_gate, "shop", Policy.fail_on(Severity.LOW, new_only=True), **options).but(reason="another")


@scene(reevaluate)
def evaluate_an_analysis_again(world: World) -> Call:
    """An exemption has expired since."""
    analysis_id = published(world, found("a"))
    world.db.run(exempt, "shop", KNOWN, reason="a risk", action=world.action())
    world.query("UPDATE testigo.exemption SET expires_at = granted_at RETURNING 1")
    other = published(world, project="other")
    return call(reevaluate, analysis_id, action=world.action()).but(other)
