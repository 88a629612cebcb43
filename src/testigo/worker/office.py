"""The office: everything of a keeper that talks to the authority, each in a thread of its own (spec P-10, P-16)."""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Protocol

from testigo.authority.actions import new_id
from testigo.authority.processes import record_processes
from testigo.authority.sessions import NewSession, close_session
from testigo.configuration import installation
from testigo.errors import Invalid, SessionReplaced
from testigo.store.backend import Backend
from testigo.store.database import Database
from testigo.store.embedded.processes import Process, process
from testigo.worker.asking import Asker
from testigo.worker.beater import Beater, Told
from testigo.worker.child import credentials_of
from testigo.worker.claimer import Claimer, Taker
from testigo.worker.desk import Desk
from testigo.worker.hello import Hello
from testigo.worker.hosts import identity, own_processes
from testigo.worker.order import Order
from testigo.worker.reporter import Reporter
from testigo.worker.runners import Runner
from testigo.worker.settler import Counted, Settler
from testigo.worker.sweeper import Sweeper
from testigo.worker.term import Term

__all__ = ["Office"]

_log = logging.getLogger("testigo.worker")

OPENING_SECONDS = 1.0
"""How long a session that is just being opened is waited for, to close it."""
_OTHERS = 4
"""Connections besides those of the desk: the claimer's, the settler's two, the sweeper's."""


class Keeping(Told, Taker, Counted, Protocol):
    """All that the threads tell their keeper."""


class Office:
    """The threads of one keeper, from its first runner's hello on."""

    def __init__(
        self,
        order: Order,
        hello: Hello,
        keeper: Keeping,
        *,
        post: Callable[[Callable[[], object]], object],
        leaving: threading.Event,
    ) -> None:
        """`post` has the keeper's main thread make a call."""
        options = order.options
        where = installation(order.url or hello.url, order.schema or hello.schema)
        self.credentials = where.url, where.schema, credentials_of(os.environ)
        """What the publisher is told, for a connection of its own."""
        self._order = order
        self._post = post
        self._fatal = keeper.fatal
        self._thens: list[Callable[[], object]] = []
        self._unrecorded: tuple[Term, list[Process], list[Backend]] | None = None
        self._recorded: list[Backend] = []
        self._is_recording = False
        self.queues = order.queues or hello.queues
        if not self.queues:
            raise Invalid("The application has no jobs.", field="app", remedy="Register a handler with @app.job.")
        self._db = Database(where.url, schema=where.schema, pool_size=options.calls_max + _OTHERS)
        self._beating = Database(where.url, schema=where.schema, pool_size=1)
        new = NewSession(
            order.agent or f"{socket.gethostname()[:100]}:{os.getpid()}:{new_id()[-8:]}",
            self.queues,
            tuple(kind for kinds in hello.kinds for kind in kinds),
            exclusive=order.agent is not None,
            replace=order.replace,
            host=identity(),
            term_seconds=order.term_seconds,
        )
        slots = order.runners * options.slots
        self.claimer = Claimer(self._db, keeper, leaving=leaving, queues=self.queues, slots=slots)
        self.desk = Desk(self._db, options.calls_max, leaving=leaving)
        self.reporter = Reporter(self.desk, post)
        self.beater = Beater(
            self._beating, self._db, new, keeper, beats_per_term=options.beats_per_term, leaving=leaving
        )
        self.sweeper = Sweeper(self._db, self.claimer.wake, reincarnated=self.beater.reopen, retention=order.retention)
        self.settler = Settler(self._db, keeper, look=self.sweeper.look, leaving=leaving)
        for thread in (self.desk, self.settler, self.claimer, self.sweeper, self.beater):
            thread.start()

    @property
    def holds_ends(self) -> bool:
        """Whether the answer to some run's end is not known yet."""
        return bool(len(self.reporter) or self.settler.unanswered)

    @property
    def hears(self) -> bool:
        """Whether wake-ups arrive."""
        return self._db.listener.hears

    def serve(self, hello: Hello) -> None:
        """Claim the kinds that the newest runner has; its queues stay those of the first."""
        self.claimer.serve(*hello.kinds)
        unserved = [] if self._order.queues else [each for each in hello.queues if each not in self.queues]
        if unserved:
            _log.warning("queues that are new in the application wait for a new worker: %s", ", ".join(unserved))

    def record(self, term: Term, runners: Sequence[Runner], then: Callable[[], object]) -> None:
        """Have the session tell of these processes, and call `then` in the main thread once it does (spec P-20)."""
        self._thens.append(then)
        processes = [each for runner in runners if (each := process(runner.pid)) is not None]
        self._unrecorded = term, processes, self._backends(runners)
        if not self._is_recording:
            self._record()

    def connections_changed(self, runners: Iterable[Runner]) -> bool:
        """Whether the session tells of other connections than there are, those of the publisher included."""
        return self._backends(runners) != self._recorded

    def _backends(self, runners: Iterable[Runner]) -> list[Backend]:
        told = [each for runner in runners for each in runner.backends]
        return [*self._db.backends(), *self._beating.backends(), *told]

    def _record(self) -> None:
        """One record at a time, so that the last one sent is the last one kept."""
        if self._unrecorded is None:
            return
        (term, runners, self._recorded), self._unrecorded = self._unrecorded, None
        thens, self._thens = self._thens, []
        self._is_recording = True
        processes = own_processes(runners, self._recorded)

        def task(asker: Asker) -> None:
            try:
                asker.ask(record_processes, term.session.id, processes)
            except SessionReplaced:  # the beater hears of it, and opens another session
                self._post(partial(self._go_on, []))
            except Exception as error:
                self._fatal(error)
            else:
                self._post(partial(self._go_on, thens))

        self.desk.put(task)

    def _go_on(self, thens: Sequence[Callable[[], object]]) -> None:
        self._is_recording = False
        for then in thens:
            then()
        self._record()

    def announce(self, term: Term, hello: Hello) -> None:
        """One line that says what works here."""
        _log.info(
            "worker %s: %d runners of %d slots, queues %s, kinds %s",
            term.session.agent,
            self._order.runners,
            self._order.options.slots,
            ", ".join(self.queues),
            ", ".join(kind for kinds in hello.kinds for kind in kinds),
        )

    def close_session(self, term: Term | None, then: Callable[[], object]) -> None:
        """End the session, once nothing more is to be reported, and call `then` from a thread."""
        self.beater.close()
        self.sweeper.close()

        def task(asker: Asker) -> None:
            last = term or self.beater.last(OPENING_SECONDS)  # the keeper may not have heard of it yet
            try:
                if last is not None and last.over is None:
                    asker.ask(close_session, last.session.id)
            except Exception as error:
                _log.warning("the session was not closed: %s", error)
            then()

        self.desk.put(task)

    def close(self, *, orderly: bool) -> None:
        """Close every connection; without order what hangs is left to the end of the process."""
        self.beater.close()
        if orderly:
            self._beating.close()
            self._db.close()
