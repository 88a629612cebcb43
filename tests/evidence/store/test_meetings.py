"""Commands of evidence that meet: each whole, in one order or the other, and nobody waits in a circle."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from threading import Barrier, Event
from typing import Any

import pytest

from testigo.authority.cancel import cancel
from testigo.errors import Conflict, LeaseLost, NotFound, RevisionMismatch, ScanEvidenceConflict, StateConflict
from testigo.evidence.analyses import cancel_analysis
from testigo.evidence.exemptions import end_exemption, exempt
from testigo.evidence.findings import finding
from testigo.evidence.gates import GateSet, reevaluate, set_gate
from testigo.evidence.listing import analysis
from testigo.evidence.model import AnalysisId, AnalysisState, Identity
from testigo.evidence.projects import project
from testigo.evidence.publication import Published, persisted, publish
from testigo.evidence.review import decide, decide_many
from testigo.rules.evidence.finding import Finding
from testigo.rules.evidence.gate import Policy, Verdict
from testigo.rules.evidence.review import Decision
from testigo.rules.evidence.severity import Severity
from testigo.rules.identity import content_digest
from tests.evidence.store.kit import found, going, listed, one, published, sealed, with_pages
from tests.races import deadlocks, in_line, race
from tests.world import World

KNOWN = Identity("ruff", content_digest("a"))


def test_two_publications_of_one_analysis_make_one(world: World) -> None:
    """The other is refused with what it met, whatever it had inserted (spec D-07, D-10)."""
    run = going(world)
    answers = race(
        world.db, lambda: run.publish(sealed(found("a"))), lambda: run.publish(sealed(found("a"), found("b")))
    )
    (won,) = (answer for answer in answers if isinstance(answer, Published))
    (lost,) = (answer for answer in answers if not isinstance(answer, Published))
    assert isinstance(lost, ScanEvidenceConflict)
    assert len(listed(world, run.id)) == won.findings


def test_a_publication_that_waited_for_another_sees_what_it_left(world: World) -> None:
    """It looks for evidence in a later statement than the one that took the lock (spec P-07)."""
    run = going(world)
    action = world.action()
    first, second = in_line(
        world.db,
        lambda c: publish(c, run.id, [sealed(found("a"))], owner=run.owner, action=action),
        lambda: run.publish(sealed(found("b"))),
    )
    assert (first.findings, type(second)) == (1, ScanEvidenceConflict)


def test_one_that_waited_for_another_that_was_undone_publishes(world: World) -> None:
    """What was rolled back left nothing authoritative (spec D-11)."""
    run = going(world)
    action = world.action()
    _, second = in_line(
        world.db,
        lambda c: publish(c, run.id, [sealed(found("a"))], owner=run.owner, action=action),
        lambda: run.publish(sealed(found("b"))),
        undone=True,
    )
    assert second.findings == 1
    assert list(listed(world, run.id)) == ["b"]


def test_a_cancel_that_comes_before_the_boundary_wins(world: World) -> None:
    """While pages are being inserted the job is not held: a cancel goes through, and nothing is published (D-20)."""
    run = going(world)
    begun, cancelled = Barrier(2), Event()

    def slow() -> Iterator[Sequence[Finding]]:
        yield [found("a")]
        begun.wait(60)
        cancelled.wait(60)
        yield [found("b")]

    def ask() -> object:
        begun.wait(60)
        try:
            return world.db.run(cancel, [run.lease.job_id], action=world.action())
        finally:
            cancelled.set()

    answer, _ = race(world.db, lambda: run.publish(with_pages(sealed(found("a"), found("b")), slow)), ask)
    assert isinstance(answer, StateConflict)
    assert world.db.run(persisted, run.id) is None
    assert world.state(run.lease.job_id) == "cancelling"


def test_a_cancel_that_comes_after_the_boundary_waits_and_undoes_nothing(world: World) -> None:
    """It meets the job's lock, and the evidence stays (spec D-20)."""
    run = going(world)
    action, other = world.action(), world.action()
    answer, _ = in_line(
        world.db,
        lambda c: publish(c, run.id, [sealed(found("a"))], owner=run.owner, action=action),
        lambda: world.db.run(cancel, [run.lease.job_id], action=other),
    )
    assert answer.state is AnalysisState.COMPLETE
    assert world.db.run(persisted, run.id) is not None
    assert world.state(run.lease.job_id) == "cancelling"


def test_a_lease_that_is_lost_meanwhile_publishes_nothing(world: World) -> None:
    """The session was closed while pages were being inserted (spec P-15, P-18)."""
    run = going(world)

    def closing() -> Iterator[Sequence[Finding]]:
        yield [found("a")]
        world.query(
            "UPDATE testigo.session SET state = 'dead' WHERE id = CAST(:id AS uuid) RETURNING 1", id=run.worker.id
        )

    with pytest.raises(LeaseLost):
        run.publish(with_pages(sealed(found("a")), closing))
    assert world.db.run(persisted, run.id) is None


