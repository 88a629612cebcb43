"""act: who may do what, what is seen still stands, one action has one effect and one row (panel.md *Access*)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from testigo.access.act import NEEDS_REASON, Order, act, refused
from testigo.access.logins import log_out
from testigo.access.roles import RIGHTS, Right, Role
from testigo.access.tokens import revoke_token
from testigo.access.users import disable_user, set_password_hash, set_role
from testigo.access.who import Via, Who
from testigo.authority.actions import Action, new_id
from testigo.authority.cancel import cancel
from testigo.authority.jobs import lock
from testigo.authority.prune import prune_receipts
from testigo.errors import (
    ActionIdCollision,
    Forbidden,
    Invalid,
    NotFound,
    ReceiptExpired,
    RevisionMismatch,
    Unauthenticated,
)
from tests.access.people import People
from tests.races import deadlocks, in_line, race
from tests.world import World

Ending = Callable[[People, Who], object]

MAY: dict[Role, set[str]] = {
    Role.VIEWER: {"read"},
    Role.OPERATOR: {"read", "documents", "audit", "submit", "cancel", "retry", "unblock", "pause", "drain"},
    Role.REVIEWER: {"read", "documents", "audit", "review"},
    Role.ADMIN: set(Right),
}
"""What each role may do, as people were told: repeated here, so that a slip in the table shows."""


@pytest.mark.parametrize("asks", [People.user, People.program], ids=["by login", "by token"])
@pytest.mark.parametrize("role", Role)
def test_each_role_may_do_what_it_may_and_nothing_else(
    people: People, role: Role, asks: Callable[[People, Role], Who]
) -> None:
    """Every right of every role through the one door that all doors use; what is refused leaves nothing."""
    who = asks(people, role)
    for right in Right:
        ran: list[object] = []
        order = people.order(who, right, f"try.{right}")
        if right in MAY[role]:
            people.db.run(act, order, ran.append)
        else:
            with pytest.raises(Forbidden, match=f"{role} has no right to {right}") as refusal:
                people.db.run(act, order, ran.append)
            assert refusal.value.facts == {
                "right": right,
                "role": role,
                "roles": [each for each in Role if right in RIGHTS[each]],
            }
        assert len(ran) == (right in MAY[role])
    assert [row.what for row in people.audit()] == [f"try.{right}" for right in Right if right in MAY[role]]


def test_what_was_done_is_recorded_with_who_and_why(people: People, world: World) -> None:
    """In the transaction of its effect: who, by which login, what, to what, why, from where, how it ended."""
    who = people.user()
    (job,) = world.submit()
    order = people.order(who, objects=(f"job:{job}",), reason=" enough\x00\ud800 ", address="192.0.2.1", request="r-1")
    people.cancel(order, [job])
    (row,) = people.audit()
    assert (row.n, row.actor, row.role, row.via, row.credential) == (1, "user:ana", "operator", "login", who.credential)
    assert (row.what, row.objects, row.reason, row.result, row.code) == (
        "jobs.cancel",
        [f"job:{job}"],
        "enough\ufffd\ufffd",
        "done",
        None,
    )
    assert (row.action, row.asked_at) == (order.action.id, order.action.created_at)
    assert (row.address, row.request) == ("192.0.2.1", "r-1")
    assert world.state(job) == "cancelled"


def test_a_command_that_is_refused_leaves_no_row_but_the_refusal(people: People, world: World) -> None:
    """Nothing of it is there; its door then records it, with the error's code, once."""
    who = people.user()
    (job,) = world.submit()
    order = people.order(who)
    with pytest.raises(NotFound):
        people.cancel(order, [job, new_id()])  # type: ignore[list-item]
    assert people.audit() == []
    assert world.state(job) == "ready"
    for code in ("NOT_FOUND", "NOT_FOUND", "FORBIDDEN", "UNAUTHENTICATED"):
        people.db.run(refused, order, code)
    told = [(row.result, row.code) for row in people.audit()]
    assert told == [("refused", "NOT_FOUND"), ("denied", "FORBIDDEN"), ("denied", "UNAUTHENTICATED")]


def test_an_order_that_was_refused_may_be_given_again(people: People, world: World) -> None:
    """Under the same action: a refusal is no receipt."""
    who = people.user()
    (job,) = world.submit()
    order = people.order(who)
    people.db.run(refused, order, "KEY_BUSY")
    people.cancel(order, [job])
    assert [row.result for row in people.audit()] == ["refused", "done"]


def test_the_same_action_twice_has_one_effect_and_one_row(people: People, world: World) -> None:
    """Though it has changed the revision that it expects: the resend is answered by the receipt (field case R74)."""
    who = people.user()
    (job,) = world.submit()
    order = people.order(who, expected={job: world.job(job).revision})
    first = people.cancel(order, [job])
    second = people.cancel(order, [job])
    assert second == replace(first, replayed=True)
    assert len(people.audit()) == 1
    assert world.events(job) == ["job.requested", "job.cancelled"]


