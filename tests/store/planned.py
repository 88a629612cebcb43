"""Installations whose statistics only the test makes: what the server knows of the tables, and when it looked."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import psycopg

from testigo.store.database import Database
from tests.store.day import live_a_day

__all__ = ["STATISTICS", "Planned", "live_and_look", "look"]


class Planned(NamedTuple):
    """An installation whose statistics only the test makes, and a hand in it."""

    url: str
    hand: psycopg.Connection


def nothing(_: Planned) -> None:
    """Let nobody look at the tables."""


def look(planned: Planned) -> None:
    """Let the server look at the tables as they are now."""
    planned.hand.execute("VACUUM ANALYZE")


def live_and_look(planned: Planned) -> None:
    """Let it look when each table has a row or two."""
    with Database(planned.url) as db:
        live_a_day(db, "first")
    look(planned)


def rest_and_look(planned: Planned) -> None:
    """Let it look when nothing runs, so that the index of leased jobs is empty."""
    idle = "state = 'ready', lease_id = NULL, session_id = NULL, grant_n = NULL"
    planned.hand.execute(f"UPDATE testigo.job SET {idle} WHERE state = 'running'")
    look(planned)


Step = Callable[[Planned], None]
STATISTICS: dict[str, tuple[Step, Step]] = {
    "none": (nothing, nothing),
    "of empty tables": (look, nothing),
    "of tiny tables": (live_and_look, nothing),
    "of an idle installation": (nothing, rest_and_look),
    "fresh": (nothing, look),
}
"""What the server knows of the tables: what is done before they grow, and after it."""
