"""Tables as CSV files, for programs that calculate: bounded, and without anything that such a program would run."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from fastapi import Response

__all__ = ["ROWS_MAX", "csv_file"]

ROWS_MAX = 10_000
"""Rows of one file."""

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_file(name: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Response:
    """A file of these rows under a line of column names; times are UTC, and what is None is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows([_cell(value) for value in row] for row in rows)
    headers = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
    return Response(text.getvalue(), media_type="text/csv; charset=utf-8", headers=headers)


def _cell(value: object) -> object:
    """A value as a cell. Text that a spreadsheet would calculate is marked as text, with an apostrophe in front."""
    match value:
        case None | int() | float():
            return value
        case datetime():
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case tuple():
            return _cell(" ".join(map(str, value)))
    said = str(value)
    return f"'{said}" if said.startswith(_FORMULA) else said
