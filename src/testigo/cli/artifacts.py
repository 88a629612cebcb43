"""`testigo artifacts`: what analyses have besides findings, such as SBOMs, handed out and proved."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from testigo.cli import call
from testigo.cli.analysed import AnalysisRef, analysis_of
from testigo.cli.call import Call, command
from testigo.cli.failures import Misuse
from testigo.cli.written import age, size

if TYPE_CHECKING:
    from testigo.evidence.model import ArtifactView
    from testigo.store.blobs import BlobStore

__all__ = ["group"]

group = call.group("artifacts", "List, get and verify what analyses have besides findings, such as SBOMs.")

ArtifactRef = Annotated[str, typer.Argument(metavar="ARTIFACT", help="The artifact's id.", show_default=False)]


@command(group, "list", "artifacts list shop", "artifacts list 0198f3c2-… --json")
def list_(here: Call, analysis: AnalysisRef) -> None:
    """List the artifacts of an analysis by their names."""
    from testigo.evidence.artifacts import artifacts

    with here.database() as db:
        chosen = analysis_of(db, analysis)
        found = db.run(artifacts, chosen)
    here.answer({"analysis": chosen, "artifacts": found}, lambda: _table(here, found))


@command(group, "get", "artifacts get 0198f3c2-… > sbom.json", "artifacts get 0198f3c2-… --output sbom.json")
def get(
    here: Call,
    artifact: ArtifactRef,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write it here, whole or not at all.", show_default="stdout"
        ),
    ] = None,
) -> None:
    """Get an artifact. Its size and digest are checked against the index before its last bytes are written.

    It is read from the installation's blobs: the folder that TESTIGO_BLOBS names, else the one beside its data.
    """
    from testigo.evidence.exports.artifact import copy_artifact

    if here.json and output is None:
        raise Misuse("With --json, say --output: both would be written to stdout.")
    view = _view(here, artifact)
    if output is None:
        copy_artifact(view, _blobs(here), sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    new = output.with_name(f".{output.name}.{os.getpid()}")
    try:
        with new.open("xb") as file:
            copy_artifact(view, _blobs(here), file)
        new.replace(output)
    except OSError as error:
        raise Misuse(f"{output} cannot be written: {error.strerror}.") from error
    finally:
        new.unlink(missing_ok=True)
    answer = {"artifact": view.id, "file": str(output), "bytes": view.bytes, "digest": view.digest}
    here.answer(answer, lambda: print(f"{output} is {view.name}, {size(view.bytes)}, {view.digest}."))


@command(group, "verify", "artifacts verify 0198f3c2-…", "artifacts verify 0198f3c2-… --json")
def verify(here: Call, artifact: ArtifactRef) -> None:
    """Verify an artifact and its attestation.

    Its bytes are checked by the index; what it was made of, by the attestation, with the installation's key
    (TESTIGO_KEYS).
    """
    from testigo.evidence.exports.artifact import prove
    from testigo.store.keys import Keyring, keys_directory
    from testigo.store.urls import own_directory

    view = _view(here, artifact)
    proved = prove(view, _blobs(here), Keyring.open(keys_directory(own_directory(here.place.url))))
    here.answer(
        {"artifact": view.id, "name": view.name, "proved": proved},
        lambda: print(f"{view.name} is what was published, made of what has {view.raw_digest}; the signature is ours."),
    )


def _view(here: Call, named: str) -> ArtifactView:
    from testigo.evidence.artifacts import artifact
    from testigo.evidence.model import ArtifactId

    with here.database() as db:
        return db.run(artifact, ArtifactId(named))


def _blobs(here: Call) -> BlobStore:
    from testigo.store.blobs import BlobStore, blobs_directory
    from testigo.store.urls import own_directory

    return BlobStore(blobs_directory(own_directory(here.place.url)))


def _table(here: Call, found: tuple[ArtifactView, ...]) -> None:
    from testigo.cli.tables import Column, print_table

    now = datetime.now(UTC)
    columns: list[Column[ArtifactView]] = [
        Column("id", lambda view: view.id, whole=True),
        Column("name", lambda view: view.name),
        Column("size", lambda view: size(view.bytes), whole=True, right=True),
        Column("type", lambda view: view.media_type, wide=True),
        Column("published", lambda view: age(view.published_at, now), whole=True, right=True),
    ]
    if found:
        print_table(columns, found)
    else:
        here.note("The analysis has no artifacts.")
