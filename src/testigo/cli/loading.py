"""What a command loads stays to its end: to look for garbage among it took a third of the time of a short one."""

from __future__ import annotations

import atexit
import gc

__all__ = ["load_at_once", "search_as_usual"]

_OBJECTS_UNSEARCHED = 300_000
"""Three times what the largest command loads: one that makes more has its garbage looked for after all."""

_USUAL = gc.get_threshold()


def load_at_once() -> None:
    """Let nothing be searched while modules are loaded, nor all of them once more at the end."""
    gc.set_threshold(_OBJECTS_UNSEARCHED)
    atexit.register(gc.freeze)


def search_as_usual() -> None:
    """From here on a command stays: what it has loaded is spared, what it makes and drops is not."""
    gc.freeze()
    gc.set_threshold(*_USUAL)
