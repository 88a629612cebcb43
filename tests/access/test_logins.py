"""Logins and links: known by a digest, ended by time, by hand and by any change of the user."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from testigo.access.logins import Login, end_logins, log_in, log_out, logins_of, make_link, use_link, who_logged_in
from testigo.access.prune import prune_access
from testigo.access.roles import Role
from testigo.access.secret import Secret
from testigo.access.users import disable_user, enable_user, known, set_password_hash, set_role, users
from testigo.access.who import Via, Who
from testigo.authority.actions import Action, new_id
from testigo.errors import Invalid, StateConflict, Unauthenticated
from tests.access.people import People
from tests.races import in_line, race
from tests.world import World


def logged_in(people: People, name: str = "ana", epoch: int = 1) -> Secret:
    """The secret of a new login."""
    secret = Secret.new()
    people.db.run(log_in, name, secret.digest, epoch=epoch)
    return secret


def test_a_login_is_known_by_its_secrets_digest(people: People, world: World) -> None:
    """Who it is, by what, since which epoch; the secret itself is nowhere."""
    people.user(Role.OPERATOR)
    secret = Secret.new()
    login = people.db.run(log_in, "Ana", secret.digest, epoch=1)
    who = people.db.run(who_logged_in, secret.digest)
    assert who == login.who == Who("ana", Role.OPERATOR, Via.LOGIN, login.who.credential, 1)
    assert people.db.run(who_logged_in, Secret.new().digest) is None
    (row,) = world.query("SELECT * FROM testigo.login WHERE digest = :digest", digest=secret.digest)
    assert secret.text not in str(row)
    assert login.expires_at == row.expires_at


def test_a_login_whose_answer_was_lost_is_found_again(people: People, world: World) -> None:
    """The same secret is the same login."""
    people.user()
    secret = Secret.new()
    first = people.db.run(log_in, "ana", secret.digest, epoch=1)
    assert people.db.run(log_in, "ana", secret.digest, epoch=1) == first


def test_nobody_logs_in_as_another_with_a_digest_that_is_taken(people: People) -> None:
    """A digest is one login's."""
    people.user()
    people.user(name="bea")
    secret = logged_in(people)
    with pytest.raises(Unauthenticated):
        people.db.run(log_in, "bea", secret.digest, epoch=1)


CHANGES: list[Callable[..., Any]] = [
    partial(set_role, role=Role.VIEWER),
    partial(set_password_hash, password_hash="h"),
    disable_user,
]


@pytest.mark.parametrize("change", CHANGES, ids=["role", "password", "disabled"])
def test_each_change_of_the_user_ends_their_logins(people: People, change: Callable[..., Any]) -> None:
    """At the next look, for all of them; a password that was verified before it logs nobody in."""
    people.user()
    secrets = [logged_in(people) for _ in range(2)]
    people.db.run(change, "ana", action=Action("tester"))
    assert [people.db.run(who_logged_in, secret.digest) for secret in secrets] == [None, None]
    with pytest.raises(Unauthenticated):
        logged_in(people)


def test_enabling_a_user_brings_no_login_back(people: People) -> None:
    """They log in anew."""
    people.user()
    secret = logged_in(people)
    people.db.run(disable_user, "ana", action=Action("tester"))
    people.db.run(enable_user, "ana", action=Action("tester"))
    assert people.db.run(who_logged_in, secret.digest) is None
    user = people.db.run(known, "ana")
    assert user is not None
    assert people.db.run(who_logged_in, logged_in(people, epoch=user.epoch).digest) is not None


def test_a_user_who_is_changed_meanwhile_is_not_logged_in(people: People) -> None:
    """Whoever verified the password waits for the change, and is refused."""
    people.user()
    change = partial(set_password_hash, name="ana", password_hash="h", action=Action("tester"))
    _, answer = in_line(people.db, change, partial(logged_in, people))
    assert isinstance(answer, Unauthenticated)


def test_a_login_ends_by_the_databases_clock(people: People, world: World) -> None:
    """When it is too old, and when it was not used for too long; a use is written at most once a minute."""
    people.user()
    secret = logged_in(people)

    def look() -> Who | None:
        return people.db.run(who_logged_in, secret.digest)

    def later(column: str, hours: float) -> None:
        world.query(
            f"UPDATE testigo.login SET {column} = {column} - {hours} * interval '1 hour' WHERE digest = :d",
            d=secret.digest,
        )

    def seen() -> Any:
        return world.query("SELECT seen_at FROM testigo.login WHERE digest = :d", d=secret.digest)[0].seen_at

    at_first = seen()
    assert look() is not None
    assert seen() == at_first
    later("seen_at", 11.9)
    assert look() is not None
    assert seen() > at_first
    later("seen_at", 12.1)
    assert look() is None
    later("seen_at", -12.1)
    assert look() is not None
    later("expires_at", 167.9)
    assert look() is not None
    later("expires_at", 0.2)
    assert look() is None
    assert people.db.run(prune_access).pruned == 1
    assert not world.query("SELECT FROM testigo.login WHERE digest = :d", d=secret.digest)


def test_whoever_logs_out_is_logged_out(people: People) -> None:
    """Of that login alone, and as often as it is asked."""
    people.user()
    one, other = logged_in(people), logged_in(people)
    people.db.run(log_out, one.digest)
    people.db.run(log_out, one.digest)
    assert people.db.run(who_logged_in, one.digest) is None
    assert people.db.run(who_logged_in, other.digest) is not None


