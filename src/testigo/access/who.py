"""Who asks, and what they may: the one answer of every login and token (panel.md *Access, actions, audit*)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from testigo.access.roles import RIGHTS, Right, Role
from testigo.errors import Forbidden

__all__ = ["Via", "Who", "forbidden"]


class Via(StrEnum):
    """By what it is known who asks."""

    LOGIN = "login"
    LINK = "link"
    """A login that began with a link that works once."""
    TOKEN = "token"  # noqa: S105
    CLI = "cli"
    """Whoever sits at a machine that holds the database's credentials: nothing was asked of them."""
    OIDC = "oidc"
    """The issuer of logins, which says who somebody is and as what: it does nothing else here."""


@dataclass(frozen=True, slots=True)
class Who:
    """Somebody whose login or token was found valid, and what they are.

    `credential` is the id of that login or token, never its secret; `epoch` is the user's at that
    time: a login of an older one has ended. A token has none, nor have the command line and an issuer.
    """

    name: str
    role: Role
    via: Via
    credential: str = ""
    epoch: int = 0

    @property
    def actor(self) -> str:
        """The name in events, receipts and the audit: `user:ana`, `token:deploy`, `cli:root`, `oidc:login.example`."""
        scope = "user" if self.via in (Via.LOGIN, Via.LINK) else str(self.via)
        return f"{scope}:{self.name}"

    def may(self, right: Right) -> bool:
        """Whether the role has this right."""
        return right in RIGHTS[self.role]

    def must(self, right: Right) -> None:
        """Raise `Forbidden`, which names the right and the roles that have it, unless the role has it."""
        if not self.may(right):
            raise forbidden(self.role, right)


def forbidden(role: Role, right: Right) -> Forbidden:
    """The refusal of what a role has no right to; its `facts` name that right and the roles that have it."""
    roles = [str(each) for each in Role if right in RIGHTS[each]]
    *others, last = roles
    return Forbidden(
        f"The role {role} has no right to {right}; {', '.join(others)} and {last} have it."
        if others
        else f"The role {role} has no right to {right}; {last} has it.",
        right=str(right),
        role=str(role),
        roles=roles,
    )
