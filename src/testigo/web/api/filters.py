"""Which jobs are meant: the filters of listings and operations, alike."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from testigo.access.roles import Right
from testigo.access.who import Who
from testigo.authority.read import Filter
from testigo.errors import Invalid
from testigo.rules.fields import INTEGER_MAX
from testigo.rules.states import State
from testigo.settings import LIMITS
from testigo.web.api.shapes import Moment, Shape

__all__ = ["FilterShape", "filter_of", "filter_shape"]


class FilterShape(Shape):
    """The jobs that have all of what is given."""

    id_prefix: Annotated[str, Field(max_length=36)] | None = None
    """How the id begins."""
    queue: str | None = None
    """Of this queue."""
    kind: str | None = None
    """Of this kind."""
    state: Annotated[tuple[State, ...], Field(max_length=len(State))] = ()
    """Any of these states."""
    tag: str | None = None
    """With this tag."""
    client: str | None = None
    """Submitted on behalf of this client."""
    worker: str | None = None
    """The agent that owns it."""
    error: str | None = None
    """The code of its last failure."""
    cause: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")] | None = None
    """As the list of causes names it."""
    unresolved: bool = False
    """Failed for good, and nothing came in its place."""
    created_after: Moment | None = None
    """Submitted then or later."""
    created_before: Moment | None = None
    """Submitted earlier."""
    failures_min: Annotated[int, Field(ge=0, le=INTEGER_MAX)] | None = None
    """It has failed as often, or more often."""
    payload_path: Annotated[tuple[str, ...], Field(max_length=LIMITS.json_depth_max)] = ()
    """The members that lead to a value in the payload, each given in turn; for who may see documents."""
    payload_value: str | None = None
    """The text of that value."""


def filter_of(asked: FilterShape, who: Who) -> Filter:
    """What the readings are asked for.

    Raises `Forbidden` for who asks by what is in payloads and may not see it: whether a job is found would tell.
    """
    if bool(asked.payload_path) != (asked.payload_value is not None):
        raise Invalid("payload_path and payload_value go together.", field="payload_path")
    if asked.payload_path:
        who.must(Right.DOCUMENTS)
    payload = None if asked.payload_value is None else (asked.payload_path, asked.payload_value)
    return Filter(states=asked.state, payload=payload, **{name: getattr(asked, name) for name in _ALIKE})


def filter_shape(wanted: Filter, who: Who) -> FilterShape:
    """What jobs were asked for, as who asks may see it: what is in payloads is behind the right to documents."""
    path, value = wanted.payload or ((), None)
    if not who.may(Right.DOCUMENTS):
        path, value = (), None
    return FilterShape(
        state=wanted.states,
        payload_path=path,
        payload_value=value,
        **{name: getattr(wanted, name) for name in _ALIKE},
    )


_ALIKE = frozenset(FilterShape.model_fields) - {"state", "payload_path", "payload_value"}
