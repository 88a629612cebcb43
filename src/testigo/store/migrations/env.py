"""Alembic's entrance: one connection, one transaction, one lock, the installation's own schema."""

from __future__ import annotations

from alembic import context
from sqlalchemy import Connection, text
from sqlalchemy.schema import CreateSchema

VERSION_TABLE = "schema_version"


def _write_out(schema: str) -> None:
    """Write the SQL down instead of running it."""
    context.configure(
        dialect_name="postgresql",
        dialect_opts={"paramstyle": "named"},  # any other doubles a percent sign in the schema's name
        version_table=VERSION_TABLE,
        version_table_schema=schema,
        literal_binds=True,
    )
    with context.begin_transaction():
        context.execute(CreateSchema(schema, if_not_exists=True))
        context.run_migrations()


def _run(connection: Connection, schema: str) -> None:
    # Two processes that migrate at once: the second waits here, then finds nothing to do.
    connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('testigo migrations'))"))
    # To a role that may not create schemas, IF NOT EXISTS is refused even where somebody made it one.
    if not connection.execute(text("SELECT FROM pg_namespace WHERE nspname = :schema"), {"schema": schema}).all():
        connection.execute(CreateSchema(schema))
    context.configure(connection=connection, version_table=VERSION_TABLE, version_table_schema=schema)
    context.run_migrations()
    connection.commit()


if context.is_offline_mode():
    _write_out(context.config.attributes["schema"])
else:
    _run(context.config.attributes["connection"], context.config.attributes["schema"])
