"""Checks of single values from outside, each of which refuses by field and limit.

A name, a key, a moment, a span of time, a whole number, an id: everything that testigo stores to
find or order things by is checked here once, before the store sees it (issue *Bad input*; field
cases R45, R46). Text that is only kept for people is made fit instead of refused: see `text`.
Every function returns the checked value and raises `Invalid`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import TypeVar
from uuid import UUID

from testigo.errors import Invalid
from testigo.settings import LIMITS

__all__ = [
    "amount",
    "are_ids",
    "cost",
    "fence",
    "flag",
    "identifier",
    "is_id",
    "key",
    "member",
    "moment",
    "must_be_id",
    "name",
    "seconds",
    "sequence",
    "trace",
    "whole",
]

Member = TypeVar("Member", bound=StrEnum)

INTEGER_MAX = 2**31 - 1
"""The largest epoch, revision, ordinal or number of a save: they are kept in four bytes."""
BIGINT_MAX = 2**63 - 1
"""The largest beat, and number of a session's command: they are kept in eight."""

_UNFIT = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_UNSEEN = re.compile("[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]")
"""What nobody sees, and what turns a line around: by these two names look alike, or one as what it is not."""
_JOINERS = "\u200c\u200d"
"""Nobody sees these either, but scripts and emoji need them between two characters."""
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ID_CHARS = 36
_ID_HYPHENS = (8, 13, 18, 23)
_WITHOUT_HEX = dict.fromkeys(map(ord, "0123456789abcdef"))
_TRACE = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-[!-~]+)?")
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def name(value: object, *, field: str) -> str:
    """A queue, kind, client, agent, actor, stream or tag: one line of 1 to 200 characters.

    Refused: what is not a string, is empty, is too long, holds a control character, a line
    separator or a lone surrogate, or begins or ends with white space; and, of what people tell things
    apart by, what nobody sees, and what turns a line around.
    """
    text = _line(value, field)
    if found := _UNSEEN.search(text):
        raise Invalid(f"it holds U+{ord(found[0]):04X} at {found.start()}, which nobody sees", field=field)
    if text != text.strip(_JOINERS):
        raise Invalid("it begins or ends with a joiner, which nobody sees", field=field)
    if len(text) > LIMITS.name_chars_max:
        raise Invalid(f"it is {len(text)} characters long", field=field, limit=f"{LIMITS.name_chars_max} characters")
    return text


def key(value: object, *, field: str) -> str:
    """A submission key: as a name, but of 1 to 512 bytes of UTF-8 (it lives in an index; spec D-01)."""
    text = _line(value, field)
    size = len(text.encode())
    if size > LIMITS.key_bytes_max:
        raise Invalid(
            f"it is {size} bytes long as UTF-8",
            field=field,
            limit=f"{LIMITS.key_bytes_max} bytes",
            remedy="Use a digest of the long key as the key.",
        )
    return text


def moment(value: object, *, field: str) -> datetime:
    """A point in time, returned in UTC.

    Refused: what is not a datetime, one without a time zone (it names no point in time), and one
    outside the years 1970 to 9998 of UTC, which leaves a year of room for sums with spans of time.
    """
    if not isinstance(value, datetime):
        raise Invalid(f"a datetime is needed, not {_kind(value)}", field=field)
    try:
        offset = value.utcoffset()
    except (NotImplementedError, OverflowError, TypeError, ValueError):  # a zone that knows no offset
        offset = None
    if offset is None:
        raise Invalid(
            "the datetime has no time zone, so it names no point in time",
            field=field,
            remedy="Use an aware datetime, such as datetime.now(timezone.utc).",
        )
    try:
        utc = value.astimezone(UTC)
    except OverflowError:
        utc = None
    if utc is None or not 1970 <= utc.year <= 9998:
        raise Invalid("the datetime is out of range", field=field, limit="the years 1970 to 9998, in UTC")
    return utc


def seconds(value: object, *, field: str, zero: bool = True) -> float:
    """A span of time in seconds: finite, not negative (with `zero=False`: above zero), at most 366 days."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Invalid(f"a number of seconds is needed, not {_kind(value)}", field=field)
    if not 0 <= value <= LIMITS.seconds_max or (value == 0 and not zero):
        least = "0" if zero else "more than 0"
        limit = f"{least} to {LIMITS.seconds_max:.0f}"
        raise Invalid("the number of seconds is out of range", field=field, limit=limit)
    return float(value) + 0.0  # -0.0 becomes 0.0


def cost(value: object, *, field: str) -> None:
    """What a run cost, or the limit of that: a finite number from 0 to 1e15."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Invalid(f"a number is needed, not {_kind(value)}", field=field)
    if not 0 <= value <= LIMITS.cost_max:
        raise Invalid("the cost is out of range", field=field, limit=f"0 to {LIMITS.cost_max:g}")


