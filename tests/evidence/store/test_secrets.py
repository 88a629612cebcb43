"""A secret that reaches the insertion is in no table (spec D-14; field case R76)."""

from __future__ import annotations

import psycopg

from testigo.access.act import Order, act
from testigo.access.roles import Right, Role
from testigo.access.who import Via, Who
from testigo.evidence.analyses import begin_analysis, cancel_analysis
from testigo.evidence.exemptions import end_exemption, exempt
from testigo.evidence.gates import set_gate
from testigo.evidence.model import Identity
from testigo.evidence.review import advise, decide, decide_many, delete_finding
from testigo.rules.evidence.gate import DEFAULT
from testigo.rules.evidence.review import Advice, Decision
from testigo.rules.identity import content_digest
from tests.evidence.store.kit import asked, found, listed, one, published
from tests.world import World

MARKER = "ghp_" + "Zq7vXw3LmN8pRt5K" * 2 + "abcd"
"""A token as GitHub makes them: known by its form."""


def everything(url: str) -> str:
    """Every row of every table, as text."""
    with psycopg.connect(url, autocommit=True) as c:
        tables = c.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'testigo'").fetchall()
        rows = (c.execute(f'SELECT CAST(t AS text) FROM testigo."{table}" t').fetchall() for (table,) in tables)
        return "\n".join(text for found_rows in rows for (text,) in found_rows)


def test_what_is_known_for_a_secret_is_redacted_once_more_wherever_it_stands(world: World, database_url: str) -> None:
    """Findings whose redaction failed before; reasons, notes and advice of people who pasted one."""
    fingerprint = content_digest("a")
    made = found(
        "a",
        rule_name=f"title {MARKER}",
        message=f"the token {MARKER} is here",
        snippet=f'x = 1\ntoken = "{MARKER}"\n',
        metadata={"note": MARKER, f"name {MARKER}": "x"},
    )
    in_path = found("b", path=f"src/{MARKER}.py")
    analysis_id = published(world, made, in_path, source=f"https://{MARKER}@git.example.org/shop")
    target = one(world, analysis_id, "a").id
    said = f"it is revoked: {MARKER}"
    world.db.run(decide, target, Decision.IGNORE, expected_revision=1, reason=said, action=world.action())
    world.db.run(decide_many, analysis_id, {target: 2}, Decision.IGNORE, reason=said, action=world.action())
    world.db.run(advise, target, Advice("a-model", Decision.IGNORE, said), action=world.action())
    identity = Identity("ruff", fingerprint)
    world.db.run(exempt, "shop", identity, reason=said, action=world.action())
    world.db.run(end_exemption, "shop", identity, expected_revision=1, reason=said, action=world.action())
    other = asked()
    world.db.run(begin_analysis, other, action=world.action())
    world.db.run(cancel_analysis, other.id, reason=said, action=world.action())
    world.db.run(set_gate, "shop", DEFAULT, expected_revision=0, reason=said, action=world.action())
    who = Who("ana", Role.ADMIN, Via.CLI)
    order = Order(who, Right.FORGET, "findings.delete", ("finding:b",), world.action(who.actor), said)
    gone = one(world, analysis_id, "[redacted:github-token]").id
    world.db.run(act, order, lambda c: delete_finding(c, gone, expected_revision=1, reason=said, action=order.action))
    kept = everything(database_url)
    assert MARKER not in kept
    assert MARKER[4:] not in kept
    assert "[redacted:github-token]" in kept
    assert len(listed(world, analysis_id)) == 1
