"""A session is renewed at once when something asks for it, from the moment at which it can hold work."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from testigo.authority.actions import new_id
from testigo.authority.cancel import cancel
from testigo.authority.claim import QueueClaim, claim
from testigo.authority.renew import Renewed
from testigo.authority.sessions import NewSession
from testigo.authority.start import Held
from testigo.store.database import Database
from testigo.worker.beater import Beater
from testigo.worker.term import Term
from tests.worker.kit import PATIENCE_SECONDS, await_that
from tests.world import World


class Keeping:
    """A keeper that claims as soon as it has a session, and whose job is cancelled in the same moment."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.held: Held | None = None
        self.cancelling = threading.Event()
        self.errors: list[BaseException] = []

    def opened(self, term: Term) -> None:
        """Take the job, have it cancelled, and wait until whoever listens was told."""
        action = term.action()
        asked = [QueueClaim("q", 1)]
        (lease,) = self._world.db.run(claim, asked, ("work",), slots=1, lease_id=new_id(), action=action).leases
        term.granted(action, [1], [lease])
        self.held = Held(lease.job_id, lease.lease_id, lease.epoch)
        told = threading.Event()
        with self._world.db.listener.subscribed(f"session:{term.session.id}", told.set):
            self._world.db.run(cancel, [lease.job_id], action=self._world.action())
            assert told.wait(PATIENCE_SECONDS)

    def renewed(self, term: Term, renewed: Renewed) -> None:
        """Note the beat that told of the cancel."""
        if self.held in renewed.cancelling:
            self.cancelling.set()

    def ended(self, term: Term) -> None:
        """The session is over."""

    def fatal(self, error: BaseException) -> None:
        """The thread came to an end."""
        self.errors.append(error)


@pytest.fixture
def beating(database_url: str) -> Iterator[Database]:
    """The connection that is reserved for beats."""
    with Database(database_url, pool_size=1) as db:
        yield db


def test_a_cancel_that_comes_as_soon_as_a_session_is_open_is_heard(world: World, beating: Database) -> None:
    """Without waiting for its next beat, which is an hour away (spec P-16, D-20)."""
    world.submit()
    keeping, leaving = Keeping(world), threading.Event()
    new = NewSession("beater", ("q",), ("work",), term_seconds=3600)
    beater = Beater(beating, world.db, new, keeping, beats_per_term=1, leaving=leaving)
    await_that(lambda: world.db.listener.hears, "the listener")
    beater.start()
    assert keeping.cancelling.wait(PATIENCE_SECONDS)
    leaving.set()
    beater.stop()
    assert not keeping.errors
