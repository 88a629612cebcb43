"""A risk that was taken holds until its time, until it is taken back, or until what it exempts is gone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from testigo.errors import Invalid, RevisionMismatch, StateConflict
from testigo.rules.evidence.exemption import Exemption, ExemptionEnd, ExemptionState, grant, lapse, revoke, state

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
INSTANT = timedelta(microseconds=1)


def granted(**given: Any) -> Exemption:
    """An exemption of ten days."""
    return grant(None, 0, **{"reason": "r", "reviewer": "ada", "now": NOW, "expires_at": NOW + 10 * DAY, **given})


def test_it_is_active_until_its_time_and_not_a_moment_longer() -> None:
    """Acceptance expires, and what it exempted is open (field case R86)."""
    exemption = granted()
    end = NOW + 10 * DAY
    assert [state(exemption, at) for at in (NOW, end - INSTANT, end, end + DAY)] == [
        "active", "active", "expired", "expired",
    ]  # fmt: skip
    assert state(granted(expires_at=None), NOW + 10_000 * DAY) is ExemptionState.ACTIVE


def test_what_ended_stays_ended() -> None:
    """It is not in force again, whatever its expiry says, and keeps why it ended (spec D-23)."""
    for ended in (revoke(granted(), 1, now=NOW + DAY), lapse(granted(), now=NOW + DAY)):
        assert ended.revision == 2
        assert ended.ended_at == NOW + DAY
        assert state(ended, NOW + 2 * DAY) == state(ended, NOW + 20 * DAY) == str(ended.ended)
        assert lapse(ended, now=NOW + 3 * DAY) is ended
        with pytest.raises(StateConflict):
            revoke(ended, 2, now=NOW + 3 * DAY)


def test_what_expired_neither_lapses_nor_is_revoked() -> None:
    """It ended already, and says how."""
    exemption = granted()
    later = NOW + 11 * DAY
    assert lapse(exemption, now=later) is exemption
    with pytest.raises(StateConflict) as caught:
        revoke(exemption, 1, now=later)
    assert caught.value.facts["state"] == "expired"


@pytest.mark.parametrize("end", [None, *ExemptionEnd])
def test_a_risk_may_be_taken_again(end: ExemptionEnd | None) -> None:
    """Whatever became of the one before, the next revision is in force, and tells nothing of the end (spec D-23)."""
    before = granted()
    if end is ExemptionEnd.REVOKED:
        before = revoke(before, 1, now=NOW)
    elif end is ExemptionEnd.LAPSED:
        before = lapse(before, now=NOW)
    again = grant(before, before.revision, reason=" anew ", reviewer="bob", now=NOW + DAY)
    assert again == Exemption("anew", "bob", NOW + DAY, None, before.revision + 1)
    assert again.granted_at == NOW + DAY
    assert state(again, NOW + DAY) is ExemptionState.ACTIVE


@pytest.mark.parametrize("expected", [0, 2])
def test_nobody_overwrites_what_they_did_not_see(expected: int) -> None:
    """A grant and a revocation name the revision that was seen (spec D-17, D-23)."""
    with pytest.raises(RevisionMismatch) as caught:
        grant(granted(), expected, reason="r", reviewer="ada", now=NOW)
    assert caught.value.facts == {"revision": 1}
    with pytest.raises(RevisionMismatch):
        revoke(granted(), expected, now=NOW)
    with pytest.raises(RevisionMismatch):
        grant(None, 1, reason="r", reviewer="ada", now=NOW)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"reason": " "}, "reason"),
        ({"reason": None}, "reason"),
        ({"reviewer": ""}, "reviewer"),
        ({"expires_at": NOW}, "expires_at"),
        ({"expires_at": NOW - DAY}, "expires_at"),
        ({"expires_at": NOW + 366 * DAY + INSTANT}, "expires_at"),
        ({"expires_at": NOW.replace(tzinfo=None)}, "expires_at"),
        ({"now": "today"}, "now"),
    ],
)
def test_what_is_no_exemption_is_refused(given: dict[str, Any], field: str) -> None:
    """A reason, a reviewer, and an end that is ahead and not beyond a year (spec D-23)."""
    with pytest.raises(Invalid) as caught:
        granted(**given)
    assert caught.value.field == field
