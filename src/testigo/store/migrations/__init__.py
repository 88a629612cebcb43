"""The migrations: each version is one `.sql` file and the five lines that tell Alembic of it."""

from __future__ import annotations

from pathlib import Path

from alembic import context, op

from testigo.store.sql import in_schema

__all__ = ["run"]


def run(name: str) -> None:
    """Run `versions/NAME` in the installation's schema, or write it out when SQL was asked for."""
    sql = (Path(__file__).parent / "versions" / name).read_text(encoding="utf-8")
    sql = in_schema(sql, context.config.attributes["schema"])
    if context.is_offline_mode():
        context.get_context().impl.static_output(sql)
    else:
        op.get_bind().connection.cursor().execute(sql)  # many statements: the driver's own cursor takes them
