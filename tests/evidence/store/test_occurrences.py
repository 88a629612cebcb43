"""What a project knows over its analyses: occurrences, exemptions, baselines (spec D-18, D-23; R83, R86, R88)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from testigo.errors import Invalid, NotFound, RevisionMismatch, StateConflict
from testigo.evidence.exemptions import end_exemption, exempt, exemptions
from testigo.evidence.findings import finding
from testigo.evidence.gates import gate, reevaluate, set_gate
from testigo.evidence.listing import analysis
from testigo.evidence.model import Identity
from testigo.evidence.occurrences import occurrences
from testigo.evidence.projects import project, projects
from testigo.evidence.review import decide
from testigo.rules.evidence.coverage import Outcome
from testigo.rules.evidence.exemption import ExemptionState
from testigo.rules.evidence.finding import Finding
from testigo.rules.evidence.gate import DEFAULT, Policy, Verdict
from testigo.rules.evidence.occurrence import MOVES, Presence
from testigo.rules.evidence.review import Decision
from testigo.rules.evidence.severity import Severity
from testigo.rules.identity import content_digest
from tests.evidence.store.kit import WHEN, found, going, listed, one, published, sealed
from tests.races import in_line
from tests.world import World


def known(world: World, name: str = "shop") -> dict[str, tuple[str, int, int]]:
    """What a project knows, by fingerprint: presence, first and last analysis that changed it."""
    page = world.db.run(occurrences, name)
    return {each.identity.fingerprint: (str(each.presence), each.first_n, each.moved_n) for each in page.items}


def of(name: str) -> Identity:
    """The identity of the finding of this name."""
    return Identity("ruff", content_digest(name))


def granted(world: World, name: str = "a", *, revision: int = 0, **given: Any) -> int:
    """Exempt the finding of this name; returns the exemption's revision."""
    options: dict[str, Any] = {"reason": "a risk we take", "expected_revision": revision, **given}
    return world.db.run(exempt, "shop", of(name), action=world.action("user:ana"), **options).revision


def test_the_table_of_the_rules_is_what_happens(world: World) -> None:
    """Each row of it, one analysis after another; what stays is not written (spec D-23)."""
    names = {row: f"{row.before}-{row.reported}" for row in MOVES if row.before or row.reported}
    published(world, found("seed"))
    for row, name in names.items():
        if row.before is not None:
            world.query(
                "INSERT INTO testigo.occurrence VALUES ('shop', 'ruff', :f, :presence, 1, 1) RETURNING 1",
                f=content_digest(name),
                presence=str(row.before),
            )
    published(world, found("seed"), *(found(name) for row, name in names.items() if row.reported))
    now = known(world)
    for row, name in names.items():
        moved = 1 if row.after == row.before else 2
        assert now[content_digest(name)] == (row.after, 2 if row.before is None else 1, moved), row
    told = world.query("SELECT fingerprint, happened, n FROM testigo.occurrence_move")
    expected = {(content_digest(n), r.happened, 2) for r, n in names.items() if r.happened in ("vanished", "returned")}
    assert {(row.fingerprint, row.happened, row.n) for row in told} == expected


def test_the_same_report_three_times_shuffled_and_shifted_changes_nothing(world: World) -> None:
    """No new, closed or reopened occurrence, and every review is where it was (field case R83)."""
    made = [found(name) for name in "abcdef"]
    first = published(world, *made)
    target = one(world, first, "c").id
    world.db.run(decide, target, Decision.IGNORE, expected_revision=1, reason="seen", action=world.action())
    before, reviewed = known(world), listed(world, first)["c"]
    shifted: list[Finding] = [replace(each, line=(each.line or 0) + 40) for each in made]
    for again in (made, made[::-1], shifted):
        published(world, *again)
    assert known(world) == before
    assert world.query("SELECT * FROM testigo.occurrence_move") == []
    assert listed(world, first)["c"] == reviewed
    told = world.db.run(finding, target)
    assert [(each.n, each.decision) for each in told.sightings] == [
        (4, "open"),
        (3, "open"),
        (2, "open"),
        (1, "ignore"),
    ]


