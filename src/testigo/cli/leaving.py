"""How a command ends that has processes of its own: told once, it takes them down in peace."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

__all__ = ["leaving_in_order"]


@contextmanager
def leaving_in_order() -> Iterator[None]:
    """Whatever asks the command to end is heard once: then its processes and its database are taken down in peace."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def leave(number: int, _: FrameType | None) -> NoReturn:
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + number)

    before = [signal.signal(each, leave) for each in numbers]
    try:
        yield
    finally:
        for each, handler in zip(numbers, before, strict=True):
            signal.signal(each, handler)
