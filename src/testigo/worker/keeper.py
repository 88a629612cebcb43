"""The keeper: the only process of a worker that talks to the authority (spec P-15 to P-23).

Its main thread waits for whatever comes: frames of runners, the mailbox of the other threads,
signals, and the time at which something must be stopped. It alone owns the table of runs. It imports
nothing of the user's.
"""

from __future__ import annotations

import gc
import logging
import selectors
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from testigo.authority.renew import Renewed
from testigo.errors import Error, Invalid, SessionReplaced
from testigo.worker.dispatch import Dispatch
from testigo.worker.hello import Hello
from testigo.worker.mail import Mailbox
from testigo.worker.office import Office
from testigo.worker.order import Order
from testigo.worker.protocol import encode_frame
from testigo.worker.reload import Reloader
from testigo.worker.runners import Runner, Runners, State
from testigo.worker.runs import Run
from testigo.worker.signals import Signals
from testigo.worker.talk import Talk
from testigo.worker.term import Term, clock

if TYPE_CHECKING:
    from testigo.worker.metrics import Metrics

__all__ = ["Keeper"]

_log = logging.getLogger("testigo.worker")

GARBAGE_MIN = 50_000
"""New objects before cycles among them are looked for: at each 700th, that was a twelfth of the keeper's time."""
BACKLOG_MAX = 2_000
"""Ends that wait for their answer, before nothing more is claimed."""


