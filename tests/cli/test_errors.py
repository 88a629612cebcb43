"""Every class of error that a command can meet is met by one: told by its code, with what to do, and its status."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg
import pytest

from testigo import errors
from testigo.errors import Error
from testigo.evidence.model import NewArtifact
from testigo.rules.identity import content_digest
from testigo.rules.outcomes import Fail, Succeed
from testigo.settings import LIMITS, STORE
from testigo.store.blobs import BlobStore
from tests.cli.conftest import Cli
from tests.evidence.store.kit import found, going, one, published, sealed
from tests.world import World

CLASSES = [getattr(errors, name) for name in errors.__all__ if name != "Error"]
NOBODY = "01a22e11-db65-7376-953b-9c503645fae8"

ELSEWHERE: dict[type[Error], str] = {
    errors.Missing: "a family: one of its classes is raised",
    errors.Denied: "a family: one of its classes is raised",
    errors.Unfulfilled: "a family: one of its classes is raised",
    errors.Busy: "the server has no room, or a pool no connection: guarantees/test_an_outage_is_waited_out",
    errors.SessionBusy: "of a worker, who says so and waits until its name is free",
    errors.Unauthenticated: "of the panel and the API: whoever has the database needs no login",
    errors.Forbidden: "of the panel and the API, as the last",
    errors.TooManyRequests: "of the panel and the API, as the last",
    errors.RevisionRequired: "of the API: a command sends the revision that it has read itself",
    errors.ActionIdCollision: "of an application that names its own actions: each command is a new one",
    errors.ReceiptExpired: "of an application that repeats what is past: each command is new",
    errors.InHandler: "of a handler",
    errors.ConnectionUnsupported: "of an application's own connection",
    errors.LeaseLost: "of whoever runs a job",
    errors.EpochStale: "of whoever runs a job",
    errors.SessionReplaced: "of a worker, who ends by it",
    errors.ProtocolBroken: "between a worker's own processes",
    errors.EvidenceInvalid: "of an analysis, which ends incomplete by it and tells why",
    errors.ManifestInvalid: "of what publishes an analysis, as the last",
    errors.PageInvalid: "of what publishes an analysis, as the last",
    errors.ScanEvidenceConflict: "of what publishes an analysis, as the last",
    errors.WrongPublisher: "of what publishes an analysis, as the last",
    errors.StoragePressure: "of an analyser's server, told to the analysis",
}
"""Classes that no command raises, and who meets them."""


@dataclass(frozen=True, slots=True)
class Scene:
    """An installation, and what a test may do to it for as long as the command takes."""

    cli: Cli
    world: World
    url: str
    folder: Path
    set: Callable[[str, str], None]
    patch: Callable[[str, object], None]
    meanwhile: ExitStack


Made = Callable[[Scene], list[str]]
MADE: dict[type[Error], Made] = {}


def raises(cls: type[Error]) -> Callable[[Made], Made]:
    """What makes a command raise this class, and the command."""

    def kept(made: Made) -> Made:
        MADE[cls] = made
        return made

    return kept


@pytest.fixture
def scene(
    cli: Cli, world: World, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Scene]:
    """The test's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TESTIGO_BLOBS", str(tmp_path / "blobs"))
    monkeypatch.setenv("TESTIGO_KEYS", str(tmp_path / "keys"))
    with ExitStack() as meanwhile:
        yield Scene(cli, world, database_url, tmp_path, monkeypatch.setenv, monkeypatch.setattr, meanwhile)


def test_every_class_is_met_or_said_to_be_met_elsewhere() -> None:
    """One that is added has to say where (issue *The first hour*)."""
    assert MADE.keys() | ELSEWHERE.keys() == set(CLASSES)
    assert not MADE.keys() & ELSEWHERE.keys()


