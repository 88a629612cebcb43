"""An installation in which everything has happened, made by real commands: every page has something to show of it.

It is a shop's: orders are synced, charged, mailed and reported on. All fourteen states are there, failures of
several causes, a paused queue, a worker that died, an operation half done; and, with `hostile`, names as long and
as full of markup as anybody can make them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg

from testigo.access.act import Order, act, refused
from testigo.access.roles import Right, Role
from testigo.access.tokens import NewToken, create_token
from testigo.access.who import Via, Who
from testigo.authority.actions import Action, JobId, SessionId, new_id
from testigo.authority.cancel import cancel
from testigo.authority.deferred import settle_deferred
from testigo.authority.expire import declare_dead, expire
from testigo.authority.forget import forget
from testigo.authority.pause import Scope, pause
from testigo.authority.report import LogLine, Progress, report
from testigo.authority.reprocess import reprocess
from testigo.authority.save import save
from testigo.authority.sessions import drain_session
from testigo.authority.settle import Settlement, settle
from testigo.authority.submissions import NewJob
from testigo.authority.submit import submit_many
from testigo.operations import OperationId, Selection, Verb, advance, begin
from testigo.rules.documents import encode
from testigo.rules.outcomes import Block, Degrade, Fail, Outcome, RunFacts, Succeed, Yield
from testigo.rules.states import State
from tests.world import Worker, World, held

__all__ = ["HOSTILE", "LONG", "Installation", "hostile", "operations_at_rest", "shop"]

QUEUES = ("default", "mail", "payments", "reports")
KINDS = ("shop.sync_order", "shop.send_mail", "shop.charge", "shop.build_report")

TRACE = """\
Traceback (most recent call last):
  File "/srv/shop/payments.py", line 88, in charge
    answer = gateway.post("/charges", json=body, timeout=10)
  File "/srv/shop/gateway.py", line 31, in post
    raise HTTPError(answer.status, answer.reason)
