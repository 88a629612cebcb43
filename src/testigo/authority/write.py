"""How decided moves are written: the jobs, their children, and what the streams tell of them.

Every command that is not on a hot path locks its jobs, decides by the rules, and hands the moves to
`write`. Locks are taken in one order everywhere: jobs by id, their children by id, level by level,
and the streams' heads last, in one statement with the jobs' update (spec P-08, P-25).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from testigo.authority.actions import Action, SessionAction, new_id
from testigo.authority.edges import FULFILLED, children_of, close, open_parents
from testigo.authority.jobs import LockedJob, lock
from testigo.rules import decide
from testigo.rules.decide import Inputs, Move, Policy
from testigo.rules.documents import Document
from testigo.rules.states import CLAIMABLE, TERMINAL
from testigo.rules.text import tidy
from testigo.rules.transitions import DETAIL, EventType
from testigo.store.sql import Statement, array

__all__ = ["Change", "error_text", "write"]


@dataclass(frozen=True, slots=True)
class Change:
    """One job's move, and what else is written with it; None leaves a document as it is.

    `data` is what the event tells besides the move itself. `due_at` sets a date where the move
    waits for one that was asked for, instead of for so many seconds.
    """

    job: LockedJob
    move: Move
    data: Mapping[str, object] = field(default_factory=dict)
    output: Document | None = None
    limitations: tuple[str, ...] | None = None
    error: str | None = None
    checkpoint: Document | None = None
    cost: float = 0.0
    due_at: datetime | None = None
    event_id: str = field(default_factory=new_id)
    actor: str | None = None
    action: str | None = None


# What ends gives up its lease, and so does what goes back to wait; what starts, or is only asked to
# stop, keeps it. The heads depend on the jobs' RETURNING, so that no head is held while a job is waited for.
_WRITE = Statement(
    """
    WITH input AS MATERIALIZED (
        SELECT *
        FROM unnest(
                 CAST(:ids AS uuid[]), CAST(:states AS testigo.job_state[]), CAST(:reasons AS text[]),
                 CAST(:waits AS double precision[]), CAST(:due_ats AS timestamptz[]),
                 CAST(:failures AS integer[]), CAST(:losses AS integer[]), CAST(:releases AS integer[]),
                 CAST(:epochs AS integer[]), CAST(:costs AS double precision[]), CAST(:outputs AS text[]),
                 CAST(:limitations AS text[]), CAST(:errors AS text[]), CAST(:checkpoints AS text[]),
                 CAST(:event_ids AS uuid[]), CAST(:types AS text[]), CAST(:data AS text[]),
                 CAST(:told AS boolean[]), CAST(:actors AS text[]), CAST(:actions AS text[])
             ) WITH ORDINALITY AS i (
                 id, state, reason, wait, due_at, failures, losses, releases, epochs, cost, output,
                 limitations, error, checkpoint, event_id, type, data, told, actor, action, n
             )
    ),
    moved AS (
        UPDATE testigo.job j
        SET state = i.state,
            reason = i.reason,
            revision = j.revision + 1,
            epoch = j.epoch + i.epochs,
            failures = j.failures + i.failures,
            losses = j.losses + i.losses,
            releases = j.releases + i.releases,
            waited_seconds = j.waited_seconds + coalesce(i.wait, 0),
            cost = j.cost + i.cost,
            due_at = coalesce(i.due_at, now() + i.wait * interval '1 second'),
            ready_at = CASE WHEN i.state IN ('ready', 'checkpointed') THEN now() ELSE j.ready_at END,
            lease_id = CASE WHEN i.state IN ('running', 'cancelling') THEN j.lease_id END,
            session_id = CASE WHEN i.state IN ('running', 'cancelling') THEN j.session_id END,
            grant_n = CASE WHEN i.state IN ('running', 'cancelling') THEN j.grant_n END,
            started_at = CASE WHEN i.state = 'running' THEN now() ELSE j.started_at END,
            output = coalesce(i.output, j.output),
            limitations = coalesce(CAST(i.limitations AS text[]), j.limitations),
            error = coalesce(i.error, j.error),
            checkpoint = coalesce(i.checkpoint, j.checkpoint),
            finished_at = CASE WHEN i.state IN ('succeeded', 'succeeded_degraded', 'permanent_failure',
                                                'cancelled', 'superseded') THEN now() END
        FROM input i
        WHERE j.id = i.id
        RETURNING j.id, j.stream, j.revision, i.event_id, i.type, i.data, i.told, i.actor, i.action, i.n
    ),
    head AS (
        INSERT INTO testigo.stream AS s (name, head, appended_at)
        SELECT stream, count(*), clock_timestamp()
        FROM moved
        WHERE told
        GROUP BY stream
        ORDER BY stream
        ON CONFLICT (name) DO UPDATE
            SET head = s.head + excluded.head, appended_at = greatest(s.appended_at, excluded.appended_at)
        RETURNING name, head, appended_at
    ),
    appended AS (
        INSERT INTO testigo.event (stream, sequence, id, type, subject, at, revision, actor, action, data)
        SELECT h.name, h.head + 1 - row_number() OVER (PARTITION BY h.name ORDER BY m.n DESC),
               m.event_id, m.type, m.id, h.appended_at, m.revision, m.actor, m.action, m.data
        FROM moved m JOIN head h ON h.name = m.stream
        WHERE m.told
        RETURNING 1
    )
    SELECT count(*) FROM appended
    """
)


def write(c: Connection, changes: Sequence[Change], *, action: Action | SessionAction) -> tuple[str, ...]:
    """Write these moves, those of the children that wait for them, and the events of all.

    Returns the queues in which there is work now that there was not before, each once.

    The jobs are locked by the caller; one that has two changes makes them in turn. Event ids are
    made with the changes: a command that is undone leaves none behind, and one that took effect is
    found by its receipt.
    """
    if not changes:
        return ()
    every = list(changes)
    ended = [change for change in changes if _ends_parent(change)]
    while ended:
        ended = _follow(c, ended, every)
    for turn in _turns(every):
        _WRITE.rows(c, **_columns(turn, action))
    last = {change.job.id: change for change in every}
    return tuple(sorted({change.job.queue for change in last.values() if change.move.target in CLAIMABLE}))


def error_text(code: str, message: str, detail: str = "") -> str:
    """What went wrong with a run, as its job keeps it."""
    return json.dumps({"code": tidy(code), "message": tidy(message), "detail": tidy(detail)}, ensure_ascii=False)


def _follow(c: Connection, ended: Sequence[Change], every: list[Change]) -> list[Change]:
    """Judge the children of the parents that ended; returns the changes that end parents in turn."""
    states = {change.job.id: change.move.target for change in ended}
    children = lock(c, children_of(c, states))
    if not children:
        return []
    broken: dict[str, list[Policy]] = {}
    for edge in close(c, states):
        if edge.closed not in FULFILLED:
            broken.setdefault(edge.child, []).append(edge.policy)
    decided = {change.job.id: change.move.target for change in every}
    followed = []
    for child_id, still_open in open_parents(c, children).items():
        child = children[child_id]
        position = replace(child.position, state=decided.get(child_id, child.state))
        move = decide.inputs(position, Inputs(still_open, broken.get(child_id, ())))
        if move is not None:
            followed.append(Change(child, move))
    every.extend(followed)
    return [change for change in followed if _ends_parent(change)]


def _turns(changes: Sequence[Change]) -> list[list[Change]]:
    """The changes in as few statements as possible: no statement changes one row twice."""
    turns: list[list[Change]] = []
    seen: Counter[str] = Counter()
    for change in changes:
        if seen[change.job.id] == len(turns):
            turns.append([])
        turns[seen[change.job.id]].append(change)
        seen[change.job.id] += 1
    return turns


def _ends_parent(change: Change) -> bool:
    return change.job.is_parent and change.move.target in TERMINAL


def _columns(changes: Iterable[Change], action: Action | SessionAction) -> dict[str, list[Any]]:
    rows = [(change, change.move, change.job) for change in changes]
    return {
        "ids": [job.id for _, _, job in rows],
        "states": [str(move.target) for _, move, _ in rows],
        "reasons": [move.reason for _, move, _ in rows],
        "waits": [move.wait_seconds for _, move, _ in rows],
        "due_ats": [change.due_at for change, _, _ in rows],
        "failures": [move.failures for _, move, _ in rows],
        "losses": [move.losses for _, move, _ in rows],
        "releases": [move.releases for _, move, _ in rows],
        "epochs": [move.epochs for _, move, _ in rows],
        "costs": [change.cost for change, _, _ in rows],
        "outputs": [change.output for change, _, _ in rows],
        "limitations": [None if change.limitations is None else array(change.limitations) for change, _, _ in rows],
        "errors": [change.error for change, _, _ in rows],
        "checkpoints": [change.checkpoint for change, _, _ in rows],
        "event_ids": [change.event_id for change, _, _ in rows],
        "types": [str(move.event) for _, move, _ in rows],
        "data": [_data(change) for change, _, _ in rows],
        "told": ["true" if _is_told(change) else "false" for change, _, _ in rows],
        "actors": [change.actor or action.actor for change, _, _ in rows],
        "actions": [change.action or action.id for change, _, _ in rows],
    }


def _is_told(change: Change) -> bool:
    return change.job.full_events or change.move.event not in DETAIL


def _data(change: Change) -> str:
    told = {**_moved(change), **change.data}
    return json.dumps({name: value for name, value in told.items() if value is not None}, separators=(",", ":"))


def _moved(change: Change) -> dict[str, object]:
    """What an event tells of the move itself; a request tells what was asked, not where it stands."""
    move, before = change.move, change.job.position
    if move.event is EventType.REQUESTED:
        return {}
    moved: dict[str, object] = {"state": str(move.target), "reason": move.reason, "wait_seconds": move.wait_seconds}
    if move.losses == 0:
        return moved
    return moved | {"losses": before.losses + move.losses, "crash_limit": before.crash_limit}
