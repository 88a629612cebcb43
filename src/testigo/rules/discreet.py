"""The choke point for what handlers and people say in words: kept, but without what looks like a secret (spec D-14).

A driver puts the address with its password into its error, a handler logs the header that it sent, and whoever
cancels quotes the line: all of it would be shown on pages and kept for weeks.
"""

from __future__ import annotations

import sys

from testigo.rules.evidence.redaction import redact
from testigo.rules.text import tidy
from testigo.settings import LIMITS

__all__ = ["discreet", "discreet_end"]

_BEYOND_CHARS = 4 * 1024
"""So far beyond a cut is looked for the rest of a secret: of one that is cut, what is left may not tell what it is."""


def discreet(value: object, *, bytes_max: int = LIMITS.text_bytes_max) -> str:
    """Text as `tidy` makes it, with `[redacted:KIND]` in the place of each secret that its form or its name tells of.

    It never fails, and text that holds none comes back as `tidy` leaves it. What does not fit is cut last, so that no
    part of a secret is left where it is cut.
    """
    whole = tidy(value, bytes_max=sys.maxsize)
    seen = whole[: bytes_max + _BEYOND_CHARS]
    clean = redact(seen)
    if clean == seen:
        return tidy(whole, bytes_max=bytes_max)
    if len(seen) == len(whole):
        return tidy(clean, bytes_max=bytes_max)
    kept, unsure = clean[:-_BEYOND_CHARS], clean[-_BEYOND_CHARS:]
    return tidy(kept, bytes_max=bytes_max, more_bytes=len((unsure + whole[len(seen) :]).encode()))


def discreet_end(text: str, *, bytes_max: int = LIMITS.text_bytes_max) -> str:
    """The same of the last lines of a text that is too long, for a traceback tells at its end."""
    whole = tidy(text, bytes_max=sys.maxsize)
    if len(whole) > bytes_max:
        seen = whole[-(bytes_max + _BEYOND_CHARS) :]
        clean = redact(seen)
        sure = clean if len(seen) == len(whole) else clean[_BEYOND_CHARS:]
        end = sure[-bytes_max:]
        whole = end.partition("\n")[2] or end
    return discreet(whole, bytes_max=bytes_max)
