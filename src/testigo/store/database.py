"""The one door: `Database.run(command, …)` and `AsyncDatabase.run(command, …)`.

A command is a plain function whose first parameter is a SQLAlchemy `Connection`. It is sent whole,
and sent again whole, unchanged, when the database was busy with others or the answer was lost; its
receipt decides what became of it (spec P-01 to P-03).
"""

from __future__ import annotations

import asyncio
import os
import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Concatenate, ParamSpec, Self, TypeVar

from sqlalchemy import URL, Connection
from sqlalchemy.exc import SQLAlchemyError

from testigo.errors import AuthorityUnavailable, Busy, KeyBusy
from testigo.settings import STORE
from testigo.store.backend import Backend
from testigo.store.backends import Backends
from testigo.store.command import AUTOCOMMIT_OPTION, bounded, is_single_statement
from testigo.store.engines import async_engine, sync_engine
from testigo.store.failures import (
    is_connection_lost,
    is_lock_timeout,
    is_out_of_room,
    is_pool_exhausted,
    is_retryable,
    reason_of,
)
from testigo.store.hear import Listener
from testigo.store.log import log
from testigo.store.replication import DOUBT_OPTION
from testigo.store.schema import check_name, check_schema, is_installed, migrate
from testigo.store.spares import Spares
from testigo.store.urls import embedded_directory, server_url
from testigo.store.wake import Waker

if TYPE_CHECKING:
    from sqlalchemy import Engine
    from sqlalchemy.ext.asyncio import AsyncEngine

    from testigo.store.embedded import EmbeddedServer

__all__ = ["AsyncDatabase", "Database"]

P = ParamSpec("P")
R = TypeVar("R")

_MAKE_ROOM = "Give the server's machine more disk or memory; the command did nothing and may be sent again unchanged."


class _Installation:
    """What both colours share: where the database is, and what is started for it."""

    def __init__(self, url: str | None = None, *, schema: str | None = None, pool_size: int = STORE.pool_size) -> None:
        self.given_url = url if url is not None else os.environ.get("TESTIGO_URL", "embedded:")
        self.schema = schema if schema is not None else os.environ.get("TESTIGO_SCHEMA", STORE.schema)
        check_name(self.schema)
        self.pool_size = pool_size
        self.embedded_directory = embedded_directory(self.given_url)
        if self.embedded_directory is None:
            server_url(self.given_url)  # what is no URL is refused here, and not by the first command
        self._server: EmbeddedServer | None = None
        self._waker: Waker | None = None
        self._listener: Listener | None = None
        self._starting = threading.RLock()

    def migrate(self) -> None:
        """Bring the database's schema to this release's version. Safe to run at any time, by anyone."""
        migrate(self._locate(), self.schema)

    @property
    def listener(self) -> Listener:
        """What hears wake-ups for everybody who uses this installation; it begins when it is first asked for."""
        with self._starting:
            if self._listener is None:
                self._listener = Listener(self._locate(), self.schema)
            return self._listener

    def _locate(self) -> URL:
        """The URL to connect to; starts or joins the embedded server if that is what was asked for.

        Only then is loaded what it takes to start one.
        """
        if self.embedded_directory is None:
            return server_url(self.given_url)
        from testigo.store.embedded import EmbeddedServer

        with self._starting:
            if self._server is None:
                self._server = EmbeddedServer.use(self.embedded_directory)
                log.info("using the embedded database in %s", self.embedded_directory)
            return self._server.location

    def _ready(self) -> URL:
        """Locate the database; an embedded one is ours alone, so it is migrated as well.

        Under another name than the usual one it is only brought up to date: a slip in the name makes no installation.
        """
        url = self._locate()
        if self.embedded_directory is not None and (self.schema == STORE.schema or is_installed(url, self.schema)):
            migrate(url, self.schema)
        return url

    def _woken(self, answer: object) -> None:
        wakes: tuple[str, ...] = getattr(answer, "wakes", ())
        if wakes:
            with self._starting:
                if self._waker is None:
                    self._waker = Waker(self._locate(), self.schema)
            self._waker.wake(wakes)

    def _stop(self) -> None:
        with self._starting:
            waker, self._waker = self._waker, None
            listener, self._listener = self._listener, None
            server, self._server = self._server, None
        if waker is not None:
            waker.close()
        if listener is not None:
            listener.close()
        if server is not None:
            server.close()


