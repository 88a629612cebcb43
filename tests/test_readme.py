"""What the README shows is what happens."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from testigo.cli.demo.place import Place
from testigo.cli.demo.scanned import tell
from testigo.demo.scan import Proof, Scanned
from testigo.evidence.listing import Alike, AnalysisDetail
from testigo.evidence.model import AnalysisState, AnalysisView, Gate, PartView
from testigo.rules.evidence.coverage import Coverage, Outcome
from testigo.rules.evidence.gate import DEFAULT, Code, Reason, Verdict
from testigo.rules.evidence.review import NEW
from testigo.rules.evidence.severity import Severity
from testigo.scan.scope import Scope

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def test_the_readme_s_example_runs_as_it_is_written(database_url: str, tmp_path: Path) -> None:
    """With a worker beside it, the block of Python prints what the block of the console shows (spec D-02)."""
    (block,) = re.findall(r"```python\n# media.py\n(.*?)```", README, flags=re.DOTALL)
    ((command, shown),) = re.findall(r"^\$ (python media\.py)\n(.*?)```", README, flags=re.DOTALL | re.MULTILINE)
    (tmp_path / "media.py").write_text(block)
    environment = {**os.environ, "TESTIGO_URL": database_url}
    with (tmp_path / "worker.log").open("w") as log:
        command_line = [sys.executable, "-m", "testigo", "worker", "media:app"]
        worker = subprocess.Popen(command_line, cwd=tmp_path, env=environment, stderr=log)
    try:
        said = _run(database_url, *command.split()[1:], folder=tmp_path)
    finally:
        worker.terminate()
        status = worker.wait(timeout=60)
    assert ID.sub("…", said) == ID.sub("…", shown)
    assert status == 0


def test_the_demo_ends_as_the_readme_shows(capsys: pytest.CaptureFixture[str]) -> None:
    """Word for word, with the numbers of the run that is shown."""
    shown, _ = re.findall(r"```text\n(.*?)```", README, flags=re.DOTALL)
    (name,) = ID.finditer(shown)
    scope = Scope(Path("tree"), dict.fromkeys(map(str, range(60)), 1), {}, by_git=False)
    scanned = Scanned(_analysis(name.group()), scope, Proof(592, 1, 11, 1), killed=True, left=0, seconds=18.0)
    tell(scanned, Place("embedded:gone", "testigo", stays=False, goes_with_demo=True), ".venv/bin/testigo", stays=False)
    assert capsys.readouterr().out == f"\n{shown}"


def _analysis(name: str) -> AnalysisDetail:
    """That which the README shows: what three analysers found, in eleven parts."""
    counts = {Severity.HIGH: 11, Severity.MEDIUM: 22, Severity.LOW: 559}
    analysers = {"detect-secrets": ("1.5.0", 1), "bandit": ("1.9.4", 80), "ruff": ("0.17.6", 511)}
    view = AnalysisView(
        **_nothing(AnalysisView)
        | {
            "id": name,
            "project": "standard-library",
            "n": 1,
            "state": AnalysisState.COMPLETE,
            "analysers": tuple(analysers),
            "persisted": True,
            "findings": 592,
            "artifacts": 0,
            "counts": counts,
        }
    )
    wholes = [_part(analyser, 60, *told) for analyser, told in analysers.items()]
    alike = [Alike(each, Severity.LOW, NEW.decision, False, False, told[1]) for each, told in analysers.items()]
    reason = Reason(Code.THRESHOLD_EXCEEDED, None, Severity.HIGH, 11, 0, "11 high findings count; none may pass")
    gate = Gate(Verdict.FAILED, (reason,), counts, DEFAULT, 1, Verdict.FAILED, None)
    return AnalysisDetail(view, (*wholes, *[_part("bandit", 0, "1.9.4", 0)] * 8), tuple(alike), gate)


def _part(analyser: str, files: int, version: str, findings: int) -> PartView:
    told = {"analyser": analyser, "analyser_version": version, "files": files, "findings": findings, "reasons": ()}
    return PartView(**_nothing(PartView) | told | {"outcome": Outcome.COMPLETE, "coverage": Coverage(files)})


def _nothing(view: type[AnalysisView | PartView]) -> dict[str, Any]:
    """Its fields, without what nobody is shown here."""
    return dict.fromkeys(each.name for each in fields(view))


def test_the_example_tells_the_story_that_the_readme_tells(database_url: str) -> None:
    """`examples/first.py` prints the lines of the README, ids apart."""
    _, shown = re.findall(r"```text\n(.*?)```", README, flags=re.DOTALL)
    database, *told = _run(database_url, str(ROOT / "examples" / "first.py")).splitlines()
    assert database.startswith("database")
    assert [ID.sub("…", line) for line in told] == [ID.sub("…", line) for line in shown.splitlines()]


def _run(database_url: str, *arguments: str, folder: Path = ROOT) -> str:
    environment = {**os.environ, "TESTIGO_URL": database_url}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
