"""A document is written with a line for each member and every token as it is kept."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testigo.rules.documents import encode
from testigo.web.panel.documents import indented

TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|[{}\[\],:]|[^\s"{}\[\],:]+')

values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text('a"\\{}[],:é'),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text('k"{:,', max_size=3), inner, max_size=4),
    max_leaves=20,
)


@given(values)
def test_no_token_is_changed(value: Any) -> None:
    """Whatever the document holds, brackets and quotes in its strings included."""
    document = encode(value)
    shown = indented(document)
    assert TOKEN.findall(shown) == TOKEN.findall(document)
    assert json.loads(shown) == json.loads(document)


@pytest.mark.parametrize(
    ("document", "shown"),
    [
        ('{"a":1e2,"b":[],"c":{}}', '{\n  "a": 1e2,\n  "b": [],\n  "c": {}\n}'),
        ("[1,[2,18446744073709551617]]", "[\n  1,\n  [\n    2,\n    18446744073709551617\n  ]\n]"),
        ('"[]{},:"', '"[]{},:"'),
        ("-0.0", "-0.0"),
        ("[]", "[]"),
    ],
)
def test_each_member_has_a_line(document: str, shown: str) -> None:
    """What is empty stays on its own."""
    assert indented(document) == shown
