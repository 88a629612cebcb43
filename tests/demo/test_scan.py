"""The demo of a scan: its publisher dies with everything inserted, and one analysis is there in the end, whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from testigo.demo.scan import copied
from tests.cli.process import piped

NOWHERE = "postgresql://nobody@127.0.0.1:1/nowhere"
PATIENCE_SECONDS = 240.0


@pytest.mark.needs_linux
def test_it_survives_its_publisher(tmp_path: Path) -> None:
    """Nothing is left of what was inserted, and nothing of the demo itself (spec D-10, D-11)."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "shop.py").write_text('import os\nos.system("ls")\n', "utf-8")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    ran = piped("demo", "scan", "--path", str(source), "--json", url=NOWHERE, TMPDIR=str(scratch))
    out, err = ran.communicate(timeout=PATIENCE_SECONDS)
    assert (ran.returncode, err) == (0, ""), out + err
    told = json.loads(out)
    assert (told["state"], told["killed"], told["left"]) == ("complete", True, 0)
    assert told["proof"]["rows"] == told["findings"] > 0
    assert told["proof"]["transactions"] == 1
    assert told["proof"]["lost"] >= 1
    assert list(scratch.iterdir()) == []


def test_files_are_copied_with_their_names(tmp_path: Path) -> None:
    """Those of the library below it, others by their own."""
    (tmp_path / "a.py").write_text("x = 1\n", "utf-8")
    tree = copied([Path(json.__file__), tmp_path / "a.py"], tmp_path / "tree")
    assert sorted(str(path.relative_to(tree)) for path in tree.rglob("*.py")) == ["a.py", "json/__init__.py"]
