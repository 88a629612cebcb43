"""`testigo token`: what programs send to the API instead of a password."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from testigo.access.roles import Role
from testigo.cli import call
from testigo.cli.asking import agree
from testigo.cli.call import Call, command
from testigo.cli.options import After, Limit, Yes
from testigo.cli.ordering import Reason, ordered
from testigo.cli.users import RoleOption
from testigo.cli.written import age, moment
from testigo.settings import ACCESS

if TYPE_CHECKING:
    from testigo.access.tokens import TokenView

__all__ = ["group"]

group = call.group("token", "Make and revoke what programs send to the API.")

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="The token's name: a-z, 0-9 and . _ @ + -", show_default=False)
]


@command(group, "create", "token create deploy --role operator --days 30", "token create metrics --json")
def create(
    here: Call,
    name: Name,
    role: RoleOption = Role.VIEWER,
    days: Annotated[
        int, typer.Option("--days", "-d", min=1, max=ACCESS.token_days_max, metavar="DAYS", help="How long it works.")
    ] = 90,
) -> None:
    """Make a token, and print it: this once, and never again.

    It is sent as `Authorization: Bearer …`, and may do what its role may. Only its digest is kept.
    """
    from testigo.access.names import spelled
    from testigo.access.tokens import NewToken, create_token

    named = spelled(name, field="name")
    token = NewToken.new()
    until = datetime.now(UTC) + timedelta(days=days)
    receipt = ordered(
        here,
        "tokens.create",
        f"token:{named}",
        lambda c, action: create_token(c, named, role, until, token.secret.digest, id=token.id, action=action),
    )
    told = {"id": receipt.id, "name": receipt.name, "role": role, "expires_at": until, "token": token.secret.text}
    here.answer(told, lambda: print(token.secret.text))
    here.note(f"This is shown once. It has the role {role} and works until {moment(until.replace(microsecond=0))}.")


@command(group, "list", "token list", "token list --json")
def list_(here: Call, limit: Limit = 100, after: After = None) -> None:
    """List tokens, the newest first, those that work no more among them."""
    from testigo.access.tokens import tokens
    from testigo.authority.read import Cursor

    with here.database() as db:
        page = db.run(tokens, before=None if after is None else Cursor(after), limit=limit)
    here.answer({"tokens": page.items, "next": page.next}, lambda: _table(here, page.items))
    if page.next:
        here.note(f"More: --after {page.next}")


@command(group, "revoke", "token revoke deploy --yes --note 'was in a log'")
def revoke(here: Call, name: Name, note: Reason = "", yes: Yes = False) -> None:
    """Let a token work no more, from its next request on. It cannot be brought back."""
    from testigo.access.names import spelled
    from testigo.access.tokens import revoke_token

    named = spelled(name, field="name")
    agree(f"Revoke the token {named}?", yes=yes)
    receipt = ordered(
        here,
        "tokens.revoke",
        f"token:{named}",
        lambda c, action: revoke_token(c, named, action=action),
        reason=note,
    )
    told = "is revoked" if receipt.changed else "was revoked already: nothing changed"
    here.answer({"name": receipt.name, "changed": receipt.changed}, lambda: print(f"The token {receipt.name} {told}."))


def _table(here: Call, found: tuple[TokenView, ...]) -> None:
    from testigo.cli.tables import Column, print_table

    now = datetime.now(UTC)
    columns: list[Column[TokenView]] = [
        Column("name", lambda token: token.name),
        Column("role", lambda token: token.role, whole=True),
        Column("state", _state, whole=True),
        Column("expires", lambda token: age(token.expires_at, now), whole=True, right=True),
        Column("used", lambda token: age(token.used_at, now) or "never", whole=True, right=True),
        Column("by", lambda token: token.actor, wide=True),
        Column("id", lambda token: token.id, whole=True, wide=True),
    ]
    if found:
        print_table(columns, found)
    else:
        here.note("There is no token yet. One is made by `testigo token create NAME`.")


def _state(token: TokenView) -> str:
    if token.works:
        return "works"
    return "expired" if token.revoked_at is None else "revoked"
