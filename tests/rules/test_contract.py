"""What a retry reads of a contract comes back from its text as it was given."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testigo.errors import Invalid
from testigo.rules.contract import Terms, contract_terms, contract_text
from testigo.rules.retries import Backoff, Constant, Exponential, Listed
from testigo.settings import CONTRACT, LIMITS

seconds = st.floats(0, LIMITS.seconds_max)
backoffs: st.SearchStrategy[Backoff] = (
    st.builds(Constant, seconds)
    | st.builds(Listed, st.lists(seconds, min_size=1, max_size=4).map(tuple))
    | st.builds(
        lambda pair, jitter: Exponential(min(pair), max(pair), jitter), st.tuples(seconds, seconds), st.booleans()
    )
)
limits = st.none() | st.floats(0, 1e15)


@given(backoffs, limits, limits)
def test_a_contract_is_read_as_it_was_written(backoff: Backoff, delay: float | None, cost: float | None) -> None:
    """Backoff, delay limit and cost limit survive the text exactly, none of them by default (spec A-14)."""
    assert contract_terms(contract_text(backoff, delay, cost)) == Terms(backoff, delay, cost)


def test_a_limit_of_zero_is_a_limit() -> None:
    """Zero is kept, and is not the same as no limit (spec A-14, Promise 6)."""
    assert contract_terms(contract_text(Constant(1), 0.0, 0.0)) == Terms(Constant(1), 0.0, 0.0)


def test_without_a_backoff_the_default_is_written_out() -> None:
    """A contract says how it waits even where nobody asked, so that a later default does not change it (spec A-14)."""
    text = contract_text(None, None, None)
    assert json.loads(text) == {
        "backoff": {
            "type": "exponential",
            "first_seconds": CONTRACT.backoff_first_seconds,
            "cap_seconds": CONTRACT.backoff_cap_seconds,
            "jitter": True,
        }
    }
    assert contract_terms(text).backoff == Exponential(CONTRACT.backoff_first_seconds, CONTRACT.backoff_cap_seconds)


@pytest.mark.parametrize("text", ['{"backoff": {"type": "never"}}', '{"backoff": {"type": "constant"}}'])
def test_a_text_that_is_no_contract_is_refused(text: str) -> None:
    """A backoff that is not known or not whole is refused by name, not guessed (spec A-14)."""
    with pytest.raises(Invalid) as refused:
        contract_terms(text)
    assert str(refused.value.field).startswith("backoff.")
