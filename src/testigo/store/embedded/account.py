"""As whom the server runs: as the user, or, for root, as an account without privileges (spec P-32).

PostgreSQL refuses to run as root. Accounts are never created: root's servers run as `nobody`, which
every system has. What other programs of that account can reach, its databases included, they can
also read; root of a shared machine should run testigo as an ordinary user.
"""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass
from pathlib import Path

from testigo.errors import EmbeddedUnusable

__all__ = ["Account", "account_for"]

ROOT_RUNS_AS = "nobody"


@dataclass(frozen=True, slots=True)
class Account:
    """The user and group ids of the server's processes, and whether they are somebody else's than ours."""

    uid: int
    gid: int
    other: bool

    @property
    def user(self) -> int | None:
        """What `subprocess` takes as `user`."""
        return self.uid if self.other else None

    @property
    def group(self) -> int | None:
        """What `subprocess` takes as `group`."""
        return self.gid if self.other else None

    @property
    def groups(self) -> list[int] | None:
        """What `subprocess` takes as `extra_groups`: none of root's."""
        return [] if self.other else None

    def give(self, made: Path) -> None:
        """Let the account own a directory that we have just made."""
        if self.other:
            try:
                os.chown(made, self.uid, self.gid)
            except PermissionError as error:
                raise self.unusable() from error

    def unusable(self) -> EmbeddedUnusable:
        """The error for a root that lacks the capabilities to act as another account."""
        return EmbeddedUnusable(
            f"PostgreSQL does not run as root, and this root may not run it as uid {self.uid}.",
            remedy="Run testigo as an ordinary user, or let the container keep CHOWN, SETUID and SETGID.",
        )


def account_for(data: Path) -> Account:
    """The owner of a data directory that is there, else the account for a new one.

    Raises EmbeddedUnusable where root finds nobody to run the server as.
    """
    uid = os.geteuid()
    if uid != 0:
        return Account(uid, os.getegid(), other=False)
    try:
        found = data.stat()
    except FileNotFoundError:
        return _nobody()
    if found.st_uid == 0:
        raise EmbeddedUnusable(
            f"{data} belongs to root, and PostgreSQL does not run as root.",
            remedy=f"chown -R {ROOT_RUNS_AS} it if it is yours, or choose another directory.",
        )
    return Account(found.st_uid, found.st_gid, other=True)


def _nobody() -> Account:
    try:
        entry = pwd.getpwnam(ROOT_RUNS_AS)
    except KeyError:
        raise EmbeddedUnusable(
            f"PostgreSQL does not run as root, and there is no account {ROOT_RUNS_AS} to run it as.",
            remedy="Run testigo as an ordinary user.",
        ) from None
    return Account(entry.pw_uid, entry.pw_gid, other=True)
