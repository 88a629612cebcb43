"""Which findings an address asks for: read, refused by name, told back in its parts (panel.md *Query rules*)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

from starlette.datastructures import QueryParams

from testigo.errors import Invalid
from testigo.evidence.findings import FindingFilter
from testigo.rules.evidence.review import Decision
from testigo.rules.evidence.severity import Severity

__all__ = ["NAMES", "Part", "Wanted", "wanted"]

W = TypeVar("W", bound=StrEnum)

_TEXTS = ("analyser", "rule", "path", "fingerprint", "text")
_FLAGS = ("known", "exempt", "suppressed")
NAMES = ("severity", "decision", *_TEXTS, *_FLAGS)
"""What may be asked for, as it is called in an address."""

_ANSWERS = {"yes": True, "no": False}


class Part(NamedTuple):
    """One thing that is asked for, and the query that is left without it."""

    name: str
    value: str
    without: Mapping[str, list[str]]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for: as readings take it, and as an address says it."""

    filter: FindingFilter = FindingFilter()  # noqa: RUF009 - it is frozen
    query: Mapping[str, list[str]] = field(default_factory=dict)

    @property
    def parts(self) -> Iterator[Part]:
        """Each thing that is asked for, with the query without it."""
        for name, values in self.query.items():
            for value in values:
                rest = [other for other in values if other != value]
                yield Part(name, value, {**{n: [] for n in self.query}, **self.query, name: rest})

    def one(self, name: str) -> str:
        """What is asked for by this name, where it is one thing; else nothing."""
        values = self.query.get(name, [])
        return values[0] if len(values) == 1 else ""


def wanted(asked: QueryParams, *, sees: bool) -> Wanted:
    """What an address asks for. Raises `Invalid` naming what cannot be, and what somebody may not look for.

    Whoever does not see (`sees`) what the source holds finds nothing out about it by searching either.
    """
    query = {name: list(dict.fromkeys(filter(None, map(str.strip, asked.getlist(name))))) for name in NAMES}
    query = {name: values for name, values in query.items() if values}
    given: dict[str, Any] = {
        "severities": _among(Severity, query.get("severity", []), "severity"),
        "decisions": _among(Decision, query.get("decision", []), "decision"),
    }
    for name in (*_TEXTS, *_FLAGS):
        values = query.get(name, [])
        if len(values) > 1:
            raise Invalid("It is asked for twice, and only one can be.", field=name)
        if values:
            given[name] = values[0] if name in _TEXTS else _flag(values[0], name)
    if "text" in query and not sees:
        raise Invalid(
            "Your role does not see the source in findings, and so cannot search in it.",
            field="text",
            remedy="Search by severity, decision, analyser, rule or path.",
        )
    return Wanted(FindingFilter(**given), query)


def _among(kind: type[W], values: list[str], name: str) -> tuple[W, ...]:
    if unknown := [value for value in values if value not in list(kind)]:
        raise Invalid(f"{unknown[0][:40]!r} is none.", field=name, limit=", ".join(kind))
    return tuple(kind(value) for value in values)


def _flag(value: str, name: str) -> bool:
    if value not in _ANSWERS:
        raise Invalid(f"{value[:40]!r} is neither yes nor no.", field=name, limit="yes, no")
    return _ANSWERS[value]
