"""`testigo backup|restore`: everything that an installation knows, into a folder and back (spec D-22)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from testigo.cli import call
from testigo.cli.call import Call, command
from testigo.cli.installation import located
from testigo.cli.ordering import ordered
from testigo.cli.written import size

if TYPE_CHECKING:
    from testigo.store.backup import Manifest
    from testigo.store.blobs import BlobStore

__all__ = ["group"]

group = call.group("backup", "")

KEYS = "The keys of the installation are not in it: copy their folder, and keep it apart."


@command(group, "backup", "backup /backups/monday", "backup /backups/monday.tar --json")
def backup(
    here: Call,
    target: Annotated[
        Path,
        typer.Argument(
            metavar="DIR|FILE",
            help="A folder that is new or empty, or a new file whose name ends with .tar.",
            show_default=False,
        ),
    ],
) -> None:
    """Back up the database's schema and the blobs, as of one moment.

    Everybody may go on meanwhile. The backup is there when all of it is written, or not at all. Exit status 1 says that
    blobs were missing or had changed: all else is backed up, and they are named.
    """
    from testigo.store.backup import packed, save

    with packed(target) as folder, located(here) as url:
        manifest = save(url, here.place.schema, _blobs(here), folder)
    ordered(here, "installation.backup", f"installation:{manifest.installation}", lambda c, action: None)
    here.answer({"backup": str(target), **_told(manifest)}, lambda: _say(target, manifest))
    if manifest.missing or manifest.corrupt:
        raise typer.Exit(1)


@command(
    group,
    "restore",
    "restore /backups/monday --url postgresql://shop@db.internal/empty",
    "restore /backups/monday --check",
)
def restore(
    here: Call,
    source: Annotated[Path, typer.Argument(metavar="DIR|FILE", help="The backup.", show_default=False)],
    check: Annotated[
        bool, typer.Option("--check", help="Only read it whole, and compare it with its manifest.")
    ] = False,
) -> None:
    """Restore a backup where nothing is yet, and compare it.

    The schema is made if it is not there. All rows are read back and compared with the backup before they are kept:
    every identity is as it was, or nothing is restored.
    """
    from testigo.store import backup as backups

    if check:
        with backups.opened(source) as folder:
            manifest = backups.check(folder)
        here.answer(
            {"backup": str(source), **_told(manifest)}, lambda: print(f"{source} is whole: {_words(manifest)}.")
        )
        return
    with backups.opened(source) as folder, located(here) as url:
        manifest = backups.restore(folder, url, here.place.schema, _blobs(here))
    ordered(here, "installation.restore", f"installation:{manifest.installation}", lambda c, action: None)
    answer = {"schema": here.place.schema, **_told(manifest), "verified": True}
    here.answer(answer, lambda: _say_restored(here, manifest))


def _blobs(here: Call) -> BlobStore:
    from testigo.store.blobs import BlobStore, blobs_directory
    from testigo.store.urls import own_directory

    return BlobStore(blobs_directory(own_directory(here.place.url)))


def _told(manifest: Manifest) -> dict[str, object]:
    return {
        "installation": manifest.installation,
        "taken_at": manifest.taken_at,
        "schema_version": manifest.schema_version,
        "tables": len(manifest.tables),
        "rows": manifest.rows,
        "blobs": manifest.blobs,
        "blob_bytes": manifest.blob_bytes,
        "missing": manifest.missing,
        "corrupt": manifest.corrupt,
        "keys": False,
    }


def _words(manifest: Manifest) -> str:
    return (
        f"{manifest.rows:,} rows of {len(manifest.tables)} tables and {manifest.blobs:,} blobs "
        f"({size(manifest.blob_bytes)}), as of {manifest.taken_at}"
    )


def _say(target: Path, manifest: Manifest) -> None:
    print(f"{target} holds {_words(manifest)}.")
    for digest in manifest.missing:
        print(f"missing: the blob {digest}, which a row names")
    for digest in manifest.corrupt:
        print(f"corrupt: the blob {digest}, left out")
    print(KEYS)


def _say_restored(here: Call, manifest: Manifest) -> None:
    print(f"Restored into the schema {here.place.schema}: {_words(manifest)}.")
    print("Each table was read back and is what was backed up.")
    if manifest.missing or manifest.corrupt:
        print(f"Not in the backup: {len(manifest.missing) + len(manifest.corrupt):,} blobs, which its manifest names.")
    print("Put the keys back as well. What happened after that moment is not known here: jobs may run again.")
