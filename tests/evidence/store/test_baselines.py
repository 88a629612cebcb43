"""Only what is new counts, and nothing stops being new by being found twice (spec D-20, D-21, D-23)."""

from __future__ import annotations

from dataclasses import replace

from testigo.evidence.baselines import baseline_of
from testigo.evidence.gates import gate, set_gate
from testigo.evidence.model import AnalysisId
from testigo.evidence.review import decide
from testigo.rules.evidence.coverage import Outcome
from testigo.rules.evidence.gate import DEFAULT, Policy, Verdict
from testigo.rules.evidence.review import Decision
from testigo.rules.evidence.severity import Severity
from tests.evidence.store.kit import found, going, one, published, sealed
from tests.world import World

NEW_ONLY = replace(DEFAULT, new_only=True)


def scanned(world: World, *names: str, policy: Policy = NEW_ONLY) -> tuple[AnalysisId, Verdict]:
    """An analysis that finds these, judged by the baseline that there is by then."""
    baseline = world.db.run(baseline_of, "shop", policy)
    made = published(world, *map(found, names), policy=policy, baseline=baseline)
    return made, world.db.run(gate, made).verdict


def test_what_failed_once_fails_as_often_as_it_is_scanned(world: World) -> None:
    """Until it is gone, or somebody accepts it: by deciding about it, or by setting the baseline."""
    assert world.db.run(baseline_of, "shop", DEFAULT) is None
    published(world, found("a"))
    first, verdict = scanned(world, "a")
    assert verdict is Verdict.FAILED
    again, verdict = scanned(world, "a")
    assert verdict is Verdict.FAILED
    target = one(world, again, "a").id
    world.db.run(decide, target, Decision.ACCEPTED_RISK, expected_revision=1, reason="known", action=world.action())
    accepted, verdict = scanned(world, "a")
    assert verdict is Verdict.PASSED
    assert scanned(world, "a", "b")[1] is Verdict.FAILED
    assert scanned(world, "a", "b")[1] is Verdict.FAILED
    assert world.db.run(baseline_of, "shop", DEFAULT) == accepted
    world.db.run(set_gate, "shop", DEFAULT, baseline=first, expected_revision=0, action=world.action())
    assert world.db.run(baseline_of, "shop", DEFAULT) == first


def test_only_what_is_complete_whole_and_no_laxer_is_a_baseline(world: World) -> None:
    """Whoever passes by a gate of their own has accepted nothing that another would not let through."""
    published(world, found("a"), policy=Policy())
    published(world, found("a"), policy=Policy.fail_on(Severity.CRITICAL))
    published(world, scope=("src/b.py",))
    going(world).publish(sealed(outcome=Outcome.INCOMPLETE))
    going(world)
    assert world.db.run(baseline_of, "shop", DEFAULT) is None
    strict = published(world, policy=Policy.fail_on(Severity.LOW))
    assert world.db.run(baseline_of, "shop", DEFAULT) == strict
    own = published(world)
    assert world.db.run(baseline_of, "shop", DEFAULT) == own
    assert world.db.run(baseline_of, "other", DEFAULT) is None


def test_what_passed_an_older_gate_is_no_baseline(world: World) -> None:
    """Whoever sets the gate has the newest judged by it: an older one has passed that of its time alone (spec D-21)."""
    world.db.run(set_gate, "shop", Policy(), expected_revision=0, action=world.action())
    published(world, found("a"))
    lax = published(world, found("a"))
    assert world.db.run(baseline_of, "shop", DEFAULT) == lax
    world.db.run(set_gate, "shop", DEFAULT, expected_revision=1, action=world.action())
    assert world.db.run(baseline_of, "shop", DEFAULT) is None
    passes = published(world)
    world.db.run(set_gate, "shop", DEFAULT, expected_revision=2, action=world.action())
    assert world.db.run(baseline_of, "shop", DEFAULT) == passes
