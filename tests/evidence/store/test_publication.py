"""publish: evidence is inserted once, whole, and by whom the job belongs to (spec D-05 to D-11, D-20, D-24)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from testigo.authority.actions import new_id
from testigo.authority.cancel import cancel
from testigo.authority.sessions import close_session
from testigo.errors import (
    EvidenceInvalid,
    Invalid,
    LeaseLost,
    ManifestInvalid,
    NotFound,
    PageInvalid,
    ScanEvidenceConflict,
    StateConflict,
    WrongPublisher,
)
from testigo.evidence.analyses import finish
from testigo.evidence.artifacts import artifact, artifacts
from testigo.evidence.findings import findings
from testigo.evidence.listing import analysis
from testigo.evidence.model import AnalysisId, AnalysisState, Owner, SealedResult
from testigo.evidence.publication import Acknowledged, persisted, publish
from testigo.rules.evidence.coverage import Coverage, Outcome
from testigo.rules.evidence.finding import Finding
from testigo.rules.evidence.gate import Verdict
from testigo.rules.evidence.severity import Severity
from testigo.rules.identity import content_digest
from tests.evidence.store.kit import (
    RUN,
    attached,
    found,
    going,
    listed,
    sealed,
    with_pages,
)
from tests.world import World


def nothing_published(world: World, analysis_id: AnalysisId) -> bool:
    """Whether an analysis is as it was before anybody published."""
    detail = world.db.run(analysis, analysis_id)
    untouched = (AnalysisState.RUNNING, 1, False, 0, 0, None)
    view = detail.view
    seen = (view.state, view.revision, view.persisted, view.findings, view.artifacts, view.verdict)
    return seen == untouched and not listed(world, analysis_id) and not world.db.run(artifacts, analysis_id)


def test_what_is_published_is_read_as_it_was_sealed(world: World) -> None:
    """Findings, artifacts, coverage, provenance and counts, by their canonical text (spec D-08, D-14, P-06)."""
    made = [found("a", Severity.LOW, snippet="x = 1\n", metadata={"cwe": "79"}), found("b", Severity.CRITICAL)]
    run = going(world)
    answer = run.publish(sealed(*made, artifacts=(attached(),)))
    assert (answer.state, answer.verdict, answer.revision) == (AnalysisState.COMPLETE, Verdict.FAILED, 2)
    assert (answer.findings, answer.repeated, answer.artifacts, answer.replayed) == (2, 0, 1, False)
    there = world.db.run(findings, run.id).page.items
    assert [view.finding for view in there] == [made[1], made[0]]
    assert [(view.decision, view.review.revision, view.exempt, view.known) for view in there] == [
        ("open", 1, False, False)
    ] * 2
    detail = world.db.run(analysis, run.id)
    assert {s: n for s, n in detail.view.counts.items() if n} == {"critical": 1, "low": 1}
    assert detail.view.counting == detail.view.counts
    (part,) = detail.parts
    assert (part.run, part.outcome, part.coverage, part.findings) == (RUN, Outcome.COMPLETE, Coverage(10), 2)
    assert part.provenance == {"host": "a-host"}
    (kept,) = world.db.run(artifacts, run.id)
    assert (kept.name, kept.digest) == ("sbom.json", content_digest("sbom.json"))
    assert world.db.run(artifact, kept.id) == kept
    stored = world.query("SELECT document FROM testigo.finding")
    assert sorted(row.document for row in stored) == sorted(one.canonical().decode() for one in made)


def test_a_second_publication_is_refused_and_changes_nothing(world: World) -> None:
    """It never replaces findings (spec D-10)."""
    run = going(world)
    run.publish(sealed(found("a")))
    before = world.query("SELECT * FROM testigo.finding")
    for results in ([sealed(found("b"))], [sealed(found("a"))], []):
        with pytest.raises(ScanEvidenceConflict):
            run.publish(*results)
    assert world.query("SELECT * FROM testigo.finding") == before


def test_only_the_analysis_s_own_job_publishes_it(world: World) -> None:
    """Whoever holds another job of the same kind is refused by name, and nothing is published or ended (spec D-07)."""
    run, other = going(world), going(world)
    with pytest.raises(WrongPublisher) as refusal:
        world.db.run(publish, run.id, [sealed(found("a"))], owner=other.owner, action=world.action())
    assert refusal.value.facts["job"] == run.lease.job_id
    assert nothing_published(world, run.id)
    assert nothing_published(world, other.id)


def test_a_part_that_is_missing_says_why(world: World) -> None:
    """It makes the analysis incomplete, and what is known of it is kept with it (spec D-21, D-24)."""
    run = going(world, "ruff", "bandit")
    owner, missing = run.owner, {1: "its job is cancelled"}
    told = world.db.run(publish, run.id, [sealed()], missing=missing, owner=owner, action=world.action())
    assert (told.state, told.verdict) == (AnalysisState.INCOMPLETE, Verdict.INCOMPLETE)
    parts = world.db.run(analysis, run.id).parts
    assert [(part.outcome, part.reasons) for part in parts] == [
        (Outcome.COMPLETE, ()),
        (None, ("its job is cancelled",)),
    ]


@pytest.mark.parametrize("result", [sealed(), sealed(artifacts=(attached(),))], ids=["nothing", "artifacts"])
def test_without_findings_it_is_published_once_as_well(world: World, result: SealedResult) -> None:
    """An analysis that found nothing has been published, and what has artifacts has evidence (spec D-07, R88)."""
    run = going(world)
    assert run.publish(result).verdict is Verdict.PASSED
    with pytest.raises(ScanEvidenceConflict):
        run.publish(sealed(found("a")))


def test_the_same_publication_again_is_answered_by_its_receipt(world: World) -> None:
    """It is answered, whatever became of its run, and no page is read (spec B-04, D-11)."""
    run = going(world)
    action = world.action()
    first = world.db.run(publish, run.id, [sealed(found("a"))], owner=run.owner, action=action)
    run.worker.succeed(run.lease)

    def unread() -> Iterator[Sequence[Finding]]:
        raise AssertionError

    again = world.db.run(publish, run.id, [with_pages(sealed(found("a")), unread)], owner=run.owner, action=action)
    assert again == replace(first, replayed=True)


def test_what_is_persisted_is_told_to_whoever_does_not_know(world: World) -> None:
    """Recovery asks the durable state, and learns which results may be forgotten (spec D-09, D-11)."""
    run = going(world, "ruff", "bandit")
    assert world.db.run(persisted, run.id) is None
    result = sealed(found("a"), artifacts=(attached(),))
    run.publish(result)
    kept = world.db.run(persisted, run.id)
    assert kept is not None
    assert kept.results == (Acknowledged(RUN, result.request, result.result),)
    assert (kept.state, kept.verdict) == (AnalysisState.INCOMPLETE, Verdict.INCOMPLETE)
    assert (kept.findings, kept.artifacts) == (1, 1)
    assert world.db.run(persisted, AnalysisId(new_id())) is None


def test_pages_that_break_off_leave_nothing(world: World) -> None:
    """What the pages raise is raised, and everything is undone (spec D-11)."""
    run = going(world)

    def breaking() -> Iterator[Sequence[Finding]]:
        yield [found("a"), found("b")]
        raise PageInvalid("the hash is another", field="digest", check="digest")

    with pytest.raises(PageInvalid, match="the hash is another"):
        run.publish(with_pages(sealed(found("a"), found("b")), breaking))
    assert nothing_published(world, run.id)
    assert run.publish(sealed(found("a"))).findings == 1


def test_a_result_that_is_not_what_it_says_is_refused_by_name(world: World) -> None:
    """Wrong part, wrong analyser, files it is silent about, another count, a part twice (spec D-08, D-24)."""
    run = going(world, "ruff", "bandit")
    for wrong, check in (
        (sealed(found("a"), part=1), "part"),
        (sealed(found("a"), part=7), "part"),
        (sealed(found("a"), coverage=Coverage(9)), "coverage"),
        (sealed(found("a"), findings=2), "findings"),
        (sealed(found("a"), pages=list), "findings"),
    ):
        with pytest.raises(ManifestInvalid) as refusal:
            run.publish(wrong)
        assert refusal.value.facts["check"] == check
    with pytest.raises(PageInvalid) as other:
        run.publish(sealed(found("a"), found("b", analyser="bandit")))
    assert (other.value.field, other.value.facts) == ("analyser", {"check": "analyser", "page": 1, "ordinal": 1})
    with pytest.raises(Invalid, match="one part"):
        run.publish(sealed(found("a")), sealed(found("b")))
    assert nothing_published(world, run.id)


def test_a_fingerprint_is_once_in_a_result_and_once_in_an_analysis(world: World) -> None:
    """Twice in one result, on one page or on two, is refused; what another part said too is kept once (spec D-07)."""
    run = going(world, "ruff", "ruff")
    for pages in ([[found("a"), found("a")]], [[found("a")], [found("b"), found("a")]]):
        with pytest.raises(PageInvalid) as refusal:
            run.publish(sealed(findings=sum(map(len, pages)), pages=lambda pages=pages: pages))
        last = sum(map(len, pages)) - 1
        assert refusal.value.facts == {"check": "unique", "page": len(pages) - 1, "ordinal": last}
    answer = run.publish(sealed(found("a"), found("b")), sealed(found("b"), found("c"), part=1))
    assert (answer.findings, answer.repeated) == (3, 1)
    assert {name: view.part for name, view in listed(world, run.id).items()} == {"a": 0, "b": 0, "c": 1}


def test_only_the_run_that_owns_the_job_publishes(world: World) -> None:
    """Lease, epoch and session, and the session is open: looked at last (spec P-15, P-18, D-20)."""
    run = going(world)
    mine = run.owner
    for wrong in (
        replace_owner(mine, lease_id=new_id()),
        replace_owner(mine, epoch=2),
        Owner(mine.held, world.worker().id),
    ):
        with pytest.raises(LeaseLost):
            world.db.run(publish, run.id, [sealed(found("a"))], owner=wrong, action=world.action())
    run.worker.succeed(run.lease)
    with pytest.raises(LeaseLost):
        run.publish(sealed(found("a")))
    assert nothing_published(world, run.id)


def test_a_session_that_is_closed_publishes_nothing(world: World) -> None:
    """Its leases are as good as lost (spec P-18)."""
    run = going(world)
    world.db.run(close_session, run.worker.id)
    with pytest.raises(LeaseLost):
        run.publish(sealed(found("a")))
    assert nothing_published(world, run.id)


def test_a_job_that_is_to_be_cancelled_publishes_nothing(world: World) -> None:
    """The request was first (spec D-20)."""
    run = going(world)
    world.db.run(cancel, [run.lease.job_id], action=world.action())
    with pytest.raises(StateConflict, match="to be cancelled"):
        run.publish(sealed(found("a")))
    assert nothing_published(world, run.id)


def test_an_analysis_that_has_ended_gets_no_evidence(world: World) -> None:
    """Final states stay final (spec D-20)."""
    run = going(world)
    world.db.run(finish, run.id, AnalysisState.FAILED, reason="no result", action=world.action())
    with pytest.raises(StateConflict, match="no evidence any more"):
        run.publish(sealed(found("a")))
    with pytest.raises(NotFound):
        world.db.run(publish, AnalysisId(new_id()), [], owner=run.owner, action=world.action())


@pytest.mark.parametrize(
    ("results", "code"),
    [
        ([], "ANALYSER_MISSING"),
        ([sealed(outcome=Outcome.FAILED)], "ANALYSER_FAILED"),
        ([sealed(outcome=Outcome.INCOMPLETE)], "ANALYSER_INCOMPLETE"),
        ([sealed(coverage=Coverage(10, skipped_total=1))], "FILES_SKIPPED"),
        ([sealed(coverage=Coverage(10, failed_total=2))], "FILES_FAILED"),
    ],
)
def test_what_was_not_looked_at_makes_it_incomplete(world: World, results: list[SealedResult], code: str) -> None:
    """A missing analyser, a failed one and files left out are never a silent pass (spec D-21, D-24)."""
    run = going(world)
    results = [with_real_coverage(result) for result in results]
    answer = run.publish(*results)
    assert (answer.state, answer.verdict) == (AnalysisState.INCOMPLETE, Verdict.INCOMPLETE)
    assert [reason.code for reason in world.db.run(analysis, run.id).gate.reasons] == [code]


def test_a_part_that_left_nothing_makes_its_analyser_incomplete(world: World) -> None:
    """Its files were not analysed, though the other part's were (spec D-24)."""
    run = going(world, "ruff", "ruff")
    answer = run.publish(sealed(found("a")))
    assert answer.verdict is Verdict.INCOMPLETE
    reasons = world.db.run(analysis, run.id).gate.reasons
    assert [(reason.code, reason.found) for reason in reasons] == [("ANALYSER_INCOMPLETE", 0), ("FILES_FAILED", 10)]


def test_what_is_too_large_for_a_finding_is_refused(world: World) -> None:
    """Pages are checked before, so this is a fault of whoever checks them; nothing is published of it (spec D-14)."""
    run = going(world)
    huge = found("b", metadata={f"m{n}": '"' * 2000 for n in range(32)})
    with pytest.raises(EvidenceInvalid) as refusal:
        run.publish(sealed(found("a"), huge))
    assert refusal.value.field == "finding"
    assert nothing_published(world, run.id)


def replace_owner(owner: Owner, **given: Any) -> Owner:
    """The same owner, but for this."""
    return Owner(owner.held._replace(**given), owner.session_id)


def with_real_coverage(result: SealedResult) -> SealedResult:
    """The result, whose coverage names as many files as it counts."""
    named = Coverage.of(
        [f"f{n}" for n in range(10)],
        skipped={f"f{n}": "too large" for n in range(result.coverage.skipped_total)},
        failed={f"f{n}": "no syntax" for n in range(result.coverage.failed_total)},
    )
    return replace(result, coverage=named)
