"""The jobs that a command is for: those that are named, or all that have what is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from testigo.cli.failures import Misuse
from testigo.settings import LIMITS

if TYPE_CHECKING:
    from testigo.authority.read import Filter, JobSummary
    from testigo.store.database import Database

__all__ = ["check_chosen", "filter_of", "matching"]


def check_chosen(named: object, asked: Mapping[str, object]) -> None:
    """Refuse a choice that names jobs and filters at once, or neither."""
    filters = any(value is not None for value in asked.values())
    if bool(named) == filters:
        *options, last = (f"--{name}" for name in asked)
        told = f"Name jobs, or say which with {', '.join(options)} or {last}"
        raise Misuse(told + ("; not both." if filters else "."))


def filter_of(asked: Mapping[str, Any]) -> Filter:
    """What the options of a command ask for; each is one value."""
    from testigo.authority.read import Filter
    from testigo.rules import fields
    from testigo.rules.states import State

    given = dict(asked)
    state = given.pop("state", None)
    return Filter(**given, states=() if state is None else (fields.member(state, State, field="state"),))


def matching(db: Database, asked: Mapping[str, Any]) -> Iterator[JobSummary]:
    """All jobs that have what is asked for, the newest first, however many pages that takes."""
    from testigo.authority.read import jobs

    wanted = filter_of(asked)
    before = None
    while True:
        page = db.run(jobs, wanted, before=before, limit=LIMITS.page_max)
        yield from page.items
        if page.next is None:
            return
        before = page.next
