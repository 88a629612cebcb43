"""The files of docs/reference that are generated, each with the function that writes it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from docs.generate.api import api_page
from docs.generate.commands import commands_page
from docs.generate.diagram import diagram
from docs.generate.errors import errors_page
from docs.generate.events import events_page
from docs.generate.http import http_page
from docs.generate.settings import settings_page
from docs.generate.states import states_page

__all__ = ["PAGES", "REFERENCE"]

REFERENCE = Path(__file__).resolve().parents[1] / "reference"
"""Where they are."""

PAGES: dict[str, Callable[[], str]] = {
    "states.svg": diagram,
    "states.md": states_page,
    "events.md": events_page,
    "errors.md": errors_page,
    "settings.md": settings_page,
    "cli.md": commands_page,
    "api.md": api_page,
    "http.md": http_page,
}
