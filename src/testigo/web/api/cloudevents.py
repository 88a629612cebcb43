"""Events as the API shows them: in CloudEvents' JSON format, with our extensions beside its attributes."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict

from testigo.access.roles import Right
from testigo.access.who import Who
from testigo.journal.events import Event
from testigo.web.api.shapes import Moment, Shape
from testigo.web.api.veil import veiled_event

__all__ = ["CloudEvent", "CloudEvents", "event_shape"]


class CloudEvent(Shape):
    """One accepted fact. Where `redacted` is true, what handlers worded in `data` is not shown to who asks."""

    model_config = ConfigDict(json_schema_extra={"externalDocs": {"url": "https://cloudevents.io"}})

    specversion: Literal["1.0"]
    id: str
    source: str
    type: str
    subject: str
    """The job."""
    time: Moment
    datacontenttype: Literal["application/json"]
    dataschema: str | None = None
    """The type and version of `data`; null for a type that this release does not know."""
    stream: str
    sequence: str
    """Its place in the stream: digits, padded so that their order as text is the order of events."""
    revision: int
    actor: str
    action: str
    data: dict[str, Any]


class CloudEvents(Shape):
    """Events in their order."""

    items: tuple[CloudEvent, ...]
    next: str | None
    """The address of the events that follow these; null where there are none now."""
    redacted: bool
    """What handlers worded is not shown to who asks."""


def event_shape(event: Event, who: Who) -> CloudEvent:
    """An event, as who asks may see it."""
    shown = event if who.may(Right.DOCUMENTS) else veiled_event(event)
    return CloudEvent.model_validate(shown.to_cloudevent())
