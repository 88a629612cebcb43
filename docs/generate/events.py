"""The page of events: when each is recorded, and what it tells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from docs.generate.markdown import page, prose, sentence, table
from testigo.journal.catalogue import CATALOGUE, EventData, RunData, json_schema
from testigo.rules.transitions import DETAIL, EventType

__all__ = ["events_page"]

ENVELOPE = """
The envelope is that of CloudEvents 1.0: `id`, `source`, `type`, `subject` (the job), `time`, `dataschema`, `data`,
and the extensions `stream`, `sequence`, `revision`, `actor` and `action` (spec A-02, B-03). The tables have the
members of `data`. One that is not known is absent.
"""

HEAD = ["member", "type", "meaning"]


def events_page() -> str:
    """Every event of the engine."""
    events = [part for event in EventType for part in _event(event)]
    return page(
        "Events",
        "src/testigo/journal/catalogue.py",
        prose(ENVELOPE),
        "## All events",
        prose(EventData.__doc__),
        table(HEAD, _told(EventType.REQUESTED, set(EventData.model_fields))),
        "## What is known of a run",
        prose(RunData.__doc__),
        table(HEAD, _told(EventType.RELEASED, set(RunData.model_fields) - set(EventData.model_fields))),
        *events,
    )


def _event(event: EventType) -> Iterator[str]:
    model = CATALOGUE[event]
    base: type[EventData] = RunData if issubclass(model, RunData) else EventData
    recorded = 'Recorded only where a queue has `events = "full"`.' if event in DETAIL else "Always recorded."
    yield f"## {event}"
    yield prose(model.__doc__)
    yield f"{recorded} Schema: `urn:testigo:event:{event}:{model.version}`."
    yield table(HEAD, _told(event, set(model.model_fields) - set(base.model_fields)))
    if base is RunData:
        yield "And [what is known of the run](#what-is-known-of-a-run)."


def _told(event: EventType, names: set[str]) -> Iterator[list[str]]:
    for name, member in json_schema(event)["properties"].items():
        if name in names:
            yield [f"`{name}`", _type(member), sentence(member.get("description"))]


def _type(member: dict[str, Any]) -> str:
    """What a member of a JSON Schema may be, in words."""
    if "const" in member:
        return f"`{member['const']}`"
    if "enum" in member:
        return " or ".join(f"`{value}`" for value in member["enum"])
    known = [choice for choice in member.get("anyOf", [member]) if choice["type"] != "null"]
    return " or ".join(map(_name, known)) + (", if known" if "anyOf" in member else "")


def _name(choice: dict[str, Any]) -> str:
    if choice["type"] == "array":
        return f"list of {_name(choice['items'])}s"
    return str(choice.get("format", choice["type"]))
