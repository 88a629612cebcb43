"""One task per process that looks once a second on behalf of every open stream (panel.md *Live updates*).

What was not looked for in time is found by the next look, so a database that goes away costs the streams
nothing but time: they are told that what they have is stale. A stream ends when the server stops, and when
the login or token ends that it was opened with.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum, auto
from types import TracebackType
from typing import Self

from testigo.access.who import Who
from testigo.errors import AuthorityUnavailable, TooManyRequests
from testigo.journal.events import Event
from testigo.journal.streams import check_cursor, check_stream, read
from testigo.settings import LIMITS, Web
from testigo.store.database import AsyncDatabase
from testigo.web.signals.recent import Recent
from testigo.web.signals.topics import Looked, look
from testigo.web.signals.valid import still_valid

__all__ = ["Hub", "Quiet", "Signal", "Standing"]

_log = logging.getLogger("testigo.web")

_CHECK_EVERY = 5
"""Of so many looks, one asks instead which logins and tokens are still valid."""


@dataclass(frozen=True, slots=True)
class Signal:
    """Topics that have come further, and how far; `position` tells how far each topic of the stream is."""

    counters: dict[str, str]
    position: str


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether the database answers, and since when that is so."""

    stale: bool
    since: datetime


@dataclass(frozen=True, slots=True)
class Quiet:
    """There was nothing to tell for a while."""


@dataclass(eq=False)
class _Stream:
    """One open stream: who has it, what wakes it, and whether their login or token has ended."""

    who: Who
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    ended: bool = False


class _Turn(Enum):
    """Why a stream that waited goes on."""

    WOKEN = auto()
    QUIET = auto()
    END = auto()


