"""decide, advise and delete_finding: what people decide, the summary and the gate with it (spec D-16 to D-19)."""

from __future__ import annotations

from typing import Any

import pytest

from testigo.authority.actions import new_id
from testigo.authority.cancel import cancel
from testigo.authority.reprocess import reprocess
from testigo.errors import (
    ActionIdCollision,
    CollectionChanged,
    Invalid,
    NotFound,
    RevisionMismatch,
    StateConflict,
)
from testigo.evidence.findings import finding
from testigo.evidence.gates import gate
from testigo.evidence.listing import analysis
from testigo.evidence.model import AnalysisId, FindingId
from testigo.evidence.review import Decided, advise, decide, decide_many, delete_finding
from testigo.rules.evidence.gate import Verdict
from testigo.rules.evidence.review import DECISIONS, Advice, Decision
from testigo.rules.evidence.severity import Severity
from tests.evidence.store.kit import found, going, listed, one, published, sealed
from tests.races import in_line, race
from tests.world import World


def decided(world: World, finding_id: FindingId, decision: Decision, revision: int, reason: str = "seen") -> Decided:
    """Decide by a new action."""
    return world.db.run(
        decide, finding_id, decision, expected_revision=revision, reason=reason, action=world.action("user:ana")
    )


def summed(world: World, analysis_id: AnalysisId) -> dict[tuple[str, str], int]:
    """The summary of an analysis, by severity and decision."""
    summary = world.db.run(analysis, analysis_id).summary
    return {(str(each.severity), str(each.decision)): each.findings for each in summary}


def counted_anew(world: World, analysis_id: AnalysisId) -> dict[tuple[str, str], int]:
    """The same, counted from the findings themselves."""
    rows = world.query(
        """
        SELECT CAST(severity AS text) AS severity, decision, count(*) AS findings
        FROM testigo.finding WHERE analysis_id = CAST(:id AS uuid) GROUP BY severity, decision
        """,
        id=analysis_id,
    )
    return {(row.severity, row.decision): row.findings for row in rows}


def test_each_decision_moves_summary_and_gate_with_it(world: World) -> None:
    """Any after any other, each raising both revisions; the gate counts what the decision says (spec D-16, D-17)."""
    analysis_id = published(world, found("a"), found("b", Severity.LOW))
    target = one(world, analysis_id, "a").id
    for n, meaning in enumerate([*DECISIONS, *DECISIONS[::-1]], 1):
        answer = decided(world, target, meaning.decision, n)
        assert answer.findings == ((target, True, meaning.decision, n + 1),)
        assert answer.verdict is (Verdict.FAILED if meaning.counts else Verdict.PASSED)
        detail = world.db.run(analysis, analysis_id)
        assert (detail.view.revision, detail.view.verdict) == (answer.revision, answer.verdict)
        assert summed(world, analysis_id) == counted_anew(world, analysis_id)
        assert answer.revision == n + 2
    told = world.db.run(finding, target)
    assert [each.decision for each in told.history] == [m.decision for m in [*DECISIONS, *DECISIONS[::-1]]]
    assert [each.revision for each in told.history] == list(range(2, 16))
    assert (told.view.decided_by, told.view.review.reason) == ("user:ana", "seen")


def test_a_decision_is_made_at_the_revision_that_was_seen(world: World) -> None:
    """Who saw an older one is refused with what was decided since, and changes nothing (spec D-17)."""
    analysis_id = published(world, found("a"))
    target = one(world, analysis_id, "a").id
    decided(world, target, Decision.ACCEPTED_RISK, 1, "we live with it")
    with pytest.raises(RevisionMismatch) as refusal:
        decided(world, target, Decision.FALSE_POSITIVE, 1)
    assert refusal.value.facts == {"decision": "accepted_risk", "reason": "we live with it", "revision": 2}
    assert one(world, analysis_id, "a").review.revision == 2


def test_an_exclusion_needs_a_reason_and_the_others_do_not(world: World) -> None:
    """Refused before anything is looked at (spec D-16)."""
    analysis_id = published(world, found("a"))
    target = one(world, analysis_id, "a").id
    for meaning in DECISIONS:
        if meaning.needs_reason:
            with pytest.raises(Invalid, match="needs a reason"):
                decided(world, target, meaning.decision, 1, " ")
    decided(world, target, Decision.NEEDS_REVIEW, 1, "")


