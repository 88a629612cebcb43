"""`testigo migrate|version`: the installation itself."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from testigo.cli import call
from testigo.cli.call import Call, command, refusals_told
from testigo.cli.failures import Misuse

if TYPE_CHECKING:
    from sqlalchemy import URL

__all__ = ["group", "located"]

group = call.group("installation", "")


@command(group, "migrate", "migrate", "migrate --check", "migrate --sql > testigo.sql")
def migrate(
    here: Call,
    check: Annotated[
        bool, typer.Option("--check", help="Only say what would be applied; exit status 1 if there is something.")
    ] = False,
    sql: Annotated[bool, typer.Option("--sql", help="Only print the SQL for an empty database.")] = False,
) -> None:
    """Bring the database's schema to this release's version.

    Safe to repeat, and from several machines at once. The role has to own the schema, or may create it.
    """
    from testigo.store.schema import EXPECTED_VERSION, check_migrations, migration_sql
    from testigo.store.schema import migrate as migrated

    if check and sql:
        raise Misuse("Choose one of --check and --sql.")
    if sql:
        text = migration_sql(here.place.schema)
        here.answer({"sql": text}, lambda: print(text))
        return
    with located(here) as url, refusals_told():
        versions = check_migrations(url, here.place.schema)
        if not check:
            migrated(url, here.place.schema)
    applied = ", ".join(versions)
    words = f"{'To apply' if check else 'Applied'}: {applied}." if versions else "The schema is up to date."
    answer = {"schema": here.place.schema, "version": EXPECTED_VERSION, "applied": not check, "versions": versions}
    here.answer(answer, lambda: print(words))
    if check and versions:
        raise typer.Exit(1)


@command(group, "version", "version", asks=False)
def version(here: Call) -> None:
    """Show which releases are at work here; asks no database."""
    from importlib.metadata import version as version_of

    from testigo.cli.tables import print_facts
    from testigo.store.schema import EXPECTED_VERSION

    found = {
        "testigo": version_of("testigo"),
        "schema": EXPECTED_VERSION,
        "python": platform.python_version(),
        "sqlalchemy": version_of("sqlalchemy"),
        "psycopg": version_of("psycopg"),
        "system": platform.platform(),
    }
    here.answer(found, lambda: print_facts(found.items()))


@contextmanager
def located(here: Call) -> Iterator[URL]:
    """The URL of the installation's server; an embedded one runs meanwhile."""
    from testigo.store.embedded import EmbeddedServer
    from testigo.store.urls import embedded_directory, server_url

    directory = embedded_directory(here.place.url)
    if directory is None:
        yield server_url(here.place.url)
        return
    with EmbeddedServer.use(directory) as server:
        yield server.location
