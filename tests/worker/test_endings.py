"""What a handler returns or raises is refused in its own line if it could not be kept."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import pytest

from testigo.errors import Invalid
from testigo.worker.endings import Blocked, Degraded, Ending, Permanent, RetryAfter, Yielded


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: Degraded(1, limitations=[]), "limitations"),
        (lambda: Degraded(1, limitations="no audio"), "limitations"),
        (lambda: Degraded(1, limitations=["ok", "two\nlines"]), "limitations[1]"),
        (lambda: Degraded(1, limitations=["x"] * 1_001), "limitations"),
        (lambda: Permanent(""), "code"),
        (lambda: Permanent("no\x00"), "code"),
        (lambda: RetryAfter(-1), "seconds"),
        (lambda: RetryAfter(float("nan")), "seconds"),
        (lambda: RetryAfter("soon"), "seconds"),  # type: ignore[arg-type]  # a handler need not be checked
    ],
    ids=range(9),
)
def test_what_could_not_be_kept_is_refused_where_it_is_made(make: Callable[[], object], field: str) -> None:
    """The refusal names the field."""
    with pytest.raises(Invalid) as refused:
        make()
    assert refused.value.field == field


@pytest.mark.parametrize(
    "ending", [Permanent("gone", "not there"), RetryAfter(3.0, "busy"), Blocked("no money", "an approval"), Yielded(7)]
)
def test_an_ending_survives_pickling(ending: Ending) -> None:
    """It may come from a process of the handler's own (field case R46)."""
    again = pickle.loads(pickle.dumps(ending))
    assert type(again) is type(ending)
    assert vars(again) == vars(ending)


def test_a_degraded_value_keeps_its_limitations_in_order() -> None:
    """Any iterable of names will do."""
    degraded = Degraded(3, limitations=(each for each in ("b", "a")))
    assert degraded.limitations == ("b", "a")
    assert repr(degraded) == "Degraded(3, limitations=['b', 'a'])"
