"""What a runner has to say: gathered in each turn of its loop, and sent without waiting.

All that ended in one turn goes out in one frame. Notes go at most once in `WORKER.note_seconds`, and
always before the end of the run that they tell of: after it, its keeper would have no lease to keep them
under.
"""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from testigo.errors import PayloadTooLarge
from testigo.rules.outcomes import Fail
from testigo.settings import WORKER
from testigo.worker.leaving import leave
from testigo.worker.ports import Note, RunPort
from testigo.worker.protocol import encode_batch, encode_frame
from testigo.worker.wire import NULL_END, End, end_to_wire

__all__ = ["Outbox"]

_NULL = end_to_wire(NULL_END)
_BYTES_OF_MAXRSS = 1 if sys.platform == "darwin" else 1024


class _Ended(NamedTuple):
    port: RunPort
    end: End
    run_seconds: float


class Outbox:
    """The way to the keeper. Any thread may use it; what it holds is sent by the loop's."""

    def __init__(
        self, sock: socket.socket, loop: asyncio.AbstractEventLoop, reported: Callable[[list[RunPort]], object]
    ) -> None:
        """`reported` is called in the loop with the ports of the runs whose ends have just been sent."""
        self._socket = sock
        self._loop = loop
        self._thread = threading.get_ident()
        self._reported = reported
        self._is_due = False
        # Other threads append to these lists, so they are emptied in place and never replaced.
        self._ended: list[_Ended] = []
        self._frames: list[bytes] = []
        self._lines: list[Note] = []
        self._amounts: dict[int, Note] = {}
        self._notes_at = 0.0
        self._notes_timer: asyncio.TimerHandle | None = None
        self._unsent = bytearray()
        self._is_blocked = False

    def end(self, port: RunPort, end: End) -> None:
        """Report the end of a run."""
        self._ended.append(_Ended(port, end, port.end()))
        self.flush_soon()

    def put(self, frame: bytes) -> None:
        """Send the frame of a message, before any end that is reported later."""
        self._frames.append(frame)
        self.flush_soon()

    def note(self, note: Note) -> None:
        """Send a note with others; of a run's progress only the last."""
        if note[1] == "progress":
            self._amounts[note[0]] = note
        else:
            self._lines.append(note)
        self.flush_soon()

    def flush_soon(self) -> None:
        """Send what is here in the loop's next turn, and have `reported` called."""
        if self._is_due:
            return
        self._is_due = True
        if threading.get_ident() == self._thread:
            self._loop.call_soon(self._flush)
            return
        try:
            os.fstat(self._socket.fileno())
        except OSError as error:  # a loop whose descriptors were closed under it would not even wake up
            leave(f"the socket to the keeper was closed: {error}")
        self._loop.call_soon_threadsafe(self._flush)

    @property
    def is_empty(self) -> bool:
        """Whether the socket has taken everything."""
        return not (self._unsent or self._frames or self._ended)

    def _flush(self) -> None:
        self._is_due = False
        ended = _taken(self._ended)
        frames = self._notes(ended) if self._lines or self._amounts else []
        frames += _taken(self._frames)
        if ended:
            frames.append(_frame_of(ended))
        if frames:
            self._send(b"".join(frames))
        self._reported([each.port for each in ended])

    def _notes(self, ended: Iterable[_Ended]) -> list[bytes]:
        """The notes, if it is time for them or a run of which they tell has ended."""
        wait_seconds = self._notes_at + WORKER.note_seconds - time.monotonic()
        told = {*self._amounts, *(line[0] for line in self._lines)}
        if wait_seconds > 0 and told.isdisjoint([each.port.ticket for each in ended]):
            if self._notes_timer is None:
                self._notes_timer = self._loop.call_later(wait_seconds, self._end_wait)
            return []
        if self._notes_timer is not None:
            self._notes_timer.cancel()
            self._notes_timer = None
        self._notes_at = time.monotonic()
        amounts = [self._amounts.pop(ticket) for ticket in list(self._amounts)]
        return [encode_batch("notes", [*_taken(self._lines), *amounts])]

    def _end_wait(self) -> None:
        self._notes_timer = None
        self._notes_at = 0.0  # a timer may come a moment early, and none would come after it
        self._flush()

    def _send(self, frames: bytes) -> None:
        self._unsent += frames
        if not self._is_blocked:
            self._write()

    def _write(self) -> None:
        try:
            while self._unsent:
                del self._unsent[: self._socket.send(self._unsent)]
        except (BlockingIOError, InterruptedError):
            if not self._is_blocked:
                self._is_blocked = True
                self._loop.add_writer(self._socket, self._write)
            return
        except ConnectionError:
            leave()
        except OSError as error:
            leave(f"the socket to the keeper cannot be written: {error}")
        if self._is_blocked:
            self._is_blocked = False
            self._loop.remove_writer(self._socket)
            self.flush_soon()


def _taken(gathered: list[Any]) -> list[Any]:
    """What is in the list, taken out of it; what another thread appends meanwhile stays for the next time."""
    taken = gathered[:]
    del gathered[: len(taken)]
    return taken


def _frame_of(ended: list[_Ended]) -> bytes:
    peak_memory_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _BYTES_OF_MAXRSS
    rows = [
        (port.ticket, _NULL if end is NULL_END else end_to_wire(end), port.started_at, run_seconds, peak_memory_bytes)
        for port, end, run_seconds in ended
    ]
    try:
        return encode_batch("ended", rows)
    except PayloadTooLarge:
        return b"".join(_frame_of_one(row) for row in rows)


def _frame_of_one(row: tuple[Any, ...]) -> bytes:
    try:
        return encode_frame(["ended", [row]])
    except PayloadTooLarge as error:
        fail = Fail(
            error.code, f"The end of the run, with its children, is too large: {error.message}.", permanent=True
        )
        return encode_frame(["ended", [(row[0], end_to_wire(End(fail)), *row[2:])]])
