"""How bad a finding is: words, numbers and levels of many tools, read as one of five severities (spec D-14).

Tools say it in words (HIGH, "moderate"), as a number from 0.0 to 10.0 (SARIF's `security-severity`, CVSS) or
as SARIF's level. What cannot be read falls to the next of them and never fails (field case R78):
the number, then the word, then the level, and a level that is missing or unknown is `warning`.
"""

from __future__ import annotations

from enum import StrEnum
from math import isfinite

__all__ = ["SEVERITIES", "Level", "Severity", "at_least", "level_of", "of_level", "read", "read_level", "resolve"]


class Severity(StrEnum):
    """The five severities, the worst first."""

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    INFO = "info"


class Level(StrEnum):
    """SARIF's own words."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"
    NONE = "none"


SEVERITIES: tuple[Severity, ...] = tuple(Severity)
"""The worst first."""

_RANK = {severity: rank for rank, severity in enumerate(SEVERITIES)}

_SCORES = ((9.0, Severity.CRITICAL), (7.0, Severity.HIGH), (4.0, Severity.MEDIUM), (0.1, Severity.LOW))
"""The least number of each severity; below the last there is only information."""

_WORDS: dict[str, Severity] = {
    word: severity
    for severity, words in {
        Severity.CRITICAL: "critical crit blocker fatal emergency very_high severe",
        Severity.HIGH: "high error err major important serious",
        Severity.MEDIUM: "medium med moderate warning warn normal average",
        Severity.LOW: "low note minor trivial style convention refactor recommendation negligible very_low",
        Severity.INFO: "info information informational none notice hint debug ok",
    }.items()
    for word in words.split()
}

_BY_LEVEL = {
    Level.ERROR: Severity.HIGH,
    Level.WARNING: Severity.MEDIUM,
    Level.NOTE: Severity.LOW,
    Level.NONE: Severity.INFO,
}

_LEVELS = {
    Severity.CRITICAL: Level.ERROR,
    Severity.HIGH: Level.ERROR,
    Severity.MEDIUM: Level.WARNING,
    Severity.LOW: Level.NOTE,
    Severity.INFO: Level.NONE,
}


def at_least(severity: Severity, least: Severity) -> bool:
    """Whether `severity` is as bad as `least`, or worse."""
    return _RANK[severity] <= _RANK[least]


def read(value: object) -> Severity | None:
    """What a tool's own value says: a word in any case, a number from 0.0 to 10.0 or the text of one; else None.

    9.0 and more is critical, 7.0 high, 4.0 medium, 0.1 low, and less is information, as CVSS has it.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return _of_number(value)
    if not isinstance(value, str) or len(value) > 40:
        return None
    word = value.strip().lower().replace("-", "_").replace(" ", "_")
    if word in _WORDS:
        return _WORDS[word]
    try:
        return _of_number(float(word))
    except ValueError:
        return None


def read_level(value: object) -> Level:
    """SARIF's level in any case; `warning` for one that is missing or unknown, as SARIF has it."""
    try:
        return Level(value.strip().lower()) if isinstance(value, str) else Level.WARNING
    except ValueError:
        return Level.WARNING


def of_level(level: Level) -> Severity:
    """The severity of a finding of which only the level is known."""
    return _BY_LEVEL[level]


def level_of(severity: Severity) -> Level:
    """The level of a finding of which only the severity is known."""
    return _LEVELS[severity]


def resolve(*, number: object = None, word: object = None, level: object = None) -> Severity:
    """The severity of a finding: the first of number, word and level that can be read, and `medium` without one."""
    return read(number) or read(word) or of_level(read_level(level))


def _of_number(number: float) -> Severity | None:
    if not isfinite(number) or not 0 <= number <= 10:
        return None
    return next((severity for least, severity in _SCORES if number >= least), Severity.INFO)
