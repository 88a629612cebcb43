"""Ordinary roles of a server: they may log in, and own what they are given."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

__all__ = ["as_role", "ordinary_role"]


@contextmanager
def ordinary_role(server_url: str) -> Iterator[str]:
    """A new role without any privilege, gone afterwards; what it owns must be gone before."""
    name = f"role_{uuid.uuid4().hex}"
    with psycopg.connect(server_url, autocommit=True) as administrator:
        administrator.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(name)))
        try:
            yield name
        finally:
            administrator.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


def as_role(url: str, role: str, password: str = "") -> str:
    """The URL for connecting as `role`."""
    parts = urlsplit(url)
    place = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=f"{role}:{password}@{place}" if password else f"{role}@{place}").geturl()
