"""`testigo migrate|version|config`: the installation itself, and the worker that would run here."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import psycopg
import pytest

from testigo.store.schema import EXPECTED_VERSION
from testigo.worker.lines import JsonLines
from tests.cli.conftest import Cli


def test_a_schema_is_checked_written_and_brought_up_to_date(cli: Cli, fresh_database: str) -> None:
    """--check says what is to do, with status 1; the SQL that is printed does the same by hand."""
    ran = cli("migrate", "--check", "--url", fresh_database)
    versions = [f"{number:04d}" for number in range(1, int(EXPECTED_VERSION) + 1)]
    assert (ran.status, ran.out) == (1, f"To apply: {', '.join(versions)}.\n")
    assert cli("migrate", "--url", fresh_database, "--json").json == {
        "schema": "testigo",
        "version": EXPECTED_VERSION,
        "applied": True,
        "versions": versions,
    }
    assert cli("migrate", "--check", "--url", fresh_database).out == "The schema is up to date.\n"
    by_hand = cli("migrate", "--sql", "--schema", "by_hand").out
    with psycopg.connect(fresh_database, autocommit=True) as connection:
        connection.execute(by_hand.encode())
    assert cli("jobs", "list", "--url", fresh_database, "--schema", "by_hand").status == 0


def test_the_version_is_told_without_a_database(cli: Cli) -> None:
    """It takes no URL to ask."""
    told = cli("version", "--json").json
    assert (told["schema"], set(told)) == (
        EXPECTED_VERSION,
        {"testigo", "schema", "python", "sqlalchemy", "psycopg", "system"},
    )
    assert cli("version").out.startswith("testigo     ")


def test_the_configuration_is_shown_without_its_secrets(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who named the URL, no password, and which settings differ from their defaults."""
    monkeypatch.delenv("TESTIGO_URL")
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "testigo.toml"
    file.write_text('url = "postgresql://me:hidden-word@db/work"\nschema = "s"\n[worker]\nslots = 3\n')
    ran = cli("config", "show")
    assert "hidden-word" not in ran.out
    lines = [line.split() for line in ran.out.splitlines()]
    assert ["by", str(file)] in lines
    assert ["slots", "3", "10"] in lines
    assert ["calls_max", "2"] in lines
    assert cli("config", "show", "--json").json["worker"]["slots"] == 3


def test_an_embedded_installation_needs_no_server(cli: Cli, tmp_path: Path) -> None:
    """The first command makes it; the doctor looks at it, and at its disk."""
    url = f"embedded:{tmp_path / 'here'}"
    job = cli("jobs", "submit", "work", "--url", url).out.strip()
    assert cli("jobs", "show", job, "--url", url, "--json").json["job"]["state"] == "ready"
    assert cli("migrate", "--check", "--url", url).status == 0
    found = cli("doctor", "--url", url, "--json").json["findings"]
    assert [finding["code"] for finding in found] == ["UNSERVED"]


def test_a_workers_log_can_be_lines_of_json() -> None:
    """With time, level, logger, text, and the traceback of an error."""
    try:
        raise ValueError("bad")
    except ValueError:
        record = logging.LogRecord("testigo.worker", logging.ERROR, "f", 1, "run %d", (3,), sys.exc_info())
    line = JsonLines().format(record)
    assert '"level": "error", "logger": "testigo.worker", "text": "run 3"' in line
    assert "ValueError: bad" in line
    assert "\n" not in line
