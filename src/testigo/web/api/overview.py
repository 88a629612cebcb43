"""What stands now, over all jobs: how many of each state, and what has failed by its cause."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from pydantic import Field

from testigo.access.roles import RIGHTS, Right, Role
from testigo.access.who import Via
from testigo.authority.read import causes, states
from testigo.rules.states import State
from testigo.web.api import examples
from testigo.web.api.shapes import CountShape, Moment, Shape
from testigo.web.api.told import told
from testigo.web.api.veil import REDACTED
from testigo.web.door import AtDoor
from testigo.web.routes import Routes
from testigo.web.who import Caller

__all__ = ["routes"]

routes = Routes("", tags=["overview"])


class WhoShape(Shape):
    """Who asks, and what they may do."""

    name: str
    actor: str
    """The name in events, receipts and the audit."""
    role: Role
    via: Via
    rights: tuple[Right, ...]


class States(Shape):
    """How many jobs are in each state, as far as that is cheap to know."""

    states: dict[State, CountShape]


class CauseShape(Shape):
    """Failed jobs that failed alike: by the code of their last failure and by its message without its numbers."""

    id: str
    """What the filter `cause` takes."""
    code: str
    message: str
    """The sample's own; not shown to who may not see documents."""
    kinds: tuple[str, ...]
    queues: tuple[str, ...]
    open: int
    """Nothing came in their place."""
    retrying: int
    """They are done again by jobs that have not ended."""
    first_at: Moment
    last_at: Moment
    sample: str
    """One of the jobs."""


class Causes(Shape):
    """The causes of what is open, those of the most jobs first."""

    causes: tuple[CauseShape, ...]
    open: CountShape
    retrying: CountShape
    complete: bool
    """False where there are more failed jobs than were looked at."""
    redacted: bool


class CausesQuery(Shape):
    """Of which jobs."""

    queue: str | None = None
    """Of this queue."""
    kind: str | None = None
    """Of this kind."""
    created_after: Moment | None = None
    """Submitted then or later."""
    limit: Annotated[int, Field(ge=1, le=1_000)] = 50
    """How many causes at most."""


@routes.get("/who", Right.READ, **told("get_who", "Tell who asks", shows=examples.WHO))
async def get_who(who: Caller) -> WhoShape:
    """Tell whose login or token was sent with the request, and what its role may do."""
    rights = tuple(right for right in Right if right in RIGHTS[who.role])
    return WhoShape(name=who.name, actor=who.actor, role=who.role, via=who.via, rights=rights)


@routes.get(
    "/states",
    Right.READ,
    **told("count_states", "Count jobs by state", shows={"states": {"ready": {"n": 10000, "more": True}}}),
)
async def count_states(door: AtDoor) -> States:
    """Count the jobs of each state. Counts stop at 10,000, and where no index leads only the newest are counted."""
    found = await door.read(states)
    return States(states={state: CountShape.model_validate(count) for state, count in found.items()})


@routes.get(
    "/causes",
    Right.READ,
    **told(
        "list_causes",
        "List failures by cause",
        shows={
            "causes": [examples.CAUSE],
            "open": {"n": 9, "more": False},
            "retrying": {"n": 1, "more": False},
            "complete": True,
            "redacted": False,
        },
    ),
)
async def list_causes(asked: Annotated[CausesQuery, Query()], door: AtDoor, who: Caller) -> Causes:
    """List what has failed for good and was not done again with success, grouped by its cause."""
    found = await door.read(causes, **{name: getattr(asked, name) for name in CausesQuery.model_fields})
    sees = who.may(Right.DOCUMENTS)
    shown = [CauseShape.model_validate(cause) for cause in found.causes]
    return Causes(
        causes=tuple(cause if sees else cause.model_copy(update={"message": REDACTED}) for cause in shown),
        open=CountShape.model_validate(found.open),
        retrying=CountShape.model_validate(found.retrying),
        complete=found.complete,
        redacted=not sees,
    )
