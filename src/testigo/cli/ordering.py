"""Orders of whoever sits here: the audit tells of them as of any other's, though nobody asks what they may."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from testigo.access.roles import Right
from testigo.cli.call import Call

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from testigo.access.act import Order
    from testigo.authority.actions import Action

__all__ = ["Reason", "order_of", "ordered"]

R = TypeVar("R")

Reason = Annotated[str, typer.Option("--note", metavar="TEXT", help="Why, for people: the audit tells it.")]


def order_of(here: Call, what: str, *named: str, reason: str = "", right: Right = Right.MANAGE) -> Order:
    """An order under a new action; `named` are what it is done to."""
    from testigo.access.act import Order
    from testigo.access.roles import Role
    from testigo.access.who import Via, Who

    action = here.action()
    who = Who(action.actor.removeprefix("cli:"), Role.ADMIN, Via.CLI)
    return Order(who, right, what, named, action, reason)


def ordered(
    here: Call,
    what: str,
    named: str | Sequence[str],
    command: Callable[[Connection, Action], R],
    *,
    reason: str = "",
    right: Right = Right.MANAGE,
) -> R:
    """Send a command by such an order, with its row of the audit."""
    from testigo.access.act import act

    objects = (named,) if isinstance(named, str) else named
    order = order_of(here, what, *objects, reason=reason, right=right)
    with here.database() as db:
        return db.run(act, order, lambda c: command(c, order.action))
