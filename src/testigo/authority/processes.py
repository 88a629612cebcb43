"""The processes that work for a session: recorded as they change, read by who shares the host (spec P-10, P-20).

They are pids, each with what tells that very process from a later one of the same number. Nothing here
looks at a process: who does lives on the host that the session names.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from testigo.authority.actions import SessionId
from testigo.errors import Invalid, SessionReplaced
from testigo.rules import fields
from testigo.rules.documents import encode
from testigo.settings import LIMITS
from testigo.store.command import single_statement
from testigo.store.sql import Statement

__all__ = ["HostSession", "holding", "record_processes", "sessions_on", "terminate_backends"]


@dataclass(frozen=True, slots=True)
class HostSession:
    """A live session of one host: its processes are as its keeper recorded them last."""

    id: SessionId
    agent: str
    processes: Mapping[str, Any]


_RECORD = Statement(
    """
    UPDATE testigo.session_profile p
    SET processes = :processes
    FROM testigo.session s
    WHERE p.session_id = CAST(:session AS uuid) AND s.id = p.session_id AND s.state IN ('open', 'draining')
    RETURNING 1
    """
)

_ON = Statement(
    """
    SELECT CAST(s.id AS text) AS id, s.agent, p.processes
    FROM testigo.session s JOIN testigo.session_profile p ON p.session_id = s.id
    WHERE s.state IN ('open', 'draining') AND p.host = :host
    ORDER BY s.id
    LIMIT :limit
    """
)

_HOLDING = Statement(
    """
    SELECT DISTINCT CAST(s.id AS text) AS id
    FROM testigo.session s JOIN testigo.job j ON j.session_id = s.id
    WHERE s.state NOT IN ('open', 'draining') AND j.lease_id IS NOT NULL
    LIMIT :limit
    """
)

# A pid may be another connection's by now: it is ended only if it began when the session said. A keeper
# that goes on under another session keeps its connections.
_TERMINATE = Statement(
    """
    SELECT count(*) FILTER (WHERE pg_terminate_backend(a.pid)) AS ended
    FROM testigo.session s
         JOIN testigo.session_profile p ON p.session_id = s.id
         CROSS JOIN LATERAL json_to_recordset(CAST(p.processes AS json) -> 'backends')
             AS b(pid integer, started timestamptz)
         JOIN pg_stat_activity a ON a.pid = b.pid AND a.backend_start = b.started
    WHERE s.id = CAST(:session AS uuid) AND s.state NOT IN ('open', 'draining')
      AND a.datname = current_database() AND a.pid <> pg_backend_pid()
      AND NOT EXISTS (
          SELECT FROM testigo.session o
               JOIN testigo.session_profile q ON q.session_id = o.id
               CROSS JOIN LATERAL json_to_recordset(CAST(q.processes AS json) -> 'backends')
                   AS d(pid integer, started timestamptz)
          WHERE o.state IN ('open', 'draining') AND d.pid = b.pid AND d.started = b.started)
    """
)


@single_statement
def record_processes(c: Connection, session_id: SessionId, processes: Mapping[str, Any]) -> None:
    """Let a live session tell of its processes, in the place of what it told before.

    `backends`, if given, are the server's processes behind its own connections: a list of objects of `pid`
    and `started`, as `Database.backends` has them. A keeper sends one at a time. Raises `SessionReplaced`
    when the session is over.
    """
    fields.must_be_id(session_id, field="session")
    check_processes(processes)
    if not _RECORD.rows(c, session=session_id, processes=json.dumps(dict(processes))):
        raise SessionReplaced("The session is over, so its processes were not recorded.", session=session_id)


@single_statement
def sessions_on(c: Connection, host: str) -> tuple[HostSession, ...]:
    """The live sessions of this host, as `NewSession.host` names it, at most `LIMITS.page_max`."""
    fields.key(host, field="host")
    rows = _ON.rows(c, host=host, limit=LIMITS.page_max)
    return tuple(HostSession(SessionId(row.id), row.agent, json.loads(row.processes)) for row in rows)


@single_statement
def holding(c: Connection) -> frozenset[SessionId]:
    """The sessions that are over and hold leases all the same: a sweep has not come, or was blocked.

    Of more than `LIMITS.page_max` some are named.
    """
    return frozenset(SessionId(row.id) for row in _HOLDING.rows(c, limit=LIMITS.page_max))


@single_statement
def terminate_backends(c: Connection, session_id: SessionId) -> int:
    """End the connections of a session that is over, whose locks keep its jobs from a sweep; returns how many.

    A client that was stopped in the middle of an answer holds its locks until somebody does this (spec
    P-10). What a session did not record, or recorded of another server, is left alone.
    """
    fields.must_be_id(session_id, field="session")
    return int(_TERMINATE.rows(c, session=session_id)[0].ended)


def check_processes(processes: object) -> None:
    """Refuse what is no object of a fit size."""
    if not isinstance(processes, Mapping):
        raise Invalid("Processes are an object, from names to what is known of each.", field="session.processes")
    encode(dict(processes), field="session.processes")
