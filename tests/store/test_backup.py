"""A backup is of one moment, whole or absent; what is restored is what was backed up, or nothing is (spec D-22)."""

from __future__ import annotations

import gzip
import json
import shutil
import stat
import uuid
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from testigo.authority.read import jobs
from testigo.errors import BackupInvalid, Broken, Conflict, Invalid, SchemaMismatch
from testigo.evidence.findings import finding
from testigo.evidence.model import FindingId, NewArtifact
from testigo.evidence.review import decide
from testigo.rules.documents import encode
from testigo.rules.evidence.review import Decision
from testigo.rules.identity import content_digest
from testigo.store.backup import Manifest, TableCopy, check, restore, save
from testigo.store.backup.tables import Table, connected, tables
from testigo.store.blobs import BlobStore
from testigo.store.database import Database
from testigo.store.schema import migrate
from tests.evidence.store.kit import found, going, one, published, sealed
from tests.services import create_database, drop_database
from tests.world import World

SCHEMA = "testigo"


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    """The installation's blobs."""
    return BlobStore(tmp_path / "blobs")


@pytest.fixture
def finding_id(world: World, blobs: BlobStore) -> FindingId:
    """One finding that somebody decided about, in an installation in which several things have happened."""
    world.submit(
        kind="mail", key="order-881", client="shop", payload=encode({"text": "tab\t, \\N, line\nü €"}), tags=("eu",)
    )
    body, envelope = blobs.put(b"sbom").digest, blobs.put(b"envelope").digest
    artifact = NewArtifact("sbom.json", "application/json", 4, body, content_digest("raw"), envelope)
    run = going(world)
    run.publish(sealed(found("a", message="back\\slash\tand\nline"), artifacts=(artifact,)))
    published(world, found("a"))
    chosen = one(world, run.id, "a").id
    world.db.run(decide, chosen, Decision.IGNORE, expected_revision=1, reason="vendored", action=world.action())
    return chosen


@pytest.fixture
def elsewhere(fresh_database: str) -> str:
    """A database in which nothing is."""
    return fresh_database


def rows(url: str) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table, as it is written as text."""
    with connected(url, read_only=True) as c:
        return {
            name: sorted(c.execute(sql.SQL("SELECT CAST(t AS text) FROM {} t").format(table.place)).fetchall())
            for name, table in tables(c, SCHEMA).items()
        }


def test_every_row_and_blob_is_restored_as_it_was(
    database_url: str, elsewhere: str, blobs: BlobStore, finding_id: FindingId, tmp_path: Path
) -> None:
    """Of every table: with its ids, revisions, times and texts, and the installation's own id."""
    before = rows(database_url)
    manifest = save(database_url, SCHEMA, blobs, tmp_path / "backup")
    other = BlobStore(tmp_path / "other")
    assert restore(tmp_path / "backup", elsewhere, SCHEMA, other) == manifest == check(tmp_path / "backup")
    assert rows(elsewhere) == before
    assert manifest.rows == sum(map(len, before.values())) - len(before["schema_version"])
    assert f"(t,{manifest.installation}," in str(before["installation"])
    assert list(other.digests()) == list(blobs.digests())
    assert (manifest.blobs, manifest.missing, manifest.corrupt) == (2, (), ())


def test_a_restored_installation_goes_on(
    database_url: str, elsewhere: str, blobs: BlobStore, finding_id: FindingId, world: World, tmp_path: Path
) -> None:
    """Reviews are where they were, and the next decision is made at the revision that was seen before."""
    save(database_url, SCHEMA, blobs, tmp_path / "backup")
    restore(tmp_path / "backup", elsewhere, SCHEMA, blobs)
    with Database(elsewhere) as db:
        detail = db.run(finding, finding_id)
        assert (detail.view.review.reason, detail.view.review.revision) == ("vendored", 2)
        db.run(decide, finding_id, Decision.OPEN, expected_revision=2, action=world.action())
        assert {job.id for job in db.run(jobs, limit=100).items} == {
            job.id for job in world.db.run(jobs, limit=100).items
        }


