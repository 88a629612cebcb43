"""Workers: their sessions, what they hold, and letting one finish."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Path, Query, Request
from pydantic import Field

from testigo.access.roles import Right
from testigo.authority.actions import SessionId
from testigo.authority.read import SessionState, sessions
from testigo.authority.read.held import held_by
from testigo.authority.read.sessions import session
from testigo.authority.sessions import drain_session
from testigo.errors import CursorInvalid, NotFound
from testigo.rules.discreet import discreet
from testigo.rules.states import State
from testigo.web.api import examples
from testigo.web.api.bodies import body_if_any
from testigo.web.api.conditions import KeyIfAny
from testigo.web.api.paging import PageQuery, next_address
from testigo.web.api.pausing import Reason
from testigo.web.api.shapes import CountShape, Id, Moment, PageShape, Shape
from testigo.web.api.told import AGAIN, told
from testigo.web.door import AtDoor, order
from testigo.web.routes import Routes
from testigo.web.who import Caller

__all__ = ["routes"]

routes = Routes("/workers", tags=["workers"])

SessionPath = Annotated[Id, Path(description="The session's id.")]


class WorkerShape(Shape):
    """A worker's term of office: what it said of itself, its last beat, and how many jobs it holds.

    A beat is a number: how old it is nobody knows who did not watch it.
    """

    id: str
    """The session's id."""
    agent: str
    epoch: int
    state: SessionState
    beat: int
    low_water: int
    """Below it no receipt of its commands is kept."""
    term_seconds: float
    exclusive: bool
    queues: tuple[str, ...]
    kinds: tuple[str, ...]
    host: str
    processes: dict[str, Any]
    """The pids and start times that die with the session."""
    opened_at: Moment
    closed_at: Moment | None
    leases: CountShape


class HeldJobShape(Shape):
    """A job that a worker holds."""

    id: str
    kind: str
    queue: str
    state: State
    epoch: int
    started_at: Moment | None


class HeldJobs(Shape):
    """What a worker holds, in the order in which it was granted: at most 1,000 jobs."""

    items: tuple[HeldJobShape, ...]


class Drained(Shape):
    """The session that takes no more, and how many jobs it held then."""

    session: str
    agent: str
    leases: CountShape


class WorkersQuery(PageQuery):
    """Which workers: those that have all of what is given."""

    agent: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """Of this agent."""
    state: SessionState | None = None
    """In this state."""


@routes.get(
    "",
    Right.READ,
    **told("list_workers", "List workers", shows=examples.page(examples.WORKER), refuses=(CursorInvalid,)),
)
async def list_workers(
    asked: Annotated[WorkersQuery, Query()], request: Request, door: AtDoor
) -> PageShape[WorkerShape]:
    """List the sessions of workers from the newest. Those that are over are kept for some days."""
    found = await door.read(sessions, agent=asked.agent, state=asked.state, before=asked.cursor, limit=asked.limit)
    return PageShape(
        items=tuple(map(WorkerShape.model_validate, found.items)),
        next=next_address(request, found.next),
        complete=found.complete,
    )


@routes.get(
    "/{session_id}", Right.READ, **told("get_worker", "Show a worker", shows=examples.WORKER, refuses=(NotFound,))
)
async def get_worker(session_id: SessionPath, door: AtDoor) -> WorkerShape:
    """Show one session of a worker."""
    return WorkerShape.model_validate(await door.read(session, SessionId(session_id)))


@routes.get(
    "/{session_id}/jobs",
    Right.READ,
    **told("list_held_jobs", "List what a worker holds", shows={"items": [examples.HELD]}, refuses=(NotFound,)),
)
async def list_held_jobs(session_id: SessionPath, door: AtDoor) -> HeldJobs:
    """List the jobs that a worker holds now, in the order in which they were granted."""
    wanted = SessionId(session_id)
    await door.read(session, wanted)
    found = await door.read(held_by, [wanted], limit=1_000)
    return HeldJobs(items=tuple(map(HeldJobShape.model_validate, found[wanted])))


@routes.post(
    "/{session_id}/drain",
    Right.DRAIN,
    **told(
        "drain_worker",
        "Drain a worker",
        shows={"session": examples.WORKER["id"], "agent": "media-1", "leases": {"n": 4, "more": False}},
        asks=Reason,
        asks_so={"reason": "the host is rebooted at noon"},
        refuses=(NotFound, *AGAIN),
    ),
)
async def drain_worker(
    session_id: SessionPath,
    why: Annotated[Reason, Depends(body_if_any(Reason))],
    request: Request,
    door: AtDoor,
    who: Caller,
    key: KeyIfAny = None,
) -> Drained:
    """Let a worker claim nothing more, finish what it has, and end. It is told with its next beat.

    Its supervisor may start another in its place. Of one that is over, nothing changes.
    """
    wanted = SessionId(session_id)
    what = (Right.DRAIN, "workers.drain", [f"session:{session_id}"])
    asked = order(request, who, *what, discreet(why.reason), action_id=key)
    await door.act(asked, lambda c: drain_session(c, wanted))
    view = await door.read(session, wanted)
    return Drained(session=view.id, agent=view.agent, leases=CountShape.model_validate(view.leases))
