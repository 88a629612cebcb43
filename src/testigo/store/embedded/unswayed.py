"""What a connection to an embedded server says of itself, so that libpq takes none of it from the environment.

`PGHOSTADDR`, `PGSSLMODE`, `PGOPTIONS` and their like, and the file of services that `PGSERVICE` names, are meant
for some other server, and would send a connection there, or have this one refused. What is given outweighs them.
"""

from __future__ import annotations

import os
import pwd
from functools import cache
from pathlib import Path
from typing import Any

from psycopg import pq
from sqlalchemy import URL

from testigo.errors import EmbeddedUnusable

__all__ = ["refuse_unknown_service", "unswayed", "written"]

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


def written(url: URL) -> URL:
    """The URL of an embedded server with those that its text needs here, for it may be used by anybody.

    That is, those whose variables are set: without any it stays as short as it was, and fit for other drivers. What
    the text of a URL leaves empty is not given, so here each has a word that says as much.
    """
    folder, port = str(url.query["host"]), str(url.query["port"])
    words = {
        # No address. It has to be one of as many as there are hosts, so there are two.
        "hostaddr": {"host": f"{folder},{folder}", "port": f"{port},{port}", "hostaddr": ","},
        "options": {"options": " "},
        "sslrootcert": {"sslrootcert": "-"},
        "require_auth": {"require_auth": "none"},
        "requirepeer": {"requirepeer": pwd.getpwuid(Path(folder).stat().st_uid).pw_name},
    }
    query: dict[str, str] = {}
    for each in pq.Conninfo.get_defaults():
        name = each.keyword.decode()
        if name in _GIVEN and ({"PGSERVICE", (each.envvar or b"").decode()} & os.environ.keys()):
            query |= words.get(name, {name: _GIVEN[name]})
    return url.update_query_dict(query)


def refuse_unknown_service(refusal: str) -> None:
    """Raise EmbeddedUnusable where libpq refuses every connection, because it does not find what PGSERVICE names."""
    service = os.environ.get("PGSERVICE")
    if service and f'"{service}"' in refusal:
        raise EmbeddedUnusable(
            f"libpq refuses to connect anywhere: {refusal.strip()}. PGSERVICE names that service.",
            remedy="Unset PGSERVICE, or add the service to the file that PGSERVICEFILE names.",
        )
