"""What a scan starts for itself looks at what is scanned: whoever may submit jobs can ask it for nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from testigo.errors import Invalid
from testigo.evidence.transport.client import AnalyserClient
from testigo.evidence.transport.request import Request
from testigo.rules.evidence.coverage import Outcome
from testigo.scan.crew import Crew
from tests.evidence.reports import sarif, written
from tests.scan.kit import tree
from tests.worker.kit import PATIENCE_SECONDS


def test_its_server_looks_at_the_tree_and_the_reports_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By an address and a token that no other server has."""
    monkeypatch.setenv("TESTIGO_KEYS", str(tmp_path / "keys"))
    scanned, report = tree(tmp_path / "tree"), written(tmp_path, sarif())
    with Crew(f"embedded:{tmp_path / 'data'}", "testigo", "q", roots=(scanned, report)) as crew:
        crew.start_server()
        assert crew.await_server()["ruff"]
        with AnalyserClient(crew.address, crew.token) as client:
            for request in (
                Request("ruff", str(tmp_path)),
                Request("ruff", "/"),
                Request("sarif", str(scanned), options={"file": str(tmp_path / "other.sarif")}),
                Request("cyclonedx-py", str(scanned), options={"environment": str(scanned)}),
            ):
                with pytest.raises(Invalid):
                    client.ask(request)
            asked = Request("sarif", str(scanned), options={"file": str(report)})
            assert client.result(asked, within_seconds=PATIENCE_SECONDS).outcome is Outcome.COMPLETE