@pytest.mark.parametrize("cls", MADE, ids=lambda cls: cls.code)
def test_a_command_meets_it_and_says_what_to_do(cls: type[Error], scene: Scene) -> None:
    """On stderr alone, with the status of its family."""
    ran = scene.cli(*MADE[cls](scene), "--json")
    error = json.loads(ran.err)["error"]
    assert (error["code"], error["exit_status"], ran.status) == (cls.code, cls.exit_status, cls.exit_status)
    assert error["message"]
    assert error["remedy"]


@raises(errors.Invalid)
def _invalid(scene: Scene) -> list[str]:
    return ["jobs", "show", "nonsense"]


@raises(errors.PayloadInvalid)
def _payload_invalid(scene: Scene) -> list[str]:
    return ["jobs", "submit", "k", "--payload", "{"]


@raises(errors.PayloadTooLarge)
def _payload_too_large(scene: Scene) -> list[str]:
    (scene.folder / "large.json").write_text(json.dumps("x" * LIMITS.inline_bytes_max))
    return ["jobs", "submit", "k", "--payload", "@large.json"]


@raises(errors.CursorInvalid)
def _cursor_invalid(scene: Scene) -> list[str]:
    return ["jobs", "list", "--after", "x"]


@raises(errors.SettingInvalid)
def _setting_invalid(scene: Scene) -> list[str]:
    scene.set("TESTIGO_WORKER_SLOTZ", "3")
    return ["config", "show"]


@raises(errors.ArtifactInvalid)
def _artifact_invalid(scene: Scene) -> list[str]:
    artifact, place = _artifact(scene)
    place.write_bytes(b"longer than it was")
    return ["artifacts", "get", artifact, "--output", "out"]


@raises(errors.BlobCorrupt)
def _blob_corrupt(scene: Scene) -> list[str]:
    artifact, place = _artifact(scene)
    place.write_bytes(b"{]")
    return ["artifacts", "get", artifact, "--output", "out"]


@raises(errors.BlobsUnusable)
def _blobs_unusable(scene: Scene) -> list[str]:
    artifact, _ = _artifact(scene)
    (scene.folder / "file").write_text("")
    scene.set("TESTIGO_BLOBS", str(scene.folder / "file"))
    return ["artifacts", "get", artifact, "--output", "out"]


@raises(errors.KeysUnusable)
def _keys_unusable(scene: Scene) -> list[str]:
    artifact, _ = _artifact(scene)
    return ["artifacts", "verify", artifact]


@raises(errors.BackupInvalid)
def _backup_invalid(scene: Scene) -> list[str]:
    (scene.folder / "monday").mkdir()
    return ["restore", "monday", "--check"]


@raises(errors.Conflict)
def _conflict(scene: Scene) -> list[str]:
    (scene.folder / "README.md").write_text("mine")
    return ["init"]


@raises(errors.KeyConflict)
def _key_conflict(scene: Scene) -> list[str]:
    scene.cli("jobs", "submit", "mail", "--key", "order-17")
    return ["jobs", "submit", "mail", "--key", "order-17", "--payload", "18"]


@raises(errors.StateConflict)
def _state_conflict(scene: Scene) -> list[str]:
    return ["jobs", "unblock", *scene.world.submit()]


@raises(errors.Terminal)
def _terminal(scene: Scene) -> list[str]:
    (job,) = scene.world.submit()
    worker = scene.world.worker()
    worker.settle((worker.take(), Succeed()))
    return ["jobs", "unblock", job]


@raises(errors.RevisionMismatch)
def _revision_mismatch(scene: Scene) -> list[str]:
    published(scene.world, found("a"))
    return ["gate", "set", "shop", "--fail-on", "high", "--revision", "7"]


@raises(errors.CollectionChanged)
def _collection_changed(scene: Scene) -> list[str]:
    analysis = published(scene.world, found("a"), found("b"))
    after = scene.cli("findings", "list", analysis, "--limit", "1", "--json").json["next"]
    scene.cli("findings", "decide", "needs_review", one(scene.world, analysis, "a").id)
    return ["findings", "list", analysis, "--after", after]


