"""What cannot be done is told on stderr by code, message, field, limit and remedy, with its class's exit status."""

from __future__ import annotations

import json

import pytest
import typer

from testigo import errors
from testigo.cli import serve
from testigo.cli.extras import EXTRAS
from testigo.cli.failures import tell
from testigo.cli.root import run
from testigo.errors import AuthorityUnavailable, Error, Invalid
from tests.cli.conftest import Cli

CLASSES = [getattr(errors, name) for name in errors.__all__ if name != "Error"]
NOBODY = "01a22e11-db65-7376-953b-9c503645fae8"


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.code)
def test_every_error_is_told_with_its_remedy(cls: type[Error], capsys: pytest.CaptureFixture[str]) -> None:
    """Each public error, in words and in JSON, with the exit status of its family."""
    error = cls("It did not go.", field="payload", limit="256 KiB", job="j")
    assert tell(error, as_json=False) == cls.exit_status >= 10
    assert capsys.readouterr().err.splitlines() == [
        f"{cls.code}: It did not go.",
        "  field:  payload",
        "  limit:  256 KiB",
        f"  remedy: {cls.remedy}",
    ]
    assert tell(error, as_json=True) == cls.exit_status
    assert json.loads(capsys.readouterr().err) == {
        "error": {
            "code": cls.code,
            "message": "It did not go.",
            "field": "payload",
            "limit": "256 KiB",
            "remedy": cls.remedy,
            "exit_status": cls.exit_status,
            "facts": {"job": "j"},
        }
    }


@pytest.mark.parametrize(
    ("arguments", "status", "code"),
    [
        (["jobs", "submit", "k", "--payload", "{"], 11, "PAYLOAD_INVALID"),
        (["jobs", "submit", "k", "--tag", ""], 11, "INVALID"),
        (["jobs", "submit", "k", "--policy", "hope"], 11, "INVALID"),
        (["jobs", "submit", "k", "--parent", NOBODY], 13, "NOT_FOUND"),
        (["jobs", "list", "--after", "x"], 11, "CURSOR_INVALID"),
        (["jobs", "show", NOBODY], 13, "NOT_FOUND"),
        (["jobs", "show", "nonsense"], 11, "INVALID"),
        (["jobs", "explain", NOBODY], 13, "NOT_FOUND"),
        (["jobs", "wait", NOBODY], 13, "NOT_FOUND"),
        (["jobs", "log", NOBODY], 13, "NOT_FOUND"),
        (["jobs", "cancel", NOBODY], 13, "NOT_FOUND"),
        (["jobs", "retry", NOBODY], 13, "NOT_FOUND"),
        (["jobs", "unblock", NOBODY], 13, "NOT_FOUND"),
        (["queues", "show", "q"], 13, "NOT_FOUND"),
        (["queues", "pause", ""], 11, "INVALID"),
        (["workers", "list", "--state", "asleep"], 11, "INVALID"),
        (["workers", "drain", "nobody", "--yes"], 13, "NOT_FOUND"),
        (["events", "list", "q"], 13, "NOT_FOUND"),
        (["events", "list", "q", "--after", "x"], 13, "NOT_FOUND"),
        (["events", "tail", "q#x"], 11, "INVALID"),
        (["jobs", "list", "--schema", "elsewhere"], 15, "SCHEMA_MISMATCH"),
        (["jobs", "list", "--url", "mysql://db"], 11, "INVALID"),
    ],
)
def test_a_refusal_ends_with_the_status_of_its_family(cli: Cli, arguments: list[str], status: int, code: str) -> None:
    """The same in words and in JSON, and nothing on stdout."""
    ran = cli(*arguments)
    assert (ran.status, ran.out) == (status, "")
    assert ran.err.startswith(f"{code}: ")
    assert "  remedy: " in ran.err
    ran = cli(*arguments, "--json")
    assert (ran.status, ran.out, ran.error["code"], ran.error["exit_status"]) == (status, "", code, status)