def test_what_was_seen_of_another_revision_of_the_collection_is_refused(world: World) -> None:
    """If the caller says which it saw (spec D-19)."""
    analysis_id = published(world, found("a"), found("b"))
    first, second = (one(world, analysis_id, name).id for name in "ab")
    seen = world.db.run(finding, first).revision
    decided(world, second, Decision.NEEDS_REVIEW, 1)
    options: dict[str, Any] = {"expected_revision": 1, "reason": "seen", "collection_revision": seen}
    with pytest.raises(CollectionChanged) as refusal:
        world.db.run(decide, first, Decision.IGNORE, action=world.action(), **options)
    assert refusal.value.facts == {"revision": seen + 1}
    with pytest.raises(CollectionChanged):
        world.db.run(finding, first, collection_revision=seen)
    world.db.run(decide, first, Decision.IGNORE, action=world.action(), **{**options, "collection_revision": seen + 1})


def test_a_decision_sent_again_is_answered_by_its_receipt(world: World) -> None:
    """And the same action for anything else is a collision (spec B-04)."""
    analysis_id = published(world, found("a"))
    target = one(world, analysis_id, "a").id
    action = world.action()
    options: dict[str, Any] = {"expected_revision": 1, "reason": "seen", "action": action}
    first = world.db.run(decide, target, Decision.FIXED, **options)
    again = world.db.run(decide, target, Decision.FIXED, **options)
    assert (again.replayed, again.findings, again.revision) == (True, first.findings, first.revision)
    with pytest.raises(ActionIdCollision):
        world.db.run(decide, target, Decision.IGNORE, **options)


def test_many_are_decided_each_as_it_was_seen(world: World) -> None:
    """One that somebody decided meanwhile, or that is gone, is told and left alone; the others are done (D-17)."""
    analysis_id = published(world, *(found(name) for name in "abc"))
    ids = {name: view.id for name, view in listed(world, analysis_id).items()}
    decided(world, ids["b"], Decision.NEEDS_REVIEW, 1)
    gone = FindingId(new_id())
    expected = {ids["c"]: 1, ids["b"]: 1, ids["a"]: 1, gone: 1}
    options: dict[str, Any] = {"reason": "generated code", "action": world.action()}
    answer = world.db.run(decide_many, analysis_id, expected, Decision.IGNORE, **options)
    assert answer.findings == (
        (ids["c"], True, Decision.IGNORE, 2),
        (ids["b"], False, Decision.NEEDS_REVIEW, 2),
        (ids["a"], True, Decision.IGNORE, 2),
        (gone, False, None, 0),
    )
    assert answer.verdict is Verdict.FAILED
    assert summed(world, analysis_id) == counted_anew(world, analysis_id)
    assert world.db.run(decide_many, analysis_id, expected, Decision.IGNORE, **options).replayed


def test_what_is_of_another_analysis_is_gone_from_this_one(world: World) -> None:
    """A batch is about one collection, whose lock it holds."""
    first, second = published(world, found("a")), published(world, found("a"), project="other")
    other = one(world, second, "a").id
    answer = world.db.run(decide_many, first, {other: 1}, Decision.IGNORE, reason="x", action=world.action())
    assert answer.findings == ((other, False, None, 0),)
    assert one(world, second, "a").review.revision == 1


def test_two_reviewers_of_one_finding_end_in_one_decision_and_one_conflict(world: World) -> None:
    """Whoever is second is told what the first decided, and nothing is lost (spec D-17; R83)."""
    analysis_id = published(world, found("a"))
    target = one(world, analysis_id, "a").id

    def move(decision: Decision) -> object:
        return decided(world, target, decision, 1)

    answers = race(world.db, lambda: move(Decision.IGNORE), lambda: move(Decision.FALSE_POSITIVE))
    won = [answer for answer in answers if isinstance(answer, Decided)]
    lost = [answer for answer in answers if isinstance(answer, RevisionMismatch)]
    assert (len(won), len(lost)) == (1, 1)
    now = one(world, analysis_id, "a").review
    assert (now.decision, now.revision) == (won[0].findings[0].decision, 2)
    assert lost[0].facts["decision"] == now.decision
    assert len(world.db.run(finding, target).history) == 1


