"""The one door: `Database.run(command, …)` and `AsyncDatabase.run(command, …)`.

A command is a plain function whose first parameter is a SQLAlchemy `Connection`. It is sent whole,
and sent again whole, unchanged, when the database was busy with others or the answer was lost; its
receipt decides what became of it (spec P-01 to P-03).
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from sqlalchemy import URL, Connection, make_url

from testigo.errors import AuthorityUnavailable, Error, Invalid, KeyBusy
from testigo.settings import STORE
from testigo.store.command import Waking, bounded, is_single_statement
from testigo.store.embedded import EmbeddedServer, default_directory
from testigo.store.engines import async_engine, sync_engine
from testigo.store.failures import is_connection_lost, is_database_error, is_lock_timeout, is_retryable
from testigo.store.schema import check_schema, migrate
from testigo.store.wake import Waker

if TYPE_CHECKING:
    from sqlalchemy import Engine
    from sqlalchemy.ext.asyncio import AsyncEngine

__all__ = ["AsyncDatabase", "Database"]

P = ParamSpec("P")
R = TypeVar("R")

_log = logging.getLogger("testigo.store")


class _Installation:
    """What both colours share: where the database is, and what is started for it."""

    def __init__(self, url: str | None = None, *, schema: str = STORE.schema, pool_size: int = STORE.pool_size) -> None:
        self.given_url = url if url is not None else os.environ.get("TESTIGO_URL", "embedded:")
        self.schema = schema
        self.pool_size = pool_size
        self.embedded_directory = _embedded_directory(self.given_url)
        self._server: EmbeddedServer | None = None
        self._waker: Waker | None = None

    def _locate(self) -> URL:
        """The URL to connect to; starts or joins the embedded server if that is what was asked for."""
        if self.embedded_directory is None:
            return _server_url(self.given_url)
        if self._server is None:
            self._server = EmbeddedServer.use(self.embedded_directory)
            _log.info("using the embedded database in %s", self.embedded_directory)
        return make_url(self._server.url)

    def migrate(self) -> None:
        """Bring the database's schema to this release's version. Safe to run at any time, by anyone."""
        migrate(self._locate(), self.schema)

    def _ready(self) -> URL:
        """Locate the database; an embedded one is ours alone, so it is migrated as well."""
        url = self._locate()
        if self._server is not None:
            migrate(url, self.schema)
        return url

    def _woken(self, answer: object) -> None:
        if isinstance(answer, Waking) and answer.wakes:
            if self._waker is None:
                self._waker = Waker(self._locate(), self.schema)
            self._waker.wake(answer.wakes)

    def _stop(self) -> None:
        if self._waker is not None:
            self._waker.close()
            self._waker = None
        if self._server is not None:
            self._server.close()
            self._server = None


class Database(_Installation):
    """A testigo installation, for synchronous callers; safe to share between threads.

    `url` is `postgresql://…` (`postgres://` too) or `embedded:DIR`; without one, `TESTIGO_URL`, and
    without that, `embedded:` under the nearest project. Nothing is opened before the first command.
    Raises `SchemaMismatch` when code and schema do not fit each other, `IsolationUnsupported`,
    `EmbeddedUnusable`, and `AuthorityUnavailable` when the database does not answer.
    """

    def __init__(self, url: str | None = None, *, schema: str = STORE.schema, pool_size: int = STORE.pool_size) -> None:
        super().__init__(url, schema=schema, pool_size=pool_size)
        self._engine: Engine | None = None

    def run(self, command: Callable[Concatenate[Connection, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a command in a transaction of its own and return its receipt.

        Raises what the command raises, `KeyBusy` when a lock was waited for in vain, and
        `AuthorityUnavailable` when every try failed on the way (spec P-01, P-03).
        """
        answer: R | None = None
        for pause in _tries():
            try:
                answer = self._once(command, *args, **kwargs)
                break
            except Exception as error:
                pause.after(error)
            time.sleep(pause.seconds)
        self._woken(answer)
        return answer  # type: ignore[return-value]

    def close(self) -> None:
        """Close every connection; leave the embedded server, which the last user stops."""
        if self._engine is not None:
            self._engine.dispose()
            self._engine = None
        self._stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _once(self, command: Callable[..., R], *args: Any, **kwargs: Any) -> R:
        engine = self._open()
        with engine.connect() as c:
            try:
                return _send(c, command, *args, **kwargs)
            except Exception as error:
                if is_connection_lost(error):
                    c.invalidate()
                raise

    def _open(self) -> Engine:
        if self._engine is None:
            engine = sync_engine(self._ready(), schema=self.schema, pool_size=self.pool_size)
            with engine.connect() as c:
                check_schema(c)
            self._engine = engine
        return self._engine


