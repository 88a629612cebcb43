"""The handlers' way to the database: readings that end in time, and changes that are written down.

A reading has a statement time-out which the database itself keeps, set for one transaction alone, so that
it holds behind a pooler as well. Whatever does not come back in time is told as `AuthorityUnavailable`;
that is the whole of what a caller sees of a database that went away.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec, TypeVar

from fastapi import Depends, Request
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from testigo.access.act import Order, act, refused
from testigo.access.roles import Right
from testigo.access.who import Who
from testigo.authority.actions import Action, JobId, new_id
from testigo.errors import AuthorityUnavailable, Broken, Busy, Error
from testigo.settings import Web
from testigo.store.database import AsyncDatabase
from testigo.store.failures import reason_of, sqlstate_of
from testigo.store.sql import Statement

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["AtDoor", "Door", "door_of", "order"]

P = ParamSpec("P")
R = TypeVar("R")

_log = logging.getLogger("testigo.web")

_QUERY_CANCELED = "57014"
_MAY_ONLY_READ = frozenset({"25006", "42501"})
"""A transaction that may only read, as on a standby; and a role without the right."""
_GRACE_SECONDS = 1.0
"""How much longer than the database a server waits: an answer of the database says more than none."""

_TIMED = Statement("SELECT set_config('statement_timeout', :milliseconds, true)")


class Door:
    """What handlers are given: `request.app.state.door`."""

    def __init__(self, database: AsyncDatabase, settings: Web) -> None:
        self._database = database
        self._settings = settings

    async def read(self, command: Callable[Concatenate[Connection, P], R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """What a reading answers.

        Raises what it raises, `Busy` when it takes longer than `read_seconds`, and
        `AuthorityUnavailable` when the database does not answer.
        """
        seconds = self._settings.read_seconds
        try:
            async with _answered(seconds + _GRACE_SECONDS):
                return await self._database.run(_timed, seconds, command, args, kwargs)
        except Exception as error:
            if sqlstate_of(error) != _QUERY_CANCELED:
                raise
            raise Busy(
                f"The database could not tell in {seconds:g} seconds.", remedy="Ask for less: a narrower search."
            ) from error

    async def identify(self, command: Callable[[Connection, str], Who | None], digest: str) -> Who | None:
        """Whom a login or a token belongs to, asked in one statement. Raises `AuthorityUnavailable`."""
        async with _answered(self._settings.read_seconds):
            return await self._database.run(command, digest)

    async def run(self, command: Callable[Concatenate[Connection, P], R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """What a command answers that is no order of somebody's: to log in, to log out. Raises as `act` does."""
        async with _answered(self._settings.act_seconds):
            return await self._database.run(command, *args, **kwargs)

    async def act(self, order: Order, command: Callable[[Connection], R]) -> R:
        """Carry out an order, which is written down together with its effect; a refusal is written down as well.

        Raises what `access.act.act` and the command raise, and `AuthorityUnavailable` when the
        database does not answer: whether it acted is then not known, and the same order, with the same
        action id, may be sent again.
        """
        try:
            return await self.run(act, order, command)
        except (Busy, Broken):
            raise
        except Error as error:
            await self.write_down(order, error)
            raise

    async def write_down(self, order: Order, error: Error) -> None:
        """Write down that an order was refused, if the database takes it; whoever was refused is told of that alone."""
        try:
            await self.run(refused, order, error.code)
        except Exception as failure:
            _log.warning("a refusal of %s was not written down: %s", order.what, type(failure).__name__)


def door_of(request: Request) -> Door:
    """The door of the server that was asked."""
    door: Door = request.app.state.door
    return door


AtDoor = Annotated[Door, Depends(door_of)]
"""The parameter of a handler that needs the database."""


def order(
    request: Request,
    who: Who,
    right: Right,
    what: str,
    objects: Sequence[str],
    reason: str,
    *,
    action_id: str | None = None,
    expected: Mapping[JobId, int] | None = None,
) -> Order:
    """What somebody asks for with this request, as `Door.act` takes it.

    `what` is a noun and a verb (`jobs.cancel`), `objects` what it is done to. An `action_id` that came with
    the request makes the order the same one however often it is sent; `expected` are the revisions at which
    the caller has seen these jobs.
    """
    return Order(
        who=who,
        right=right,
        what=what,
        objects=tuple(objects),
        reason=reason,
        action=Action(who.actor, action_id if action_id is not None else new_id()),
        address=request.client.host if request.client else None,
        request=request.state.request_id,
        expected=dict(expected or {}),
    )


def _timed(
    c: Connection,
    seconds: float,
    command: Callable[..., R],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> R:
    _TIMED.rows(c, milliseconds=str(int(seconds * 1000)))
    return command(c, *args, **kwargs)


@asynccontextmanager
async def _answered(seconds: float) -> AsyncIterator[None]:
    """Wait no longer than this for what happens within, and say so where the database lets nothing be written."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise AuthorityUnavailable(f"The database did not answer in {seconds:g} seconds.") from error
    except DBAPIError as error:
        if sqlstate_of(error) not in _MAY_ONLY_READ:
            raise
        _log.warning("the database lets nothing be written: %s", reason_of(error))
        raise AuthorityUnavailable(
            "The database lets be read, and nothing be written: nobody can be let in.",
            remedy="Grant the role that serves the panel SELECT, INSERT, UPDATE and DELETE on the tables; on a "
            "standby, wait for its promotion.",
        ) from error
