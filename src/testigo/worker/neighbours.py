"""Recovery at once on one host: sessions whose keeper is gone need no watching (spec P-20).

Whoever sweeps looks at the processes that the live sessions of its own host recorded. Where a keeper is
gone, what is left of its runners is killed; once all of them are gone, nobody can work for the session any
more, and it is closed. What cannot be seen from here is left to the watching of beats.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection

from testigo.authority.processes import HostSession, sessions_on
from testigo.authority.sessions import close_session
from testigo.store.database import Database
from testigo.worker import hosts
from testigo.worker.hosts import Recorded

__all__ = ["Neighbours"]

_log = logging.getLogger("testigo.worker")

READ_SECONDS = 5.0
"""Between two readings of what the sessions recorded, while nothing calls for one: keepers do not change."""


class Neighbours:
    """The live sessions of this host."""

    def __init__(self, db: Database, host: str) -> None:
        """A host without a name has no neighbours."""
        self._db = db
        self._host = host
        self._live: frozenset[str] = frozenset()
        self._read_at = 0.0
        self._recorded: list[Recorded | None] = []

    def recover(self, live: Collection[str]) -> tuple[int, int]:
        """Close the sessions of which nothing runs any more: how many, and how many are still being ended.

        `live` are the live sessions of all hosts, as they were read last.
        """
        if not self._host or not self._must_read(frozenset(live)):
            return 0, 0
        sessions = self._db.run(sessions_on, self._host)
        self._live, self._read_at = frozenset(live), time.monotonic()
        self._recorded = [hosts.recorded(session.processes) for session in sessions]
        closed = ending = 0
        for session, seen in zip(sessions, self._recorded, strict=True):
            if seen is None or not _is_over(seen):
                continue
            if self._end(session, seen):
                closed += 1
            else:
                ending += 1
        return closed, ending

    def _must_read(self, live: frozenset[str]) -> bool:
        """Whether sessions came or went, or a keeper is gone or was not told of yet: then runners count, too."""
        if live != self._live or time.monotonic() - self._read_at >= READ_SECONDS:
            return True
        return any(seen is None or _is_over(seen) for seen in self._recorded)

    def _end(self, session: HostSession, seen: Recorded) -> bool:
        """Kill the runners that are left, and close the session if there are none any more."""
        for runner in seen.runners:
            hosts.kill_group(runner.pid, runner.started)
        if not all(hosts.is_group_gone(runner.pid, runner.started) for runner in seen.runners):
            return False
        _log.warning("the keeper of %s is gone, and so are its runners: its work is taken back", session.agent)
        self._db.run(close_session, session.id)
        return True


def _is_over(seen: Recorded) -> bool:
    """Whether the keeper is gone, which a system that does not say it does not prove."""
    try:
        return hosts.is_gone(seen.keeper.pid, seen.keeper.started)
    except OSError:
        return False
