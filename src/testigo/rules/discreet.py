"""The choke point for what handlers and people say in words: kept, but without what looks like a secret (spec D-14).

A driver puts the address with its password into its error, a handler logs the header that it sent, and whoever
cancels quotes the line: all of it would be shown on pages and kept for weeks.
"""

from __future__ import annotations

from testigo.rules.evidence.redaction import redact
from testigo.rules.text import tidy
from testigo.settings import LIMITS

__all__ = ["discreet"]


def discreet(value: object, *, bytes_max: int = LIMITS.text_bytes_max) -> str:
    """Text as `tidy` makes it, with `[redacted:KIND]` in the place of each secret that its form or its name tells of.

    It never fails, and text that holds none comes back as `tidy` leaves it. What does not fit is cut first: of a
    secret that the cut parts, too few letters may be left to tell what they are.
    """
    text = tidy(value, bytes_max=bytes_max)
    clean = redact(text)
    return text if clean == text else tidy(clean, bytes_max=bytes_max)
