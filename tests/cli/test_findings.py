"""`testigo findings`: look, decide, tell and export (spec D-16 to D-19; issue 6)."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from testigo.rules.evidence.severity import Severity
from tests.cli.conftest import Cli
from tests.evidence.store.kit import asked, found, one, published
from tests.world import World

AUDIT = "SELECT actor, role, via, what, objects, reason, result FROM testigo.audit ORDER BY n"


def test_findings_are_listed_the_worst_first(cli: Cli, world: World) -> None:
    """Of an analysis by its id, or of the newest that its project published."""
    older = published(world, found("old"))
    newest = published(
        world,
        found("low", Severity.LOW),
        found("bad", Severity.CRITICAL, rule="S102"),
        found("known", message="see CWE-79"),
    )
    listed = cli("findings", "list", "shop", "--json").json
    assert (listed["analysis"], listed["revision"], listed["complete"]) == (newest, 2, True)
    assert [each["finding"]["severity"] for each in listed["findings"]] == ["critical", "high", "low"]
    assert [each["finding"]["path"] for each in cli("findings", "list", older, "--json").json["findings"]] == [
        "src/old.py"
    ]
    head, first, *_ = cli("findings", "list", "shop").out.splitlines()
    assert head.split() == ["ID", "SEVERITY", "DECISION", "RULE", "PLACE", "MESSAGE"]
    assert first.split()[1:5] == ["critical", "open", "S102", "src/bad.py:1"]


@pytest.mark.parametrize(
    ("options", "paths"),
    [
        (["--severity", "critical", "--severity", "low"], ["bad", "low"]),
        (["--rule", "S102"], ["bad"]),
        (["--path", "src/low.py"], ["low"]),
        (["--path", "src/"], ["bad", "known", "low"]),
        (["--text", "cwe-79"], ["known"]),
        (["--analyser", "bandit"], []),
        (["--decision", "open", "--new"], ["bad", "known", "low"]),
        (["--decision", "fixed"], []),
    ],
)
def test_only_what_is_asked_for_is_listed(cli: Cli, world: World, options: list[str], paths: list[str]) -> None:
    """All that is asked for has to hold."""
    published(
        world,
        found("low", Severity.LOW),
        found("bad", Severity.CRITICAL, rule="S102"),
        found("known", message="see CWE-79"),
    )
    listed = cli("findings", "list", "shop", *options, "--json").json["findings"]
    assert [each["finding"]["path"] for each in listed] == [f"src/{name}.py" for name in paths]


def test_a_page_goes_on_until_somebody_decides(cli: Cli, world: World) -> None:
    """A cursor is of one revision of the findings (spec D-19)."""
    analysis = published(world, *(found(f"f{at}") for at in range(3)))
    first = cli("findings", "list", analysis, "--limit", "2", "--json").json
    rest = cli("findings", "list", analysis, "--limit", "2", "--after", first["next"], "--json").json
    assert {each["id"] for each in (*first["findings"], *rest["findings"])} == {
        one(world, analysis, f"f{at}").id for at in range(3)
    }
    assert "More: --after" in cli("findings", "list", analysis, "--limit", "2").err
    cli("findings", "decide", "needs_review", one(world, analysis, "f0").id)
    ran = cli("findings", "list", analysis, "--after", first["next"], "--json")
    assert (ran.status, ran.error["code"]) == (12, "COLLECTION_CHANGED")


def test_a_finding_is_shown_with_what_its_project_knows(cli: Cli, world: World) -> None:
    """What it says, and no more of its text than a terminal may be told."""
    analysis = published(world, found("a", snippet="x = 1\n  y = 2", metadata={"cwe": "CWE-79"}))
    view = one(world, analysis, "a")
    told = cli("findings", "show", view.id).out
    assert "severity     high" in told
    assert "place        src/a.py:1" in told
    assert "snippet      x = 1\n               y = 2" in told
    assert "occurrence   present, first found by number 1" in told
    shown = cli("findings", "show", view.id, "--json").json
    assert (shown["finding"]["id"], shown["project"], shown["n"], shown["exemption"]) == (view.id, "shop", 1, None)
    assert cli("findings", "show", analysis).status == 13


def test_the_first_decision_needs_no_revision_and_every_other_does(
    cli: Cli, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that nobody overwrites what they have not seen (spec D-17); the audit tells of it as of any other order."""
    monkeypatch.setattr("testigo.cli.call._user", lambda: "ana")
    analysis = published(world, found("a"))
    finding = one(world, analysis, "a").id
    ran = cli("findings", "decide", "false_positive", finding)
    assert (ran.status, "needs a reason" in ran.err) == (11, True)
    ran = cli("findings", "decide", "false_positive", finding, "--reason", "a fixture")
    assert ran.out.splitlines() == [
        f"{finding}  false_positive now, at revision 2",
        f"The gate of the analysis {analysis}: passed.",
    ]
    ran = cli("findings", "decide", "open", finding, "--json")
    assert (ran.status, ran.error["code"], ran.error["facts"]["decision"]) == (
        12,
        "REVISION_MISMATCH",
        "false_positive",
    )
    answer = cli("findings", "decide", "open", finding, "--revision", "2", "--json").json
    assert (answer["verdict"], answer["findings"][0]["revision"]) == ("failed", 3)
    order = ("cli:ana", "admin", "cli", "findings.decide", [f"finding:{finding}"])
    assert [tuple(row) for row in world.query(AUDIT)] == [(*order, "a fixture", "done"), (*order, "", "done")]


