"""Frames arrive whole, or the conversation ends (P-20)."""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testigo.errors import PayloadTooLarge, ProtocolBroken
from testigo.worker import protocol
from testigo.worker.protocol import FRAME_BYTES_MAX, Frames, encode_batch, encode_frame

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(), children, max_size=4),
    max_leaves=20,
)
MESSAGES = st.lists(st.tuples(st.text(), JSON).map(list), max_size=5)


@given(MESSAGES, st.lists(st.integers(0, 400), max_size=10))
def test_messages_arrive_whole_however_their_bytes_are_cut(messages: list[list[Any]], cuts: list[int]) -> None:
    """Any cut of the stream gives the same messages, in order."""
    stream = b"".join(encode_frame(message) for message in messages)
    places = sorted({0, len(stream), *(min(cut, len(stream)) for cut in cuts)})
    frames = Frames()
    heard: list[list[Any]] = []
    for begin, end in pairwise(places):
        heard += frames.feed(stream[begin:end])
    assert heard == messages


def test_text_that_no_encoding_holds_travels_as_it_is() -> None:
    """A lone surrogate and a NUL are left to whoever keeps the text."""
    message = ["notes", "\ud800 and \x00"]
    assert Frames().feed(encode_frame(message)) == [message]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"[]",
        b"[1]",
        b'["run"',
        b'["run"] []',
        b'["run", NaN]',
        b'["run", -Infinity]',
        b'["\xff"]',
        b"[" * 100_000,
        b'["run", ' + b"9" * 5_000 + b"]",
        b"\x00" * 40,
    ],
    ids=repr,
)
def test_what_is_no_message_ends_the_conversation(body: bytes) -> None:
    """A body that is no JSON array beginning with a name is refused."""
    frames = Frames()
    with pytest.raises(ProtocolBroken):
        frames.feed(len(body).to_bytes(4) + body)


@given(st.binary(min_size=4, max_size=200))
def test_any_bytes_are_a_message_or_broken(stream: bytes) -> None:
    """No stream of bytes raises anything but `ProtocolBroken`."""
    with suppress(ProtocolBroken):
        Frames().feed(stream)


def test_an_overlong_frame_is_refused_before_its_bytes_are_kept() -> None:
    """The announced length alone is enough."""
    with pytest.raises(ProtocolBroken, match="67108865 bytes"):
        Frames().feed((FRAME_BYTES_MAX + 1).to_bytes(4))


def test_a_batch_that_is_too_large_for_one_frame_takes_several(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every row arrives, in order, under the same name."""
    monkeypatch.setattr(protocol, "FRAME_BYTES_MAX", 100)
    rows = [[ticket, "x" * 20] for ticket in range(9)]
    messages = Frames().feed(encode_batch("ended", rows))
    assert len(messages) > 1
    assert [name for name, _ in messages] == ["ended"] * len(messages)
    assert [row for _, each in messages for row in each] == rows
    assert Frames().feed(encode_batch("ended", [])) == [["ended", []]]


def test_one_row_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be halved any more is refused by name."""
    monkeypatch.setattr(protocol, "FRAME_BYTES_MAX", 100)
    with pytest.raises(PayloadTooLarge, match="'ended'"):
        encode_batch("ended", [[1, "x" * 200], [2, ""]])


def test_a_frame_is_its_length_and_json() -> None:
    """The bytes are those that the protocol states."""
    assert encode_frame(["stop", 7, "timeout"]) == b'\x00\x00\x00\x14["stop",7,"timeout"]'
    assert json.loads(encode_frame(["drain"])[4:]) == ["drain"]
