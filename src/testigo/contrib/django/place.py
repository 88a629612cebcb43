"""Where the installation of a Django project is: what `settings.TESTIGO` says, and Django's database.

TESTIGO = {
    "APP": "shop.jobs:app",   # what `manage.py testigo worker` runs
    "DATABASE": "default",    # the alias in DATABASES
    "SCHEMA": "testigo",
}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.conf import settings
from django.db import connections
from psycopg.pq import Conninfo
from sqlalchemy import URL

from testigo.errors import SettingInvalid
from testigo.settings import STORE

__all__ = ["Place", "place"]

_MEMBERS = ("APP", "DATABASE", "SCHEMA")


@dataclass(frozen=True, slots=True)
class Place:
    """What the project's settings say: the App's name, if it is named, the alias, and the schema."""

    app: str | None
    alias: str
    schema: str

    @property
    def url(self) -> str:
        """Django's database as a URL, password included. Raises `SettingInvalid` where it is no PostgreSQL."""
        return _url(self.alias)


def place() -> Place:
    """The project's place, as it is now. Raises `SettingInvalid` for what nobody would read."""
    given = getattr(settings, "TESTIGO", {})
    if not isinstance(given, Mapping):
        raise SettingInvalid("A dictionary is needed.", field="TESTIGO")
    for name, value in given.items():
        if name not in _MEMBERS:
            raise SettingInvalid("There is no such setting.", field=f"TESTIGO[{name!r}]", limit=", ".join(_MEMBERS))
        if not isinstance(value, str):
            raise SettingInvalid("Text is needed.", field=f"TESTIGO[{name!r}]")
    alias = given.get("DATABASE", "default")
    if alias not in connections:
        raise SettingInvalid("DATABASES has no such alias.", field="TESTIGO['DATABASE']", limit=", ".join(connections))
    return Place(given.get("APP"), alias, given.get("SCHEMA", STORE.schema))


def _url(alias: str) -> str:
    connection = connections[alias]
    if connection.vendor != "postgresql":
        raise SettingInvalid(
            f"Its database is {connection.vendor}.",
            field=f"DATABASES[{alias!r}]",
            limit="postgresql",
            remedy="Let TESTIGO['DATABASE'] name a PostgreSQL among DATABASES.",
        )
    # Of what Django hands to psycopg, libpq's own words are kept; the others are Python objects.
    known = {option.keyword.decode() for option in Conninfo.get_defaults()} - {"client_encoding"}
    given = connection.get_connection_params()
    found = {name: str(value) for name, value in given.items() if name in known and value is not None}
    database, user, password = (found.pop(name, None) for name in ("dbname", "user", "password"))
    url = URL.create("postgresql", user, password, database=database, query=found)
    return url.render_as_string(hide_password=False)