class Hub:
    """The looks of one server process, and the streams that wait for them."""

    def __init__(self, database: AsyncDatabase, settings: Web) -> None:
        self._database = database
        self._settings = settings
        self._streams: set[_Stream] = set()
        self._topics: Counter[str] = Counter()
        self._counters: dict[str, str] = {}
        self._recent: dict[str, Recent] = {}
        self._beats: dict[str, tuple[int, float]] = {}
        self._standing = Standing(stale=False, since=datetime.now(UTC))
        self._looked_at = datetime.now(UTC)
        self._stopping = False
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Begin to look."""
        self._task = asyncio.create_task(self._go_on(), name="testigo-signals")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        """End every stream, and look no more."""
        self.stop()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def stop(self) -> None:
        """End every stream, and let no other begin: the server is about to stop."""
        self._stopping = True
        self._wake()

    @property
    def streams(self) -> int:
        """How many streams are open."""
        return len(self._streams)

    @property
    def standing(self) -> Standing:
        """Whether the database answers the looks, and since when that is so."""
        return self._standing

    def beat_age_seconds(self, session_id: str) -> float | None:
        """For how long this session's beat has been watched unchanged; None if it is not open, or not seen yet.

        A beat has no time of its own (spec P-18): this is by the clock of this process, which saw it change.
        """
        seen = self._beats.get(session_id)
        return None if seen is None else time.monotonic() - seen[1]

    async def signals(
        self, who: Who, topics: Sequence[str], position: str | None = None
    ) -> AsyncGenerator[Signal | Standing | Quiet, None]:
        """What becomes of these topics: first those that are not as `position` tells, then each that comes further.

        It says at once that it is there. Raises `TooManyRequests` when too many streams are open.
        """
        told = _as_told(topics, position)
        with self._stream(who) as stream, self._watched(topics):
            standing = Standing(stale=False, since=self._standing.since)
            yield Quiet()
            while (turn := await self._turn(stream)) is not _Turn.END:
                if self._standing.stale != standing.stale:
                    standing = self._standing
                    yield standing
                now = {topic: self._counters[topic] for topic in topics if topic in self._counters}
                if changed := {topic: counter for topic, counter in now.items() if told.get(topic) != counter}:
                    told |= changed
                    yield Signal(changed, ",".join(told.get(topic, "") for topic in topics))
                elif turn is _Turn.QUIET:
                    yield Quiet()

    async def follow(self, who: Who, stream: str, after: int = 0) -> AsyncGenerator[Event | Quiet, None]:
        """The events of a stream that follow the cursor `after`, and then each new one, each once and in order.

        Raises as `journal.read` does, and `TooManyRequests` when too many streams are open; a database that is
        away is waited for, except at first.
        """
        check_stream(stream)
        check_cursor(after)
        with self._stream(who) as own, self._followed(stream) as recent:
            cursor, going, turn = after, False, _Turn.QUIET
            while turn is not _Turn.END and not self._is_over(own):
                kept = recent.after(cursor)
                try:
                    events = await self._read(stream, cursor, recent) if kept is None else kept
                except AuthorityUnavailable:
                    if not going:
                        raise
                    events = ()
                going = True
                for event in events:
                    yield event
                    cursor = event.sequence
                if not events:
                    if turn is _Turn.QUIET:
                        yield Quiet()
                    turn = await self._turn(own)

    async def _read(self, stream: str, cursor: int, recent: Recent) -> Sequence[Event]:
        """The next page of a stream for one that is behind; when it is not any more, the hub reads for all."""
        page = await self._database.run(read, stream, after=cursor, limit=LIMITS.page_max)
        if not page.more:
            recent.begin(page.head)
        return page.events

    async def _turn(self, stream: _Stream) -> _Turn:
        """Wait until there may be something to tell, or it is time to say that there is not, or the stream ends."""
        turn = _Turn.WOKEN
        if not self._is_over(stream):
            try:
                async with asyncio.timeout(self._settings.ping_seconds):
                    await stream.woken.wait()
            except TimeoutError:
                turn = _Turn.QUIET
        stream.woken.clear()
        return _Turn.END if self._is_over(stream) else turn

    def _is_over(self, stream: _Stream) -> bool:
        return self._stopping or stream.ended

    @contextmanager
    def _stream(self, who: Who) -> Iterator[_Stream]:
        """A place among the open streams, of which one caller may have half."""
        own = sum(1 for stream in self._streams if stream.who.credential == who.credential)
        limit = self._settings.streams_max
        if len(self._streams) >= limit or own >= max(1, limit // 2):
            raise TooManyRequests("Too many streams are open.", limit=f"{limit} streams, one caller half of them")
        stream = _Stream(who)
        self._streams.add(stream)
        try:
            yield stream
        finally:
            self._streams.discard(stream)

    @contextmanager
    def _watched(self, topics: Sequence[str]) -> Iterator[None]:
        self._topics.update(topics)
        try:
            yield
        finally:
            self._topics -= Counter(topics)

    @contextmanager
    def _followed(self, stream: str) -> Iterator[Recent]:
        recent = self._recent.setdefault(stream, Recent())
        recent.followers += 1
        try:
            yield recent
        finally:
            recent.followers -= 1
            if not recent.followers and self._recent.get(stream) is recent:
                del self._recent[stream]

    async def _go_on(self) -> None:
        looks = 0
        while True:
            began, more = time.monotonic(), False
            looks += 1
            try:
                async with asyncio.timeout(self._settings.read_seconds):
                    if looks % _CHECK_EVERY == 0 and self._streams:
                        await self._check()
                    else:
                        more = await self._look()
            except Exception as error:
                if not self._standing.stale:
                    _log.warning("what has changed cannot be looked up, streams are told so: %s", type(error).__name__)
                self._stand(stale=True, since=self._looked_at)
            else:
                self._looked_at = datetime.now(UTC)
                self._stand(stale=False, since=self._looked_at)
            if not more:
                await asyncio.sleep(max(0.0, began + self._settings.signal_seconds - time.monotonic()))

    async def _look(self) -> bool:
        """Look for all streams at once; whether there is more than one look could bring."""
        cursors = {name: recent.head for name, recent in self._recent.items() if recent.head is not None}
        looked = await self._database.run(look, set(self._topics), cursors)
        self._take(looked)
        return bool(looked.more)

    def _take(self, looked: Looked) -> None:
        changed = bool(looked.events) or self._counters != looked.counters
        self._counters = dict(looked.counters)
        for name, events in looked.events.items():
            if name in self._recent:
                self._recent[name].append(events)
        now = time.monotonic()
        seen = self._beats
        self._beats = {
            session: (beat, seen[session][1] if seen.get(session, (None,))[0] == beat else now)
            for session, beat in looked.beats.items()
        }
        if changed:
            self._wake()

    async def _check(self) -> None:
        """End the streams of those whose login or token has ended."""
        asked = tuple(self._streams)  # not those that are opened meanwhile
        valid = await self._database.run(still_valid, {stream.who for stream in asked})
        for stream in asked:
            if stream.who.credential not in valid:
                stream.ended = True
                stream.woken.set()

    def _stand(self, *, stale: bool, since: datetime) -> None:
        if stale != self._standing.stale:
            self._standing = Standing(stale, since)
            self._wake()

    def _wake(self) -> None:
        for stream in self._streams:
            stream.woken.set()


def _as_told(topics: Sequence[str], position: str | None) -> dict[str, str]:
    """How far a browser says that it was told of each topic; nothing if that is not of this stream."""
    counters = (position or "").split(",")
    return dict(zip(topics, counters, strict=True)) if len(counters) == len(topics) else {}
