"""The audit: rows that are added and never changed, in a chain that shows it when one was (panel.md *Access*)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg import sql

from testigo.access.act import act
from testigo.access.audit import Verified, audits, verify
from testigo.access.prune import prune_access
from testigo.access.roles import Right, Role
from testigo.access.who import Who
from testigo.authority.read import Cursor
from testigo.errors import CursorInvalid, Invalid
from testigo.rules.identity import digest
from testigo.settings import LIMITS
from testigo.store.database import Database
from tests.access.people import People
from tests.store.roles import as_role, ordinary_role
from tests.world import World

TRIGGERED = "the audit is added to and does not change"


@pytest.fixture
def who(people: People) -> Who:
    """Somebody who does things."""
    return people.user(Role.ADMIN)


@pytest.fixture
def behind(database_url: str) -> Iterator[psycopg.Connection]:
    """A connection that no trigger stops, as an attacker with the server's superuser has."""
    options = "-c session_replication_role=replica"
    with psycopg.connect(database_url, autocommit=True, options=options) as connection:
        yield connection


def do(people: People, who: Who, count: int, **given: Any) -> None:
    """Have something done so often."""
    for _ in range(count):
        people.db.run(act, people.order(who, Right.READ, "try.it", **given), lambda c: None)


def whole(people: People, page: int = LIMITS.page_max) -> list[Verified]:
    """Verify the whole chain, so many rows at a time."""
    found = [people.db.run(verify, limit=page)]
    while found[-1].more:
        found.append(people.db.run(verify, after=found[-1].upto, limit=page))
    return found


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE testigo.audit SET reason = 'another' WHERE n = 2",
        "DELETE FROM testigo.audit WHERE n = 2",
        "DELETE FROM testigo.audit",
        "TRUNCATE testigo.audit",
        "UPDATE testigo.audit_head SET floor = 3; DELETE FROM testigo.audit WHERE n = 2",
    ],
)
def test_no_row_is_changed_or_deleted(people: People, who: Who, database_url: str, change: str) -> None:
    """The database refuses it, even to the owner of the schema, and even behind a floor: the row is too young."""
    do(people, who, 3)
    with psycopg.connect(database_url) as owner, pytest.raises(psycopg.Error, match=TRIGGERED) as refusal:
        owner.execute(change)
    assert refusal.value.sqlstate == "TG002"
    assert len(people.audit()) == 3


def test_a_role_that_owns_nothing_serves_the_panel_and_cannot_stop_the_triggers(
    people: People, who: Who, server_url: str, database_url: str, world: World
) -> None:
    """With the rights that the guide says: it acts, reads, verifies and prunes, and the audit stays as it is."""
    with ordinary_role(server_url) as role, psycopg.connect(database_url, autocommit=True) as owner:
        name = sql.Identifier(role)
        owner.execute(sql.SQL("GRANT USAGE ON SCHEMA testigo TO {}").format(name))
        owner.execute(
            sql.SQL("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA testigo TO {}").format(name)
        )
        with Database(as_role(database_url, role)) as restricted:
            theirs = People(restricted)
            theirs.cancel(theirs.order(theirs.again()), world.submit())
            assert whole(theirs)[-1].upto == 1
            restricted.run(prune_access)
        with psycopg.connect(as_role(database_url, role), autocommit=True) as hand:
            for change in (
                "UPDATE testigo.audit SET reason = 'another'",
                "ALTER TABLE testigo.audit DISABLE TRIGGER ALL",
                "SET session_replication_role = replica",
                "TRUNCATE testigo.audit",
            ):
                with pytest.raises(psycopg.Error, match=f"{TRIGGERED}|must be owner|permission denied"):
                    hand.execute(change)
        owner.execute(sql.SQL("DROP OWNED BY {}").format(name))


def test_a_whole_chain_is_verified_page_by_page(people: People, who: Who) -> None:
    """From its beginning to its head, and in between."""
    assert whole(people) == [Verified(0, 0, None, more=False, chain="")]
    do(people, who, 5)
    rows = people.audit()
    assert whole(people) == [Verified(5, 5, None, more=False, chain=rows[-1].chain)]
    assert [(each.checked, each.upto, each.broken, each.more) for each in whole(people, 2)] == [
        (2, 2, None, True),
        (2, 4, None, True),
        (1, 5, None, False),
    ]
    assert people.db.run(verify, after=5).broken is None


