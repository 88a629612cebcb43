"""An examination: one check after the other on one connection, each of which may fail alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from sqlalchemy import URL, Connection, NullPool, create_engine
from sqlalchemy.exc import DBAPIError

from testigo.cli.doctor import host, schema, server, vacuum, work
from testigo.cli.doctor.findings import Finding, Level
from testigo.store.failures import reason_of
from testigo.store.sql import SCHEMA_OPTION, Statement

__all__ = ["CHECKS", "Check", "examine"]

ANSWER_SECONDS = 10.0
"""For each statement, and for each wait for a lock."""
CONNECT_SECONDS = 5


class Check(NamedTuple):
    """A check by its name; one of the `work` looks at tables, which have to be there and to be readable."""

    name: str
    run: Callable[[Connection], Iterator[Finding]]
    needs_schema: bool = False


CHECKS = (
    Check("server", server.version),
    Check("isolation", server.isolation),
    Check("time limits", server.limits),
    Check("durability", server.durability),
    Check("connections", server.connections),
    Check("pooler", server.pooler),
    Check("clocks", host.clocks),
    Check("schema", schema.version),
    Check("rights", schema.rights),
    Check("transactions", vacuum.transactions),
    Check("prepared transactions", vacuum.prepared),
    Check("replication slots", vacuum.slots),
    Check("autovacuum", vacuum.autovacuum),
    Check("unserved jobs", work.unserved, needs_schema=True),
    Check("promotion", work.overdue, needs_schema=True),
    Check("admission", work.unadmitted, needs_schema=True),
    Check("taking back", work.abandoned, needs_schema=True),
    Check("workers' beats", work.beats, needs_schema=True),
)

_BOUND = Statement(
    """
    SELECT set_config('statement_timeout', :ms, true), set_config('lock_timeout', :ms, true)
    """
)


def examine(url: URL, schema_name: str, before: Callable[[str], object]) -> Iterator[Finding]:
    """Everything that is found; `before` is told the name of each check before it is made.

    A server that does not answer is a finding too.
    """
    try:
        with _connected(url, schema_name) as c:
            yield from _checked(c, before)
    except DBAPIError as error:
        yield Finding(
            "UNREACHABLE",
            Level.FAULT,
            f"The database does not answer: {reason_of(error)}.",
            "Nothing can be submitted, claimed or settled.",
            "See that PostgreSQL runs, that the URL names it (`testigo config show`), and that network, pg_hba.conf "
            "and password let us in.",
        )


def _checked(c: Connection, before: Callable[[str], object]) -> Iterator[Finding]:
    is_usable = True
    for check in CHECKS:
        if check.needs_schema and not is_usable:
            continue
        before(check.name)
        try:
            _BOUND.rows(c, ms=str(int(ANSWER_SECONDS * 1000)))
            found = list(check.run(c))
        except DBAPIError as error:
            if error.connection_invalidated:
                raise
            found = [_unchecked(check, reason_of(error))]
        finally:
            c.rollback()
        if check.run in (schema.version, schema.rights) and found:
            is_usable = False
        yield from found


def _unchecked(check: Check, reason: str) -> Finding:
    return Finding(
        "UNCHECKED",
        Level.WARNING,
        f"{check.name.capitalize()} could not be looked at: {reason}.",
        "What is not looked at may be wrong.",
        "See that the role may read the statistics: GRANT pg_monitor TO the role; and that no lock is in the way.",
        {"check": check.name},
    )


@contextmanager
def _connected(url: URL, schema_name: str) -> Iterator[Connection]:
    """A connection that refuses nothing by itself: what is wrong with it is what we are here to tell."""
    engine = create_engine(
        url,
        poolclass=NullPool,
        hide_parameters=True,
        isolation_level="READ COMMITTED",
        execution_options={SCHEMA_OPTION: schema_name},
        connect_args={"connect_timeout": CONNECT_SECONDS, "prepare_threshold": None},
    )
    with engine.connect() as c:
        yield c
