"""Every command of the authority, each in a world in which it has all that it can do to do.

A scene sets a world up by other commands and returns the command, with every input that it takes,
as it would be sent. `SCENES` holds them by name; whoever attacks "every command" goes through it.
"""

from __future__ import annotations

import importlib
import pkgutil

from tests.scenes.call import SCENES, Call, Scene, call, told

__all__ = ["SCENES", "Call", "Scene", "call", "told"]

for module in pkgutil.iter_modules(__path__, f"{__name__}."):
    importlib.import_module(module.name)
