"""What goes on behind the doors while they are open: operations advance, jobs are admitted, statistics rolled up.

Old rows go as well. Each is a loop of short commands that any number of server processes may run at once. A
database that is away ends none of them: they wait, longer and longer, and go on when it is back.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from types import TracebackType
from typing import Any, NamedTuple, Self

from sqlalchemy import Connection

from testigo.access.prune import prune_access
from testigo.authority.admit import Admitted, admit, waits_for_admission
from testigo.operations import advance, prune_operations
from testigo.settings import STORE, Retention
from testigo.statistics import roll_up
from testigo.store.database import AsyncDatabase
from testigo.store.failures import reason_of

__all__ = ["Background", "Chore", "chores"]

_log = logging.getLogger("testigo.web")

_FIRST_SECONDS = 0.5
_CAP_SECONDS = 30.0
_PRUNE_SECONDS = 600.0


class Chore(NamedTuple):
    """A command that is sent again and again: at once while its answer says that there is `more`, else after `seconds`.

    Whoever its answer names in `wakes` is woken by the database that it is sent through.
    """

    name: str
    step: Callable[[Connection], Any]
    more: Callable[[Any], bool]
    seconds: float


def _admit(c: Connection) -> Admitted:
    """Admit what waits for it, if a look that locks nothing finds any (spec P-11)."""
    return admit(c) if waits_for_admission(c) else Admitted(0)


def chores(kept: Retention) -> tuple[Chore, ...]:
    """What each server process does behind its doors."""
    statistics = partial(roll_up, kept_days=kept.statistics_days)
    old_operations = partial(prune_operations, older_than_days=kept.operations_days)
    return (
        Chore("operations", advance, lambda advanced: advanced is not None, 1.0),
        Chore("admission", _admit, lambda admitted: admitted.admitted > 0, STORE.poll_seconds),
        Chore("statistics", statistics, attrgetter("more"), 5.0),
        Chore("pruning of access", prune_access, attrgetter("more"), _PRUNE_SECONDS),
        Chore("pruning of operations", old_operations, attrgetter("more"), _PRUNE_SECONDS),
    )


@dataclass
class _Course:
    """How a chore goes: how often it failed in a row, and by what last."""

    failures: int = 0
    reason: str = ""


class Background:
    """The loops of one server process."""

    def __init__(self, database: AsyncDatabase, chores: Sequence[Chore]) -> None:
        self._database = database
        self._courses = {chore: _Course() for chore in chores}
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        """Begin."""
        self._tasks = [asyncio.create_task(self._go_on(*each), name=each[0].name) for each in self._courses.items()]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        """Stop: a command that is on its way is undone by the database, and another process sends it."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def hindered(self) -> Mapping[str, str]:
        """The chores that failed the last time, by name, and why."""
        return {chore.name: course.reason for chore, course in self._courses.items() if course.failures}

    async def _go_on(self, chore: Chore, course: _Course) -> None:
        while True:
            try:
                answer = await self._database.run(chore.step)
                course.failures, seconds = 0, 0.0 if chore.more(answer) else chore.seconds
            except Exception as error:
                course.failures += 1
                course.reason = reason_of(error)
                seconds = random.uniform(0.5, 1.0) * min(_CAP_SECONDS, _FIRST_SECONDS * 2.0 ** min(course.failures, 16))
                level = logging.WARNING if course.failures == 1 else logging.DEBUG
                _log.log(level, "%s: it failed and is tried again: %s", chore.name, course.reason)
            await asyncio.sleep(seconds)
