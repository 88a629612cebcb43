"""Connections that break at a chosen statement of a command, in every way in which a connection can break.

    breaker = Breaker(url)
    breaker.hook(engine)
    breaker.arm(3, Fault.KILLED)      # whatever runs now breaks at its fourth statement, once
    …
    breaker.finish()

Every statement counts that goes to the server, BEGIN and COMMIT included, whether SQLAlchemy sends it
or the driver's own cursor does. Some faults happen inside the server: triggers, which `install` puts
on every table of an installation, stop or end the process that changed a row.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from enum import StrEnum
from typing import Any, NoReturn

import psycopg
from psycopg import Cursor, sql
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow, tuple_row
from sqlalchemy import Engine, event

from testigo.store.reading import BinaryCursor, RawBinaryCursor

__all__ = ["Breaker", "Fault", "await_that", "install"]

PATIENCE_SECONDS = 60.0


class Fault(StrEnum):
    """What happens at a statement."""

    UNSENT = "unsent"
    """The connection is lost before the statement is sent."""
    UNANSWERED = "unanswered"
    """The statement takes effect; the connection is lost before the answer comes."""
    KILLED = "killed"
    """The server's process is killed when all effects of the statement are there and it is not finished."""
    REFUSED = "refused"
    """The server gives the transaction up, as a deadlock's victim; the connection lives on."""
    COMMITTING = "committing"
    """The connection is lost while the server commits, and the server goes on committing (spec P-03)."""


_TRIGGERS = """
    CREATE SCHEMA crash;

    CREATE FUNCTION crash.at_once() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF current_setting('crash.at_once', true) = 'die' THEN
            PERFORM pg_terminate_backend(pg_backend_pid());
        END IF;
        RETURN NULL;
    END $$;

    CREATE FUNCTION crash.at_commit() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF current_setting('crash.at_commit', true) = 'die' THEN
            PERFORM pg_terminate_backend(pg_backend_pid());
        ELSIF current_setting('crash.at_commit', true) = 'wait' THEN
            PERFORM pg_advisory_xact_lock_shared(1);
        END IF;
        RETURN NULL;
    END $$;
"""
_ON_TABLE = """
    CREATE TRIGGER crash_at_once AFTER INSERT OR UPDATE OR DELETE ON {table}
        FOR EACH ROW EXECUTE FUNCTION crash.at_once();
    CREATE CONSTRAINT TRIGGER crash_at_commit AFTER INSERT OR UPDATE OR DELETE ON {table}
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION crash.at_commit();
"""
_DIE = "SELECT pg_terminate_backend(pg_backend_pid())"
_GIVE_UP = "DO $$ BEGIN RAISE EXCEPTION 'the victim of a deadlock' USING ERRCODE = '40P01'; END $$"
_LIVES = "SELECT FROM pg_stat_activity WHERE pid = %s"
_WAITS = "SELECT FROM pg_stat_activity WHERE pid = %s AND wait_event_type = 'Lock'"
_ANOTHER_WAITS = (
    "SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> %s AND wait_event_type = 'Lock'"
)


def install(connection: psycopg.Connection[Any], tables: list[sql.Identifier]) -> None:
    """Put the triggers on these tables; they do nothing until a fault asks them to."""
    connection.execute(_TRIGGERS)
    for table in tables:
        connection.execute(sql.SQL(_ON_TABLE).format(table=table))


