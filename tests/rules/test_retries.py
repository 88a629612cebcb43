"""Retries stay inside the contract: attempts, crashes, cost, total delay and `finish_by`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testigo.errors import Invalid
from testigo.rules.retries import (
    Backoff,
    Budget,
    Constant,
    Exhausted,
    Exponential,
    Limit,
    Listed,
    Retry,
    Spent,
    after_failure,
    after_loss,
    backoff_from_json,
    backoff_to_json,
    exhausted,
    wait_seconds,
)
from testigo.settings import LIMITS

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
BUDGET = Budget(attempts=3, crash_limit=3)

spans = st.floats(0, LIMITS.seconds_max)
draws = st.floats(0, 1, exclude_max=True)
backoffs: st.SearchStrategy[Backoff] = (
    st.builds(Constant, spans)
    | st.builds(Listed, st.lists(spans, min_size=1, max_size=5).map(tuple))
    | st.builds(lambda pair, jitter: Exponential(min(pair), max(pair), jitter), st.tuples(spans, spans), st.booleans())
)
budgets = st.builds(
    Budget,
    attempts=st.integers(1, 20),
    crash_limit=st.integers(1, 20),
    delay_limit_seconds=st.none() | st.floats(0, 10_000),
    cost_limit=st.none() | st.floats(0, 100),
    finish_by=st.none() | st.integers(0, 10_000).map(lambda seconds: NOW + timedelta(seconds=seconds)),
)


@pytest.mark.parametrize(
    ("backoff", "waits"),
    [
        (Constant(7), [7, 7, 7, 7]),
        (Constant(0), [0, 0]),
        (Listed((1, 5, 60)), [1, 5, 60, 60, 60]),
        (Listed((3,)), [3, 3]),
        (Listed((1.0,) * 1000), [1, 1]),
        (Exponential(2, 600, jitter=False), [2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]),
        (Exponential(2, 600), [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]),
        (Exponential(0, 600), [0, 0, 0]),
        (Exponential(5, 5, jitter=False), [5, 5]),
    ],
)
def test_the_wait_after_each_failure(backoff: Backoff, waits: list[float]) -> None:
    """Constant, listed with its last repeated, doubled up to a cap; jitter halves at a draw of one half (spec C-02)."""
    assert [wait_seconds(backoff, failures, 0.5) for failures in range(1, len(waits) + 1)] == waits


@given(draws, st.integers(1, 1000))
def test_full_jitter_draws_from_zero_to_the_ceiling(draw: float, failures: int) -> None:
    """The whole range is used, evenly, whatever the failure's number (spec C-02)."""
    ceiling = wait_seconds(Exponential(2, 600, jitter=False), failures, draw)
    assert wait_seconds(Exponential(2, 600), failures, draw) == ceiling * draw
    assert wait_seconds(Exponential(2, 600), failures, 0.0) == 0


@given(backoffs, st.integers(1, LIMITS.attempts_max), draws)
def test_a_wait_is_always_a_span(backoff: Backoff, failures: int, draw: float) -> None:
    """No number of failures overflows: a wait is finite, not negative and below its cap (spec B-15)."""
    wait = wait_seconds(backoff, failures, draw)
    assert 0 <= wait <= LIMITS.seconds_max
    if isinstance(backoff, Exponential):
        assert wait <= backoff.cap_seconds


@given(backoffs, draws)
def test_a_ceiling_never_falls(backoff: Backoff, draw: float) -> None:
    """An exponential backoff waits no shorter after more failures, at the same draw (spec B-15)."""
    if isinstance(backoff, Exponential):
        waits = [wait_seconds(backoff, failures, draw) for failures in range(1, 60)]
        assert waits == sorted(waits)


