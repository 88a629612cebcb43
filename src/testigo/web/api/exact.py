"""JSON bodies read strictly, their payloads kept as the text that was sent (spec P-06; field cases R45, R46).

A payload's digest is taken over its text, and a parser between the caller and the authority would
rewrite it (1e2, -0.0, 2**64). So what surrounds a payload is read here, and the payload itself is
checked and passed on.
"""

from __future__ import annotations

import json
from typing import NoReturn

from testigo.errors import PayloadInvalid
from testigo.rules.documents import parse
from testigo.rules.text import tidy
from testigo.settings import LIMITS

__all__ = ["read"]

KEPT = "payload"
"""The member, wherever it stands, whose value is kept as text."""

_SPACE = " \t\r\n"


def read(body: bytes) -> object:
    """The value of a body; each payload in it is a `Document`.

    Raises `PayloadInvalid` with the path of the fault for what is not UTF-8, not strict JSON, has a key twice
    in one object or nests deeper than 64 levels, and whatever `rules.documents.parse` refuses of a payload.
    """
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise PayloadInvalid("it is not UTF-8", field="body", position=error.start) from None
    reader = _Reader(text)
    try:
        value, end = reader.value(reader.past_space(0), "body", 0)
        if reader.past_space(end) != len(text):
            raise json.JSONDecodeError("Extra data", text, end)
    except json.JSONDecodeError as error:
        raise PayloadInvalid(
            f"it is not JSON: {error.msg} at line {error.lineno}, column {error.colno}",
            field="body",
            position=error.pos,
        ) from None
    return value


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")


_SCALARS = json.JSONDecoder(parse_constant=_no_constant)
_SPANS = json.JSONDecoder(parse_int=len, parse_float=len)  # only where a value ends is asked for


class _Reader:
    """One body, and where in it one is."""

    def __init__(self, text: str) -> None:
        self.text = text

    def past_space(self, at: int) -> int:
        """The place of the next character that is no white space."""
        while at < len(self.text) and self.text[at] in _SPACE:
            at += 1
        return at

    def value(self, at: int, path: str, depth: int) -> tuple[object, int]:
        """The value that begins here, within so many others, and where it ends."""
        first = self.text[at : at + 1]
        if first in ("{", "[") and depth == LIMITS.json_depth_max:
            raise PayloadInvalid("it is nested too deep", field=path, limit=f"{LIMITS.json_depth_max} levels")
        if first == "{":
            return self._object(at + 1, path, depth + 1)
        if first == "[":
            return self._array(at + 1, path, depth + 1)
        try:
            return _SCALARS.raw_decode(self.text, at)
        except json.JSONDecodeError:
            raise
        except ValueError as error:  # NaN, infinity, or an integer of more digits than are read
            raise PayloadInvalid(f"it is no JSON that is read here: {error}", field=path) from None

    def _object(self, at: int, path: str, depth: int) -> tuple[dict[str, object], int]:
        members: dict[str, object] = {}
        at = self.past_space(at)
        if self.text[at : at + 1] == "}":
            return members, at + 1
        while True:
            if self.text[at : at + 1] != '"':
                raise json.JSONDecodeError("Expecting property name enclosed in double quotes", self.text, at)
            name, at = _SCALARS.raw_decode(self.text, at)
            shown = tidy(name, bytes_max=80)
            if name in members:
                raise PayloadInvalid(f"the key {shown!r} occurs twice in one object", field=path)
            at = self.past_space(self._past(":", self.past_space(at)))
            own = f"{path}.{shown}" if path != "body" else shown
            members[name], at = self._kept(at, own) if name == KEPT else self.value(at, own, depth)
            at = self.past_space(at)
            if self.text[at : at + 1] == "}":
                return members, at + 1
            at = self.past_space(self._past(",", at))

    def _array(self, at: int, path: str, depth: int) -> tuple[list[object], int]:
        items: list[object] = []
        at = self.past_space(at)
        if self.text[at : at + 1] == "]":
            return items, at + 1
        while True:
            item, at = self.value(at, f"{path}[{len(items)}]", depth)
            items.append(item)
            at = self.past_space(at)
            if self.text[at : at + 1] == "]":
                return items, at + 1
            at = self.past_space(self._past(",", at))

    def _kept(self, at: int, path: str) -> tuple[object, int]:
        try:
            _, end = _SPANS.raw_decode(self.text, at)
        except RecursionError:
            limit = f"{LIMITS.json_depth_max} levels"
            raise PayloadInvalid("it is nested too deep", field=path, limit=limit) from None
        return parse(self.text[at:end], field=path), end

    def _past(self, mark: str, at: int) -> int:
        if self.text[at : at + 1] != mark:
            raise json.JSONDecodeError(f"Expecting {mark!r} delimiter", self.text, at)
        return at + 1
