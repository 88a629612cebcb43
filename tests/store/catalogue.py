"""What a schema holds, as the database's own catalogue says it: a sorted list of sentences.

Two schemas that give equal lists have equal tables, columns, types, constraints, indexes, triggers,
functions, comments, settings and seed rows, in whatever order they were made.
"""

from __future__ import annotations

import psycopg
from psycopg import sql

__all__ = ["described"]

_DESCRIBED = """
    WITH own AS (SELECT oid, nspname FROM pg_namespace WHERE nspname = %(schema)s),
         tables AS (SELECT c.* FROM pg_class c JOIN own ON c.relnamespace = own.oid)
    SELECT format('%%s %%s with %%s, rules %%s', relkind, relname, reloptions, relhasrules) FROM tables
    UNION ALL
    SELECT format('column %%s.%%s %%s: %%s, not null %%s, default %%s', t.relname, a.attnum, a.attname,
                  format_type(a.atttypid, a.atttypmod), a.attnotnull, pg_get_expr(d.adbin, d.adrelid))
    FROM tables t JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped
         LEFT JOIN pg_attrdef d ON d.adrelid = t.oid AND d.adnum = a.attnum
    UNION ALL
    SELECT format('constraint %%s: %%s', conname, pg_get_constraintdef(c.oid))
    FROM pg_constraint c JOIN own ON c.connamespace = own.oid
    UNION ALL
    SELECT pg_get_indexdef(i.indexrelid) FROM pg_index i JOIN tables t ON t.oid = i.indrelid
    UNION ALL
    SELECT pg_get_triggerdef(g.oid) FROM pg_trigger g JOIN tables t ON t.oid = g.tgrelid WHERE NOT g.tgisinternal
    UNION ALL
    SELECT pg_get_functiondef(p.oid) FROM pg_proc p JOIN own ON p.pronamespace = own.oid
    UNION ALL
    SELECT format('type %%s: %%s %%s', y.typname, e.enumsortorder, e.enumlabel)
    FROM pg_type y JOIN own ON y.typnamespace = own.oid JOIN pg_enum e ON e.enumtypid = y.oid
    UNION ALL
    SELECT format('comment on %%s.%%s: %%s', t.relname, d.objsubid, d.description)
    FROM tables t JOIN pg_description d ON d.objoid = t.oid
"""


def described(url: str, schema: str = "testigo") -> list[str]:
    """Everything in the schema, a sentence each."""
    with psycopg.connect(url) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (schema,)).fetchall()
        counted = [f"{_rows(connection, schema, name)} rows in {name}" for (name,) in tables]
        found = connection.execute(_DESCRIBED, {"schema": schema}).fetchall()
    return sorted(counted + [str(sentence) for (sentence,) in found])


def _rows(connection: psycopg.Connection, schema: str, table: str) -> int:
    count = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(schema, table))
    return int(connection.execute(count).fetchall()[0][0])
