"""An operation goes on in the name of who began it: no longer than they may do it themselves."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from testigo.access.logins import end_logins
from testigo.access.roles import Right, Role
from testigo.access.standing import must_still
from testigo.access.tokens import NewToken, create_token, revoke_token
from testigo.access.users import add_user, disable_user, enable_user, set_password_hash, set_role
from testigo.authority.submissions import NewJob
from testigo.operations import Operation, OperationState, Outcome, Selection, Verb, advance, begin, items, operation
from tests.races import in_line
from tests.world import World

Change = Callable[[World], object]


def half_done(world: World, actor: str, verb: Verb = Verb.CANCEL) -> Operation:
    """An operation of an actor's that has done one of its two jobs."""
    jobs = tuple(world.submit(*(NewJob("work", queue="q") for _ in range(2))))
    going = world.db.run(begin, verb, Selection(jobs), reason="a test", action=world.action(actor))
    world.db.run(advance, 1)
    return world.db.run(operation, going.id)


def user(world: World, role: Role = Role.OPERATOR) -> None:
    """A user."""
    world.db.run(add_user, "ana", role, action=world.action())


def token(world: World) -> None:
    """A token of an operator."""
    made, until = NewToken.new(), datetime.now(UTC) + timedelta(days=1)
    digest = made.secret.digest
    world.db.run(create_token, "deploy", Role.OPERATOR, until, digest, id=made.id, action=world.action())


ENDS: dict[str, tuple[str, Change, str]] = {
    "disabled": ("user:ana", lambda w: w.db.run(disable_user, "ana", action=w.action()), "disabled"),
    "of another role": ("user:ana", lambda w: w.db.run(set_role, "ana", Role.REVIEWER, action=w.action()), "no right"),
    "revoked": ("token:deploy", lambda w: w.db.run(revoke_token, "deploy", action=w.action()), "revoked"),
    "expired": ("token:deploy", lambda w: w.query("UPDATE testigo.token SET expires_at = now()"), "expired"),
    "nobody": ("user:bea", lambda _: None, "disabled"),
}
"""Who began it, what becomes of them, and what is told of that."""


@pytest.mark.parametrize("case", list(ENDS))
def test_it_ends_with_the_right_of_who_began_it(world: World, case: str) -> None:
    """The rest is left as it was, what was done stays told, and so does why it ended; others go on."""
    actor, change, why = ENDS[case]
    user(world)
    token(world)
    going = half_done(world, actor)
    change(world)
    other = half_done(world, "cli:root")
    while world.db.run(advance) is not None:
        pass
    over = world.db.run(operation, going.id)
    assert (over.state, over.stopped_by) == (OperationState.STOPPED, None)
    assert why in (over.hindrance or "")
    assert over.ended_at is not None
    done = [item.outcome for item in world.db.run(items, going.id).items]
    assert done == ([Outcome.WAITING] * 2 if case == "nobody" else [Outcome.DONE, Outcome.WAITING])
    assert world.db.run(operation, other.id).done == 2


STAYS: dict[str, Change] = {
    "logged out": lambda w: w.db.run(end_logins, "ana"),
    "of another password": lambda w: w.db.run(set_password_hash, "ana", "a hash", action=w.action()),
    "administrator": lambda w: w.db.run(set_role, "ana", Role.ADMIN, action=w.action()),
}


@pytest.mark.parametrize("case", list(STAYS))
def test_it_outlives_the_login_that_it_began_by(world: World, case: str) -> None:
    """Whoever may still do it need not be there."""
    user(world)
    going = half_done(world, "user:ana")
    STAYS[case](world)
    world.db.run(advance)
    assert world.db.run(operation, going.id).state is OperationState.DONE


def test_who_is_disabled_waits_for_the_step_under_way_and_none_follows(world: World) -> None:
    """The row of whoever began it is held until the step commits."""
    user(world)
    going = half_done(world, "user:ana")
    in_line(
        world.db,
        lambda c: must_still(c, "user:ana", Right.CANCEL),
        lambda: world.db.run(disable_user, "ana", action=world.action()),
    )
    world.db.run(advance)
    assert world.db.run(operation, going.id).waiting == 1
    world.db.run(enable_user, "ana", action=world.action())
    assert world.db.run(advance) is None
