"""What a connection to an embedded server says of itself, so that libpq takes none of it from the environment.

`PGHOSTADDR`, `PGSSLMODE`, `PGOPTIONS` and their like, and the file of services that `PGSERVICE` names, are meant
for some other server, and would send a connection there, or have this one refused. What is given outweighs them.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from psycopg import pq

from testigo.errors import EmbeddedUnusable

__all__ = ["refuse_unknown_service", "unswayed"]

_GIVEN = {
    "hostaddr": "",
    "options": "",
    "client_encoding": "UTF8",
    "sslmode": "disable",
    "sslnegotiation": "postgres",
    "sslrootcert": "",
    "gssencmode": "disable",
    "channel_binding": "disable",
    "require_auth": "",
    "requirepeer": "",
    "target_session_attrs": "any",
    "load_balance_hosts": "disable",
}
"""All that may keep libpq from a socket of its own machine; host, port, user and database are given anyway."""


@cache
def unswayed() -> dict[str, Any]:
    """Those of libpq's options, as psycopg takes them, that this libpq knows."""
    known = {each.keyword.decode() for each in pq.Conninfo.get_defaults()}
    return {name: value for name, value in _GIVEN.items() if name in known}


def refuse_unknown_service(refusal: str) -> None:
    """Raise EmbeddedUnusable where libpq refuses every connection, because it does not find what PGSERVICE names."""
    service = os.environ.get("PGSERVICE")
    if service and f'"{service}"' in refusal:
        raise EmbeddedUnusable(
            f"libpq refuses to connect anywhere: {refusal.strip()}. PGSERVICE names that service.",
            remedy="Unset PGSERVICE, or add the service to the file that PGSERVICEFILE names.",
        )
