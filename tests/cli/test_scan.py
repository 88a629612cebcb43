"""`testigo scan` as a shell calls it: real analysers, the gate's verdict as the exit status, an end without traces."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from testigo.evidence.findings import findings
from testigo.evidence.listing import analyses
from testigo.evidence.model import AnalysisState
from testigo.evidence.occurrences import occurrences
from testigo.rules.evidence.occurrence import Presence
from tests.cli.conftest import Cli
from tests.cli.process import piped
from tests.scan.kit import tree
from tests.worker.kit import await_that
from tests.world import World

PATIENCE_SECONDS = 180.0


def _scan(url: str, folder: Path, *words: str, path: Path | None = None) -> tuple[int, Any, str]:
    """The exit status, the answer, and what was said beside it."""
    ran = piped("scan", str(path or folder / "tree"), "--json", *words, url=url, TESTIGO_KEYS=str(folder / "keys"))
    out, err = ran.communicate(timeout=PATIENCE_SECONDS)
    return ran.returncode, json.loads(out) if out else None, err


def test_the_gate_s_verdict_is_the_exit_status(database_url: str, tmp_path: Path) -> None:
    """0 passed, 3 failed (spec D-21)."""
    tree(tmp_path / "tree")
    status, first, err = _scan(database_url, tmp_path, "--analysers", "ruff", "--fail-on", "critical")
    assert (status, first["verdict"], first["state"], err) == (0, "passed", "complete", "")
    assert first["findings"] == first["new"] == sum(first["counts"].values()) > 0
    status, second, _ = _scan(database_url, tmp_path, "--analysers", "ruff", "--fail-on", "low")
    assert (status, second["verdict"], second["findings"]) == (3, "failed", first["findings"])


def test_scanning_twice_accepts_nothing(cli: Cli, database_url: str, tmp_path: Path) -> None:
    """What failed stays new until somebody sets the baseline, or a gate that is no laxer has passed (spec D-23)."""
    tree(tmp_path / "tree")
    words = ("--analysers", "ruff", "--fail-on", "low", "--baseline")
    assert _scan(database_url, tmp_path, "--analysers", "ruff", "--fail-on", "critical")[0] == 0
    assert _scan(database_url, tmp_path, *words)[0] == 3
    status, told, _ = _scan(database_url, tmp_path, *words)
    assert (status, told["verdict"], told["new"]) == (3, "failed", told["findings"])
    cli("gate", "set", "tree", "--fail-on", "low", "--baseline", told["analysis"], "--note", "from now on")
    status, told, _ = _scan(database_url, tmp_path, *words)
    assert (status, told["verdict"], told["new"]) == (0, "passed", 0)


def test_a_file_of_a_project_is_a_part_of_it(cli: Cli, world: World, database_url: str, tmp_path: Path) -> None:
    """What lies elsewhere stays as it is known, and what is found in it is what was found before (spec D-23, D-24)."""
    folder = tree(tmp_path / "tree")
    words = ("--analysers", "ruff", "--project", "shop")
    _, whole, _ = _scan(database_url, tmp_path, *words)
    before = world.db.run(occurrences, "shop").items
    for part in (folder / "shop" / "orders.py", folder / "shop"):
        _, told, _ = _scan(database_url, tmp_path, *words, path=part)
        assert told["scope"] == ["shop/orders.py" if part.is_file() else "shop/"]
        assert told["source"] == str(folder)
    (folder / "shop" / "orders.py").write_text("x = 1\n", "utf-8")
    _scan(database_url, tmp_path, *words, path=folder / "shop" / "orders.py")
    after = world.db.run(occurrences, "shop").items
    assert {each.identity for each in after} == {each.identity for each in before}
    gone = {each.identity for each in after if each.presence is Presence.ABSENT}
    paths = {
        view.finding.fingerprint: view.finding.path for view in world.db.run(findings, whole["analysis"]).page.items
    }
    assert {paths[each.fingerprint] for each in gone} == {"shop/orders.py"}
    assert len(gone) == sum(path == "shop/orders.py" for path in paths.values())
    assert cli("analyses", "show", "shop", "--json").json["analysis"]["id"] == whole["analysis"]


def test_an_analysis_is_done_again(cli: Cli, database_url: str, tmp_path: Path) -> None:
    """By the same gate, over the files as they are now; once, and the audit tells it (spec D-10)."""
    tree(tmp_path / "tree")
    _, first, _ = _scan(database_url, tmp_path, "--analysers", "ruff", "--fail-on", "low")
    for name in ("orders", "stock"):
        (tmp_path / "tree" / "shop" / f"{name}.py").write_text("x = 1\n", "utf-8")
    words = ("analyses", "reprocess", first["analysis"], "--note", "it was mended", "--json")
    ran = piped(*words, url=database_url, TESTIGO_KEYS=str(tmp_path / "keys"))
    out, err = ran.communicate(timeout=PATIENCE_SECONDS)
    told = json.loads(out)
    assert (ran.returncode, err, told["gate"]["verdict"]) == (0, "", "passed")
    assert (told["analysis"]["supersedes"], told["analysis"]["n"]) == (first["analysis"], 2)
    assert told["gate"]["policy_revision"] is None
    shown = cli("analyses", "show", first["analysis"])
    assert f"successor     {told['analysis']['id']}" in shown.out
    again = cli(*words)
    assert (again.status, again.error["code"]) == (12, "STATE_CONFLICT")


def test_what_was_not_looked_at_is_incomplete(database_url: str, tmp_path: Path) -> None:
    """A file without sense; it is named, and the status is 4 (spec D-24)."""
    tree(tmp_path / "tree")
    (tmp_path / "tree" / "broken.py").write_text("def (:\n", "utf-8")
    status, told, _ = _scan(database_url, tmp_path, "--analysers", "ruff,bandit", "--project", "shop")
    assert (status, told["verdict"], told["state"], told["project"]) == (4, "incomplete", "incomplete", "shop")
    assert {each["analyser"]: each["failed"] for each in told["analysers"]} == {"ruff": 1, "bandit": 1}


def test_an_analyser_that_is_not_installed_is_missing(database_url: str, tmp_path: Path) -> None:
    """What the others found is published all the same (spec D-24)."""
    tree(tmp_path / "tree")
    status, told, _ = _scan(database_url, tmp_path, "--analysers", "ruff,semgrep")
    assert (status, told["state"]) == (4, "incomplete")
    assert told["findings"] > 0


def test_a_report_of_another_tool_is_published(database_url: str, tmp_path: Path) -> None:
    """With what was found in it."""
    tree(tmp_path / "tree")
    result = {
        "ruleId": "r1",
        "message": {"text": "Look here."},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": "shop/stock.py"}, "region": {"startLine": 2}}}],
    }
    run = {"tool": {"driver": {"name": "other"}}, "results": [result]}
    report = tmp_path / "report.sarif"
    report.write_text(json.dumps({"version": "2.1.0", "runs": [run]}), "utf-8")
    _, told, _ = _scan(database_url, tmp_path, "--analysers", "ruff", "--sarif", str(report))
    assert {each["analyser"]: each["findings"] for each in told["analysers"]}["sarif:other"] == 1


def test_what_cannot_be_is_refused(cli: Cli, tmp_path: Path) -> None:
    """Before anything begins, by field."""
    assert cli("scan", str(tmp_path / "nowhere"), "--json").error["field"] == "path"
    assert cli("scan", str(tmp_path), "--analysers", "nobody", "--json").error["field"] == "analyser"
    assert cli("scan", str(tmp_path), "--sarif", str(tmp_path / "none")).status == 2


@pytest.mark.needs_linux
def test_ctrl_c_cancels(world: World, database_url: str, tmp_path: Path) -> None:
    """The analysis is cancelled, and no process is left (spec D-20)."""
    tree(tmp_path / "tree")
    ran = piped("scan", str(tmp_path / "tree"), url=database_url, TESTIGO_KEYS=str(tmp_path / "keys"))
    await_that(lambda: world.db.run(analyses).items, "an analysis")
    ran.send_signal(signal.SIGINT)
    _, err = ran.communicate(timeout=PATIENCE_SECONDS)
    (view,) = world.db.run(analyses).items
    assert (ran.returncode, view.state, view.reason) == (130, AnalysisState.CANCELLED, "The scan was stopped.")
    assert f"The analysis {view.id} is cancelled." in err
    assert "Traceback" not in err
