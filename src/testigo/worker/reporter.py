"""The reporter: what runs tell of themselves, their progress and their log, brought to the authority (spec B-12)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

from testigo.authority.report import LogLine, Progress, report
from testigo.authority.start import Held
from testigo.errors import ProtocolBroken
from testigo.settings import LIMITS
from testigo.worker.asking import Asker, Grumbler
from testigo.worker.desk import Desk
from testigo.worker.runs import Run

__all__ = ["Reporter"]

NOTES_MAX = 1_000
"""Notes of one report."""
WAITING_MAX = 20_000
"""Notes that wait, before those that come are let go: they are for people, and memory is for work."""

Note = Progress | LogLine


class Reporter:
    """Sends one report at a time, from a thread of the desk. Only the main thread uses it.

    A run's end is kept back until what it told before is reported, since only who holds a job can tell of it.
    """

    def __init__(self, desk: Desk, post: Callable[[Callable[[], object]], object]) -> None:
        """`post` has the main thread make a call."""
        self._desk = desk
        self._post = post
        self._notes: deque[tuple[Run, Note]] = deque()
        self._kept_back: list[Run] = []
        self._is_sending = False
        self._grumbler = Grumbler()

    def __len__(self) -> int:
        return len(self._kept_back)

    def note(self, run: Run, note: list[Any]) -> None:
        """Takes in one note of a run. Raises `ProtocolBroken` for what is none."""
        lease = run.lease
        held = Held(lease.job_id, lease.lease_id, lease.epoch)
        run.told += 1
        made: Note
        match note:
            case [_, "progress", done, total, str(text)] if _is_amount(done) and (total is None or _is_amount(total)):
                made = Progress(held, run.told, datetime.now(UTC), done, total, text)
            case [_, "log", int() | float() as at, str(level), str(text)] if 0 <= at < 1e11:
                made = LogLine(held, run.told, datetime.fromtimestamp(at, UTC), level, text)
            case _:
                raise ProtocolBroken("what should be a note is none", field="notes")
        if len(self._notes) < WAITING_MAX:
            run.unreported += 1
            self._notes.append((run, made))
        else:
            self._grumbler.say("notes of runs are let go: the database does not take them as fast as they come")

    def pass_on(self, ended: list[Run]) -> list[Run]:
        """Of these runs, and of those that were kept back, the ones of which all is reported."""
        if not self._notes and not self._kept_back and not self._is_sending:
            return ended
        everyone = [*self._kept_back, *ended]
        self._kept_back = [run for run in everyone if run.unreported]
        if self._notes and not self._is_sending:
            self._send()
        return [run for run in everyone if not run.unreported]

    def _send(self) -> None:
        term = self._notes[0][0].term
        batch: list[tuple[Run, Note]] = []
        while self._notes and len(batch) < NOTES_MAX and self._notes[0][0].term is term:
            batch.append(self._notes.popleft())
        progress = {note.held: note for _, note in batch if isinstance(note, Progress)}
        lines = [note for _, note in batch if isinstance(note, LogLine)]
        self._is_sending = True

        def task(asker: Asker) -> None:
            try:
                asker.ask(report, term.session.id, list(progress.values()), lines)
            except Exception as error:  # what is told of a run keeps it from nothing
                self._grumbler.say("notes of runs are lost: %s", error)
            self._post(partial(self._sent, batch))

        self._desk.put(task)

    def _sent(self, batch: list[tuple[Run, Note]]) -> None:
        self._is_sending = False
        for run, _ in batch:
            run.unreported -= 1


def _is_amount(number: object) -> bool:
    """Whether this may be told; a report is refused as a whole, and holds what others told."""
    return type(number) in (int, float) and 0 <= number <= LIMITS.amount_max  # type: ignore[operator]