def test_the_same_is_decided_about_several(cli: Cli, world: World) -> None:
    """Those about which somebody decided are left alone, and the exit status says so."""
    analysis = published(world, found("a"), found("b"), found("c"))
    other = one(world, published(world, found("z"), project="other"), "z").id
    a, b, c = (one(world, analysis, name).id for name in "abc")
    ran = cli("findings", "decide", "ignore", a, b, "--reason", "vendored")
    assert (ran.status, ran.out.count("ignore now")) == (0, 2)
    ran = cli("findings", "decide", "accepted_risk", c, a, other, "--reason", "agreed")
    assert (ran.status, ran.err.splitlines()[0]) == (
        12,
        "REVISION_MISMATCH: 2 findings were left alone: somebody decided since, or they are not of this analysis.",
    )
    assert ran.out.splitlines() == [
        f"{c}  accepted_risk now, at revision 2",
        f"{a}  was ignore already, at revision 2: left alone",
        f"{other}  is no finding of this analysis",
        f"The gate of the analysis {analysis}: passed.",
    ]
    assert cli("findings", "decide", "open", a, b, "--revision", "2").status == 2
    assert cli("findings", "decide", "open", a, b).status == 11, "several are not changed without a reason"


def test_a_history_tells_decisions_and_sightings(cli: Cli, world: World) -> None:
    """Each analysis opens its own findings: none inherits a decision (spec D-18)."""
    first = published(world, found("a"))
    before = one(world, first, "a").id
    cli("findings", "decide", "fixed", before, "--reason", "merged")
    second = published(world, found("a"))
    after = one(world, second, "a").id
    told = cli("findings", "history", after, "--json").json
    assert told["decisions"] == []
    assert [(each["analysis_id"], each["decision"]) for each in told["sightings"]] == [
        (second, "open"),
        (first, "fixed"),
    ]
    ran = cli("findings", "history", before)
    assert "merged" in ran.out
    assert "Nobody has decided about it." in cli("findings", "history", after).err