@raises(errors.NotFound)
def _not_found(scene: Scene) -> list[str]:
    return ["jobs", "show", NOBODY]


@raises(errors.CursorTooOld)
def _cursor_too_old(scene: Scene) -> list[str]:
    scene.world.submit(), scene.world.submit()
    scene.world.prune_events("q", up_to=1)
    return ["events", "list", "q", "--after", "0"]


@raises(errors.JobFailed)
def _job_failed(scene: Scene) -> list[str]:
    (job,) = scene.world.submit()
    worker = scene.world.worker()
    worker.settle((worker.take(), Fail("CODE", "no", permanent=True)))
    return ["jobs", "wait", job]


@raises(errors.JobCancelled)
def _job_cancelled(scene: Scene) -> list[str]:
    (job,) = scene.world.submit()
    scene.cli("jobs", "cancel", job)
    return ["jobs", "wait", job]


@raises(errors.NotEnded)
def _not_ended(scene: Scene) -> list[str]:
    return ["jobs", "wait", *scene.world.submit(), "--timeout", "0"]


@raises(errors.KeyBusy)
def _key_busy(scene: Scene) -> list[str]:
    (job,) = scene.world.submit()
    scene.patch("testigo.store.engines._OUR_OWN", "SET lock_timeout = '50ms'")
    scene.patch("testigo.store.command.STORE", replace(STORE, lock_timeout_seconds=0.05))
    scene.meanwhile.enter_context(_held(scene.url, job))
    return ["jobs", "cancel", job]


@raises(errors.AuthorityUnavailable)
def _authority_unavailable(scene: Scene) -> list[str]:
    scene.patch("testigo.store.database.STORE", replace(STORE, tries=1))
    return ["jobs", "list", "--url", "postgresql://nobody@127.0.0.1:1/none"]


@raises(errors.Broken)
def _broken(scene: Scene) -> list[str]:
    scene.world.query("DROP TABLE testigo.token")
    return ["token", "list"]


@raises(errors.SchemaMismatch)
def _schema_mismatch(scene: Scene) -> list[str]:
    return ["jobs", "list", "--schema", "elsewhere"]


@raises(errors.IsolationUnsupported)
def _isolation_unsupported(scene: Scene) -> list[str]:
    return ["jobs", "list", "--url", f"{scene.url}&options=-cdefault_transaction_isolation%3Dserializable"]


@raises(errors.EmbeddedUnusable)
def _embedded_unusable(scene: Scene) -> list[str]:
    data = scene.folder / "here" / "data"
    data.mkdir(parents=True)
    (data / "mine").write_text("")
    return ["jobs", "list", "--url", f"embedded:{scene.folder / 'here'}"]


@raises(errors.StreamBroken)
def _stream_broken(scene: Scene) -> list[str]:
    scene.world.submit(), scene.world.submit()
    scene.world.query("DELETE FROM testigo.event WHERE sequence = 1 RETURNING 1")
    return ["events", "list", "q", "--after", "0"]


def _artifact(scene: Scene) -> tuple[str, Path]:
    """An artifact that is published, and where its bytes lie."""
    digest = BlobStore(scene.folder / "blobs").put(b"{}").digest
    new = NewArtifact("sbom.json", "application/vnd.cyclonedx+json", 2, digest, content_digest("r"), digest)
    run = going(scene.world)
    run.publish(sealed(artifacts=(new,)))
    (row,) = scene.world.query("SELECT id::text FROM testigo.artifact")
    return row.id, scene.folder / "blobs" / "sha256" / digest[7:9] / digest[9:]


@contextmanager
def _held(url: str, job: str) -> Iterator[None]:
    """Somebody has the job's row meanwhile."""
    with psycopg.connect(url) as connection:
        connection.execute("SELECT FROM testigo.job WHERE id = %s FOR UPDATE", [job])
        yield
