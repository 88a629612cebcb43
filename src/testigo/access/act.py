"""act: whatever somebody changes through a door, in one transaction with its audit row (panel.md *Access*).

    order = Order(who, Right.CANCEL, "jobs.cancel", (f"job:{job}",), reason=note, action=Action(who.actor))
    await db.run(act, order, lambda c: cancel(c, [job], note=note, action=order.action))

In this order: unless this very order was done before, the login or token is looked at again under a
lock, and its role has the right; every job that was seen still has the revision that was seen. The
command runs; the row is written. What is
refused leaves nothing; whoever sent the order then sends `refused`, which records that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from sqlalchemy import Connection

from testigo.access.audit import AuditEntry, Result, record
from testigo.access.roles import RIGHTS, Right, Role
from testigo.access.who import Via, Who, forbidden
from testigo.authority.actions import Action, JobId
from testigo.authority.jobs import existing, lock
from testigo.authority.receipts import digest_of, expired
from testigo.errors import ActionIdCollision, Denied, Forbidden, Invalid, RevisionMismatch, Unauthenticated
from testigo.rules import fields
from testigo.rules.discreet import discreet
from testigo.rules.text import tidy
from testigo.settings import LIMITS
from testigo.store.sql import Statement

__all__ = ["NEEDS_REASON", "Order", "act", "refused"]

R = TypeVar("R")

NEEDS_REASON = frozenset({Right.FORGET, Right.REDACT})
"""What is not done without a reason; nor is anything that is done to several objects at once."""

_DENIALS = frozenset({Denied.code, Unauthenticated.code, Forbidden.code})


@dataclass(frozen=True, slots=True)
class Order:
    """What somebody wants done: by which right, to what, why, and under which action.

    `what` names the command for the audit (`jobs.cancel`), `objects` what it is done to, by scope and
    name: `job:<id>`, `queue:media`, `user:ana`. The action's actor is `who.actor`. `expected` are
    revisions, by job, without which the order is not meant. `address` and `request` say where it came
    from, and the id of that request.
    """

    who: Who
    right: Right
    what: str
    objects: tuple[str, ...]
    action: Action
    reason: str = ""
    address: str | None = None
    request: str | None = None
    expected: Mapping[JobId, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        fields.name(self.what, field="what")
        fields.sequence(self.objects, field="objects", most=LIMITS.page_max)
        for each in self.objects:
            fields.key(each, field="objects")
        if self.action.actor != self.who.actor:
            raise Invalid("the action is of another actor than the order", field="action.actor", limit=self.who.actor)
        if not self.reason.strip() and (self.right in NEEDS_REASON or len(self.objects) > 1):
            raise Invalid("This is not done without a reason.", field="reason", limit="at least 1 character")
        for job_id, revision in self.expected.items():
            fields.must_be_id(job_id, field="expected")
            fields.whole(revision, field="expected", low=0, high=fields.INTEGER_MAX)

    @property
    def digest(self) -> str:
        """What is the same in a resend."""
        return digest_of(self.action, "act", [self.what, self.right, list(self.objects), self.reason])


# An action that is as old as receipts that were pruned may have had one: it is not executed again.
_DONE = Statement(
    """
    SELECT a.digest, a.asked_at <= i.receipt_floor AS past
    FROM testigo.installation i
         JOIN testigo.audit a ON a.actor = :actor AND a.action = :action AND coalesce(a.code, '') = ''
    """
)

_USER = Statement(
    """
    SELECT u.role
    FROM testigo.user u
    WHERE u.name = :name AND u.epoch = :epoch AND u.disabled_at IS NULL
      AND EXISTS (SELECT FROM testigo.login l WHERE l.id = CAST(:credential AS uuid))
    FOR SHARE OF u
    """
)

_TOKEN = Statement(
    """
    SELECT t.role
    FROM testigo.token t
    WHERE t.id = CAST(:credential AS uuid) AND t.revoked_at IS NULL AND t.expires_at > now()
    FOR SHARE
    """
)

# An order that changes users holds all of them, its own among them, before it goes on, and all administrators, of
# whom one has to remain: two administrators who change each other meet here, and not in a circle.
_USERS = Statement(
    """
    SELECT
    FROM testigo.user
    WHERE name = ANY (CAST(:names AS text[])) OR (:administrators AND role = 'admin')
    ORDER BY name
    FOR NO KEY UPDATE
    """
)


def act(c: Connection, order: Order, command: Callable[[Connection], R]) -> R:
    """Do what was ordered, if who ordered it still may and what they saw is still so, and record it.

    `command` is a command of the order's action, so that a resend is answered by its receipt. Then
    neither is looked at again, for the command itself may have changed both, and nothing is recorded twice.
    Raises `Unauthenticated` for a login or token that has ended, `Forbidden`, `RevisionMismatch` with
    the facts `job`, `state` and `revision`, `NotFound` for an expected job that is not there,
    `ActionIdCollision` and `ReceiptExpired` as commands do, and whatever the command raises.
    """
    role = None if _is_done(c, order) else _checked(c, order)
    answer = command(c)
    if role is not None:
        record(c, _entry(order, role, Result.DONE))
    return answer


def refused(c: Connection, order: Order, code: str) -> None:
    """Record that an order was not done, and the code of the error by which; `act` has left nothing of it."""
    result = Result.DENIED if code in _DENIALS else Result.REFUSED
    record(c, _entry(order, order.who.role, result, code))


def _checked(c: Connection, order: Order) -> Role | None:
    """The role by which it may be done; None if what is in its way is its own effect, which another send waited for."""
    try:
        role = _still_allowed(c, order)
        _check_expected(c, order)
    except (Denied, RevisionMismatch):
        if not _is_done(c, order):
            raise
        return None
    return role


def _still_allowed(c: Connection, order: Order) -> Role:
    """The role of who ordered it, now; their row is locked, so that it stays so until the commit."""
    who = order.who
    if who.via in (Via.CLI, Via.OIDC):
        return who.role
    users = [each.removeprefix("user:") for each in order.objects if each.startswith("user:")]
    if users:
        names = sorted({who.name, *users} if who.via is not Via.TOKEN else users)
        _USERS.rows(c, names=names, administrators=order.right is Right.MANAGE)
    if who.via is Via.TOKEN:
        row = _TOKEN.row(c, credential=who.credential)
    else:
        row = _USER.row(c, name=who.name, epoch=who.epoch, credential=who.credential)
    if row is None:
        raise Unauthenticated("The token or login has ended.", remedy="Log in again, or send another token.")
    role = Role(row.role)
    if order.right not in RIGHTS[role]:
        raise forbidden(role, order.right)
    return role


def _is_done(c: Connection, order: Order) -> bool:
    """Whether this very order was done before."""
    row = _DONE.row(c, actor=order.who.actor, action=order.action.id)
    if row is None:
        return False
    if row.digest != order.digest:
        raise ActionIdCollision("This action id was used before with other content.")
    if row.past:
        raise expired(order.action.id)
    return True


def _check_expected(c: Connection, order: Order) -> None:
    """Lock what was seen, and refuse what has changed since."""
    if not order.expected:
        return
    for job in existing(lock(c, order.expected), order.expected):
        seen = order.expected[job.id]
        if job.revision != seen:
            raise RevisionMismatch(
                f"The job {job.id} is {job.state} at revision {job.revision}, and no longer at {seen}.",
                field="expected",
                job=job.id,
                state=str(job.state),
                revision=job.revision,
            )


def _entry(order: Order, role: Role, result: Result, code: str | None = None) -> AuditEntry:
    who = order.who
    return AuditEntry(
        who=Who(who.name, role, who.via, who.credential, who.epoch),
        what=order.what,
        objects=order.objects,
        reason=discreet(order.reason).strip(),
        result=result,
        action=order.action,
        digest=order.digest,
        code=code,
        address=None if order.address is None else tidy(order.address, bytes_max=LIMITS.name_chars_max),
        request=None if order.request is None else tidy(order.request, bytes_max=LIMITS.name_chars_max),
    )