class Database(_Installation):
    """A testigo installation, for synchronous callers; safe to share between threads.

    `url` is `postgresql://…` (`postgres://` too) or `embedded:DIR`; without one, `TESTIGO_URL`, and
    without that, `embedded:` under the nearest project. `schema` is the installation's, without one
    `TESTIGO_SCHEMA`. Nothing is opened before the first command. Raises `Invalid` for a URL or name
    that cannot be; from the first command on `SchemaMismatch` when code and schema do not fit each
    other, `IsolationUnsupported`, `EmbeddedUnusable`, and `AuthorityUnavailable` when the database
    does not answer.
    """

    _engine: Engine | None = None
    _backends: Backends | None = None
    _spares: Spares
    connected: Callable[[], object] | None = None
    """Called before a new connection is used whose server process `backends` tells of, by whoever opens it."""

    def run(self, command: Callable[Concatenate[Connection, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a command in a transaction of its own and return its receipt.

        Raises what the command raises, `KeyBusy` when a lock was waited for in vain, `Busy` when
        every connection was in use for too long or the server is out of disk or memory, and
        `AuthorityUnavailable` when every try failed on the way (spec P-01, P-03).
        """
        tried = 0
        while True:
            tried += 1
            try:
                answer = self._ask(command, *args, **kwargs)
            except Exception as error:
                seconds = _pause(error, tried)
            else:
                self._woken(answer)
                return answer
            time.sleep(seconds)

    def _ask(self, command: Callable[Concatenate[Connection, P], R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run it once, on the connection of an earlier command if one is spare."""
        self._open()
        spares = self._spares
        c, taken_in = spares.take()
        try:
            answer = _send(c, command, *args, **kwargs)
        except BaseException as error:
            c.close()
            if isinstance(error, Exception) and is_connection_lost(error):
                spares.let_go()
            raise
        if is_single_statement(command):
            spares.put(c, taken_in)
        else:
            c.close()
        return answer

    def backends(self) -> tuple[Backend, ...]:
        """The server's processes behind the connections that are open now, where no pooler hides them."""
        return self._backends.all() if self._backends else ()

    def hang_up(self, after_seconds: float = 0.0) -> int:
        """End any wait for an answer that has lasted so long; what was asked is sent again, on another connection.

        Returns how many connections were given up.

        For a caller who gave up hope: something between here and the server may swallow what is said and
        still be polite enough to acknowledge it, and then no time limit of a network ends the wait.
        """
        return self._backends.cut(after_seconds) if self._backends is not None else 0

    def close(self) -> None:
        """Close every connection; leave the embedded server, which the last user stops."""
        with self._starting:
            engine, self._engine = self._engine, None
        if engine is not None:
            engine.dispose()
        self._stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _open(self) -> Engine:
        with self._starting:
            if self._engine is None:
                engine = sync_engine(self._ready(), schema=self.schema, pool_size=self.pool_size)
                self._backends = Backends(engine, self.connected)
                try:
                    with engine.connect() as c:
                        check_schema(c)
                except BaseException:
                    engine.dispose()
                    raise
                self._engine, self._spares = engine, Spares(engine, self._backends)
            return self._engine


class AsyncDatabase(_Installation):
    """The same installation for asynchronous callers of one event loop: the same commands, through `run_sync`."""

    _engine: AsyncEngine | None = None

    def __init__(self, url: str | None = None, *, schema: str | None = None, pool_size: int = STORE.pool_size) -> None:
        super().__init__(url, schema=schema, pool_size=pool_size)
        self._opening = asyncio.Lock()

    async def run(self, command: Callable[Concatenate[Connection, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a command in a transaction of its own and return its receipt; as `Database.run`.

        A task that is cancelled meanwhile leaves it open whether the command took effect: send it again.
        """
        tried = 0
        while True:
            tried += 1
            try:
                engine = await self._open()
                async with engine.connect() as c:
                    answer = await c.run_sync(_send, command, *args, **kwargs)
            except Exception as error:
                seconds = _pause(error, tried)
            else:
                self._woken(answer)
                return answer
            await asyncio.sleep(seconds)

    async def close(self) -> None:
        """Close every connection; leave the embedded server, which the last user stops."""
        async with self._opening:
            engine, self._engine = self._engine, None
        if engine is not None:
            await engine.dispose()
        await asyncio.to_thread(self._stop)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    async def _open(self) -> AsyncEngine:
        async with self._opening:
            if self._engine is None:
                url = await asyncio.to_thread(self._ready)
                engine = async_engine(url, schema=self.schema, pool_size=self.pool_size)
                try:
                    async with engine.connect() as c:
                        await c.run_sync(check_schema)
                except BaseException:
                    await engine.dispose()
                    raise
                self._engine = engine
            return self._engine


def _send(c: Connection, command: Callable[Concatenate[Connection, P], R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    try:
        if is_single_statement(command):
            answer = command(c, *args, **kwargs)
        else:
            c.execution_options(isolation_level="READ COMMITTED", **{AUTOCOMMIT_OPTION: False})
            with c.begin():
                bounded(c)
                answer = command(c, *args, **kwargs)
        if doubt := c.get_execution_options()[DOUBT_OPTION]:
            doubt.resolve(c)
        return answer
    except Exception as error:
        if is_connection_lost(error):
            _distrust(c)
        raise


def _distrust(c: Connection) -> None:
    """Let SQLAlchemy find its connection gone: it then replaces every other one that is as old.

    It has not seen what a hot path's own cursor saw; and after a restart of the server the next try
    would meet another connection of before.
    """
    if not c.invalidated:
        with suppress(SQLAlchemyError):
            c.exec_driver_sql("SELECT 1")
        c.invalidate()


def _pause(error: Exception, tried: int) -> float:
    """How many seconds to wait before the command is sent again; raises what ends it instead."""
    if is_lock_timeout(error):
        raise KeyBusy("A lock that the command needs was not freed in time.") from error
    if is_pool_exhausted(error):
        raise Busy("No connection became free in time; nothing was sent.") from error
    if is_out_of_room(error):
        raise Busy(f"The database has no room: {reason_of(error)}.", remedy=_MAKE_ROOM) from error
    if not is_retryable(error):
        raise error
    if tried >= STORE.tries:
        raise AuthorityUnavailable(f"The database failed {tried} tries: {reason_of(error)}.") from error
    log.info("the command is sent again (try %d): %s", tried + 1, reason_of(error))
    return random.uniform(0, min(STORE.retry_cap_seconds, STORE.retry_first_seconds * 2**tried))