def test_a_complete_analysis_without_findings_makes_all_absent(world: World) -> None:
    """And a failed or partial one changes nothing (field case R88)."""
    published(world, found("a"), found("b"))
    before = known(world)
    partial = going(world)
    assert partial.publish(sealed(outcome=Outcome.INCOMPLETE)).verdict is Verdict.INCOMPLETE
    failed = going(world)
    failed.publish(sealed(outcome=Outcome.FAILED))
    assert known(world) == before
    published(world)
    assert {presence for presence, _, _ in known(world).values()} == {"absent"}


def test_an_analyser_that_was_not_asked_says_nothing(world: World) -> None:
    """What the others found stays (spec D-23)."""
    both = going(world, "ruff", "bandit")
    both.publish(sealed(found("a")), sealed(found("b", analyser="bandit"), part=1, analyser="bandit"))
    published(world)
    assert known(world) == {content_digest("a"): ("absent", 1, 2), content_digest("b"): ("present", 1, 1)}


def test_an_older_analysis_that_is_published_later_moves_nothing(world: World) -> None:
    """It looked at an older source, whatever took it so long."""
    slow = going(world)
    published(world, found("a"))
    assert slow.publish(sealed(found("b"))).verdict is Verdict.FAILED
    assert known(world) == {content_digest("a"): ("present", 2, 2)}


def test_an_accepted_risk_holds_ends_and_does_not_come_back_by_itself(world: World) -> None:
    """Still there → still exempt; gone → ended; back → counts again, with its history (field case R86)."""
    published(world, found("a"))
    assert granted(world) == 1
    again = published(world, found("a"))
    assert world.db.run(analysis, again).view.verdict is Verdict.PASSED
    assert one(world, again, "a").exempt
    published(world)
    (kept,) = world.db.run(exemptions, "shop").items
    assert (kept.state, kept.revision, kept.identity) == (ExemptionState.LAPSED, 2, of("a"))
    back = published(world, found("a"))
    assert world.db.run(analysis, back).view.verdict is Verdict.FAILED
    told = world.db.run(finding, one(world, back, "a").id)
    assert told.occurrence is not None
    assert (told.occurrence.presence, told.occurrence.first_n) == (Presence.RETURNED, 1)
    assert [(move.n, move.happened) for move in told.moves] == [(3, "vanished"), (4, "returned")]
    assert [(each.n, each.finding_id is not None) for each in told.sightings] == [
        (4, True),
        (3, False),
        (2, True),
        (1, True),
    ]
    assert told.exemption == kept
    assert granted(world, revision=2) == 3
    assert world.db.run(analysis, back).view.verdict is Verdict.PASSED
    changes = world.query("SELECT happened, actor FROM testigo.exemption_change ORDER BY revision")
    assert [tuple(row) for row in changes] == [("granted", "user:ana"), ("lapsed", "system"), ("granted", "user:ana")]


def test_an_exemption_that_expired_counts_no_more(world: World) -> None:
    """The gate says so at once, and what was kept by the next evaluation (field case R86)."""
    analysis_id = published(world, found("a"))
    soon = world.query("SELECT now() AS now")[0].now + timedelta(days=1)
    granted(world, expires_at=soon)
    assert world.db.run(gate, analysis_id).verdict is Verdict.PASSED
    world.query("UPDATE testigo.exemption SET granted_at = :at, expires_at = :at RETURNING 1", at=WHEN)
    said = world.db.run(gate, analysis_id)
    assert (said.verdict, said.kept) == (Verdict.FAILED, Verdict.PASSED)
    assert not one(world, analysis_id, "a").exempt
    assert world.db.run(exemptions, "shop").items[0].state is ExemptionState.EXPIRED
    answer = world.db.run(reevaluate, analysis_id, action=world.action())
    assert (answer.verdict, world.db.run(gate, analysis_id).kept) == (Verdict.FAILED, Verdict.FAILED)


