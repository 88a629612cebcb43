"""A worker in this very process: it runs one handler at a time, where a debugger and a test can look at it.

It claims, renews and settles as any worker does, on a real database, and what it holds is as safe. But
what the handler does to this process it does to the worker, and nothing here stops one that blocks: past
its hard limit its job is taken from it by whoever sweeps (spec P-22). A cancel and a lost lease reach
`ctx.cancelled`, and a coroutine as a cancellation. A Ctrl-C gives the run back, and then goes on.
"""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from testigo.authority.actions import new_id
from testigo.authority.admit import admit, waits_for_admission
from testigo.authority.claim import Lease, QueueClaim, claim
from testigo.authority.deferred import settle_deferred
from testigo.authority.expire import expire
from testigo.authority.promote import promote
from testigo.authority.renew import Renewed
from testigo.authority.retire import retire, retire_lapsed
from testigo.authority.sessions import NewSession, close_session
from testigo.authority.settle import Settlement, settle
from testigo.configuration import retention_settings
from testigo.errors import Busy, Error, SessionReplaced
from testigo.rules.outcomes import Fail, RunFacts
from testigo.settings import STORE, WORKER
from testigo.store.database import Database
from testigo.worker.beater import Beater
from testigo.worker.direct import DirectPort
from testigo.worker.execute import run_async, run_sync
from testigo.worker.handlers import HandlerSpec, Registry
from testigo.worker.hosts import identity, own_processes
from testigo.worker.protocol import Run
from testigo.worker.sweeper import Sweeper
from testigo.worker.term import Term
from testigo.worker.wire import End

__all__ = ["InlineWorker"]

_INTERRUPTED = "drained"
"""Why a run is stopped by a Ctrl-C: it is given back."""


