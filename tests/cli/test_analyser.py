"""`testigo analyser`: a server that says where it is and stops when told, and analysers that are installed apart."""

from __future__ import annotations

import os
import signal
import stat
from pathlib import Path

import pytest

from testigo.errors import Unauthenticated
from testigo.evidence.transport import places
from testigo.evidence.transport.client import AnalyserClient
from tests.cli.conftest import Cli
from tests.evidence.server.process import spawned
from tests.evidence.server.serving import program, report, running
from tests.worker.kit import PATIENCE_SECONDS, await_that


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_says_where_it_is_and_stops_with_all_that_it_had(tmp_path: Path, number: signal.Signals) -> None:
    """Whatever runs, and whoever waits."""
    program(tmp_path, "time.sleep(3600)\n")
    with spawned(tmp_path) as it:
        assert it.said["address"].startswith("http://127.0.0.1:")
        assert set(it.said) == {"address", "spool", "in_memory", "network"}
        it.client.ask(it.request())
        await_that(lambda: running(tmp_path / "apart"), "the program")
        it.process.send_signal(number)
        assert it.process.wait(PATIENCE_SECONDS) == 0
        await_that(lambda: not running(tmp_path), "the end of everybody")
        assert list((tmp_path / "spool").glob("*/*")) == []


def test_the_token_is_a_key_of_the_installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever can read its keys can ask, and nobody else; nothing prints it."""
    program(tmp_path, report({}))
    with spawned(tmp_path, "--socket", str(tmp_path / "s"), TESTIGO_ANALYSER_TOKEN="") as it:
        monkeypatch.delenv(places.TOKEN_VARIABLE, raising=False)
        token = places.token(f"embedded:{tmp_path / 'data'}")
        assert token not in str(it.said)
        assert it.said["address"] == f"unix:{tmp_path / 's'}"
        assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o600
        with AnalyserClient(it.said["address"], token) as client:
            assert client.analysers()["semgrep"] == "1.0"
        with pytest.raises(Unauthenticated):
            it.client.analysers()


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (("--socket", "s", "--port", "1"), 2, "not at both"),
        (("--port", "70000"), 2, "--port"),
        (("serve", "--runs", "0"), 2, "--runs"),
        (("serve", "--root", "no-such-folder"), 2, "no folder no-such-folder"),
        (("--port", "0"), 2, "name a folder with --root"),
        (("--root", ".", "--environment", "shop"), 2, "NAME=DIR is needed"),
        (("--root", ".", "--environment", "=."), 2, "NAME=DIR is needed"),
        (("--root", ".", "--environment", "shop=."), 2, "with a bin/python"),
        (("--root", ".", "--socket", "/nowhere/at/all/s"), 15, "Nobody can listen"),
        (("--root", ".", "--port", "0", "--spool", "/dev/null"), 15, "cannot be made"),
        (("install", "ruff"), 13, "One of: semgrep"),
        (("instal",), 2, "instal"),
    ],
)
def test_what_cannot_be_meant_so_is_refused(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], status: int, says: str
) -> None:
    """Before anything is served."""
    monkeypatch.setenv("TESTIGO_KEYS", str(tmp_path / "keys"))
    monkeypatch.chdir(tmp_path)
    ran = cli("analyser", *arguments)
    assert (ran.status, ran.out) == (status, "")
    assert says in ran.err


@pytest.mark.parametrize("token", ["hush", "with blanks in it, long enough", "ä" * 20])
def test_a_token_that_can_be_guessed_is_refused(cli: Cli, monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    """It names the variable."""
    monkeypatch.setenv(places.TOKEN_VARIABLE, token)
    ran = cli("analyser", "--root", ".", "--port", "0", "--json")
    assert (ran.status, ran.error["field"]) == (11, places.TOKEN_VARIABLE)
    assert token not in ran.err


def test_what_cannot_be_installed_is_not_there(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even half of it."""
    monkeypatch.setenv(places.APART_VARIABLE, str(tmp_path / "apart"))
    monkeypatch.setitem(os.environ, "PIP_NO_INDEX", "1")
    assert cli("analyser", "install", "semgrep").status == 15
    assert list((tmp_path / "apart").iterdir()) == []


def test_a_tree_brings_no_analyser(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Programs are the user's own, or lie where a variable says: never in the folder that a command runs in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(places.APART_VARIABLE, raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("HOME", "/home/ana")
    assert places.apart() == Path("/home/ana/.local/share/testigo/analysers")
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert places.apart() == Path("/data/testigo/analysers")
    monkeypatch.setenv(places.APART_VARIABLE, "/opt/analysers")
    assert places.apart() == Path("/opt/analysers")


def test_help_lists_what_it_can_do(cli: Cli) -> None:
    """And without a verb it serves."""
    ran = cli("analyser", "--help")
    assert ran.status == 0
    assert "serve" in ran.out
    assert "install" in ran.out
    assert "--keep-seconds" in cli("analyser", "serve", "--help").out