def test_a_double_click_has_one_effect_and_one_row(people: People, world: World) -> None:
    """Both are under way at once, and neither sees the other's row when it begins (field case R74)."""
    who = people.user()
    for _ in range(10):
        (job,) = world.submit()
        order = people.order(who, expected={job: world.job(job).revision})
        answers = race(people.db, *[partial(people.cancel, order, [job])] * 3)
        assert sorted(answer.replayed for answer in answers) == [False, True, True]
    assert len(people.audit()) == 10


def test_a_second_click_that_waits_for_the_first_finds_it_done(people: People, world: World) -> None:
    """At the very lock of the job that both expect."""
    who = people.user()
    (job,) = world.submit()
    order = people.order(who, expected={job: world.job(job).revision})
    send = partial(act, order=order, command=lambda c: cancel(c, [job], note="why", action=order.action))
    first, second = in_line(people.db, send, partial(people.db.run, send))
    assert (first.replayed, second.replayed) == (False, True)
    assert len(people.audit()) == 1


def test_the_same_action_with_other_content_is_refused(people: People, world: World) -> None:
    """An action that was done cannot be made to pass for another one's resend."""
    who = people.user()
    first, second = world.submit()[0], world.submit()[0]
    order = people.order(who, objects=(f"job:{first}",))
    people.cancel(order, [first])
    for other in ({"objects": (f"job:{second}",)}, {"reason": "other"}, {"what": "jobs.other"}, {"right": Right.PAUSE}):
        with pytest.raises(ActionIdCollision):
            people.cancel(replace(order, **other), [second])
    assert world.state(second) == "ready"


def test_who_ended_their_own_login_by_an_order_is_told_that_it_was_done(people: People) -> None:
    """A resend finds it, though that login is not valid any more: at once, later, or behind the first (spec B-04)."""
    for name in ("ana", "bea"):
        order = people.order(people.user(name=name), Right.READ, "users.password", objects=(f"user:{name}",))
        send = partial(set_password_hash, name=name, password_hash="h", action=order.action)
        sent = partial(act, order=order, command=send)
        first, second = in_line(people.db, sent, partial(people.db.run, sent))
        assert (first.replayed, second.replayed, people.db.run(sent).replayed) == (False, True, True)
        with pytest.raises(Unauthenticated):
            people.db.run(act, people.order(order.who, Right.READ, "users.password"), send)
    assert len(people.audit()) == 2


def test_an_order_older_than_the_receipts_is_not_carried_out_again(people: People, world: World) -> None:
    """The audit outlives the receipts, so that it knows of the order; the receipt would not (spec P-04)."""
    who = people.user()
    (job,) = world.submit()
    order = people.order(who)
    people.cancel(order, [job])
    while people.db.run(prune_receipts, older_than_days=0).more:
        pass
    with pytest.raises(ReceiptExpired):
        people.cancel(order, [job])
    assert len(people.audit()) == 1


@pytest.mark.parametrize("change", [-1, 1], ids=["older", "newer"])
def test_a_job_that_changed_since_it_was_seen_is_left_alone(people: People, world: World, change: int) -> None:
    """The refusal tells its state and its revision now."""
    who = people.user()
    (job,) = world.submit()
    revision = world.job(job).revision
    with pytest.raises(RevisionMismatch) as refusal:
        people.cancel(people.order(who, expected={job: revision + change}), [job])
    assert refusal.value.facts == {"job": job, "state": "ready", "revision": revision}
    assert (world.state(job), people.audit()) == ("ready", [])


def test_a_job_that_changes_while_the_order_waits_for_it_is_left_alone(people: People, world: World) -> None:
    """What was seen is looked at under the job's lock."""
    who = people.user()
    (job,) = world.submit()
    order = people.order(who, expected={job: world.job(job).revision})
    other = partial(cancel, ids=[job], action=world.action())
    _, answer = in_line(people.db, other, partial(people.cancel, order, [job]))
    assert isinstance(answer, RevisionMismatch)


def test_a_job_that_is_gone_is_not_found(people: People) -> None:
    """Whoever has seen it is told so."""
    with pytest.raises(NotFound):
        people.db.run(act, people.order(people.user(), expected={new_id(): 1}), lambda c: None)


def disabled(people: People, who: Who) -> object:
    """The user was disabled."""
    return people.db.run(disable_user, who.name, action=Action("tester"))


def demoted(people: People, who: Who) -> object:
    """The user has another role."""
    return people.db.run(set_role, who.name, Role.VIEWER, action=Action("tester"))


def logged_out(people: People, who: Who) -> object:
    """The login was ended elsewhere."""
    ended = "SELECT digest FROM testigo.login WHERE id = CAST(:id AS uuid)"
    (row,) = World(people.db).query(ended, id=who.credential)
    return people.db.run(log_out, row.digest)


def revoked(people: People, who: Who) -> object:
    """The token was revoked."""
    return people.db.run(revoke_token, who.name, action=Action("tester"))


@pytest.mark.parametrize("ending", [disabled, demoted, logged_out])
def test_a_login_that_ends_between_the_page_and_the_post_changes_nothing(
    people: People, world: World, ending: Ending
) -> None:
    """Who was let in when the page was asked for is looked at again in the transaction of the effect."""
    who = people.user()
    (job,) = world.submit()
    order = people.order(who)
    ending(people, who)
    with pytest.raises(Unauthenticated):
        people.cancel(order, [job])
    assert world.state(job) == "ready"


