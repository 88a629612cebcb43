"""Text for people is made fit and never refused: recording a failure never fails."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testigo.rules.text import tidy
from testigo.settings import LIMITS

any_text = st.text(st.characters())
UNFIT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


class Raises:
    """Its str() and repr() raise."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __str__(self) -> str:
        raise self.error

    __repr__ = __str__


class Recursive:
    """Its repr() never ends by itself."""

    def __repr__(self) -> str:
        return repr([self])


class Liar:
    """It says that it is a string and answers with a number."""

    __class__: Any = str

    def __str__(self) -> Any:
        return 7


class Awkward:
    """Asking for its class raises."""

    def __getattribute__(self, _: str) -> Any:
        raise RuntimeError("no attribute")

    def __str__(self) -> str:
        raise RuntimeError("no text")


class Anonymous(type):
    """Its classes do not tell their name."""

    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise RuntimeError("no name")


class Nameless(metaclass=Anonymous):
    """A class that does not tell its name and whose instances do not tell their text."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


class Overridden(str):
    """A string whose every method raises."""

    __slots__ = ()

    def __str__(self) -> str:
        raise RuntimeError("str")

    def encode(self, *_: Any, **__: Any) -> bytes:
        """Refuse."""
        raise RuntimeError("encode")

    def replace(self, *_: Any, **__: Any) -> str:
        """Refuse."""
        raise RuntimeError("replace")

    def __len__(self) -> int:
        raise RuntimeError("len")


class OddError(Exception):
    """An exception that cannot be made from its own args (field case R46)."""

    def __init__(self, *, code: int) -> None:
        super().__init__()
        self.code = code

    def __str__(self) -> str:
        return f"code {self.code:d}"


@given(any_text, st.integers(0, 200))
def test_any_text_becomes_fit(text: str, bytes_max: int) -> None:
    """Whatever the characters, the result is storable UTF-8 within its limit (field case R45)."""
    fit = tidy(text, bytes_max=bytes_max)
    assert not UNFIT.search(fit)
    assert len(fit.encode()) <= bytes_max


@given(any_text)
def test_fit_text_stays_as_it_is(text: str) -> None:
    """Tidying is done once: again changes nothing, and fit text never changes."""
    fit = tidy(text)
    assert tidy(fit) == fit
    if not UNFIT.search(text):
        assert fit == text


@pytest.mark.parametrize(
    ("text", "fit"),
    [
        ("a\x00b", "a\ufffdb"),
        ("\x1b[31mred\x9b0m", "\ufffd[31mred\ufffd0m"),
        ("line\r\nline\rline\ttab\n", "line\nline\ufffdline\ttab\n"),
        ("\ud800x\udfff", "\ufffdx\ufffd"),
        ("é€😀\u2028", "é€😀\u2028"),
        ("", ""),
    ],
)
def test_unfit_characters_are_replaced_one_for_one(text: str, fit: str) -> None:
    """A reader sees that something was there, and a terminal obeys none of it (field case R45)."""
    assert tidy(text) == fit


@pytest.mark.parametrize(
    ("make", "fit"),
    [
        (lambda: None, "None"),
        (lambda: 12, "12"),
        (lambda: b"\x00\xff", "b'\\x00\\xff'"),
        (lambda: ValueError("a\x00b"), "a\ufffdb"),
        (lambda: OddError(code=3), "code 3"),
        (lambda: Raises(RuntimeError("x")), "<Raises whose str() raised RuntimeError>"),
        (lambda: Raises(SystemExit(1)), "<Raises whose str() raised SystemExit>"),
        (lambda: Raises(GeneratorExit()), "<Raises whose str() raised GeneratorExit>"),
        (lambda: Raises(MemoryError()), "<Raises whose str() raised MemoryError>"),
        (lambda: Recursive(), "<Recursive whose str() raised RecursionError>"),
        (lambda: Awkward(), "<Awkward whose str() raised RuntimeError>"),
        (lambda: Nameless(), "<Nameless whose str() raised RuntimeError>"),
        (lambda: Overridden("a\x00b"), "a\ufffdb"),
        (lambda: type("Od\x1bd", (), {"__str__": lambda _: 7})(), "<Od\ufffdd whose str() raised TypeError>"),
    ],
)
def test_any_value_has_a_text(make: Callable[[], object], fit: str) -> None:
    """A value whose text cannot be had is named by its type and by what it raised (field case R46)."""
    assert tidy(make()) == fit


def test_a_value_that_lies_about_its_class_has_a_text() -> None:
    """Not even a forged class makes a recording fail (field case R46)."""
    assert "TypeError" in tidy(Liar())


def test_an_interrupt_from_the_keyboard_is_the_users() -> None:
    """Ctrl-C while a text is made still ends the program."""
    with pytest.raises(KeyboardInterrupt):
        tidy(Raises(KeyboardInterrupt()))


def test_what_does_not_fit_is_cut_and_counted() -> None:
    """Megabytes become the limit, and the marker says how much is gone (field case R45)."""
    text = "x" * 3_000_000
    fit = tidy(text)
    assert len(fit.encode()) == LIMITS.text_bytes_max
    found = re.fullmatch(r"(x+)… \[(\d+) bytes cut\]", fit)
    assert found is not None
    assert len(found[1]) + int(found[2]) == len(text)


@pytest.mark.parametrize("letter", ["x", "é", "😀"])
def test_text_that_just_fits_is_not_cut(letter: str) -> None:
    """The limit itself is allowed."""
    text = letter * (400 // len(letter.encode()))
    assert tidy(text, bytes_max=400) == text
    assert tidy(text, bytes_max=399) != text


@given(st.text(st.sampled_from("aé€😀\x00"), min_size=30), st.integers(40, 90))
def test_the_marker_counts_exactly_what_is_gone(text: str, bytes_max: int) -> None:
    """Kept bytes and counted bytes are all bytes, and no character is cut in two."""
    whole = text.replace("\x00", "\ufffd")
    fit = tidy(text, bytes_max=bytes_max)
    found = re.fullmatch(r"(.*)… \[(\d+) bytes cut\]", fit, re.DOTALL)
    if found is None:
        assert fit == whole
        return
    assert whole.startswith(found[1])
    assert len(found[1].encode()) + int(found[2]) == len(whole.encode())
    assert bytes_max - len(fit.encode()) <= 4  # room for no further character, or for one digit more


@pytest.mark.parametrize("bytes_max", [0, 1, 2, 5, 15])
def test_a_limit_without_room_for_the_marker_is_kept(bytes_max: int) -> None:
    """The limit goes before the marker."""
    assert tidy("é" * 100, bytes_max=bytes_max) == "é" * (bytes_max // 2)