shop.gateway.HTTPError: 502 Bad Gateway from payments"""

LONG = "a-name-that-is-as-long-as-names-may-be-" + "x" * 161
"""200 characters without a place to break: nothing may widen a page."""

HOSTILE = ("<script>alert(1)</script>", "\"'><img src=x onerror=alert(1)>", "' style='position:fixed", "مرحبا {{7*7}}")
"""What a browser would run, and what turns a line around."""

_PERSON = Who("ana", Role.ADMIN, Via.CLI)


@dataclass
class Installation:
    """What pages are asked about: jobs by their state, a worker that lives and one that died, an operation."""

    world: World
    jobs: dict[State, JobId] = field(default_factory=dict)
    worker: SessionId = field(init=False)
    dead: SessionId = field(init=False)
    operation: OperationId = field(init=False)
    failed: list[JobId] = field(default_factory=list)
    orders: int = 880

    def submit(self, kind: str, queue: str, **given: Any) -> JobId:
        """A job for the next order."""
        self.orders += 1
        payload = encode({"order": self.orders, "lines": [{"sku": "A-7", "count": 2}], "notes": []})
        asked = {"payload": payload, "tags": (f"order:{self.orders}", "eu"), "client": "shop", **given}
        job = NewJob(kind=kind, queue=queue, **asked)
        self.world.db.run(submit_many, [job], action=Action("shop"))
        return job.id

    def run(self, worker: Worker, outcome: Outcome, kind: str, queue: str, **given: Any) -> JobId:
        """A job that `worker`, for which nothing else waits, ran to this outcome."""
        job = self.submit(kind, queue, **given)
        lease = worker.take()
        assert lease.job_id == job
        facts = RunFacts("4f2c91d", datetime.now(UTC), 0.2 + self.orders % 7 / 5, peak_memory_bytes=88 << 20)
        row, action = Settlement(lease, outcome, facts), worker.action()
        if self.world.db.run(settle, [row], action=action).deferred:
            self.world.db.run(settle_deferred, [(0, row)], action=action)
        return job

    def act(self, right: Right, what: str, about: str, reason: str, command: Any) -> None:
        """Something that a person does, in the audit."""
        order = Order(_PERSON, right, what, (about,), Action(_PERSON.actor), reason)
        self.world.db.run(act, order, lambda c: command(c, order.action))


def shop(world: World) -> Installation:
    """Fill an empty installation, on which nothing else works meanwhile."""
    made = Installation(world)
    _ended(made)
    _failed(made)
    _owned(made)
    _waiting(made)
    _died(made)
    _acted(made)
    missing = set(State) - {
        State(row.state) for row in world.query("SELECT CAST(state AS text) AS state FROM testigo.job")
    }
    assert not missing, missing
    return made


@contextmanager
def operations_at_rest(url: str) -> Iterator[None]:
    """Operations stay where they are meanwhile: servers pass over those that somebody else is at."""
    with psycopg.connect(url) as c:
        c.execute("SELECT FROM testigo.operation FOR UPDATE")
        yield


def _ended(made: Installation) -> None:
    worker = made.world.worker("host-b/02", ("default",), KINDS)
    for _ in range(12):
        made.jobs[State.SUCCEEDED] = made.run(worker, Succeed(encode({"synced": True})), KINDS[0], "default")
    degraded = Degrade(encode({"rows": 118}), ("two of 120 orders had no address",))
    made.jobs[State.SUCCEEDED_DEGRADED] = made.run(worker, degraded, KINDS[3], "default")
    made.jobs[State.CANCELLED] = job = made.submit(KINDS[1], "default")
    cancelled = Action("user:ana")
    made.world.db.run(cancel, [job], note="the customer asked twice", action=cancelled)
    blocked = made.run(worker, Block("the template is gone", "template 7"), KINDS[1], "default")
    made.world.db.run(reprocess, blocked, note="template 8 instead", action=Action("user:ana"))
    made.jobs[State.SUPERSEDED] = blocked
    worker.succeed(worker.take())
    forgotten = made.run(worker, Fail("PayloadError", "no such order", permanent=True), KINDS[0], "default")
    made.act(Right.FORGET, "jobs.forget", f"job:{forgotten}", "a test order",
             lambda c, action: forget(c, [forgotten], "a test order", action=action))  # fmt: skip


def _failed(made: Installation) -> None:
    worker = made.world.worker("host-a/11", ("payments",), KINDS)
    outage = Fail("HTTPError", "502 Bad Gateway from payments", TRACE)
    made.failed = [made.run(worker, outage, KINDS[2], "payments", attempts=1) for _ in range(9)]
    made.jobs[State.PERMANENT_FAILURE] = made.failed[0]
    made.run(worker, Fail("PayloadError", "the order has no lines", permanent=True), KINDS[0], "payments")
    made.run(worker, Fail("MemoryError", "", "no more than 512 MB", permanent=True), KINDS[3], "payments")
    made.run(worker, Fail("AddressRefused", "mailbox of ana@example.org is full", permanent=True), KINDS[1], "payments")
    made.jobs[State.RETRY_WAITING] = made.run(worker, outage, KINDS[2], "payments", attempts=3)
    made.operation = OperationId(new_id())
    again = Selection(ids=tuple(made.failed[5:]))
    begun = Action("user:ana")
    made.world.db.run(begin, Verb.RETRY, again, reason="payments is back", action=begun, operation_id=made.operation)
    for _ in range(2):
        made.world.db.run(advance)


def _owned(made: Installation) -> None:
    worker = made.world.worker("host-a/17", ("default",), KINDS)
    made.worker = worker.id
    jobs = [made.submit(KINDS[number % 4], "default") for number in range(4)]
    leases = {lease.job_id: lease for lease in worker.claim(2).leases}
    worker.claim(1, starts=False)
    runs, stops, only_leased = jobs[:3]
    made.world.db.run(cancel, [stops], note="asked twice", action=Action("user:ana"))
    made.world.db.run(save, held(leases[runs]), encode({"fetched": 12}), number=1, action=worker.action())
    now = datetime.now(UTC)
    lines = [LogLine(held(leases[runs]), n, now, level, text) for n, level, text in _LOG]
    progress = Progress(held(leases[runs]), 1, now, 12, 40, "fetching orders")
    made.world.db.run(report, worker.id, [progress], lines)
    made.jobs |= {State.RUNNING: runs, State.CANCELLING: stops, State.LEASED: only_leased, State.READY: jobs[3]}


_LOG = ((1, "INFO", "asked for 40 orders"), (2, "WARNING", "order 12 was slow: 4.1 s"), (3, "ERROR", "order 13: again"))


def _waiting(made: Installation) -> None:
    worker = made.world.worker("host-b/04", ("mail",), KINDS)
    yields = Yield(encode({"sent": 400}))
    made.run(worker, Fail("SMTPError", "421 try again later", wait_seconds=600), KINDS[1], "mail", attempts=5)
    blocked = Block("a template is missing", "template 9")
    made.submit(KINDS[1], "mail")
    worker.claim(2)
    made.world.db.run(drain_session, worker.id)
    other = made.world.worker("host-c/01", ("reports",), KINDS)
    made.jobs[State.BLOCKED_BY_QUALITY] = made.run(other, blocked, KINDS[3], "reports")
    made.jobs[State.CREATED] = made.submit(KINDS[3], "reports", run_at=datetime.now(UTC) + timedelta(hours=8))
    parents = tuple(made.submit(KINDS[0], "reports", priority=5) for _ in range(2))
    made.jobs[State.INPUTS_PENDING] = made.submit(KINDS[3], "reports", parents=parents)
    made.submit(KINDS[1], "reports", parents=(made.jobs[State.INPUTS_PENDING],))
    made.world.admit()
    made.jobs[State.CHECKPOINTED] = made.run(other, yields, KINDS[1], "reports", priority=-5)


def _died(made: Installation) -> None:
    worker = made.world.worker("host-d/09", ("media",), KINDS)
    made.dead = worker.id
    made.submit(KINDS[3], "media")
    worker.take()
    assert made.world.db.run(declare_dead, worker.id, epoch=worker.session.epoch, beat=0)
    made.world.db.run(expire)


def _acted(made: Installation) -> None:
    made.act(Right.PAUSE, "queues.pause", "queue:reports", "deploy",
             lambda c, action: pause(c, Scope.QUEUE, "reports", note="deploy until noon", action=action))  # fmt: skip
    made.act(Right.PAUSE, "kinds.pause", f"kind:{KINDS[3]}", "",
             lambda c, action: pause(c, Scope.KIND, KINDS[3], note="", action=action))  # fmt: skip
    viewer = Who("vera", Role.VIEWER, Via.CLI)
    job = made.jobs[State.RUNNING]
    order = Order(viewer, Right.CANCEL, "jobs.cancel", (f"job:{job}",), Action(viewer.actor), "it hangs")
    made.world.db.run(refused, order, "FORBIDDEN")
    token, until = NewToken.new(), datetime.now(UTC) + timedelta(days=30)
    digest, action = token.secret.digest, made.world.action("user:ana")
    made.world.db.run(create_token, "deploys", Role.OPERATOR, until, digest, id=token.id, action=action)


def hostile(made: Installation) -> list[JobId]:
    """Names, errors, notes and payloads that are as long as they may be, or full of markup, everywhere; their jobs."""
    jobs = []
    for text in (LONG, *HOSTILE):
        worker = made.world.worker(text, (text,), (text,))
        document = encode({text: [text, 2**70, [], {}]})
        given: dict[str, Any] = {"tags": (text,), "client": text, "payload": document, "key": text}
        jobs.append(made.run(worker, Fail(text, text, f"{text}\n" * 3, permanent=True), text, text, **given))
        jobs.append(made.run(worker, Block(text, text), text, text, tags=(text,)))
        jobs.append(made.submit(text, text, parents=(jobs[-1],)))
        made.world.db.run(pause, Scope.QUEUE, text, note=text, action=Action(text))
        begun = OperationId(new_id())
        chosen = Selection(ids=(jobs[-1],))
        made.world.db.run(begin, Verb.CANCEL, chosen, reason=text, action=Action(text), operation_id=begun)
    return jobs