def test_a_backup_is_of_one_moment(
    database_url: str, elsewhere: str, blobs: BlobStore, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is written while it is taken is in none of its tables, and nobody waits for it."""
    from testigo.store.backup import saving

    world.submit(kind="mail")
    before = rows(database_url)
    copy = saving._copy

    def copied(c: psycopg.Connection, table: Table, folder: Path) -> TableCopy:
        world.submit(kind="mail")
        return copy(c, table, folder)

    monkeypatch.setattr(saving, "_copy", copied)
    save(database_url, SCHEMA, blobs, tmp_path / "backup")
    restore(tmp_path / "backup", elsewhere, SCHEMA, blobs)
    assert rows(elsewhere) == before
    assert len(rows(database_url)["job"]) > len(before["job"])


@pytest.mark.needs_postgres15
def test_a_backup_is_restored_on_another_version_of_the_server(
    database_url: str, postgres15_url: str, blobs: BlobStore, finding_id: FindingId, tmp_path: Path
) -> None:
    """And backed up there again it is the same, digest by digest."""
    first = save(database_url, SCHEMA, blobs, tmp_path / "first")
    name = f"test_{uuid.uuid4().hex}"
    url = create_database(postgres15_url, name)
    try:
        restore(tmp_path / "first", url, SCHEMA, blobs)
        second = save(url, SCHEMA, blobs, tmp_path / "second")
    finally:
        drop_database(postgres15_url, name)
    assert first.tables == second.tables
    assert first.server.partition(".")[0] != second.server.partition(".")[0]


def test_a_schema_of_another_name_takes_it(
    database_url: str, blobs: BlobStore, finding_id: FindingId, tmp_path: Path
) -> None:
    """Beside the installation that it is of, for example to look at it."""
    first = save(database_url, SCHEMA, blobs, tmp_path / "first")
    restore(tmp_path / "first", database_url, "before", blobs)
    assert save(database_url, "before", blobs, tmp_path / "second").tables == first.tables


def test_nothing_is_restored_over_an_installation(
    database_url: str, elsewhere: str, blobs: BlobStore, finding_id: FindingId, tmp_path: Path
) -> None:
    """Twice neither; into one that was only migrated, it is."""
    save(database_url, SCHEMA, blobs, tmp_path / "backup")
    before = rows(database_url)
    with pytest.raises(Conflict, match="holds an installation already"):
        restore(tmp_path / "backup", database_url, SCHEMA, blobs)
    assert rows(database_url) == before
    migrate(elsewhere)
    restore(tmp_path / "backup", elsewhere, SCHEMA, blobs)
    with pytest.raises(Conflict):
        restore(tmp_path / "backup", elsewhere, SCHEMA, blobs)


@pytest.mark.parametrize("version", ["0001", "9999"])
def test_a_restore_that_is_refused_has_changed_nothing(
    database_url: str, blobs: BlobStore, finding_id: FindingId, tmp_path: Path, version: str
) -> None:
    """Neither the schema, which another release may serve still, nor the blobs."""
    save(database_url, SCHEMA, blobs, tmp_path / "backup")
    with psycopg.connect(database_url, autocommit=True) as c:
        c.execute("UPDATE testigo.schema_version SET version_num = %s", (version,))
    before = rows(database_url)
    other = BlobStore(tmp_path / "other")
    with pytest.raises(Conflict, match="holds an installation already"):
        restore(tmp_path / "backup", database_url, SCHEMA, other)
    assert rows(database_url) == before
    assert not (tmp_path / "other").exists()


def test_a_schema_with_tables_of_others_is_left_alone(
    database_url: str, elsewhere: str, blobs: BlobStore, tmp_path: Path
) -> None:
    """Nothing is made among them."""
    save(database_url, SCHEMA, blobs, tmp_path / "backup")
    with psycopg.connect(elsewhere, autocommit=True) as c:
        c.execute("CREATE TABLE public.theirs (id integer PRIMARY KEY)")
    with pytest.raises(Conflict, match="theirs"):
        restore(tmp_path / "backup", elsewhere, "public", blobs)
    with connected(elsewhere, read_only=True) as c:
        assert tables(c, "public").keys() == {"theirs"}


def test_a_folder_that_holds_something_is_left_alone(database_url: str, blobs: BlobStore, tmp_path: Path) -> None:
    """A backup is never mixed with another; an empty folder is as good as none. It is for its owner alone."""
    target = tmp_path / "backup"
    target.mkdir()
    save(database_url, SCHEMA, blobs, target)
    assert stat.S_IMODE(target.stat().st_mode) == 0o700
    before = sorted(tmp_path.rglob("*"))
    for place in (target, target / "manifest.json"):
        with pytest.raises(Invalid):
            save(database_url, SCHEMA, blobs, place)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_backup_that_ends_early_leaves_nothing(
    database_url: str, elsewhere: str, blobs: BlobStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever ends it: a schema that is not there, a disk that is full."""
    from testigo.store.backup import saving

    with pytest.raises(SchemaMismatch):
        save(elsewhere, SCHEMA, blobs, tmp_path / "backup")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(saving, "_write", full)
    with pytest.raises(Broken, match="No space left"):
        save(database_url, SCHEMA, blobs, tmp_path / "backup")
    assert list(tmp_path.iterdir()) == []


def test_blobs_that_cannot_be_copied_are_told(
    database_url: str, blobs: BlobStore, finding_id: FindingId, tmp_path: Path
) -> None:
    """One that a row names and that is not there; one whose bytes have changed."""
    first, second = blobs.digests()
    blobs.delete(first)
    (tmp_path / "blobs" / "sha256" / second[7:9] / second[9:]).write_bytes(b"other")
    manifest = save(database_url, SCHEMA, blobs, tmp_path / "backup")
    assert (manifest.blobs, manifest.missing, manifest.corrupt) == (0, (first,), (second,))
    assert check(tmp_path / "backup") == manifest


def _cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-9])


