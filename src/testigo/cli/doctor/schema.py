"""Checks of the schema and of what the role may do in it."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection

from testigo.cli.doctor.findings import Finding, Level
from testigo.errors import SchemaMismatch
from testigo.store.schema import check_schema
from testigo.store.sql import Statement, schema_of

__all__ = ["rights", "version"]

_RIGHTS = Statement(
    """
    SELECT quote_ident(current_user) AS role, quote_ident(n.nspname) AS schema,
           has_schema_privilege(n.oid, 'USAGE') AS usage,
           (SELECT array_agg(t.relname || ': ' || p.name ORDER BY t.relname, p.name)
            FROM pg_class t
                 CROSS JOIN unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS p(name)
            WHERE t.relnamespace = n.oid AND t.relkind = 'r' AND t.relname <> 'schema_version'
              AND NOT has_table_privilege(t.oid, p.name)) AS lacks
    FROM pg_namespace n
    WHERE n.nspname = :schema
    """
)


def version(c: Connection) -> Iterator[Finding]:
    """A schema that is not there, or of another release."""
    try:
        check_schema(c)
    except SchemaMismatch as error:
        why = "No command is run on a schema that this release was not written for."
        yield Finding(error.code, Level.FAULT, error.message, why, _remedy(error), error.facts)


def rights(c: Connection) -> Iterator[Finding]:
    """What the role may not do with the tables."""
    row = _RIGHTS.row(c, schema=schema_of(c))
    if row is None or (row.usage and not row.lacks):
        return
    lacks = list(row.lacks or ()) if row.usage else ["USAGE of the schema"]
    shown = ", ".join(lacks[:4]) + (f" and {len(lacks) - 4} more" if len(lacks) > 4 else "")
    yield Finding(
        "RIGHTS_LACKING",
        Level.FAULT,
        f"The role {row.role} lacks rights on the schema {row.schema}: {shown}.",
        "Commands that need them are refused by the server.",
        f"GRANT USAGE ON SCHEMA {row.schema} TO {row.role}; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN "
        f"SCHEMA {row.schema} TO {row.role};",
        {"role": row.role, "lacks": lacks},
    )


def _remedy(error: SchemaMismatch) -> str:
    found = error.facts.get("found")
    is_newer = found is not None and str(found) > str(error.facts["expected"])
    return error.remedy if is_newer else "Run `testigo migrate`."
