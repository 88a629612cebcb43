"""Tab completes what is known at once, and asks the database for queues and kinds only where that is cheap."""

from __future__ import annotations

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
