"""Commits that may be on this server alone: their commands are in doubt (spec P-03).

Where `synchronous_standby_names` asks for it, a commit waits for a standby. A wait that is cancelled ends in
a warning and in success: the commit is there, and a failover would lose it. So once such a warning came,
whatever the engine runs is answered only when a later commit was waited for in full, since a standby that
has this one has all before it.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Engine, event

from testigo.store.sql import Statement

__all__ = ["DOUBT_OPTION", "Doubt", "UnreplicatedError"]

DOUBT_OPTION = "testigo_doubt"
"""On an engine of ours: its `Doubt`."""

_WAITS_FOR_STANDBY = "SyncRepWaitForLSN"
"""The server's function that warns: its words are translated, and its SQLSTATE is that of any warning."""

# A commit that wrote nothing is not waited for: this writes the least that is.
_WRITE = Statement("SELECT pg_logical_emit_message(true, 'testigo', '') IS NOT NULL AS written")


class UnreplicatedError(Exception):
    """The server committed, and nobody knows whether a standby has it. Sent again, the command has its answer."""


class Doubt:
    """Whether what one engine committed may be on its server alone."""

    def __init__(self) -> None:
        self._warnings = 0
        self._resolved = 0

    def __bool__(self) -> bool:
        return self._warnings != self._resolved

    def watch(self, engine: Engine) -> None:
        """Hear the warnings of every connection that this engine opens."""
        event.listen(engine, "connect", self._listen)

    def resolve(self, c: Connection) -> None:
        """Wait for a commit of this moment; raises `UnreplicatedError` where that is warned of as well."""
        before = self._warnings
        _WRITE.rows(c)
        c.commit()
        if self._warnings != before:
            raise UnreplicatedError("a commit was not waited for until a standby had it")
        self._resolved = before

    def _listen(self, connection: Any, _record: object) -> None:
        driver = getattr(connection, "driver_connection", connection)
        driver.add_notice_handler(self._noticed)

    def _noticed(self, notice: Any) -> None:
        if notice.source_function == _WAITS_FOR_STANDBY:
            self._warnings += 1
