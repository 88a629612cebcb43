"""`testigo backup|restore`: one command each way, which says what it did and what it could not (spec D-22)."""

from __future__ import annotations

import stat
import tarfile
from pathlib import Path

import psycopg
import pytest

from testigo.authority.read import jobs
from testigo.evidence.model import NewArtifact
from testigo.rules.identity import content_digest
from testigo.store.blobs import BlobStore
from testigo.store.database import Database
from tests.cli.conftest import Cli
from tests.cli.process import piped
from tests.evidence.store.kit import found, going, sealed
from tests.worker.kit import await_that
from tests.world import World


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the installation has its blobs, and backups lie."""
    monkeypatch.setenv("TESTIGO_BLOBS", str(tmp_path / "blobs"))
    return tmp_path


def test_an_installation_is_backed_up_and_restored_elsewhere(
    cli: Cli, world: World, fresh_database: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its blobs and with every identity as it was; the audit of either tells of it (spec D-22)."""
    (job,) = world.submit(kind="mail")
    blob = BlobStore(folder / "blobs").put(b"x" * 2048)
    target = folder / "monday"
    made = cli("backup", str(target), "--json").json
    assert (made["blobs"], made["blob_bytes"], made["missing"], made["keys"]) == (1, 2048, [], False)
    assert cli("restore", str(target), "--check", "--json").json == made
    assert f"{target} is whole: " in cli("restore", str(target), "--check").out
    monkeypatch.setenv("TESTIGO_BLOBS", str(folder / "other"))
    ran = cli("restore", str(target), "--url", fresh_database)
    first, second, third = ran.out.splitlines()
    assert (ran.status, f" and 1 blobs (2 KiB), as of {made['taken_at']}." in first) == (0, True)
    assert (second, third[:13]) == ("Each table was read back and is what was backed up.", "Put the keys ")
    with Database(fresh_database) as db:
        assert [each.id for each in db.run(jobs, limit=10).items] == [job]
    assert BlobStore(folder / "other").read(blob.digest) == b"x" * 2048
    told = "SELECT what, objects FROM testigo.audit ORDER BY n"
    assert [tuple(row) for row in world.query(told)] == [
        ("installation.backup", [f"installation:{made['installation']}"])
    ]
    assert cli("restore", str(target), "--url", fresh_database).status == 12


def test_a_backup_may_be_one_file(
    cli: Cli, world: World, fresh_database: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which is readable by its owner only, written whole, and never over another."""
    (job,) = world.submit(kind="mail")
    blob = BlobStore(folder / "blobs").put(b"x")
    file = folder / "backups" / "monday.tar"
    made = cli("backup", str(file), "--json").json
    assert ([*file.parent.iterdir()], stat.S_IMODE(file.stat().st_mode)) == ([file], 0o600)
    assert cli("backup", str(file)).status == 11
    assert cli("restore", str(file), "--check", "--json").json == made
    monkeypatch.setenv("TESTIGO_BLOBS", str(folder / "other"))
    assert cli("restore", str(file), "--url", fresh_database).status == 0
    with Database(fresh_database) as db:
        assert [each.id for each in db.run(jobs, limit=10).items] == [job]
    assert BlobStore(folder / "other").read(blob.digest) == b"x"


@pytest.mark.parametrize("name", ["monday", "monday.tar"])
def test_a_kill_leaves_no_backup_that_is_not_whole(
    cli: Cli, world: World, database_url: str, folder: Path, name: str
) -> None:
    """It waits for a migration when it is killed; the next one takes no notice of what is left."""
    world.submit(kind="mail")
    waiting = (
        "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database "
        "WHERE NOT l.granted AND d.datname = current_database()"
    )
    with psycopg.connect(database_url) as migrating:
        migrating.execute("LOCK TABLE testigo.job IN ACCESS EXCLUSIVE MODE")
        process = piped("backup", str(folder / name), url=database_url)
        await_that(lambda: migrating.execute(waiting).fetchall() == [(1,)])
        process.kill()
        process.communicate()
    assert not (folder / name).exists()
    assert cli("backup", str(folder / name)).status == 0
    assert cli("restore", str(folder / name), "--check").status == 0


def test_a_file_that_is_no_backup_is_unpacked_nowhere(cli: Cli, folder: Path) -> None:
    """One that is cut, and one with a name that leads out of it."""
    file = folder / "monday.tar"
    file.write_bytes(b"x" * 2000)
    assert cli("restore", str(file), "--check", "--json").error["code"] == "BACKUP_INVALID"
    with tarfile.open(file, "w") as tar:
        tar.add(__file__, arcname="../out")
    assert cli("restore", str(file), "--check", "--json").error["code"] == "BACKUP_INVALID"
    assert not (folder / "out").exists()


def test_what_could_not_be_backed_up_is_said(cli: Cli, world: World, folder: Path) -> None:
    """All else is there, and the exit status tells."""
    run = going(world)
    lost = [content_digest(name) for name in ("body", "envelope")]
    run.publish(
        sealed(found("a"), artifacts=(NewArtifact("a", "text/plain", 4, lost[0], content_digest("raw"), lost[1]),))
    )
    ran = cli("backup", str(folder / "monday"))
    assert (ran.status, {line.split()[3].rstrip(",") for line in ran.out.splitlines()[1:3]}) == (1, set(lost))
    assert "The keys of the installation are not in it" in ran.out
    assert cli("restore", str(folder / "monday"), "--check").status == 0


def test_what_is_no_place_and_no_backup_is_refused(cli: Cli, folder: Path) -> None:
    """A folder that holds something, one that is not there."""
    assert cli("backup", str(folder / "a")).status == 0
    assert cli("backup", str(folder / "a")).status == 11
    ran = cli("restore", str(folder / "b"), "--json")
    assert (ran.status, ran.error["code"]) == (15, "BACKUP_INVALID")
