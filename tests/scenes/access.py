"""Scenes of access: users, logins, links and tokens, and orders that somebody gives through a door."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from testigo.access.act import Order, act, refused
from testigo.access.logins import log_in, make_link, use_link
from testigo.access.roles import Right, Role
from testigo.access.throttle import begin_try
from testigo.access.tokens import NewToken, create_token, revoke_token
from testigo.access.users import add_user, disable_user, enable_user, set_password_hash, set_role
from testigo.access.who import Who
from testigo.authority.cancel import cancel
from tests.scenes.call import Call, call, scene
from tests.world import World

DIGEST = "sha256:" + "0" * 64
LINK = "sha256:" + "1" * 64


@scene(act)
def cancel_a_job_that_was_seen(world: World) -> Call:
    """Somebody who is logged in has seen its revision."""
    who = somebody(world)
    (job,) = world.submit()
    order = Order(
        who,
        Right.CANCEL,
        "jobs.cancel",
        (f"job:{job}",),
        world.action(who.actor),
        "enough",
        expected={job: world.job(job).revision},
    )
    return call(act, order, lambda c: cancel(c, [job], note="enough", action=order.action))


@scene(act)
def change_ones_own_password(world: World) -> Call:
    """Which ends the very login by which it was ordered, so that a resend is refused: it was done."""
    who = somebody(world)
    order = Order(who, Right.READ, "users.password", ("user:ana",), world.action(who.actor))
    return call(act, order, lambda c: set_password_hash(c, "ana", "h2", action=order.action))


@scene(refused)
def record_a_refusal(world: World) -> Call:
    """It is recorded once."""
    who = somebody(world)
    order = Order(who, Right.CANCEL, "jobs.cancel", ("job:1",), world.action(who.actor))
    return call(refused, order, "NOT_FOUND")


@scene(add_user)
def add_a_user(world: World) -> Call:
    """One whom nobody knew."""
    return call(add_user, "ana", Role.VIEWER, "h1", action=world.action()).but("ana", Role.ADMIN, "h1")


@scene(set_role)
def give_a_user_another_role(world: World) -> Call:
    """Their logins end."""
    somebody(world)
    return call(set_role, "ana", Role.VIEWER, action=world.action()).but("ana", Role.REVIEWER)


@scene(set_password_hash)
def give_a_user_another_password(world: World) -> Call:
    """Their logins end."""
    somebody(world)
    return call(set_password_hash, "ana", "h2", action=world.action()).but("bea", "h2")


@scene(disable_user)
def disable_a_user(world: World) -> Call:
    """Who was logged in."""
    somebody(world)
    return call(disable_user, "ana", action=world.action()).but("bea")


@scene(enable_user)
def enable_a_user(world: World) -> Call:
    """Who was disabled."""
    somebody(world)
    world.db.run(disable_user, "ana", action=world.action())
    return call(enable_user, "ana", action=world.action()).but("bea")


@scene(log_in)
def log_a_user_in(world: World) -> Call:
    """Whose password was verified at the third try, in a browser that is known from now on."""
    world.db.run(add_user, "ana", Role.VIEWER, "h1", action=world.action())
    counted = [world.db.run(begin_try, "ana", "192.0.2.1") for _ in range(3)][-1]
    return call(log_in, "ana", DIGEST, epoch=1, counted=counted, browser=LINK)


@scene(make_link)
def make_a_link_that_logs_in_once(world: World) -> Call:
    """For somebody who is not there yet."""
    return call(make_link, "local", LINK, action=world.action()).but("other", LINK)


@scene(use_link)
def use_a_link_that_logs_in_once(world: World) -> Call:
    """It was made just now."""
    world.db.run(make_link, "local", LINK, action=world.action())
    return call(use_link, LINK, DIGEST)


@scene(create_token)
def create_a_token(world: World) -> Call:
    """One that nobody has."""
    token, until = NewToken.new(), datetime.now(UTC) + timedelta(days=30)
    given = {"id": token.id, "action": world.action()}
    return call(create_token, "deploy", Role.VIEWER, until, DIGEST, **given).but("other", Role.VIEWER, until, DIGEST)


@scene(revoke_token)
def revoke_a_token(world: World) -> Call:
    """One that works."""
    token, until = NewToken.new(), datetime.now(UTC) + timedelta(days=30)
    world.db.run(create_token, "deploy", Role.VIEWER, until, DIGEST, id=token.id, action=world.action())
    return call(revoke_token, "deploy", action=world.action()).but("other")


def somebody(world: World) -> Who:
    """An operator who has just logged in."""
    world.db.run(add_user, "ana", Role.OPERATOR, "h1", action=world.action())
    return world.db.run(log_in, "ana", DIGEST, epoch=1).who
