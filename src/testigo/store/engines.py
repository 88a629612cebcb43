"""How the engine opens its own connections.

A transaction pooler gives each transaction another server connection, so by default nothing is
prepared and no session state is set (spec P-12). A connection whose server process answers with the
very pid that the connection was given at its start has nobody in between: it belongs to us alone,
so there the hot statements are prepared, which halves the cost of a short command, and the planner
is kept from scanning a table that was small when it planned (decision record 0011).

Connections are in autocommit: a hot command is one statement, and to change the mode of a connection
there and back would cost it a tenth of its time. A command of several statements changes it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from sqlalchemy import URL, Engine, create_engine, event

from testigo.errors import IsolationUnsupported
from testigo.settings import SESSIONS, STORE
from testigo.store.command import AUTOCOMMIT_OPTION
from testigo.store.reading import AsyncBinaryCursor, BinaryCursor, read_binary
from testigo.store.replication import DOUBT_OPTION, Doubt
from testigo.store.sql import PREPARE_OPTION, SCHEMA_OPTION

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

__all__ = ["async_engine", "keepalive", "sync_engine"]

_PREPARE_WHAT_ASKS = sys.maxsize
"""psycopg's threshold: only a statement that asks for it is prepared, however often the others are sent."""

_HELLO = """
    SELECT pg_backend_pid(), current_setting('default_transaction_isolation'), quote_ident(current_user)
"""

# What is prepared is planned once, and not for the parameters of one day. No scan: a plan may be made
# while a table is tiny. No compiler: before PostgreSQL 18 a scan that cannot be avoided, of a table
# with one row, then costs so much on paper that each execution is compiled first, 2 to 6 s for a
# submit. No statement waits for a lock without end, those of the hot paths included (P-08). Times within
# JSON are written as UTC, as all others are read.
_OUR_OWN = f"""
    SELECT set_config('plan_cache_mode', 'force_generic_plan', false), set_config('enable_seqscan', 'off', false),
           set_config('jit', 'off', false), set_config('lock_timeout', '{STORE.lock_timeout_seconds}s', false),
           set_config('TimeZone', 'UTC', false)
"""


def sync_engine(url: URL, *, schema: str, pool_size: int) -> Engine:
    """An engine for synchronous callers; it connects when it is first used."""
    return _listened_to(create_engine(url, **_options(url, schema, pool_size, BinaryCursor)))


def async_engine(url: URL, *, schema: str, pool_size: int) -> AsyncEngine:
    """The same for asynchronous callers. Only they load what it takes, which is a third of SQLAlchemy."""
    from sqlalchemy.ext.asyncio import create_async_engine

    engine = create_async_engine(url, **_options(url, schema, pool_size, AsyncBinaryCursor))
    _listened_to(engine.sync_engine)
    return engine


def _options(url: URL, schema: str, pool_size: int, cursor: type[Any]) -> dict[str, Any]:
    return {
        "pool_size": pool_size,
        "max_overflow": 0,
        "hide_parameters": True,
        "use_native_hstore": False,  # no column of ours is one: to look for its type would be a transaction
        "isolation_level": "AUTOCOMMIT",
        "execution_options": {
            SCHEMA_OPTION: schema,
            PREPARE_OPTION: True,
            AUTOCOMMIT_OPTION: True,
            DOUBT_OPTION: Doubt(),
        },
        "connect_args": {
            "prepare_threshold": None,
            "connect_timeout": 10,
            "client_encoding": "UTF8",
            "cursor_factory": cursor,
            **keepalive(url),
        },
    }


def _listened_to(engine: Engine) -> Engine:
    """The engine, whose new connections are greeted and listened to."""
    event.listen(engine, "connect", _greet)
    engine.get_execution_options()[DOUBT_OPTION].watch(engine)
    return engine


def keepalive(url: URL) -> dict[str, int]:
    """libpq's options with which, over TCP, a peer that vanished is noticed within a term (spec P-10)."""
    host = url.host or url.query.get("host") or ""
    if not host or str(host).startswith("/"):
        return {}
    term = int(SESSIONS.term_seconds)
    return {
        "keepalives": 1,
        "keepalives_idle": max(1, term // 3),
        "keepalives_interval": max(1, term // 3),
        "keepalives_count": 2,
        "tcp_user_timeout": term * 1000,
    }


def _greet(connection: Any, _record: object) -> None:
    """Refuse a role whose isolation breaks the protocol; see whether a pooler is in between."""
    driver = getattr(connection, "driver_connection", connection)
    read_binary(driver)
    cursor = connection.cursor()
    cursor.execute(_HELLO)
    backend_pid, isolation, role = cursor.fetchone()
    if isolation != "read committed":
        connection.close()
        raise IsolationUnsupported(
            f"The transactions of the role {role} begin as {isolation.upper()}; testigo needs READ COMMITTED.",
            field="default_transaction_isolation",
            remedy=f"ALTER ROLE {role} SET default_transaction_isolation = 'read committed';",
        )
    if backend_pid == driver.info.backend_pid:
        cursor.execute(_OUR_OWN)
        driver.prepare_threshold = _PREPARE_WHAT_ASKS
    cursor.close()
