"""What the store logs in an outage."""

from __future__ import annotations

import logging

from testigo.store.log import Sparing


def said(seconds: float) -> list[str]:
    """What passes of an outage in which commands are sent again."""
    outage: list[tuple[int, str, tuple[object, ...]]] = [
        (logging.INFO, "sent again (try %d): %s", (tried, "refused")) for tried in (2, 3, 4)
    ]
    outage += [(logging.WARNING, "not answered", ())] * 2 + [(logging.INFO, "sent again (try %d): %s", (2, "reset"))]
    records = [logging.LogRecord("store", level, "", 0, text, given, None) for level, text, given in outage]
    sparing = Sparing(seconds)
    return [record.getMessage() for record in records if sparing.filter(record)]


def test_a_sentence_of_an_outage_is_said_now_and_then() -> None:
    """Not with every try of every thread; another sentence is said at once, and a warning always."""
    warned = ["not answered"] * 2
    assert said(3_600.0) == ["sent again (try 2): refused", *warned, "sent again (try 2): reset"]
    assert said(0.0)[:3] == [f"sent again (try {tried}): refused" for tried in (2, 3, 4)]
