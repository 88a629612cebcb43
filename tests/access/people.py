"""Short words for who asks: people who logged in, programs with tokens, and what they order."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from testigo.access.act import Order, act
from testigo.access.logins import log_in
from testigo.access.roles import Right, Role
from testigo.access.secret import Secret
from testigo.access.tokens import NewToken, create_token, who_has_token
from testigo.access.users import add_user
from testigo.access.who import Who
from testigo.authority.actions import Action, JobId, new_id
from testigo.authority.cancel import Cancelled, cancel
from testigo.store.database import Database
from testigo.store.sql import Statement

__all__ = ["People"]

_AUDIT = Statement("SELECT * FROM testigo.audit ORDER BY n")


class People:
    """The people of an installation, seen by a test."""

    def __init__(self, db: Database) -> None:
        self.db = db

    def user(self, role: Role = Role.OPERATOR, name: str = "ana") -> Who:
        """A new user, who has just logged in."""
        self.db.run(add_user, name, role, action=Action("tester"))
        return self.again(name)

    def again(self, name: str = "ana", epoch: int = 1) -> Who:
        """The same user, logged in by another browser."""
        return self.db.run(log_in, name, Secret.new().digest, epoch=epoch).who

    def program(self, role: Role = Role.OPERATOR, name: str = "deploy") -> Who:
        """A program with a new token."""
        token = NewToken.new()
        until = datetime.now(UTC) + timedelta(days=1)
        self.db.run(create_token, name, role, until, token.secret.digest, id=token.id, action=Action("tester"))
        found = self.db.run(who_has_token, token.secret.digest)
        assert found is not None
        return found

    def order(self, who: Who, right: Right = Right.CANCEL, what: str = "jobs.cancel", **more: Any) -> Order:
        """What somebody orders, under a new action unless it is given."""
        given: dict[str, Any] = {"objects": ("job:1",), "reason": "why", "action": Action(who.actor, new_id())}
        return Order(who, right, what, **{**given, **more})

    def cancel(self, order: Order, jobs: Sequence[JobId]) -> Cancelled:
        """Carry out an order to cancel these jobs."""
        return self.db.run(act, order, lambda c: cancel(c, jobs, note=order.reason, action=order.action))

    def audit(self) -> list[Any]:
        """Every row of the audit, in its order."""
        return self.db.run(lambda c: _AUDIT.rows(c))
