"""preview and begin: what an operation would be for, and its freezing.

What is frozen is which jobs, and what they were at that moment: whatever is submitted or changes after it is
not meant. An operation is a row, its jobs are rows of their own, and nothing of it is in anybody's memory.
"""

from __future__ import annotations

from sqlalchemy import Connection

from testigo.authority.actions import Action, JobId, new_id
from testigo.authority.read import Count, Filter, jobs
from testigo.authority.read.pages import FROM_NEWEST
from testigo.authority.read.walk import over, source_of
from testigo.authority.receipts import digest_of, exactly_once
from testigo.errors import Conflict, Invalid
from testigo.operations.model import Operation, OperationId, Preview, Selection, Verb
from testigo.operations.read import told
from testigo.operations.selection import narrowed, to_text
from testigo.rules import fields
from testigo.rules.discreet import discreet
from testigo.settings import LIMITS
from testigo.store.sql import Statement

__all__ = ["begin", "preview"]

_SAMPLE = 5

# `once`: what was done again, or superseded, is not done again by what it left behind.
_COUNT = over(
    """
    SELECT count(*) FILTER (WHERE w.fit) AS n, max(w.n) AS walked,
           (array_agg(CAST(w.id AS text) ORDER BY w.id DESC) FILTER (WHERE w.fit))[1 : 5] AS sample
    FROM (SELECT w.id, w.n,
                 w.wanted AND NOT (:once AND EXISTS (SELECT FROM testigo.successor s WHERE s.job_id = w.id)) AS fit
          FROM ($walk) AS w) AS w
    """
)

_BEGIN = Statement(
    """
    INSERT INTO testigo.operation (id, verb, selection, reason, actor, action, began_at, advanced_at, next_at,
                                   state, complete, total)
    VALUES (CAST(:id AS uuid), :verb, :selection, :reason, :actor, :action, now(), now(), now(), 'running',
            true, 0)
    ON CONFLICT (id) DO NOTHING
    RETURNING 1
    """
)

# The oldest first, as they were submitted. The walk is done whole before anything is kept of it.
_FREEZE = over(
    """
    WITH walked AS MATERIALIZED (
        SELECT w.id, w.n,
               w.wanted AND NOT (:once AND EXISTS (SELECT FROM testigo.successor s WHERE s.job_id = w.id)) AS fit
        FROM ($walk) AS w
    ),
    chosen AS MATERIALIZED (
        SELECT id FROM walked WHERE fit ORDER BY id DESC LIMIT :most
    ),
    frozen AS (
        INSERT INTO testigo.operation_item (operation_id, n, job_id, revision)
        SELECT CAST(:id AS uuid), row_number() OVER (ORDER BY h.id), h.id, j.revision
        FROM chosen h
             CROSS JOIN LATERAL (SELECT j.revision FROM testigo.job j WHERE j.id = h.id OFFSET 0) AS j
        RETURNING 1
    )
    SELECT (SELECT count(*) FROM frozen) AS total,
           coalesce((SELECT max(n) FROM walked), 0) AS walked,
           (SELECT count(*) FROM walked WHERE fit) AS found
    """
)

# What is named is frozen whatever it is, or was: whoever named it is told what became of each.
_FREEZE_NAMED = Statement(
    """
    WITH frozen AS (
        INSERT INTO testigo.operation_item (operation_id, n, job_id, revision)
        SELECT CAST(:id AS uuid), row_number() OVER (ORDER BY named.id), named.id, coalesce(j.revision, 0)
        FROM unnest(CAST(:ids AS uuid[])) AS named(id)
             LEFT JOIN LATERAL (SELECT j.revision FROM testigo.job j WHERE j.id = named.id OFFSET 0) AS j ON true
        RETURNING 1
    )
    SELECT count(*) AS total, 0 AS walked, count(*) AS found FROM frozen
    """
)

_FROZEN = Statement(
    """
    UPDATE testigo.operation
    SET total = :total,
        complete = :complete,
        state = CASE WHEN :total > 0 THEN 'running' ELSE 'done' END,
        ended_at = CASE WHEN :total > 0 THEN NULL ELSE now() END
    WHERE id = CAST(:id AS uuid)
    """
)


def preview(c: Connection, verb: Verb, selection: Selection) -> Preview:
    """What an operation would be for: the jobs that qualify for the verb now. Nothing is changed.

    Counted are those among the newest `LIMITS.walk_rows` jobs, for somebody waits for it; `begin` looks at more.
    Without states, a retry and a forget are for what has failed for good and has no successor; a retry is for nothing
    that has one, whatever states are asked for. Raises `Invalid` for states in which no job is fit for the verb.
    """
    fields.member(verb, Verb, field="verb")
    wanted = narrowed(verb, selection)
    walk = LIMITS.walk_rows
    row = _COUNT[source_of(c, wanted, walk)].rows(c, **_asked(verb, wanted), walk=walk)[0]
    sample = jobs(c, Filter(ids=tuple(map(JobId, row.sample))), limit=_SAMPLE).items if row.sample else ()
    complete = (row.walked or 0) < walk
    return Preview(Count(row.n, not complete), sample, complete)


def begin(
    c: Connection,
    verb: Verb,
    selection: Selection,
    *,
    reason: str,
    action: Action,
    operation_id: OperationId | None = None,
) -> Operation:
    """Freeze the jobs of a selection, the newest 100,000 at most, as an operation that `advance` does.

    The events of its jobs name the action's actor. Jobs that are named are all frozen; of a filter, those that
    qualify for the verb, as `preview` says. Raises `Invalid` as `preview` does, and for an empty reason; `Conflict`
    for an id that another operation has.
    """
    fields.member(verb, Verb, field="verb")
    if not discreet(reason).strip():
        raise Invalid("Say why: whoever looks at these jobs later will want to know.", field="reason")
    wanted = narrowed(verb, selection)
    kept = to_text(None if selection.ids else wanted)
    digest = digest_of(action, "operations.begin", [str(verb), kept, list(selection.ids), reason])
    made = operation_id or OperationId(new_id())
    fields.must_be_id(made, field="operation_id")
    words = {"selection": kept, "reason": discreet(reason)}
    receipt = exactly_once(c, action, digest, lambda: _begin(c, made, verb, wanted, words, action))
    return told(c, OperationId(receipt.answer), replayed=receipt.replayed)


def _begin(
    c: Connection, made: OperationId, verb: Verb, wanted: Filter, words: dict[str, str], action: Action
) -> OperationId:
    if not _BEGIN.rows(c, id=made, verb=str(verb), actor=action.actor, action=action.id, **words):
        raise Conflict(f"There is an operation {made} already.", field="operation_id")
    walk = LIMITS.operation_walk_rows
    if wanted.ids:
        (row,) = _FREEZE_NAMED.rows(c, id=made, ids=wanted.ids)
    else:
        freeze = _FREEZE[source_of(c, wanted, walk)]
        (row,) = freeze.rows(c, **_asked(verb, wanted), id=made, walk=walk, most=LIMITS.operation_jobs_max)
    _FROZEN.rows(c, id=made, total=row.total, complete=row.walked < walk and row.found == row.total)
    return made


def _asked(verb: Verb, wanted: Filter) -> dict[str, object]:
    return {**wanted.parameters(), **wanted.sets(), "before": FROM_NEWEST[0], "once": verb is Verb.RETRY}
