"""Names for the shell to complete, where asking is cheap: of a server that answers within a second.

An embedded server is not started for it.
"""

from __future__ import annotations

import typer

__all__ = ["kinds", "policies", "queues"]

_QUEUES = """
    SELECT DISTINCT split_part(name, '#', 1) AS name FROM {schema}.stream WHERE name LIKE {like}
    UNION
    SELECT unnest(p.queues) FROM {schema}.session_profile p WHERE p.closed_at IS NULL
"""

_KINDS = """
    SELECT DISTINCT unnest(p.kinds) AS name FROM {schema}.session_profile p WHERE p.closed_at IS NULL
    UNION
    SELECT name FROM {schema}.pause WHERE scope = 'kind'
"""


def queues(ctx: typer.Context, incomplete: str) -> list[str]:
    """Queues whose names begin so."""
    return _asked(ctx, _QUEUES, incomplete)


def kinds(ctx: typer.Context, incomplete: str) -> list[str]:
    """Kinds whose names begin so."""
    return _asked(ctx, _KINDS, incomplete)


def policies(incomplete: str) -> list[str]:
    """What may become of a job whose parent can never succeed."""
    from testigo.rules.decide import Policy

    return [policy for policy in Policy if policy.startswith(incomplete)]


def _asked(ctx: typer.Context, query: str, incomplete: str) -> list[str]:
    try:
        return sorted(name for name in _names(ctx, query, incomplete) if name.startswith(incomplete))
    except Exception:  # whatever is wrong, Tab is no place to hear of it
        return []


def _names(ctx: typer.Context, query: str, incomplete: str) -> list[str]:
    from testigo.configuration import installation

    place = installation(ctx.params.get("url"), ctx.params.get("schema"))
    if place.url.startswith("embedded:"):
        return []

    import psycopg
    from psycopg import sql

    from testigo.store.urls import server_url

    conninfo = server_url(place.url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(conninfo, connect_timeout=1, autocommit=True) as connection:
        like = sql.Literal(incomplete.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%")
        asked = sql.SQL(query).format(schema=sql.Identifier(place.schema), like=like)
        return [str(row[0]) for row in connection.execute(asked)]
