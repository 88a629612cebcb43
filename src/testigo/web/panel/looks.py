"""How somebody wants the panel to look: one cookie, no secret, read by every page (panel.md).

The server writes the page with it, so that nothing is changed on the screen after it was drawn.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from functools import cache
from urllib.parse import parse_qs, urlencode
from zoneinfo import ZoneInfo, available_timezones

from testigo.web.panel.words import LANGUAGES

__all__ = ["COOKIE", "THEMES", "Looks", "zones"]

COOKIE = "testigo_looks"
THEMES = ("system", "light", "dark")


@dataclass(frozen=True, slots=True)
class Looks:
    """What was chosen, or what holds where nothing was.

    `language` is None for the browser's. `zone` is the name of a time zone whose times are shown while
    `local` says so; otherwise times are UTC. `keys` turns the shortcuts on (WCAG 2.1.4).
    """

    theme: str = "system"
    language: str | None = None
    zone: str | None = None
    local: bool = False
    keys: bool = True

    @classmethod
    def of(cls, cookie: str | None) -> Looks:
        """The looks that a cookie tells of; whatever is not known in it is left out."""
        given = {name: values[0] for name, values in parse_qs((cookie or "")[:500]).items()}
        return cls().but(given)

    def but(self, given: dict[str, str]) -> Looks:
        """These looks with what is given in the place of what was; whatever is not known is left as it is."""
        looks = self
        if given.get("theme") in THEMES:
            looks = replace(looks, theme=given["theme"])
        if "language" in given:
            looks = replace(looks, language=given["language"] if given["language"] in LANGUAGES else None)
        if given.get("zone") in zones():
            looks = replace(looks, zone=given["zone"])
        if given.get("times") in ("local", "utc"):
            looks = replace(looks, local=given["times"] == "local" and looks.zone is not None)
        if given.get("keys") in ("on", "off"):
            looks = replace(looks, keys=given["keys"] == "on")
        return looks

    @property
    def cookie(self) -> str:
        """The looks as a cookie keeps them."""
        chosen = {"theme": self.theme, "language": self.language, "zone": self.zone}
        switches = {"times": "local" if self.local else "utc", "keys": "on" if self.keys else "off"}
        return urlencode({name: value for name, value in (chosen | switches).items() if value is not None})

    @property
    def clock(self) -> tzinfo:
        """The zone in which times are shown."""
        return ZoneInfo(self.zone) if self.local and self.zone else UTC


@cache
def zones() -> frozenset[str]:
    """The names of the time zones that this machine knows; none where it has no table of them."""
    return frozenset(available_timezones() - {"localtime", "Factory"})
