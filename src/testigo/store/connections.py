"""Commands on connections that are the caller's: what they do commits or rolls back with the rest.

    run_within(session, submit_within, [job], action=action)    # or Connection, psycopg's, Django's
    await run_within_async(async_session, submit_within, [job], action=action)

The transaction stays the caller's: it is never committed, rolled back or closed here, and nothing
sticks to the connection, no option, no setting, no isolation level. As with any statement of the
caller's own, a transaction begins if none is open. The command runs inside a savepoint, so one that
raises leaves nothing behind, and the transaction usable. `submit_within` is made for this: any other
command that appends to a stream keeps others from that stream until the caller's transaction ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from typing import TYPE_CHECKING, Any, Concatenate, TypeVar

from psycopg import AsyncCursor, Cursor
from psycopg.pq import TransactionStatus
from sqlalchemy import Connection

from testigo.settings import STORE
from testigo.store.borrowed import borrow, borrow_async
from testigo.store.refusals import (
    closed,
    failed,
    refused,
    refusing,
    require_driver,
    require_psycopg_usable,
    require_usable,
)
from testigo.store.sql import SCHEMA_OPTION

if TYPE_CHECKING:
    import psycopg
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, async_scoped_session
    from sqlalchemy.orm import Session, scoped_session

__all__ = ["run_within", "run_within_async"]

R = TypeVar("R")
_NOTHING = ";"  # an empty statement, before which psycopg begins the transaction


def run_within(
    connection: object,
    command: Callable[Concatenate[Connection, ...], R],
    /,
    *args: Any,
    schema: str = STORE.schema,
    **kwargs: Any,
) -> R:
    """Run a command in the transaction of the caller's connection, and return what it returns.

    `connection` is a SQLAlchemy `Session`, `scoped_session` or `Connection` on psycopg 3, a psycopg 3
    `Connection`, or Django's `connection` inside `atomic()`. A psycopg connection in autocommit mode
    outside a transaction block gets a transaction of the command's own, which commits at once.
    Raises what the command raises, and `ConnectionUnsupported`, with nothing done, for any other
    connection, a closed one, and one whose transaction has failed (spec P-02, P-11).
    """
    with _kind(connection, _SYNC)(connection, schema) as c:
        return command(c, *args, **kwargs)


async def run_within_async(
    connection: object,
    command: Callable[Concatenate[Connection, ...], R],
    /,
    *args: Any,
    schema: str = STORE.schema,
    **kwargs: Any,
) -> R:
    """The same on an asynchronous connection, for the same command.

    `connection` is a SQLAlchemy `AsyncSession`, `async_scoped_session` or `AsyncConnection`, on psycopg 3
    or asyncpg, or a psycopg 3 `AsyncConnection`.
    """

    def work(c: Connection) -> R:
        return command(c, *args, **kwargs)

    return await _kind(connection, _ASYNC)(connection, work, schema)  # type: ignore[no-any-return]


@contextmanager
def _sqlalchemy_connection(connection: Connection, schema: str) -> Iterator[Connection]:
    require_driver(connection.dialect)
    with refusing():
        require_usable(connection)
        if not connection.in_transaction():
            connection.begin()
    # Options set on a Connection stay on it. A copy shares everything else with it, the transaction
    # and the count that names savepoints included, and is dropped with what was set.
    within = copy(connection).execution_options(**{SCHEMA_OPTION: schema})
    try:
        with refusing():
            savepoint = within.begin_nested()
        with savepoint:
            yield within
    finally:
        if within.invalidated:  # SQLAlchemy found the connection lost, which its owner has to know
            connection.invalidate()


@contextmanager
def _session(session: Session, schema: str) -> Iterator[Connection]:
    with refusing():
        require_driver(session.get_bind().dialect)
        connection = session.connection()
    with _sqlalchemy_connection(connection, schema) as c:
        yield c


def _scoped_session(registry: scoped_session[Session], schema: str) -> AbstractContextManager[Connection]:
    return _session(registry(), schema)


@contextmanager
def _psycopg(connection: psycopg.Connection[Any], schema: str) -> Iterator[Connection]:
    require_psycopg_usable(connection)
    if _must_begin(connection):
        Cursor(connection).execute(_NOTHING)
    with connection.transaction():
        yield borrow(connection, schema)


def _django(connection: Any, schema: str) -> AbstractContextManager[Connection]:
    vendor = getattr(connection, "vendor", None)
    if vendor != "postgresql":
        raise refused(f"It is Django's connection to {vendor}.", "Pass Django's connection to PostgreSQL.")
    if connection.Database.__name__ != "psycopg":
        raise refused(
            f"It is Django's connection on {connection.Database.__name__}.",
            "Install psycopg 3 (the package psycopg), which Django then prefers.",
        )
    if not connection.in_atomic_block:
        raise refused("Django's connection is in no transaction.", "Make the call inside transaction.atomic().")
    if connection.needs_rollback:
        raise failed()
    return _psycopg(connection.connection, schema)


async def _async_connection(connection: AsyncConnection, work: Callable[[Connection], R], schema: str) -> R:
    if connection.sync_connection is None:
        raise closed()
    return await connection.run_sync(run_within, work, schema=schema)


async def _async_session(session: AsyncSession, work: Callable[[Connection], R], schema: str) -> R:
    return await session.run_sync(run_within, work, schema=schema)


async def _async_scoped_session(
    registry: async_scoped_session[AsyncSession], work: Callable[[Connection], R], schema: str
) -> R:
    return await _async_session(registry(), work, schema)


async def _async_psycopg(connection: psycopg.AsyncConnection[Any], work: Callable[[Connection], R], schema: str) -> R:
    require_psycopg_usable(connection)
    if _must_begin(connection):
        await AsyncCursor(connection).execute(_NOTHING)
    async with connection.transaction():
        answer = await borrow_async(connection, schema).run_sync(work)
    return answer  # noqa: RET504


_Kinds = Mapping[str, Callable[..., Any]]

# By the names of their classes, so that nothing is imported that the caller has not imported.
_SYNC: _Kinds = {
    "sqlalchemy.engine.base.Connection": _sqlalchemy_connection,
    "sqlalchemy.orm.session.Session": _session,
    "sqlalchemy.orm.scoping.scoped_session": _scoped_session,
    "psycopg.Connection": _psycopg,
    "django.db.backends.base.base.BaseDatabaseWrapper": _django,
    "django.utils.connection.ConnectionProxy": _django,
}
_ASYNC: _Kinds = {
    "sqlalchemy.ext.asyncio.engine.AsyncConnection": _async_connection,
    "sqlalchemy.ext.asyncio.session.AsyncSession": _async_session,
    "sqlalchemy.ext.asyncio.scoping.async_scoped_session": _async_scoped_session,
    "psycopg.AsyncConnection": _async_psycopg,
}
_REMEDIES = {
    "psycopg2": "Connect with psycopg 3: postgresql+psycopg:// in SQLAlchemy, the package psycopg elsewhere.",
    "asyncpg": "Pass a SQLAlchemy AsyncConnection on asyncpg, or connect with psycopg 3.",
}


def _kind(connection: object, kinds: _Kinds) -> Callable[..., Any]:
    classes = [f"{each.__module__}.{each.__qualname__}" for each in type(connection).__mro__]
    for name in classes:
        if name in kinds:
            return kinds[name]
    for name in classes:
        if name in _ASYNC:
            raise refused(f"A {name} is asynchronous.", "Await run_within_async, or submit_async, with it.")
        if name in _SYNC:
            raise refused(f"A {name} is synchronous.", "Call run_within, or submit, with it.")
    raise refused(f"A {classes[0]} is not a connection that is known.", _REMEDIES.get(classes[0].split(".")[0]))


def _must_begin(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> bool:
    """Whether psycopg's next statement begins the transaction, which a block would then commit as its own."""
    return not connection.autocommit and connection.info.transaction_status == TransactionStatus.IDLE
