"""Findings for other programs: whole, as they stand, and harmless (issue 6, *Export*; spec D-14, D-16, D-19)."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from testigo.errors import CollectionChanged, EvidenceInvalid, StateConflict
from testigo.evidence.analyses import begin_analysis
from testigo.evidence.exports.collected import Collected
from testigo.evidence.exports.openvex import STATUSES, openvex
from testigo.evidence.exports.sarif import FINGERPRINT, sarif
from testigo.evidence.exports.table import COLUMNS, harmless, table
from testigo.evidence.model import AnalysisId
from testigo.evidence.publication import publish
from testigo.evidence.reported import Unread
from testigo.evidence.review import decide
from testigo.evidence.sarif import read
from testigo.rules.evidence.coverage import Coverage, Outcome, Uncovered
from testigo.rules.evidence.review import DECISIONS, Decision
from testigo.rules.evidence.sealing import Draft
from testigo.rules.evidence.severity import Level, Severity
from tests.evidence.exports.shape import SARIF
from tests.evidence.store.kit import asked, found, going, listed, one, published, sealed
from tests.world import World


def decided(world: World, analysis_id: AnalysisId, name: str, decision: Decision, reason: str = "") -> None:
    """Decide about a finding as it stands."""
    view = one(world, analysis_id, name)
    world.db.run(
        decide, view.id, decision, expected_revision=view.review.revision, reason=reason, action=world.action()
    )


def collected(world: World, analysis_id: AnalysisId) -> Collected:
    """The analysis, as exports read it."""
    return Collected.of(world.db, analysis_id)


def log(world: World, analysis_id: AnalysisId) -> Any:
    """The export as SARIF, which has the shape of the standard."""
    told = json.loads("".join(sarif(collected(world, analysis_id))))
    jsonschema_rs.Draft202012Validator(SARIF, validate_formats=True).validate(told)
    return told


def members(thing: Any) -> dict[str, Any]:
    """What a finding and what was read of it have in common."""
    names = (
        *("rule", "rule_name", "severity", "level", "message", "path"),
        *("line", "end_line", "column", "end_column", "snippet", "suppressed"),
    )
    return {name: getattr(thing, name) for name in names}


EVERY = tuple(
    found(
        f"a {severity} ü#1%",
        severity,
        level=level,
        rule=f"S{at}",
        rule_name=name,
        line=2 + at,
        end_line=3 + at,
        column=1,
        end_column=9,
        snippet=f'x = "{at}"\n\ty',
        suppressed=at % 2 == 0,
        metadata={"cwe": "CWE-79", "more": "1, 2"},
    )
    for at, (severity, level, name) in enumerate(
        zip(Severity, (*Level, Level.WARNING), (None, "assert", None, "exec", None), strict=True)
    )
)


def test_our_own_reader_reads_the_same_findings_and_fingerprints(world: World, tmp_path: Path) -> None:
    """From the SARIF that was written: each member, each fingerprint, and nothing besides."""
    analysis_id = published(world, *EVERY, found("b", path=None, line=None), found("c", path=None, line=7))
    file = tmp_path / "export.sarif"
    file.write_text("".join(sarif(collected(world, analysis_id))), "utf-8")
    drafts = [each for each in read(file, roots=("/src",), analyser="ruff") if isinstance(each, Draft)]
    given = {view.finding.fingerprint: view.finding for view in collected(world, analysis_id).findings()}
    assert {draft.parts[FINGERPRINT]: members(draft) for draft in drafts} == {
        fingerprint: members(finding) for fingerprint, finding in given.items()
    }
    assert len(drafts) == len(given) == 7
    for draft in drafts:
        metadata = given[draft.parts[FINGERPRINT]].metadata
        assert {name: draft.metadata[name] for name in metadata} == metadata


def test_sarif_has_the_shape_of_the_standard(world: World) -> None:
    """A run for each analyser, and results that name their rule by its place among the rules."""
    run = going(world, "ruff", "bandit", "bandit")
    run.publish(
        sealed(*EVERY),
        sealed(found("x", analyser="bandit", rule="B101"), analyser="bandit", part=1),
        sealed(analyser="bandit", part=2, outcome=Outcome.INCOMPLETE, reasons=("stopped",)),
    )
    bandit, ruff = log(world, run.id)["runs"]
    assert [each["tool"]["driver"]["name"] for each in (bandit, ruff)] == ["bandit", "ruff"]
    assert [each["exitCodeDescription"] for each in bandit["invocations"] if "exitCodeDescription" in each] == [
        "stopped"
    ]
    rules = ruff["tool"]["driver"]["rules"]
    assert [rules[each["ruleIndex"]]["id"] for each in ruff["results"]] == [f"S{at}" for at in range(5)]
    assert {each["level"]: each.get("kind") for each in ruff["results"]}["none"] == "informational"


def test_missing_coverage_is_told(world: World, tmp_path: Path) -> None:
    """What an analyser failed on is read back as not analysed; what it skipped is a note (spec D-24)."""
    run = going(world)
    coverage = Coverage(10, 1, 1, (Uncovered("big.py", "too large"),), (Uncovered("a b.py", "no UTF-8"),))
    run.publish(sealed(coverage=coverage))
    file = tmp_path / "export.sarif"
    file.write_text(json.dumps(log(world, run.id)), "utf-8")
    assert list(read(file, roots=("/src",))) == [Unread("a b.py", "no UTF-8", failed=True)]
    assert "big.py" in file.read_text("utf-8")


def test_what_left_no_result_is_told_with_the_reason(world: World, tmp_path: Path) -> None:
    """Part of an analyser's work, or all of it: whoever reads the log knows that it is not all there (spec D-24)."""
    run = going(world, "ruff", "bandit", "ruff", analysers=("ruff", "bandit", "semgrep"))
    missing = {1: "not analysed: BUSY: The analyser server at unix:/a does not answer.", 2: "its job was cancelled"}
    world.db.run(publish, run.id, [sealed(found("a"))], missing=missing, owner=run.owner, action=world.action())
    told = log(world, run.id)
    assert {each["tool"]["driver"]["name"]: (len(each["results"]), each["invocations"]) for each in told["runs"]} == {
        "bandit": (0, [{"executionSuccessful": False, "exitCodeDescription": missing[1]}]),
        "ruff": (1, [{"executionSuccessful": True}, {"executionSuccessful": False, "exitCodeDescription": missing[2]}]),
        "semgrep": (0, [{"executionSuccessful": False}]),
    }
    file = tmp_path / "export.sarif"
    file.write_text(json.dumps(told), "utf-8")
    with pytest.raises(EvidenceInvalid, match=r"not analysed: BUSY"):
        list(read(file, roots=("/src",)))


