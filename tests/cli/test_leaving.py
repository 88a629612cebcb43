"""A command that is told to end takes down what is its own, undisturbed, and does not miss being told."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from testigo.cli.leaving import leaving_in_order
from testigo.store.embedded.address import recall
from tests.cli.process import piped
from tests.worker.kit import PATIENCE_SECONDS, await_that

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


@pytest.mark.parametrize(("number", "raised"), ENDS)
def test_what_is_ignored_stays_ignored(number: signal.Signals, raised: type[BaseException]) -> None:
    """As by `nohup`, and by a shell that runs a command behind."""
    before = signal.signal(number, signal.SIG_IGN)
    try:
        with leaving_in_order():
            signal.raise_signal(number)
    finally:
        signal.signal(number, before)
    with pytest.raises(raised), leaving_in_order():
        signal.raise_signal(number)


@pytest.mark.needs_linux
def test_a_command_that_is_told_to_end_leaves_no_embedded_server(server_directory: Path) -> None:
    """Whenever that is: while the server starts, when it has just started, and before anything is served."""
    directory = server_directory / "db"
    pidfile, address = directory / "data" / "postmaster.pid", directory / "server.json"

    def is_known() -> bool:
        found = recall(address)
        return found is not None and found.process is not None

    moments: list[tuple[tuple[str, ...], Callable[[], bool]]] = [
        (("serve", "--port", "0"), pidfile.exists),
        (("serve", "--port", "0"), is_known),
        (("jobs", "list"), is_known),
    ]
    for words, moment in moments:
        with piped(*words, url=f"embedded:{directory}") as command:
            await_that(lambda: moment() or command.poll() is not None, "the moment")  # noqa: B023
            for _ in range(9):  # what is raised in a destructor is lost; whoever asks again is heard
                command.send_signal(signal.SIGTERM)
                with suppress(subprocess.TimeoutExpired):
                    command.communicate(timeout=PATIENCE_SECONDS / 9)
                    break
        assert command.returncode in (0, 128 + signal.SIGTERM)
        assert not pidfile.exists()