def amount(value: object, *, field: str) -> None:
    """How much of something there is, in whatever unit: a finite number from 0 to 1e18."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Invalid(f"a number is needed, not {_kind(value)}", field=field)
    if not 0 <= value <= LIMITS.amount_max:
        raise Invalid("the number is out of range", field=field, limit=f"0 to {LIMITS.amount_max:g}")


def flag(value: object, *, field: str) -> None:
    """True or False, and nothing that passes for one of them."""
    if not isinstance(value, bool):
        raise Invalid(f"true or false is needed, not {_kind(value)}", field=field)


def whole(value: object, *, field: str, low: int, high: int) -> int:
    """A whole number from `low` to `high`, both included; a bool and a float are not one."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise Invalid(f"a whole number is needed, not {_kind(value)}", field=field)
    if not low <= value <= high:
        raise Invalid("the number is out of range", field=field, limit=f"{low} to {high}")
    return int(value)


def identifier(value: object, *, field: str) -> UUID:
    """A UUID, given as one or as its text of 36 characters."""
    if isinstance(value, UUID):
        return value
    if isinstance(value, str) and _UUID.fullmatch(value):
        return UUID(value)
    raise Invalid(_no_id(value), field=field, limit="36 characters, 8-4-4-4-12")


def is_id(value: object) -> bool:
    """Whether this is an id as testigo writes it: the text of a UUID in lower case."""
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def are_ids(values: Sequence[object]) -> bool:
    """Whether each of these is an id as testigo writes it: of a batch that is told at a quarter of the time."""
    texts = [value for value in values if type(value) is str and len(value) == _ID_CHARS]
    together, hyphens = "".join(texts), "-" * len(values)
    return (
        len(texts) == len(values)
        and together.translate(_WITHOUT_HEX) == hyphens * len(_ID_HYPHENS)
        and all(together[at::_ID_CHARS] == hyphens for at in _ID_HYPHENS)
    )


def must_be_id(value: object, *, field: str) -> None:
    """An id as testigo writes it, by which rows and answers are matched."""
    if not is_id(value):
        raise Invalid(_no_id(value), field=field, limit="36 characters, 8-4-4-4-12, lower case")


def fence(job_id: object, lease_id: object, epoch: object, *, field: str) -> None:
    """What a holder names its run by: the job's id, the lease's, and the epoch (spec D-03)."""
    must_be_id(job_id, field=f"{field}.job_id")
    must_be_id(lease_id, field=f"{field}.lease_id")
    whole(epoch, field=f"{field}.epoch", low=0, high=INTEGER_MAX)


def sequence(value: object, *, field: str, most: int) -> None:
    """Several values, as a tuple or a list; one text is not several."""
    if not isinstance(value, tuple | list):
        raise Invalid(f"a tuple is needed, not {_kind(value)}", field=field)
    if len(value) > most:
        raise Invalid(f"it holds {len(value)} values", field=field, limit=f"{most} values")


def trace(value: object, *, field: str) -> None:
    """A W3C traceparent, such as `00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01`, of at most 512 bytes."""
    if not isinstance(value, str) or len(value) > LIMITS.trace_bytes_max or not _TRACE.fullmatch(value):
        raise Invalid(
            f"a W3C traceparent is needed, not {_kind(value)}"
            if not isinstance(value, str)
            else "it is no traceparent",
            field=field,
            limit=f"version-trace-span-flags in lower-case hexadecimal, {LIMITS.trace_bytes_max} bytes",
        )


def member(value: object, among: type[Member], *, field: str) -> Member:
    """One of a closed set of words."""
    try:
        return among(str(value))
    except ValueError:
        words = ", ".join(among)
        raise Invalid(f"{str(value)[:40]!r} is none of the words known here", field=field, limit=words) from None


def _line(value: object, field: str) -> str:
    """One line of fit text, neither empty nor bordered by white space; of any length."""
    if not isinstance(value, str):
        raise Invalid(f"text is needed, not {_kind(value)}", field=field)
    if not value:
        raise Invalid("it is empty", field=field, limit="at least 1 character")
    if found := _UNFIT.search(value):
        raise Invalid(f"it holds the control character U+{ord(found[0]):04X} at {found.start()}", field=field)
    if found := _SURROGATE.search(value):
        raise Invalid(f"it holds the lone surrogate U+{ord(found[0]):04X} at {found.start()}", field=field)
    if value != value.strip():
        raise Invalid("it begins or ends with white space", field=field)
    return str.__str__(value)


def _no_id(value: object) -> str:
    return f"{value[:40]!r} is no id" if isinstance(value, str) else f"an id is needed, not {_kind(value)}"


def _kind(value: object) -> str:
    return "nothing" if value is None else f"a value of type {type(value).__name__}"
