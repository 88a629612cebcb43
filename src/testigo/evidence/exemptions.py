"""exempt and end_exemption: a risk that a project takes, beside its findings and never in them (spec D-23; R86)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row

from testigo.authority.actions import Action
from testigo.authority.read import Cursor, Page
from testigo.authority.read.pages import Listing, a_name, check_limit
from testigo.authority.receipts import digest_of, exactly_once
from testigo.errors import EvidenceInvalid, NotFound
from testigo.evidence.collection import lock_latest, renew
from testigo.evidence.model import Exempted, Identity
from testigo.evidence.projects import hold
from testigo.rules import fields
from testigo.rules.discreet import discreet
from testigo.rules.evidence.exemption import Exemption, ExemptionEnd, grant, revoke, state
from testigo.rules.evidence.finding import FINGERPRINT
from testigo.rules.evidence.gate import Verdict
from testigo.rules.evidence.occurrence import MOVES
from testigo.store.command import single_statement
from testigo.store.sql import Statement

__all__ = ["ExemptionSet", "end_exemption", "exempt", "exempted", "exemptions", "lapse_exemptions"]


@dataclass(frozen=True, slots=True)
class ExemptionSet:
    """The receipt of a grant or an end: the exemption's revision, and the gate of the newest published analysis."""

    project: str
    identity: Identity
    revision: int
    verdict: Verdict | None
    replayed: bool


_NOW = Statement("SELECT now() AS now")

_READ = Statement(
    """
    SELECT *
    FROM testigo.exemption
    WHERE project = :project AND analyser = :analyser AND fingerprint = :fingerprint
    """
)

# The history is told by the same statement.
_WRITE = Statement(
    """
    WITH written AS (
        INSERT INTO testigo.exemption (project, analyser, fingerprint, revision, granted_at, expires_at, ended_at,
                                       ended, reason, reviewer)
        VALUES (:project, :analyser, :fingerprint, :revision, :granted_at, :expires_at, :ended_at, :ended, :reason,
                :reviewer)
        ON CONFLICT (project, analyser, fingerprint) DO UPDATE
            SET (revision, granted_at, expires_at, ended_at, ended, reason, reviewer)
                = (excluded.revision, excluded.granted_at, excluded.expires_at, excluded.ended_at, excluded.ended,
                   excluded.reason, excluded.reviewer)
        RETURNING revision, expires_at
    )
    INSERT INTO testigo.exemption_change (project, analyser, fingerprint, revision, happened, reason, actor, action, at,
                                          expires_at)
    SELECT :project, :analyser, :fingerprint, revision, :happened, :said, :actor, :action, now(), expires_at
    FROM written
    """
)

# Only what vanished by this very analysis, and only what is in force: the few exemptions are looked at, not the moves.
_LAPSE = Statement(
    """
    WITH lapsed AS (
        UPDATE testigo.exemption e
        SET ended = 'lapsed', ended_at = now(), revision = revision + 1
        WHERE e.project = :project AND e.ended IS NULL AND (e.expires_at IS NULL OR e.expires_at > now())
          AND EXISTS (SELECT
                      FROM testigo.occurrence_move m
                      WHERE m.project = e.project AND m.analyser = e.analyser AND m.fingerprint = e.fingerprint
                        AND m.n = :n AND m.happened = ANY (CAST(:lapsing AS text[])))
        RETURNING analyser, fingerprint, revision, expires_at
    )
    INSERT INTO testigo.exemption_change (project, analyser, fingerprint, revision, happened, reason, actor, action, at,
                                          expires_at)
    SELECT :project, analyser, fingerprint, revision, 'lapsed', '', 'system', :action, now(), expires_at
    FROM lapsed
    """
)

_LIST = Statement(
    """
    SELECT *, now() AS now
    FROM testigo.exemption
    WHERE project = :project AND (analyser, fingerprint) > (:analyser, :fingerprint)
    ORDER BY analyser, fingerprint
    LIMIT :limit + 1
    """
)


def exempt(
    c: Connection,
    project: str,
    identity: Identity,
    *,
    reason: str,
    expected_revision: int = 0,
    expires_at: datetime | None = None,
    action: Action,
) -> ExemptionSet:
    """Take the risk of a fingerprint in a project, until it expires, is taken back or is not found any more.

    Without an earlier exemption revision 0 is expected; whatever became of one, it may be granted anew. The newest
    published analysis is evaluated anew. Raises `NotFound` for an unknown project, `RevisionMismatch` when somebody
    changed it since it was seen, and `Invalid` without a reason or for an expiry that cannot be.
    """
    content = [reason, expected_revision, expires_at]

    def change(before: Exemption | None, now: datetime) -> Exemption:
        return grant(before, expected_revision, reason=reason, reviewer=action.actor, now=now, expires_at=expires_at)

    return _changed(c, project, identity, "granted", content, change, "", action)


