"""JSON documents kept as exact text (spec P-06; field cases R45, R46).

A payload, an output and a checkpoint are stored as the text that was made or checked here, and
their digests are taken over it. jsonb would rewrite it (1e2, -0.0, duplicate keys), and what
`json` writes by default is not always JSON (NaN) nor storable (NUL, lone surrogates).
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, NewType

from testigo.errors import PayloadInvalid, PayloadTooLarge
from testigo.rules.faults import Duplicated, Fault, find
from testigo.settings import LIMITS

__all__ = ["Document", "decode", "encode", "parse"]

Document = NewType("Document", str)
"""JSON text that is strict, storable and at most 256 KiB as UTF-8."""

_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":"))
_TEXT = frozenset({str})
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
    except (TypeError, ValueError, RecursionError) as error:  # ValueError: also NaN, surrogates, 4301 digits
        _refuse(find(value), field)
        text = _written(value, field, error)
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
        value = _loaded(text, object_pairs_hook=_object)
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


def decode(document: Document) -> Any:
    """The value that a document holds: dict, list, str, int, float, bool or None.

    Integers are exact, however long: Python's limit on the digits of an int guards against
    unbounded text, and a document is bounded. Floats are the nearest doubles to what the text says.
    """
    return _loaded(document)


def _loaded(text: str, **hooks: Any) -> Any:
    try:
        return json.loads(text, **hooks)
    except json.JSONDecodeError:
        raise
    except ValueError:  # an integer of more digits than Python converts by itself
        return json.loads(text, parse_int=_exact, **hooks)


def _exact(digits: str) -> int:
    return int(Decimal(digits))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    return members if len(members) == len(pairs) else Duplicated(pairs)


def _plain(value: object, levels: int) -> bool:
    """Whether all keys are exactly str and nothing nests deeper than `levels`; at the speed of C for flat values."""
    if type(value) in _SCALARS:
        return True
    if not levels:
        return False
    if isinstance(value, dict):
        if not _TEXT.issuperset(map(type, value)):
            return False
        items: Any = value.values()
    else:
        items = value
    return _SCALARS.issuperset(map(type, items)) or all(_plain(item, levels - 1) for item in items)


def _written(value: object, field: str, error: Exception) -> str:
    """What the C encoder would not write though nothing is wrong with it: integers beyond Python's limit of digits."""
    if isinstance(value, dict):
        members = (f"{_ENCODER.encode(key)}:{_written(item, field, error)}" for key, item in value.items())
        return "{" + ",".join(members) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(_written(item, field, error) for item in value) + "]"
    if isinstance(value, int) and not isinstance(value, bool):
        if value.bit_length() > LIMITS.inline_bytes_max * 4:
            raise _too_large(value.bit_length() // 4, field)
        return str(Decimal(value))
    return _ENCODER.encode(value)


def _refuse(fault: Fault | None, field: str) -> None:
    if fault is not None:
        raise PayloadInvalid(fault.problem, field=field + fault.path, limit=fault.limit)


def _too_large(size: int, field: str) -> PayloadTooLarge:
    return PayloadTooLarge(
        f"the document takes {size} bytes or more", field=field, limit=f"{LIMITS.inline_bytes_max} bytes of UTF-8"
    )