def await_that(condition: Callable[[], bool]) -> None:
    """Wait until the condition holds; raises TimeoutError when it does not for too long."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("the server did not come to where it was waited for")
        time.sleep(0.001)


class Breaker:
    """Breaks one statement of what runs on the connections of an engine."""

    def __init__(self, url: str) -> None:
        self.statements: list[str] = []
        """The statements since `arm`, BEGIN and COMMIT included."""
        self.broke = False
        """Whether the statement that should break came, and broke."""
        self._watch = psycopg.connect(url, autocommit=True)
        self._at = -1
        self._fault: Fault | None = None
        self._resent = threading.Event()
        self._usher: threading.Thread | None = None

    def hook(self, engine: Engine) -> None:
        """Have every connection that the engine opens from now on count and break."""
        engine.dispose()

        @event.listens_for(engine, "do_connect")
        def connect(_dialect: object, _record: object, args: tuple[Any, ...], options: dict[str, Any]) -> _Connection:
            connection = _Connection.connect(*args, **options)
            connection.breaker = self
            return connection

        engine.connect().close()

    def arm(self, at: int = -1, fault: Fault | None = None) -> None:
        """Count statements from 0 again, and break the one numbered `at`; none when `fault` is None."""
        self.statements = []
        self.broke = False
        self._at, self._fault = at, fault

    def finish(self) -> None:
        """Wait until the server has committed what it was left committing. Call it when all was sent."""
        self._at, self._fault = -1, None
        self._resent.set()
        if self._usher is not None:
            self._usher.join()
            self._usher = None

    def close(self) -> None:
        """Close the connection that watches."""
        self._watch.close()

    def step(self, connection: _Connection, statement: str, send: Callable[[], Any]) -> Any:
        """Send a statement, or break it."""
        at = len(self.statements)
        self.statements.append(statement)
        if self._fault is None or at != self._at:
            return send()
        fault, self._fault = self._fault, None
        self.broke = True
        return self._break(fault, connection, statement, send)

    def _break(self, fault: Fault, connection: _Connection, statement: str, send: Callable[[], Any]) -> NoReturn:
        match fault:
            case Fault.UNSENT:
                self._lose(connection)
            case Fault.UNANSWERED:
                send()
                self._lose(connection)
            case Fault.KILLED:
                connection.ask("at_commit" if statement == "COMMIT" else "at_once", "die")
                try:
                    send()
                    Cursor(connection).execute(_DIE)  # it changed no row
                finally:
                    self._await_end(connection)
            case Fault.REFUSED:
                Cursor(connection).execute(_GIVE_UP)
            case Fault.COMMITTING:
                self._leave(connection, send)
        raise AssertionError(f"the statement was not {fault}")

    def _lose(self, connection: _Connection) -> NoReturn:
        """Lose the connection without a word from the server."""
        connection.end()
        self._await_end(connection)
        raise psycopg.OperationalError("the connection was lost")

    def _await_end(self, connection: _Connection) -> None:
        """Wait until the server has noticed: until then its process may hold locks that a sweep passes over."""
        await_that(lambda: not self._sees(_LIVES, connection.pid))

    def _leave(self, connection: _Connection, send: Callable[[], Any]) -> NoReturn:
        """Lose the connection while the server commits, which it goes on with when the resend waits for it."""
        connection.ask("at_commit", "wait")
        self._resent.clear()
        self._watch.execute("SELECT pg_advisory_lock(1)")
        left = threading.Thread(target=send, name="left-committing")
        left.start()
        await_that(lambda: not left.is_alive() or self._sees(_WAITS, connection.pid))
        connection.leave()

        def usher() -> None:
            await_that(lambda: self._resent.is_set() or self._sees(_ANOTHER_WAITS, connection.pid))
            self._watch.execute("SELECT pg_advisory_unlock(1)")
            left.join()
            connection.end()

        self._usher = threading.Thread(target=usher, name="usher")
        self._usher.start()
        raise psycopg.OperationalError("the connection was lost while the server commits")

    def _sees(self, query: str, pid: int) -> bool:
        return self._watch.execute(query, (pid,)).fetchone() is not None


class _Connection(psycopg.Connection[TupleRow]):
    """A connection that tells its breaker of every statement."""

    breaker: Breaker

    def __init__(self, pgconn: psycopg.pq.abc.PGconn, row_factory: Any = tuple_row) -> None:
        super().__init__(pgconn, row_factory)
        self.cursor_factory = _Counting
        self.pid = self.info.backend_pid
        self._left = False

    @property
    def cursor_factory(self) -> type[Cursor[TupleRow]]:
        """What the next cursor is; whoever asks for one of ours gets one that counts."""
        return self._factory

    @cursor_factory.setter
    def cursor_factory(self, factory: type[Cursor[TupleRow]]) -> None:
        self._factory = _COUNTING.get(factory, factory)

    def ask(self, when: str, what: str) -> None:
        """Have the triggers do this when this connection has changed a row."""
        Cursor(self).execute(f"SET crash.{when} = '{what}'")

    def leave(self) -> None:
        """Look lost, while another thread waits for the statement that is on its way."""
        self._left = True

    def end(self) -> None:
        """Close it, even if it was left."""
        super().close()

    @property
    def closed(self) -> bool:
        """Whether it is closed, or was left."""
        return self._left or super().closed

    def close(self) -> None:
        """Close it, unless it was left."""
        if not self._left:
            super().close()

    def commit(self) -> None:
        """Commit; counts as a statement when there is something to commit."""
        if self.info.transaction_status == TransactionStatus.INTRANS:
            self.breaker.step(self, "COMMIT", super().commit)
        else:
            super().commit()


class _Counting(BinaryCursor):
    """A cursor that tells of every statement, and of the BEGIN that the driver sends before the first."""

    def execute(self, query: Any, params: Any = None, **options: Any) -> Any:
        """Execute, or break."""
        connection = self.connection
        assert isinstance(connection, _Connection)
        if connection.closed:
            raise psycopg.OperationalError("the connection is closed")
        if not connection.autocommit and connection.info.transaction_status == TransactionStatus.IDLE:
            connection.breaker.step(connection, "BEGIN", lambda: Cursor(connection).execute(";"))
        send = super().execute
        return connection.breaker.step(connection, str(query), lambda: send(query, params, **options))


class _RawCursor(_Counting, RawBinaryCursor):
    """The same for the hot statements, which the driver sends as they are."""


_COUNTING: dict[type[Cursor[TupleRow]], type[Cursor[TupleRow]]] = {BinaryCursor: _Counting, RawBinaryCursor: _RawCursor}