def end_exemption(
    c: Connection, project: str, identity: Identity, *, expected_revision: int, reason: str = "", action: Action
) -> ExemptionSet:
    """Take an exemption back: what it exempts counts again, and the newest published analysis is evaluated anew.

    Raises `NotFound` for a project or fingerprint without one, `RevisionMismatch`, and `StateConflict` for one that is
    not in force.
    """
    said = discreet(reason).strip()

    def change(before: Exemption | None, now: datetime) -> Exemption:
        if before is None:
            raise NotFound("There is no exemption of this fingerprint.", field="fingerprint")
        return revoke(before, expected_revision, now=now)

    return _changed(c, project, identity, "revoked", [expected_revision, reason], change, said, action)


@single_statement
def exemptions(c: Connection, project: str, *, after: Cursor | None = None, limit: int = 100) -> Page[Exempted]:
    """The exemptions of a project, those that ended too, in the order of analysers and fingerprints."""
    fields.name(project, field="project")
    check_limit(limit)
    listing = Listing("exemptions", (project,), (a_name, a_name))
    analyser, fingerprint = listing.position(after, ("", ""))
    rows = _LIST.rows(c, project=project, analyser=analyser, fingerprint=fingerprint, limit=limit)
    return listing.page([(exempted(row, row.now), (row.analyser, row.fingerprint)) for row in rows], limit)


def lapse_exemptions(c: Connection, project: str, n: int, action: str) -> None:
    """End the exemptions of what vanished by the project's `n`th analysis, as a part of its publication (R86)."""
    lapsing = [row.happened for row in MOVES if row.lapses]
    _LAPSE.rows(c, project=project, n=n, lapsing=lapsing, action=action)


def exempted(row: Row[Any], now: datetime) -> Exempted:
    """An exemption's row as readings tell it."""
    kept = _exemption(row)
    return Exempted(
        project=row.project,
        identity=Identity(row.analyser, row.fingerprint),
        state=state(kept, now),
        reason=kept.reason,
        reviewer=kept.reviewer,
        granted_at=kept.granted_at,
        expires_at=kept.expires_at,
        revision=kept.revision,
        ended_at=kept.ended_at,
    )


def _changed(
    c: Connection,
    project: str,
    identity: Identity,
    happened: str,
    content: list[object],
    change: Callable[[Exemption | None, datetime], Exemption],
    said: str,
    action: Action,
) -> ExemptionSet:
    fields.name(project, field="project")
    fields.name(identity.analyser, field="analyser")
    if not FINGERPRINT.fullmatch(str(identity.fingerprint)):
        raise EvidenceInvalid("a digest is needed", field="fingerprint", limit="sha256: and 64 hex digits")
    digest = digest_of(action, f"evidence.exemption.{happened}", [project, list(identity), *content])
    who = {"project": project, "analyser": identity.analyser, "fingerprint": identity.fingerprint}

    def body() -> object:
        hold(c, project, make=False)
        (clock,) = _NOW.rows(c)
        row = _READ.row(c, **who)
        made = change(None if row is None else _exemption(row), clock.now)
        _WRITE.rows(
            c,
            **who,
            revision=made.revision,
            granted_at=made.granted_at,
            expires_at=made.expires_at,
            ended_at=made.ended_at,
            ended=None if made.ended is None else str(made.ended),
            reason=made.reason,
            reviewer=made.reviewer,
            happened=happened,
            said=said or made.reason,
            actor=action.actor,
            action=action.id,
        )
        latest = lock_latest(c, project)
        return [made.revision, None if latest is None else renew(c, latest.id)[1]]

    receipt = exactly_once(c, action, digest, body)
    revision, verdict = receipt.answer
    return ExemptionSet(project, identity, revision, None if verdict is None else Verdict(verdict), receipt.replayed)


def _exemption(row: Row[Any]) -> Exemption:
    return Exemption(
        reason=row.reason,
        reviewer=row.reviewer,
        granted_at=row.granted_at,
        expires_at=row.expires_at,
        revision=row.revision,
        ended=None if row.ended is None else ExemptionEnd(row.ended),
        ended_at=row.ended_at,
    )
