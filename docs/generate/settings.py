"""The page of settings: every default and limit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

from docs.generate.markdown import members, page, prose, sentence, table
from testigo import settings

__all__ = ["settings_page"]

INTRO = """
Every default and limit of the engine, as `testigo.settings` has them. Units are in the names. What differs from one
installation to the next is set by arguments, variables or a file: `TESTIGO_URL` is the database, `TESTIGO_SCHEMA` the
schema in it, `TESTIGO_KEYS` the folder of keys, `TESTIGO_BLOBS` that of blobs, and each setting of the worker, of
the panel's server and of retention below has a variable as well, such as `TESTIGO_WORKER_SLOTS`: [how to set
them](../how-to/settings.md).
"""

DAY = 86_400


def settings_page() -> str:
    """Every default and limit, concern by concern, in the order of the source."""
    concerns = [cls for cls in vars(settings).values() if isinstance(cls, type) and is_dataclass(cls)]
    tables = [part for cls in concerns for part in _concern(cls)]
    return page("Settings", "src/testigo/settings.py", prose(INTRO), *tables)


def _concern(cls: type) -> Iterator[str]:
    meanings = members(cls)
    rows = [
        [f"`{setting.name}`", _default(setting.name, setting.default), sentence(meanings[setting.name])]
        for setting in fields(cls)
    ]
    yield f"## {cls.__name__}"
    yield prose(cls.__doc__)
    yield table(["name", "default", "meaning"], rows)


def _default(name: str, value: object) -> str:
    match value:
        case str():
            return f"`{value}`"
        case int() if "_bytes" in name and value >= 1024 * 1024:
            return f"{value / (1024 * 1024):g} MiB"
        case int() if "_bytes" in name and value >= 1024:
            return f"{value / 1024:g} KiB"
        case float() if "seconds" in name and value >= DAY:
            return f"{value / DAY:g} days"
        case float():
            return f"{value:g}"
        case _:
            return f"{value:,}"
