"""Passwords: argon2id, a policy that people can live with, and the same work for a name that nobody has."""

from __future__ import annotations

import pytest
from argon2 import PasswordHasher
from argon2.profiles import CHEAPEST

from testigo.access.passwords import hashed, is_outdated, verified
from testigo.errors import Invalid

PASSWORD = "correct horse ß 🐎"


def test_a_password_is_kept_as_an_argon2id_hash_that_verifies_it_alone() -> None:
    """Salted: two hashes of one password differ."""
    one, other = hashed(PASSWORD, name="ana"), hashed(PASSWORD, name="ana")
    assert one.startswith("$argon2id$v=19$m=65536,t=3,p=4$")
    assert one != other
    assert verified(one, PASSWORD)
    for wrong in ("", PASSWORD + " ", PASSWORD.upper(), "x" * 5000, "\x00", "\ud800"):
        assert not verified(one, wrong)


@pytest.mark.parametrize("password", ["", "1234567", "x" * 1025, "ana.maria", "Ana.Maria", " ana.maria "])
def test_a_password_that_is_too_weak_is_refused_without_being_told(password: str) -> None:
    """By its length, or because it is the name."""
    with pytest.raises(Invalid, match="8 to 1024 characters") as refusal:
        hashed(password, name="ana.maria")
    assert len(password) < 7 or password not in str(refusal.value)


def test_any_other_password_is_taken() -> None:
    """Of any characters: lone surrogates and NUL among them, for nobody else has to read it."""
    for password in ("12345678", "x" * 1024, "\x00" * 8, "\ud800" * 8, "        "):
        assert verified(hashed(password, name="ana"), password)


@pytest.mark.parametrize("kept", [None, "", "h1", "$argon2id$v=19$m=65536,t=3,p=4$", "md5:1"])
def test_nobodys_password_verifies_nothing(kept: str | None) -> None:
    """A hash that is none is no error, and no pass."""
    for password in ("", PASSWORD):
        assert not verified(kept, password)


def test_the_same_work_is_done_for_a_name_that_nobody_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """One verification with the cost of any other: how long an answer takes does not tell of names."""
    asked = []
    verify = PasswordHasher.verify

    def counting(hasher: PasswordHasher, kept: str, password: bytes) -> bool:
        asked.append(kept.split("$")[1:4])
        return verify(hasher, kept, password)

    monkeypatch.setattr(PasswordHasher, "verify", counting)
    verified(hashed(PASSWORD, name="ana"), "wrong horse")
    verified(None, "wrong horse")
    assert asked[0] == asked[1]


def test_a_hash_of_less_work_is_outdated() -> None:
    """It is made anew when its password was verified."""
    assert is_outdated(PasswordHasher.from_parameters(CHEAPEST).hash(PASSWORD))
    assert not is_outdated(hashed(PASSWORD, name="ana"))
