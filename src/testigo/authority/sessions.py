"""open, replace, drain and close a session: a worker's term of office (spec P-16, P-17, P-21).

A session is what owns leases, and its beat is what keeps them. An agent has at most one live
session; one whose name was set by hand is exclusive, and its place is taken only by consent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection

from testigo.authority.actions import Action, SessionId, new_id
from testigo.authority.processes import check_processes
from testigo.authority.receipts import digest_of, exactly_once
from testigo.errors import Conflict, NotFound, SessionBusy
from testigo.rules import fields
from testigo.rules.leases import check_obligation
from testigo.settings import LIMITS, SESSIONS
from testigo.store.sql import Statement

__all__ = ["NewSession", "Session", "close_session", "drain_session", "open_session"]


@dataclass(frozen=True, slots=True)
class NewSession:
    """A session as a worker asks for it.

    `replace` takes the place of the agent's live session (never of one that drains, unless it is
    `replace` that says so); without it, an exclusive name that lives refuses. `host` names machine,
    boot and process namespace, `processes` the pids and start times that die with the session.
    """

    agent: str
    queues: tuple[str, ...]
    kinds: tuple[str, ...]
    exclusive: bool = False
    replace: bool = False
    term_seconds: float = SESSIONS.term_seconds
    host: str = ""
    processes: Mapping[str, object] = field(default_factory=dict)
    id: SessionId = field(default_factory=lambda: SessionId(new_id()))


@dataclass(frozen=True, slots=True)
class Session:
    """An open session; `replaced` is the one whose place it took, whose leases the next sweep returns."""

    id: SessionId
    agent: str
    epoch: int
    term_seconds: float
    replaced: SessionId | None = None


_LIVE = Statement(
    """
    SELECT CAST(id AS text) AS id, state, exclusive
    FROM testigo.session
    WHERE agent = :agent AND state IN ('open', 'draining')
    FOR UPDATE
    """
)

_EPOCH = Statement(
    """
    INSERT INTO testigo.agent AS a (name, epoch)
    VALUES (:agent, 1)
    ON CONFLICT (name) DO UPDATE SET epoch = a.epoch + 1
    RETURNING epoch
    """
)

_END = Statement(
    """
    WITH ended AS (
        UPDATE testigo.session
        SET state = :state
        WHERE id = CAST(:id AS uuid) AND state IN ('open', 'draining')
        RETURNING id
    )
    UPDATE testigo.session_profile p
    SET closed_at = now()
    FROM ended
    WHERE p.session_id = ended.id
    RETURNING 1
    """
)

_OPEN = Statement(
    """
    WITH opened AS (
        INSERT INTO testigo.session (id, agent, epoch, term_seconds, exclusive)
        VALUES (CAST(:id AS uuid), :agent, :epoch, :term_seconds, :exclusive)
        RETURNING id
    )
    INSERT INTO testigo.session_profile (session_id, queues, kinds, host, processes, opened_at)
    SELECT id, CAST(:queues AS text[]), CAST(:kinds AS text[]), :host, :processes, now()
    FROM opened
    """
)

_DRAIN = Statement(
    """
    UPDATE testigo.session
    SET state = 'draining'
    WHERE id = CAST(:id AS uuid) AND state IN ('open', 'draining')
    RETURNING 1
    """
)

_KNOWN = Statement("SELECT 1 FROM testigo.session WHERE id = CAST(:id AS uuid)")


def open_session(c: Connection, new: NewSession, *, action: Action) -> Session:
    """Open a session for an agent, and end the one whose place it takes (spec P-21, B-13).

    Raises `SessionBusy` while the agent's exclusive session lives, and while its session drains and
    `replace` was not asked for; `Conflict` for an id that another command opened; `Invalid` for a term
    that no holder could keep (spec P-19).
    """
    _check(new)
    asked = [new.agent, new.queues, new.kinds, new.exclusive, new.replace, new.term_seconds, new.host, new.processes]
    digest = digest_of(action, "open_session", asked)
    opened = exactly_once(c, action, digest, lambda: _open(c, new)).answer
    return Session(SessionId(opened["id"]), new.agent, opened["epoch"], new.term_seconds, opened["replaced"])


def drain_session(c: Connection, session_id: SessionId) -> None:
    """Let a session claim nothing more, and settle what it holds. Repeating it changes nothing."""
    fields.must_be_id(session_id, field="session")
    if not _DRAIN.rows(c, id=session_id) and not _KNOWN.rows(c, id=session_id):
        raise NotFound(f"There is no session {session_id}.", field="session")


def close_session(c: Connection, session_id: SessionId) -> None:
    """End a session. What it still holds is taken back by the next sweep, whoever sends it (spec P-18)."""
    fields.must_be_id(session_id, field="session")
    if not _END.rows(c, id=session_id, state="closed") and not _KNOWN.rows(c, id=session_id):
        raise NotFound(f"There is no session {session_id}.", field="session")


def _open(c: Connection, new: NewSession) -> dict[str, object]:
    epoch = _EPOCH.rows(c, agent=new.agent)[0].epoch  # its row lock lets one opening in at a time
    live = _LIVE.row(c, agent=new.agent)
    if live is not None:
        if not new.replace and (live.exclusive or new.exclusive or live.state == "draining"):
            raise SessionBusy(
                f"The agent {new.agent!r} has a session that is {live.state}.", field="agent", session=live.id
            )
        _END.rows(c, id=live.id, state="replaced")
    if _KNOWN.rows(c, id=new.id):
        raise Conflict(
            f"The session {new.id} was opened before, by another command.",
            field="session.id",
            remedy="Make a NewSession for each opening; resend one only with its own action.",
        )
    _OPEN.rows(
        c,
        id=new.id,
        agent=new.agent,
        epoch=epoch,
        term_seconds=new.term_seconds,
        exclusive=new.exclusive,
        queues=list(new.queues),
        kinds=list(new.kinds),
        host=new.host,
        processes=json.dumps(dict(new.processes)),
    )
    return {"id": new.id, "epoch": epoch, "replaced": live.id if live else None}


def _check(new: NewSession) -> None:
    fields.must_be_id(new.id, field="session.id")
    fields.name(new.agent, field="session.agent")
    for what, names in (("queues", new.queues), ("kinds", new.kinds)):
        _check_names(names, what)
    fields.seconds(new.term_seconds, field="session.term_seconds", zero=False)
    check_obligation(new.term_seconds, SESSIONS.stop_after_terms, SESSIONS.clock_drift, SESSIONS.kill_seconds)
    fields.flag(new.exclusive, field="session.exclusive")
    fields.flag(new.replace, field="session.replace")
    if new.host != "":
        fields.key(new.host, field="session.host")
    check_processes(new.processes)


def _check_names(names: Sequence[str], what: str) -> None:
    fields.sequence(names, field=f"session.{what}", most=LIMITS.page_max)
    for at, name in enumerate(names):
        fields.name(name, field=f"session.{what}[{at}]")
