"""Loading the user's application, in a process that runs its handlers."""

from __future__ import annotations

import importlib
from typing import Any

from testigo.errors import Invalid
from testigo.worker.handlers import Registry

__all__ = ["load"]


def load(named: str) -> Any:
    """The application at `module:name`; all types that its handlers name are looked up.

    Raises `Invalid` for what is no App, and whatever the user's module raises.
    """
    module, _, path = named.partition(":")
    if not path:
        raise Invalid("It is not written as module:name.", field="app", limit="module:name")
    application: Any = _imported(module)
    for name in path.split("."):
        if not hasattr(application, name):
            raise Invalid(f"The module {module!r} has no {path!r}.", field="app", limit="module:name")
        application = getattr(application, name)
    if not isinstance(getattr(application, "registry", None), Registry):
        raise Invalid(f"{named} is a {type(application).__name__}, not an App.", field="app")
    for spec in application.registry:
        spec.prepare()
    return application


def _imported(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # it is another that the user's module lacks
        raise Invalid(
            f"No module named {error.name!r}.", field="app", remedy="Start the worker where the module can be imported."
        ) from None
