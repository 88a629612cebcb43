"""The project as a worker's runners load it: Django set up, every `jobs` module read, and the App.

`manage.py testigo worker` names `testigo.contrib.django.runner:app` to its runners. The keeper imports
nothing of the project.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import django
from django.utils.module_loading import autodiscover_modules

from testigo.contrib.django.place import place
from testigo.errors import SettingInvalid

__all__ = ["app"]


def _load() -> Any:
    django.setup()
    named = place().app
    if named is None:
        raise SettingInvalid("No App is named.", field="TESTIGO['APP']", limit="module:name")
    autodiscover_modules("jobs")
    module, _, name = named.partition(":")
    return getattr(import_module(module), name or "app")


app: Any = _load()
"""The App that `settings.TESTIGO` names, with the handlers of all installed apps."""
