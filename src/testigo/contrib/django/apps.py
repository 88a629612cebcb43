"""What Django knows of testigo: a check of the settings, and a schema that migrates with the project."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage, Error, register
from django.db.models.signals import post_migrate

from testigo.contrib.django.place import place
from testigo.errors import SettingInvalid
from testigo.store.schema import migrate

__all__ = ["TestigoConfig"]


class TestigoConfig(AppConfig):
    """`testigo.contrib.django` among the installed apps. It has no models."""

    name = "testigo.contrib.django"
    label = "testigo"

    def ready(self) -> None:
        """Be called for checks and after migrations."""
        register(_check)
        post_migrate.connect(_migrate, sender=self)


def _check(**_given: Any) -> list[CheckMessage]:
    """`manage.py check`: what `settings.TESTIGO` says can be used."""
    try:
        _ = place().url
    except SettingInvalid as error:
        return [Error(f"{error.field}: {error.message}", hint=error.remedy, id="testigo.E001")]
    return []


def _migrate(*, using: str, **_given: Any) -> None:
    """After `manage.py migrate` on our database, and when Django has made a test's: our schema as well."""
    here = place()
    if using == here.alias:
        migrate(here.url, here.schema)
