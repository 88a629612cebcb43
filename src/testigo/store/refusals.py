"""Which of the callers' connections are refused, each by name and with a remedy, before anything is sent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from psycopg.pq import TransactionStatus
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, InvalidRequestError
from sqlalchemy.util.concurrency import in_greenlet

from testigo.errors import ConnectionUnsupported
from testigo.store.failures import sqlstate_of

if TYPE_CHECKING:
    import psycopg
    from sqlalchemy import Dialect

__all__ = ["closed", "failed", "refused", "refusing", "require_driver", "require_psycopg_usable", "require_usable"]

_FAILED = "25P02"  # the SQLSTATE of any statement in a transaction that has failed


def require_driver(dialect: Dialect) -> None:
    """Refuse another database than PostgreSQL, and a driver of it that cannot be served as it is used here."""
    if dialect.name != "postgresql" or dialect.driver not in ("psycopg", "asyncpg"):
        raise refused(
            f"It connects through {dialect.name}+{dialect.driver}.",
            "Connect to PostgreSQL through postgresql+psycopg://, or postgresql+asyncpg:// if asynchronous.",
        )
    if dialect.is_async and not in_greenlet():
        raise refused(
            "Its engine is asynchronous.",
            "Await run_within_async with the AsyncSession or AsyncConnection, or pass this inside its run_sync.",
        )


def require_usable(connection: Connection) -> None:
    """Refuse a SQLAlchemy connection that is closed, in autocommit, or in a transaction that has failed."""
    if connection.closed:
        raise closed()
    pooled: Any = connection.connection
    if connection.dialect.driver == "psycopg":
        require_psycopg_usable(pooled.driver_connection)
    elif pooled.driver_connection.is_closed():
        raise closed()
    if pooled.dbapi_connection.autocommit:
        raise refused(
            "Its isolation level is AUTOCOMMIT, so it has no transaction.",
            "Pass a connection with a transaction, or none.",
        )


def require_psycopg_usable(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
    """Refuse a psycopg connection that is closed, busy, or in a transaction that has failed."""
    status = connection.info.transaction_status
    if status == TransactionStatus.UNKNOWN:
        raise closed()
    if status == TransactionStatus.INERROR:
        raise failed()
    if connection.pgconn.pipeline_status or status == TransactionStatus.ACTIVE:
        raise refused("It is busy with a pipeline, a COPY or another statement.", "Finish that first.")


@contextmanager
def refusing() -> Iterator[None]:
    """Turn what SQLAlchemy refuses to do with a connection in its state into a refusal of ours."""
    try:
        yield
    except InvalidRequestError as error:
        raise refused(str(error), "Do as SQLAlchemy says, or pass another connection.") from error
    except DBAPIError as error:
        if sqlstate_of(error) == _FAILED:  # asyncpg alone does not say so before it is asked
            raise failed() from error
        raise


def closed() -> ConnectionUnsupported:
    """The refusal of a connection on which nothing can be sent."""
    return refused("It is closed.", "Pass a connection that is open.")


def failed() -> ConnectionUnsupported:
    """The refusal of a transaction in which every statement fails."""
    return refused("Its transaction has failed.", "Roll it back, or to a savepoint, and make the call again.")


def refused(what: str, remedy: str | None = None) -> ConnectionUnsupported:
    """A refusal that says what is wrong with the connection, and what to do instead."""
    return ConnectionUnsupported(
        f"The command cannot run on this connection. {what}", field="connection", remedy=remedy
    )
