"""JSON documents kept as exact text (spec P-06; field cases R45, R46).

A payload, an output and a checkpoint are stored as the text that was made or checked here, and
their digests are taken over it. jsonb would rewrite it (1e2, -0.0, duplicate keys), and what
`json` writes by default is not always JSON (NaN) nor storable (NUL, lone surrogates).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from typing import Any

from testigo.errors import PayloadInvalid, PayloadTooLarge
from testigo.rules.faults import Duplicated, Fault, find
from testigo.settings import LIMITS

__all__ = ["Document", "decode", "encode", "must_be_document", "parse"]


class Document(str):
    """JSON text that is strict, storable and at most 256 KiB as UTF-8; made by `encode` and `parse` alone."""

    __slots__ = ()


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":"))
DIGITS_ALWAYS = sys.int_info.str_digits_check_threshold
"""Digits of an integer that Python converts whatever its configured limit."""
_SCALARS = frozenset({str, int, float, bool, type(None)})


def encode(value: object, *, field: str = "payload") -> Document:
    """`value` as compact JSON, keys in their order, every number exact (2**64, -0.0, 10**5000).

    Takes None, bool, int, float, str, list, tuple and dict with str keys, nested at most 64 deep.
    Raises `PayloadInvalid` with the path of the fault (`payload.items[3].name`) for anything else,
    NaN, infinity, NUL and lone surrogates, and `PayloadTooLarge` above 256 KiB of UTF-8.
    """
    try:
        text = _ENCODER.encode(value)
        size = len(text) if text.isascii() else len(text.encode())
    except (TypeError, ValueError, RecursionError):  # a fault, or an integer of more digits than str() writes
        _refuse(find(value), field)
        text = _written(value, field)
        size = len(text.encode())
    if size > LIMITS.inline_bytes_max:
        raise _too_large(size, field)
    if "\\u0000" in text or not _plain(value, LIMITS.json_depth_max):
        _refuse(find(value), field)
    return Document(text)


def parse(text: str, *, field: str = "payload") -> Document:
    """Foreign JSON text, checked and returned unchanged.

    Raises as `encode` does, and `PayloadInvalid` also for text that is not JSON (with the position),
    for a key that occurs twice in one object, for an escaped NUL or lone surrogate and for a number
    beyond the range of a double (1e999), which would be read as infinity.
    """
    if not isinstance(text, str):
        raise PayloadInvalid(f"JSON text is needed, not a value of type {type(text).__name__}", field=field)
    if len(text) > LIMITS.inline_bytes_max:
        raise _too_large(len(text), field)
    try:
        value = _loaded(text, parse_long=_unread, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        raise PayloadInvalid(
            f"it is not JSON: {error.msg} at line {error.lineno}, column {error.colno}",
            field=field,
            position=error.pos,
        ) from None
    except RecursionError:
        raise PayloadInvalid("it is nested too deep", field=field, limit=f"{LIMITS.json_depth_max} levels") from None
    _refuse(find(value), field)
    size = len(text.encode())
    if size > LIMITS.inline_bytes_max:
        raise _too_large(size, field)
    return Document(text)


def must_be_document(value: object, *, field: str) -> None:
    """Refuse what is no JSON document: text from elsewhere is parsed, and must pass (see `parse`)."""
    if not isinstance(value, Document):
        parse(value, field=field)  # type: ignore[arg-type]


def decode(document: Document) -> Any:
    """The value that a document holds: dict, list, str, int, float, bool or None.

    Integers are exact, however long: Python's limit on the digits of an int guards against text
    without bounds, and a document has one. Floats are the doubles nearest to what the text says.
    """
    return _loaded(document, parse_long=_number)


def _loaded(text: str, *, parse_long: Callable[[str], int], **hooks: Any) -> Any:
    """`json.loads`, with a reader of integers for text in which one exceeds Python's limit of digits."""
    try:
        return json.loads(text, **hooks)
    except json.JSONDecodeError:
        raise
    except ValueError:
        return json.loads(text, parse_int=parse_long, **hooks)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    return members if len(members) == len(pairs) else Duplicated(pairs)


def _unread(_: str) -> int:
    """Any integer is fit, so a check need not spend the time of reading a long one."""
    return 0


def _number(digits: str) -> int:
    """The integer that digits write, halved until each part is within the limit that nobody can lower."""
    if len(digits) <= DIGITS_ALWAYS:
        return int(digits)
    if digits.startswith("-"):
        return -_number(digits[1:])
    low = len(digits) // 2
    scale: int = 10**low
    return _number(digits[:-low]) * scale + _number(digits[-low:])


def _digits(number: int) -> str:
    """The digits of an integer of any length: `_number` the other way round."""
    if number < 0:
        return "-" + _digits(-number)
    if number < 10**DIGITS_ALWAYS:
        return str(number)
    low = number.bit_length() * 3 // 20
    above, below = divmod(number, 10**low)
    return _digits(above) + _digits(below).zfill(low)


def _plain(value: object, levels: int) -> bool:
    """Whether every key is a plain str and nothing nests deeper than `levels`: what the text cannot show."""
    items: Iterable[object]
    if isinstance(value, dict):
        for key in value:
            if type(key) is not str:
                return False
        items = value.values()
    elif isinstance(value, list | tuple):
        items = value
    else:
        return True
    if not levels:
        return False
    for item in items:
        if type(item) in _SCALARS:
            continue
        if not _plain(item, levels - 1):
            return False
    return True


def _written(value: object, field: str) -> str:
    """JSON text of a value without fault, integers of any length included."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{_ENCODER.encode(key)}:{_written(item, field)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(_written(item, field) for item in value) + "]"
    if isinstance(value, int) and not isinstance(value, bool):
        least = value.bit_length() * 3 // 10
        if least > LIMITS.inline_bytes_max:
            raise _too_large(least, field)
        return _digits(value)
    return _ENCODER.encode(value)


def _refuse(fault: Fault | None, field: str) -> None:
    if fault is not None:
        raise PayloadInvalid(fault.problem, field=field + fault.path, limit=fault.limit)


def _too_large(size: int, field: str) -> PayloadTooLarge:
    return PayloadTooLarge(
        f"the document takes at least {size} bytes", field=field, limit=f"{LIMITS.inline_bytes_max} bytes of UTF-8"
    )
