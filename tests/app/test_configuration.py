"""Where an App connects and how a worker runs: who is asked first, and what is refused (issue *App*)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from testigo.configuration import installation, retention_settings, web_settings, worker_settings
from testigo.errors import SettingInvalid
from testigo.settings import RETENTION, WORKER


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project's folder, the working folder two levels below it, and an environment that says nothing."""
    for name in ("TESTIGO_URL", "TESTIGO_SCHEMA"):
        monkeypatch.delenv(name, raising=False)
    below = tmp_path / "source" / "package"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    return tmp_path


def test_nothing_said_is_the_embedded_server_of_the_project() -> None:
    """Without argument, variable and file it is `embedded:` and the schema `testigo`."""
    found = installation()
    assert (found.url, found.schema, found.source) == ("embedded:", "testigo", "the default")


def test_the_argument_counts_before_the_environment_and_that_before_the_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of the three is asked only where the one before says nothing."""
    file = folder / "testigo.toml"
    file.write_text('url = "postgresql://file/x"\nschema = "of_file"\n')
    assert (installation().url, installation().schema) == ("postgresql://file/x", "of_file")
    assert installation().source == str(file)
    monkeypatch.setenv("TESTIGO_URL", "postgresql://variable/x")
    monkeypatch.setenv("TESTIGO_SCHEMA", "of_variable")
    assert (installation().url, installation().schema) == ("postgresql://variable/x", "of_variable")
    given = installation("postgresql://argument/x", "of_argument")
    assert (given.url, given.schema, given.source) == ("postgresql://argument/x", "of_argument", "the argument")


def test_the_nearest_file_that_says_something_counts(folder: Path) -> None:
    """A `pyproject.toml` without our table is passed over; `testigo.toml` counts before one with it."""
    (folder / "pyproject.toml").write_text('[tool.testigo]\nschema = "outer"\n')
    (folder / "source" / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert installation().schema == "outer"
    (folder / "testigo.toml").write_text('schema = "own"\n')
    assert installation().schema == "own"
    (folder / "source" / "pyproject.toml").write_text('[tool.testigo]\nschema = "inner"\n')
    assert installation().schema == "inner"


def test_a_directory_that_a_file_names_is_found_from_where_the_file_lies(folder: Path) -> None:
    """Whoever works in a folder below meets the same server."""
    (folder / "testigo.toml").write_text('url = "embedded:data/here"\n')
    assert installation().url == f"embedded:{folder}/data/here"
    (folder / "testigo.toml").write_text('url = "embedded:/elsewhere"\n')
    assert installation().url == "embedded:/elsewhere"
    (folder / "testigo.toml").write_text('url = "embedded:"\n')
    assert installation().url == "embedded:"


def test_the_settings_of_a_worker_come_from_the_same_places(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was given by name counts before a variable, a variable before the file, the file before the default."""
    assert worker_settings() == WORKER
    (folder / "pyproject.toml").write_text(
        "[tool.testigo.worker]\nslots = 3\ndrain_seconds = 1\nkill_grace_seconds = 0\n"
    )
    monkeypatch.setenv("TESTIGO_WORKER_DRAIN_SECONDS", "2.5")
    monkeypatch.setenv("TESTIGO_WORKER_CALLS_MAX", "4")
    found = worker_settings({"calls_max": 5, "runners_max": None})
    assert (found.slots, found.drain_seconds, found.kill_grace_seconds, found.calls_max) == (3, 2.5, 0.0, 5)
    assert found.runners_max == WORKER.runners_max


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("ulr = 'postgresql://x/y'", "ulr"),
        ("url = 5", "url"),
        ("worker = 5", "worker"),
        ("[worker]\nslotz = 5", "worker.slotz"),
        ("[worker]\nslots = 0", "worker.slots"),
        ("[worker]\nslots = 2.0", "worker.slots"),
        ("[worker]\nslots = true", "worker.slots"),
        ("[worker]\nslots = '2'", "worker.slots"),
        ("[worker]\nbeats_per_term = 1", "worker.beats_per_term"),
        ("[worker]\nrunner_start_seconds = 0", "worker.runner_start_seconds"),
        ("[worker]\nnote_seconds = nan", "worker.note_seconds"),
    ],
)
def test_a_file_that_says_what_nobody_reads_is_refused(folder: Path, text: str, field: str) -> None:
    """An unknown or unfit setting is named together with its file (SETTING_INVALID)."""
    file = folder / "testigo.toml"
    file.write_text(text)
    with pytest.raises(SettingInvalid) as refused:
        worker_settings()
    assert refused.value.field == f"{file}: {field}"


