"""The workers of the demo: real processes like those of `testigo worker`, which end with the demo."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from testigo.errors import Broken

__all__ = ["Crew", "Member"]

SLOTS = 4
DRAIN_SECONDS = 5
LEAVE_SECONDS = 15.0
"""For a worker that has nothing left to do; after it, it is killed."""


@dataclass
class Member:
    """One worker: its number, the name of its agent, and its process."""

    number: int
    agent: str
    process: subprocess.Popen[bytes]
    log: Path
    is_killed: bool = False


class Crew:
    """The workers, which serve one queue. Leaving it lets them finish; leaving it by an exception kills them."""

    def __init__(self, url: str, schema: str, queue: str, scratch: Path) -> None:
        """`scratch` is a folder of the demo's own, in which the workers run and write their logs."""
        self._queue = queue
        self._scratch = scratch
        settings = {name: value for name, value in os.environ.items() if not name.startswith("TESTIGO_")}
        self._environment = {**settings, "TESTIGO_URL": url, "TESTIGO_SCHEMA": schema}
        self.members: list[Member] = []

    def start(self) -> Member:
        """Start one more worker, with one runner."""
        number = len(self.members) + 1
        agent = f"{self._queue}-{number}"
        options = {"queues": self._queue, "agent": agent, "runners": 1, "slots": SLOTS, "drain-seconds": DRAIN_SECONDS}
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        log = self._scratch / f"worker-{number}.log"
        with log.open("wb") as written:
            process = subprocess.Popen(
                [sys.executable, "-m", "testigo.demo.member", "testigo.demo.handlers:app", *words],
                cwd=self._scratch,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=written,
                stderr=written,
                start_new_session=True,  # a Ctrl-C is the demo's to answer
            )
        member = Member(number, agent, process, log)
        self.members.append(member)
        return member

    def check(self) -> None:
        """Raise `Broken`, with the end of its log, if a worker has ended that nobody killed."""
        for member in self.members:
            status = member.process.poll()
            if status is not None and not member.is_killed:
                said = member.log.read_text("utf-8", errors="replace").strip().splitlines()[-5:]
                told = " ".join(line.strip() for line in said) or "it said nothing"
                raise Broken(f"Worker {member.number} of the demo ended with status {status}: {told}.")

    def dismiss(self) -> None:
        """Let the workers finish and leave, and wait until they have."""
        for member in self.members:
            member.process.terminate()
        for member in self.members:
            with suppress(subprocess.TimeoutExpired):
                member.process.wait(LEAVE_SECONDS)
        self._kill()

    def _kill(self) -> None:
        """End whatever still runs; runners die with their keeper."""
        for member in self.members:
            member.process.kill()
            member.process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._kill()
