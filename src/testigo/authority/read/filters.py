"""What a listing of jobs is asked for, and which rows it has to look at for that (panel.md *Query rules*).

Only some of what may be asked for has an index. A filter names the narrowest set of rows that holds
all that is wanted; the rest is looked at row by row, so many a page.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from testigo.authority.actions import JobId
from testigo.authority.batch import check_batch
from testigo.errors import Invalid
from testigo.rules import fields
from testigo.rules.states import CLAIMABLE, LEASED, State
from testigo.settings import LIMITS

__all__ = ["EVERY", "Filter", "Source", "id_at"]

FIRST_ID = "00000000-0000-0000-0000-000000000000"
LAST_ID = "ffffffff-ffff-ffff-ffff-ffffffffffff"

_UNFIT = re.compile(r"[\x00\ud800-\udfff]")
_CAUSE = re.compile(r"[0-9a-f]{16}")


class Source(StrEnum):
    """The rows that a listing walks."""

    ALL = "all"
    """All jobs, by id."""
    STUCK = "stuck"
    """Those of one state that waits for a person: failed for good, or blocked. By id as well."""
    ALIKE = "alike"
    """Those that failed for good by one cause. By id as well."""
    NAMED = "named"
    """Those that are named by their ids."""
    FEW = "few"
    """Those that are owned, claimable or wait for their time. Their indexes have other orders, so all are looked at."""


_STUCK = frozenset({State.PERMANENT_FAILURE, State.BLOCKED_BY_QUALITY})
_DUE = frozenset({State.CREATED, State.RETRY_WAITING})


@dataclass(frozen=True, slots=True)
class Filter:
    """What jobs are wanted: those that have all of what is given; None, or nothing, asks for nothing.

    - `ids`: these jobs. `id_prefix`: how the id begins, as it is written.
    - `states`: any of these. `unresolved`: failed for good, and nothing came in its place.
    - `worker`: the name of the live agent that owns it.
    - `error`: the code of its last failure. `cause`: as `causes` names it, and so the failed alone.
    - `created_after`, `created_before`: when its id was made; the first is included, the second not.
    - `failures_min`: it has failed as often, or more often.
    - `payload`: the text of a value in it, by the members that lead there, `(("order", "id"), "881")`; payloads
      of more than `LIMITS.searched_bytes_max` are not looked into.

    Raises `Invalid` for what cannot be, by field.
    """

    ids: tuple[JobId, ...] = ()
    id_prefix: str | None = None
    queue: str | None = None
    kind: str | None = None
    states: tuple[State, ...] = ()
    tag: str | None = None
    client: str | None = None
    worker: str | None = None
    error: str | None = None
    cause: str | None = None
    unresolved: bool = False
    created_after: datetime | None = None
    created_before: datetime | None = None
    failures_min: int | None = None
    payload: tuple[tuple[str, ...], str] | None = None

    def __post_init__(self) -> None:
        for name in ("queue", "kind", "tag", "client", "worker", "error"):
            if (value := getattr(self, name)) is not None:
                fields.name(value, field=name)
        if self.ids:
            check_batch(self.ids, "ids")
        fields.sequence(self.states, field="states", most=len(State))
        for state in self.states:
            fields.member(state, State, field="states")
        fields.flag(self.unresolved, field="unresolved")
        if self.id_prefix is not None and not _begins_an_id(self.id_prefix):
            raise Invalid("it begins no id", field="id_prefix", limit="at most 36 characters, 8-4-4-4-12, lower case")
        if self.cause is not None and not _CAUSE.fullmatch(str(self.cause)):
            raise Invalid("it names no cause", field="cause", limit="16 hexadecimal digits, as they were returned")
        if (self.unresolved or self.cause is not None) and set(self.states) - {State.PERMANENT_FAILURE}:
            raise Invalid("only what has failed for good has a cause", field="states", limit="permanent_failure")
        for name in ("created_after", "created_before"):
            if (at := getattr(self, name)) is not None:
                fields.moment(at, field=name)
        if self.failures_min is not None:
            fields.whole(self.failures_min, field="failures_min", low=0, high=fields.INTEGER_MAX)
        if self.payload is not None:
            path, value = self.payload
            fields.sequence(path, field="payload", most=LIMITS.json_depth_max)
            for part in (*path, value):
                _check_text(part)

    @property
    def source(self) -> Source:
        """The narrowest set of rows in which all that is wanted is."""
        if self.ids:
            return Source.NAMED
        if self.cause is not None:
            return Source.ALIKE
        wanted = frozenset(self._states())
        if len(wanted) == 1 and wanted <= _STUCK:
            return Source.STUCK
        if self.worker is not None or (wanted and wanted <= LEASED | CLAIMABLE | _DUE):
            return Source.FEW
        return Source.ALL

    def parameters(self) -> dict[str, Any]:
        """What the statements of `walk` take, the bounds of a page excepted."""
        states = self._states()
        path, value = self.payload if self.payload is not None else ((), None)
        return {
            "ids": list(self.ids),
            "queue": self.queue,
            "kind": self.kind,
            "states": [str(state) for state in states] or None,
            "tag": self.tag,
            "client": self.client,
            "worker": self.worker,
            "error": self.error,
            "cause": self.cause,
            "unresolved": self.unresolved,
            "failures_min": self.failures_min,
            "path": list(path),
            "value": value,
            "searched": LIMITS.searched_bytes_max,
            "from": self.first_id(),
            "to": self.last_id(),
        }

    def sets(self) -> dict[str, bool]:
        """Which sets without an order by id are looked at; a live agent's jobs are among those that are owned."""
        wanted = LEASED if self.worker is not None else frozenset(self.states)
        return {"leased": bool(wanted & LEASED), "claimable": bool(wanted & CLAIMABLE), "due": bool(wanted & _DUE)}

    def first_id(self) -> str:
        """The least id that may be wanted."""
        after = FIRST_ID if self.created_after is None else id_at(self.created_after)
        return max(after, _padded(self.id_prefix or "", FIRST_ID))

    def last_id(self) -> str:
        """The greatest id that may be wanted."""
        before = LAST_ID if self.created_before is None else str(UUID(int=max(0, _first(self.created_before) - 1)))
        return min(before, _padded(self.id_prefix or "", LAST_ID))

    def _states(self) -> tuple[State, ...]:
        """The states in which what is wanted may be; a cause, or that it is unresolved, asks for a failure."""
        if not self.unresolved and self.cause is None:
            return self.states
        return (State.PERMANENT_FAILURE,)


EVERY = Filter()
"""Every job."""


def id_at(moment: datetime) -> str:
    """The least id that is made at a time: the first 48 bits of a UUIDv7 are milliseconds."""
    return str(UUID(int=_first(moment)))


def _first(moment: datetime) -> int:
    return int(moment.timestamp() * 1000) << 80


def _padded(prefix: str, filling: str) -> str:
    return prefix + filling[len(prefix) :]


def _begins_an_id(prefix: object) -> bool:
    return isinstance(prefix, str) and 1 <= len(prefix) <= len(FIRST_ID) and fields.is_id(_padded(prefix, FIRST_ID))


def _check_text(value: object) -> None:
    if not isinstance(value, str) or len(value) > LIMITS.searched_bytes_max or _UNFIT.search(value):
        limit = f"{LIMITS.searched_bytes_max} characters, no NUL, no lone surrogate"
        raise Invalid("a path and a value are text", field="payload", limit=limit)
