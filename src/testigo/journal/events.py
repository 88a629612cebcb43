"""An event: one accepted fact in the envelope of CloudEvents 1.0 (spec A-02, B-03, model.md *Events*)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Row

from testigo.authority.actions import JobId
from testigo.journal.catalogue import dataschema_of

__all__ = ["SOURCE", "Event", "event_of"]

SOURCE = "/organisations/default"
"""Whose events these are: an installation without missions is one organisation, named default."""

_SEQUENCE_DIGITS = len(str(2**63 - 1))


@dataclass(frozen=True, slots=True)
class Event:
    """One fact, as its stream keeps it; it never changes, unless a redaction takes words out of its `data`.

    `sequence` is its place in `stream`, counted 1, 2, 3 … without a gap, and `revision` that of the
    job (`subject`) which it made. `time` is when it was appended, by the database's clock: along a
    stream it never goes backwards. `actor` and `action` name the command that made it true.
    """

    id: str
    type: str
    subject: JobId
    time: datetime
    stream: str
    sequence: int
    revision: int
    actor: str
    action: str
    data: Mapping[str, Any] = field(hash=False)

    @property
    def source(self) -> str:
        """Whose event this is; together with `id` unique in the world."""
        return SOURCE

    @property
    def dataschema(self) -> str | None:
        """The URI that names the type and version of `data`; None for a type that this release does not know."""
        return dataschema_of(self.type)

    def to_cloudevent(self) -> dict[str, Any]:
        """The event in CloudEvents' JSON format, our extensions beside its attributes.

        `sequence` follows CloudEvents' own extension of that name: digits, padded so that their order
        as text is the order of events.
        """
        envelope: dict[str, Any] = {
            "specversion": "1.0",
            "id": self.id,
            "source": self.source,
            "type": self.type,
            "subject": self.subject,
            "time": self.time.astimezone(UTC).isoformat().replace("+00:00", "Z"),
            "datacontenttype": "application/json",
            "stream": self.stream,
            "sequence": str(self.sequence).zfill(_SEQUENCE_DIGITS),
            "revision": self.revision,
            "actor": self.actor,
            "action": self.action,
            "data": dict(self.data),
        }
        if self.dataschema is not None:
            envelope["dataschema"] = self.dataschema
        return envelope


def event_of(row: Row[Any]) -> Event:
    """The event that a row of the event table is."""
    return Event(
        id=str(row.id),
        type=row.type,
        subject=JobId(str(row.subject)),
        time=row.at,
        stream=row.stream,
        sequence=row.sequence,
        revision=row.revision,
        actor=row.actor,
        action=row.action,
        data=json.loads(row.data),
    )
