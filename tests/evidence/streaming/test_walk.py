"""A walk says exactly what is in a JSON text, holds only what it is asked for, and refuses what has two readings."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testigo.errors import EvidenceInvalid
from testigo.evidence.streaming import Source, Walk
from testigo.evidence.streaming.source import STRETCH_BYTES_MAX
from tests.evidence.reports import written

TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXTS, inner, max_size=5),
    max_leaves=30,
)


def value_of(path: Path) -> Any:
    """The whole text, built."""
    with Source(path) as source:
        walk = Walk(source)
        found = walk.value()
        walk.finish()
        return found


def refused(path: Path) -> EvidenceInvalid:
    """The error with which the whole text is refused."""
    with pytest.raises(EvidenceInvalid) as raised:
        value_of(path)
    return raised.value


@settings(max_examples=50)
@given(value=VALUES)
def test_what_is_built_is_what_is_written(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    """Every JSON value comes back as another reader reads it (field case R80)."""
    assert value_of(written(tmp_path_factory.mktemp("w"), value)) == json.loads(json.dumps(value))


@settings(max_examples=50)
@given(value=st.dictionaries(TEXTS, VALUES, max_size=6), taken=st.sets(st.integers(0, 5)))
def test_what_is_not_taken_is_passed_over(
    tmp_path_factory: pytest.TempPathFactory, value: dict[str, Any], taken: set[int]
) -> None:
    """Whichever members are taken, the others do not move them."""
    path = written(tmp_path_factory.mktemp("w"), value)
    with Source(path) as source:
        walk = Walk(source)
        found = {name: walk.value() for at, name in enumerate(walk.members()) if at in taken}
        walk.finish()
    assert found == {name: each for at, (name, each) in enumerate(value.items()) if at in taken}


def test_a_part_left_early_is_passed_over(tmp_path: Path) -> None:
    """Whoever leaves an array in its middle goes on behind it."""
    path = written(tmp_path, {"a": [[1], [2, {"x": [3]}], [4]], "b": 5})
    seen: dict[str, Any] = {}
    with Source(path) as source:
        walk = Walk(source)
        for name in walk.members():
            if name == "a":
                for index in walk.elements():
                    if index == 1:
                        seen["at"] = walk.pointer
                        next(walk.elements())
                        break
            else:
                seen[name] = walk.value()
        walk.finish()
    assert seen == {"at": "/a/1", "b": 5}


@pytest.mark.parametrize(
    ("text", "says", "at"),
    [
        (b'{"a": {"b": [1, {"c": 1, "c": 2}]}}', "occurs twice", "/a/b/1/c"),
        (b'{"a": [1, 2', "too early|not JSON", "/a/1"),
        (b"", "not JSON", None),
        (b'{"a": 1} {"b": 2}', "not JSON", None),
        (b'{"a": 01}', "not JSON", "/a"),
        (b'{"a": nan}', "not JSON", "/a"),
        (b'{"a": "\xff"}', "not JSON", "/a"),
        (b'{"a": "\xed\xa0\x80"}', "not UTF-8", "/a"),
        (b'{"a": ' + b"9" * 4_001 + b"}", "digits", None),
        (b'{"a": ' + b"[" * 200 + b"]" * 200 + b"}", "nested too deep", None),
        (b"[" + b"0," * 20_000 + b"0]", "too many values", "/19999"),
        (b'["' + b'","'.join([b"x" * 200_000] * 22) + b'"]', "too much text", None),
    ],
)
def test_two_readings_are_refused_at_their_place(tmp_path: Path, text: bytes, says: str, at: str | None) -> None:
    """Names that come twice, broken and endless text are refused, naming file and JSON pointer (field case R80)."""
    error = refused(written(tmp_path, text))
    assert any(each in error.message for each in says.split("|")), error.message
    assert "report.sarif" in error.message
    if at is not None:
        assert error.field == at


def test_an_error_shows_nothing_of_the_text(tmp_path: Path) -> None:
    """The parser's words about a place quote it; ours do not (field case R76)."""
    error = refused(written(tmp_path, b'{"password": "hunter2-hunter2" oops}'))
    assert "hunter2" not in str(error)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le"])
def test_other_encodings_are_refused_by_name(tmp_path: Path, encoding: str) -> None:
    """UTF-16 and UTF-32 are said to be what they are."""
    error = refused(written(tmp_path, '{"a": 1}'.encode(encoding)))
    assert encoding[:6].upper() in error.message
    assert error.limit == "UTF-8"


def test_a_mark_of_utf_8_is_passed_over(tmp_path: Path) -> None:
    """A byte order mark of UTF-8 says nothing."""
    assert value_of(written(tmp_path, b'\xef\xbb\xbf{"a": 1}')) == {"a": 1}


def test_only_regular_files_behind_no_link_are_read(tmp_path: Path) -> None:
    """A link, a folder, a pipe and nothing at all are refused, and nobody waits for a pipe."""
    target = written(tmp_path, {})
    (tmp_path / "link").symlink_to(target)
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe", ".", "missing"):
        with pytest.raises(EvidenceInvalid):
            Source(tmp_path / name)


@pytest.mark.parametrize("filling", [b"x", b"\\\\", b'\\"', b" "])
def test_a_text_without_end_is_refused_before_it_is_kept(tmp_path: Path, filling: bytes) -> None:
    """A text, escapes and quotes in it included, and a gap between texts are at most 4 MiB."""
    stretch = filling * (STRETCH_BYTES_MAX // len(filling) + 2)
    text = b'{"a": "' + stretch + b'"}' if filling != b" " else b'{"a":' + stretch + b"1}"
    error = refused(written(tmp_path, text))
    assert error.limit == f"{STRETCH_BYTES_MAX} bytes"


def test_many_texts_together_may_be_longer(tmp_path: Path) -> None:
    """The limit is of one text, wherever chunks are cut."""
    texts = {f"k{at}": '\\"' * 40_000 for at in range(200)}
    with Source(written(tmp_path, texts)) as source:
        walk = Walk(source)
        assert sum(1 for _ in walk.members()) == 200
        walk.finish()
