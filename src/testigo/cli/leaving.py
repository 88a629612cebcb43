"""How a command ends that has processes of its own, as an embedded server is: told to, it takes them down in peace."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["leaving_in_order"]


@contextmanager
def leaving_in_order() -> Iterator[None]:
    """Whatever asks the command to end is heard once: then its processes and its database are taken down in peace.

    What a handler raises is lost where it strikes a destructor or a callback of the garbage collector. So while nothing
    is being taken down, whoever asks again is heard again. What was ignored before still is, as by `nohup`.
    """
    asking = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    numbers = [each for each in asking if signal.getsignal(each) is not signal.SIG_IGN]
    heard: BaseException | None = None

    def leave(number: int, _: FrameType | None) -> None:
        nonlocal heard
        if heard is not None and _is_handled(heard):
            return
        heard = KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number)
        raise heard

    before = [signal.signal(each, leave) for each in numbers]
    try:
        yield
    finally:
        for each, handler in zip(numbers, before, strict=True):
            signal.signal(each, handler)


def _is_handled(error: BaseException) -> bool:
    """Whether it is what is being handled now, or what led to that."""
    handled = sys.exception()
    while handled is not None and handled is not error:
        handled = handled.__context__
    return handled is error