def test_an_exemption_is_taken_back_at_the_revision_that_was_seen(world: World) -> None:
    """It never edits a finding (spec D-23)."""
    analysis_id = published(world, found("a"))
    with pytest.raises(NotFound):
        world.db.run(exempt, "nobody's", of("a"), reason="x", action=world.action())
    with pytest.raises(NotFound):
        world.db.run(end_exemption, "shop", of("a"), expected_revision=0, action=world.action())
    with pytest.raises(Invalid):
        granted(world, reason=" ")
    with pytest.raises(Invalid):
        granted(world, expires_at=WHEN)
    with pytest.raises(Invalid):
        world.db.run(exempt, "shop", Identity("ruff", "md5:1"), reason="x", action=world.action())
    granted(world)
    with pytest.raises(RevisionMismatch):
        granted(world)
    finding_row = world.query("SELECT * FROM testigo.finding")
    with pytest.raises(RevisionMismatch):
        world.db.run(end_exemption, "shop", of("a"), expected_revision=2, action=world.action())
    answer = world.db.run(end_exemption, "shop", of("a"), expected_revision=1, action=world.action())
    assert (answer.revision, answer.verdict) == (2, Verdict.FAILED)
    with pytest.raises(StateConflict):
        world.db.run(end_exemption, "shop", of("a"), expected_revision=2, action=world.action())
    assert world.query("SELECT * FROM testigo.finding") == finding_row
    assert world.db.run(analysis, analysis_id).view.verdict is Verdict.FAILED


def test_a_project_sets_its_gate_at_the_revision_that_was_seen(world: World) -> None:
    """The newest published analysis is evaluated anew, and an analysis with a gate of its own keeps that (D-21)."""
    own = published(world, found("a", Severity.LOW), policy=Policy.fail_on(Severity.LOW))
    assert world.db.run(gate, own).policy_revision is None
    analysis_id = published(world, found("a"))
    assert world.db.run(project, "shop").policy == DEFAULT
    options: dict[str, Any] = {"expected_revision": 0, "reason": "we begin", "action": world.action("user:ana")}
    answer = world.db.run(set_gate, "shop", Policy(), **options)
    assert (answer.revision, answer.analysis_id, answer.verdict) == (1, analysis_id, Verdict.PASSED)
    with pytest.raises(RevisionMismatch):
        world.db.run(set_gate, "shop", Policy(), **{**options, "action": world.action()})
    seen = world.db.run(project, "shop")
    assert (seen.policy, seen.policy_revision, seen.policy_by, seen.policy_reason) == (
        Policy(),
        1,
        "user:ana",
        "we begin",
    )
    assert (seen.latest, seen.latest_verdict, seen.analyses) == (analysis_id, Verdict.PASSED, 2)
    assert world.db.run(gate, own).verdict is Verdict.FAILED
    assert world.db.run(set_gate, "new", Policy(), expected_revision=0, action=world.action()).verdict is None
    assert [each.name for each in world.db.run(projects).items] == ["new", "shop"]


def test_what_the_baseline_has_is_known(world: World) -> None:
    """With a gate for new findings only it does not count; the baseline is that of the beginning (spec D-23)."""
    first = published(world, found("a"))
    policy = Policy.fail_on(Severity.HIGH, new_only=True)
    options: dict[str, Any] = {"expected_revision": 0, "action": world.action()}
    with pytest.raises(NotFound):
        world.db.run(set_gate, "shop", policy, baseline=going(world).id, **options)
    world.db.run(set_gate, "shop", policy, baseline=first, **options)
    same = published(world, found("a"))
    assert world.db.run(gate, same).verdict is Verdict.PASSED
    more = published(world, found("a"), found("b"))
    assert {name: view.known for name, view in listed(world, more).items()} == {"a": True, "b": False}
    assert world.db.run(gate, more).counted[Severity.HIGH] == 1
    assert published(world, found("a"), found("b"), baseline=more)
    with pytest.raises(NotFound):
        published(world, baseline=going(world).id)


def test_an_exemption_meets_a_publication_that_is_under_way(world: World) -> None:
    """Whichever is first: the gate of what was published counts what is exempt (spec P-07, P-08)."""
    published(world, found("a"))
    run = going(world)
    publishing = world.action()
    _, answer = in_line(
        world.db,
        lambda c: exempt(c, "shop", of("a"), reason="x", action=publishing),
        lambda: run.publish(sealed(found("a"))),
    )
    assert answer.verdict is Verdict.PASSED
