"""Tokens: shown once, kept by a digest, with a role and an end."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from testigo.access.roles import Role
from testigo.access.secret import Secret, digest_of
from testigo.access.tokens import NewToken, TokenReceipt, create_token, revoke_token, tokens, who_has_token
from testigo.access.users import add_user, disable_user, enable_user
from testigo.access.who import Via, Who
from testigo.authority.actions import Action
from testigo.errors import Invalid, NotFound, StateConflict
from testigo.store.database import Database
from tests.races import race
from tests.world import World


def create(
    db: Database, name: str = "deploy", token: NewToken | None = None, days: float = 30, action: Action | None = None
) -> tuple[NewToken, TokenReceipt]:
    """Create a token."""
    made = token or NewToken.new()
    until = datetime.now(UTC) + timedelta(days=days)
    by = action or Action("tester")
    return made, db.run(create_token, name, Role.OPERATOR, until, made.secret.digest, id=made.id, action=by)


def test_a_token_is_known_by_its_digest(db: Database, world: World) -> None:
    """Its text names its id, and is kept nowhere."""
    token, receipt = create(db)
    found = db.run(who_has_token, digest_of(token.secret.text))
    assert found == Who("deploy", Role.OPERATOR, Via.TOKEN, token.id)
    assert found is not None
    assert found.actor == "token:deploy"
    assert receipt == TokenReceipt(token.id, "deploy", changed=True, replayed=False)
    assert re.fullmatch(r"testigo_[0-9a-f]{32}_[0-9a-f]{64}", token.secret.text)
    assert token.id.replace("-", "") in token.secret.text
    kept = str([*world.query("SELECT * FROM testigo.token"), *world.query("SELECT * FROM testigo.receipt")])
    assert token.secret.text.rpartition("_")[2] not in kept


@pytest.mark.parametrize(
    "presented", ["", "testigo_", "\x00", "\ud800", "testigo_" + "0" * 32 + "_" + "0" * 64, "x" * 100_000]
)
def test_what_is_no_token_is_nobodys(db: Database, presented: str) -> None:
    """Whatever text it is."""
    create(db)
    assert db.run(who_has_token, digest_of(presented)) is None


def test_a_token_is_created_once(db: Database) -> None:
    """A resend is answered by its receipt; another one of that name is refused, even when it is revoked."""
    action, token = Action("tester"), NewToken.new()
    until = datetime.now(UTC) + timedelta(days=30)
    for replayed in (False, True):
        made = db.run(create_token, "deploy", Role.VIEWER, until, token.secret.digest, id=token.id, action=action)
        assert made.replayed == replayed
    db.run(revoke_token, "deploy", action=Action("tester"))
    with pytest.raises(StateConflict, match="token deploy already"):
        create(db)
    answers = race(db, *[partial(create, db, "other") for _ in range(4)])
    assert sum(isinstance(answer, StateConflict) for answer in answers) == 3


@pytest.mark.parametrize("days", [-1, 0, 367, 10_000])
def test_a_token_that_would_never_end_or_never_work_is_refused(db: Database, days: float) -> None:
    """A year is the most."""
    with pytest.raises(Invalid, match="366 days"):
        create(db, days=days)
    create(db, days=366)


def test_a_token_ends_by_the_databases_clock(db: Database, world: World) -> None:
    """At its expiry; and no earlier."""
    token, _ = create(db)
    for days, works in ((29.9, True), (0.2, False)):
        world.query("UPDATE testigo.token SET expires_at = expires_at - CAST(:d AS float8) * interval '1 day'", d=days)
        assert (db.run(who_has_token, token.secret.digest) is not None) == works
        assert db.run(tokens).items[0].works == works


def test_a_token_that_is_revoked_works_no_more(db: Database) -> None:
    """From the next request on; revoking it again changes nothing."""
    token, _ = create(db)
    action = Action("tester")
    first = db.run(revoke_token, "Deploy", action=action)
    assert (first.id, first.changed, first.replayed) == (token.id, True, False)
    assert db.run(revoke_token, "Deploy", action=action).replayed
    assert not db.run(revoke_token, "deploy", action=Action("tester")).changed
    assert db.run(who_has_token, token.secret.digest) is None
    with pytest.raises(NotFound, match="There is no token nobody"):
        db.run(revoke_token, "nobody", action=Action("tester"))


def test_the_tokens_that_a_user_made_end_with_them(db: Database) -> None:
    """Nobody's credentials are left behind; those that others made go on, and to be enabled again revives none."""
    db.run(add_user, "ana", Role.OPERATOR, action=Action("tester"))
    made = {}
    for maker in ("user:ana", "user:anas", "cli:root"):
        made[maker], until = NewToken.new(), datetime.now(UTC) + timedelta(days=1)
        digest, name = made[maker].secret.digest, f"of-{maker.partition(':')[2]}"
        db.run(create_token, name, Role.VIEWER, until, digest, id=made[maker].id, action=Action(maker))
    db.run(disable_user, "ana", action=Action("tester"))
    db.run(enable_user, "ana", action=Action("tester"))
    works = {maker: db.run(who_has_token, token.secret.digest) is not None for maker, token in made.items()}
    assert works == {"user:ana": False, "user:anas": True, "cli:root": True}


def test_the_last_use_is_noted_once_a_minute(db: Database, world: World) -> None:
    """Not at every request, and without a wait for whoever holds the row."""
    token, _ = create(db)

    def look() -> Who | None:
        return db.run(who_has_token, token.secret.digest)

    look()
    first = db.run(tokens).items[0].used_at
    assert first is not None
    look()
    assert db.run(tokens).items[0].used_at == first
    world.query("UPDATE testigo.token SET used_at = used_at - interval '61 seconds'")
    with db._open().connect() as holder:
        holder.exec_driver_sql("BEGIN")
        holder.exec_driver_sql("SELECT FROM testigo.token FOR SHARE")
        assert look() is not None
        holder.exec_driver_sql("COMMIT")
    look()
    used = db.run(tokens).items[0].used_at
    assert used is not None
    assert used > first


def test_tokens_are_listed_from_the_newest(db: Database) -> None:
    """Page by page, with who made them."""
    for name in ("a", "b", "c"):
        create(db, name)
    first = db.run(tokens, limit=2)
    second = db.run(tokens, limit=2, before=first.next)
    assert [token.name for token in (*first.items, *second.items)] == ["c", "b", "a"]
    assert (first.items[0].actor, first.items[0].role, first.items[0].used_at) == ("tester", Role.OPERATOR, None)


@pytest.mark.parametrize("given", [{"name": "a b"}, {"token": NewToken("no id", Secret("x"))}])
def test_a_token_that_is_none_is_refused(db: Database, given: dict[str, Any]) -> None:
    """By the field."""
    with pytest.raises(Invalid):
        create(db, **given)


def test_secrets_are_in_no_repr() -> None:
    """So that they come into no log, traceback or error by an accident."""
    token = NewToken.new()
    for shown in (repr(token), str(token), repr(token.secret), f"{token.secret}", str([token])):
        assert token.secret.text not in shown