def test_a_token_that_is_revoked_between_two_looks_changes_nothing(people: People, world: World) -> None:
    """As with logins."""
    who = people.program()
    (job,) = world.submit()
    revoked(people, who)
    with pytest.raises(Unauthenticated):
        people.cancel(people.order(who), [job])
    assert world.state(job) == "ready"


@pytest.mark.parametrize(
    ("asks", "ending"), [(People.user, disabled), (People.user, demoted), (People.program, revoked)]
)
def test_an_ending_waits_for_what_is_under_way_and_what_comes_later_sees_it(
    people: People, world: World, asks: Callable[[People], Who], ending: Ending
) -> None:
    """No effect commits after the answer that its owner may do nothing more."""
    who = asks(people)
    (job,) = world.submit()
    order = people.order(who)

    def under_way(c: Any) -> object:
        return act(c, order, lambda c: cancel(c, [job], note="why", action=order.action))

    _, ended = in_line(people.db, under_way, partial(ending, people, who))
    assert ended.changed
    assert world.state(job) == "cancelled"
    with pytest.raises(Unauthenticated):
        people.cancel(people.order(who), [job])


@pytest.mark.parametrize("right", sorted(NEEDS_REASON))
def test_what_destroys_needs_a_reason(people: People, right: Right) -> None:
    """So does what is done to several at once."""
    who = people.user(Role.ADMIN)
    for given in ({"right": right, "reason": "  "}, {"objects": ("job:1", "job:2"), "reason": ""}):
        with pytest.raises(Invalid, match="reason"):
            people.order(who, **given)


def test_an_order_is_of_whoever_sends_its_action(people: People) -> None:
    """Nobody acts in another's name."""
    with pytest.raises(Invalid, match=r"action\.actor"):
        people.order(people.user(), action=Action("user:bea"))


@pytest.mark.parametrize(
    "given",
    [
        {"what": ""},
        {"what": "a\nb"},
        {"objects": ("",)},
        {"objects": "job"},
        {"objects": ("x" * 600,)},
        {"expected": {"no id": 1}},
        {"expected": {"0197f3c2-a1b4-7000-8000-000000000000": -1}},
    ],
)
def test_an_order_that_is_none_is_refused(people: People, given: dict[str, Any]) -> None:
    """By the field that is wrong."""
    with pytest.raises(Invalid):
        people.order(Who("root", Role.ADMIN, Via.CLI), **given)


def test_administrators_who_change_each_other_do_not_wait_in_a_circle(people: People) -> None:
    """Each order takes the rows of all whom it names in the order of their names (spec P-08)."""
    ana, bea, _ = (people.user(Role.ADMIN, name) for name in ("ana", "bea", "cid"))

    def change(who: Who, name: str) -> Callable[[Any], object]:
        order = people.order(who, Right.MANAGE, "users.role", objects=(f"user:{name}",))
        return lambda c: act(c, order, lambda c: set_role(c, name, Role.VIEWER, action=order.action))

    def both(c: Any) -> object:
        return change(ana, "bea")(c)

    first, second = in_line(people.db, both, partial(people.db.run, change(bea, "ana")))
    assert first.changed
    assert isinstance(second, Unauthenticated)  # the first has ended her login
    assert deadlocks(people.db) == 0


def test_orders_of_many_at_once_meet_no_deadlock(people: People, world: World) -> None:
    """Rows of users, jobs, streams and receipts, and the head of the audit last (spec P-08)."""
    everybody = [people.user(Role.ADMIN, name) for name in ("ana", "bea", "cid")]
    jobs = sorted(world.submit()[0] for _ in range(6))

    def cancels(who: Who) -> None:
        for job in jobs:
            order = people.order(who, objects=(f"job:{job}",), expected={job: world.job(job).revision})
            try:
                people.cancel(order, [job])
            except RevisionMismatch as mismatch:
                people.db.run(refused, order, mismatch.code)

    def sees(who: Who) -> None:
        for _ in jobs:
            order = people.order(who, Right.READ, "users.look", objects=(f"user:{who.name}",))
            people.db.run(act, order, lambda c: lock(c, jobs[:1]))

    race(people.db, *(partial(cancels, who) for who in everybody), *(partial(sees, who) for who in everybody))
    rows = people.audit()
    assert [row.n for row in rows] == list(range(1, 2 * len(jobs) * len(everybody) + 1))
    assert deadlocks(people.db) == 0


def test_the_command_line_is_asked_nothing_and_recorded(people: People, world: World) -> None:
    """It has the database's own credentials; the audit says so."""
    order = Order(Who("root", Role.ADMIN, Via.CLI), Right.CANCEL, "jobs.cancel", ("job:1",), Action("cli:root"))
    people.cancel(order, world.submit())
    (row,) = people.audit()
    assert (row.actor, row.via, row.credential) == ("cli:root", "cli", "")