def test_anybody_can_verify_a_row(people: People, who: Who) -> None:
    """Its chain is the digest that the documentation describes, made here by hand."""
    do(people, who, 2, objects=("job:1", "job:2"))
    first, second = people.audit()
    members: dict[str, Any] = dict(second._mapping)
    chain = members.pop("chain")
    for name in ("at", "asked_at"):
        members[name] = round(members[name].timestamp() * 1_000_000)
    assert chain == digest("audit", {**members, "previous": first.chain})


def test_whatever_is_told_comes_back_as_it_was(people: People, who: Who) -> None:
    """Quotes, markup, other scripts and what looks like syntax are text, and the chain holds over them."""
    odd = ('queue:a"b\\c,{d}', "NULL", "job:<b>&amp;</b>", "kind:ñandú 🐎", "queue:'; DROP TABLE testigo.audit; --")
    do(people, who, 1, objects=odd, reason="<script>alert(1)</script>\n'\"\\", address="::1%eth0", request=odd[0])
    (row,) = people.db.run(audits, object=odd[0]).items
    assert (row.objects, row.reason, row.request) == (odd, "<script>alert(1)</script>\n'\"\\", odd[0])
    assert whole(people)[-1].broken is None
    for each in odd:
        assert people.db.run(audits, object=each).items == (row,)


def test_the_chain_holds_in_whatever_time_zone_it_is_read(people: People, who: Who, database_url: str) -> None:
    """Times are counted in microseconds of UTC."""
    do(people, who, 2)
    for zone in ("America/Caracas", "Asia/Kathmandu"):
        with Database(database_url, pool_size=1) as elsewhere:
            elsewhere.run(lambda c, zone=zone: c.exec_driver_sql(f"SET timezone = '{zone}'"))  # type: ignore[misc]
            do(People(elsewhere), who, 1)
            assert whole(People(elsewhere))[-1].broken is None
            assert elsewhere.run(lambda c: c.exec_driver_sql("SHOW timezone").scalar()) == zone
    assert whole(people)[-1].upto == 4


@pytest.mark.parametrize(
    "column",
    [
        *("at", "actor", "role", "via", "credential", "what", "objects", "reason", "result", "code", "action"),
        *("asked_at", "digest", "address", "request", "chain"),
    ],
)
def test_a_row_that_was_changed_behind_the_triggers_is_found(
    people: People, who: Who, behind: psycopg.Connection, column: str
) -> None:
    """Whatever of it was changed, and however the rows around it are paged."""
    do(people, who, 5, address="192.0.2.1", request="r")
    changed = {"at": "at - interval '1 s'", "asked_at": "at", "objects": "'{job:9}'", "result": "'denied'"}
    behind.execute(f"UPDATE testigo.audit SET {column} = {changed.get(column, repr('x'))} WHERE n = 3")
    for page in (1, 2, 100):
        found = whole(people, page)[-1]
        assert (found.broken, found.upto, found.more) == (3, 2, False)


@pytest.mark.parametrize(("removed", "broken"), [(1, 1), (3, 3), (5, 5)])
def test_a_row_that_was_removed_behind_the_triggers_is_found(
    people: People, who: Who, behind: psycopg.Connection, removed: int, broken: int
) -> None:
    """Even the last: the head remembers it."""
    do(people, who, 5)
    behind.execute("DELETE FROM testigo.audit WHERE n = %s", (removed,))
    assert [whole(people, page)[-1].broken for page in (1, 2, 100)] == [broken] * 3


def test_a_row_that_was_added_behind_the_triggers_is_found(
    people: People, who: Who, behind: psycopg.Connection
) -> None:
    """What the head does not know of is no part of the chain."""
    do(people, who, 2)
    behind.execute(
        """
        CREATE TEMP TABLE forged AS SELECT * FROM testigo.audit WHERE n = 2;
        UPDATE forged SET n = 3, action = 'forged';
        INSERT INTO testigo.audit TABLE forged;
        UPDATE testigo.audit_head SET n = 3
        """
    )
    assert whole(people)[-1].broken == 3


