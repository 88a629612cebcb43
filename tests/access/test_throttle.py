"""Failed logins make the next ones wait, in the database; and whoever has the password gets in all the same."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from testigo.access.logins import log_in
from testigo.access.prune import prune_access
from testigo.access.roles import Role
from testigo.access.secret import Secret
from testigo.access.throttle import begin_own_try, begin_try, forgive
from testigo.access.users import disable_user, set_password_hash, set_role
from testigo.authority.actions import Action
from testigo.errors import TooManyRequests
from testigo.settings import ACCESS
from tests.access.people import People
from tests.races import deadlocks, in_line, race
from tests.world import World

Try = Callable[..., Any]

ROWS = "SELECT scope, tries FROM testigo.login_try ORDER BY scope, value"
WAIT = """
    SELECT CAST(round(extract(epoch FROM next_at - last_at)) AS integer) AS seconds
    FROM testigo.login_try
    WHERE scope = 'address'
"""
HERE = "192.0.2.1"
CHANGES: dict[Callable[..., Any], tuple[object, ...]] = {
    set_password_hash: ("a hash",),
    set_role: (Role.VIEWER,),
    disable_user: (),
}
"""What changes a user, and to what."""


@pytest.fixture
def tries(people: People, monkeypatch: pytest.MonkeyPatch) -> Try:
    """Try to log in, and fail unless it is refused before; no wait is over before a slow machine has looked."""
    patient = replace(ACCESS, tries_wait_first_seconds=ACCESS.tries_wait_cap_seconds)
    monkeypatch.setattr("testigo.access.throttle.ACCESS", patient)
    return lambda name="ana", address=HERE, browser=None: people.db.run(begin_try, name, address, browser)


def fail(tries: Try, *given: Any, times: int = ACCESS.tries_free) -> None:
    """Fail so often."""
    for _ in range(times):
        tries(*given)


def pass_seconds(world: World, seconds: float) -> None:
    """Let the database's clock be so much later than all that is remembered."""
    world.query(
        """
        UPDATE testigo.login_try
        SET last_at = last_at - CAST(:s AS float8) * interval '1 second',
            next_at = next_at - CAST(:s AS float8) * interval '1 second'
        """,
        s=seconds,
    )


def wait_of(tries: Try, *given: Any) -> int:
    """How long the next try has to wait."""
    with pytest.raises(TooManyRequests) as refusal:
        tries(*given)
    assert set(refusal.value.facts) == {"retry_after_seconds"}
    return int(refusal.value.facts["retry_after_seconds"])


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff"),
        ("fe80::1%eth0", "fe80::2%eth1"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("no address", "no address"),
    ],
)
def test_whoever_has_a_network_has_no_more_tries_than_others(tries: Try, first: str, then: str) -> None:
    """An address of IPv6 is one of 2**64 of its owner, and one of IPv4 may be written as such."""
    for n in range(ACCESS.tries_free):
        tries(f"name-{n}", first)
    assert wait_of(tries, "another", then) > 0
    tries("another", "2001:db8:1:3::1")
    tries("another", "192.0.2.8")


