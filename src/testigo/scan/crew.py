"""What a scan starts when nobody else serves it: an analyser server and a worker, for as long as the scan takes.

Both are processes like those of `testigo analyser` and `testigo worker`, and both end with the scan, whatever ends
it: on Linux the kernel sees to it, elsewhere the scan does.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from testigo.errors import Broken
from testigo.evidence.transport import places
from testigo.evidence.transport.client import AnalyserClient

__all__ = ["Crew"]

START_SECONDS = 60.0
LEAVE_SECONDS = 15.0
LOOK_SECONDS = 0.05
DRAIN_SECONDS = 5
PLACE_BYTES_MAX = 70
"""Of the path of a Unix socket, 107 bytes on Linux and 103 elsewhere, this is left for the temporary folder."""
APPLICATION = "testigo.scan.jobs:app"
_SAID_LINES = 5
_PROCESSES = ("/bin/ps", "-A", "-ww", "-o", "pid=,ppid=,command=")


class Crew:
    """An analyser server and a worker that serve one queue; a context manager.

    The server looks below `roots`, folders and reports, and nowhere else: whoever may submit jobs may ask it for more.
    Leaving it lets the worker finish; leaving it by an exception kills both.
    """

    def __init__(self, url: str, schema: str, queue: str, *, roots: Iterable[Path]) -> None:
        self._queue = queue
        self._roots = tuple(roots)
        self._folder = _folder()
        self.address = f"unix:{self._folder / 'analyser'}"
        self.token = secrets.token_hex(32)
        settings = {name: value for name, value in os.environ.items() if name not in _OWN}
        self._environment = {
            **settings,
            "TESTIGO_URL": url,
            "TESTIGO_SCHEMA": schema,
            places.ADDRESS_VARIABLE: self.address,
            places.TOKEN_VARIABLE: self.token,
        }
        self.server: subprocess.Popen[bytes] | None = None
        self.worker: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start both, and wait until the server answers. Raises `Broken` if it does not."""
        self.start_server()
        self.start_worker()
        self.await_server()

    def start_server(self) -> None:
        """Start the analyser server; what an earlier one held is gone with it."""
        words = ["analyser", "serve", "--socket", str(self._folder / "analyser"), "--runs", str(os.cpu_count() or 1)]
        roots = [f"--root={root}" for root in self._roots]
        self.server = self._spawn("testigo", [*words, *roots], "analyser")

    def start_worker(self) -> None:
        """Start a worker of one runner, which waits for as many parts as run at a time, and a publisher."""
        slots = str(2 * (os.cpu_count() or 1))
        words = [APPLICATION, "--queues", self._queue, "--runners", "1", "--slots", slots]
        self.worker = self._spawn("testigo.worker", [*words, "--drain-seconds", str(DRAIN_SECONDS)], "worker")

    def await_server(self) -> dict[str, str | None]:
        """The versions of the analysers, once the server answers."""
        until = time.monotonic() + START_SECONDS
        while True:
            self.check()
            with suppress(Broken, OSError), AnalyserClient(self.address, self.token) as client:
                if (self._folder / "analyser").exists():
                    return client.analysers()
            if time.monotonic() > until:
                raise Broken("The analyser server does not answer.", remedy="Run `testigo analyser --root .` and see.")
            time.sleep(LOOK_SECONDS)

    def publisher(self) -> int | None:
        """The process of the worker's publisher; None while there is none."""
        if self.worker is None:
            return None
        found = (pid for pid, command in _children(self.worker.pid) if " testigo.worker.publisher " in command)
        return next(found, None)

    def check(self) -> None:
        """Raise `Broken`, with the end of what it said, if one of them has ended unasked."""
        for name, process in (("analyser", self.server), ("worker", self.worker)):
            status = None if process is None else process.poll()
            if status is not None:
                told = " ".join(line.strip() for line in self.said(name)[-_SAID_LINES:]) or "it said nothing"
                raise Broken(f"The {name} of the scan ended with status {status}: {told}.")

    def said(self, name: str) -> Sequence[str]:
        """The lines that one of them wrote."""
        return (self._folder / f"{name}.log").read_text("utf-8", errors="replace").strip().splitlines()

    def dismiss(self) -> None:
        """Let them finish and leave, the worker first."""
        for process in (self.worker, self.server):
            if process is not None:
                process.terminate()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(LEAVE_SECONDS)

    def _spawn(self, module: str, words: Sequence[str], name: str) -> subprocess.Popen[bytes]:
        with (self._folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "testigo.scan.member", module, *words],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # a Ctrl-C is the scan's to answer
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in (self.worker, self.server):
            if process is not None:
                process.kill()
                process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


def _folder() -> Path:
    """A new folder whose path leaves room for that of a socket."""
    usual = tempfile.gettempdir()
    place = usual if len(os.fsencode(usual)) <= PLACE_BYTES_MAX else "/tmp"  # noqa: S108  # mkdtemp makes it ours
    return Path(tempfile.mkdtemp(prefix="testigo-scan-", dir=place))


_OWN = frozenset({places.ADDRESS_VARIABLE, places.TOKEN_VARIABLE, "TESTIGO_URL", "TESTIGO_SCHEMA"})


def _children(pid: int) -> Iterator[tuple[int, str]]:
    """The processes that this one started, with their whole command lines; not every Linux has `ps`."""
    if sys.platform != "linux":
        listed = subprocess.run(_PROCESSES, capture_output=True, text=True, check=True, errors="replace")
        for line in listed.stdout.splitlines():
            child, parent, command = line.split(None, 2)
            if int(parent) == pid:
                yield int(child), command
        return
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            for child in task.read_text().split():
                yield int(child), Path(f"/proc/{child}/cmdline").read_text(errors="replace").replace("\0", " ")