def test_cancelling_the_analysis_and_publishing_it_meet_at_its_row(world: World) -> None:
    """It is published or cancelled, never both (spec D-20)."""
    for _ in range(5):
        run = going(world)
        action = world.action()
        race(
            world.db,
            lambda: run.publish(sealed(found("a"))),  # noqa: B023
            lambda: world.db.run(cancel_analysis, run.id, reason="x", action=action),  # noqa: B023
        )
        view = world.db.run(analysis, run.id).view
        assert (view.state, view.persisted, view.findings) in (
            (AnalysisState.COMPLETE, True, 1),
            (AnalysisState.CANCELLED, False, 0),
        )


def test_a_decision_and_the_publication_of_a_later_analysis_do_not_touch_each_other(world: World) -> None:
    """The review stays where it was made, and the new analysis opens its own (spec D-18)."""
    first = published(world, found("a"))
    target = one(world, first, "a").id
    run = going(world)
    action = world.action()
    options: dict[str, Any] = {"expected_revision": 1, "reason": "seen", "action": action}
    decided, later = race(
        world.db,
        lambda: world.db.run(decide, target, Decision.FALSE_POSITIVE, **options),
        lambda: run.publish(sealed(found("a"))),
    )
    assert (decided.verdict, later.verdict) == (Verdict.PASSED, Verdict.FAILED)
    assert one(world, first, "a").decision is Decision.FALSE_POSITIVE
    assert one(world, run.id, "a").decision is Decision.OPEN
    told = world.db.run(finding, target)
    assert [(each.n, each.decision) for each in told.sightings] == [(2, "open"), (1, "false_positive")]


def test_a_gate_that_is_set_meanwhile_counts(world: World) -> None:
    """Whoever is second evaluates by it (spec P-07)."""
    run = going(world)
    action = world.action()
    _, answer = in_line(
        world.db,
        lambda c: set_gate(c, "shop", Policy(), expected_revision=0, action=action),
        lambda: run.publish(sealed(found("a"))),
    )
    assert answer.verdict is Verdict.PASSED


@pytest.mark.parametrize("name", ["shop", "new"])
def test_of_two_who_set_a_gate_that_both_saw_one_wins(world: World, name: str) -> None:
    """The other is told at which revision it is now, whichever came first (spec D-17)."""
    published(world)
    actions = [world.action(), world.action()]

    def sets(at: int) -> Callable[[], Any]:
        policy = Policy.fail_on([*Severity][at])
        return lambda: world.db.run(set_gate, name, policy, expected_revision=0, action=actions[at])

    answers = race(world.db, sets(0), sets(1))
    (won,) = (at for at, answer in enumerate(answers) if isinstance(answer, GateSet))
    lost = answers[1 - won]
    assert isinstance(lost, RevisionMismatch)
    assert (answers[won].revision, lost.facts["revision"]) == (1, 1)
    kept = world.db.run(project, name)
    assert (kept.policy_revision, kept.policy) == (1, Policy.fail_on([*Severity][won]))


def test_everybody_at_once_meets_no_deadlock(world: World) -> None:
    """Reviewers, exemptions, gates, evaluations and publications of one project (spec P-08)."""
    names = [f"n{n}" for n in range(6)]
    made = [found(name, random.choice([Severity.HIGH, Severity.LOW])) for name in names]
    shared = [published(world, *made)]
    runs = [going(world) for _ in range(6)]

    def reviewer() -> None:
        analysis_id = random.choice(shared)
        views = listed(world, analysis_id)
        view = views[random.choice(names)]
        revision = view.review.revision
        if random.random() < 0.5:
            world.db.run(
                decide, view.id, Decision.IGNORE, expected_revision=revision, reason="x", action=world.action()
            )
        else:
            expected = {each.id: each.review.revision for each in views.values()}
            world.db.run(decide_many, analysis_id, expected, Decision.OPEN, action=world.action())

    def owner() -> None:
        identity = Identity("ruff", content_digest(random.choice(names)))
        world.db.run(exempt, "shop", identity, reason="x", action=world.action())
        world.db.run(end_exemption, "shop", identity, expected_revision=1, action=world.action())

    def ruler() -> None:
        world.db.run(reevaluate, random.choice(shared), action=world.action())
        world.db.run(set_gate, "shop", Policy(), expected_revision=0, action=world.action())

    def publisher() -> None:
        if runs:
            run = runs.pop()
            run.publish(sealed(*random.sample(made, 6)))
            shared.append(run.id)

    def living(move: Callable[[], Any]) -> Callable[[], None]:
        def live() -> None:
            for _ in range(6):
                with suppress(Conflict, NotFound):
                    move()

        return live

    race(world.db, *map(living, (reviewer, reviewer, owner, ruler, publisher)))
    assert deadlocks(world.db) == 0
    for analysis_id in shared:
        summary_is_right(world, analysis_id)


def summary_is_right(world: World, analysis_id: AnalysisId) -> None:
    """What is summed is what is there, and the gate that was kept is what it says now, or an exemption moved it."""
    detail = world.db.run(analysis, analysis_id)
    views = listed(world, analysis_id).values()
    assert sum(each.findings for each in detail.summary) == len(views) == detail.view.findings
    for each in detail.summary:
        alike = [v for v in views if (v.finding.severity, v.decision) == (each.severity, each.decision)]
        assert len(alike) == each.findings
