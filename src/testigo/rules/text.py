"""The one choke point for text from outside that is kept only for people.

Errors, reasons, notes and log lines come from handlers, drivers and operating systems. They are
made fit to be stored and never refused, for recording a failure must not fail (spec model.md,
*Errors*; field cases R45, R46). Text that names something is refused instead: see `fields`.
"""

from __future__ import annotations

import re

from testigo.settings import LIMITS

__all__ = ["tidy"]

REPLACEMENT = "\ufffd"

_UNFIT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
"""Controls other than tab and line feed, and surrogates: a terminal obeys them, PostgreSQL refuses them."""


def tidy(value: object, *, bytes_max: int = LIMITS.text_bytes_max, more_bytes: int = 0) -> str:
    """Text that any store, terminal and page can take, made from whatever `value` is; it never fails.

    A string is taken for its characters and anything else for its `str()`; where that raises, the
    text says so. CR LF becomes LF; a NUL, any other control but tab and line feed, and a lone
    surrogate become U+FFFD. What does not fit into `bytes_max` bytes of UTF-8 is cut between two
    characters, and a marker in the place of the rest says how many bytes are gone; the marker counts
    towards `bytes_max`, and counts `more_bytes` that followed and are not even given. Text that is fit
    already comes back as it is. Only a KeyboardInterrupt passes through (field cases R45, R46).
    """
    fit = _UNFIT.sub(REPLACEMENT, _words(value).replace("\r\n", "\n"))
    if not more_bytes and len(fit) * 4 <= bytes_max:
        return fit
    encoded = fit.encode()
    return fit if not more_bytes and len(encoded) <= bytes_max else _cut(encoded, bytes_max, more_bytes)


def _words(value: object) -> str:
    """The characters of a string, the `str()` of anything else, as a plain `str`."""
    try:
        return str.__str__(value) if isinstance(value, str) else str.__str__(str(value))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever a foreign __str__ raises, the failure is recorded
        return f"<{_type_name(value)} whose str() raised {_type_name(error)}>"


def _type_name(value: object) -> str:
    """The name that the class statement gave, past any metaclass that answers for `__name__`."""
    name = type.__dict__["__name__"].__get__(type(value))
    return str(name)


def _cut(encoded: bytes, bytes_max: int, more_bytes: int) -> str:
    """As many whole characters as fit beside the marker that counts the bytes of the others."""
    room = min(bytes_max, len(encoded))
    while True:
        kept = encoded[:room].decode(errors="ignore")
        marker = f"… [{len(encoded) - len(kept.encode()) + more_bytes} bytes cut]"
        room_left = bytes_max - len(marker.encode())
        if room_left >= room:
            return kept + marker
        if room_left <= 0:
            return encoded[:bytes_max].decode(errors="ignore")
        room = room_left