def test_a_database_that_is_away_is_told(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit status 14: the same command may succeed later."""
    monkeypatch.setattr("testigo.store.database.STORE", _hasty())
    ran = cli("jobs", "list", "--url", "postgresql://nobody@127.0.0.1:1/none")
    assert ran.status == AuthorityUnavailable.exit_status
    assert ran.err.startswith("AUTHORITY_UNAVAILABLE: ")


def test_a_refusal_of_the_database_is_told_in_its_own_words(cli: Cli, restricted_url: str) -> None:
    """A role without rights: no traceback, no statement, and where to look."""
    ran = cli("jobs", "list", "--url", restricted_url)
    assert ran.status == 15
    assert "permission denied" in ran.err
    assert "SELECT" not in ran.err
    assert "testigo doctor" in ran.err


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["jobs", "lst"], "Did you mean 'list'"),
        (["jobs", "list", "--lmit", "3"], "--lmit"),
        (["jobs", "list", "--limit", "0"], "--limit"),
        (["jobs", "list", "--state", "asleep"], "permanent_failure"),
        (["jobs", "show"], "JOB"),
        (["jobs", "cancel"], "--queue"),
        (["jobs", "cancel", NOBODY, "--queue", "q"], "not both"),
        (["jobs", "retry"], "--queue"),
        (["jobs", "unblock"], "--kind, --tag or --client"),
        (["migrate", "--check", "--sql"], "one of"),
        (["nonsense"], "nonsense"),
    ],
)
def test_a_misuse_is_told_with_status_2(cli: Cli, arguments: list[str], named: str) -> None:
    """By what is wrong; in JSON as an object as well."""
    ran = cli(*arguments)
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith("USAGE: ")
    assert named in ran.err
    ran = cli(*arguments, "--json")
    assert (ran.status, ran.error["code"], ran.error["exit_status"]) == (2, "USAGE", 2)
    assert named in ran.error["message"]


def test_a_misused_option_is_named(cli: Cli) -> None:
    """So that a program can say which one it was."""
    assert cli("jobs", "list", "--limit", "0", "--json").error["field"] == "limit"


@pytest.mark.parametrize("raised", [KeyboardInterrupt, typer.Abort])
def test_an_interrupt_is_no_traceback(raised: type[BaseException], monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it comes, the status is 130."""

    def interrupted(*_: object) -> None:
        raise raised

    monkeypatch.setattr("importlib.metadata.version", interrupted)
    assert run(["version"]) == 130


def test_a_setting_that_nobody_reads_is_told(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its name."""
    monkeypatch.setenv("TESTIGO_WORKER_SLOTZ", "3")
    ran = cli("config", "show")
    assert (ran.status, ran.err.partition(":")[0]) == (Invalid.exit_status, "SETTING_INVALID")
    assert "TESTIGO_WORKER_SLOTZ" in ran.err


def _hasty() -> object:
    from dataclasses import replace

    from testigo.settings import STORE

    return replace(STORE, tries=1)


@pytest.mark.parametrize(("package", "extra"), EXTRAS.items())
def test_what_an_extra_brings_is_told_with_it(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, package: str, extra: str
) -> None:
    """A command whose package is not here says what to install."""
    _lacks(monkeypatch, f"{package}.part")
    ran = cli("serve", "--json")
    told = json.loads(ran.err)["error"]
    assert (ran.status, told["code"]) == (2, "USAGE")
    assert told["message"] == f"This needs {package}, which is not here: pip install 'testigo[{extra}]'."


def test_what_no_extra_brings_stays_an_error(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module of the user's own, or one of ours, is no matter of what was installed."""
    for name in ("orders", "testigo.web"):
        _lacks(monkeypatch, name)
        with pytest.raises(ModuleNotFoundError, match=name):
            cli("serve")


def _lacks(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    """Let `serve` ask for a module that is not here."""

    def imports(*_given: object, **_named: object) -> None:
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)

    monkeypatch.setattr(serve, "serve_here", imports)
