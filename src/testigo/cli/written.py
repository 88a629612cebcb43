"""Values as the command line writes them: JSON for programs, short words for people."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime

from testigo.rules.documents import Document

__all__ = ["age", "in_words", "moment", "number", "size", "span", "to_json"]

_IN_UTC = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+\+00:00")
_ONE_LINE = str.maketrans("\r\n", "  ")
_STEPS = ((86_400, "d"), (3_600, "h"), (60, "m"))
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


def to_json(value: object) -> str:
    """A value on one line of JSON: records by their members, times in UTC, documents exactly as they are kept."""
    match value:
        case Document():  # line breaks in JSON stand between its parts only
            return value.translate(_ONE_LINE)
        case datetime():
            return json.dumps(moment(value))
        case None | bool() | int() | float() | str():
            return json.dumps(value, ensure_ascii=False)
        case Mapping():
            return _object(value)
        case tuple() if hasattr(value, "_asdict"):
            return _object(value._asdict())
        case Iterable():
            return "[" + ", ".join(to_json(each) for each in value) + "]"
    assert is_dataclass(value), type(value)
    return _object({field.name: getattr(value, field.name) for field in fields(value)})


def moment(at: datetime) -> str:
    """A time in UTC as ISO 8601 writes it, with all that is known of it."""
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def age(at: datetime | None, now: datetime) -> str:
    """How long ago, or in how long, in the largest unit that fits."""
    if at is None:
        return ""
    seconds = (now - at).total_seconds()
    return span(seconds) if seconds >= 0 else f"in {span(-seconds)}"


def span(seconds: float) -> str:
    """A span of time in the largest unit that fits: 3m, 12h."""
    for step, unit in _STEPS:
        if seconds >= step:
            return f"{seconds // step:.0f}{unit}"
    return f"{seconds:.0f}s"


def size(count: int | None) -> str:
    """A number of bytes in the largest unit that fits."""
    if count is None:
        return ""
    left, steps = float(count), 0
    while left >= 1024 and steps < len(_UNITS) - 1:
        left, steps = left / 1024, steps + 1
    return f"{left:.3g} {_UNITS[steps]}" if left < 1000 else f"{left:,.0f} {_UNITS[steps]}"


def number(value: float) -> str:
    """A number without more digits than say something."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"


def in_words(data: Mapping[str, object]) -> str:
    """What an event tells, on one line: without the state, which its type says, and without what is nested."""
    told = {name: value for name, value in data.items() if name != "state" and not isinstance(value, Mapping)}
    return ", ".join(f"{name}={_shortly(value)}" for name, value in told.items() if value is not None)


def _shortly(value: object) -> str:
    """A value of an event, as a line has room for it: a float to the thousandth, a time as all others are written."""
    if isinstance(value, float):
        return f"{value:.3f}".rstrip("0").rstrip(".")
    text = str(value)
    return f"{text.removesuffix('+00:00')}Z" if _IN_UTC.fullmatch(text) else text


def _object(members: Mapping[str, object]) -> str:
    return "{" + ", ".join(f"{json.dumps(str(name))}: {to_json(value)}" for name, value in members.items()) + "}"
