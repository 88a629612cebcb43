"""A stream as HTTP sends it: server-sent events, past every buffer on the way."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing

from fastapi.responses import StreamingResponse

from testigo.errors import Error

__all__ = ["PING", "message", "sent"]

PING = ": ping\n\n"
"""What is sent so that both ends, and whatever is between them, know that the other lives."""

_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}

_LINE_ENDS = re.compile(r"\r\n|\r|\n")
"""Of this format alone. `str.splitlines` knows others, such as U+2028, which JSON has within its texts."""


async def sent(messages: AsyncGenerator[str, None]) -> StreamingResponse:
    """The answer that sends these messages as they come.

    What they raise at once is raised here, so that it is answered as any other refusal; what they raise later
    ends the stream with an event `problem`.
    """
    first = await anext(messages)
    return StreamingResponse(_all(messages, first), media_type="text/event-stream", headers=_HEADERS)


def message(event: str, data: Mapping[str, object] | str, *, id: str | None = None) -> str:  # noqa: A002
    """One event as it is sent. Data that is no text is sent as JSON on one line."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    lines = [*([f"id: {id}"] if id is not None else []), f"event: {event}"]
    return "\n".join([*lines, *(f"data: {line}" for line in _LINE_ENDS.split(text))]) + "\n\n"


async def _all(messages: AsyncGenerator[str, None], first: str) -> AsyncIterator[str]:
    async with aclosing(messages):
        try:
            yield first
            async for each in messages:
                yield each
        except Error as error:
            yield message("problem", {"code": error.code, "detail": error.message, "remedy": error.remedy})
