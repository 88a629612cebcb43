"""An accepted risk that outlives one analysis: who took it, why, until when, and what ends it.

A project keeps at most one per analyser and fingerprint, beside the findings and never in them (spec D-23). It is in
force until it expires, is revoked, or a complete analysis no longer has what it exempts; should that come back, it
counts again until somebody takes the risk anew (field case R86). Time is an argument.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from testigo.errors import Invalid, RevisionMismatch, StateConflict
from testigo.rules import fields
from testigo.rules.discreet import discreet
from testigo.settings import EVIDENCE

__all__ = ["Exemption", "ExemptionEnd", "ExemptionState", "grant", "lapse", "revoke", "state"]


class ExemptionState(StrEnum):
    """What an exemption is at a point in time."""

    ACTIVE = "active"
    """The gate does not count what it exempts."""
    EXPIRED = "expired"
    """Its time is over."""
    REVOKED = "revoked"
    """Somebody took it back."""
    LAPSED = "lapsed"
    """What it exempts was gone."""


class ExemptionEnd(StrEnum):
    """What ended an exemption before its time."""

    REVOKED = "revoked"
    LAPSED = "lapsed"


@dataclass(frozen=True, slots=True)
class Exemption:
    """The exemption of one fingerprint; `expires_at` None is for ever, and `revision` counts its changes from 1."""

    reason: str
    reviewer: str
    granted_at: datetime
    expires_at: datetime | None = None
    revision: int = 1
    ended: ExemptionEnd | None = None
    ended_at: datetime | None = None


def state(exemption: Exemption, now: datetime) -> ExemptionState:
    """What it is at `now`. It is active from when it was granted until before `expires_at`; what ended stays ended."""
    if exemption.ended is not None:
        return ExemptionState(exemption.ended)
    if exemption.expires_at is not None and now >= exemption.expires_at:
        return ExemptionState.EXPIRED
    return ExemptionState.ACTIVE


def grant(
    before: Exemption | None,
    expected_revision: int,
    *,
    reason: str,
    reviewer: str,
    now: datetime,
    expires_at: datetime | None = None,
) -> Exemption:
    """The exemption that is granted at `now`, whatever became of the one `before`; without one, revision 0 is expected.

    Raises `RevisionMismatch`, and `Invalid` without a reason or for an expiry that is past or more than 366 days on.
    """
    revision = _expect(before, expected_revision)
    said = _reason(reason)
    fields.name(reviewer, field="reviewer")
    now = fields.moment(now, field="now")
    if expires_at is not None:
        expires_at = fields.moment(expires_at, field="expires_at")
        if not now < expires_at <= now + timedelta(days=EVIDENCE.exemption_days_max):
            raise Invalid(
                "an exemption expires after it is granted, and not much later",
                field="expires_at",
                limit=f"{EVIDENCE.exemption_days_max} days",
            )
    return Exemption(said, reviewer, now, expires_at, revision + 1)


def revoke(exemption: Exemption, expected_revision: int, *, now: datetime) -> Exemption:
    """The exemption after somebody took it back. Raises `RevisionMismatch`, and `StateConflict` unless it is active."""
    _expect(exemption, expected_revision)
    if (was := state(exemption, now)) is not ExemptionState.ACTIVE:
        raise StateConflict(
            f"The exemption is {was}, and not in force.", state=str(was), remedy="Look at the exemption as it is now."
        )
    return _ended(exemption, ExemptionEnd.REVOKED, now)


def lapse(exemption: Exemption, *, now: datetime) -> Exemption:
    """The exemption after a complete analysis without what it exempts; one that is not in force stays as it is."""
    if state(exemption, now) is not ExemptionState.ACTIVE:
        return exemption
    return _ended(exemption, ExemptionEnd.LAPSED, now)


def _ended(exemption: Exemption, end: ExemptionEnd, now: datetime) -> Exemption:
    return replace(exemption, ended=end, ended_at=now, revision=exemption.revision + 1)


def _expect(before: Exemption | None, expected_revision: int) -> int:
    expected = fields.whole(expected_revision, field="expected_revision", low=0, high=fields.INTEGER_MAX)
    revision = before.revision if before else 0
    if revision != expected:
        raise RevisionMismatch(
            f"The exemption is at revision {revision}, not {expected}.",
            remedy="Look at the exemption as it is now, and decide again: somebody changed it since you saw it.",
            revision=revision,
        )
    return revision


def _reason(reason: object) -> str:
    said = discreet(reason).strip() if isinstance(reason, str) else ""
    if not said:
        raise Invalid("an exemption needs a reason", field="reason", limit="at least 1 character")
    return said
