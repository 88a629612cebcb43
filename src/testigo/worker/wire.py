"""How ends, new jobs and errors travel between a keeper and its runners: as plain JSON, checked when read.

    end = ["succeed", output] | ["degrade", output, [limitation, …]]
        | ["fail", code, message, detail, permanent, wait_seconds]
        | ["block", reason, needs, checkpoint] | ["yield", checkpoint] | ["release", reason, checkpoint]

A success or a degraded end may carry a last member, the list of the children that are committed with it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple, assert_never

from testigo.authority.submissions import NewJob
from testigo.errors import Error, Invalid, ProtocolBroken
from testigo.rules import fields
from testigo.rules.decide import Policy
from testigo.rules.documents import Document, parse
from testigo.rules.outcomes import Block, Degrade, Fail, Lose, Outcome, Release, Succeed, Yield
from testigo.rules.retries import backoff_from_json, backoff_to_json
from testigo.rules.text import tidy
from testigo.settings import LIMITS
from testigo.store.backend import Backend

__all__ = [
    "NULL_END",
    "End",
    "backends_from_wire",
    "end_from_wire",
    "end_to_wire",
    "error_from_wire",
    "error_to_wire",
    "new_job_from_wire",
    "new_job_to_wire",
]

NULL = Document("null")


class End(NamedTuple):
    """How a run ended, and the children that its settle submits."""

    outcome: Outcome
    children: tuple[NewJob, ...] = ()


NULL_END = End(Succeed(NULL))
"""How most runs end."""


def end_to_wire(end: End) -> list[Any]:
    """The end as JSON; `end_from_wire` reads it back, equal."""
    children = [[new_job_to_wire(child) for child in end.children]] if end.children else []
    match end.outcome:
        case Succeed(output):
            return ["succeed", output, *children]
        case Degrade(output, limitations):
            return ["degrade", output, list(limitations), *children]
        case Fail(code, message, detail, permanent, wait_seconds):
            return ["fail", code, message, detail, permanent, wait_seconds]
        case Block(reason, needs, checkpoint):
            return ["block", reason, needs, checkpoint]
        case Yield(checkpoint):
            return ["yield", checkpoint]
        case Release(reason, checkpoint):
            return ["release", reason, checkpoint]
        case Lose():
            raise Invalid("A runner cannot report that it was lost: its keeper does.", field="end")
    assert_never(end.outcome)


def end_from_wire(end: object) -> End:
    """The end that a runner reports, every value checked and every text made fit.

    Raises `ProtocolBroken` for what is no end at all, and `Invalid` naming the field for a document, wait,
    limitation or child that breaks a limit: such a run has failed.
    """
    match end:
        case ["succeed", output]:
            return End(Succeed(_document(output, "output")))
        case ["succeed", output, list(children)]:
            return End(Succeed(_document(output, "output")), _children(children))
        case ["degrade", output, list(limitations)]:
            return End(_degrade(output, limitations))
        case ["degrade", output, list(limitations), list(children)]:
            return End(_degrade(output, limitations), _children(children))
        case ["fail", str(code), str(message), str(detail), bool(permanent), (None | int() | float()) as wait]:
            wait_seconds = None if wait is None else fields.seconds(wait, field="wait_seconds")
            code = tidy(code, bytes_max=LIMITS.name_chars_max)
            return End(Fail(code, tidy(message), tidy(detail), permanent, wait_seconds))
        case ["block", str(reason), str(needs), checkpoint]:
            return End(Block(tidy(reason), tidy(needs), _kept(checkpoint)))
        case ["yield", checkpoint]:
            return End(Yield(_document(checkpoint, "checkpoint")))
        case ["release", str(reason), checkpoint]:
            return End(Release(tidy(reason), _kept(checkpoint)))
    raise ProtocolBroken("what should be the end of a run is none", field="end")


def new_job_to_wire(job: NewJob) -> dict[str, Any]:
    """The job as a JSON object, without the members that are None; `new_job_from_wire` reads it back, equal."""
    members: dict[str, Any] = {}
    for member in _members():
        value = getattr(job, member)
        if value is not None:
            write = _WRITTEN.get(member)
            members[member] = write(value) if write else value
    return members


def new_job_from_wire(members: object) -> NewJob:
    """The job that a runner asks for. Raises `Invalid` naming the member that is unknown or not of its form.

    The limits of names, numbers and dates are left to the submission, which checks every job.
    """
    if not isinstance(members, dict):
        raise Invalid("A job is a JSON object.", field="job")
    for unknown in members.keys() - _members():
        raise Invalid(f"A member is not known: {tidy(unknown, bytes_max=64)!r}.", field="job")
    for needed in ("id", "kind", "payload"):
        if needed not in members:
            raise Invalid("The member is missing.", field=f"job.{needed}")
    read: dict[str, Any] = {name: _READ[name](value) if name in _READ else value for name, value in members.items()}
    return NewJob(**read)


def error_to_wire(error: Error) -> list[Any]:
    """The refusal of a call, as its caller should meet it."""
    return [error.code, error.message, error.field, error.remedy]


def error_from_wire(error: object) -> Error:
    """The error that a keeper answers a call with, of the class that its code names."""
    match error:
        case [str(code), str(message), (None | str()) as field, str(remedy)]:
            return _class_of(code)(message, field=field, remedy=remedy)
    raise ProtocolBroken("what should be an error is none", field="answer.error")


def backends_from_wire(told: object) -> tuple[Backend, ...]:
    """The server's processes that a publisher tells of."""
    try:
        match told:
            case [list(backends)]:
                return tuple(_backend(*each) for each in backends)
    except (TypeError, ValueError, Invalid):
        pass
    raise ProtocolBroken("what should be connections are none", field="connected")