def test_a_risk_is_taken_in_a_project_and_taken_back(cli: Cli, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the project's, so the next analysis has it too; no finding is changed (spec D-23; field case R86)."""
    monkeypatch.setattr("testigo.cli.call._user", lambda: "ana")
    first = published(world, found("a"))
    finding = one(world, first, "a").id
    assert cli("findings", "exempt", finding, "--reason", " ").status == 11
    assert cli("findings", "exempt", finding, "--reason", "x", "--days", "1", "--for-ever").status == 2
    answer = cli("findings", "exempt", finding, "--reason", "until the release", "--days", "30", "--json").json
    assert (answer["project"], answer["revision"], answer["verdict"]) == ("shop", 1, "passed")
    assert "until the release" in cli("findings", "show", one(world, published(world, found("a")), "a").id).out
    ran = cli("findings", "exempt", finding, "--reason", "for ever", "--for-ever")
    assert (ran.status, "REVISION_MISMATCH" in ran.err) == (12, True)
    ran = cli("findings", "exempt", finding, "--reason", "for ever", "--for-ever", "--revision", "1")
    assert ran.out.splitlines() == [
        f"{finding}  is exempt in shop for ever, at revision 2",
        "The gate of the newest analysis of shop: passed.",
    ]
    shown = cli("findings", "show", finding, "--json").json
    assert (shown["finding"]["review"]["decision"], shown["exemption"]["expires_at"]) == ("open", None)
    ran = cli("findings", "unexempt", finding, "--revision", "2", "--reason", "released")
    assert ran.out.splitlines() == [
        f"{finding}  is not exempt in shop any more, at revision 3",
        "The gate of the newest analysis of shop: failed.",
    ]
    assert cli("findings", "unexempt", finding, "--revision", "3").status == 12
    told = [(row.actor, row.what, row.reason) for row in world.query(AUDIT) if row.result == "done"]
    assert told == [
        ("cli:ana", "exemptions.grant", "until the release"),
        ("cli:ana", "exemptions.grant", "for ever"),
        ("cli:ana", "exemptions.end", "released"),
    ]


def test_an_advice_moves_nothing(cli: Cli, world: World) -> None:
    """It is kept for people to read, until another takes its place or it is taken back (spec D-19)."""
    analysis = published(world, found("a"))
    finding = one(world, analysis, "a").id
    before = cli("gate", "show", "shop", "--json").json
    words = ["findings", "advise", finding, "--advisor", "a-model", "--suggests", "false_positive"]
    assert cli(*words, "--because", "it is a test").out == f"{finding}  false_positive would be decided, says a-model\n"
    assert "advice       false_positive, says a-model: it is a test" in cli("findings", "show", finding).out
    assert cli("gate", "show", "shop", "--json").json == before
    assert one(world, analysis, "a").review.revision == 1
    assert cli("findings", "advise", finding, "--withdraw").out == f"{finding}  has no advice any more\n"
    assert one(world, analysis, "a").review.advice is None
    for options in ([], ["--advisor", "a-model"], ["--suggests", "open"], ["--withdraw", "--because", "why"]):
        assert cli("findings", "advise", finding, *options).status == 2


def test_a_finding_is_deleted_as_it_was_seen_and_with_a_reason(cli: Cli, world: World) -> None:
    """It is no decision: the next analysis finds it again (spec D-18)."""
    analysis = published(world, found("a"), found("b", Severity.LOW))
    finding = one(world, analysis, "a").id
    words = ["findings", "delete", finding, "--reason", "it names somebody"]
    assert (cli(*words).status, cli("findings", "delete", finding, "--yes").status) == (2, 2)
    assert cli(*words, "--revision", "2", "--yes").status == 12
    ran = cli(*words, "--yes")
    assert ran.out.splitlines() == [f"{finding}  is deleted", f"The gate of the analysis {analysis}: passed."]
    assert cli("findings", "show", finding).status == 13
    assert one(world, published(world, found("a")), "a").review.revision == 1


def _sarif(text: str) -> int:
    return len(json.loads(text)["runs"][0]["results"])


def _csv(text: str) -> int:
    return len(list(csv.DictReader(text.splitlines())))


def _openvex(text: str) -> int:
    return len(json.loads(text)["statements"])


@pytest.mark.parametrize(("form", "count", "tells"), [("sarif", _sarif, 2), ("csv", _csv, 2), ("openvex", _openvex, 1)])
def test_findings_are_exported(
    cli: Cli, world: World, tmp_path: Path, form: str, count: Callable[[str], int], tells: int
) -> None:
    """To stdout, or into a file that is whole; in what was decided there is no finding that nobody decided about."""
    analysis = published(world, found("a"), found("b"))
    cli("findings", "decide", "fixed", one(world, analysis, "a").id, "--reason", "merged")
    assert count(cli("findings", "export", "shop", "--form", form).out) == tells
    file = tmp_path / "out"
    file.write_text("before")
    answer = cli("findings", "export", analysis, "--form", form, "--output", str(file), "--json").json
    assert (answer["findings"], answer["revision"], answer["bytes"]) == (2, 3, file.stat().st_size)
    assert count(file.read_text("utf-8")) == tells
    assert list(tmp_path.iterdir()) == [file]


def test_what_cannot_be_exported_leaves_what_was_there(cli: Cli, world: World, tmp_path: Path) -> None:
    """An analysis without evidence, a project without analysis, a place that cannot be written."""
    from testigo.evidence.analyses import begin_analysis

    new = asked()
    world.db.run(begin_analysis, new, action=world.action())
    file = tmp_path / "out"
    file.write_text("before")
    assert cli("findings", "export", new.id, "--output", str(file)).status == 12
    assert cli("findings", "export", "shop", "--output", str(file)).status == 13
    assert cli("findings", "export", "nothing", "--output", str(file)).status == 13
    assert cli("analyses", "cancel", new.id, "--note", "so that nobody publishes it").status == 0
    assert cli("findings", "export", published(world, found("a")), "--output", str(tmp_path / "no" / "f")).status == 2
    assert cli("findings", "export", new.id, "--json").status == 2
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("out", "before")]
