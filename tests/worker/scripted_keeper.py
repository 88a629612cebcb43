"""A keeper that a test plays by hand: a real runner process on a module of the test's own, over a socket pair.

with ScriptedKeeper(tmp_path, HANDLERS) as keeper:
    keeper.hear("hello")
    ticket = keeper.run("double", {"n": 21})
    assert keeper.end_of(ticket) == ["succeed", "42"]
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from testigo.worker.protocol import Frames, Run, encode_frame

__all__ = ["ScriptedKeeper"]

PATIENCE_SECONDS = 90.0
PREAMBLE = """
from testigo import App, AsyncContext, Blocked, Context, Degraded, Permanent, RetryAfter, Yielded
app = App("tests")
"""


class ScriptedKeeper:
    """One runner, and what it said so far. Every wait ends in an error after a minute and a half."""

    def __init__(
        self, folder: Path, handlers: str, *, slots: int = 10, named: str = "handlers:app", **environment: str
    ) -> None:
        """`handlers` is the text of the module, in which an `app` is made already."""
        self._environment = {**os.environ, "TESTIGO_RUNNER": "1", "PYTHONDEVMODE": "", **environment}
        self._folder = folder
        self._handlers = PREAMBLE + textwrap.dedent(handlers)
        self._arguments = ["--slots", str(slots), named]
        self._frames = Frames()
        self._heard: list[list[Any]] = []
        self._ends: dict[int, list[Any]] = {}
        self._frames_of_ends: list[set[int]] = []
        self._tickets = itertools.count(1)

    def __enter__(self) -> Self:
        (self._folder / "handlers.py").write_text(self._handlers)
        self.socket, theirs = socket.socketpair()
        self.socket.settimeout(PATIENCE_SECONDS)
        with theirs, (self._folder / "stderr.txt").open("wb") as errors:
            command = [sys.executable, "-m", "testigo.worker.runner", "--socket", str(theirs.fileno())]
            self.process = subprocess.Popen(
                [*command, *self._arguments],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                env=self._environment,
            )
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.socket.close()
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    @property
    def printed(self) -> str:
        """What the runner wrote to its standard output and error."""
        return (self._folder / "stderr.txt").read_text(errors="replace")

    def ready(self) -> Self:
        """The same, once the runner has said hello."""
        self.hear("hello")
        return self

    def say(self, *message: object) -> None:
        """Send one message."""
        self.socket.sendall(encode_frame(message))

    def row(self, kind: str, arguments: object = None, **known: Any) -> Run:
        """A run of this kind, as it is asked for; `known` replaces what is not to be as usual."""
        payload = json.dumps({} if arguments is None else arguments)
        usual = Run(next(self._tickets), kind, "default", f"job-{kind}", 1, 0, 0, 120.0, None, payload, None, None)
        return usual._replace(**known)

    def run(self, kind: str, arguments: object = None, **known: Any) -> int:
        """Ask for one run; returns its ticket."""
        row = self.row(kind, arguments, **known)
        self.say("run", [row])
        return row.ticket

    def end_of(self, ticket: int) -> list[Any]:
        """The end of this run; everything else that is heard until then is kept for `hear`."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while ticket not in self._ends:
            assert time.monotonic() < deadline, f"no end of {ticket}; heard {self._heard}; {self.printed}"
            self._listen()
        return self._ends.pop(ticket)

    def hear(self, name: str) -> list[Any]:
        """The next message of this name."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            for at, message in enumerate(self._heard):
                if message[0] == name:
                    return self._heard.pop(at)
            assert time.monotonic() < deadline, f"no {name}; heard {self._heard}; {self.printed}"
            self._listen()

    def frames_of_ends(self, rows: Iterable[Run]) -> int:
        """In how many frames the ends of these runs came."""
        tickets = {row.ticket for row in rows}
        return sum(not tickets.isdisjoint(frame) for frame in self._frames_of_ends)

    def hear_notes_of(self, ticket: int, least: int = 1) -> list[list[Any]]:
        """What the run told, once it told so much."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(notes := self.notes_of(ticket)) < least:
            assert time.monotonic() < deadline, f"no note of {ticket}; {self.printed}"
            self._listen()
        return notes

    def notes_of(self, ticket: int) -> list[list[Any]]:
        """What the run told so far, without its ticket."""
        notes = [note for message in self._heard if message[0] == "notes" for note in message[1]]
        return [note[1:] for note in notes if note[0] == ticket]

    def exit_status(self) -> int:
        """How the process ended: its status, or the signal that killed it, negative."""
        return self.process.wait(PATIENCE_SECONDS)

    def _listen(self) -> None:
        piece = self.socket.recv(1024 * 1024)
        assert piece, f"the runner hung up; heard {self._heard}; {self.printed}"
        for message in self._frames.feed(piece):
            if message[0] == "ended":
                self._ends.update({row[0]: row[1] for row in message[1]})
                self._frames_of_ends.append({row[0] for row in message[1]})
            else:
                self._heard.append(message)
