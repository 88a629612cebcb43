"""A real worker on an application that a test writes: processes, signals, and what it said.

    with worker(tmp_path, database_url, MODULE, "--slots", "4") as it:
        it.ready()
        …
        it.signal(signal.SIGTERM)
        assert it.wait() == 0

The module is `jobs.py` in the folder; it names its application `app`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from testigo.authority.actions import JobId
from testigo.authority.submissions import NewJob
from testigo.rules.documents import encode
from testigo.rules.states import TERMINAL
from tests.world import World

__all__ = [
    "PATIENCE_SECONDS",
    "WorkerProcess",
    "await_end",
    "await_state",
    "await_that",
    "children_of",
    "launch",
    "new",
    "worker",
]

PATIENCE_SECONDS = 60.0
_READY = "runners of"


def await_that(condition: Callable[[], object], what: str = "what was waited for") -> None:
    """Wait until the condition holds; raises TimeoutError when it does not for too long."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} did not happen")
        time.sleep(0.005)


def await_state(world: World, job_id: JobId, state: str) -> None:
    """Wait until the job is in this state."""
    await_that(lambda: world.state(job_id) == state, f"the state {state} of {job_id}")


def await_end(world: World, *jobs: JobId) -> list[str]:
    """Wait until these jobs have ended, and return their states."""
    ended = {str(state) for state in TERMINAL}
    states: dict[JobId, str] = {}

    def have_ended() -> bool:
        for job_id in jobs:
            if states.get(job_id) not in ended:
                states[job_id] = world.state(job_id)
                if states[job_id] not in ended:
                    return False
        return True

    await_that(have_ended, f"the end of {', '.join(jobs[:3])}")
    return [states[job_id] for job_id in jobs]


def new(kind: str, queue: str = "q", **given: object) -> NewJob:
    """A job of this kind; what is no member of a job is an argument of its handler."""
    members = {name: given.pop(name) for name in list(given) if name in NewJob.__dataclass_fields__}
    return NewJob(kind=kind, queue=queue, payload=encode(given), **members)  # type: ignore[arg-type]


def children_of(pid: int) -> list[int]:
    """The processes that this one has started and that have not been read as ended."""
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [int(line) for line in found.stdout.split()]


class WorkerProcess:
    """A worker: its process, and the file with all that it and its runners said."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self.pid = process.pid
        self._log = log

    @property
    def log(self) -> str:
        """What it has said until now."""
        return self._log.read_text("utf-8", "replace")

    def ready(self, times: int = 1) -> None:
        """Wait until it has announced so many sessions."""
        self.said(_READY, times)

    def said(self, words: str, times: int = 1) -> None:
        """Wait until it has said this so often."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.log.count(words) < times:
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise AssertionError(f"the worker did not say {words!r}, but\n{self.log}")
            time.sleep(0.01)

    def runners(self) -> list[int]:
        """The pids of its runners."""
        return children_of(self.pid)

    def signal(self, number: int) -> None:
        """Send the keeper a signal."""
        self.process.send_signal(number)

    def wait(self) -> int:
        """Its exit status."""
        return self.process.wait(PATIENCE_SECONDS)

    def destroy(self) -> None:
        """Kill it and its runners, whatever they do, and return when it is gone."""
        for pid in [*self.runners(), self.pid]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()


def launch(folder: Path, url: str, *arguments: str, log: Path, more: Mapping[str, str] | None = None) -> WorkerProcess:
    """Start a worker on the module `jobs.py` of the folder, which goes on writing `log`; `more` is its environment."""
    command = [sys.executable, "-m", "testigo.worker", "jobs:app", "--url", url, *arguments]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TESTIGO_")}
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**environment, **(more or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    return WorkerProcess(process, log)


@contextmanager
def worker(folder: Path, url: str, module: str, *arguments: str, name: str = "worker") -> Iterator[WorkerProcess]:
    """Run a worker on this module; killed with its runners at the end, if it has not ended before."""
    (folder / "jobs.py").write_text(module, "utf-8")
    log = folder / f"{name}.log"
    log.unlink(missing_ok=True)
    it = launch(folder, url, *arguments, log=log)
    try:
        yield it
    finally:
        it.destroy()
