"""A SQLAlchemy `Connection` over a psycopg connection that is not ours, and that it cannot end.

An engine made over a connection that somebody else has open rolls it back without a word: when its
dialect first looks at the server, when the connection goes back to the pool, when it is closed, and
when it is garbage. So no pool ever holds one here and no dialect looks: the `Connection` is handed a
`_Borrowed`, which gives cursors, and does nothing when told to commit, roll back, close or discard.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn

import psycopg
from psycopg.rows import TupleRow, tuple_row
from sqlalchemy import Connection, Engine, NullPool, PoolProxiedConnection, create_engine
from sqlalchemy.dialects.postgresql.psycopg import AsyncAdapt_psycopg_connection

from testigo.store.refusals import refused
from testigo.store.sql import SCHEMA_OPTION

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

__all__ = ["borrow", "borrow_async"]


def borrow(connection: psycopg.Connection[Any], schema: str) -> Connection:
    """A Connection whose statements run in whatever transaction `connection` is in.

    Nothing is sent now, and nothing needs closing. The caller's row factory, cursor factory and
    adapters take no part: a command reads the same Python values as on a connection of our own.
    """
    return _connection(_engine(), _Psycopg(connection, _Cursor), schema)


def borrow_async(connection: psycopg.AsyncConnection[Any], schema: str) -> AsyncConnection:
    """The same over an asynchronous connection; a command runs on it through `run_sync`."""
    from sqlalchemy.ext.asyncio import AsyncConnection

    engine = _async_engine()
    shown: Any = _Psycopg(connection, _AsyncCursor)
    adapted = AsyncAdapt_psycopg_connection(engine.dialect.loaded_dbapi, shown)
    return AsyncConnection(engine, _connection(engine.sync_engine, adapted, schema))


class _Borrowed(PoolProxiedConnection):
    """What SQLAlchemy takes for a connection out of a pool."""

    dbapi_connection: Any

    def __init__(self, dbapi_connection: Any) -> None:
        self.dbapi_connection = dbapi_connection
        self.driver_connection = dbapi_connection

    def cursor(self, *_args: Any, **_kwargs: Any) -> Any:
        return self.dbapi_connection.cursor()

    @property
    def is_valid(self) -> bool:
        return not self.closed

    @property
    def closed(self) -> bool:
        return bool(self.dbapi_connection.closed)

    @property
    def broken(self) -> bool:
        return bool(self.dbapi_connection.broken)

    def _do_nothing(self, *_args: Any, **_kwargs: Any) -> None:
        pass

    # Connection.close() calls the last of them when it has begun a transaction.
    commit = rollback = close = invalidate = _close_special = _do_nothing


class _Psycopg:
    """All that is shown of a psycopg connection: nothing by which it could be changed."""

    __slots__ = ("_connection", "_cursor_class")

    def __init__(self, connection: Any, cursor_class: Any) -> None:
        self._connection = connection
        self._cursor_class = cursor_class

    def cursor(self) -> Any:
        return self._cursor_class(self._connection, row_factory=tuple_row)

    @property
    def closed(self) -> Any:
        return self._connection.closed

    @property
    def broken(self) -> Any:
        return self._connection.broken

    @property
    def info(self) -> Any:
        return self._connection.info


class _Cursor(psycopg.Cursor[TupleRow]):
    """A cursor that adapts values as psycopg does by itself, whatever its connection was taught.

    Django, for one, has its connections load jsonb as text, and times without their zone.
    """

    @property
    def adapters(self) -> psycopg.adapt.AdaptersMap:
        return psycopg.adapters


class _AsyncCursor(psycopg.AsyncCursor[TupleRow]):
    """The same for an asynchronous connection."""

    @property
    def adapters(self) -> psycopg.adapt.AdaptersMap:
        return psycopg.adapters


def _connection(engine: Engine, dbapi_connection: Any, schema: str) -> Connection:
    return Connection(engine, _Borrowed(dbapi_connection)).execution_options(**{SCHEMA_OPTION: schema})


@lru_cache(maxsize=1)
def _engine() -> Engine:
    return create_engine("postgresql+psycopg://", creator=_never, poolclass=NullPool, hide_parameters=True)


@lru_cache(maxsize=1)
def _async_engine() -> AsyncEngine:
    from sqlalchemy.ext.asyncio import create_async_engine

    return create_async_engine("postgresql+psycopg://", creator=_never, poolclass=NullPool, hide_parameters=True)


def _never() -> NoReturn:
    raise refused("It is lost, and no other is opened in its place.", "Open one, and make the call again.")