def test_rows_are_listed_from_the_newest_page_by_page(people: People, who: Who) -> None:
    """Of whom, what, to which object, and when."""
    do(people, who, 3, objects=("job:1",))
    other = people.user(Role.VIEWER, "bea")
    do(people, other, 2, objects=("job:1", "job:2"))
    run = people.db.run
    assert [row.n for row in run(audits).items] == [5, 4, 3, 2, 1]
    first = run(audits, limit=2)
    second = run(audits, limit=2, before=first.next)
    third = run(audits, limit=2, before=second.next)
    assert [row.n for page in (first, second, third) for row in page.items] == [5, 4, 3, 2, 1]
    assert third.next is None
    assert [row.n for row in run(audits, who="user:bea").items] == [5, 4]
    assert [row.n for row in run(audits, object="job:2").items] == [5, 4]
    assert run(audits, what="try").items == ()
    assert len(run(audits, what="try.it").items) == 5
    rows = people.audit()
    assert [row.n for row in run(audits, since=rows[2].at).items] == [5, 4, 3]
    assert [row.n for row in run(audits, until=rows[2].at).items] == [2, 1]
    assert [row.n for row in run(audits, since=rows[1].at, until=rows[3].at).items] == [3, 2]
    later = rows[-1].at + timedelta(days=1)
    assert run(audits, since=later).items == run(audits, until=rows[0].at).items == ()
    assert len(run(audits, until=later).items) == 5
    assert run(audits).items[-1].objects == ("job:1",)


def test_a_search_looks_at_a_bounded_number_of_rows(people: People, who: Who, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is rare is found over several pages, of which some are empty and say so."""
    do(people, who, 1, objects=("job:rare",))
    do(people, who, 5)
    monkeypatch.setattr("testigo.access.audit.LIMITS", LIMITS.__class__(walk_rows=2))
    page = people.db.run(audits, object="job:rare")
    seen = [page]
    while page.next:
        page = people.db.run(audits, object="job:rare", before=page.next)
        seen.append(page)
    assert [(len(each.items), each.complete) for each in seen][:3] == [(0, False), (0, False), (1, False)]
    assert [row.n for each in seen for row in each.items] == [1]


@pytest.mark.parametrize("cursor", ["", "x", "AAAA", "🙂"])
def test_a_cursor_of_elsewhere_is_refused(people: People, who: Who, cursor: str) -> None:
    """Forged, or of the same listing under another question."""
    do(people, who, 3)
    with pytest.raises(CursorInvalid):
        people.db.run(audits, before=Cursor(cursor))
    other = people.db.run(audits, who="user:ana", limit=1).next
    with pytest.raises(CursorInvalid):
        people.db.run(audits, before=other, limit=1)


@pytest.mark.parametrize("asked", [{"limit": 0}, {"who": ""}, {"what": "\n"}, {"since": "today"}])
def test_a_question_that_is_none_is_refused(people: People, asked: dict[str, Any]) -> None:
    """By its field."""
    with pytest.raises(Invalid):
        people.db.run(audits, **asked)


def test_what_is_old_is_pruned_and_the_chain_stays_whole(
    people: People, who: Who, behind: psycopg.Connection, world: World
) -> None:
    """After 400 days; the head remembers where the chain begins since then."""
    do(people, who, 5)
    age(behind, world, upto=3)
    assert people.db.run(prune_access, limit=2) == (2, True)
    assert people.db.run(prune_access, limit=2) == (1, False)
    assert people.db.run(prune_access) == (0, False)
    assert [row.n for row in people.audit()] == [4, 5]
    assert whole(people)[-1] == Verified(2, 5, None, more=False, chain=people.audit()[-1].chain)
    assert people.db.run(verify, after=1).checked == 2
    do(people, who, 1)
    assert whole(people)[-1].upto == 6


def age(behind: psycopg.Connection, world: World, *, upto: int) -> None:
    """Let the first rows be as old as if they had been written 401 days ago, and the chain be made for that."""
    chain = ""
    for row in world.query("SELECT * FROM testigo.audit ORDER BY n"):
        members = dict(row._mapping)
        at = row.at - timedelta(days=401) if row.n <= upto else row.at
        own = members | {"at": round(at.timestamp() * 1_000_000), "previous": chain}
        own["asked_at"] = round(row.asked_at.timestamp() * 1_000_000)
        del own["chain"]
        chain = digest("audit", own)
        behind.execute("UPDATE testigo.audit SET at = %s, chain = %s WHERE n = %s", (at, chain, row.n))
    behind.execute("UPDATE testigo.audit_head SET chain = %s", (chain,))