class Keeper:
    """One worker. `run` returns its exit status."""

    def __init__(self, order: Order, runners: Runners, mail: Mailbox, signals: Signals) -> None:
        """`runners` may have begun to load the application, and signals may have come; `mail` is where they ring."""
        self._order = order
        self._options = order.options
        self._mail = mail
        self._signals = signals
        self._selector = selectors.DefaultSelector()
        self._runners = runners
        self._dispatch = Dispatch(
            self._runners, kill_grace_seconds=order.options.kill_grace_seconds, wait_seconds=order.term_seconds
        )
        self._talk = Talk(self._selector, self._runners, self._dispatch, self, post=self._mail.post)
        self._metrics: Metrics | None = None
        self._leaving = threading.Event()
        self._office: Office | None = None
        self._term: Term | None = None
        self._received = [0, 0, 0]
        self._is_fenced = False
        self._is_renewed = False
        self._drain_until: float | None = None
        self._leave_at: float | None = None
        self._leave_status = 0
        self._is_drained = False
        self._is_closing = False
        self._status: int | None = None

    def run(self) -> int:
        """Work until told to stop; the exit status says how that went: 0 when all was drained."""
        reloader = Reloader(Path.cwd(), partial(self._mail.post, self._reload)) if self._order.reload else None
        if self._order.metrics_port is not None:
            self._serve_metrics(self._order.metrics_port)
        with closing(self._signals):
            self._selector.register(self._mail.bell, selectors.EVENT_READ)
            if reloader is not None:
                reloader.start()
            try:
                self._runners.tend(time.monotonic())
                self._talk.attend()
                while self._status is None:
                    self._pass()
            finally:
                self._leaving.set()
                self._runners.end(self._options.kill_grace_seconds if self._status == 0 else 0.0)
                if reloader is not None:
                    reloader.close()
        if self._office is not None:
            self._office.close(orderly=self._status == 0)
            if self._status == 0:
                _log.info("drained: every outcome is committed, and nothing is held any more")
        self._selector.close()
        self._mail.close()
        return self._status

    # What the other threads tell, each from its own; the main thread acts on it.

    def opened(self, term: Term) -> None:
        """A session is open."""
        self._mail.post(partial(self._begin_term, term))

    def renewed(self, term: Term, renewed: Renewed) -> None:
        """A renewal was answered."""
        self._mail.post(partial(self._take_renewal, term, renewed))

    def ended(self, term: Term) -> None:
        """A session is over."""
        self._mail.post(partial(self._end_term, term))

    def taken(self, runs: Sequence[Run], *, seconds: float) -> None:
        """A claim took these runs."""
        self._mail.post(partial(self._take, runs, seconds))

    def drained(self) -> None:
        """Nothing more will be claimed."""
        self._mail.post(self._note_drained)

    def settled(self, runs: Sequence[Run], *, seconds: float) -> None:
        """The ends of these runs were answered."""
        self._mail.post(partial(self._take_answer, runs, seconds))

    def fatal(self, error: BaseException) -> None:
        """A thread cannot go on."""
        self._mail.post(partial(self._fail, error))

    # One pass of the loop: all that has come, as a batch.

    def _pass(self) -> None:
        ready = self._selector.select(self._patience(time.monotonic()))
        self._fence_if_due()  # before anything that came while this process may have been frozen
        for key, events in ready:
            if key.data is not None:
                self._talk.hear(key.data, events)
        self._mail.deliver()
        now = time.monotonic()
        self._obey(now)
        self._talk.bury(now)
        self._dispatch.enforce(now)
        self._runners.tend(now)
        self._feed(now)
        self._talk.attend()
        self._finish_if_done(now)

    def _patience(self, now: float) -> float | None:
        """How long nothing has to happen unless something comes."""
        times = [self._dispatch.next_at, self._drain_until, self._leave_at, self._runners.next_at(now)]
        waits = [at - now for at in times if at is not None]
        if self._term is not None and not self._is_fenced:
            waits.append(self._term.stop_at - clock())
        wait = min(waits, default=float("inf"))
        return None if wait == float("inf") else max(0.0, wait)

    def _feed(self, now: float) -> None:
        """Hand on what has ended, give what was claimed to runners, say how many slots are free."""
        office = self._office
        if office is None:
            return
        if not self._may_work:
            self._dispatch.give_back("the worker takes no work")
        self._dispatch.feed(now)
        ended, self._dispatch.ended = self._dispatch.ended, []
        if reported := office.reporter.pass_on(ended):
            office.settler.put(reported)
        for run in self._dispatch.dropped:
            run.term.settled([run.ticket])
        self._dispatch.dropped.clear()
        if self._is_fenced:
            self._resume_if_reported()
        slots = self._dispatch.free() if office.settler.unanswered < BACKLOG_MAX else (0, 0, 0)
        office.claimer.offer(*slots, received=self._received)
        self._received = [0, 0, 0]

    def _serve_metrics(self, port: int) -> None:
        """Most workers serve none: they neither load what it takes nor count for nobody."""
        from testigo.worker.metrics import Metrics

        self._metrics = Metrics()
        watched = {"in_flight": self._in_flight, "beat_age_seconds": self._beat_age_seconds, "hears": self._hears}
        self._metrics.watch(**watched)
        self._metrics.serve(port)

    def _in_flight(self) -> float:
        return len(self._dispatch) + (self._office.settler.unanswered if self._office else 0)

    def _hears(self) -> float:
        return self._office is not None and self._office.hears

    def _beat_age_seconds(self) -> float:
        term = self._term
        return float("nan") if term is None else term.beat_age_seconds

    @property
    def _is_empty(self) -> bool:
        """Whether no run is anywhere between its claim and the answer to its settle."""
        here = len(self._dispatch) + len(self._dispatch.ended)
        return not here and (self._office is None or not self._office.holds_ends)

    @property
    def _may_work(self) -> bool:
        return self._term is not None and not self._is_fenced and self._drain_until is None

    # Runners.

    def greeted(self, hello: Hello) -> None:
        """A runner has loaded the application; the first one opens the office."""
        if self._office is None:
            self._office = Office(self._order, hello, self, post=self._mail.post, leaving=self._leaving)
            self._talk.desk, self._talk.reporter = self._office.desk, self._office.reporter
            self._runners.credentials = self._office.credentials
            gc.freeze()  # what is loaded stays; and of what a run leaves behind, next to nothing is a cycle
            gc.set_threshold(GARBAGE_MIN)
        self._office.serve(hello)
        self._register()

    def broken(self, reason: str) -> None:
        """The application cannot be loaded: at the start that ends the worker, later it is tried again."""
        if self._office is None:
            self._fail(Invalid(reason, field="app", remedy="See that the module can be imported and names an App."))
        else:
            self._runners.delay(time.monotonic())
            _log.error("the application cannot be loaded: %s", reason)

    def died(self) -> None:
        """A runner ended unasked, or was killed."""
        if self._metrics is not None:
            self._metrics.died()

    def connected(self, then: Callable[[], object]) -> None:
        """Have the session tell of the connections that there are; without one, what has them is being stopped."""
        if self._office is not None and self._term is not None:
            self._office.record(self._term, list(self._runners), then)

    def _register(self) -> None:
        """Have the session tell of the new runners' processes; only then they get work (spec P-20)."""
        if self._office is None or self._term is None:
            return
        new = [runner for runner in self._runners if runner.state is State.GREETED]
        if new:
            self._office.record(self._term, list(self._runners), partial(self._admit, new))

    def _admit(self, runners: Sequence[Runner]) -> None:
        for runner in runners:
            if runner.state is State.GREETED:
                runner.state = State.READY
                runner.used_at = time.monotonic()

    def _reload(self) -> None:
        _log.info("the code has changed: fresh runners")
        self._runners.recycle_all()

    # The session.

    def _begin_term(self, term: Term) -> None:
        self._term = term
        self._is_renewed = True
        assert self._office is not None
        for runner in self._runners:
            if runner.state is State.READY:
                runner.state = State.GREETED  # the new session does not yet tell of it
        self._register()
        if term.session.replaced is not None:
            self._office.sweeper.look(term.session.replaced)
        if not self._is_fenced:
            self._office.claimer.hold(term)
        if self._runners.hello is not None:
            self._office.announce(term, self._runners.hello)

    def _take_renewal(self, term: Term, renewed: Renewed) -> None:
        if term is not self._term:
            return
        now = time.monotonic()
        self._is_renewed = True
        if self._office is not None and self._office.connections_changed(self._runners):
            self.connected(lambda: None)
        if renewed.lost:
            self._dispatch.stop(renewed.lost, "lease_lost", now)
        if renewed.cancelling:
            self._dispatch.stop(renewed.cancelling, "cancelled", now)
        if renewed.draining and self._drain_until is None:
            _log.info("the session was asked to drain")
            self._drain(now)

    def _end_term(self, term: Term) -> None:
        if term is not self._term or self._is_closing:
            return
        self._term = None
        if self._office is not None:
            self._office.claimer.hold(None)
        if term.over == "replaced":
            agent = term.session.agent
            self._fail(SessionReplaced(f"Another process took the place of {agent!r}.", session=term.session.id))
            return
        _log.warning("the session is %s: its runs are stopped, and another is opened", term.over)
        self._dispatch.stop_all("lease_lost", time.monotonic())

    def _fence_if_due(self) -> None:
        """No renewal was answered for too long: stop before anybody may call the session dead (spec P-19)."""
        if self._term is None or self._is_fenced or clock() < self._term.stop_at:
            return
        self._is_fenced, self._is_renewed = True, False
        for runner in self._runners:
            runner.kill("the keeper could not renew its session")
        if self._office is not None:
            self._office.claimer.hold(None)
        # Said once it is done: a log that nobody reads any more may keep this thread for ever.
        _log.warning("the session could not be renewed in time: its runners are killed until it can")

    def _resume_if_reported(self) -> None:
        """A keeper that fenced itself reports what it killed before it claims again (spec P-16)."""
        assert self._office is not None
        if self._term is None or not self._is_renewed or not self._is_empty:
            return
        _log.info("the session is renewed: work goes on")
        self._is_fenced = False
        self._office.claimer.hold(self._term)

    def _take_answer(self, runs: Sequence[Run], seconds: float) -> None:
        if self._metrics is not None:
            self._metrics.settled(runs, seconds)

    def _take(self, runs: Sequence[Run], seconds: float) -> None:
        for run in runs:
            self._received[run.walk] += 1
        if self._metrics is not None:
            self._metrics.claimed(len(runs), seconds)
        if self._may_work and runs[0].term is self._term:
            self._dispatch.take(runs, time.monotonic())
        else:
            self._dispatch.give_back("the worker takes no work", runs)

    # The end.

    def _obey(self, now: float) -> None:
        """SIGTERM, SIGINT, SIGHUP: the first drains, the second forces, a third waits for nothing."""
        for number in self._signals.stops():
            if self._drain_until is None:
                _log.info("draining: what runs may finish within %g s", self._options.drain_seconds)
                self._drain(now)
            elif self._leave_at is None:
                self._force(now, number)
            else:
                self._status = 128 + number

    def _drain(self, now: float) -> None:
        self._drain_until = now + self._options.drain_seconds
        self._runners.closing = True
        if self._office is None:
            self._status = 0
            return
        self._office.claimer.drain()
        for runner in self._runners:
            runner.child.send(encode_frame(["drain"]))

    def _force(self, now: float, number: int) -> None:
        _log.warning("stopping at once: what runs is given back")
        self._leave_status = 128 + number
        self._leave_at = now + self._options.kill_grace_seconds
        for runner in self._runners:
            runner.kill("the worker was stopped")

    def _finish_if_done(self, now: float) -> None:
        if self._drain_until is None or self._status is not None or self._office is None:
            return
        if self._leave_at is not None and now >= self._leave_at:
            self._status = self._leave_status
        elif self._leave_at is None and now >= self._drain_until:
            self._drain_until = float("inf")
            self._dispatch.stop_all("drained", now)
        if self._is_empty and self._is_drained and not self._is_closing:
            self._is_closing = True
            self._office.close_session(self._term, partial(self._mail.post, self._leave))

    def _note_drained(self) -> None:
        self._is_drained = True

    def _leave(self) -> None:
        self._status = self._leave_status

    def _fail(self, error: BaseException) -> None:
        """End the worker with this error."""
        if self._status is not None:
            return
        expected = isinstance(error, Error)
        _log.error("the worker ends: %s", error, exc_info=None if expected else error)
        self._status = error.exit_status if isinstance(error, Error) else Error.exit_status
