"""A cursor binds process, run, request, result and position, and serves no other result (spec D-13)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testigo.errors import CursorInvalid
from testigo.evidence.transport.cursors import Cursors
from testigo.rules.identity import content_digest
from tests.evidence.transport.results import RUN

ONE = (RUN, content_digest("request"), content_digest("result"))
OURS = Cursors()


@pytest.mark.parametrize("at", range(3))
def test_a_cursor_of_another_run_request_or_result_is_refused(at: int) -> None:
    """Each is bound by itself."""
    other = (*ONE[:at], content_digest("other"), *ONE[at + 1 :])
    with pytest.raises(CursorInvalid):
        OURS.position(OURS.made(*ONE, 7), *other)
    assert OURS.position(OURS.made(*ONE, 7), *ONE) == 7


def test_a_cursor_dies_with_its_process() -> None:
    """The secret is the process's own."""
    with pytest.raises(CursorInvalid):
        Cursors().position(OURS.made(*ONE, 7), *ONE)


@pytest.mark.parametrize("cursor", ["", "7", "7.", ".", "-1.{proof}", "07.{proof}", "7.{proof}0", " 7.{proof}", "é.ü"])
def test_what_is_no_cursor_is_refused(cursor: str) -> None:
    """And so is a position that is written in another way."""
    proof = OURS.made(*ONE, 7).partition(".")[2]
    with pytest.raises(CursorInvalid):
        OURS.position(cursor.format(proof=proof), *ONE)


@given(at=st.integers(0, 65), to=st.characters(codec="ascii"))
def test_a_cursor_with_one_character_changed_is_refused(at: int, to: str) -> None:
    """Position and proof belong together."""
    cursor = OURS.made(*ONE, 7)
    other = cursor[:at] + to + cursor[at + 1 :]
    if other != cursor:
        with pytest.raises(CursorInvalid):
            OURS.position(other, *ONE)
