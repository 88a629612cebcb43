"""The beater: opens the keeper's sessions and renews them, on a connection reserved for it (spec P-16, P-19, P-21).

A renewal is sent `beats_per_term` times in a term, and at once when a wake-up asks for it: a cancel
then reaches its handler without waiting for the next beat. Whoever must stop because no renewal was
answered is not told here but watches `Term.stop_at`: this thread may hang with its database. By then
all of the worker's connections are hung up, so that whoever waits on a line that went dead without a
word asks again on another.
"""

from __future__ import annotations

import logging
import threading
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from typing import Protocol

from testigo.authority.actions import Action, SessionId, new_id
from testigo.authority.renew import Renewed, renew
from testigo.authority.sessions import NewSession, Session, close_session, open_session
from testigo.errors import Conflict, NotFound, SessionBusy, SessionReplaced
from testigo.settings import SESSIONS, STORE
from testigo.store.database import Database
from testigo.worker.asking import Asker, Grumbler, impatient
from testigo.worker.term import Term, clock

__all__ = ["Beater", "Told"]

_log = logging.getLogger("testigo.worker")


class Told(Protocol):
    """What a beater tells its keeper, from its own thread; nothing of it waits."""

    def opened(self, term: Term) -> None:
        """A session is open and has beaten once."""

    def renewed(self, term: Term, renewed: Renewed) -> None:
        """A renewal was answered."""

    def ended(self, term: Term) -> None:
        """A session is over, as `term.over` says; another is opened next, unless it was replaced."""

    def fatal(self, error: BaseException) -> None:
        """Nothing can be opened here."""


class Beater:
    """One thread that holds one session after the other, on its own connection."""

    def __init__(
        self,
        beating: Database,
        db: Database,
        new: NewSession,
        told: Told,
        *,
        beats_per_term: int,
        leaving: threading.Event,
    ) -> None:
        """`beating` is the reserved connection; `db` has all others, and hears wake-ups."""
        self._asker = Asker(beating, leaving)
        self._grumbler = Grumbler()
        self._beating = beating
        self._db = db
        self._new = new
        self._told = told
        self._beats_per_term = beats_per_term
        self._leaving = leaving
        self._wanted = threading.Event()
        self._is_elsewhere = False
        self._last: Term | None = None
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="testigo-beater", daemon=True)

    def start(self) -> None:
        """Open the first session, and go on."""
        self._thread.start()

    def beat(self) -> None:
        """Renew at once."""
        self._wanted.set()

    def reopen(self) -> None:
        """Give this session up for another: the database is another incarnation, and may grant epochs again (P-23)."""
        self._is_elsewhere = True
        self._wanted.set()

    def close(self) -> None:
        """Send no further beat, and open no further session."""
        self._closing.set()
        self._wanted.set()

    def last(self, seconds: float) -> Term | None:
        """After `close`, the session that was opened last, as soon as none is on its way or so long has passed."""
        self._thread.join(seconds)
        return self._last

    def stop(self) -> None:
        """As `close`; returns once no beat is on its way."""
        self.close()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._closing.is_set():
                # From before it can hold anything: nothing is cancelled unheard.
                with self._db.listener.subscribed(f"session:{self._new.id}", self.beat):
                    term = self._open()
                    if term is None:
                        return
                    self._keep(term)
                if term.over is None:
                    return
                self._told.ended(term)
                if term.over == "replaced":
                    return
                self._new = replace(self._new, id=SessionId(new_id()), replace=False)
        except BaseException as error:
            if not self._leaving.is_set():
                self._told.fatal(error)

    def _open(self) -> Term | None:
        """A session that is open; waits while another of the same name lives (spec P-21)."""
        action = Action(self._new.agent)
        waits = False
        while not self._closing.is_set():
            opened_at = clock()
            try:
                with self._impatient():
                    session = self._asker.ask(open_session, self._new, action=action)
            except SessionBusy as error:
                if not waits:
                    _log.warning("%s waits: %s %s", self._new.agent, error.message, error.remedy)
                waits = True
                self._closing.wait(STORE.poll_seconds / 2)
                continue
            return self._first_beat(session, opened_at)
        return None

    def _first_beat(self, session: Session, opened_at: float) -> Term:
        """The opening may have been asked for a long time: a beat at once says from when the term counts."""
        self._last = term = Term(session, opened_at=opened_at)
        self._renew(term)
        if term.over is None:
            self._told.opened(term)
        return term

    def _keep(self, term: Term) -> None:
        """Beat until the session is over, or nobody wants it any more."""
        interval = term.session.term_seconds / self._beats_per_term
        while term.over is None:
            self._wanted.wait(interval)
            self._wanted.clear()
            if self._closing.is_set():
                return
            if self._db.hang_up(STORE.answer_seconds):
                self._grumbler.say("a command was not answered in %g s and is sent again", STORE.answer_seconds)
            if self._is_elsewhere:
                self._give_up(term)
            else:
                self._renew(term)

    def _give_up(self, term: Term) -> None:
        self._is_elsewhere = False
        _log.warning("the database is another incarnation: the session is opened anew")
        term.over = "reopened"
        with suppress(NotFound):
            self._asker.ask(close_session, term.session.id)

    def _renew(self, term: Term) -> None:
        beat, held, low_water = term.next_beat()
        session = term.session
        try:
            with self._impatient():
                renewed = self._asker.ask(renew, session.id, held, epoch=session.epoch, beat=beat, low_water=low_water)
        except SessionReplaced as error:
            term.over = str(error.facts.get("state", "unknown"))
        except Conflict as error:  # another incarnation of the database, which does not know our beats (P-23)
            _log.warning("the session is given up: %s", error.message)
            term.over = "unknown"
        else:
            term.beaten(beat)
            self._told.renewed(term, renewed)

    def _impatient(self) -> AbstractContextManager[None]:
        """Wait no longer for one answer than a holder may go without."""
        return impatient(SESSIONS.stop_after_terms * self._new.term_seconds, self._hang_up)

    def _hang_up(self) -> None:
        self._grumbler.say("the database does not answer: every connection to it is made anew")
        for db in (self._beating, self._db):
            db.hang_up()
