"""Which jobs a verb is for, and how a selection is kept in words."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields as members_of
from dataclasses import replace
from datetime import datetime
from typing import Any

from testigo.authority.read import EVERY, Filter
from testigo.errors import Invalid
from testigo.operations.model import Selection, Verb
from testigo.rules.states import TERMINAL, State
from testigo.rules.transitions import Command, may

__all__ = ["from_text", "narrowed", "to_text"]

QUALIFIED: Mapping[Verb, frozenset[State]] = {
    Verb.CANCEL: frozenset(State) - TERMINAL,
    Verb.RETRY: TERMINAL | {state for state in State if may(state, Command.SUPERSEDE)},
    Verb.UNBLOCK: frozenset(state for state in State if may(state, Command.UNBLOCK)),
    Verb.FORGET: TERMINAL,
}
"""The states in which a job may be at all for a verb."""

_FAILURES = frozenset({Verb.RETRY, Verb.FORGET})
"""What is for failed jobs unless other states are asked for: nobody means all that went well by saying nothing."""


def narrowed(verb: Verb, selection: Selection) -> Filter:
    """What is wanted, without what the verb is not for. Raises `Invalid` where nothing could be left."""
    if selection.ids:
        return Filter(ids=selection.ids, states=_ordered(QUALIFIED[verb]))
    wanted = selection.wanted
    if verb in _FAILURES and not wanted.states:
        return replace(wanted, states=(State.PERMANENT_FAILURE,), unresolved=True)
    meant = wanted.states or ((State.PERMANENT_FAILURE,) if wanted.cause or wanted.unresolved else tuple(State))
    left = QUALIFIED[verb] & set(meant)
    if not left:
        limit = ", ".join(_ordered(QUALIFIED[verb]))
        raise Invalid(f"there is nothing to {verb} of a job in such a state", field="states", limit=limit)
    return replace(wanted, states=_ordered(left))


def to_text(wanted: Filter | None) -> str:
    """A filter as JSON; only what it asks for."""
    if wanted is None:
        return "null"
    asked = {member.name: getattr(wanted, member.name) for member in members_of(wanted)}
    told = {name: value for name, value in asked.items() if value != getattr(EVERY, name)}
    return json.dumps(told, ensure_ascii=False, default=datetime.isoformat)


def from_text(text: str) -> Filter | None:
    """The filter that `to_text` wrote."""
    told = json.loads(text)
    if told is None:
        return None
    return Filter(**{name: _READ.get(name, _as_it_is)(value) for name, value in told.items()})


def _as_it_is(value: Any) -> Any:
    return value


_READ: Mapping[str, Callable[[Any], Any]] = {
    "ids": tuple,
    "states": lambda value: tuple(State(state) for state in value),
    "payload": lambda value: (tuple(value[0]), value[1]),
    "created_after": datetime.fromisoformat,
    "created_before": datetime.fromisoformat,
}


def _ordered(states: frozenset[State] | set[State]) -> tuple[State, ...]:
    return tuple(state for state in State if state in states)
