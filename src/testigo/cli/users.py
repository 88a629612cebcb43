"""`testigo user`: who may log in to the panel, and as what."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from testigo.access.roles import Role
from testigo.cli import call
from testigo.cli.call import Call, command
from testigo.cli.failures import Misuse
from testigo.cli.options import After, Limit
from testigo.cli.ordering import Reason, ordered
from testigo.cli.written import age

if TYPE_CHECKING:
    from testigo.access.users import UserReceipt, UserView

__all__ = ["RoleOption", "group"]

group = call.group("user", "Say who may log in to the panel, and as what.")

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="The user's name: a-z, 0-9 and . _ @ + -", show_default=False)
]
RoleOption = Annotated[Role, typer.Option("--role", "-r", metavar="ROLE", help="viewer, operator, reviewer or admin.")]
Stdin = Annotated[bool, typer.Option("--password-stdin", help="Read the password from a line of stdin; do not ask.")]


@command(group, "add", "user add ana --role admin", "user add ops --password-stdin < password.txt")
def add(
    here: Call,
    name: Name,
    role: RoleOption = Role.VIEWER,
    password_stdin: Stdin = False,
    no_password: Annotated[
        bool, typer.Option("--no-password", help="They log in by other means: OIDC or a link.")
    ] = False,
) -> None:
    """Let somebody log in to the panel.

    A viewer looks at jobs without what they hold; an operator submits, cancels, retries and pauses as well; a
    reviewer decides on findings; an admin does all that, redacts, forgets and manages users. The password is asked
    twice.
    """
    from testigo.access.names import spelled
    from testigo.access.users import add_user

    if no_password and password_stdin:
        raise Misuse("Say --password-stdin or --no-password, not both.")
    named = spelled(name, field="name")
    kept = None if no_password else _hash_of_password(named, stdin=password_stdin)
    receipt = ordered(
        here, "users.add", f"user:{named}", lambda c, action: add_user(c, named, role, kept, action=action)
    )
    here.answer(
        {"name": receipt.name, "role": role}, lambda: print(f"{receipt.name} may log in now, with the role {role}.")
    )


@command(group, "list", "user list", "user list --json")
def list_(here: Call, limit: Limit = 100, after: After = None) -> None:
    """List who may log in, by their names."""
    from testigo.access.users import users
    from testigo.authority.read import Cursor

    with here.database() as db:
        page = db.run(users, after=None if after is None else Cursor(after), limit=limit)
    here.answer({"users": page.items, "next": page.next}, lambda: _table(here, page.items))
    if page.next:
        here.note(f"More: --after {page.next}")


@command(group, "role", "user role ana operator")
def role(
    here: Call,
    name: Name,
    role: Annotated[
        Role, typer.Argument(metavar="ROLE", help="viewer, operator, reviewer or admin.", show_default=False)
    ],
    note: Reason = "",
) -> None:
    """Give a user another role. Their logins end."""
    from testigo.access.users import set_role

    _change(here, "users.role", name, partial(set_role, role=role), f"has the role {role} now", note)


@command(group, "password", "user password ana", "user password ops --password-stdin < password.txt")
def password(here: Call, name: Name, password_stdin: Stdin = False) -> None:
    """Give a user another password, which is asked twice. Their logins end."""
    from testigo.access.users import set_password_hash

    kept = _hash_of_password(name, stdin=password_stdin)
    change = partial(set_password_hash, password_hash=kept)
    _change(here, "users.password", name, change, "has another password now", "")


@command(group, "disable", "user disable ana --note 'left the team'")
def disable(here: Call, name: Name, note: Reason = "") -> None:
    """Let a user log in no more. Their logins end at once; what they did stays told."""
    from testigo.access.users import disable_user

    _change(here, "users.disable", name, disable_user, "is disabled now", note)


@command(group, "enable", "user enable ana")
def enable(here: Call, name: Name, note: Reason = "") -> None:
    """Let a user log in again, with the password and role that they had."""
    from testigo.access.users import enable_user

    _change(here, "users.enable", name, enable_user, "may log in again", note)


def _change(here: Call, what: str, name: str, command: Callable[..., UserReceipt], now: str, note: str) -> None:
    """Change a user, and say whether that changed anything."""
    from testigo.access.names import spelled

    named = spelled(name, field="name")
    receipt = ordered(here, what, f"user:{named}", lambda c, action: command(c, named, action=action), reason=note)
    told = f"{named} {now}." if receipt.changed else f"{named} was so already: nothing changed."
    here.answer({"name": named, "changed": receipt.changed}, lambda: print(told))


def _hash_of_password(name: str, *, stdin: bool) -> str:
    """The hash of a password that is asked for, twice and without an echo, or read from stdin."""
    from testigo.access.passwords import hashed

    if stdin:
        return hashed(sys.stdin.readline().rstrip("\r\n"), name=name)
    if not sys.stdin.isatty():
        raise Misuse("Nobody can be asked for a password here: say --password-stdin.")
    return hashed(typer.prompt("Password", hide_input=True, confirmation_prompt="Again", err=True), name=name)


def _table(here: Call, found: tuple[UserView, ...]) -> None:
    from testigo.cli.tables import Column, print_table

    now = datetime.now(UTC)
    columns: list[Column[UserView]] = [
        Column("name", lambda user: user.name),
        Column("role", lambda user: user.role, whole=True),
        Column("password", lambda user: "yes" if user.has_password else "none", whole=True),
        Column("changed", lambda user: age(user.changed_at, now), whole=True, right=True),
        Column("disabled", lambda user: age(user.disabled_at, now), whole=True, right=True),
    ]
    if found:
        print_table(columns, found)
    else:
        here.note("Nobody may log in yet. The first one is made by `testigo user add NAME --role admin`.")
