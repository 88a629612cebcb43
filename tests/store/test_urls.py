"""URLs: what they name, what is refused, and that the password in one is shown nowhere."""

from __future__ import annotations

import logging
import traceback
from dataclasses import replace
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from testigo.errors import AuthorityUnavailable, Invalid, SchemaMismatch
from testigo.settings import STORE
from testigo.store.database import AsyncDatabase, Database
from testigo.store.schema import check_migrations, migrate
from testigo.store.sql import Statement
from testigo.store.urls import embedded_directory, own_directory, server_url
from tests.store.day import live_a_day
from tests.store.roles import as_role

MARKER = "hunter2marker"


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg", "postgresql+asyncpg"])
def test_every_spelling_of_postgresql_is_reached_through_one_driver(scheme: str) -> None:
    """Sync and async callers use psycopg, whatever driver a URL was written for (decision record 0006)."""
    url = server_url(f"{scheme}://me:secret@host:1234/base?connect_timeout=3")
    assert url.render_as_string(hide_password=False) == (
        "postgresql+psycopg://me:secret@host:1234/base?connect_timeout=3"
    )


def test_an_embedded_url_names_a_directory() -> None:
    """`embedded:DIR` is that directory, and a server's URL none."""
    assert embedded_directory("embedded:/var/lib/x") == Path("/var/lib/x")
    assert embedded_directory("embedded:~/x") == Path.home() / "x"
    assert embedded_directory("postgresql://host/embedded:") is None


def test_an_installations_own_files_lie_with_the_embedded_server_or_in_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys and blobs are found without being told where, by whoever stands in the same project."""
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.chdir(tmp_path)
    assert own_directory("embedded:/var/lib/x") == Path("/var/lib/x")
    assert own_directory("embedded:") == own_directory("postgresql://host/base") == tmp_path / ".testigo"


UNREADABLE = [
    f"me:{MARKER}@host/base",
    f"mysql://me:{MARKER}@host/base",
    f"postgresql:/me:{MARKER}@host/base",
    f"postgresql://me:p@{MARKER}@host/base",
    f"postgresql://host:{MARKER}/base",
    f"{MARKER}://me@host/base",
    f"{MARKER}:",
    f"postgresql://me:{MARKER}@host/base%00",
    f"postgresql://host\0/base?password={MARKER}",
    f"postgresql://\ud800:{MARKER}@host/base",
    f"embedded:~{MARKER}/base",
    MARKER,
    "",
]


@pytest.mark.parametrize("url", UNREADABLE)
@pytest.mark.parametrize("door", [server_url, migrate, check_migrations, Database, AsyncDatabase])
def test_an_unreadable_url_is_refused_without_repeating_any_of_it(door: type, url: str) -> None:
    """What was meant as a URL may be a password in the wrong place, so a refusal shows none of it."""
    with pytest.raises(Invalid) as refused:
        door(url)
    assert refused.value.field == "url"
    assert MARKER not in _told(refused.value)


def test_credentials_among_the_parameters_are_kept_and_hidden() -> None:
    """A password may be given as a parameter; it is moved to where it is known for one, for every connection."""
    url = server_url(f"postgresql:///base?host=/run&user=me&password={MARKER}")
    assert MARKER not in repr(url)
    rendered = url.set(drivername="postgresql").render_as_string(hide_password=False)
    assert conninfo_to_dict(rendered) == {"host": "/run", "user": "me", "password": MARKER, "dbname": "base"}


def test_a_password_is_in_no_log_and_no_representation(database_url: str, caplog: pytest.LogCaptureFixture) -> None:
    """A whole day of commands, with every logger wide open, says nothing of the password."""
    caplog.set_level(logging.DEBUG)
    for name in ("sqlalchemy.engine", "sqlalchemy.pool", "alembic", "psycopg", "testigo"):
        caplog.set_level(logging.DEBUG, name)
    with Database(as_role(database_url, "postgres", MARKER)) as db:
        db.migrate()
        live_a_day(db, "q")
        engine = db._open()
        assert MARKER not in repr([db, engine, engine.url, engine.pool, db._waker])
    assert "sqlalchemy.engine.Engine" in {record.name for record in caplog.records}
    assert MARKER not in caplog.text


def test_a_password_is_in_no_error(
    database_url: str, server_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Neither what the database says nor what is said of it repeats the password, or a parameter."""
    monkeypatch.setattr("testigo.store.database.STORE", replace(STORE, tries=1))
    nowhere = f"postgresql://me:{MARKER}@/base?host={tmp_path}"
    closed_port = f"postgresql://me:{MARKER}@127.0.0.1:1/base"
    for url in (nowhere, closed_port):
        with Database(url) as db, pytest.raises(AuthorityUnavailable) as unavailable:
            db.run(lambda c: None)
        assert MARKER not in _told(unavailable.value)
    with Database(as_role(server_url, "postgres", MARKER)) as db, pytest.raises(SchemaMismatch) as mismatch:
        db.run(lambda c: None)
    assert MARKER not in _told(mismatch.value)
    with Database(as_role(database_url, "postgres", MARKER)) as db, pytest.raises(DBAPIError) as failed:
        db.run(_fail, MARKER)
    assert MARKER not in _told(failed.value)


def _fail(c: Connection, parameter: str) -> None:
    Statement("SELECT CAST(:parameter AS text), 1 / 0").rows(c, parameter=parameter)


def _told(error: BaseException) -> str:
    """All that a traceback shows, causes included."""
    return "".join(traceback.format_exception(error))
