"""Alembic's entrance: one connection, one transaction, one lock, the installation's own schema."""

from __future__ import annotations

from alembic import context
from sqlalchemy import text

VERSION_TABLE = "schema_version"


def _migrate() -> None:
    config = context.config
    schema = config.attributes["schema"]
    quoted = '"' + schema.replace('"', '""') + '"'
    if context.is_offline_mode():
        context.configure(
            dialect_name="postgresql",
            version_table=VERSION_TABLE,
            version_table_schema=schema,
            literal_binds=True,
        )
        context.get_context().impl.static_output(f"CREATE SCHEMA IF NOT EXISTS {quoted};")
        with context.begin_transaction():
            context.run_migrations()
        return
    connection = config.attributes["connection"]
    # Two processes that migrate at once: the second waits here, then finds nothing to do.
    connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('testigo migrations'))"))
    connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {quoted}"))
    context.configure(connection=connection, version_table=VERSION_TABLE, version_table_schema=schema)
    context.run_migrations()
    connection.commit()


_migrate()