class AsyncDatabase(_Installation):
    """The same installation for asynchronous callers: the same commands, through `run_sync`."""

    def __init__(self, url: str | None = None, *, schema: str = STORE.schema, pool_size: int = STORE.pool_size) -> None:
        super().__init__(url, schema=schema, pool_size=pool_size)
        self._engine: AsyncEngine | None = None

    async def run(self, command: Callable[Concatenate[Connection, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a command in a transaction of its own and return its receipt; as `Database.run`."""
        answer: R | None = None
        for pause in _tries():
            try:
                answer = await self._once(command, *args, **kwargs)
                break
            except Exception as error:
                pause.after(error)
            await asyncio.sleep(pause.seconds)
        self._woken(answer)
        return answer  # type: ignore[return-value]

    async def close(self) -> None:
        """Close every connection; leave the embedded server, which the last user stops."""
        if self._engine is not None:
            await self._engine.dispose()
            self._engine = None
        self._stop()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    async def _once(self, command: Callable[..., R], *args: Any, **kwargs: Any) -> R:
        engine = await self._open()
        async with engine.connect() as c:
            try:
                return await c.run_sync(_send, command, *args, **kwargs)
            except Exception as error:
                if is_connection_lost(error):
                    await c.invalidate()
                raise

    async def _open(self) -> AsyncEngine:
        if self._engine is None:
            url = await asyncio.to_thread(self._ready)
            engine = async_engine(url, schema=self.schema, pool_size=self.pool_size)
            async with engine.connect() as c:
                await c.run_sync(check_schema)
            self._engine = engine
        return self._engine


class _Pause:
    """The wait between two tries of one command; raises instead when there shall be no other."""

    def __init__(self, tried: int) -> None:
        self._tried = tried
        self.seconds = 0.0

    def after(self, error: Exception) -> None:
        if isinstance(error, Error):
            raise error
        if is_lock_timeout(error):
            raise KeyBusy("A lock that the command needs was not freed in time.") from error
        if not is_database_error(error) or not is_retryable(error):
            raise error
        if self._tried >= STORE.tries:
            raise AuthorityUnavailable(f"The database did not answer in {self._tried} tries.") from error
        widest = min(STORE.retry_cap_seconds, STORE.retry_first_seconds * 2**self._tried)
        self.seconds = random.uniform(0, widest)
        _log.info("the command is sent again (try %d): %s", self._tried + 1, type(error).__name__)


def _tries() -> Iterator[_Pause]:
    tried = 0
    while True:
        tried += 1
        yield _Pause(tried)


def _send(c: Connection, command: Callable[..., R], *args: Any, **kwargs: Any) -> R:
    if is_single_statement(command):
        c = c.execution_options(isolation_level="AUTOCOMMIT")
        return command(c, *args, **kwargs)
    with c.begin():
        bounded(c)
        return command(c, *args, **kwargs)


def _embedded_directory(url: str) -> Path | None:
    scheme, _, rest = url.partition(":")
    if scheme != "embedded":
        return None
    return Path(rest).expanduser() if rest else default_directory(Path.cwd())


def _server_url(url: str) -> URL:
    scheme, separator, rest = url.partition("://")
    if not separator or scheme.split("+")[0] not in ("postgresql", "postgres"):
        raise Invalid(
            f"The database's URL begins with {scheme!r}.",
            field="url",
            limit="postgresql://… or embedded:DIR",
        )
    return make_url(f"postgresql+psycopg://{rest}")
