"""Only what is new counts, and nothing stops being new by being found twice (spec D-20, D-21, D-23)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from testigo.evidence.baselines import baseline_of
from testigo.evidence.exemptions import end_exemption, exempt
from testigo.evidence.gates import gate, set_gate
from testigo.evidence.model import AnalysisId, Identity
from testigo.evidence.review import decide
from testigo.rules.evidence.coverage import Outcome
from testigo.rules.evidence.gate import DEFAULT, Policy, Verdict
from testigo.rules.evidence.review import DECISIONS, Decision
from testigo.rules.evidence.severity import Severity
from testigo.rules.identity import content_digest
from tests.evidence.store.kit import WHEN, found, going, one, published, sealed
from tests.world import World

KNOWN = Identity("ruff", content_digest("a"))
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


def expired(world: World) -> None:
    """The time of every exemption is over."""
    world.query("UPDATE testigo.exemption SET granted_at = :at, expires_at = :at RETURNING 1", at=WHEN)


def revoked(world: World) -> None:
    """Somebody took the risk back."""
    world.db.run(end_exemption, "shop", KNOWN, expected_revision=1, action=world.action())


def gone_and_back(world: World) -> None:
    """What was exempt vanished, so that the exemption lapsed, in an analysis that fails by something else."""
    assert scanned(world, "other")[1] is Verdict.FAILED


@pytest.mark.parametrize("ends", [expired, revoked, gone_and_back], ids=lambda ends: ends.__name__)
def test_what_passed_because_it_was_exempt_is_new_when_that_ends(world: World, ends: Callable[[World], None]) -> None:
    """However many analyses passed with it: an exemption accepts nothing for longer than it is in force (spec D-23)."""
    published(world)
    world.db.run(exempt, "shop", KNOWN, reason="this month", action=world.action())
    assert [scanned(world, "a")[1] for _ in range(2)] == [Verdict.PASSED, Verdict.PASSED]
    ends(world)
    again, verdict = scanned(world, "a")
    assert (verdict, one(world, again, "a").known) == (Verdict.FAILED, False)
    target = one(world, again, "a").id
    world.db.run(decide, target, Decision.ACCEPTED_RISK, expected_revision=1, reason="known", action=world.action())
    assert scanned(world, "a")[1] is Verdict.PASSED


def test_what_passed_because_the_source_suppressed_it_is_new_without_that(world: World) -> None:
    """As long as it is suppressed it does not count, and nothing more is accepted (spec D-23)."""
    policy = replace(NEW_ONLY, honour_suppressions=True)
    verdicts = []
    for suppressed in (True, True, False):
        baseline = world.db.run(baseline_of, "shop", policy)
        made = published(world, found("a", suppressed=suppressed), policy=policy, baseline=baseline)
        verdicts.append(world.db.run(gate, made).verdict)
    assert verdicts == [Verdict.PASSED, Verdict.PASSED, Verdict.FAILED]


@pytest.mark.parametrize("decision", [row.decision for row in DECISIONS if not row.counts], ids=str)
def test_a_decision_accepts_but_for_one_that_says_it_is_mended(world: World, decision: Decision) -> None:
    """What is found again was not: `fixed` inspects nothing (spec D-18)."""
    first = published(world, found("a"))
    options: dict[str, Any] = {"expected_revision": 1, "reason": "seen", "action": world.action()}
    world.db.run(decide, one(world, first, "a").id, decision, **options)
    accepted = decision is not Decision.FIXED
    again, verdict = scanned(world, "a")
    assert (one(world, again, "a").known, verdict is Verdict.PASSED) == (accepted, accepted)


def test_what_was_accepted_before_it_was_exempt_stays_so(world: World) -> None:
    """It would have passed without the exemption, and whatever a person sets as the baseline is accepted whole."""
    first = published(world, found("a"))
    world.db.run(exempt, "shop", KNOWN, reason="this month", action=world.action())
    world.db.run(set_gate, "shop", DEFAULT, baseline=first, expected_revision=0, action=world.action())
    assert one(world, scanned(world, "a")[0], "a").known
    expired(world)
    assert scanned(world, "a")[1] is Verdict.PASSED
    world.db.run(set_gate, "shop", DEFAULT, expected_revision=1, action=world.action())
    again, verdict = scanned(world, "a")
    assert (verdict, one(world, again, "a").known) == (Verdict.PASSED, True)
