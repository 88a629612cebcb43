"""`testigo config`: how testigo is set up here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from testigo.cli import call
from testigo.cli.call import Call, command
from testigo.settings import RETENTION, WEB, WORKER

if TYPE_CHECKING:
    from testigo.settings import Web

__all__ = ["group"]

group = call.group("config", "See how testigo is set up here.")


@command(group, "show", "config show", "config show --json")
def show(here: Call) -> None:
    """Show where commands connect from here, and who said so.

    Below it stand the settings with which a worker would run that is started here, and a server, and how long either
    keeps what has ended; no secret among them.
    """
    from testigo.configuration import retention_settings, web_settings, worker_settings
    from testigo.store.urls import shown

    place = here.place
    tables = {
        "worker": asdict(worker_settings()),
        "web": _shown(web_settings()),
        "retention": asdict(retention_settings()),
    }
    found: dict[str, object] = {"url": shown(place.url), "by": place.source, "schema": place.schema}
    here.answer(found | tables, lambda: _settings(found, tables))


def _shown(settings: Web) -> dict[str, object]:
    """The settings of a server as they may be told: of a secret, whether there is one."""
    return asdict(settings) | {"oidc_client_secret": "***" if settings.oidc_client_secret else ""}


_DEFAULTS = {"worker": asdict(WORKER), "web": asdict(WEB), "retention": asdict(RETENTION)}


def _settings(found: Mapping[str, object], tables: Mapping[str, Mapping[str, object]]) -> None:
    from testigo.cli.tables import Column, print_facts, print_table

    print_facts((name, str(value)) for name, value in found.items())
    for name, settings in tables.items():
        defaults = _DEFAULTS[name]
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