@pytest.mark.parametrize(
    ("failures", "draw", "field"),
    [(0, 0.5, "failures"), (1001, 0.5, "failures"), (1, 1.0, "draw"), (1, -0.1, "draw"), (1, float("nan"), "draw")],
)
def test_a_wait_is_asked_for_within_its_bounds(failures: int, draw: float, field: str) -> None:
    """Failures count from 1, and a draw is below 1."""
    with pytest.raises(Invalid) as caught:
        wait_seconds(Constant(1), failures, draw)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: Constant(-1), "backoff.seconds"),
        (lambda: Constant(float("nan")), "backoff.seconds"),
        (lambda: Listed(()), "backoff.seconds"),
        (lambda: Listed((1.0,) * 1001), "backoff.seconds"),
        (lambda: Listed([1.0]), "backoff.seconds"),  # type: ignore[arg-type]
        (lambda: Listed(5), "backoff.seconds"),  # type: ignore[arg-type]
        (lambda: Exponential(1, 2, jitter="no"), "backoff.jitter"),  # type: ignore[arg-type]
        (lambda: Listed((1.0, float("inf"))), "backoff.seconds[1]"),
        (lambda: Exponential(-1, 1), "backoff.first_seconds"),
        (lambda: Exponential(1, 1e12), "backoff.cap_seconds"),
        (lambda: Exponential(2, 1), "backoff.cap_seconds"),
    ],
)
def test_a_backoff_is_made_of_spans(make: Any, field: str) -> None:
    """A wait that is no span is refused when the contract is made, not when the job fails (spec B-15)."""
    with pytest.raises(Invalid) as caught:
        make()
    assert caught.value.field == field


@given(backoffs)
def test_a_backoff_is_read_back_equal(backoff: Backoff) -> None:
    """A contract is stored and read without loss (spec A-14)."""
    assert backoff_from_json(backoff_to_json(backoff)) == backoff


@pytest.mark.parametrize(
    ("backoff", "json"),
    [
        (Constant(5), {"type": "constant", "seconds": 5}),
        (Listed((1, 2)), {"type": "listed", "seconds": [1, 2]}),
        (
            Exponential(2, 600),
            {"type": "exponential", "first_seconds": 2, "cap_seconds": 600, "jitter": True},
        ),
    ],
)
def test_a_backoffs_json_is_fixed(backoff: Backoff, json: dict[str, object]) -> None:
    """Stored contracts outlive releases, so their shape is written down here (promise 10)."""
    assert backoff_to_json(backoff) == json
    assert backoff_from_json(json) == backoff


@pytest.mark.parametrize(
    ("json", "field"),
    [
        (None, "backoff"),
        (5, "backoff"),
        ([1, 2], "backoff"),
        ("constant", "backoff"),
        ({}, "backoff.type"),
        ({"type": "linear", "seconds": 1}, "backoff.type"),
        ({"type": ["constant"], "seconds": 1}, "backoff.type"),
        ({"type": "constant"}, "backoff.seconds"),
        ({"type": "constant", "seconds": "5"}, "backoff.seconds"),
        ({"type": "constant", "seconds": True}, "backoff.seconds"),
        ({"type": "constant", "seconds": 2**64}, "backoff.seconds"),
        ({"type": "constant", "seconds": 5, "jitter": True}, "backoff"),
        ({"type": "constant", "seconds": 5, "x\x00" * 100: True}, "backoff"),
        ({"type": "listed", "seconds": 5}, "backoff.seconds"),
        ({"type": "listed", "seconds": "12"}, "backoff.seconds"),
        ({"type": "listed", "seconds": []}, "backoff.seconds"),
        ({"type": "listed", "seconds": [1, None]}, "backoff.seconds[1]"),
        ({"type": "exponential", "first_seconds": 2, "cap_seconds": 600}, "backoff.jitter"),
        ({"type": "exponential", "first_seconds": 2, "cap_seconds": 600, "jitter": 1}, "backoff.jitter"),
        ({"type": "exponential", "first_seconds": 2, "cap_seconds": 1, "jitter": True}, "backoff.cap_seconds"),
    ],
)
def test_json_that_is_no_backoff_is_refused_by_member(json: object, field: str) -> None:
    """Unknown, missing, ill-typed and out of range are refused by member."""
    with pytest.raises(Invalid) as caught:
        backoff_from_json(json)
    assert caught.value.field == field
    assert "\x00" not in str(caught.value)


