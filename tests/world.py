"""Short words for what tests do to an installation: submit, claim as some worker, settle, look.

Nothing here decides anything: every word is one or two real commands on a real database.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from testigo.authority.actions import Action, JobId, SessionAction, SessionId, new_id
from testigo.authority.admit import admit, waits_for_admission
from testigo.authority.claim import Claimed, Lease, QueueClaim, claim
from testigo.authority.deferred import SettledRow, settle_deferred
from testigo.authority.prune import Pruned
from testigo.authority.sessions import NewSession, Session, open_session
from testigo.authority.settle import Settled, Settlement, settle
from testigo.authority.start import Held
from testigo.authority.submissions import NewJob
from testigo.authority.submit import submit_many
from testigo.journal.prune import prune_events
from testigo.rules.outcomes import Outcome, Succeed
from testigo.store.database import Database
from testigo.store.sql import Statement

__all__ = ["Worker", "World"]

_JOB = Statement("SELECT *, CAST(state AS text) AS state FROM testigo.job WHERE id = CAST(:id AS uuid)")
_AGE = Statement("UPDATE testigo.event SET at = '2000-01-01' WHERE stream = :stream AND sequence <= :up_to RETURNING 1")
_EVENTS = Statement("SELECT * FROM testigo.event WHERE subject = CAST(:id AS uuid) ORDER BY stream, sequence")


class World:
    """An installation, seen by a test."""

    def __init__(self, db: Database) -> None:
        self.db = db

    def action(self, actor: str = "tester") -> Action:
        """A new action."""
        return Action(actor)

    def submit(self, *jobs: NewJob, **given: Any) -> list[JobId]:
        """Submit these jobs, or one `work` job with these fields, and return the ids."""
        asked = jobs or (NewJob(**{"kind": "work", "queue": "q", **given}),)
        return [row.job_id for row in self.db.run(submit_many, asked, action=self.action()).jobs]

    def admit(self) -> None:
        """Have every job admitted that waits for it, by us or by whoever else does it at the same time."""
        while self.db.run(waits_for_admission):
            self.db.run(admit)

    def worker(
        self, agent: str | None = None, queues: Sequence[str] = ("q",), kinds: Sequence[str] = ("work",)
    ) -> Worker:
        """A worker with an open session."""
        name = agent or f"worker-{new_id()}"
        session = self.db.run(open_session, NewSession(name, tuple(queues), tuple(kinds)), action=self.action(name))
        return Worker(self.db, session, tuple(queues), tuple(kinds))

    def job(self, job_id: str) -> Any:
        """The job's row as it stands."""
        return self.query(_JOB, id=job_id)[0]

    def state(self, job_id: str) -> str:
        """The job's state as it stands."""
        return str(self.job(job_id).state)

    def events(self, job_id: str) -> list[str]:
        """The types of the events that tell of a job, in order."""
        return [row.type for row in self.query(_EVENTS, id=job_id)]

    def holders(self, text: str) -> set[str]:
        """The tables that hold this text in any column of any row."""
        tables = self.query(
            "SELECT relname FROM pg_class WHERE relnamespace = CAST('testigo' AS regnamespace) AND relkind = 'r'"
        )
        assert len(tables) > 15
        looks = {
            each.relname: f"SELECT 1 FROM testigo.{each.relname} t WHERE CAST(t AS text) LIKE :it" for each in tables
        }
        return {name for name, look in looks.items() if self.query(look, it=f"%{text}%")}

    def age(self, stream: str, up_to: int) -> None:
        """Let this stream's events up to there be older than any is kept."""
        self.query(_AGE, stream=stream, up_to=up_to)

    def prune_events(self, stream: str, *, up_to: int) -> Pruned:
        """Prune this stream up to there, and whatever else is old."""
        self.age(stream, up_to)
        return self.db.run(prune_events)

    def query(self, statement: Statement | str, **parameters: Any) -> list[Any]:
        """The rows of a query of the test's own."""
        wanted = statement if isinstance(statement, Statement) else Statement(statement)
        return self.db.run(lambda c: wanted.rows(c, **parameters))


class Worker:
    """A worker's session and its count of commands."""

    def __init__(self, db: Database, session: Session, queues: tuple[str, ...], kinds: tuple[str, ...]) -> None:
        self.db = db
        self.session = session
        self.queues = queues
        self.kinds = kinds
        self.n = 0

    @property
    def id(self) -> SessionId:
        """The session's id."""
        return self.session.id

    def action(self) -> SessionAction:
        """The session's next command."""
        self.n += 1
        return SessionAction(self.session.id, self.session.agent, self.n)

    def claim(self, slots: int = 10, **options: Any) -> Claimed:
        """Claim from the worker's queues."""
        queues = [QueueClaim(queue, slots) for queue in self.queues]
        return self.db.run(claim, queues, self.kinds, slots=slots, lease_id=new_id(), action=self.action(), **options)

    def take(self) -> Lease:
        """Claim exactly one job, which must be there."""
        (lease,) = self.claim(1).leases
        return lease

    def settle(self, *ends: tuple[Lease, Outcome]) -> Settled:
        """Settle these runs, the deferred ones as well; answers the receipt of the fast path."""
        settled, _ = self._settle(ends)
        return settled

    def settle_slowly(self, *ends: tuple[Lease, Outcome]) -> list[SettledRow]:
        """Settle these runs, none of which the fast path accepts; answers what became of each."""
        settled, rows = self._settle(ends)
        assert not settled.accepted
        return rows

    def _settle(self, ends: Sequence[tuple[Lease, Outcome]]) -> tuple[Settled, list[SettledRow]]:
        action = self.action()
        rows = [settlement(lease, outcome) for lease, outcome in ends]
        settled = self.db.run(settle, rows, action=action)
        if not settled.deferred:
            return settled, []
        deferred = [(at, rows[at]) for at in settled.deferred]
        return settled, list(self.db.run(settle_deferred, deferred, action=action).rows)

    def succeed(self, *leases: Lease) -> None:
        """Settle these runs as succeeded."""
        self.settle(*((lease, Succeed()) for lease in leases))


def settlement(lease: Lease, outcome: Outcome, **more: Any) -> Settlement:
    """A run's end, as its holder would report it."""
    return Settlement(lease, outcome, **more)


def held(lease: Lease) -> Held:
    """A lease as its holder names it."""
    return Held(lease.job_id, lease.lease_id, lease.epoch)
