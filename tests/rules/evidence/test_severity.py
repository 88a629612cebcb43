"""Whatever a tool calls how bad it is, it is one of five severities, and reading it never fails."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testigo.rules.evidence.severity import (
    SEVERITIES,
    Level,
    Severity,
    at_least,
    level_of,
    of_level,
    read,
    read_level,
    resolve,
)

anything: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.none())
)


@pytest.mark.parametrize(
    ("value", "severity"),
    [
        ("MEDIUM", "medium"),
        (" High ", "high"),
        ("very high", "critical"),
        ("Moderate", "medium"),
        ("informational", "info"),
        ("error", "high"),
        ("note", "low"),
        (10, "critical"),
        (9.0, "critical"),
        (8.9, "high"),
        ("7.0", "high"),
        ("6.9", "medium"),
        (4, "medium"),
        (3.9, "low"),
        ("0.1", "low"),
        (0.0, "info"),
        (10.1, None),
        (-1, None),
        ("nan", None),
        (float("inf"), None),
        (True, None),
        ("", None),
        ("bad", None),
        (["high"], None),
        ("9" * 5000, None),
    ],
)
def test_words_and_numbers_are_read(value: object, severity: str | None) -> None:
    """In any case, as numbers and as the text of numbers; what means nothing is None (field case R78)."""
    assert read(value) == severity


@given(anything, anything, anything)
def test_every_finding_has_a_severity(number: Any, word: Any, level: Any) -> None:
    """The number goes before the word and the word before the level; nothing is refused (field case R78)."""
    found = resolve(number=number, word=word, level=level)
    assert found in SEVERITIES
    assert found is (read(number) or read(word) or of_level(read_level(level)))


def test_what_is_missing_has_the_stated_default() -> None:
    """Without anything it is SARIF's default level, a warning, which is medium (field case R78)."""
    assert resolve() is Severity.MEDIUM
    assert read_level(None) is read_level("unknown") is read_level(3) is Level.WARNING
    assert read_level("ERROR") is Level.ERROR


def test_a_level_that_became_a_severity_becomes_that_level_again() -> None:
    """Reading and export agree."""
    assert [level_of(of_level(level)) for level in Level] == list(Level)


def test_severities_are_ordered_the_worst_first() -> None:
    """Each is as bad as itself and as all after it."""
    for at, severity in enumerate(SEVERITIES):
        assert [at_least(severity, least) for least in SEVERITIES] == [n >= at for n in range(len(SEVERITIES))]
