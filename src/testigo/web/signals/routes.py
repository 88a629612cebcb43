"""The panel's stream of signals."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from datetime import UTC
from typing import Annotated

from fastapi import Header, Query, Request, Response

from testigo.access.roles import Right
from testigo.access.who import Who
from testigo.web.routes import Routes
from testigo.web.signals.hub import Hub, Quiet, Signal, Standing
from testigo.web.signals.sending import PING, message, sent
from testigo.web.signals.topics import check_topics
from testigo.web.who import Caller

__all__ = ["routes"]

routes = Routes("/horizon", in_schema=False)


@routes.get("/signals", Right.READ)
async def signals(
    request: Request,
    who: Caller,
    topics: Annotated[list[str], Query(max_length=100)],
    last_event_id: Annotated[str | None, Header(max_length=2_000)] = None,
) -> Response:
    """What becomes of these topics, from now on, or from where the browser was told of them last."""
    hub: Hub = request.app.state.hub
    return await sent(_messages(hub, who, check_topics(topics), last_event_id))


async def _messages(hub: Hub, who: Who, topics: Sequence[str], position: str | None) -> AsyncGenerator[str, None]:
    async with aclosing(hub.signals(who, topics, position)) as told:
        async for each in told:
            match each:
                case Signal():
                    yield message("changed", each.counters, id=each.position)
                case Standing():
                    since = each.since.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
                    yield message("stale" if each.stale else "live", since)
                case Quiet():
                    yield PING
