"""The published findings of an analysis as CSV (RFC 4180) that no spreadsheet takes for formulas."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence

from testigo.evidence.exports.collected import Collected
from testigo.evidence.model import FindingView

__all__ = ["COLUMNS", "harmless", "table"]

COLUMNS = (
    "id",
    "analyser",
    "rule",
    "rule_name",
    "severity",
    "level",
    "path",
    "line",
    "column",
    "message",
    "decision",
    "reason",
    "decided_by",
    "decided_at",
    "revision",
    "known",
    "exempt",
    "suppressed",
    "fingerprint",
)

_FORMULAS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20", "|", "%")
"""What a cell begins with that some spreadsheet computes: also the wide forms that it folds to the narrow ones."""


def table(collected: Collected) -> Iterator[str]:
    """The text of the table, in pieces: the names of the columns, then a row per finding, the worst first."""
    yield _line(COLUMNS)
    for view in collected.findings():
        yield _line(_row(view))


def harmless(text: str) -> str:
    """The text with `'` before it where a spreadsheet would compute what it says, whatever white space it begins with.

    Text that began with `'` gets one more, so that taking one away gives back what was there.
    """
    begins = text.lstrip()
    return f"'{text}" if begins.startswith(_FORMULAS) or text.startswith(("'", "\t", "\r", "\n")) else text


def _row(view: FindingView) -> Sequence[str]:
    finding = view.finding
    given = {
        **finding.to_json(),
        "id": view.id,
        "decision": view.decision,
        "reason": view.review.reason,
        "decided_by": view.decided_by,
        "decided_at": None if view.decided_at is None else view.decided_at.isoformat(),
        "revision": view.review.revision,
        "known": view.known,
        "exempt": view.exempt,
    }
    return [_cell(given[name]) for name in COLUMNS]


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else harmless(str(value))


def _line(cells: Sequence[str]) -> str:
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL).writerow(cells)
    return out.getvalue()
