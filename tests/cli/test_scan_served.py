"""A scan for which others serve, and one with an analyser that lives apart: as the guides tell it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.process import piped
from tests.evidence.server.process import spawned
from tests.evidence.server.serving import TOKEN
from tests.scan.kit import tree

PATIENCE_SECONDS = 180.0


@contextmanager
def working(url: str, address: str, keys: Path) -> Iterator[None]:
    """A worker of the scans' application, as the guide starts it."""
    with subprocess.Popen(
        [sys.executable, "-m", "testigo", "worker", "testigo.scan.jobs:app", "--runners", "1", "--slots", "2"],
        env={
            **os.environ,
            "TESTIGO_URL": url,
            "TESTIGO_KEYS": str(keys),
            "TESTIGO_ANALYSER": address,
            "TESTIGO_ANALYSER_TOKEN": TOKEN,
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as worker:
        try:
            yield
        finally:
            worker.terminate()


def scanned(url: str, keys: Path, *words: str, **environment: str) -> tuple[int, dict[str, Any]]:
    """The exit status of a scan, and its answer."""
    ran = piped("scan", *words, "--json", url=url, TESTIGO_KEYS=str(keys), **environment)
    out, err = ran.communicate(timeout=PATIENCE_SECONDS)
    assert out, err
    return ran.returncode, json.loads(out)


def test_others_serve_a_scan_and_look_only_where_they_may(database_url: str, tmp_path: Path) -> None:
    """What lies below the server's root is scanned; of what lies elsewhere the gate has no evidence."""
    inside, outside, keys = tree(tmp_path / "roots" / "shop"), tree(tmp_path / "outside"), tmp_path / "keys"
    words = ("--served", "--analysers", "ruff", "--fail-on", "critical")
    with (
        spawned(tmp_path, "--root", str(tmp_path / "roots"), TESTIGO_KEYS=str(keys)) as server,
        working(database_url, server.said["address"], keys),
    ):
        status, told = scanned(database_url, keys, str(inside), *words)
        assert (status, told["verdict"], told["findings"] > 0) == (0, "passed", True)
        status, told = scanned(database_url, keys, str(outside), *words)
        assert (status, told["verdict"], told["findings"]) == (4, "incomplete", 0)
        assert [reason["code"] for reason in told["reasons"]] == ["ANALYSER_MISSING"]


@pytest.mark.needs_package_index
def test_semgrep_that_lives_apart_has_its_part_in_a_scan(database_url: str, tmp_path: Path, semgrep: Path) -> None:
    """Where it is installed a scan asks for it unless it is told otherwise, and publishes what it found."""
    folder = tree(tmp_path / "tree")
    (folder / "shell.py").write_text("import subprocess\n\n\ndef run(name):\n    subprocess.run(name, shell=True)\n")
    _, told = scanned(database_url, tmp_path / "keys", str(folder), TESTIGO_ANALYSERS=str(semgrep))
    (part,) = [each for each in told["analysers"] if each["analyser"] == "semgrep"]
    assert (part["missing"], part["in_scope"], part["skipped"], part["failed"]) == (0, 3, 0, 0)
    assert part["findings"] > 0
