"""A command that is told to end takes down what is its own, undisturbed, and does not miss being told."""

from __future__ import annotations

import signal
from contextlib import suppress

import pytest

from testigo.cli.leaving import leaving_in_order

ENDS = [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit), (signal.SIGHUP, SystemExit)]


@pytest.mark.parametrize(("number", "raised"), ENDS)
def test_whoever_asks_again_disturbs_nothing(number: signal.Signals, raised: type[BaseException]) -> None:
    """What takes things down goes on to its end, also where it handles an error of its own."""
    done: list[str] = []

    @leaving_in_order()
    def ends() -> None:
        try:
            signal.raise_signal(number)
        finally:
            signal.raise_signal(number)
            try:
                raise OSError
            except OSError:
                signal.raise_signal(signal.SIGTERM)
            done.append("taken down")

    with pytest.raises(raised):
        ends()
    assert done == ["taken down"]


def test_whoever_was_not_heard_is_heard_the_next_time() -> None:
    """What was raised may be lost, as in a destructor: then nothing is taken down yet."""

    @leaving_in_order()
    def misses() -> None:
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)

    with pytest.raises(SystemExit) as ended:
        misses()
    assert ended.value.code == 128 + signal.SIGTERM
