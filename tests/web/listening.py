"""A stream as a browser hears it: its messages, as they come."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

__all__ = ["Message", "Stream", "listened"]

PATIENCE_SECONDS = 90.0


@dataclass
class Message:
    """One event, or a comment: that has no event."""

    event: str = ""
    id: str = ""
    data: str = ""
    comment: str = ""

    @property
    def json(self) -> Any:
        """What its data says."""
        return json.loads(self.data)


@dataclass
class Stream:
    """A stream that a thread reads; `next` waits for the next message, None says that the stream has ended."""

    messages: queue.Queue[Message | None] = field(default_factory=queue.Queue)

    def next(self) -> Message | None:
        """Whatever comes next."""
        return self.messages.get(timeout=PATIENCE_SECONDS)

    def event(self) -> Message:
        """The next event that is one, past pings."""
        while True:
            told = self.next()
            assert told is not None, "the stream has ended"
            if told.event:
                return told

    def ends(self) -> bool:
        """Wait for its end."""
        while self.next() is not None:
            pass
        return True


@contextmanager
def listened(client: httpx.Client, path: str, **asked: Any) -> Iterator[Stream]:
    """A stream, from its first byte until the test leaves it."""
    stream = Stream()
    with client.stream("GET", path, **asked) as response:
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        reader = threading.Thread(target=_read, args=(response, stream), daemon=True)
        reader.start()
        yield stream


def _read(response: httpx.Response, stream: Stream) -> None:
    told = Message()
    try:
        for line in response.iter_lines():
            name, _, value = line.partition(":")
            if line and name:
                setattr(told, name, value.removeprefix(" "))
            elif line:
                told.comment = value.strip()
            else:
                stream.messages.put(told)
                told = Message()
    except (httpx.TransportError, httpx.StreamError, OSError, AttributeError):
        pass  # the connection was cut, by either side
    stream.messages.put(None)