def fail(budget: Budget, spent: Spent, **changes: Any) -> Retry | Exhausted:
    """What follows a failure, with a constant backoff of ten seconds."""
    given: dict[str, Any] = {"draw": 0.5, "now": NOW} | changes
    return after_failure(budget, spent, Constant(10), **given)


@pytest.mark.parametrize(
    ("budget", "spent", "follows"),
    [
        (BUDGET, Spent(1, 0), Retry(10)),
        (BUDGET, Spent(2, 2), Retry(10)),
        (BUDGET, Spent(3, 0), Exhausted(Limit.ATTEMPTS)),
        (Budget(1, 1), Spent(1, 0), Exhausted(Limit.ATTEMPTS)),
        (BUDGET, Spent(1, 3), Exhausted(Limit.CRASHES)),
        (Budget(9, 9, delay_limit_seconds=10), Spent(1, 0, delay_seconds=0), Retry(10)),
        (Budget(9, 9, delay_limit_seconds=10), Spent(1, 0, delay_seconds=0.001), Exhausted(Limit.DELAY)),
        (Budget(9, 9, delay_limit_seconds=9.999), Spent(1, 0), Exhausted(Limit.DELAY)),
        (Budget(9, 9, cost_limit=5), Spent(1, 0, cost=4.99), Retry(10)),
        (Budget(9, 9, cost_limit=1), Spent(1, 0), Retry(10)),
        (Budget(9, 9, cost_limit=5), Spent(1, 0, cost=5), Exhausted(Limit.COST)),
        (Budget(9, 9, finish_by=NOW + timedelta(seconds=10.000001)), Spent(1, 0), Retry(10)),
        (Budget(9, 9, finish_by=NOW + timedelta(seconds=10)), Spent(1, 0), Exhausted(Limit.FINISH_BY)),
        (Budget(9, 9, finish_by=NOW - timedelta(days=1)), Spent(1, 0), Exhausted(Limit.FINISH_BY)),
        (Budget(9, 9, finish_by=datetime(9998, 12, 31, tzinfo=UTC)), Spent(1, 0), Retry(10)),
        (Budget(1, 1, 0, 0, NOW), Spent(1, 1, 1, 1), Exhausted(Limit.ATTEMPTS)),
    ],
)
def test_what_follows_a_failure(budget: Budget, spent: Spent, follows: Retry | Exhausted) -> None:
    """A failure is retried within every limit and ends at the first that it breaks (spec B-15, D-04)."""
    assert fail(budget, spent) == follows


def test_a_wait_too_long_is_never_shortened() -> None:
    """Ten seconds that would pass a limit at nine end the job, they do not become nine (spec D-04)."""
    assert fail(Budget(9, 9, delay_limit_seconds=9), Spent(1, 0)) == Exhausted(Limit.DELAY)
    assert fail(Budget(9, 9, finish_by=NOW + timedelta(seconds=9)), Spent(1, 0)) == Exhausted(Limit.FINISH_BY)


def test_the_handlers_wish_replaces_the_backoff_and_widens_nothing() -> None:
    """RetryAfter waits as long as it asks, shorter or longer, inside the same budget (spec A-14, B-15)."""
    assert fail(BUDGET, Spent(1, 0), asked_seconds=0.5) == Retry(0.5)
    assert fail(BUDGET, Spent(1, 0), asked_seconds=0) == Retry(0)
    assert fail(BUDGET, Spent(1, 0), asked_seconds=5000) == Retry(5000)
    assert fail(BUDGET, Spent(3, 0), asked_seconds=0) == Exhausted(Limit.ATTEMPTS)
    assert fail(Budget(9, 9, delay_limit_seconds=60), Spent(1, 0), asked_seconds=61) == Exhausted(Limit.DELAY)
    for wish in (-1, float("nan"), float("inf"), 1e12):
        with pytest.raises(Invalid) as caught:
            fail(BUDGET, Spent(1, 0), asked_seconds=wish)
        assert caught.value.field == "asked_seconds"


