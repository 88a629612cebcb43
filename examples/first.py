"""A first look: work is accepted, its worker disappears, and nothing is lost or done twice.

    python examples/first.py

It needs no server: testigo starts a real PostgreSQL in `.testigo` beside this project.
"""

from __future__ import annotations

from uuid import uuid4

from testigo import Action, Database, NewJob, encode, submit, submit_many
from testigo.authority.actions import SessionAction, new_id
from testigo.authority.claim import Lease, QueueClaim, claim
from testigo.authority.deferred import settle_deferred
from testigo.authority.expire import expire
from testigo.authority.sessions import NewSession, Session, close_session, open_session
from testigo.authority.settle import Settlement, settle
from testigo.journal.history import history
from testigo.rules.outcomes import Succeed

QUEUE = f"first-{uuid4().hex[:8]}"  # a queue of this run's own, so that every run tells the same story
KIND = "media.transcode"


def main() -> None:
    """Tell the story once."""
    with Database() as db:  # TESTIGO_URL, or the embedded server
        print(f"database   {db.embedded_directory or 'the server of TESTIGO_URL'} …")
        client = Action("first-example")

        order = NewJob(KIND, encode({"path": "a.mp4", "height": 720}), queue=QUEUE, key=f"order-{QUEUE}")
        receipt = db.run(submit, order, action=client)
        print(f"accepted   {receipt.jobs[0].job_id}")

        again = NewJob(KIND, encode({"path": "a.mp4", "height": 720}), queue=QUEUE, key=f"order-{QUEUE}")
        answer = db.run(submit, again, action=Action("first-example")).jobs[0]
        print(f"again      {answer.how}: {answer.job_id == receipt.jobs[0].job_id and 'the same job'}")

        others = [NewJob(KIND, encode({"path": f"{n}.mp4"}), queue=QUEUE) for n in range(2)]
        db.run(submit_many, others, action=Action("first-example"))

        first = start_worker(db, "worker-1")
        lost = take(db, first, 1)
        print(f"worker-1   took {len(lost)}, and is gone")
        db.run(close_session, first.id)
        while db.run(expire).more:  # what any server or other worker does every few seconds
            pass
        print("recovered  what worker-1 held")

        second = start_worker(db, "worker-2")
        print(f"worker-1   comes back, its result is {report_late(db, first, lost)}: kept as evidence, nothing changed")
        done = take(db, second, 10)
        print(f"worker-2   took {len(done)}, and {report(db, second, done)} are done")

        story = db.run(history, receipt.jobs[0].job_id)
        print("its story ", " → ".join(event.type for event in story.events))


def start_worker(db: Database, name: str) -> Session:
    """Open a worker's session: what owns leases, and what they are lost with."""
    return db.run(open_session, NewSession(name, queues=(QUEUE,), kinds=(KIND,)), action=Action(name))


def take(db: Database, session: Session, slots: int) -> tuple[Lease, ...]:
    """Claim at most so many jobs."""
    call = SessionAction(session.id, session.agent, n=1)
    return db.run(claim, [QueueClaim(QUEUE, slots)], [KIND], slots=slots, lease_id=new_id(), action=call).leases


def report(db: Database, session: Session, leases: tuple[Lease, ...]) -> int:
    """Report success for every lease, and return how many of the reports were accepted."""
    ends = [Settlement(lease, Succeed(encode("done"))) for lease in leases]
    return len(db.run(settle, ends, action=SessionAction(session.id, session.agent, n=2)).accepted)


def report_late(db: Database, session: Session, leases: tuple[Lease, ...]) -> str:
    """The same for a session that is over: decided job by job, under the job's lock."""
    ends = [Settlement(lease, Succeed(encode("done"))) for lease in leases]
    call = SessionAction(session.id, session.agent, n=2)
    return ", ".join(row.how for row in db.run(settle_deferred, list(enumerate(ends)), action=call).rows)


if __name__ == "__main__":
    main()