def test_decisions_suppress_where_they_say_so_and_nowhere_else(world: World) -> None:
    """The three that suppress, with their reason; what the source suppresses is told apart (spec D-16)."""
    names = [str(row.decision) for row in DECISIONS]
    analysis_id = published(world, *map(found, names), found("source", suppressed=True))
    for name in names:
        decided(world, analysis_id, name, Decision(name), "because")
    (run,) = log(world, analysis_id)["runs"]
    told = {
        result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"][4:-3]: result for result in run["results"]
    }
    assert {name: result.get("suppressions") for name, result in told.items() if "suppressions" in result} == {
        "source": [{"kind": "inSource", "status": "accepted"}],
        **{
            str(row.decision): [{"kind": "external", "status": "accepted", "justification": "because"}]
            for row in DECISIONS
            if row.suppresses
        },
    }
    assert {name: told[name]["properties"]["testigo/decision"] for name in names} == {name: name for name in names}


def test_what_changes_while_it_is_read_ends_the_export(world: World) -> None:
    """No export is of two revisions (spec D-19)."""
    analysis_id = published(world, found("a"))
    before = collected(world, analysis_id)
    decided(world, analysis_id, "a", Decision.NEEDS_REVIEW)
    with pytest.raises(CollectionChanged) as caught:
        "".join(sarif(before))
    assert caught.value.facts["revision"] == collected(world, analysis_id).detail.view.revision


def test_what_is_not_published_is_not_exported(world: World) -> None:
    """A running analysis has no evidence yet: an empty export would say that it found nothing."""
    new = asked()
    world.db.run(begin_analysis, new, action=world.action())
    with pytest.raises(StateConflict):
        collected(world, new.id)


@pytest.mark.parametrize(
    "text",
    [
        "=1+1",
        "+1",
        "-1",
        "@SUM(A1)",
        "  =1",
        "\t=1",
        "\n=1",
        "\uff1d1",
        "|calc",
        "%0A",
        "'=1",
        '=HYPERLINK("http://x","y")',
    ],
)
def test_no_cell_is_a_formula(world: World, text: str) -> None:
    """Wherever it stands, and what was there can be had back by taking the mark away."""
    assert harmless(text) == f"'{text}"
    analysis_id = published(world, found("a", message=text, metadata={}))
    decided(world, analysis_id, "a", Decision.IGNORE, text)
    (row,) = csv.DictReader(io.StringIO("".join(table(collected(world, analysis_id))), newline=""))
    assert (row["message"], row["reason"]) == (f"'{text}", harmless(text.strip()))


def test_a_table_has_a_row_for_each_finding(world: World) -> None:
    """Cells of several lines among them."""
    analysis_id = published(world, *EVERY, found("lines", message='a\nb,"c";d', severity=Severity.CRITICAL))
    rows = list(csv.DictReader(io.StringIO("".join(table(collected(world, analysis_id))), newline="")))
    assert tuple(rows[0]) == COLUMNS
    assert {row["id"] for row in rows} == {view.id for view in listed(world, analysis_id).values()}
    assert 'a\nb,"c";d' in {row["message"] for row in rows}
    assert {row["suppressed"] for row in rows} == {"true", "false"}


def test_openvex_tells_what_was_decided_and_nothing_else(world: World) -> None:
    """Each decision by its status, with what that status demands; what nobody decided about is left out."""
    names = [str(row.decision) for row in DECISIONS]
    analysis_id = published(world, *map(found, names), found("nobody"))
    for name in names:
        decided(world, analysis_id, name, Decision(name), f"because of {name}")
    told = json.loads("".join(openvex(collected(world, analysis_id))))
    assert told["version"] == collected(world, analysis_id).detail.view.revision
    assert len(told["statements"]) == len(names)
    for statement in told["statements"]:
        (product,) = statement["products"]
        name = product["subcomponents"][0]["@id"].removeprefix("pkg:generic/shop#src/").removesuffix(".py")
        status, because = STATUSES[Decision(name)]
        assert statement["status"] == status
        assert f"because of {name}" in statement[because]
        assert statement["vulnerability"]["name"] == "ruff/S105"
    assert {"affected", "not_affected", "fixed", "under_investigation"} == {
        statement["status"] for statement in told["statements"]
    }


def test_every_decision_has_a_status() -> None:
    """And what OpenVEX demands of a status is what every decision of it demands: a reason."""
    assert set(STATUSES) == set(Decision)
    needs = {row.decision for row in DECISIONS if row.needs_reason}
    assert {decision for decision, (status, _) in STATUSES.items() if status in ("affected", "not_affected")} <= needs
