"""Cursors: opaque places in a listing, each good for its own listing alone."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testigo.authority.actions import new_id
from testigo.authority.read import (
    Cursor,
    Filter,
    jobs,
    queues,
    sessions,
)
from testigo.authority.read.pages import Listing, a_name, an_id
from testigo.authority.submissions import NewJob
from testigo.errors import CursorInvalid
from tests.world import World

LATER = datetime(2040, 1, 1, tzinfo=UTC)


def test_a_cursor_belongs_to_the_listing_that_made_it(world: World) -> None:
    """Other filters, and other listings, refuse it: their places are other places (CURSOR_INVALID)."""
    world.submit(*(NewJob("work", queue="q") for _ in range(3)))
    cursor = world.db.run(jobs, Filter(queue="q"), limit=1).next
    assert world.db.run(jobs, Filter(queue="q"), limit=2, before=cursor).items
    others: list[dict[str, Any]] = [{}, {"queue": "p"}, {"kind": "q"}, {"queue": "q", "kind": "work"}]
    for asked in others:
        with pytest.raises(CursorInvalid):
            world.db.run(jobs, Filter(**asked), before=cursor)
    with pytest.raises(CursorInvalid):
        world.db.run(sessions, before=cursor)
    with pytest.raises(CursorInvalid):
        world.db.run(queues, after=cursor)


@pytest.mark.parametrize(
    "forged",
    [
        "",
        "x",
        "é",
        "AAAA",
        "=" * 8,
        "A" * 5_000,
        "\x00",
        7,
        None.__class__,
        b"x",
        "01a22d92-dea2-76ce-a836-e4773eccbe60",
        "A" * 17,
    ],
)
def test_what_is_no_cursor_is_refused(world: World, forged: Any) -> None:
    """Whatever is given as a cursor is an answer or CURSOR_INVALID, never an error of the database."""
    with pytest.raises(CursorInvalid) as refused:
        world.db.run(jobs, before=forged)
    assert refused.value.field == "cursor"


LISTING = Listing("things", ("a", None), (an_id, a_name))


@given(st.text())
def test_no_text_is_mistaken_for_a_cursor(text: str) -> None:
    """Only what the listing itself made is one."""
    with pytest.raises(CursorInvalid):
        LISTING.position(Cursor(text), ())


@given(st.uuids().map(str), st.integers(0), st.integers(1, 255))
def test_a_cursor_that_was_changed_anywhere_is_refused(part: str, place: int, change: int) -> None:
    """Every byte of a cursor counts, and a cursor has one spelling."""
    cursor = LISTING.cursor(part, "é")
    assert LISTING.position(cursor, ()) == (part, "é")
    raw = bytearray(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    raw[place % len(raw)] ^= change
    for other in (base64.urlsafe_b64encode(bytes(raw)).decode().rstrip("="), cursor + "=", cursor + "A", cursor[:-1]):
        with pytest.raises(CursorInvalid):
            LISTING.position(Cursor(other), ())


@pytest.mark.parametrize("parts", [("x", "a"), (new_id(), "a\x00"), (new_id(),), (new_id(), "a", "b"), (new_id(), 7)])
def test_a_forger_who_knows_the_seal_reaches_no_place_that_is_none(parts: Any) -> None:
    """The seal is no secret: what it covers is checked as well, so that nothing odd reaches the database."""
    with pytest.raises(CursorInvalid):
        LISTING.position(LISTING.cursor(*parts), ())
