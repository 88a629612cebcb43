"""What people and handlers say is kept without what looks like a secret, and otherwise as it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testigo.rules.discreet import discreet, discreet_end
from testigo.rules.text import tidy

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (
            f"GET https://api.example.org/?key={TOKEN} said 401",
            "GET https://api.example.org/?key=[redacted:github-token] said 401",
        ),
        (
            "no answer from postgresql://ana:hunter22@db/shop",
            "no answer from postgresql://[redacted:url-credentials]@db/shop",
        ),
        ("asked with password=hunter22;", "asked with password=[redacted:password];"),
        ("a\x00 token was refused", "a\ufffd token was refused"),
        (RuntimeError(TOKEN), "[redacted:github-token]"),
    ],
)
def test_a_secret_goes_and_what_is_said_of_it_stays(said: object, kept: str) -> None:
    """Its kind stands in its place (spec D-14)."""
    assert discreet(said) == kept


@given(st.text(st.characters()), st.integers(100, 200))
def test_it_never_fails_and_keeps_its_bounds(said: str, most: int) -> None:
    """Whatever is said; a second time changes nothing."""
    for text in (said, f"{said}{TOKEN}{said}", TOKEN * 10):
        kept = discreet(text, bytes_max=most)
        assert TOKEN not in kept
        assert len(kept.encode()) <= most
        assert tidy(kept, bytes_max=most) == kept


def test_what_holds_none_comes_back_as_it_is() -> None:
    """The very text, however it was written."""
    said = "Traceback (most recent call last):\n  File \"/srv/jobs.py\", line 3, in send\nKeyError: 'account'"
    assert discreet(said) == said


@pytest.mark.parametrize("left", range(0, len(TOKEN) + 1, 4))
@pytest.mark.parametrize("before", ["", "password=hunter22 " * 40])
def test_no_part_of_a_secret_is_left_where_a_text_is_cut(left: int, before: str) -> None:
    """Wherever the cut is in it, and whatever was taken out before: too few letters would tell nothing (spec D-14)."""
    said = "x" * (1000 - left - len(before))
    kept = discreet(f"{before}{said} {TOKEN} {said * 20}", bytes_max=1000)
    assert "ghp_" not in kept
    assert "hunter" not in kept
    assert len(kept.encode()) <= 1000
    assert kept.endswith("bytes cut]")


@pytest.mark.parametrize("left", range(0, len(TOKEN) + 1, 4))
@pytest.mark.parametrize("before", [100, 100_000])
def test_no_part_of_a_secret_is_left_where_the_beginning_is_cut(left: int, before: int) -> None:
    """Of a traceback the end is kept, and its first line may begin within a secret (spec D-14)."""
    end = discreet_end(f"{'x' * before} {TOKEN} {'y' * (999 - left)}", bytes_max=1000)
    assert end.endswith("yyy")
    assert not left or TOKEN[-left:] not in end
    assert len(end.encode()) <= 1000


def test_what_is_cut_is_counted_whole() -> None:
    """The marker counts all that is gone, though most of it was never looked at."""
    kept = discreet(f"password=hunter22 {'x ' * 50_000}", bytes_max=1000)
    cut = int(kept.rpartition("[")[2].split()[0])
    shown = len(kept.rpartition("…")[0])
    assert shown + cut == len(f"password=[redacted:password] {'x ' * 50_000}")
