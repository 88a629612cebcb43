"""Bodies read strictly: as any reader of JSON reads them, but for payloads, which stay text."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testigo.errors import Invalid
from testigo.rules.documents import Document
from testigo.web.api.exact import read

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT.filter(lambda key: key != "payload"), inner),
    max_leaves=20,
)
SPACES = st.sampled_from(["", " ", "\n\t", "\r\n  "])


@given(VALUES, SPACES, st.sampled_from([None, 1, 4]))
def test_a_body_is_read_as_json(value: object, space: str, indent: int | None) -> None:
    """However it is spaced and escaped."""
    for ascii_only in (True, False):
        text = space + json.dumps(value, ensure_ascii=ascii_only, indent=indent) + space
        assert read(text.encode()) == value


@given(VALUES, SPACES, SPACES)
def test_a_payload_is_the_text_between_its_neighbours(value: object, before: str, after: str) -> None:
    """Not a space of it is lost, and none of its surroundings is taken (spec P-06)."""
    text = json.dumps(value, indent=1)
    body = f'{{"a": 1, "payload":{before}{text}{after}, "b": [{{"payload":{text}}}]}}'
    found = read(body.encode())
    assert found == {"a": 1, "payload": text, "b": [{"payload": text}]}
    assert isinstance(found, dict)
    assert isinstance(found["payload"], Document)


@given(st.binary(max_size=60) | st.text('{}[]",:\\u0 1eE+-.payloadtruefsn', max_size=60).map(str.encode))
def test_whatever_is_sent_is_read_or_refused(body: bytes) -> None:
    """And never an error of ours (field case R45)."""
    with suppress(Invalid):
        found = read(body)
        assert found == json.loads(body) or b"payload" in body


@pytest.mark.parametrize("depth", [64, 65, 2_000, 500_000])
@pytest.mark.parametrize("around", ['{"a": %s}', '{"payload": %s}', "%s"])
def test_what_nests_too_deep_is_refused(depth: int, around: str) -> None:
    """By a limit, and not by the stack of this process."""
    text = around % ("[" * depth + "]" * depth)
    is_fit = depth == 64 and around != '{"a": %s}'
    if is_fit:
        assert read(text.encode()) is not None
    else:
        with pytest.raises(Invalid) as caught:
            read(text.encode())
        assert caught.value.limit == "64 levels" or caught.value.code == "PAYLOAD_TOO_LARGE"