def test_all_logins_of_a_user_can_be_ended_but_one(people: People) -> None:
    """As `log out everywhere else` does."""
    who = people.user()
    logged_in(people), logged_in(people)
    assert people.db.run(end_logins, "ana", but=who.credential) == 2
    assert people.db.run(end_logins, "ana") == 1
    assert people.db.run(end_logins, "ana") == 0


def test_the_logins_of_a_user_are_listed_the_last_used_first(people: People, world: World) -> None:
    """Those that have not ended, with how they began, and not their secrets."""
    people.user()
    first, second, ended = logged_in(people), logged_in(people), logged_in(people)
    world.query("UPDATE testigo.login SET expires_at = now() WHERE digest = :d", d=ended.digest)
    world.query("UPDATE testigo.login SET seen_at = seen_at + interval '1 second' WHERE digest = :d", d=first.digest)
    found = people.db.run(logins_of, "Ana")
    ids = [people.db.run(who_logged_in, secret.digest) for secret in (first, second)]
    assert found[0].id == (ids[0] and ids[0].credential)
    assert {each.via for each in found} == {Via.LOGIN}
    assert len(found) == 3  # the two, and the one that came with the user
    people.db.run(disable_user, "ana", action=Action("tester"))
    assert people.db.run(logins_of, "ana") == ()


def a_link(people: People, name: str = "local") -> Secret:
    """The secret of a new link."""
    link = Secret.new()
    people.db.run(make_link, name, link.digest, action=Action("cli:root"))
    return link


def test_a_link_logs_in_once(people: People) -> None:
    """As an administrator who has no password; whoever comes second is refused."""
    link, cookie = a_link(people), Secret.new()
    login = people.db.run(use_link, link.digest, cookie.digest)
    assert (login.who.name, login.who.role, login.who.via) == ("local", Role.ADMIN, Via.LINK)
    assert people.db.run(who_logged_in, cookie.digest) == login.who
    with pytest.raises(Unauthenticated, match="used already"):
        people.db.run(use_link, link.digest, Secret.new().digest)


def test_a_link_that_many_use_at_once_logs_one_in(people: People) -> None:
    """Exactly one (issue 5)."""
    for _ in range(10):
        link = a_link(people)
        answers = race(
            people.db, *[partial(people.db.run, use_link, link.digest, Secret.new().digest) for _ in range(5)]
        )
        assert sorted(type(answer).__name__ for answer in answers) == ["Login"] + ["Unauthenticated"] * 4


def test_a_link_whose_user_has_not_committed_is_waited_for(people: People) -> None:
    """At the link's own row: the second finds it used; if the first was undone, it may have it."""
    for undone in (False, True):
        link = a_link(people)
        first = partial(use_link, link=link.digest, digest=Secret.new().digest)
        second = partial(people.db.run, use_link, link.digest, Secret.new().digest)
        _, answer = in_line(people.db, first, second, undone=undone)
        assert isinstance(answer, Login if undone else Unauthenticated)


def test_the_use_of_a_link_whose_answer_was_lost_is_found_again(people: People) -> None:
    """By the same cookie's digest."""
    link, cookie = a_link(people), Secret.new()
    first = people.db.run(use_link, link.digest, cookie.digest)
    assert people.db.run(use_link, link.digest, cookie.digest) == first


def test_a_link_ends_by_the_databases_clock(people: People, world: World) -> None:
    """After 15 minutes, and it is forgotten later."""
    link = a_link(people)
    world.query("UPDATE testigo.link SET expires_at = expires_at - interval '15 minutes'")
    with pytest.raises(Unauthenticated, match="expired"):
        people.db.run(use_link, link.digest, Secret.new().digest)
    world.query("UPDATE testigo.link SET expires_at = expires_at - interval '2 hours'")
    assert people.db.run(prune_access).pruned == 1


def test_a_link_is_worth_no_more_than_its_user(people: People) -> None:
    """Who has a role keeps it; who was disabled since the link was made, or before, is not let in."""
    people.user(Role.VIEWER)
    login = people.db.run(use_link, a_link(people, "ana").digest, Secret.new().digest)
    assert login.who.role is Role.VIEWER
    link = a_link(people, "ana")
    people.db.run(disable_user, "ana", action=Action("tester"))
    with pytest.raises(Unauthenticated):
        people.db.run(use_link, link.digest, Secret.new().digest)
    with pytest.raises(StateConflict, match="disabled"):
        a_link(people, "ana")
    assert [user.name for user in people.db.run(users).items] == ["ana"]


@pytest.mark.parametrize("name", ["", "a b", "ana\n", "-ana", "ana:bea", "x" * 101, "añá", 1])
def test_a_name_that_is_none_is_refused(people: People, name: Any) -> None:
    """By its field; looking for it says only that nobody has it."""
    with pytest.raises(Invalid, match="name"):
        people.db.run(log_in, name, Secret.new().digest, epoch=1)
    assert people.db.run(known, name) is None


def test_a_login_of_nobody_is_refused(people: People) -> None:
    """As of somebody who was disabled."""
    with pytest.raises(Unauthenticated):
        people.db.run(log_in, "nobody", new_id(), epoch=1)