def test_a_file_that_cannot_be_read_is_refused(folder: Path) -> None:
    """What is no TOML, or a table where there is none, says nothing that could be followed."""
    for name, text in (("testigo.toml", "url ="), ("testigo.toml", "\xff"), ("pyproject.toml", "tool.testigo = 1")):
        (folder / name).write_text(text, encoding="latin-1")
        with pytest.raises(SettingInvalid) as refused:
            installation()
        assert str(refused.value.field).startswith(str(folder / name))
        (folder / name).unlink()


@pytest.mark.parametrize(("name", "text"), [("SLOTZ", "1"), ("SLOTS", "many"), ("DRAIN_SECONDS", "inf")])
def test_a_variable_that_says_what_nobody_reads_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    """Variables of the worker are held to the same (SETTING_INVALID)."""
    monkeypatch.setenv(f"TESTIGO_WORKER_{name}", text)
    with pytest.raises(SettingInvalid) as refused:
        worker_settings()
    assert refused.value.field == f"TESTIGO_WORKER_{name}"


def test_a_setting_that_was_given_by_name_is_held_to_the_same() -> None:
    """So that the command line needs no checks of its own (SETTING_INVALID)."""
    with pytest.raises(SettingInvalid) as refused:
        worker_settings({"runners_max": 0})
    assert refused.value.field == "worker.runners_max"


def test_a_password_is_in_no_repr() -> None:
    """What an installation is called in a log or a traceback holds no URL."""
    assert "secret" not in repr(installation("postgresql://me:secret@host/x"))


def test_how_long_things_are_kept_is_set_in_days(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """By a table and variables of its own, at least a day and at most some 27 years."""
    (folder / "testigo.toml").write_text("[retention]\njobs_days = 90\nevents_days = 10000\n")
    monkeypatch.setenv("TESTIGO_RETENTION_JOBS_DAYS", "1")
    assert retention_settings() == replace(RETENTION, jobs_days=1, events_days=10_000)
    for text in ("0", "10001", "1.5", "x"):
        monkeypatch.setenv("TESTIGO_RETENTION_JOBS_DAYS", text)
        with pytest.raises(SettingInvalid) as refused:
            retention_settings()
        assert refused.value.field == "TESTIGO_RETENTION_JOBS_DAYS"


def test_a_server_is_set_as_a_worker_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """By its own table and variables; what is text stays text, and no secret is in what is shown of it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "testigo.toml").write_text('[web]\nenvironment = "staging"\nstreams_max = 7\n')
    monkeypatch.setenv("TESTIGO_WEB_OIDC_CLIENT_ID", "12345")
    monkeypatch.setenv("TESTIGO_WEB_OIDC_CLIENT_SECRET", "hidden-word")
    found = web_settings({"read_seconds": 2.5})
    assert (found.environment, found.streams_max, found.read_seconds) == ("staging", 7, 2.5)
    assert (found.oidc_client_id, found.oidc_client_secret) == ("12345", "hidden-word")
    assert "hidden-word" not in repr(found)


@pytest.mark.parametrize(
    "given",
    [
        {"public_url": "ops.example.org"},
        {"public_url": "https://"},
        {"public_url": "https://ops.example.org/?a=b"},
        {"public_url": "https://[ops"},
        {"public_url": 7},
        {"oidc_issuer": "login.example.org"},
        {"oidc_issuer": "https:/login.example.org"},
        {"oidc_issuer": "https://login.example.org?a=b"},
        {"streams_max": 0},
        {"signal_seconds": "often"},
        {"nothing": 1},
    ],
)
def test_a_server_is_not_set_to_what_cannot_be(given: dict[str, object]) -> None:
    """It is refused by its name."""
    with pytest.raises(SettingInvalid) as refused:
        web_settings(given)
    assert str(refused.value.field).startswith("web.")