class InlineWorker:
    """One session whose runs are executed here, one after the other, by the thread that calls `step`.

        with InlineWorker(app.database, app.registry) as worker:
            while worker.step():
                pass

    Without `queues` it serves those that the handlers name. An `agent` that is named is exclusive: to enter waits
    while another worker has the name, and raises whatever else `open_session` refuses.
    """

    def __init__(
        self, db: Database, registry: Registry, *, queues: Sequence[str] = (), agent: str | None = None
    ) -> None:
        self.database = db
        self._registry = registry
        self.queues = tuple(dict.fromkeys(queues or (spec.queue for spec in registry)))
        session = NewSession(
            agent or f"inline-{new_id()}",
            self.queues,
            registry.kinds,
            exclusive=agent is not None,
            host=identity(),
            processes=own_processes([]),
        )
        self._sweep_at = 0.0
        self._leaving = threading.Event()
        self._begun = threading.Event()
        self._failed: BaseException | None = None
        self._term: Term | None = None
        self._running: DirectPort | None = None
        self._loop: asyncio.Runner | None = None
        self._beater = Beater(db, db, session, self, beats_per_term=WORKER.beats_per_term, leaving=self._leaving)

    def __enter__(self) -> Self:
        self._beater.start()
        self._begun.wait()
        if self._failed is not None:
            raise self._failed
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._leaving.set()
        self._beater.stop()
        if self._loop is not None:
            self._loop.close()
        if self._term is not None and self._term.over is None:
            self.database.run(close_session, self._term.session.id)

    def step(self) -> bool:
        """Run one job to its accepted end; False when there is none to run, what has fallen due included."""
        if time.monotonic() >= self._sweep_at:
            self._sweep()
        if self._take():
            return True
        self._sweep()
        return self._take()

    def serve(self, leaving: threading.Event) -> None:
        """Go on until `leaving` is set, which is looked at between two runs and at least once a second.

        Meanwhile it sweeps as any keeper does: what another worker held and left is taken back.
        """
        woken = threading.Event()
        sweeper = Sweeper(
            self.database, lambda _: woken.set(), reincarnated=self._beater.reopen, retention=retention_settings()
        )
        sweeper.start()
        try:
            with ExitStack() as hearing:
                for queue in self.queues:
                    hearing.enter_context(self.database.listener.subscribed(queue, woken.set))
                while not leaving.is_set():
                    woken.clear()
                    if not self.step():
                        woken.wait(STORE.poll_seconds)
        finally:
            sweeper.stop()

    def end_of(self, spec: HandlerSpec, run: Run, port: DirectPort) -> End:
        """Execute one run; a subclass may do it under other circumstances."""
        if not spec.is_async:
            return run_sync(spec, run, port)
        if self._loop is None:
            self._loop = asyncio.Runner()
        return self._loop.run(self._cancellable(spec, run, port))

    def port_of(self, term: Term, lease: Lease) -> DirectPort:
        """The way of one run to the database; a subclass may give it another."""
        return DirectPort(self.database, term, lease)

    def opened(self, term: Term) -> None:
        """The beater has opened a session."""
        self._term = term
        self._begun.set()

    def renewed(self, term: Term, renewed: Renewed) -> None:
        """The beater was answered: the run that it names is told to stop."""
        running = self._running
        for why, leases in (("lease_lost", renewed.lost), ("cancelled", renewed.cancelling)):
            if running is not None and running.term is term and running.held in leases:
                running.stop(why)

    def ended(self, term: Term) -> None:
        """The session is over: its run is another's, or nobody's. The next one is opened, unless we were replaced."""
        self._begun.clear()
        if term.over == "replaced":
            self.fatal(SessionReplaced(f"Another process took the place of {term.session.agent!r}."))
        running = self._running
        if running is not None and running.term is term:
            running.stop("lease_lost")

    def fatal(self, error: BaseException) -> None:
        """The beater cannot go on."""
        self._failed = error
        self._begun.set()

    def _current(self) -> Term:
        self._begun.wait()
        if self._failed is not None:
            raise self._failed
        assert self._term is not None
        return self._term

    def _take(self) -> bool:
        """Claim one job and run it; or end the jobs that a claim found unfit to be started."""
        term = self._current()
        action = term.action()
        wanted = [QueueClaim(queue, 1) for queue in self.queues]
        kinds = self._registry.kinds
        try:
            claimed = self.database.run(claim, wanted, kinds, slots=1, lease_id=new_id(), action=action)
        except SessionReplaced:
            self._beater.beat()  # it finds this out, and opens another session
            return False
        term.granted(action, [action.n] * len(claimed.leases), claimed.leases)
        if claimed.unfit:
            self.database.run(retire, claimed.unfit)
        for lease in claimed.leases:
            self._run(term, action.n, lease)
        return bool(claimed.leases or claimed.unfit)

    def _sweep(self) -> None:
        """What any worker does for all: take back, admit, promote and retire what is due."""
        while self.database.run(expire).more:
            pass
        while self.database.run(waits_for_admission) and self.database.run(admit).admitted:
            pass
        self.database.run(retire_lapsed)
        for queue in self.queues:
            self.database.run(promote, queue)
        self._sweep_at = time.monotonic() + STORE.poll_seconds

    def _run(self, term: Term, ticket: int, lease: Lease) -> None:
        spec = self._registry.get(lease.kind)
        assert spec is not None, "a claim names the kinds that are known"
        port = self.port_of(term, lease)
        self._running = port
        started_at, began = datetime.now(UTC), time.monotonic()
        try:
            with _interruptible(port):
                end = self.end_of(spec, _as_run(ticket, lease), port)
        finally:
            self._running = None
        facts = RunFacts(started_at=started_at, run_seconds=time.monotonic() - began)
        self._settle(term, Settlement(port.lease, end.outcome, facts, children=end.children))
        term.settled([ticket])
        if port.why_stopped == _INTERRUPTED:
            raise KeyboardInterrupt

    def _settle(self, term: Term, settlement: Settlement) -> None:
        """Report an end until it is accepted, or kept as a late result."""
        action = term.action()
        try:
            accepted = bool(self.database.run(settle, [settlement], action=action).accepted)
        except SessionReplaced:
            accepted = False
        try:
            if not accepted:
                self.database.run(settle_deferred, [(0, settlement)], action=action)
        except Error as error:
            if isinstance(error, Busy) or isinstance(settlement.outcome, Fail):
                raise
            # What cannot be accepted, such as a child whose key names other work, is a failure of this run.
            refused = Fail(error.code, error.message)
            self._settle(term, settlement._replace(outcome=refused, children=()))
        term.answered(action)

    async def _cancellable(self, spec: HandlerSpec, run: Run, port: DirectPort) -> End:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        port.on_stop = lambda: loop.call_soon_threadsafe(task.cancel)
        if port.why_stopped is not None:  # it was told before anybody listened
            task.cancel()
        try:
            return await run_async(spec, run, port)
        finally:
            port.on_stop = None


@contextmanager
def _interruptible(port: DirectPort) -> Iterator[None]:
    """Have a Ctrl-C give the run back, which is no failure of its job, where it would raise a KeyboardInterrupt."""
    is_ours = threading.current_thread() is threading.main_thread()
    if not is_ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return

    def interrupt(*_: object) -> None:
        port.stop(_INTERRUPTED)
        if port.on_stop is None:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _as_run(ticket: int, lease: Lease) -> Run:
    return Run(
        ticket=ticket,
        kind=lease.kind,
        queue=lease.queue,
        job_id=lease.job_id,
        epoch=lease.epoch,
        failures=lease.failures,
        losses=lease.losses,
        timeout_seconds=lease.timeout_seconds,
        finish_by=None if lease.finish_by is None else lease.finish_by.isoformat(),
        payload=lease.payload,
        checkpoint=lease.checkpoint,
        trace=lease.trace,
    )
