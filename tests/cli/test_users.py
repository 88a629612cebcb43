"""`testigo user`: who may log in to the panel, and as what."""

from __future__ import annotations

import io
import sys
from typing import Any

import pytest

from testigo.access.passwords import verified
from testigo.access.users import Known, known
from testigo.store.database import Database
from tests.cli.conftest import Cli, Ran
from tests.cli.process import Terminal, piped
from tests.world import World

PASSWORD = "correct horse ß"

AUDIT = "SELECT actor, role, via, what, objects, reason, result FROM testigo.audit ORDER BY n"


@pytest.fixture
def add(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Add a user whose password comes on stdin."""

    def added(name: str, *options: str, password: str = PASSWORD) -> Ran:
        monkeypatch.setattr(sys, "stdin", io.StringIO(f"{password}\n"))
        return cli("user", "add", name, "--password-stdin", *options)

    return added


def the_user(db: Database, name: str = "ana") -> Known:
    """What is kept of a user who may log in."""
    found = db.run(known, name)
    assert found is not None
    return found


def test_a_user_is_added_with_a_role_and_a_password(add: Any, cli: Cli, db: Database) -> None:
    """Which is kept by its hash alone."""
    assert add("Ana", "--role", "operator").out == "ana may log in now, with the role operator.\n"
    user = the_user(db)
    assert (user.role, verified(user.password_hash, PASSWORD)) == ("operator", True)
    assert add("bea", "--json").json == {"name": "bea", "role": "viewer"}
    ran = add("ana")
    assert (ran.status, ran.err.splitlines()[0]) == (12, "STATE_CONFLICT: There is a user ana already.")


def test_the_password_is_asked_twice_on_a_terminal_and_not_shown(database_url: str, db: Database) -> None:
    """Two that differ are asked again."""
    terminal = Terminal.of("user", "add", "ana", url=database_url)
    for question, answer in (("Password: ", PASSWORD), ("Again: ", "another horse")):
        terminal.until(question)
        terminal.say(f"{answer}\n")
    for question in ("Password: ", "Again: "):
        terminal.shown = ""
        terminal.raw = ""
        terminal.until(question)
        terminal.say(f"{PASSWORD}\n")
    terminal.until("ana may log in now")
    assert terminal.end() == 0
    assert "horse" not in terminal.raw
    assert verified(the_user(db).password_hash, PASSWORD)


def test_without_a_terminal_somebody_has_to_say_where_the_password_comes_from(database_url: str) -> None:
    """Nothing is taken for one unasked."""
    process = piped("user", "add", "ana", url=database_url)
    _, told = process.communicate(f"{PASSWORD}\n")
    assert (process.returncode, "say --password-stdin" in told) == (2, True)


def test_a_password_is_in_no_answer_and_no_error(add: Any) -> None:
    """Whatever is wrong with it."""
    for password in ("horse", "horse" * 300, "ana"):
        ran = add("ana", password=password)
        assert (ran.status, ran.out) == (11, "")
        assert "8 to 1024 characters" in ran.err
        assert password == "ana" or password not in ran.err


def test_one_without_a_password_logs_in_by_other_means(cli: Cli, db: Database) -> None:
    """But not both."""
    assert cli("user", "add", "ana", "--no-password").status == 0
    assert the_user(db).password_hash is None
    assert cli("user", "add", "bea", "--no-password", "--password-stdin").status == 2


def test_users_are_listed(add: Any, cli: Cli) -> None:
    """With what they are, and not with what they log in by."""
    assert "testigo user add NAME --role admin" in cli("user", "list").err
    add("bea", "--role", "admin")
    cli("user", "add", "ana", "--no-password")
    cli("user", "disable", "ana")
    head, ana, bea = cli("user", "list").out.splitlines()
    assert head.split() == ["NAME", "ROLE", "PASSWORD", "CHANGED", "DISABLED"]
    assert (ana.split()[:3], bea.split()[:3]) == (["ana", "viewer", "none"], ["bea", "admin", "yes"])
    assert (len(ana.split()), len(bea.split())) == (5, 4)
    first = cli("user", "list", "--limit", "1", "--json").json
    assert [user["name"] for user in first["users"]] == ["ana"]
    assert "argon2" not in cli("user", "list", "--json").out
    assert [user["name"] for user in cli("user", "list", "--after", first["next"], "--json").json["users"]] == ["bea"]


def test_a_user_is_changed_and_told_whether_that_changed_anything(
    add: Any, cli: Cli, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The role, the password, and whether they may log in: not the last administrator."""
    add("ana")
    assert cli("user", "role", "Ana", "admin").out == "ana has the role admin now.\n"
    assert cli("user", "role", "ana", "admin", "--json").json == {"name": "ana", "changed": False}
    monkeypatch.setattr(sys, "stdin", io.StringIO("another horse\n"))
    assert cli("user", "password", "ana", "--password-stdin").out == "ana has another password now.\n"
    assert verified(the_user(db).password_hash, "another horse")
    assert cli("user", "disable", "ana").status == 12
    add("bea", "--role", "admin")
    assert cli("user", "disable", "ana", "--note", "left").out == "ana is disabled now.\n"
    assert cli("user", "disable", "ana").out == "ana was so already: nothing changed.\n"
    assert db.run(known, "ana") is None
    assert cli("user", "enable", "ana").out == "ana may log in again.\n"
    assert the_user(db).role == "admin"
    assert cli("user", "disable", "nobody").status == 13


def test_the_audit_tells_of_each_order(add: Any, cli: Cli, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of one that somebody gave in the panel."""
    monkeypatch.setattr("testigo.cli.call._user", lambda: "root")
    add("Ana")
    cli("user", "disable", "ANA", "--note", "left")
    told = [tuple(row) for row in world.query(AUDIT)]
    assert told == [
        ("cli:root", "admin", "cli", "users.add", ["user:ana"], "", "done"),
        ("cli:root", "admin", "cli", "users.disable", ["user:ana"], "left", "done"),
    ]


def test_without_argon2_it_is_said_what_to_install(add: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a part of an extra."""
    from testigo.access import passwords

    passwords._hasher.cache_clear()
    monkeypatch.setitem(sys.modules, "argon2", None)
    ran = add("ana")
    assert (ran.status, "pip install 'testigo[web]'" in ran.err) == (15, True)
