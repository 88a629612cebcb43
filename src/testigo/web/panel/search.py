"""What somebody typed into the search of jobs: parsed, shown back, or refused (panel.md *Query rules*).

A query is words of the form `qualifier:value`; all of them must hold. What is not said is not guessed:
a qualifier that is not known, a date that is none, and a bare word are refused, with what would have been
right. Without a word about time a query looks at the newest day, and says so.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from testigo.authority.actions import JobId
from testigo.authority.read.filters import EVERY, Filter
from testigo.errors import Invalid
from testigo.rules import fields
from testigo.rules.states import PHASES, State

__all__ = ["QUALIFIERS", "Chip", "Query", "Term", "parse", "quoted"]

WINDOW = timedelta(hours=24)
"""How far back a query looks that says nothing about time."""

QUALIFIERS: Mapping[str, str] = {
    "id": "an id, or how it begins",
    "kind": "the kind of work",
    "queue": "the queue",
    "state": "one state or several: ready,running; also failed, queued, completed",
    "tag": "a tag",
    "client": "who submitted it",
    "worker": "the worker that holds it",
    "error": "the code of its last failure",
    "cause": "a cause of failures, as the page of failed jobs names it",
    "payload.PATH": "a member of the payload, as in payload.order.id:881",
    "after": "submitted since: 2h, 3d, 2026-11-30, 2026-11-30T09:15, or any",
    "before": "submitted until: the same",
    "attempt>": "more failures than so many",
}
"""Every qualifier, with what it asks for."""

TEXT_CHARS_MAX = 1_000
TERMS_MAX = 20
ID_CHARS_MIN = 4

_TOKEN = re.compile(r'\s*(?:(?P<name>[^\s":<>=]+)(?P<mark>:|>=|>))?(?P<value>"(?:\\.|[^"\\])*"(?=\s|$)|[^\s"]\S*)?')
_ESCAPED = re.compile(r"\\(.)")
_BARE = re.compile(r'[^\s"\\][^\s]*')
_SPAN = re.compile(r"(\d{1,6})(m|h|d|w)")
_SECONDS = {"m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_ID_START = re.compile(r"[0-9a-f]{1,8}(-[0-9a-f]{0,4}){0,3}(-[0-9a-f]{0,12})?")
_MEMBER = re.compile(r"[^\W\d][\w$@-]*|\d{1,6}")
_CAUSE = re.compile(r"[0-9a-f]{16}")
_ANY = "any"
_TIMES = frozenset({"after", "before"})


class Term(NamedTuple):
    """One qualifier of a query and its value, as they were given."""

    name: str
    mark: str
    value: str

    def __str__(self) -> str:
        return f"{self.name}{self.mark}{quoted(self.value)}"


class Chip(NamedTuple):
    """One part of a query as it was understood: in words, and the query that is left when it is taken away."""

    text: str
    without: str
    is_default: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """A search of jobs, understood: its words as they were given, and the `filter` that they are.

    `now` is when it was read, from which spans of time count back. `default_window` says that it has no
    word about time and names no job, so that its filter begins a day ago.
    """

    now: datetime
    terms: tuple[Term, ...] = ()
    filter: Filter = EVERY
    default_window: bool = False

    def __str__(self) -> str:
        return " ".join(map(str, self.terms))

    @property
    def job_id(self) -> JobId | None:
        """The job that is meant, where the query is one whole id and nothing else."""
        start = self.filter.id_prefix
        return JobId(start) if start and len(self.terms) == 1 and fields.is_id(start) else None

    @property
    def chips(self) -> tuple[Chip, ...]:
        """The query in its parts, each of which can be taken away."""
        parts = [Chip(str(term), self._without(term)) for term in self.terms]
        if self.default_window:
            parts.append(Chip("after:24h", self.but(f"after:{_ANY}"), is_default=True))
        return tuple(parts)

    @property
    def fixed(self) -> str:
        """This query with its times written out and ended now: whatever is submitted later is not in it."""
        kept = [term for term in self.terms if term.name not in _TIMES]
        ends = {"after": self.filter.created_after, "before": self.filter.created_before or self.now}
        times = [Term(name, ":", at.isoformat(timespec="milliseconds") if at else _ANY) for name, at in ends.items()]
        return " ".join(map(str, [*kept, *times]))

    def but(self, text: str) -> str:
        """This query with another word, which takes the place of those with the same qualifier."""
        name = text.partition(":")[0]
        return " ".join([*(str(term) for term in self.terms if term.name != name), text])

    def _without(self, gone: Term) -> str:
        return " ".join(str(term) for term in self.terms if term != gone)


def parse(text: str, *, now: datetime) -> Query:
    """The query that this text is. Raises `Invalid`, naming the qualifier and what it would take.

    Times do not count towards its limits: whatever can be asked for can be fixed, and all that match be chosen.
    """
    if len(text) > 2 * TEXT_CHARS_MAX:
        raise _too_long()
    query = Query(now)
    wanted: dict[str, Any] = {}
    for term in _terms(text):
        if term in query.terms:
            continue
        wanted |= _understood(query, term, wanted)
        query = replace(query, terms=(*query.terms, term))
        counted = [str(term) for term in query.terms if term.name not in _TIMES]
        if len(counted) > TERMS_MAX:
            raise Invalid("The search has too many words.", field="q", limit=f"{TERMS_MAX} words")
        if len(" ".join(counted)) > TEXT_CHARS_MAX:
            raise _too_long()
    default_window = not {term.name for term in query.terms} & {"id", *_TIMES}
    if default_window:
        wanted["created_after"] = now - WINDOW
    after, before = wanted.get("created_after"), wanted.get("created_before")
    if after and before and after >= before:
        raise Invalid("No job is submitted after its end and before its beginning.", field="before", limit=str(query))
    return replace(query, filter=Filter(**wanted), default_window=default_window)


def quoted(value: str) -> str:
    """A value as it is written in a query."""
    if _BARE.fullmatch(value):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _terms(text: str) -> Iterator[Term]:
    at = 0
    while text[at:].strip():
        found = _TOKEN.match(text, at)
        if found is None or found.end() == at or found["value"] is None:
            raise _unreadable(text[at:].strip(), found["name"] if found else None)
        at = found.end()
        yield _term(found["name"], found["mark"], found["value"])


def _term(name: str | None, mark: str | None, written: str) -> Term:
    value = _ESCAPED.sub(r"\1", written[1:-1]) if written.startswith('"') else written
    if name is None or mark is None:
        if fields.is_id(value.lower()):
            return Term("id", ":", value.lower())
        raise _bare(value)
    known = name if name.startswith("payload.") else name.lower()
    if known == "attempt":
        if mark == ":":
            raise Invalid("Failures are compared.", field=name, remedy=f"Write attempt>{value}.")
        return Term(known, mark, value)
    if not (known.startswith("payload.") or (known in _QUALIFIED and known != "payload")):
        raise _unknown(name)
    if mark != ":":
        raise Invalid("Only failures are compared.", field=name, remedy=f"Write {name}:{value}.")
    return Term(known, mark, value)


def _understood(query: Query, term: Term, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """What of a filter this term is."""
    name = "payload" if term.name.startswith("payload.") else term.name
    if name != "state" and any(earlier.name.partition(".")[0] == name for earlier in query.terms):
        raise Invalid("It is asked for twice, and only one can be.", field=name, remedy="Leave one of them out.")
    if name == "state":
        return {"states": _all_states(term, wanted.get("states", ()))}
    return _MEANINGS[name](query, term)


def _all_states(term: Term, before: tuple[State, ...]) -> tuple[State, ...]:
    asked = [state for word in term.value.split(",") for state in _states(word.strip())]
    return tuple(state for state in State if state in asked or state in before)


def _states(word: str) -> tuple[State, ...]:
    if word in set(State):
        return (State(word),)
    phase = tuple(state for state, phase in PHASES.items() if phase == word)
    if not phase:
        words = [*State, "queued", "completed", "failed"]
        raise Invalid(f"{word[:40]!r} is no state.", field="state", limit=", ".join(words), remedy=_near(word, words))
    return phase


def _id(_query: Query, term: Term) -> dict[str, Any]:
    start = term.value.lower()
    if not (fields.is_id(start) or (len(start) >= ID_CHARS_MIN and _ID_START.fullmatch(start))):
        raise Invalid(
            "An id is written in hexadecimal digits.", field="id", limit=f"its first {ID_CHARS_MIN} characters or more"
        )
    return {"id_prefix": start}


def _named(of: str) -> Callable[[Query, Term], dict[str, Any]]:
    def meaning(_query: Query, term: Term) -> dict[str, Any]:
        return {of: fields.name(term.value, field=of)}

    return meaning


def _cause(_query: Query, term: Term) -> dict[str, Any]:
    if not _CAUSE.fullmatch(term.value):
        raise Invalid("That names no cause.", field="cause", remedy="Follow a link from the page of failed jobs.")
    return {"cause": term.value}


def _payload(_query: Query, term: Term) -> dict[str, Any]:
    path = tuple(term.name.split(".")[1:])
    if not all(_MEMBER.fullmatch(part) for part in path):
        raise Invalid(
            "A member of the payload is named by words or numbers with dots between them.",
            field="payload",
            remedy="Write payload.order.id:881, or payload.items.0:a for the first of a list.",
        )
    return {"payload": (path, term.value)}


def _after(query: Query, term: Term) -> dict[str, Any]:
    return {"created_after": None if term.value == _ANY else _moment(term, query.now)}


def _before(query: Query, term: Term) -> dict[str, Any]:
    return {"created_before": _moment(term, query.now)}


def _attempt(_query: Query, term: Term) -> dict[str, Any]:
    if not (term.value.isascii() and term.value.isdigit() and len(term.value) < len(str(fields.INTEGER_MAX))):
        raise Invalid("A number of failures is needed.", field="attempt", remedy="Write attempt>2.")
    return {"failures_min": int(term.value) + (term.mark == ">")}


_MEANINGS: Mapping[str, Callable[[Query, Term], dict[str, Any]]] = {
    "id": _id,
    "kind": _named("kind"),
    "queue": _named("queue"),
    "tag": _named("tag"),
    "client": _named("client"),
    "worker": _named("worker"),
    "error": _named("error"),
    "cause": _cause,
    "payload": _payload,
    "after": _after,
    "before": _before,
    "attempt": _attempt,
}


_QUALIFIED = frozenset({*_MEANINGS, "state"})


def _moment(term: Term, now: datetime) -> datetime:
    span = _SPAN.fullmatch(term.value)
    try:
        if span:
            return fields.moment(now - timedelta(seconds=int(span[1]) * _SECONDS[span[2]]), field=term.name)
        at = datetime.fromisoformat(term.value)
        return fields.moment(at if at.tzinfo else at.replace(tzinfo=UTC), field=term.name)
    except (ValueError, OverflowError):
        raise Invalid(
            f"{term.value[:40]!r} is no time.",
            field=term.name,
            remedy="Write how long ago (15m, 24h, 7d, 2w), a day (2026-11-30) or a time of UTC (2026-11-30T09:15).",
        ) from None


def _too_long() -> Invalid:
    return Invalid("The search is too long.", field="q", limit=f"{TEXT_CHARS_MAX} characters")


def _unreadable(rest: str, name: str | None) -> Invalid:
    if name is not None:
        return Invalid(f"Nothing follows {name}.", field=name, remedy=f'Write {name}:value, or {name}:"two words".')
    return Invalid(f"This cannot be read: {rest[:40]}", field="q", remedy='Close the quotation mark: tag:"two words".')


def _bare(word: str) -> Invalid:
    may_be = ["kind", "queue", "tag", "error", "worker"]
    if len(word) >= ID_CHARS_MIN and _ID_START.fullmatch(word.lower()):
        may_be.insert(0, "id")
    return Invalid(
        f"Say what {word[:80]!r} is.",
        field="q",
        remedy="Put a qualifier before it.",
        suggestions=[f"{name}:{quoted(word[:200])}" for name in may_be],
    )


def _unknown(name: str) -> Invalid:
    near = _near(name.lower(), sorted(_QUALIFIED))
    return Invalid(f"{name[:40]!r} is no qualifier.", field="q", limit=", ".join(QUALIFIERS), remedy=near)


def _near(word: str, words: list[str]) -> str:
    begun = [each for each in words if word and each.startswith(word)]
    close = begun or difflib.get_close_matches(word, words, n=1)
    return f"Did you mean {close[0]}?" if close else "Use one of those that are named here."
