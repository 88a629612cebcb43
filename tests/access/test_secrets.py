"""No password, cookie, link or token is kept, logged or told, whatever happens (field case R76)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from testigo.access import passwords
from testigo.access.act import act, refused
from testigo.access.audit import audits
from testigo.access.logins import log_in, logins_of, make_link, use_link, who_logged_in
from testigo.access.roles import Right, Role
from testigo.access.secret import Secret
from testigo.access.throttle import begin_try
from testigo.access.tokens import NewToken, create_token, tokens, who_has_token
from testigo.access.users import add_user, known, replace_hash, set_password_hash, users
from testigo.authority.actions import Action
from testigo.errors import Error, Invalid
from testigo.store.database import Database
from testigo.store.failures import reason_of
from tests.access.people import People
from tests.world import World

PASSWORD = "correct-horse-battery"

TABLES = """
    SELECT relname
    FROM pg_class
    WHERE relnamespace = CAST('testigo' AS regnamespace) AND relkind = 'r'
"""


def everything(db: Database) -> tuple[list[str], list[object]]:
    """Do all that somebody does with secrets: those secrets, and every answer."""
    by = Action("tester")
    cookie, browser, linked, link, token = Secret.new(), Secret.new(), Secret.new(), Secret.new(), NewToken.new()
    kept = passwords.hashed(PASSWORD, name="ana")
    again = passwords.hashed(PASSWORD, name="ana")
    until = datetime.now(UTC) + timedelta(days=1)
    answers: list[object] = [cookie, link, token, db.run(add_user, "ana", Role.ADMIN, kept, action=by)]
    answers.append(db.run(begin_try, PASSWORD, "192.0.2.1", browser.digest))
    answers.append(db.run(known, "ana"))
    answers.append(db.run(replace_hash, "ana", kept, again))
    answers.append(db.run(log_in, "ana", cookie.digest, epoch=1, browser=browser.digest))
    answers.append(db.run(begin_try, "ana", "192.0.2.1", browser.digest))
    who = db.run(who_logged_in, cookie.digest)
    assert who is not None
    answers.append(db.run(make_link, "local", link.digest, action=Action("tester")))
    answers.append(db.run(use_link, link.digest, linked.digest))
    order = People(db).order(who, Right.MANAGE, "tokens.create", objects=("token:deploy",))
    digest = token.secret.digest
    create = partial(create_token, name="deploy", role=Role.VIEWER, expires_at=until, digest=digest, id=token.id)
    answers.append(db.run(act, order, lambda c: create(c, action=order.action)))
    answers.append(db.run(who_has_token, digest))
    answers += [db.run(users), db.run(tokens), db.run(audits), db.run(logins_of, "ana"), order]
    order = People(db).order(who, Right.READ, "users.password", objects=("user:ana",))
    answers.append(db.run(act, order, lambda c: set_password_hash(c, "ana", kept, action=order.action)))
    answers.append(db.run(refused, People(db).order(who), "FORBIDDEN"))
    secret = token.secret.text.rpartition("_")[2]
    return [PASSWORD, cookie.text, browser.text, linked.text, link.text, secret, kept, again], answers


def test_secrets_are_in_no_answer_and_no_log(db: Database, caplog: pytest.LogCaptureFixture) -> None:
    """Neither in a repr, nor in a line of any logger, the statements' own among them."""
    caplog.set_level(logging.DEBUG)
    logging.getLogger("sqlalchemy.engine").setLevel(logging.INFO)  # below it, SQLAlchemy logs each row that it reads
    try:
        secrets, answers = everything(db)
    finally:
        logging.getLogger("sqlalchemy.engine").setLevel(logging.NOTSET)
    told = repr(answers) + "".join(map(str, answers)) + caplog.text
    assert [secret for secret in secrets if secret in told] == []
    assert "argon2" not in told
    assert "testigo.login" in caplog.text, "the statements were not logged"


def test_secrets_are_in_no_row(db: Database, world: World) -> None:
    """But the hash of the password, where it belongs."""
    secrets, _ = everything(db)
    rows = {
        row.relname: [
            each.told for each in world.query(f"SELECT to_json(t) || '' AS told FROM testigo.{row.relname} t")
        ]
        for row in world.query(TABLES)
    }
    *texts, kept, _ = secrets
    found = {table for table, each in rows.items() for secret in texts if secret in "".join(each)}
    assert found == set()
    assert {table for table, each in rows.items() if kept in "".join(each)} == {"user"}


@pytest.mark.parametrize("table", ["user", "login", "link", "token", "login_try", "browser", "audit", "receipt"])
def test_secrets_are_in_no_error(db: Database, world: World, table: str) -> None:
    """Not even in one of the driver's, when a table is not what it should be; a hash is not in what we tell of it."""
    world.query(f"ALTER TABLE testigo.{table} ADD CHECK (false) NOT VALID")
    secrets: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        remember(patch, Secret, "new", lambda made: secrets.append(made.text))
        remember(patch, passwords, "hashed", secrets.append)
        with pytest.raises(Exception, match="violates check") as failure:
            everything(db)
    told = "".join(map(str, causes(failure.value))) + repr(failure.value)
    assert secrets
    texts = [secret for secret in (*secrets, PASSWORD) if not secret.startswith("$argon2")]
    assert [secret for secret in texts if secret in told] == []
    assert "argon2" not in reason_of(failure.value)


def test_a_password_is_in_no_refusal() -> None:
    """Of whatever is wrong with it."""
    with pytest.raises(Invalid) as refusal:
        passwords.hashed("secret!", name="ana")
    assert isinstance(refusal.value, Error)
    assert "secret!" not in f"{refusal.value} {refusal.value!r} {refusal.value.facts}"


def remember(patch: pytest.MonkeyPatch, owner: object, name: str, keep: Callable[[Any], object]) -> None:
    """Have what this makes kept as well."""
    make = getattr(owner, name)

    def making(*args: Any, **options: Any) -> Any:
        made = make(*args, **options)
        keep(made)
        return made

    patch.setattr(owner, name, making)


def causes(error: BaseException | None) -> list[BaseException]:
    """The error and all that lies behind it."""
    return [] if error is None else [error, *causes(error.__cause__ or error.__context__)]
