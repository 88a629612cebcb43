"""`testigo migrate|version|config`: the installation itself."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from testigo.cli import call
from testigo.cli.call import Call, command, refusals_told
from testigo.cli.failures import Misuse
from testigo.settings import WEB, WORKER

if TYPE_CHECKING:
    from sqlalchemy import URL

    from testigo.settings import Web

__all__ = ["config", "group", "located"]

group = call.group("installation", "")
config = call.group("config", "See how testigo is set up here.")


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

    from testigo.store.schema import EXPECTED_VERSION

    found = {
        "testigo": version_of("testigo"),
        "schema": EXPECTED_VERSION,
        "python": platform.python_version(),
        "sqlalchemy": version_of("sqlalchemy"),
        "psycopg": version_of("psycopg"),
        "system": platform.platform(),
    }
    here.answer(found, lambda: _facts(found))


@command(config, "show", "config show", "config show --json")
def show(here: Call) -> None:
    """Show where commands connect from here, and who said so.

    Below it stand the settings with which a worker would run that is started here, and a server; no secret among them.
    """
    from testigo.configuration import web_settings, worker_settings
    from testigo.store.urls import shown

    place = here.place
    tables = {"worker": asdict(worker_settings()), "web": _shown(web_settings())}
    found: dict[str, object] = {"url": shown(place.url), "by": place.source, "schema": place.schema}
    here.answer(found | tables, lambda: _settings(found, tables))


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
        yield server_url(server.url)


def _facts(found: Mapping[str, object]) -> None:
    from testigo.cli.tables import print_facts

    print_facts((name, str(value)) for name, value in found.items())


def _shown(settings: Web) -> dict[str, object]:
    """The settings of a server as they may be told: of a secret, whether there is one."""
    return asdict(settings) | {"oidc_client_secret": "***" if settings.oidc_client_secret else ""}


def _settings(found: Mapping[str, object], tables: Mapping[str, Mapping[str, object]]) -> None:
    from testigo.cli.tables import Column, print_table

    _facts(found)
    for name, settings in tables.items():
        defaults = asdict(WORKER if name == "worker" else WEB)
        print()
        columns: list[Column[tuple[str, object]]] = [
            Column(f"{name} setting", lambda row: row[0], whole=True),
            Column("value", lambda row: f"{row[1]}", whole=True, right=True),
            Column(
                "default",
                lambda row, defaults=defaults: "" if row[1] == defaults[row[0]] else f"{defaults[row[0]]}",  # type: ignore[misc]
                right=True,
            ),
        ]
        print_table(columns, settings.items())