def test_after_five_failures_each_wait_is_longer_and_none_is_for_ever(
    tries: Try, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is twice the one before, up to five minutes, however many follow."""
    monkeypatch.setattr("testigo.access.throttle.ACCESS", ACCESS)
    fail(tries)
    waits = []
    for _ in range(9):
        (row,) = world.query(WAIT)
        waits.append(row.seconds)
        pass_seconds(world, row.seconds + 1)
        tries()
    assert waits == [5, 10, 20, 40, 80, 160, 300, 300, 300]


def test_a_try_that_comes_too_soon_is_not_counted(tries: Try, world: World) -> None:
    """Whoever hammers does not make the wait of the one who has the password longer."""
    fail(tries)
    before = world.query("SELECT * FROM testigo.login_try")
    for _ in range(20):
        wait_of(tries)
    assert world.query("SELECT * FROM testigo.login_try") == before


def test_one_address_waits_whatever_names_it_tries(tries: Try) -> None:
    """Others do not."""
    for n in range(ACCESS.tries_free):
        tries(f"user{n}", "198.51.100.1")
    assert wait_of(tries, "somebody", "198.51.100.1")
    tries("somebody", "192.0.2.77")


def test_many_addresses_have_30_tries_of_one_name_in_a_quarter_of_an_hour(tries: Try, world: World) -> None:
    """Counted from the first of them; other names are tried as before."""
    for n in range(ACCESS.name_tries):
        tries("ana", f"192.0.2.{n}")
    assert 14 * 60 < wait_of(tries, "ana", "198.51.100.1") <= 15 * 60 + 1
    tries("bea", "198.51.100.1")
    pass_seconds(world, 15 * 60 + 1)
    for n in range(ACCESS.name_tries):
        tries("ana", f"192.0.2.{n}")
    assert wait_of(tries, "ana", "198.51.100.1")


def test_a_stranger_who_polls_takes_no_try_of_the_owner_s(people: People, tries: Try, world: World) -> None:
    """From one address, for four hours, at each moment at which one is free: the owner of the name is not refused."""
    for _ in range(50):
        with suppress(TooManyRequests):
            while True:
                tries("ana", "198.51.100.1")
        people.db.run(forgive, tries("ana", HERE))
        pass_seconds(world, 301)


def test_who_has_logged_in_before_gets_in_whoever_guesses(people: People, tries: Try) -> None:
    """From as many addresses as there are, the owner's own among them: their browser's tries are counted apart."""
    people.user()
    known, other = Secret.new().digest, Secret.new().digest
    people.db.run(log_in, "ana", Secret.new().digest, epoch=1, browser=known)
    fail(tries, "ana", HERE)
    for n in range(ACCESS.tries_free, ACCESS.name_tries):
        tries("ana", f"198.51.100.{n}", other)
    assert wait_of(tries, "ana", HERE)
    assert wait_of(tries, "ana", "203.0.113.1", other)
    counted = tries("ana", HERE, known)
    people.db.run(log_in, "ana", Secret.new().digest, epoch=1, counted=counted, browser=known)
    fail(tries, "ana", HERE, known)
    assert wait_of(tries, "ana", HERE, known)


@pytest.mark.parametrize("change", list(CHANGES))
def test_a_browser_is_known_for_one_name_until_its_user_changes(people: People, tries: Try, change: Any) -> None:
    """Whoever had the password, and made themselves known by it, has no tries of their own at the next one."""
    people.user()
    known = Secret.new().digest
    people.db.run(log_in, "ana", Secret.new().digest, epoch=1, browser=known)
    fail(tries)
    assert wait_of(tries, "bea", HERE, known)
    tries("ana", HERE, known)
    people.db.run(change, "ana", *CHANGES[change], action=Action("tester"))
    assert wait_of(tries, "ana", HERE, known)


def test_a_browser_that_was_not_seen_for_90_days_is_forgotten(people: People, tries: Try, world: World) -> None:
    """By whoever prunes as well."""
    people.user()
    known = Secret.new().digest
    people.db.run(log_in, "ana", Secret.new().digest, epoch=1, browser=known)
    world.query("UPDATE testigo.browser SET seen_at = seen_at - interval '90 days 1 second'")
    fail(tries)
    assert wait_of(tries, "ana", HERE, known)
    people.db.run(prune_access)
    assert world.query("SELECT * FROM testigo.browser") == []


def test_a_login_s_own_tries_are_counted_by_themselves(people: People, tries: Try) -> None:
    """Whoever changes their password says the old one, and no stranger has them wait for that."""
    who = people.user()
    fail(tries)
    for _ in range(ACCESS.tries_free - 1):
        people.db.run(begin_own_try, who.credential)
    counted = people.db.run(begin_own_try, who.credential)
    with pytest.raises(TooManyRequests):
        people.db.run(begin_own_try, who.credential)
    people.db.run(forgive, counted)
    people.db.run(begin_own_try, who.credential)


def test_a_name_is_one_however_it_is_typed_and_kept_by_its_digest_alone(tries: Try, world: World) -> None:
    """Somebody types a password there now and then; and a name need not be anybody's."""
    for typed in ("Correct-Horse", "correct-horse", " correct-horse", "CORRECT-HORSE", "correct-horse "):
        tries(typed)
    assert [row.tries for row in world.query(ROWS) if row.scope == "name"] == [5]
    tries("\x00\ud800", "\x00" * 5000, "0" * 64)
    assert "horse" not in str(world.query("SELECT * FROM testigo.login_try")).lower()


def test_a_success_takes_its_own_try_back(people: People, tries: Try, world: World) -> None:
    """And no other's: whoever has one account may not guess at the others for it."""
    people.user()
    tries("bea")
    fail(tries, times=2)
    people.db.run(log_in, "ana", Secret.new().digest, epoch=1, counted=tries())
    rows = [(row.scope, row.tries) for row in world.query(ROWS)]
    assert sorted(rows) == [("address", 3), ("name", 1), ("name", 2)]
    people.db.run(log_in, "ana", Secret.new().digest, epoch=1, counted=tries())
    tries("cid")
    tries("dan")
    assert wait_of(tries, "eve")


def test_failures_are_forgotten_after_a_quarter_of_an_hour(tries: Try, world: World, people: People) -> None:
    """By the database's clock, since the last of them; then nothing is kept of them either."""
    fail(tries, times=4)
    pass_seconds(world, 14 * 60)
    tries()
    assert wait_of(tries)
    pass_seconds(world, 15 * 60 + 1)
    fail(tries)
    assert wait_of(tries)
    assert people.db.run(prune_access).pruned == 0
    pass_seconds(world, 15 * 60 + 1)
    assert people.db.run(prune_access).pruned == 2


def test_tries_at_once_are_counted_each(tries: Try, people: People) -> None:
    """A thousand guesses in one moment are not one: each is counted before its password is looked at."""
    answers = race(people.db, *[partial(tries, "ana", "192.0.2.1")] * 12)
    assert sum(isinstance(answer, tuple) for answer in answers) == ACCESS.tries_free
    assert sum(isinstance(answer, TooManyRequests) for answer in answers) == 12 - ACCESS.tries_free


def test_tries_at_once_meet_no_deadlock(tries: Try, people: People) -> None:
    """Names and addresses are taken in one order (spec P-08)."""
    first = partial(begin_try, name="ana", address="192.0.2.1")
    in_line(people.db, first, partial(tries, "bea", "192.0.2.1"), then=partial(begin_try, name="bea", address=None))
    assert deadlocks(people.db) == 0
