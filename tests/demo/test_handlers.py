"""The demo's jobs really look at their files."""

from __future__ import annotations

import hashlib
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from testigo import JobFailed, State
from testigo.demo.handlers import app, look, ruff_program


@pytest.fixture(autouse=True)
def connected(database_url: str) -> Iterator[None]:
    """The demo's App on the test's database."""
    with app.connected_to(database_url, "testigo"):
        yield


def test_a_file_is_measured_and_linted(tmp_path: Path) -> None:
    """Its size, its tokens, its digest, and the rules of ruff that it breaks."""
    file = tmp_path / "a.py"
    file.write_text("import os\nx = 1\n")
    job = look.submit(path=str(file))
    app.run_until_idle()
    report = job.result(timeout=0)
    assert (report.path, report.size_bytes, report.lines, report.tokens) == (str(file), 16, 2, 9)
    assert report.digest == hashlib.sha256(file.read_bytes()).hexdigest()
    assert report.diagnostics is not None
    assert report.diagnostics["F401"] == 1


@pytest.mark.parametrize("content", [b"# coding: nowhere\n", b"x = '\xff'\n", b"x = (\n"])
def test_what_has_no_tokens_succeeds_within_limits(tmp_path: Path, content: bytes) -> None:
    """It is measured as far as it goes; a file that is no Python is no reason to try again."""
    file = tmp_path / "a.py"
    file.write_bytes(content)
    job = look.submit(path=str(file))
    assert app.run_until_idle() == 1
    assert job.state() is State.SUCCEEDED_DEGRADED
    assert job.result(timeout=0).size_bytes == len(content)
    (limitation,) = job.limitations()
    assert limitation.startswith("counted up to where it is no Python: ")


def test_what_cannot_be_read_fails_for_good(tmp_path: Path) -> None:
    """At the first run."""
    job = look.submit(path=str(tmp_path / "gone.py"))
    assert app.run_until_idle() == 1
    with pytest.raises(JobFailed, match="unreadable"):
        job.result(timeout=0)


def test_without_ruff_the_rest_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`diagnostics` says that nobody looked."""
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    file = tmp_path / "a.py"
    file.write_text("x = 1\n")
    ruff_program.cache_clear()
    try:
        job = look.submit(path=str(file))
        app.run_until_idle()
    finally:
        ruff_program.cache_clear()
    report = job.result(timeout=0)
    assert (report.lines, report.diagnostics) == (1, None)
