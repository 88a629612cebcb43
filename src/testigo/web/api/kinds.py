"""Kinds of jobs: who runs them, what of them waits, and whether workers take them."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Path, Query, Request

from testigo.access.roles import Right
from testigo.authority.pause import Scope
from testigo.authority.read.kinds import kinds
from testigo.errors import NotFound
from testigo.settings import LIMITS
from testigo.web.api import examples
from testigo.web.api.bodies import body_if_any
from testigo.web.api.conditions import KeyIfAny
from testigo.web.api.paging import LimitField
from testigo.web.api.pausing import PauseShape, Reason, Switched, switch
from testigo.web.api.shapes import Shape
from testigo.web.api.told import AGAIN, told
from testigo.web.door import AtDoor
from testigo.web.routes import Routes
from testigo.web.who import Caller

__all__ = ["routes"]

routes = Routes("/kinds", tags=["kinds"])

Name = Annotated[str, Path(description="The kind.", examples=["media.transcode"])]

_SWITCHED = {"scope": "kind", "name": "media.transcode", "paused": True, "changed": True}


class KindShape(Shape):
    """A kind as it stands. Its counts are of the newest 10,000 jobs."""

    name: str
    waiting: int
    """Is owned by nobody, and has not ended."""
    leased: int
    """Is owned by somebody."""
    failed: int
    """Has failed for good."""
    sessions: int
    """Workers that run it."""
    pause: PauseShape | None


class KnownKinds(Shape):
    """Kinds by name."""

    items: tuple[KindShape, ...]


class KindsQuery(Shape):
    """How many kinds."""

    limit: LimitField = LIMITS.page_max
    """How many at most."""


@routes.get("", Right.READ, **told("list_kinds", "List kinds", shows={"items": [examples.KIND]}))
async def list_kinds(asked: Annotated[KindsQuery, Query()], door: AtDoor) -> KnownKinds:
    """List the kinds that are known from workers, from pauses and from the newest 10,000 jobs, by name."""
    found = await door.read(kinds, limit=asked.limit)
    return KnownKinds(items=tuple(map(KindShape.model_validate, found)))


@routes.get("/{name:path}", Right.READ, **told("get_kind", "Show a kind", shows=examples.KIND, refuses=(NotFound,)))
async def get_kind(name: Name, door: AtDoor) -> KindShape:
    """Show one kind: what of it waits, is owned and has failed, and how many workers run it."""
    for kind in await door.read(kinds):
        if kind.name == name:
            return KindShape.model_validate(kind)
    raise NotFound(
        f"Nothing is known of a kind {name!r}.",
        field="name",
        remedy="See the list of kinds; one is known by a worker that runs it, or by its newest jobs.",
    )


@routes.post(
    "/{name:path}/pause",
    Right.PAUSE,
    **told(
        "pause_kind",
        "Pause a kind",
        shows=_SWITCHED,
        asks=Reason,
        asks_so={"reason": "a broken codec"},
        refuses=AGAIN,
    ),
)
async def pause_kind(
    name: Name,
    why: Annotated[Reason, Depends(body_if_any(Reason))],
    request: Request,
    door: AtDoor,
    who: Caller,
    key: KeyIfAny = None,
) -> Switched:
    """Let no worker take jobs of a kind until it is resumed. What runs goes on, and submissions are accepted."""
    return await switch(request, door, who, "pause", Scope.KIND, name, why, key)


@routes.post(
    "/{name:path}/resume",
    Right.PAUSE,
    **told(
        "resume_kind",
        "Resume a kind",
        shows=_SWITCHED | {"paused": False},
        asks=Reason,
        asks_so={"reason": "the codec is repaired"},
        refuses=AGAIN,
    ),
)
async def resume_kind(
    name: Name,
    why: Annotated[Reason, Depends(body_if_any(Reason))],
    request: Request,
    door: AtDoor,
    who: Caller,
    key: KeyIfAny = None,
) -> Switched:
    """Let workers take jobs of a kind again."""
    return await switch(request, door, who, "resume", Scope.KIND, name, why, key)
