"""A clock that a test can move, forwards and for what waits.

The time that counts is the database's, which nobody can set. So moving the clock forwards brings every
date of the installation that is waited for nearer by as much: when a job or a retry falls due, and its
`start_by` and `finish_by`. What has happened keeps its dates, and what is submitted afterwards counts from
the real time again.
"""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import Connection

from testigo.rules import fields
from testigo.store.command import single_statement
from testigo.store.database import Database
from testigo.store.sql import Statement

__all__ = ["Clock"]

_NEARER = Statement(
    """
    WITH jobs AS (
        UPDATE testigo.job
        SET due_at = due_at - make_interval(secs => :seconds),
            start_by = start_by - make_interval(secs => :seconds),
            finish_by = finish_by - make_interval(secs => :seconds)
        WHERE state NOT IN ('succeeded', 'succeeded_degraded', 'permanent_failure', 'cancelled', 'superseded')
          AND coalesce(due_at, start_by, finish_by) IS NOT NULL
    ),
    admissions AS (
        UPDATE testigo.admission
        SET run_at = run_at - make_interval(secs => :seconds)
        WHERE run_at IS NOT NULL
    )
    UPDATE testigo.lapse
    SET at = at - make_interval(secs => :seconds)
    """
)


class Clock:
    """The clock of one test installation."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def advance(self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0) -> None:
        """Let so much time pass for everything that waits. Raises `Invalid` for less than none."""
        span = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds).total_seconds()
        self._database.run(_bring_nearer, fields.seconds(span, field="seconds"))


@single_statement
def _bring_nearer(c: Connection, seconds: float) -> None:
    _NEARER.rows(c, seconds=seconds)
