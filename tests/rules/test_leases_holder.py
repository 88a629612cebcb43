"""The holder stops itself before anybody may call it dead."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testigo.errors import Invalid
from testigo.rules.leases import Holder, check_obligation
from testigo.settings import SESSIONS


def test_the_defaults_keep_the_obligation() -> None:
    """What ships is safe, from the shortest term on (spec P-19)."""
    check_obligation(SESSIONS.term_seconds)
    check_obligation(SESSIONS.term_seconds_min)
    check_obligation(3600.0)


@pytest.mark.parametrize(
    ("term", "stop_after", "drift", "kill", "kept"),
    [
        (10.0, 0.9, 0.0, 1.0, True),
        (10.0, 0.9, 0.0, 1.001, False),
        (10.0, 1.0, 0.0, 0.0, True),
        (10.0, 1.0, 0.001, 0.0, False),
        (10.0, 0.6, 0.01, 3.84, True),
        (10.0, 0.6, 0.01, 3.85, False),
        (10.0, 0.6, 0.24, 0.1, True),
        (10.0, 0.6, 0.26, 0.0, False),
        (2.0, 0.6, 0.01, 0.7, True),
        (2.0, 0.6, 0.01, 0.8, False),
    ],
)
def test_the_obligation_is_the_one_of_the_protocol(
    term: float, stop_after: float, drift: float, kill: float, kept: bool
) -> None:
    """stop_after / (1 - rho) + kill_time <= term / (1 + rho), to the last digit (spec P-19)."""
    if kept:
        check_obligation(term, stop_after, drift, kill)
        return
    with pytest.raises(Invalid) as caught:
        check_obligation(term, stop_after, drift, kill)
    assert caught.value.field == "term_seconds"
    assert caught.value.limit == "stop_after / (1 - drift) + kill_seconds <= term / (1 + drift)"
    assert "longer term" in caught.value.remedy


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"term_seconds": 1.999}, "term_seconds"),
        ({"term_seconds": 0}, "term_seconds"),
        ({"term_seconds": -15}, "term_seconds"),
        ({"term_seconds": float("nan")}, "term_seconds"),
        ({"term_seconds": float("inf")}, "term_seconds"),
        ({"term_seconds": 15, "stop_after_terms": -0.1}, "stop_after_terms"),
        ({"term_seconds": 15, "stop_after_terms": float("nan")}, "stop_after_terms"),
        ({"term_seconds": 15, "stop_after_terms": 1.1}, "stop_after_terms"),
        ({"term_seconds": 15, "drift": 1.0}, "drift"),
        ({"term_seconds": 15, "drift": -0.1}, "drift"),
        ({"term_seconds": 15, "kill_seconds": -1}, "kill_seconds"),
        ({"term_seconds": 15, "kill_seconds": float("inf")}, "kill_seconds"),
    ],
)
def test_a_timing_that_makes_no_sense_is_refused(values: dict[str, Any], field: str) -> None:
    """A term below two seconds, a share beyond one, a drift or a span that is none: refused by field (spec P-19)."""
    with pytest.raises(Invalid) as caught:
        check_obligation(**values)
    assert caught.value.field == field


def test_a_new_session_counts_from_before_its_opening() -> None:
    """Until a renewal succeeds the opening is what counts (spec P-19)."""
    holder = Holder(9.0, opened_at=100.0)
    assert (holder.beat, holder.stop_at) == (0, 109.0)
    assert not holder.must_stop(108.999)
    assert holder.must_stop(109.0)


def test_a_renewal_counts_from_before_it_was_sent_not_from_its_answer() -> None:
    """The authority may have taken it at once, and its answer long (spec P-19)."""
    holder = Holder(9.0, opened_at=0.0)
    holder.sent(1, 3.0)
    assert holder.stop_at == 9.0
    holder.answered(1)
    assert (holder.beat, holder.stop_at) == (1, 12.0)


def test_a_renewal_sent_again_counts_from_its_first_send() -> None:
    """Which of the sends was taken is not known, so the first counts (spec P-19)."""
    holder = Holder(9.0, opened_at=0.0)
    for at in (3.0, 5.0, 7.0):
        holder.sent(1, at)
    holder.answered(1)
    assert holder.stop_at == 12.0
    holder.sent(2, 8.0)
    holder.answered(2)
    assert holder.stop_at == 17.0


def test_a_renewal_without_an_answer_changes_nothing() -> None:
    """Sending is not success (spec P-19)."""
    holder = Holder(9.0, opened_at=0.0)
    holder.sent(1, 3.0)
    holder.sent(1, 6.0)
    assert holder.must_stop(9.0)


def test_an_answer_that_comes_late_or_twice_changes_nothing() -> None:
    """A beat counts once: "already n" is success for the resend too (spec P-16)."""
    holder = Holder(9.0, opened_at=0.0)
    holder.sent(1, 3.0)
    holder.sent(1, 4.0)
    holder.answered(1)
    holder.sent(2, 6.0)
    holder.answered(1)
    assert (holder.beat, holder.stop_at) == (1, 12.0)
    holder.answered(2)
    holder.answered(1)
    assert (holder.beat, holder.stop_at) == (2, 15.0)


def test_beats_follow_one_another() -> None:
    """The authority goes from n-1 to n only, so the holder sends nothing else (spec P-16)."""
    holder = Holder(9.0, opened_at=0.0)
    for beat in (0, 2, -1):
        with pytest.raises(Invalid, match="does not follow"):
            holder.sent(beat, 1.0)
    for beat in (1, 2):
        with pytest.raises(Invalid, match="never sent"):
            holder.answered(beat)
    holder.sent(1, 1.0)
    with pytest.raises(Invalid, match="never sent"):
        holder.answered(2)
    holder.answered(1)
    with pytest.raises(Invalid, match="does not follow"):
        holder.sent(1, 2.0)


@given(st.lists(st.tuples(st.sampled_from(["send", "answer"]), st.floats(0.001, 5)), max_size=40))
def test_the_clock_starts_at_the_first_send_of_the_last_success(steps: list[tuple[str, float]]) -> None:
    """Whatever is sent, resent, answered or not, the rule is that of P-19."""
    holder = Holder(9.0, opened_at=0.0)
    now, counted_from, first_sent = 0.0, 0.0, None
    for step, passed in steps:
        now += passed
        if step == "send":
            holder.sent(holder.beat + 1, now)
            first_sent = now if first_sent is None else first_sent
        elif first_sent is not None:
            holder.answered(holder.beat + 1)
            counted_from, first_sent = first_sent, None
        assert holder.stop_at == counted_from + 9.0
        assert holder.must_stop(now) == (now >= counted_from + 9.0)
