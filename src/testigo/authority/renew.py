"""renew: one beat for a whole session, whatever the number of its leases (spec P-16, P-18).

It writes its session's narrow row, by compare-and-set from beat n-1 to n, and nothing else; it waits
for no stream and no publication. It needs no receipt: a beat that is n already is success.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection

from testigo.authority.actions import JobId, SessionId
from testigo.authority.start import Held
from testigo.errors import Conflict, SessionReplaced
from testigo.rules import fields
from testigo.store.command import single_statement
from testigo.store.sql import Statement, array, id_array

__all__ = ["Renewed", "renew"]


class Renewed(NamedTuple):
    """What a holder learns from a beat: which leases it lost, and which it shall give up for a cancel.

    They are named as the holder has named them, lease and epoch included: by the time it reads of a lost
    one, it may hold a later lease of the same job.
    """

    draining: bool
    lost: tuple[Held, ...]
    cancelling: tuple[Held, ...]


# As with settle, the planner is left one way to the jobs, by their ids.
_RENEW = Statement(
    """
    WITH beat AS (
        UPDATE testigo.session
        SET beat = :beat, low_water = greatest(low_water, :low_water)
        WHERE id = CAST(:session AS uuid) AND epoch = :epoch AND state IN ('open', 'draining')
          AND beat IN (:beat - 1, :beat)
        RETURNING state
    ),
    told AS (
        SELECT CAST(h.id AS text) AS id, CAST(h.lease_id AS text) AS lease_id, h.epoch, j.id IS NULL AS lost
        FROM (SELECT *, CAST(:session AS uuid) AS session_id
              FROM unnest(CAST(:ids AS uuid[]), CAST(:leases AS uuid[]), CAST(:epochs AS integer[]))
                       AS i(id, lease_id, epoch)
              LIMIT :limit) AS h
             LEFT JOIN testigo.job j
                 ON j.id = ANY (ARRAY[h.id]) AND j.lease_id IS NOT DISTINCT FROM h.lease_id
                    AND j.epoch IS NOT DISTINCT FROM h.epoch
                    AND j.session_id IS NOT DISTINCT FROM h.session_id
        WHERE j.id IS NULL OR j.state = 'cancelling'
    )
    SELECT beat.state, told.id, told.lease_id, told.epoch, told.lost
    FROM beat LEFT JOIN told ON true
    """
)

_STATE = Statement("SELECT state, epoch, beat FROM testigo.session WHERE id = CAST(:session AS uuid)")


@single_statement
def renew(
    c: Connection, session_id: SessionId, leases: Sequence[Held], *, epoch: int, beat: int, low_water: int
) -> Renewed:
    """Raise the session's beat to `beat`, and learn what became of the leases it holds.

    `low_water` is the n below which no receipt of this session will be asked for again. Raises
    `SessionReplaced` when the session is not open any more, and `Conflict` for a beat out of turn.
    """
    fields.must_be_id(session_id, field="session")
    fields.whole(epoch, field="epoch", low=0, high=fields.INTEGER_MAX)
    fields.whole(beat, field="beat", low=1, high=fields.BIGINT_MAX)
    fields.whole(low_water, field="low_water", low=0, high=fields.BIGINT_MAX)
    for at, lease in enumerate(leases):
        fields.fence(*lease, field=f"leases[{at}]")
    parameters = {
        "session": session_id,
        "epoch": epoch,
        "beat": beat,
        "low_water": low_water,
        "ids": id_array([held.job_id for held in leases]),
        "leases": id_array([held.lease_id for held in leases]),
        "epochs": array([held.epoch for held in leases]),
        "limit": max(1, len(leases)),
    }
    rows = _RENEW.fetch(c, parameters)
    if not rows:
        _refuse(c, session_id, epoch, beat)
    told = [(Held(JobId(row[1]), row[2], row[3]), row[4]) for row in rows if row[1] is not None]
    return Renewed(
        draining=rows[0][0] == "draining",
        lost=tuple(lease for lease, lost in told if lost),
        cancelling=tuple(lease for lease, lost in told if not lost),
    )


def _refuse(c: Connection, session_id: SessionId, epoch: int, beat: int) -> None:
    row = _STATE.row(c, session=session_id)
    if row is not None and row.state in ("open", "draining") and row.epoch == epoch:
        raise Conflict(f"The session's beat is {row.beat}; it cannot become {beat}.", field="beat", beat=row.beat)
    state = row.state if row else "unknown"
    raise SessionReplaced(f"The session is {state}.", session=session_id, state=state)
