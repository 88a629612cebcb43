"""settle: end runs as their holder reports, in one statement for any batch (spec D-03, B-13, P-02, P-09).

The fast path ends what succeeded under a live lease, at the revision that the holder knew, with
nobody waiting for it. Every other row is answered `deferred`, which is no acceptance, and is
settled by `settle_deferred` in a transaction of its own that locks, reads and decides again: a
failure, a job whose cancel was requested, a parent, a lease that is lost. The lease stays owned
and renewed until that answer is known.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection

from testigo.authority import submissions
from testigo.authority.actions import JobId, SessionAction, new_id
from testigo.authority.claim import Lease
from testigo.authority.receipts import digest_of, once, outlived
from testigo.authority.submissions import NewJob
from testigo.errors import Invalid
from testigo.rules import fields
from testigo.rules.documents import Document, must_be_document
from testigo.rules.outcomes import Block, Degrade, Fail, Lose, Outcome, Release, RunFacts, Succeed, Yield
from testigo.rules.states import State
from testigo.settings import LIMITS
from testigo.store.command import single_statement
from testigo.store.sql import Statement, array, id_array

__all__ = ["Settled", "Settlement", "check_each", "content", "settle"]

NOTHING_KNOWN = RunFacts()


class Settlement(NamedTuple):
    """One run's end, as its holder reports it.

    The lease's `revision` is the holder's last knowledge of the job: only the fast path's guess
    (spec P-15). `facts` are what the ending event tells of the run besides its outcome (spec P-27).
    `children` are submitted with the settle, in its transaction; one that names this job among its
    parents waits for it.
    """

    lease: Lease
    outcome: Outcome
    facts: RunFacts = NOTHING_KNOWN
    cost: float = 0.0
    children: tuple[NewJob, ...] = ()

    @property
    def job_id(self) -> JobId:
        """The job whose run ended."""
        return self.lease.job_id


@dataclass(frozen=True, slots=True)
class Settled:
    """The receipt of a settle: which rows are accepted, and which must go through `settle_deferred`.

    Rows are named by their place in the batch, from 0.
    """

    accepted: frozenset[int]
    deferred: tuple[int, ...]
    replayed: bool


# The planner must find the rows by their ids, whatever it knows of the table, and has no other way:
# `id = ANY (ARRAY[…])` is no equality that a join could hash or walk an index by, no more than IS NOT
# DISTINCT FROM, which also keeps it from the small index of leased jobs, and no state is tested. A
# parent that is marked while this waits for its row is judged again in its newest version, and missed.
# LIMIT hides the number of rows.
_SETTLE = Statement(
    """
    WITH done AS (
        UPDATE testigo.job j
        SET state = i.state,
            revision = j.revision + 1,
            cost = j.cost + i.cost,
            output = i.output,
            limitations = CAST(i.limitations AS text[]),
            lease_id = NULL,
            session_id = NULL,
            grant_n = NULL,
            finished_at = now()
        FROM (SELECT *, CAST(:session AS uuid) AS session_id
              FROM ROWS FROM (
                       unnest(CAST(:ids AS uuid[]), CAST(:leases AS uuid[]), CAST(:epochs AS integer[]),
                              CAST(:revisions AS integer[]), CAST(:states AS testigo.job_state[]),
                              CAST(:costs AS double precision[]), CAST(:outputs AS text[]),
                              CAST(:limitations AS text[]), CAST(:event_ids AS uuid[]), CAST(:places AS integer[])),
                       json_array_elements(CAST(:facts AS json))
                   ) AS i(id, lease_id, epoch, revision, state, cost, output, limitations, event_id, place, facts)
              LIMIT :limit) AS i
        WHERE j.id = ANY (ARRAY[i.id])
          AND j.lease_id IS NOT DISTINCT FROM i.lease_id
          AND j.session_id IS NOT DISTINCT FROM i.session_id
          AND j.epoch IS NOT DISTINCT FROM i.epoch
          AND j.revision IS NOT DISTINCT FROM i.revision
          AND NOT j.is_parent
          AND (SELECT s.state IN ('open', 'draining') AND s.low_water <= :n
               FROM testigo.session s
               WHERE s.id = CAST(:session AS uuid))
        RETURNING j.id, j.stream, j.state, j.revision, i.event_id, i.facts, i.place
    ),
    head AS (
        INSERT INTO testigo.stream AS s (name, head, appended_at)
        SELECT stream, count(*), clock_timestamp()
        FROM done
        GROUP BY stream
        ORDER BY stream
        ON CONFLICT (name) DO UPDATE
            SET head = s.head + excluded.head, appended_at = greatest(s.appended_at, excluded.appended_at)
        RETURNING name, head, appended_at
    ),
    appended AS (
        INSERT INTO testigo.event (stream, sequence, id, type, subject, at, revision, actor, action, data)
        SELECT h.name, h.head + 1 - row_number() OVER (PARTITION BY h.name ORDER BY d.place DESC),
               d.event_id, CASE d.state WHEN 'succeeded' THEN 'job.completed' ELSE 'job.degraded' END,
               d.id, h.appended_at, d.revision, :actor, :action, d.facts
        FROM done d JOIN head h ON h.name = d.stream
        RETURNING 1
    )
    INSERT INTO testigo.session_receipt (session_id, n, ordinal, digest, answer)
    SELECT s.id, :n, 0, :digest, (SELECT coalesce(json_agg(place), '[]') FROM done)
    FROM testigo.session s, (SELECT count(*) FROM appended) AS told
    WHERE s.id = CAST(:session AS uuid) AND s.state IN ('open', 'draining') AND s.low_water <= :n
    RETURNING answer
    """
)


@single_statement
def settle(c: Connection, settlements: Sequence[Settlement], *, action: SessionAction) -> Settled:
    """Accept the ends of these runs; rows that miss the fast path are answered `deferred`.

    Raises `Invalid` for bad input (the whole batch, before anything is written), `SessionReplaced`
    when the session is not open (its results are then kept by `settle_deferred`), `ReceiptExpired`
    for an n that is past.
    """
    _check(settlements)
    places = [place for place, s in enumerate(settlements) if isinstance(s.outcome, _FAST) and not s.children]
    # Rows are locked as they come here: in the order of their ids, as everybody locks jobs (P-08).
    places.sort(key=lambda place: settlements[place].lease.job_id)
    columns = _columns([settlements[place] for place in places]) | {"places": array(places)}
    reported = [columns[name] for name in _REPORTED]
    rest = [content(settlements[place]) for place in sorted(set(range(len(settlements))).difference(places))]
    digest = digest_of(action, "settle", [*reported, rest])
    receipt = once(c, action, digest, lambda: _send(c, columns, action, digest)) or outlived(c, action, digest)
    accepted = frozenset(receipt.answer)
    deferred = tuple(place for place in range(len(settlements)) if place not in accepted)
    return Settled(accepted, deferred, receipt.replayed)


def content(settlement: Settlement) -> tuple[object, ...]:
    """What the holder reported of one run, for the digest of the command."""
    lease = settlement.lease
    children = submissions.content(settlement.children)
    return (lease.job_id, lease.lease_id, lease.epoch, repr(settlement.outcome), settlement.cost, children)


_FAST = (Succeed, Degrade)

_REPORTED = ("ids", "leases", "epochs", "states", "costs", "outputs", "limitations", "places")
"""The columns of the fast rows that hold what was reported: all but guesses, ids made here, and facts."""


def _send(c: Connection, columns: Mapping[str, Any], action: SessionAction, digest: str) -> str | None:
    frame = {"session": action.session_id, "n": action.n, "digest": digest, "limit": LIMITS.batch_max}
    rows = _SETTLE.fetch(c, {**columns, **frame, "actor": action.actor, "action": action.id})
    return rows[0][0] if rows else None


def _columns(rows: Sequence[Settlement]) -> dict[str, str]:
    """The rows as arrays: turned by `zip`, which takes less than to ask each row for each member."""
    leases, outcomes, _, costs, _ = zip(*rows, strict=True) if rows else [()] * 5
    ids, _, _, lease_ids, epochs, revisions, *_ = zip(*leases, strict=True) if rows else [()] * 6
    return {
        "ids": id_array(ids),
        "leases": id_array(lease_ids),
        "epochs": array(epochs),
        "revisions": array(revisions),
        "states": array([State.SUCCEEDED if isinstance(o, Succeed) else State.SUCCEEDED_DEGRADED for o in outcomes]),
        "costs": array(costs),
        "outputs": array([outcome.output for outcome in outcomes]),
        "limitations": array([array(o.limitations) if isinstance(o, Degrade) else None for o in outcomes]),
        "event_ids": id_array([new_id() for _ in rows]),
        "facts": f"[{','.join([_told(s) for s in rows])}]",
    }


def _told(s: Settlement) -> str:
    """What the event tells that ends this run, as a JSON object."""
    more = f',"limitations":{json.dumps(s.outcome.limitations)}' if isinstance(s.outcome, Degrade) else ""
    known = "" if s.facts is NOTHING_KNOWN else s.facts.text()
    return f'{{"epoch":{s.lease.epoch}{known}{more}}}'


def _check(settlements: Sequence[Settlement]) -> None:
    if not 1 <= len(settlements) <= LIMITS.batch_max:
        raise Invalid(
            f"A batch of {len(settlements)} rows.", field="settlements", limit=f"1 to {LIMITS.batch_max} rows"
        )
    check_each(settlements, "settlements")
    if len({s.lease.job_id for s in settlements}) < len(settlements):
        raise Invalid("A job occurs twice in the batch.", field="settlements", remedy="Settle each run once.")


def check_each(settlements: Sequence[Settlement], of: str) -> None:
    """Refuse the first of these ends that breaks a limit, by its place and field (`of[3].cost`)."""
    are_plain = _are_plain(settlements)
    for at, settlement in enumerate(settlements):
        try:
            if not are_plain:
                _check_end(settlement)
            if settlement.facts is not NOTHING_KNOWN:
                settlement.facts.check()
        except Invalid as error:
            error.field = f"{of}[{at}].{error.field}"
            raise


def _are_plain(settlements: Sequence[Settlement]) -> bool:
    """Whether all are plain successes without a fault: nearly every batch is, and is told in half the time."""
    if not settlements:
        return True
    leases, outcomes, _, costs, children = zip(*settlements, strict=True)
    ids, _, _, lease_ids, epochs, revisions, *_ = zip(*leases, strict=True)
    return (
        {*map(type, outcomes)} == {Succeed}
        and {type(outcome.output) for outcome in outcomes} == {Document}
        and {*map(type, costs)} == {float}
        and not any(costs)
        and not any(children)
        and {*map(type, epochs), *map(type, revisions)} == {int}
        and min(*epochs, *revisions) >= 0
        and max(*epochs, *revisions) <= fields.INTEGER_MAX
        and fields.are_ids(ids)
        and fields.are_ids(lease_ids)
    )


def _check_end(settlement: Settlement) -> None:
    lease = settlement.lease
    fields.must_be_id(lease.job_id, field="lease.job_id")
    fields.must_be_id(lease.lease_id, field="lease.lease_id")  # SQL finds one that is None where nobody holds one
    fields.whole(lease.epoch, field="lease.epoch", low=0, high=fields.INTEGER_MAX)
    fields.whole(lease.revision, field="lease.revision", low=0, high=fields.INTEGER_MAX)
    fields.cost(settlement.cost, field="cost")
    if settlement.children:
        submissions.check(settlement.children)
    match settlement.outcome:
        case Succeed(output):
            must_be_document(output, field="output")
        case Degrade(output, limitations):
            must_be_document(output, field="output")
            _check_limitations(limitations)
        case Fail(wait_seconds=wait):
            if wait is not None:
                fields.seconds(wait, field="wait_seconds")
        case Yield(checkpoint):
            must_be_document(checkpoint, field="checkpoint")
        case Block(checkpoint=kept) | Release(checkpoint=kept):
            if kept is not None:
                must_be_document(kept, field="checkpoint")
        case Lose():
            pass
        case _:
            raise Invalid("An outcome is Succeed, Degrade, Fail, Block, Yield, Release or Lose.", field="outcome")


def _check_limitations(limitations: Sequence[str]) -> None:
    fields.sequence(limitations, field="limitations", most=LIMITS.page_max)
    if not limitations:
        raise Invalid("A degraded outcome names its limitations.", field="limitations")
    for n, limitation in enumerate(limitations):
        fields.name(limitation, field=f"limitations[{n}]")