def _other_rows(file: Path) -> None:
    file.write_bytes(gzip.compress(gzip.decompress(file.read_bytes()).replace(b"vendored", b"Vendored")))


def _other_version(file: Path) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | {"v": 2}))


def _without_tables(file: Path) -> None:
    file.write_text(
        json.dumps({name: value for name, value in json.loads(file.read_text()).items() if name != "tables"})
    )


def _with_a_path(file: Path) -> None:
    told = json.loads(file.read_text())
    told["tables"][0]["name"] = "../../x"
    file.write_text(json.dumps(told))


def _missing(file: Path) -> None:
    file.unlink()


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("manifest.json", _missing),
        ("manifest.json", _cut),
        ("manifest.json", _other_version),
        ("manifest.json", _without_tables),
        ("manifest.json", _with_a_path),
        ("tables/finding.copy.gz", _missing),
        ("tables/finding.copy.gz", _cut),
        ("tables/finding.copy.gz", _other_rows),
        ("blobs/sha256/*/*", _missing),
        ("blobs/sha256/*/*", _cut),
    ],
)
def test_a_backup_that_has_changed_restores_nothing(
    database_url: str,
    elsewhere: str,
    blobs: BlobStore,
    finding_id: FindingId,
    tmp_path: Path,
    name: str,
    change: Callable[[Path], None],
) -> None:
    """It is found out before anything is made."""
    save(database_url, SCHEMA, blobs, tmp_path / "backup")
    change(next((tmp_path / "backup").glob(name)))
    for attempt in (check, lambda source: restore(source, elsewhere, SCHEMA, BlobStore(tmp_path / "other"))):
        with pytest.raises(BackupInvalid):
            attempt(tmp_path / "backup")
    with connected(elsewhere, read_only=True) as c:
        assert tables(c, SCHEMA) == {}
    assert not (tmp_path / "other").exists()


def test_a_backup_of_another_schema_version_is_refused(
    database_url: str, elsewhere: str, blobs: BlobStore, tmp_path: Path
) -> None:
    """With the release named that restores it."""
    save(database_url, SCHEMA, blobs, tmp_path / "backup")
    file = tmp_path / "backup" / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"schema_version": "0001", "testigo": "0.1"}))
    with pytest.raises(SchemaMismatch) as caught:
        restore(tmp_path / "backup", elsewhere, SCHEMA, blobs)
    assert "testigo 0.1" in str(caught.value.remedy)


def test_what_is_not_restored_as_it_was_is_not_kept(
    database_url: str, elsewhere: str, blobs: BlobStore, finding_id: FindingId, tmp_path: Path
) -> None:
    """A server that changes rows on their way in is found out before the commit."""
    save(database_url, SCHEMA, blobs, tmp_path / "backup")
    migrate(elsewhere)
    with psycopg.connect(elsewhere, autocommit=True) as c:
        c.execute(
            "CREATE FUNCTION other() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.reason := 'x'; RETURN NEW; END $$"
        )
        c.execute("CREATE TRIGGER other BEFORE INSERT ON testigo.decision FOR EACH ROW EXECUTE FUNCTION other()")
    empty = rows(elsewhere)
    with pytest.raises(BackupInvalid, match="decision is not restored as it was"):
        restore(tmp_path / "backup", elsewhere, SCHEMA, blobs)
    assert rows(elsewhere) == empty


def test_every_table_has_a_key_that_orders_it(database_url: str) -> None:
    """Which a backup needs: one digest of its rows, wherever it lies."""
    with connected(database_url, read_only=True) as c:
        assert [name for name, table in tables(c, SCHEMA).items() if not table.key] == []


def test_a_manifest_is_read_as_it_was_written(database_url: str, blobs: BlobStore, tmp_path: Path) -> None:
    """A folder that was moved is the same backup."""
    manifest = save(database_url, SCHEMA, blobs, tmp_path / "backup")
    shutil.move(tmp_path / "backup", tmp_path / "moved")
    assert Manifest.read(tmp_path / "moved") == manifest