@pytest.mark.parametrize(
    ("budget", "spent", "follows"),
    [
        (BUDGET, Spent(0, 1), Retry(0)),
        (BUDGET, Spent(2, 2), Retry(0)),
        (BUDGET, Spent(0, 3), Exhausted(Limit.CRASHES)),
        (Budget(9, 1), Spent(0, 1), Exhausted(Limit.CRASHES)),
        (Budget(9, 9, delay_limit_seconds=0), Spent(0, 1), Retry(0)),
        (Budget(9, 9, cost_limit=1), Spent(0, 1, cost=1), Exhausted(Limit.COST)),
        (Budget(9, 9, finish_by=NOW), Spent(0, 1), Exhausted(Limit.FINISH_BY)),
        (Budget(9, 9, finish_by=NOW + timedelta(microseconds=1)), Spent(0, 1), Retry(0)),
    ],
)
def test_what_follows_a_loss(budget: Budget, spent: Spent, follows: Retry | Exhausted) -> None:
    """A loss runs again at once, until its own limit ends a poison job (spec model.md, *A job*; promise 6)."""
    assert after_loss(budget, spent, now=NOW) == follows


@given(
    budgets,
    backoffs,
    st.lists(st.tuples(st.booleans(), draws, st.none() | st.floats(0, 5_000), st.floats(0, 30)), max_size=60),
)
def test_a_whole_life_stays_inside_its_contract(
    budget: Budget, backoff: Backoff, runs: list[tuple[bool, float, float | None, float]]
) -> None:
    """However a job fails and is lost, no run begins beyond any limit (spec B-15, D-04; promise 6)."""
    failures = losses = 0
    delay = cost = 0.0
    now = NOW
    begun = 0
    for lost, draw, asked, run_cost in runs:
        if exhausted(budget, Spent(failures, losses, delay, cost), now=now):
            break
        begun += 1
        assert budget.cost_limit is None or cost < budget.cost_limit
        assert budget.finish_by is None or now < budget.finish_by
        assert budget.delay_limit_seconds is None or delay <= budget.delay_limit_seconds
        failures, losses, cost = failures + (not lost), losses + lost, cost + run_cost
        spent = Spent(failures, losses, delay, cost)
        follows = (
            after_loss(budget, spent, now=now)
            if lost
            else after_failure(budget, spent, backoff, draw=draw, now=now, asked_seconds=asked)
        )
        if isinstance(follows, Exhausted):
            break
        assert not lost or follows.wait_seconds == 0
        delay += follows.wait_seconds
        now += timedelta(seconds=follows.wait_seconds)
    assert failures <= budget.attempts
    assert losses <= budget.crash_limit
    assert begun <= budget.attempts + budget.crash_limit - 1


@given(budgets, backoffs, draws)
def test_a_job_that_always_fails_ends(budget: Budget, backoff: Backoff, draw: float) -> None:
    """The budget of attempts is finite, and never ends early when nothing else is limited (spec C-02)."""
    only_attempts = Budget(budget.attempts, budget.crash_limit)
    for failures in range(1, budget.attempts):
        follows = after_failure(only_attempts, Spent(failures, 0), backoff, draw=draw, now=NOW)
        assert follows == Retry(wait_seconds(backoff, failures, draw))
    last = after_failure(only_attempts, Spent(budget.attempts, 0), backoff, draw=draw, now=NOW)
    assert last == Exhausted(Limit.ATTEMPTS)


def test_the_reasons_have_fixed_names() -> None:
    """A reason reaches events and the database under its value (spec A-14)."""
    assert [str(limit) for limit in Limit] == ["attempts", "crashes", "cost", "delay", "finish_by"]
