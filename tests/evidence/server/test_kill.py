"""A server that is killed takes its runs with it, and the next one knows nothing of it and removes what it left.

The same request then gives the same result: nothing is lost but time (spec D-11, D-12, D-13).
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from testigo.errors import Busy, NotFound
from testigo.evidence.server.confined import _UNSHARE, Limits, _limit
from testigo.evidence.transport.client import RunState
from testigo.evidence.transport.manifest import Manifest
from testigo.evidence.transport.pulling import pull
from tests.evidence.server.process import Spawned, spawned
from tests.evidence.server.serving import PATIENCE_SECONDS, program, report, running
from tests.worker.kit import await_that

WAITS = """
if os.fork():
    time.sleep(3600)
os.setsid()
time.sleep(3600)
"""
FINDS = report(*({"message": f"m{n}", "rule": f"r{n:04d}"} for n in range(1500)))


def _result(it: Spawned) -> Manifest:
    return it.client.result(it.request(), within_seconds=PATIENCE_SECONDS)


def _while_it_runs(it: Spawned, folder: Path) -> str:
    program(folder, WAITS)
    run = it.client.ask(it.request()).run
    await_that(lambda: len(running(folder / "apart")) >= 2, "the program")
    return run


def _as_soon_as_it_is_asked(it: Spawned, folder: Path) -> str:
    return it.client.ask(it.request()).run


def _while_others_wait(it: Spawned, folder: Path) -> str:
    run = _while_it_runs(it, folder)
    for n in range(3):
        it.client.ask(it.request(n=str(n)))
    return run


def _sealed(it: Spawned, folder: Path) -> str:
    return _result(it).run


def _between_pages(it: Spawned, folder: Path) -> str:
    manifest = _result(it)
    assert manifest.cursor is not None
    it.client.page(manifest.run, manifest.cursor)
    return manifest.run


def _acknowledged(it: Spawned, folder: Path) -> str:
    manifest = _result(it)
    it.client.acknowledge(manifest)
    return manifest.run


MOMENTS = [_as_soon_as_it_is_asked, _while_it_runs, _while_others_wait, _sealed, _between_pages, _acknowledged]


@pytest.mark.parametrize("moment", MOMENTS, ids=[each.__name__.strip("_") for each in MOMENTS])
def test_a_kill_at_any_moment_leaves_nothing_but_the_request(
    tmp_path: Path, moment: Callable[[Spawned, Path], str]
) -> None:
    """No process, no file, no run and no cursor; and the request is answered as it would have been."""
    program(tmp_path, FINDS)
    with spawned(tmp_path) as it:
        expected = _result(it)
        it.client.cancel(expected.run)
        run = moment(it, tmp_path)
        it.kill()
        await_that(lambda: not running(tmp_path), "the end of everything that it had started")
        with pytest.raises(Busy):
            it.client.look(run)
        left = it.said["spool"]
        assert Path(left).is_dir()
    program(tmp_path, FINDS)
    with spawned(tmp_path) as it:
        assert [str(path) for path in Path(left).parent.iterdir()] == [it.said["spool"]]
        with pytest.raises(NotFound):
            it.client.look(run)
        again = _result(it)
        assert (again.result, again.findings) == (expected.result, 1500)
        found = [each for page in pull(it.client, again, tmp_path / "pulled").pages() for each in page]
        assert len(found) == 1500
        assert expected.cursor is not None
        with pytest.raises(NotFound):
            it.client.page(run, expected.cursor)


def test_a_child_that_lost_its_parent_before_it_could_be_told_runs_nothing(tmp_path: Path) -> None:
    """Killed between the start of a child and the word by which it dies with its parent, which it then looks for."""
    made = tmp_path / "made"
    shell = _UNSHARE[_UNSHARE.index("--") + 1 :]
    for arguments, parent in (((), 0), (shell, os.getpid())):
        limited = partial(_limit, Limits(9, 0, 1_000), parent)
        ran = subprocess.run([*arguments, "/usr/bin/touch", str(made)], preexec_fn=limited, check=False)
        assert ran.returncode == 1
        assert not made.exists()


def test_a_run_whose_process_is_killed_has_failed(tmp_path: Path) -> None:
    """The server lives, and says so; as when the system takes back memory."""
    program(tmp_path, WAITS)
    with spawned(tmp_path) as it:
        run = it.client.ask(it.request()).run
        await_that(lambda: len(running(tmp_path / "apart")) >= 2, "the program")
        for pid in running(Path(it.said["spool"]) / run):
            os.kill(pid, signal.SIGKILL)
        told = it.client.look(run, wait_seconds=30)
        assert told.state is RunState.SEALED
        assert told.manifest is not None
        assert told.manifest.reasons == ("its process ended without a result, with status -9",)
        await_that(lambda: not running(tmp_path / "apart"), "the end of the program")
