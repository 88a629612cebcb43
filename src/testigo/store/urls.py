"""What an installation's URL names: a PostgreSQL server, or a directory with a server of its own.

A URL may hold a password, so what is said about one repeats no part of it.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from testigo.errors import Invalid

__all__ = ["default_directory", "embedded_directory", "own_directory", "server_url", "shown"]


def embedded_directory(url: object) -> Path | None:
    """The directory that `embedded:DIR` names, the nearest project's for `embedded:`; None for a server's URL.

    Raises `Invalid` for the home (`~name`) of somebody who has none.
    """
    scheme, _, rest = url.partition(":") if isinstance(url, str) else ("", "", "")
    if scheme != "embedded":
        return None
    if not rest:
        return default_directory(Path.cwd())
    try:
        return Path(rest).expanduser()
    except RuntimeError:
        raise Invalid(
            "The directory is in a home that does not exist.",
            field="url",
            limit="embedded:DIR",
            remedy="Write the directory without ~, or with ./ before it if its name begins so.",
        ) from None


def default_directory(start: Path) -> Path:
    """`.testigo` in the nearest folder, from `start` upwards, that holds pyproject.toml or .git; else in `start`."""
    start = start.resolve()
    for folder in (start, *start.parents):
        if (folder / "pyproject.toml").exists() or (folder / ".git").exists():
            return folder / ".testigo"
    return start / ".testigo"


def own_directory(url: str) -> Path:
    """Where an installation's own files lie, its keys and blobs, unless a variable says otherwise.

    It is the directory of the embedded server; `.testigo` of the nearest project for a server elsewhere.
    """
    return embedded_directory(url) or default_directory(Path.cwd())


def server_url(url: URL | str) -> URL:
    """The URL of a server, as SQLAlchemy takes it to reach it through psycopg.

    Raises `Invalid` for what is not `postgresql://…` or `postgres://…`, or cannot be read.
    """
    parsed = _parsed(url)
    if parsed is None or parsed.get_backend_name() not in ("postgresql", "postgres") or "@" in (parsed.host or ""):
        raise Invalid(
            "The database's URL cannot be read.",
            field="url",
            limit="postgresql://user:password@host/database or embedded:DIR",
            remedy="In a name or password write @ as %40, / as %2F, : as %3A and % as %25.",
        )
    return _credentials_in_place(parsed).set(drivername="postgresql+psycopg")


def shown(url: str) -> str:
    """An installation as it may be told of: no password, and nothing else that may be secret. Raises as both do."""
    directory = embedded_directory(url)
    if directory is not None:
        return f"the embedded server in {directory}"
    parsed = server_url(url)
    query = {name: value for name, value in parsed.query.items() if name in ("host", "port")}
    return parsed.set(drivername="postgresql", query=query).render_as_string(hide_password=True)


def _parsed(url: URL | str) -> URL | None:
    """The URL as SQLAlchemy reads it; None if it cannot, or if libpq could not: it reads no further than a NUL."""
    try:
        parsed = make_url(url)
        text = parsed.set(drivername="x").render_as_string(hide_password=False)
        decoded = unquote(text, errors="strict")
        decoded.encode()
    except (ArgumentError, ValueError):
        return None
    return None if "\x00" in decoded else parsed


def _credentials_in_place(url: URL) -> URL:
    """`?user=…&password=…` moved to where SQLAlchemy knows that a password is to be hidden."""
    found = {name: url.query[name] for name in ("user", "password") if name in url.query}
    if not found:
        return url
    given = {name: value if isinstance(value, str) else value[-1] for name, value in found.items()}
    return url.difference_update_query(found).set(
        username=given.get("user", url.username or ""), password=given.get("password", url.password)
    )
