"""A walk through a JSON text, forwards, that knows where it is and holds only what it was asked to build."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import ijson

from testigo.errors import EvidenceInvalid
from testigo.evidence.streaming.source import Source
from testigo.rules.text import tidy

__all__ = ["Walk"]

DEPTH_MAX = 64
MEMBERS_MAX = 200_000
"""The most members of one object: their names are kept while it is open, to know one that comes twice."""
VALUES_MAX = 20_000
"""The most values of one part that is built."""
TEXT_CHARS_MAX = 256 * 1024
"""What is kept of one text: far more than is kept of it in the end, so that redaction sees what a cut would hide."""
CHARS_MAX = 4 * 1024**2
"""What all texts of one part may take."""

_CHUNK = 1024 * 1024
"""A parser goes through a text again with each chunk that continues it."""
_STARTS = frozenset({"start_map", "start_array"})
_ENDS = frozenset({"end_map", "end_array"})
_END: tuple[str, Any] = ("", None)


class _Open:
    """An object or array that the walk is inside of: the names seen so far, or None, and where it stands."""

    __slots__ = ("names", "place")

    def __init__(self, names: set[str] | None) -> None:
        self.names = names
        self.place: str | int | None = -1 if names is None else None


class _Room:
    """What a part that is being built may still hold."""

    __slots__ = ("chars", "values")

    def __init__(self) -> None:
        self.values = VALUES_MAX
        self.chars = CHARS_MAX


class Walk:
    """Goes through `source` from its first byte.

    Its methods raise EvidenceInvalid, naming the file and the place as a JSON pointer (RFC 6901),
    for text that is not JSON or ends too early, a name that occurs twice in one object, and nesting
    deeper than 64.

    What `members` and `elements` stand at is taken with `value`, `text`, `members` or `elements`; what is
    not taken is passed over when they go on.
    """

    def __init__(self, source: Source) -> None:
        source.rewind()
        self._name = source.name
        self._open: list[_Open] = []
        self._events = self._parsed(source)
        self._ahead: tuple[str, Any] | None = None
        self._due = False
        self.passed = 0
        """How many values the walk has been at."""

    def members(self) -> Iterator[str]:
        """The names of the object that is here; of null there are none."""
        if not self._entered("start_map", "an object"):
            return
        depth = len(self._open)
        while True:
            event, name = self._next()
            if event == "end_map":
                return
            self._due = True
            yield name
            self._come_back(depth)

    def elements(self) -> Iterator[int]:
        """The indices of the array that is here; of null there are none."""
        if not self._entered("start_array", "an array"):
            return
        depth = len(self._open)
        index = 0
        while self._peek() != "end_array":
            self._due = True
            yield index
            self._come_back(depth)
            index += 1
        self._next()

    def value(self) -> Any:
        """What is here, built: at most 20,000 values, of each text 262,144 characters, numbers as int or float."""
        event, value = self._next()
        return self._built(event, value, _Room())

    def finish(self) -> None:
        """Read to the end of the text, of which nothing but white space may be left."""
        while self._open:
            self._next()
        if self._peek():
            raise self.refused("there is more than one value")

    @property
    def pointer(self) -> str:
        """Where the walk stands, as a JSON pointer; of the whole text it is empty."""
        places = [each.place for each in self._open if each.place is not None]
        if self._due and isinstance(places[-1], int):  # the element that is next has not been counted yet
            places[-1] += 1
        return "".join("/" + str(place)[:200].replace("~", "~0").replace("/", "~1") for place in places)

    def refused(
        self, problem: str, *, at: str | None = None, limit: str | None = None, remedy: str | None = None
    ) -> EvidenceInvalid:
        """The error that names this file, and this place or the one given as `at`."""
        place = tidy(self.pointer if at is None else at, bytes_max=1024)
        where = f"{self._name}, at {place}" if place else self._name
        return EvidenceInvalid(f"{where}: {problem}", field=place or None, limit=limit, remedy=remedy, file=self._name)

    def _entered(self, event: str, what: str) -> bool:
        found, _ = self._next()
        if found != event and found != "null":
            raise self.refused(f"{what} is needed")
        return found == event

    def _come_back(self, depth: int) -> None:
        """Pass over what was not taken of the member or element that the walk has been to."""
        if self._due:
            self._next()
        if len(self._open) > depth and self._ahead is not None:
            self._next()
        if len(self._open) > depth:
            self._pass_over(depth)

    def _pass_over(self, depth: int) -> None:
        """As `_next` until no more than `depth` is open; in one loop, since most of a report goes through here."""
        opened = self._open
        within = opened[-1]
        for event, value in self._events:
            if event == "map_key":
                names = within.names
                if names is None or value in names or len(names) == MEMBERS_MAX:
                    self._name_next(value)
                else:
                    within.place = value
                    names.add(value)
                continue
            if event in _ENDS:
                opened.pop()
                if len(opened) == depth:
                    return
                within = opened[-1]
                continue
            self.passed += 1
            if within.names is None:
                within.place += 1  # type: ignore[operator]
            if event in _STARTS:
                within = self._entering(event)
        raise self.refused("the text ends too early")

    def _peek(self) -> str:
        """The kind of the next event; empty at the end."""
        if self._ahead is None:
            self._ahead = next(self._events, _END)
        return self._ahead[0]

    def _next(self) -> tuple[str, Any]:
        """The next event; what it opens, names and closes is noted."""
        ahead = self._ahead
        if ahead is None:
            ahead = next(self._events, _END)
        else:
            self._ahead = None
        self._due = False
        event, value = ahead
        if event == "map_key":
            self._name_next(value)
        elif event in _ENDS:
            self._open.pop()
        elif event:
            self.passed += 1
            within = self._open[-1] if self._open else None
            if within is not None and within.names is None:
                within.place += 1  # type: ignore[operator]
            if event in _STARTS:
                self._entering(event)
        else:
            raise self.refused("the text ends too early")
        return ahead

    def _name_next(self, name: str) -> None:
        within = self._open[-1]
        names = within.names
        assert names is not None
        within.place = name
        if name in names:
            raise self.refused("the name occurs twice in one object")
        if len(names) == MEMBERS_MAX:
            raise self.refused("the object has too many members", limit=f"{MEMBERS_MAX} members")
        names.add(name)

    def _entering(self, event: str) -> _Open:
        if len(self._open) == DEPTH_MAX:
            raise self.refused("it is nested too deep", limit=f"{DEPTH_MAX} levels")
        within = _Open(set() if event == "start_map" else None)
        self._open.append(within)
        return within

    def _parsed(self, source: Source) -> Iterator[tuple[str, Any]]:
        """Every event of the text, as the parser makes them."""
        try:
            yield from ijson.basic_parse(source, buf_size=_CHUNK)
        except ijson.JSONError as error:
            # Its first line says what is wrong; the others show the text, which may hold a secret.
            raise self.refused(f"it is not JSON: {_first_line(error)}") from None
        except UnicodeError:
            raise self.refused("it is not JSON: it holds bytes that are not UTF-8") from None
        except (ValueError, ArithmeticError):
            raise self.refused("it holds a number that cannot be read") from None

    def _built(self, event: str, value: Any, room: _Room) -> Any:
        room.values -= 1
        if room.values < 0:
            raise self.refused("the part holds too many values", limit=f"{VALUES_MAX} values")
        if event == "start_map":
            members: dict[str, Any] = {}
            while (found := self._next())[0] == "map_key":
                members[self._kept(found[1], room)] = self._built(*self._next(), room)
            return members
        if event == "start_array":
            elements: list[Any] = []
            while (found := self._next())[0] != "end_array":
                elements.append(self._built(*found, room))
            return elements
        if event == "string":
            return self._kept(value, room)
        return float(value) if isinstance(value, Decimal) else value

    def _kept(self, text: str, room: _Room) -> str:
        """As much of a text as is kept."""
        kept = text[:TEXT_CHARS_MAX]
        room.chars -= len(kept)
        if room.chars < 0:
            raise self.refused("the part holds too much text", limit=f"{CHARS_MAX} characters")
        return kept


def _first_line(error: Exception) -> str:
    said = error.args[0] if error.args else ""
    text = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
    return text.partition("\n")[0]
