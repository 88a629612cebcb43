"""Some workers under one supervisor: whichever comes to an end is started again.

with fleet(tmp_path, [database_url] * 2) as workers:
    workers.ready()
    workers[0].kill()
    workers.tend()             # a supervisor's look: what has ended is started again
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.worker.kit import WorkerProcess, launch
from tests.worker.load import MODULE

__all__ = ["Fleet", "Supervised", "fleet", "send"]

TERM_SECONDS = 2.0
SLOTS = 8
"""Of each worker, which has one runner that shares them."""


def send(number: int, *pids: int) -> None:
    """Send each of these processes a signal; one that is gone already gets none."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


class Supervised:
    """One worker and those that were started after it in its place."""

    def __init__(self, folder: Path, url: str, log: Path, term_seconds: float, more: Mapping[str, str]) -> None:
        self._folder = folder
        self._url = url
        self._log = log
        self._term_seconds = term_seconds
        self._more = more
        self.starts = 0
        self.process = self._start()

    def _start(self) -> WorkerProcess:
        self.starts += 1
        options = {"--term-seconds": self._term_seconds, "--slots": SLOTS, "--runners": 1, "--queues": "q"}
        arguments = [str(word) for option in options.items() for word in option]
        return launch(self._folder, self._url, *arguments, log=self._log, more=self._more)

    @property
    def pid(self) -> int:
        """The keeper's."""
        return self.process.pid

    @property
    def log(self) -> str:
        """What it and its predecessors have said."""
        return self.process.log

    @property
    def sessions(self) -> int:
        """How many sessions it and its predecessors have announced."""
        return self.log.count("runners of")

    def runners(self) -> list[int]:
        """The pids of its runners."""
        return self.process.runners()

    def tend(self) -> None:
        """Start another if it has come to an end."""
        if self.process.process.poll() is not None:
            self.process = self._start()

    def ready(self) -> None:
        """Wait until the newest of them has announced itself."""
        self.process.ready(self.starts)

    def kill_group(self, chance: random.Random) -> None:
        """SIGKILL the keeper and its runners, in any order."""
        pids = [self.pid, *self.runners()]
        chance.shuffle(pids)
        send(signal.SIGKILL, *pids)


class Fleet:
    """All of them."""

    def __init__(self, workers: Sequence[Supervised]) -> None:
        self.workers = workers

    def __getitem__(self, which: int) -> Supervised:
        return self.workers[which]

    def tend(self) -> None:
        """Start again what has come to an end."""
        for each in self.workers:
            each.tend()

    def ready(self) -> None:
        """Wait until each has announced itself."""
        for each in self.workers:
            each.ready()

    def logs(self) -> str:
        """What all of them have said."""
        return "\n".join(each.log for each in self.workers)


@contextmanager
def fleet(
    folder: Path, urls: Sequence[str], *, term_seconds: float = TERM_SECONDS, more: Sequence[Mapping[str, str]] = ()
) -> Iterator[Fleet]:
    """A worker for each URL, on the module of `tests.worker.load`; the first ones have `more` in their environment.

    What they said is printed at the end, for whoever has to read a failure.
    """
    (folder / "jobs.py").write_text(MODULE, "utf-8")
    environments = [*more, *({} for _ in urls)]
    workers = Fleet(
        [
            Supervised(folder, url, folder / f"worker-{which}.log", term_seconds, environments[which])
            for which, url in enumerate(urls)
        ]
    )
    try:
        yield workers
    finally:
        for each in workers.workers:
            each.process.destroy()
        print(workers.logs())
