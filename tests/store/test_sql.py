"""Arrays: what is written for the server is read by it as it was given, whatever it holds."""

from __future__ import annotations

import pytest

from testigo.store.database import Database
from testigo.store.sql import Statement, array

_READ = Statement("SELECT CAST(:texts AS text[]) AS texts")


@pytest.mark.parametrize(
    "texts",
    [
        [],
        ["a"],
        [None],
        ['say "\\"'],
        ["", "NULL", "null"],
        ["same", "same", "same"],
        ['"', '"'],
        ["{a,b}", " c ", "d\ne"],
        ["plain", 'a "word"', "plainer"],
        ["plain", "C:\\temp", "\\"],
        ["plain", None, "\u00e9\u4e16\U0001f600"],
    ],
    ids=str,
)
def test_an_array_is_read_as_it_was_given(database_url: str, texts: list[str | None]) -> None:
    """Text with nothing to escape takes a shorter way, which must write the same (spec P-06)."""
    with Database(database_url) as db:
        (row,) = db.run(lambda c: _READ.rows(c, texts=array(texts)))
    assert row.texts == texts
