"""Tab completes what is known at once, and asks the database for queues and kinds only where that is cheap."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from testigo.authority.pause import Scope, pause
from testigo.cli.root import run
from tests.world import World


class Complete:
    """Completion as bash asks for it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def __call__(self, line: str, url: str = "embedded:") -> list[str]:
        """The words that may follow this line."""
        self._monkeypatch.setenv("TESTIGO_URL", url)
        self._monkeypatch.setenv("_TESTIGO_COMPLETE", "complete_bash")
        self._monkeypatch.setenv("COMP_WORDS", line)
        self._monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))
        with pytest.raises(SystemExit):
            run([])
        return self._capsys.readouterr().out.split()


@pytest.fixture
def complete(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Complete:
    """What bash is told after Tab."""
    return Complete(monkeypatch, capsys)


def test_commands_options_and_words_are_completed(complete: Complete) -> None:
    """Nobody is asked for them."""
    assert complete("testigo jo") == ["jobs"]
    assert complete("testigo jobs li") == ["list"]
    assert complete("testigo jobs list --que") == ["--queue"]
    assert complete("testigo jobs list --state ca") == ["cancelling", "cancelled"]
    assert complete("testigo jobs submit k --policy ") == ["fail", "cancel", "wait", "run"]


def test_queues_and_kinds_are_completed_from_a_server(complete: Complete, world: World, database_url: str) -> None:
    """Those with jobs, workers or a pause; what has a special meaning in a pattern has none here."""
    world.submit(queue="media"), world.submit(queue="m_x"), world.submit(queue="mail")
    world.worker(queues=("more",), kinds=("media.transcode", "report"))
    world.db.run(pause, Scope.KIND, "media.scan", action=world.action())
    assert complete("testigo queues show m", database_url) == ["m_x", "mail", "media", "more"]
    assert complete("testigo queues show m_", database_url) == ["m_x"]
    assert complete("testigo jobs list --kind med", database_url) == ["media.scan", "media.transcode"]


def test_an_embedded_server_is_not_started_for_it(complete: Complete, tmp_path: Path) -> None:
    """Nor is a server that does not answer told of."""
    assert complete("testigo queues show m", f"embedded:{tmp_path / 'none'}") == []
    assert not (tmp_path / "none").exists()
    assert complete("testigo queues show m", "postgresql://nobody@127.0.0.1:1/none") == []


SHELLS = {
    "bash": (
        "complete -o default -F _testigo_completion testigo",
        {"COMP_WORDS": "testigo jo", "COMP_CWORD": "1"},
        "jobs",
    ),
    "zsh": ("compdef _testigo_completion testigo", {"_TYPER_COMPLETE_ARGS": "testigo jo"}, '"jobs":"Look at jobs,'),
    "fish": (
        "complete --command testigo",
        {"_TYPER_COMPLETE_ARGS": "testigo jo", "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
        "jobs\tLook at jobs,",
    ),
}
"""What teaches each shell, how it then asks, and what it is told of `testigo jo`."""


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_is_taught_and_answered(shell: str) -> None:
    """As `--install-completion` writes it; another noun is not offered."""
    taught, asked, told = SHELLS[shell]
    assert taught in _said({"_TESTIGO_COMPLETE": f"source_{shell}"})
    answer = _said({"_TESTIGO_COMPLETE": f"complete_{shell}", **asked})
    assert told in answer
    assert "queues" not in answer


def test_bash_completes_what_is_typed() -> None:
    """The shell itself, once it has read the script."""
    typed = 'eval "$(_TESTIGO_COMPLETE=source_bash testigo)"; COMP_WORDS=(testigo jobs li); COMP_CWORD=2; '
    command = ["bash", "-c", typed + '_testigo_completion testigo; echo "${COMPREPLY[@]}"']
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(command, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=True)
    assert (ran.stdout, ran.stderr) == ("list\n", "")


def _said(environment: dict[str, str]) -> str:
    command = [sys.executable, "-c", "import sys; sys.argv[0] = 'testigo'; from testigo.cli import main; main()"]
    return subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=True).stdout
