"""`testigo token`: what programs send to the API instead of a password."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from testigo.access.secret import digest_of
from testigo.access.tokens import who_has_token
from testigo.store.database import Database
from tests.cli.conftest import Cli
from tests.world import World

EVERYTHING = """
    SELECT string_agg(told, ' ') AS told
    FROM (SELECT to_json(a) || '' AS told FROM testigo.audit a
          UNION ALL SELECT to_json(r) || '' FROM testigo.receipt r
          UNION ALL SELECT to_json(t) || '' FROM testigo.token t) AS rows
"""


def test_a_token_is_printed_once_and_nowhere_kept(cli: Cli, db: Database, world: World) -> None:
    """On stdout alone, so that it can be piped; what is to be known of it is said on stderr."""
    ran = cli("token", "create", "Deploy", "--role", "operator", "--days", "30")
    text = ran.out.strip()
    found = db.run(who_has_token, digest_of(text))
    assert found is not None
    assert (found.name, found.role) == ("deploy", "operator")
    assert ran.err.startswith("This is shown once. It has the role operator and works until ")
    secret = text.rpartition("_")[2]
    assert len(secret) == 64
    assert secret not in ran.err
    assert secret not in world.query(EVERYTHING)[0].told
    assert secret not in cli("token", "list", "--json").out


def test_a_token_is_told_in_json_as_well(cli: Cli, db: Database) -> None:
    """With when it ends."""
    told = cli("token", "create", "deploy", "--json").json
    assert (told["name"], told["role"]) == ("deploy", "viewer")
    days = datetime.fromisoformat(told["expires_at"]) - datetime.now(UTC)
    assert timedelta(days=89) < days <= timedelta(days=90)
    found = db.run(who_has_token, digest_of(told["token"]))
    assert found is not None
    assert found.credential == told["id"]


@pytest.mark.parametrize("arguments", [["--days", "0"], ["--days", "367"], ["--role", "root"]])
def test_a_token_that_would_be_none_is_a_misuse(cli: Cli, arguments: list[str]) -> None:
    """Before anything is asked of the database."""
    assert cli("token", "create", "deploy", *arguments).status == 2


def test_tokens_are_listed_with_their_state(cli: Cli, world: World) -> None:
    """Those that work no more among them."""
    assert "testigo token create NAME" in cli("token", "list").err
    for name in ("a", "b", "c"):
        cli("token", "create", name)
    cli("token", "revoke", "a", "--yes")
    world.query("UPDATE testigo.token SET expires_at = now() WHERE name = 'b'")
    head, *lines = cli("token", "list").out.splitlines()
    assert head.split()[:5] == ["NAME", "ROLE", "STATE", "EXPIRES", "USED"]
    assert [(line.split()[0], line.split()[2]) for line in lines] == [
        ("c", "works"),
        ("b", "expired"),
        ("a", "revoked"),
    ]
    first = cli("token", "list", "--limit", "2", "--json").json
    rest = cli("token", "list", "--after", first["next"], "--json").json
    assert [token["name"] for token in first["tokens"] + rest["tokens"]] == ["c", "b", "a"]


def test_a_token_is_revoked_for_good(cli: Cli, db: Database, world: World) -> None:
    """Whoever does it says so, and why if they like; the audit tells it."""
    text = cli("token", "create", "deploy").out.strip()
    assert cli("token", "revoke", "deploy").status == 2
    ran = cli("token", "revoke", "Deploy", "--yes", "--note", "was in a log")
    assert ran.out == "The token deploy is revoked.\n"
    assert cli("token", "revoke", "deploy", "--yes").out == "The token deploy was revoked already: nothing changed.\n"
    assert db.run(who_has_token, digest_of(text)) is None
    assert cli("token", "revoke", "nobody", "--yes").status == 13
    told = world.query("SELECT what, objects, reason FROM testigo.audit ORDER BY n")
    assert [tuple(row) for row in told][:2] == [
        ("tokens.create", ["token:deploy"], ""),
        ("tokens.revoke", ["token:deploy"], "was in a log"),
    ]