def test_a_reviewer_behind_another_sees_what_the_first_left(world: World) -> None:
    """What waited for the analysis reads it in a later statement (spec P-07)."""
    analysis_id = published(world, found("a"), found("b"))
    first, second = (one(world, analysis_id, name).id for name in "ab")
    options: dict[str, Any] = {"expected_revision": 1, "reason": "seen"}
    one_action, two_action = world.action(), world.action()
    ahead, behind = in_line(
        world.db,
        lambda c: decide(c, first, Decision.IGNORE, action=one_action, **options),
        lambda: world.db.run(decide, second, Decision.IGNORE, action=two_action, **options),
    )
    assert (ahead.verdict, behind.verdict) == (Verdict.FAILED, Verdict.PASSED)
    assert behind.revision == ahead.revision + 1
    assert summed(world, analysis_id) == counted_anew(world, analysis_id) == {("high", "ignore"): 2}


def test_advice_moves_nothing(world: World) -> None:
    """No revision, decision, summary or gate; a decision that was begun before it stands (spec D-19)."""
    analysis_id = published(world, found("a"))
    target = one(world, analysis_id, "a").id
    before = world.db.run(analysis, analysis_id)
    advice = Advice("a-model", Decision.FALSE_POSITIVE, "the text is a test's")
    action = world.action("a-model")
    assert not world.db.run(advise, target, advice, action=action).replayed
    assert world.db.run(advise, target, advice, action=action).replayed
    assert world.db.run(analysis, analysis_id) == before
    view = one(world, analysis_id, "a")
    assert (view.review.advice, view.decision, view.review.revision) == (advice, Decision.OPEN, 1)
    assert view.advised_at is not None
    decided(world, target, Decision.NEEDS_REVIEW, 1)
    assert one(world, analysis_id, "a").review.advice == advice
    world.db.run(advise, target, None, action=world.action())
    assert one(world, analysis_id, "a").review.advice is None


def test_a_finding_is_deleted_by_itself(world: World) -> None:
    """With its history, at the revision that was seen, when no job goes on; the occurrence stays (spec D-18)."""
    run = going(world)
    run.publish(sealed(found("a"), found("b", Severity.LOW)))
    target = one(world, run.id, "a").id
    options: dict[str, Any] = {"expected_revision": 1, "reason": "it tells a password"}
    with pytest.raises(StateConflict, match="not ended"):
        world.db.run(delete_finding, target, action=world.action(), **options)
    run.worker.succeed(run.lease)
    with pytest.raises(RevisionMismatch):
        world.db.run(delete_finding, target, action=world.action(), **{**options, "expected_revision": 2})
    with pytest.raises(Invalid):
        world.db.run(delete_finding, target, action=world.action(), **{**options, "reason": " "})
    action = world.action()
    answer = world.db.run(delete_finding, target, action=action, **options)
    assert (answer.verdict, answer.analysis_id, answer.replayed) == (Verdict.PASSED, run.id, False)
    assert world.db.run(delete_finding, target, action=action, **options).replayed
    assert list(listed(world, run.id)) == ["b"]
    assert world.db.run(analysis, run.id).view.findings == 1
    assert summed(world, run.id) == counted_anew(world, run.id)
    assert world.query("SELECT count(*) AS n FROM testigo.occurrence")[0].n == 2
    with pytest.raises(NotFound):
        world.db.run(delete_finding, target, action=world.action(), **options)


def test_nothing_is_deleted_while_the_successor_of_a_job_goes_on(world: World) -> None:
    """A job that was reprocessed has not ended (spec A-06, D-18)."""
    run = going(world)
    run.publish(sealed(found("a")))
    run.worker.succeed(run.lease)
    again = world.db.run(reprocess, run.new.parts[0].job.id, action=world.action()).job_id
    target = one(world, run.id, "a").id
    options: dict[str, Any] = {"expected_revision": 1, "reason": "it tells a password"}
    with pytest.raises(StateConflict, match="not ended"):
        world.db.run(delete_finding, target, action=world.action(), **options)
    world.db.run(cancel, [again], action=world.action())
    world.db.run(delete_finding, target, action=world.action(), **options)
    assert listed(world, run.id) == {}


def test_what_is_not_there_is_not_found(world: World) -> None:
    """By every command and reading."""
    nobody = FindingId(new_id())
    nothing = AnalysisId(new_id())
    with pytest.raises(NotFound):
        decided(world, nobody, Decision.OPEN, 1)
    with pytest.raises(NotFound):
        world.db.run(advise, nobody, None, action=world.action())
    with pytest.raises(NotFound):
        world.db.run(finding, nobody)
    with pytest.raises(NotFound):
        world.db.run(decide_many, nothing, {nobody: 1}, Decision.OPEN, action=world.action())
    for read in (analysis, gate):
        with pytest.raises(NotFound):
            world.db.run(read, nothing)
