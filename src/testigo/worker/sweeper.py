"""The sweeper: does what anybody may do for all, in one thread of a keeper or a server (spec P-13, P-18, P-22).

It watches beats and declares sessions dead, takes back what sessions that are over hold, ends runs that go on
past their limits, admits, promotes and retires what is due, ends analyses that nobody will publish, and prunes.
Any number of sweepers may run. Each of these is a chore with a time of its own; one that fails waits a little longer
and keeps none of the others, and nothing ends the thread.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from testigo.authority.actions import JobId, SessionId
from testigo.authority.admit import admit
from testigo.authority.expire import Beats, declare_dead, expire, read_beats
from testigo.authority.probe import probe
from testigo.authority.processes import holding, terminate_backends
from testigo.authority.promote import promote
from testigo.authority.prune import Pruned, prune_jobs, prune_receipts, prune_sessions, prune_tombstones
from testigo.authority.retire import retire_lapsed
from testigo.authority.time_out import read_runs, time_out
from testigo.errors import Error, KeyBusy
from testigo.evidence.abandoned import end_abandoned
from testigo.journal.prune import prune_events
from testigo.rules.leases import Reading, RunReading, Watch
from testigo.settings import RETENTION, SESSIONS, STORE, WORKER, Retention
from testigo.store.command import single_statement
from testigo.store.database import Database
from testigo.store.failures import reason_of
from testigo.worker.asking import Grumbler
from testigo.worker.hosts import identity
from testigo.worker.neighbours import Neighbours

__all__ = ["Sweeper"]

_log = logging.getLogger("testigo.worker")

LOOK_SECONDS_MIN = 0.05
"""However often it is asked to look, it looks no more often than this."""
ENDING_SECONDS = 0.02
"""Until it is seen again whether processes that were killed are gone; each time it takes twice as long."""
SOON_SECONDS = 0.1
"""What comes of age within this is read just then, and not a little earlier as other reads are."""
DUE_SECONDS_MIN = 0.005
"""Between looks for jobs that fall due one after another."""
TURN_SECONDS = 0.25
"""A chore that has more to do goes on after this, once the others had their turn: beats are read in time."""
PASSES = 3
"""After a session ended, so many sweeps of its leases: a claim of its may have been on its way."""
RUN_READS_PER_TERM = 6
"""More often than `CAPS_PER_TERM`: then every interval counts whole."""
LOOK_SHARE, BACKSTOP_SHARE = 0.1, 0.01
"""Of the time, for looks at what is due, and for those that nearly always find nothing: under a snapshot that
is held for long, an index is full of what has ended, and a look at it dear."""
ABANDONED_SECONDS = 5.0
"""Until it is looked again for analyses that nobody will publish."""
PRUNE_SHARE = 0.2
"""Of its time, while there is more to prune."""

Woken = Callable[[tuple[str, ...]], object]


@dataclass(slots=True)
class _Chore:
    """Something that is done now and then: `work` says in how many seconds again."""

    name: str
    work: Callable[[], float]
    at: float = 0.0
    failures: int = 0

    def do(self, grumbler: Grumbler) -> None:
        """Do it, and note when it is due again, which after a failure is later and later."""
        try:
            seconds = self.work()
        except Exception as error:
            self.failures += 1
            ceiling = STORE.retry_first_seconds * 2 ** min(self.failures, 16)
            seconds = min(STORE.retry_cap_seconds, ceiling) * random.uniform(0.5, 1.0)
            grumbler.say("%s failed and is tried again: %s", self.name, _words(error))
        else:
            self.failures = 0
        self.at = time.monotonic() + seconds


class Sweeper:
    """One thread that sweeps from `start` to `close`.

    `woken` is called from it with the names of queues in which there is work that was not there before, and
    `reincarnated` when the database is found to be another incarnation (spec P-23).
    """

    def __init__(
        self,
        db: Database,
        woken: Woken,
        *,
        reincarnated: Callable[[], object] = lambda: None,
        retention: Retention = RETENTION,
        host: str | None = None,
    ) -> None:
        """`db` is used by one command at a time. `host` is this one, unless a test says otherwise."""
        self._db = db
        self._retention = retention
        self._woken = woken
        self._reincarnated = reincarnated
        self._neighbours = Neighbours(db, identity() if host is None else host)
        self._beats: Watch[Reading] = Watch()
        self._runs: Watch[RunReading] = Watch()
        self._incarnation = ""
        self._live: dict[str, float] = {}
        self._over: set[SessionId] = set()
        """Sessions that did not end by their own will, whose connections are still to be ended."""
        self._passes = PASSES
        self._sweep_at = 0.0
        self._grumblers: dict[str, Grumbler] = {}
        self._watch = _Chore("watching the beats", self._watch_beats)
        self._look = _Chore("a look for what is due", self._look_around)
        prunes = _Chore("pruning", self._prune, time.monotonic() + random.uniform(0, WORKER.prune_seconds))
        self._chores = [
            self._watch,
            self._look,
            _Chore("watching the runs", self._watch_runs),
            _Chore("ending abandoned analyses", self._end_abandoned),
            prunes,
        ]
        self._looked_at = 0.0
        self._endings = 0
        self._asked = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="testigo-sweeper", daemon=True)

    def start(self) -> None:
        """Begin; what is to be taken back on this host is taken back at once."""
        self._thread.start()

    def look(self, replaced: SessionId | None = None) -> None:
        """Look at once for what is due, and for what sessions that are over hold: the caller knows of something.

        `replaced` is a session whose place was taken.
        """
        if replaced is not None:
            self._over.add(replaced)
        self._passes = PASSES
        self._asked.set()

    def close(self) -> None:
        """Do no further chore."""
        self._closing.set()
        self._asked.set()

    def stop(self) -> None:
        """As `close`; returns once no command is on its way."""
        self.close()
        self._thread.join()

    def _run(self) -> None:
        while not self._closing.is_set():
            for chore in self._chores:
                if chore.at <= time.monotonic() and not self._closing.is_set():
                    chore.do(self._grumblers.setdefault(chore.name, Grumbler()))
            self._asked.wait(max(0.0, min(chore.at for chore in self._chores) - time.monotonic()))
            if self._asked.is_set():
                self._asked.clear()
                for chore in (self._watch, self._look):
                    chore.at = min(chore.at, self._looked_at + LOOK_SECONDS_MIN)

    def _watch_beats(self) -> float:
        """Read every live session's beat, and declare dead those that were watched unchanged for their term."""
        try:
            beats, answered_at = self._read_beats()
        except Exception:
            self._beats.failed()
            raise
        if self._incarnation not in ("", beats.incarnation):
            self._reincarnated()
        self._incarnation = beats.incarnation
        self._beats.observe(beats.readings, beats.incarnation, answered_at=answered_at)
        live = {reading.session_id: reading.term_seconds for reading in beats.readings}
        for reading in self._beats.dead():
            if self._db.run(declare_dead, reading.session_id, epoch=reading.epoch, beat=reading.beat):
                _log.warning("the session %s did not beat for its whole term: it is dead", reading.session_id)
                live.pop(reading.session_id, None)
                self._over.add(SessionId(reading.session_id))
        if self._live.keys() - live:
            self._passes = PASSES
        self._live = live
        is_due = self._passes > 0 or time.monotonic() >= self._sweep_at
        if is_due and not self._take_back():
            return 0.0
        seconds = self._beats.next_read_seconds()
        return seconds * random.uniform(0.7, 1.0) if seconds > SOON_SECONDS else seconds

    def _read_beats(self) -> tuple[Beats, float]:
        """The beats and when they were answered; a read that had to be sent again resets what was seen."""
        tries = 0

        @single_statement
        def read(c: Connection) -> Beats:
            nonlocal tries
            tries += 1
            return read_beats(c)

        beats = self._db.run(read)
        answered_at = time.monotonic()
        if tries > 1:
            self._beats.failed()
        return beats, answered_at

    def _take_back(self) -> bool:
        """Take back what sessions that are over hold; whether it was all that there is.

        Their connections are ended, so that of a process that hangs no lock is left, whatever it was doing: no time
        limit of the server's ends a transaction in whose statement the client stopped (spec P-10).
        """
        began_at = time.monotonic()
        try:
            if not self._until(self._expire):
                self._passes = PASSES
                return False
        except KeyBusy as error:  # a stream's head is held, perhaps by one of those sessions
            _log.info("a sweep was blocked: %s", error.message)
        self._passes = max(0, self._passes - 1)
        holds = self._db.run(holding)
        if holds:
            self._passes = PASSES
        for session_id in holds | self._over:
            self._end_connections(session_id)
            self._over.discard(session_id)
        took = time.monotonic() - began_at
        self._sweep_at = time.monotonic() + max(SESSIONS.term_seconds, took / BACKSTOP_SHARE)
        return True

    def _end_connections(self, session_id: SessionId) -> None:
        """End those of a session that is over; another role's may not be ours to end."""
        try:
            ended = self._db.run(terminate_backends, session_id)
        except DBAPIError as error:
            _log.warning("the connections of the session %s were not ended: %s", session_id, reason_of(error))
            return
        if ended:
            _log.info("the session %s is over: %d connections that it had were ended", session_id, ended)

    def _expire(self) -> bool:
        taken = self._db.run(expire)
        self._wake(taken.wakes)
        return not taken.more

    def _watch_runs(self) -> float:
        """Read what runs, and end what was watched past its limit."""
        took = 0.0
        if self._live:
            began_at = time.monotonic()
            try:
                readings = self._db.run(read_runs)
            except Exception:
                self._runs.failed()
                raise
            answered_at = time.monotonic()
            took = answered_at - began_at
            self._runs.observe(readings, self._incarnation, answered_at=answered_at)
            for run in self._runs.dead():
                taken = self._db.run(time_out, JobId(run.job_id), run.epoch)
                if taken.taken:
                    _log.warning("the job %s ran past its limit under a keeper that did not end it", run.job_id)
                self._wake(taken.wakes)
        term = min(self._live.values(), default=SESSIONS.term_seconds)
        return max(term / RUN_READS_PER_TERM * random.uniform(0.8, 1.0), took / BACKSTOP_SHARE)

    def _look_around(self) -> float:
        """Do what is due, and say when something is next, at most one poll from now."""
        self._looked_at = time.monotonic()
        closed, ending = self._neighbours.recover(self._live)
        if closed:
            self._passes = PASSES
            self._take_back()
        began_at = time.monotonic()
        found = self._db.run(probe)
        dear = (time.monotonic() - began_at) / LOOK_SHARE
        done = not found.admits or self._until(self._admit)
        for queue in found.due:
            done &= self._until(partial(self._promote, queue))
        done &= not found.lapses or self._until(self._retire)
        if not done:
            return 0.0
        poll = STORE.poll_seconds * random.uniform(0.8, 1.0)
        self._endings = self._endings + 1 if ending else 0
        again = ENDING_SECONDS * 2 ** min(self._endings, 16) if ending else poll
        due = poll if found.next_due_seconds is None else max(DUE_SECONDS_MIN, found.next_due_seconds)
        return max(min(poll, due, again), dear)

    def _admit(self) -> bool:
        admitted = self._db.run(admit)
        self._wake(admitted.wakes)
        return admitted.admitted < STORE.sweep_rows

    def _promote(self, queue: str) -> bool:
        promoted = self._db.run(promote, queue)
        self._wake(promoted.wakes)
        return promoted.promoted < STORE.sweep_rows

    def _retire(self) -> bool:
        return self._db.run(retire_lapsed) < STORE.sweep_rows

    def _end_abandoned(self) -> float:
        began_at = time.monotonic()
        done = self._until(self._end_one)
        return max(ABANDONED_SECONDS, (time.monotonic() - began_at) / BACKSTOP_SHARE) if done else 0.0

    def _end_one(self) -> bool:
        ended = self._db.run(end_abandoned)
        if ended.analysis_id is not None:
            _log.warning("the analysis %s will not be published any more: it has ended", ended.analysis_id)
        return ended.analysis_id is None

    def _until(self, is_done: Callable[[], bool]) -> bool:
        """Do batch after batch, for a turn; whether there is no more."""
        ends_at = time.monotonic() + TURN_SECONDS
        while not self._closing.is_set():
            if is_done():
                return True
            if time.monotonic() >= ends_at:
                break
        return False

    def _prune(self) -> float:
        """Remove one batch of each kind; while there is more, go on in a share of the time."""
        began_at = time.monotonic()
        kept = self._retention
        prunes = {
            prune_jobs: kept.jobs_days,
            prune_receipts: kept.receipts_days,
            prune_sessions: kept.receipts_days,
            prune_events: kept.events_days,
            prune_tombstones: kept.tombstones_days,
        }
        more = [self._pruned(prune, days) for prune, days in prunes.items() if not self._closing.is_set()]
        if any(more):
            return (time.monotonic() - began_at) * (1 / PRUNE_SHARE - 1)
        return WORKER.prune_seconds * random.uniform(0.8, 1.2)

    def _pruned(self, prune: Callable[..., Pruned], days: int) -> bool:
        """Remove one batch; whether there is more. If somebody holds what it needs, the other kinds have their turn."""
        try:
            return self._db.run(prune, older_than_days=days).more
        except KeyBusy as error:
            _log.info("%s was blocked: %s", prune.__name__, error.message)
            return False

    def _wake(self, queues: tuple[str, ...]) -> None:
        if queues:
            self._woken(queues)


def _words(error: Exception) -> str:
    return error.message if isinstance(error, Error) else reason_of(error)
