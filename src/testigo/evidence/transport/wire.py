"""What every document of the transport is: canonical JSON with exactly its members, digests and times of one form."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from testigo.errors import Invalid
from testigo.rules.evidence.finding import FINGERPRINT
from testigo.rules.identity import canonical

__all__ = ["DIGEST", "RUN", "VERSION", "Refuse", "instant", "members", "parsed", "positive", "same", "stated", "text"]

VERSION = 1
"""The `v` of every document: a change of any of their shapes needs another."""

DIGEST = FINGERPRINT
RUN = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
COUNT_MAX = 2**53 - 1

Refuse = Callable[[str, str, str], Exception]
"""Makes the refusal of a document: what check it breaks, in which field, and why."""


def parsed(body: bytes, refuse: Refuse) -> dict[str, Any]:
    """The JSON object in `body`; whether it is written canonically is not looked at."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise refuse("json", "body", "it is not JSON in UTF-8") from None
    if not isinstance(found, dict):
        raise refuse("json", "body", "a JSON object is needed")
    return found


def stated(body: bytes, refuse: Refuse) -> dict[str, Any]:
    """The JSON object in `body`, which must be its RFC 8785 form: so no key is there twice."""
    found = parsed(body, refuse)
    try:
        if canonical(found) == body:
            return found
    except Invalid:
        pass
    raise refuse("canonical", "body", "it is not in canonical form (RFC 8785)")


def members(found: dict[str, Any], names: frozenset[str], refuse: Refuse) -> None:
    """Refuse an object with a member missing, or with one that is not known; then one of another version."""
    if found.keys() != names:
        missing, unknown = sorted(names - found.keys()), sorted(str(name) for name in found.keys() - names)
        at = (missing or unknown)[0][:40]
        raise refuse("members", at, "the member is missing" if missing else "no such member is known")
    same(found["v"], VERSION, "version", "v", refuse)


def same(found: object, expected: object, check: str, field: str, refuse: Refuse) -> None:
    """Refuse a value that is not exactly the one it must be, its type included."""
    if type(found) is not type(expected) or found != expected:
        raise refuse(check, field, f"it must be {expected!r:.120}")


def positive(found: object, field: str, refuse: Refuse, *, high: int = COUNT_MAX) -> int:
    """A whole number from 0 to `high`."""
    if type(found) is not int or not 0 <= found <= high:
        raise refuse("value", field, f"a whole number from 0 to {high} is needed")
    return found


def text(found: object, field: str, refuse: Refuse, *, pattern: re.Pattern[str]) -> str:
    """Text that the pattern matches whole."""
    if not isinstance(found, str) or not pattern.fullmatch(found):
        raise refuse("value", field, "it is not written as it must be")
    return found


def instant(found: object, field: str, refuse: Refuse) -> datetime:
    """A time as `datetime.isoformat` writes it, in UTC."""
    try:
        at = datetime.fromisoformat(found) if isinstance(found, str) else None
    except ValueError:
        at = None
    if at is None or at.utcoffset() != timedelta(0) or at.isoformat() != found:
        raise refuse("value", field, "a time in UTC is needed, as 2026-01-31T12:00:00.000000+00:00")
    return at.astimezone(UTC)