def _backend(pid: object, started: str) -> Backend:
    whole = fields.whole(pid, field="pid", low=1, high=fields.INTEGER_MAX)
    return Backend(whole, fields.moment(datetime.fromisoformat(started), field="started"))


@cache
def _members() -> frozenset[str]:
    return frozenset(field.name for field in dataclasses.fields(NewJob))


@cache
def _class_of(code: str) -> type[Error]:
    """The class that declares this code, wherever it is in the tree; `Error` itself for an unknown one."""
    classes = [Error]
    for each in classes:
        if each.code == code:
            return each
        classes.extend(each.__subclasses__())
    return Error


def _document(text: object, field: str) -> Document:
    """A checked document; most outputs are null, and need no walk."""
    return NULL if text == "null" else parse(text, field=field)  # type: ignore[arg-type]  # `parse` refuses it


def _kept(checkpoint: object) -> Document | None:
    return None if checkpoint is None else _document(checkpoint, "checkpoint")


def _degrade(output: object, limitations: list[object]) -> Degrade:
    named = tuple(fields.name(each, field=f"limitations[{n}]") for n, each in enumerate(limitations))
    return Degrade(_document(output, "output"), named)


def _children(children: list[object]) -> tuple[NewJob, ...]:
    fields.sequence(children, field="children", most=LIMITS.batch_max)
    return tuple(new_job_from_wire(child) for child in children)


def _moment(field: str) -> Callable[[object], datetime]:
    def read(value: object) -> datetime:
        try:
            return fields.moment(datetime.fromisoformat(value), field=field)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise Invalid("A time is needed, as ISO 8601 text.", field=field) from None

    return read


def _texts(field: str) -> Callable[[object], tuple[str, ...]]:
    def read(value: object) -> tuple[str, ...]:
        fields.sequence(value, field=field, most=LIMITS.parents_max)
        return tuple(value)  # type: ignore[arg-type]  # it is a list

    return read


_WRITTEN: dict[str, Callable[[Any], object]] = {
    "run_at": datetime.isoformat,
    "start_by": datetime.isoformat,
    "finish_by": datetime.isoformat,
    "tags": list,
    "parents": list,
    "policy": str,
    "backoff": backoff_to_json,
}
"""The members that JSON cannot take as they are."""

_READ: dict[str, Callable[[Any], object]] = {
    "payload": lambda value: _document(value, "job.payload"),
    "run_at": _moment("job.run_at"),
    "start_by": _moment("job.start_by"),
    "finish_by": _moment("job.finish_by"),
    "tags": _texts("job.tags"),
    "parents": _texts("job.parents"),
    "policy": lambda value: fields.member(value, Policy, field="job.policy"),
    "backoff": backoff_from_json,
}
