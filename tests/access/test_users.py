"""Users: added, changed, disabled and enabled, each once; and listed by their names."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from testigo.access.logins import log_in, make_link, use_link
from testigo.access.roles import Role
from testigo.access.secret import Secret
from testigo.access.users import (
    add_user,
    disable_user,
    enable_user,
    known,
    replace_hash,
    set_password_hash,
    set_role,
    users,
)
from testigo.authority.actions import Action
from testigo.authority.read import Cursor
from testigo.errors import CursorInvalid, Invalid, NotFound, StateConflict
from testigo.store.database import Database
from tests.races import deadlocks, race

CHANGES: list[Callable[..., Any]] = [
    partial(set_role, role=Role.ADMIN),
    partial(set_password_hash, password_hash="h2"),
    disable_user,
    enable_user,
]
NAMES = ["role", "password", "disable", "enable"]


def add(db: Database, name: str = "ana", role: Role = Role.OPERATOR, password_hash: str | None = "h1") -> Action:
    """Add a user, and return the action."""
    action = Action("tester")
    db.run(add_user, name, role, password_hash, action=action)
    return action


def test_a_user_is_added_once(db: Database) -> None:
    """Their name is kept in lower case; the same name again is refused, in whatever case, even if disabled."""
    action = Action("tester")
    first = db.run(add_user, "Ana", Role.OPERATOR, "h1", action=action)
    assert (first.name, first.epoch, first.changed, first.replayed) == ("ana", 1, True, False)
    assert db.run(add_user, "Ana", Role.OPERATOR, "h1", action=action).replayed
    db.run(disable_user, "ana", action=Action("tester"))
    with pytest.raises(StateConflict, match="There is a user ana already"):
        db.run(add_user, "aNA", Role.VIEWER, action=Action("tester"))


def test_of_two_who_add_one_name_one_succeeds(db: Database) -> None:
    """The other is told that there is such a user."""
    answers = race(db, *[partial(db.run, add_user, "ana", Role.VIEWER, action=Action(f"tester{n}")) for n in range(4)])
    assert sorted(type(answer).__name__ for answer in answers) == ["StateConflict"] * 3 + ["UserReceipt"]


@pytest.mark.parametrize("change", CHANGES, ids=NAMES)
def test_a_change_raises_the_epoch_once(db: Database, change: Callable[..., Any]) -> None:
    """However often it is sent under one action; what is so already changes nothing."""
    add(db)
    if change is enable_user:
        db.run(disable_user, "ana", action=Action("tester"))
    epoch = db.run(users).items[0].epoch
    action = Action("tester")
    first = db.run(change, "ana", action=action)
    again = db.run(change, "ana", action=action)
    assert (first.changed, first.epoch, first.replayed) == (True, epoch + 1, False)
    assert (again.changed, again.epoch, again.replayed) == (True, epoch + 1, True)
    assert db.run(users).items[0].epoch == epoch + 1
    other = db.run(change, "ana", action=Action("tester"))
    assert other.changed == (change is CHANGES[1])  # nobody can tell whether a password is the same


@pytest.mark.parametrize("change", CHANGES, ids=NAMES)
def test_a_user_that_is_not_there_is_not_found(db: Database, change: Callable[..., Any]) -> None:
    """By the name."""
    with pytest.raises(NotFound, match="There is no user nobody"):
        db.run(change, "nobody", action=Action("tester"))


def test_what_is_needed_to_log_in_is_told_of_those_who_may(db: Database) -> None:
    """Not of somebody who is disabled; and it is in no repr."""
    add(db)
    add(db, "bea", password_hash=None)
    ana, bea = db.run(known, "ANA"), db.run(known, "bea")
    assert ana is not None
    assert bea is not None
    assert (ana.name, ana.role, ana.epoch, ana.password_hash) == ("ana", Role.OPERATOR, 1, "h1")
    assert bea.password_hash is None
    assert "h1" not in repr(ana)
    db.run(disable_user, "ana", action=Action("tester"))
    assert db.run(known, "ana") is None
    assert db.run(known, "nobody") is None


def test_a_stronger_hash_of_the_same_password_ends_nothing(db: Database) -> None:
    """It replaces the very hash that was verified, and no other."""
    add(db)
    db.run(replace_hash, "ana", "h0", "h9")
    db.run(replace_hash, "ana", "h1", "h2")
    ana = db.run(known, "ana")
    assert ana is not None
    assert (ana.epoch, ana.password_hash) == (1, "h2")


def test_users_are_listed_by_their_names(db: Database) -> None:
    """Page by page, without what they log in by."""
    for name in ("cid", "ana", "bea"):
        add(db, name)
    first = db.run(users, limit=2)
    second = db.run(users, limit=2, after=first.next)
    assert [user.name for user in (*first.items, *second.items)] == ["ana", "bea", "cid"]
    assert second.next is None
    assert (first.items[0].has_password, first.items[0].disabled_at) == (True, None)
    assert "h1" not in repr(first)
    with pytest.raises(CursorInvalid):
        db.run(users, after=Cursor("x"))


@pytest.mark.parametrize("name", ["", " ana", "ana bea", "ana/bea", ".ana", "a" * 101, "\u0430na", None])
def test_a_name_that_could_be_mistaken_is_refused(db: Database, name: Any) -> None:
    """Letters of other scripts look like these, and the audit tells by names."""
    with pytest.raises(Invalid, match="name"):
        db.run(add_user, name, Role.VIEWER, action=Action("tester"))


def test_a_role_that_is_none_is_refused(db: Database) -> None:
    """With those that there are."""
    with pytest.raises(Invalid, match="viewer, operator, reviewer, admin"):
        db.run(add_user, "ana", "root", action=Action("tester"))  # type: ignore[arg-type]


@pytest.mark.parametrize("change", [disable_user, partial(set_role, role=Role.OPERATOR)], ids=["disable", "role"])
def test_the_last_administrator_remains(db: Database, change: Callable[..., Any]) -> None:
    """One who is disabled is none, nor is anybody else; what is so already is no change."""
    add(db, "ana", Role.ADMIN)
    add(db, "bea", Role.ADMIN)
    add(db, "cid", Role.OPERATOR)
    assert db.run(change, "bea", action=Action("tester")).changed
    with pytest.raises(StateConflict, match="ana is the last administrator") as refusal:
        db.run(change, "ana", action=Action("user:ana"))
    assert refusal.value.field == "name"
    assert not db.run(set_role, "ana", Role.ADMIN, action=Action("tester")).changed
    assert not db.run(change, "bea", action=Action("tester")).changed
    kept = db.run(known, "ana")
    assert kept is not None
    assert (kept.role, kept.epoch) == (Role.ADMIN, 1)
    assert db.run(set_role, "cid", Role.ADMIN, action=Action("tester")).changed
    assert db.run(change, "ana", action=Action("tester")).changed


@pytest.mark.parametrize("change", [disable_user, partial(set_role, role=Role.OPERATOR)], ids=["disable", "role"])
def test_an_administrator_who_cannot_log_in_is_none_that_remains(db: Database, change: Callable[..., Any]) -> None:
    """Neither without a password, nor by a link that somebody has to make: by a password or an issuer they can."""
    add(db, "ana", Role.ADMIN)
    link, made = Secret.new().digest, Secret.new().digest
    db.run(make_link, "local", link, action=Action("tester"))
    db.run(use_link, link, made)
    add(db, "ops", Role.ADMIN, None)
    with pytest.raises(StateConflict, match="ana is the last administrator"):
        db.run(change, "ana", action=Action("user:local"))
    db.run(log_in, "ops", Secret.new().digest, epoch=1)
    assert db.run(change, "ana", action=Action("tester")).changed
    with pytest.raises(StateConflict, match="ops is the last administrator"):
        db.run(change, "ops", action=Action("tester"))
    add(db, "bea", Role.ADMIN)
    assert db.run(change, "ops", action=Action("tester")).changed
    assert db.run(change, "local", action=Action("tester")).changed


@pytest.mark.parametrize("change", [disable_user, partial(set_role, role=Role.OPERATOR)], ids=["disable", "role"])
def test_the_only_administrator_remains_however_they_log_in(db: Database, change: Callable[..., Any]) -> None:
    """On a new installation it is `local`: without them, nobody would be there to make another one."""
    add(db, "local", Role.ADMIN, None)
    with pytest.raises(StateConflict, match="local is the last administrator"):
        db.run(change, "local", action=Action("user:local"))


@pytest.mark.parametrize("change", [disable_user, partial(set_role, role=Role.OPERATOR)], ids=["disable", "role"])
def test_of_administrators_who_end_each_other_one_remains(db: Database, change: Callable[..., Any]) -> None:
    """Whoever comes last is refused, though they looked while there were others."""
    names = ("ana", "bea", "cid")
    for name in names:
        add(db, name, Role.ADMIN)
    answers = race(db, *[partial(db.run, change, name, action=Action("tester")) for name in names])
    assert sorted(type(answer).__name__ for answer in answers) == ["StateConflict", "UserReceipt", "UserReceipt"]
    assert deadlocks(db) == 0


def test_an_issuer_of_logins_may_end_the_last_administrator(db: Database) -> None:
    """Who is one there is said there: what it takes from somebody does not stay theirs here."""
    add(db, "ana@login.example", Role.ADMIN)
    assert db.run(set_role, "ana@login.example", Role.VIEWER, issuer_says=True, action=Action("tester")).changed
