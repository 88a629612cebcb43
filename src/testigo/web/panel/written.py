"""Values as a page writes them: times, spans, sizes. Each in the language and zone of whoever looks."""

from __future__ import annotations

from datetime import UTC, datetime

from markupsafe import Markup

from testigo.authority.read.pages import Count
from testigo.web.panel.looks import Looks
from testigo.web.panel.words import NONE, Words

__all__ = ["Written"]

_STEPS = ((86_400, "d"), (3_600, "h"), (60, "m"))
_UNITS = ("B", "kB", "MB", "GB", "TB")
_TIME = Markup('<time datetime="{iso}" title="{full}">{shown}</time>')
_GAP = "\u00a0"
"""Between a number and its unit: they stay on one line."""


class Written:
    """The page's pen: `when`, `ago`, `span`, `number`, `size`, `percent` of a template."""

    def __init__(self, t: Words, looks: Looks, now: datetime) -> None:
        self._t = t
        self._clock = looks.clock
        self.now = now

    def here(self, at: datetime) -> datetime:
        """The moment in the zone in which times are shown."""
        return at.astimezone(self._clock)

    def number(self, value: Count | float | None, digits: int = 0) -> str:
        """1 904, 10 000+, 0.8; a dash for None."""
        return self._t.number(value, digits)

    def percent(self, part: float | None, digits: int = 1) -> str:
        """A share of one as 0.8 %; a dash for None."""
        return NONE if part is None else f"{self._t.number(part * 100, digits)}{_GAP}%"

    def rate(self, per_minute: float | None) -> str:
        """How many a minute: 412, 0.4, and < 0.1 where it is not nothing at all."""
        if per_minute is not None and 0 < per_minute < 0.1:
            return f"<{_GAP}{self._t.number(0.1, 1)}"
        return self._t.number(per_minute, 0 if per_minute is None or per_minute >= 10 or per_minute == 0 else 1)

    def when(self, at: datetime | None, *, whole: bool = False) -> str:
        """A moment: the time of day, with the date in front unless it is today's or `whole` asks for all of it."""
        if at is None:
            return NONE
        here = self.here(at)
        if whole or here.date() != self.here(self.now).date():
            return self._time(at, f"{here:%Y-%m-%d %H:%M:%S}")
        return self._time(at, f"{here:%H:%M:%S}")

    def ago(self, at: datetime | None) -> str:
        """How long ago a moment was, or in how long it will be: 4 m, in 4 m."""
        if at is None:
            return NONE
        seconds = (self.now - at).total_seconds()
        if seconds >= 0:
            return self._time(at, self.span(seconds))
        return self._time(at, self._t("in {span}", span=self.span(-seconds)))

    def span(self, seconds: float | None) -> str:
        """A span of time in the largest unit that fits: 12 ms, 1.2 s, 41 s, 14 m, 3 h, 2 d; a dash for None."""
        if seconds is None:
            return NONE
        for step, unit in _STEPS:
            if seconds >= step:
                return f"{self._t.number(seconds // step)}{_GAP}{unit}"
        if seconds >= 10 or seconds == 0:
            return f"{seconds:.0f}{_GAP}s"
        if seconds >= 1:
            return f"{self._t.number(seconds, 1)}{_GAP}s"
        return f"{seconds * 1000:.0f}{_GAP}ms"

    def size(self, count: int | None) -> str:
        """A number of bytes: 4.1 kB; a dash for None."""
        if count is None:
            return NONE
        left, step = float(count), 0
        while left >= 1000 and step < len(_UNITS) - 1:
            left, step = left / 1000, step + 1
        return f"{self._t.number(left, 1 if step and left < 100 else 0)}{_GAP}{_UNITS[step]}"

    def _time(self, at: datetime, shown: str) -> str:
        here = self.here(at)
        full = f"{here:%Y-%m-%d %H:%M:%S} {here.tzname() or 'UTC'}"
        return _TIME.format(iso=at.astimezone(UTC).isoformat().replace("+00:00", "Z"), full=full, shown=shown)
