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
from testigo.journal.streams import history
from testigo.rules.outcomes import Succeed

QUEUE = f"first-{uuid4().hex[:8]}"  # a queue of this run's own, so that every run tells the same story
KIND = "media.transcode"


def main() -> None:
    with Database() as db:  # TESTIGO_URL, or the embedded server
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
        print(f"recovered  {db.run(expire).taken}")

        second = start_worker(db, "worker-2")
        print(f"worker-1   comes back late: {report(db, first, lost)}")
        done = take(db, second, 10)
        print(f"worker-2   took {len(done)} and settles: {report(db, second, done)}")

        print("its story ", " → ".join(event.type for event in db.run(history, receipt.jobs[0].job_id)))


def start_worker(db: Database, name: str) -> Session:
    return db.run(open_session, NewSession(name, queues=(QUEUE,), kinds=(KIND,)), action=Action(name))


def take(db: Database, session: Session, slots: int) -> tuple[Lease, ...]:
    call = SessionAction(session.id, session.agent, n=1)
    return db.run(claim, [QueueClaim(QUEUE, slots)], [KIND], slots=slots, lease_id=new_id(), action=call).leases


def report(db: Database, session: Session, leases: tuple[Lease, ...]) -> str:
    """Report success for every lease; what the fast path defers is decided under the job's lock."""
    call = SessionAction(session.id, session.agent, n=2)
    ends = [Settlement(lease, Succeed(encode("done")), {"agent": session.agent}) for lease in leases]
    if session.agent == "worker-1":  # its session is over: whatever it says is kept as evidence
        return ", ".join(row.how for row in db.run(settle_deferred, list(enumerate(ends)), action=call))
    settled = db.run(settle, ends, action=call)
    return f"{len(settled.accepted)} accepted"


if __name__ == "__main__":
    main()
