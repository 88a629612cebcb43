"""The database's schema and its versions: plain `.sql` files that Alembic runs, forwards only.

Every change is an expansion first (old code goes on working) and a contraction a release later. The
code knows the version that it was written for; what differs is told at the start and not found out
by an error in the middle (spec R101). Alembic is loaded only where the schema is another than this
release's: it would cost every worker a seventh of its memory.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import URL, Connection, NullPool, create_engine
from sqlalchemy.exc import DBAPIError

from testigo.errors import AuthorityUnavailable, Invalid, SchemaMismatch
from testigo.settings import STORE
from testigo.store.failures import is_connection_lost, is_undefined_table, reason_of
from testigo.store.sql import SCHEMA_OPTION, Statement, schema_of
from testigo.store.urls import server_url

if TYPE_CHECKING:
    from alembic.config import Config

__all__ = [
    "EXPECTED_VERSION",
    "check_migrations",
    "check_name",
    "check_schema",
    "is_installed",
    "migrate",
    "migration_sql",
]

EXPECTED_VERSION = "0005"
"""The version that this release's statements are written for."""

_VERSION = Statement("SELECT version_num FROM testigo.schema_version")
_MIGRATIONS = Path(__file__).with_name("migrations")

_alembic_turn = threading.Lock()
"""Alembic keeps what it is at in globals of its modules, so one thread at a time has it migrate."""


def migrate(url: URL | str, schema: str = STORE.schema) -> None:
    """Bring the schema to this release's version; safe to repeat, and from several processes and threads at once.

    The role needs to own the schema, or to be allowed to create it, and nothing more. Raises
    `SchemaMismatch` when the schema is newer than this release, `AuthorityUnavailable` when the
    database does not answer.
    """
    if not check_migrations(url, schema):
        return
    from alembic import command

    config = _config(schema)
    with _alembic_turn, _connected(url) as c:
        config.attributes["connection"] = c
        command.upgrade(config, "head")


def is_installed(url: URL | str, schema: str = STORE.schema) -> bool:
    """Whether there is an installation of this name, of whatever version; raises `AuthorityUnavailable`."""
    with _connected(url) as c:
        return _current(c, schema) is not None


def check_migrations(url: URL | str, schema: str = STORE.schema) -> list[str]:
    """The versions that `migrate` would apply, oldest first; empty when the schema is up to date.

    Raises as `migrate` does.
    """
    check_name(schema)
    with _connected(url) as c:
        current = _current(c, schema)
    if current == EXPECTED_VERSION:
        return []
    from alembic.script import ScriptDirectory

    script = ScriptDirectory.from_config(_config(schema))
    known = [revision.revision for revision in script.walk_revisions()][::-1]
    if current is None:
        return known
    if current not in known:
        raise _newer(current)
    return known[known.index(current) + 1 :]


def migration_sql(schema: str = STORE.schema) -> str:
    """The SQL that `migrate` would run on an empty database, for those who run it by hand."""
    from alembic import command

    written = io.StringIO()
    config = _config(schema)
    config.output_buffer = written
    with _alembic_turn:
        command.upgrade(config, "head", sql=True)
    return written.getvalue()


def check_schema(c: Connection) -> None:
    """Refuse a database whose schema this code does not know (`SchemaMismatch`)."""
    schema = schema_of(c)
    current = _current(c, schema)
    c.rollback()
    if current is None:
        raise SchemaMismatch(f"The schema {schema!r} does not exist in this database yet.", expected=EXPECTED_VERSION)
    if current < EXPECTED_VERSION:
        raise SchemaMismatch(
            f"The database's schema is version {current}; this release needs {EXPECTED_VERSION}.",
            found=current,
            expected=EXPECTED_VERSION,
        )
    if current > EXPECTED_VERSION:
        raise _newer(current)


def check_name(schema: str) -> None:
    """Refuse what PostgreSQL would cut short or keep for itself (`Invalid`)."""
    try:
        size = len(schema.encode())
    except (AttributeError, UnicodeEncodeError):  # it is no text, or none that has bytes
        size = 0
    if not 1 <= size <= 63 or "\x00" in schema or schema.startswith("pg_"):
        raise Invalid("That cannot be the name of a schema.", field="schema", limit="1 to 63 bytes, not pg_…")


@contextmanager
def _connected(url: URL | str) -> Iterator[Connection]:
    """A connection of its own, for one use."""
    engine = create_engine(server_url(url), poolclass=NullPool, hide_parameters=True)
    try:
        with engine.connect() as c:
            yield c
    except DBAPIError as error:
        if is_connection_lost(error):
            raise AuthorityUnavailable(f"The database did not answer: {reason_of(error)}.") from error
        raise


def _newer(current: str) -> SchemaMismatch:
    return SchemaMismatch(
        f"The database's schema is version {current}; this release knows only {EXPECTED_VERSION}.",
        remedy="Upgrade testigo here: this release is older than the database.",
        found=current,
        expected=EXPECTED_VERSION,
    )


def _current(c: Connection, schema: str) -> str | None:
    try:
        row = _VERSION.row(c.execution_options(**{SCHEMA_OPTION: schema}))
    except Exception as error:
        if is_undefined_table(error):
            return None
        raise
    return str(row.version_num) if row else None


def _config(schema: str) -> Config:
    from alembic.config import Config

    check_name(schema)
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["schema"] = schema
    return config
