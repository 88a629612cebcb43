"""A document is exact text, or it is refused by path and limit."""

from __future__ import annotations

import json
import sys
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime
from enum import IntEnum, StrEnum
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testigo.errors import PayloadInvalid, PayloadTooLarge
from testigo.rules.documents import Document, decode, encode, parse
from testigo.settings import LIMITS

LONG = 10**4321 + 7
"""An integer of more digits than Python reads and writes by default."""

fit_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | fit_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(fit_text, inner, max_size=4),
    max_leaves=20,
)
any_text = st.text(st.characters())
any_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | any_text
    | st.binary(max_size=3)
    | st.builds(lambda: LONG),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(any_text | st.integers() | st.none(), inner, max_size=4)
    ),
    max_leaves=20,
)


class Colour(StrEnum):
    """A text that is more than a text."""

    RED = "red"


class Size(IntEnum):
    """A number that is more than a number."""

    BIG = 3


class Point(NamedTuple):
    """A tuple that is more than a tuple."""

    x: int
    y: int


def nested(levels: int) -> list[Any]:
    """A list in a list …, `levels` deep."""
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (2**64, "18446744073709551616"),
        (-(2**64), "-18446744073709551616"),
        (10**400, "1" + "0" * 400),
        (-0.0, "-0.0"),
        (1e2, "100.0"),
        (1e22, "1e+22"),
        (5e-324, "5e-324"),
        ("é€😀\u2028\x7f", '"é€😀\u2028\x7f"'),
        ('"\\\n\t\x01', '"\\"\\\\\\n\\t\\u0001"'),
        ("\\u0000", '"\\\\u0000"'),
        ({"b": 1, "a": [2, {}], "": None}, '{"b":1,"a":[2,{}],"":null}'),
        ((1, (2,)), "[1,[2]]"),
        ([], "[]"),
        ("", '""'),
    ],
)
def test_a_value_becomes_exact_text(value: object, text: str) -> None:
    """Numbers, text and the order of keys are kept as they are (spec P-06; field case R45)."""
    assert encode(value) == text
    assert parse(text) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Colour.RED, '"red"'),
        ({Colour.RED: Colour.RED}, '{"red":"red"}'),
        ([Size.BIG], "[3]"),
        (Point(1, 2), "[1,2]"),
        (OrderedDict(b=1, a=2), '{"b":1,"a":2}'),
    ],
)
def test_subclasses_of_json_types_are_taken_for_their_json_value(value: object, text: str) -> None:
    """An enum member, a named tuple or an ordered dict is the text, number, list or object that it is (spec P-06)."""
    assert encode(value) == text


@given(json_values)
def test_what_is_encoded_is_read_back_equal(value: object) -> None:
    """encode and decode lose nothing, and parse accepts what encode wrote (spec P-06)."""
    document = encode(value)
    assert repr(decode(document)) == repr(value)
    assert parse(document) == document


@given(any_values)
def test_every_value_is_kept_exactly_or_refused_by_path(value: object) -> None:
    """No value raises anything but the two refusals, and what passes is storable (spec P-06; field case R45)."""
    try:
        document = encode(value)
    except PayloadInvalid as error:
        field = error.field or ""
    else:
        assert decode(document) == value
        assert parse(document) == document
        return
    assert field.startswith("payload")
    assert field.isprintable()


@pytest.mark.parametrize(
    ("value", "field", "message"),
    [
        (float("nan"), "payload", "nan is not"),
        ([0, float("inf")], "payload[1]", "inf is not"),
        ({"a": {"b": -float("inf")}}, "payload.a.b", "-inf is not"),
        ({"items": [1, 2, 3, {"name": "a\x00b"}]}, "payload.items[3].name", "NUL at 1"),
        ({"items": ["\ud800"]}, "payload.items[0]", "surrogate U+D800 at 0"),
        ("\ud83d\ude00", "payload", "surrogate U+D83D at 0"),
        ({"a\x00": 1}, 'payload["a\\u0000"]', "NUL at 1"),
        ({"a": {"\udfff": 1}}, 'payload.a["\\udfff"]', "surrogate U+DFFF"),
        ({"a": {1: 2}}, "payload.a", "a key is of type int"),
        ({True: 2}, "payload", "a key is of type bool"),
        ({None: 2}, "payload", "a key is of type NoneType"),
        ({1.5: 2}, "payload", "a key is of type float"),
        ({b"a": 2}, "payload", "a key is of type bytes"),
        ([{(1, 2): 3}], "payload[0]", "a key is of type tuple"),
        ({"when": datetime(2026, 1, 1, tzinfo=UTC)}, "payload.when", "type datetime is not JSON"),
        ({"raw": b"x"}, "payload.raw", "type bytes is not JSON"),
        ([{1, 2}], "payload[0]", "type set is not JSON"),
        (object(), "payload", "type object is not JSON"),
        ({"a b": {"c-d": [1j]}}, 'payload["a b"]["c-d"][0]', "type complex is not JSON"),
        ({"k" * 64: 1j}, f"payload.{'k' * 64}", "type complex is not JSON"),
        ({"-" * 64: 1j}, f'payload["{"-" * 64}"]', "type complex is not JSON"),
        ({"k" * 65: 1j}, f'payload["{"k" * 63}\\u2026"]', "type complex is not JSON"),
        ({"k" * 100: 1j}, f'payload["{"k" * 63}\\u2026"]', "type complex is not JSON"),
    ],
)
def test_a_fault_is_named_by_its_path(value: object, field: str, message: str) -> None:
    """What JSON or the store cannot keep is refused by path and reason (spec P-06; field case R45)."""
    with pytest.raises(PayloadInvalid) as caught:
        encode(value)
    assert caught.value.field == field
    assert message in caught.value.message


def test_a_fault_is_named_under_the_field_that_the_caller_gives() -> None:
    """An output and a checkpoint are refused under their own names (spec P-06)."""
    with pytest.raises(PayloadInvalid) as caught:
        encode({"x": 1j}, field="outcomes[2].output")
    assert caught.value.field == "outcomes[2].output.x"
    with pytest.raises(PayloadInvalid) as caught:
        parse('{"x":NaN}', field="checkpoint")
    assert caught.value.field == "checkpoint.x"


@pytest.mark.parametrize("levels", [1, LIMITS.json_depth_max])
def test_a_value_may_nest_up_to_the_limit(levels: int) -> None:
    """64 levels are kept, by both doors (spec P-06)."""
    assert encode(nested(levels)) == parse("[" * levels + "]" * levels)
    assert encode({"a": nested(levels - 1)} if levels > 1 else {}) is not None


@pytest.mark.parametrize("levels", [LIMITS.json_depth_max + 1, 500, 5_000, 100_000])
def test_deeper_nesting_is_refused_by_its_limit(levels: int) -> None:
    """Depth is refused, not a crash of the interpreter (spec P-06)."""
    value = nested(levels)
    with pytest.raises(PayloadInvalid) as caught:
        encode(value)
    assert caught.value.limit == f"{LIMITS.json_depth_max} levels"
    assert caught.value.field == "payload" + "[0]" * LIMITS.json_depth_max
    with pytest.raises(PayloadInvalid) as caught:
        parse("[" * levels + "]" * levels)
    assert caught.value.limit == f"{LIMITS.json_depth_max} levels"
    while value:  # CPython frees a very deep list on the C stack
        value = value.pop()


def test_the_depth_of_objects_counts_as_that_of_lists() -> None:
    """An object is a level too (spec P-06)."""
    value: dict[str, Any] = {}
    for _ in range(LIMITS.json_depth_max - 1):
        value = {"a": value}
    assert parse(encode(value)) == encode(value)
    with pytest.raises(PayloadInvalid) as caught:
        encode({"a": value})
    assert caught.value.field == "payload" + ".a" * LIMITS.json_depth_max


def test_a_value_that_holds_itself_is_refused() -> None:
    """A cycle is a depth without end (spec P-06)."""
    cycle: list[Any] = []
    cycle.append({"again": cycle})
    with pytest.raises(PayloadInvalid, match="holds itself"):
        encode(cycle)


def test_a_document_may_fill_its_limit_of_bytes_and_no_more() -> None:
    """256 KiB of UTF-8 are kept inline, one byte more is refused with a remedy that names blobs (spec P-06)."""
    for letter in ("a", "é", "€", "😀"):
        width = len(letter.encode())
        fits, rest = divmod(LIMITS.inline_bytes_max - 2, width)
        text = letter * fits + "a" * rest
        assert len(encode(text).encode()) == LIMITS.inline_bytes_max
        assert parse(encode(text)) == encode(text)
        doors: list[tuple[Callable[[str], Document], str]] = [(encode, f"{text}a"), (parse, f'"{text}a"')]
        for door, refused in doors:
            with pytest.raises(PayloadTooLarge) as caught:
                door(refused)
            assert caught.value.field == "payload"
            assert caught.value.limit == f"{LIMITS.inline_bytes_max} bytes of UTF-8"
            assert "blob" in caught.value.remedy


def test_integers_longer_than_pythons_limit_are_kept_exactly() -> None:
    """The digits of an integer are data: Python's limit on converting them never shows (spec P-06)."""
    assert len(f"{10**4299}") == 4300  # the limit is on; the next digit raises ValueError
    with pytest.raises(ValueError, match="4300 digits"):
        str(LONG)
    value = {"n": [LONG, -LONG, True, "x", 1.5, None], "é": {"m": 2**64}}
    document = encode(value)
    assert decode(document) == value
    assert list(decode(document)) == ["n", "é"]
    assert parse(document) == document
    assert document.startswith('{"n":[1000')
    assert document.endswith('0007,true,"x",1.5,null],"é":{"m":18446744073709551616}}')


@given(st.integers(0, 40_000), st.integers(), st.booleans())
def test_digits_of_any_number_survive_the_way_there_and_back(zeros: int, end: int, minus: bool) -> None:
    """Long integers are cut and joined without losing a zero (spec P-06)."""
    number = (10**zeros + end) * (-1 if minus else 1)
    document = encode(number)
    assert decode(document) == number
    assert len(document.lstrip("-")) == pytest.approx(max(zeros, 1), abs=300)


def test_a_lower_limit_of_digits_changes_nothing() -> None:
    """A process that lowers Python's limit reads the same documents (spec P-06)."""
    document = encode(LONG)
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(sys.int_info.str_digits_check_threshold)
    try:
        assert encode(LONG) == document
        assert parse(document) == document
        assert decode(document) == LONG
    finally:
        sys.set_int_max_str_digits(limit)


def test_an_integer_that_fills_the_limit_is_refused_without_writing_it() -> None:
    """A number too long for a document is too large, not invalid (spec P-06)."""
    with pytest.raises(PayloadTooLarge):
        encode([1 << 40_000_000])
    with pytest.raises(PayloadTooLarge):
        encode(10 ** (LIMITS.inline_bytes_max + 10))


@pytest.mark.parametrize(
    "text",
    [
        '{"b": 1,\n "a":\t[1.0, 1e2, -0, -0.0, 1E+2 ]}  ',
        "  null",
        '"\\ud83d\\ude00 \\u00e9 \\/"',
        '"\\\\u0000 \\\\ud800"',
        "0." + "1" * 400,
        '{"a":{"x":1},"b":{"x":1}}',
        "1e-999",
    ],
)
def test_foreign_text_is_returned_unchanged(text: str) -> None:
    """White space, the spelling of numbers and escapes are the caller's (spec P-06)."""
    assert parse(text) == text


@pytest.mark.parametrize(
    ("text", "field", "message"),
    [
        ("", "payload", "line 1, column 1"),
        ("{", "payload", "it is not JSON"),
        ("[1,]", "payload", "it is not JSON"),
        ("{'a':1}", "payload", "line 1, column 2"),
        ('{"a":1}\n x', "payload", "line 2, column 2"),
        ("01", "payload", "it is not JSON"),
        ("\u0661", "payload", "it is not JSON"),
        ("\ufeff{}", "payload", "it is not JSON"),
        ('"a\x00b"', "payload", "it is not JSON"),
        ('"a\nb"', "payload", "it is not JSON"),
        ("\x00", "payload", "it is not JSON"),
        ("\ud800", "payload", "it is not JSON"),
        ('["\ud800"]', "payload[0]", "surrogate U+D800"),
        ('["\\u0000"]', "payload[0]", "NUL at 0"),
        ('{"\\u0000":1}', 'payload["\\u0000"]', "NUL at 0"),
        ('{"a":"x\\uD800"}', "payload.a", "surrogate U+D800 at 1"),
        ('{"a":"\\ude00\\ud83d"}', "payload.a", "surrogate U+DE00 at 0"),
        ('{"a":1,"b":2,"a":1}', "payload.a", "occurs twice"),
        ('{"b":1,"a":2,"a":3}', "payload.a", "occurs twice"),
        ('[{"x":{"a":1,"\\u0061":2}}]', "payload[0].x.a", "occurs twice"),
        ("NaN", "payload", "nan is not"),
        ('{"a":[Infinity]}', "payload.a[0]", "inf is not"),
        ("-Infinity", "payload", "-inf is not"),
        ('{"a":1e999}', "payload.a", "inf is not"),
    ],
)
def test_foreign_text_is_refused_by_position_or_path(text: str, field: str, message: str) -> None:
    """What is not strict, unambiguous, storable JSON is refused by place (spec P-06; field case R45)."""
    with pytest.raises(PayloadInvalid) as caught:
        parse(text)
    assert caught.value.field == field
    assert message in caught.value.message


def test_a_syntax_error_carries_its_position() -> None:
    """A tool can point at the character (spec P-06)."""
    with pytest.raises(PayloadInvalid) as caught:
        parse('{"a":1}\n x')
    assert caught.value.facts == {"position": 9}


@pytest.mark.parametrize("text", [None, b"{}", 1, {"a": 1}])
def test_only_text_is_parsed(text: Any) -> None:
    """Bytes and values are not text: their encoding is not guessed."""
    with pytest.raises(PayloadInvalid, match="JSON text is needed"):
        parse(text)


@given(any_text | st.text(st.sampled_from('{}[]",:\\u0d8aeEN-+.1 \x00\ud800')))
def test_parse_refuses_or_keeps_and_never_fails_otherwise(text: str) -> None:
    """Any text is a document or a refusal, and a document is storable and readable (spec P-06; field case R45)."""
    try:
        document = parse(text)
    except PayloadInvalid:
        return
    assert document == text
    encode(decode(document))


def test_duplicate_keys_are_found_at_every_depth() -> None:
    """The first of two equal keys would silently vanish, wherever it is (spec P-06)."""
    inner = '{"k":1,"k":2}'
    for wrapped in (inner, f"[{inner}]", f'{{"a":{inner}}}', f'{{"a":[1,{inner}],"b":2}}'):
        with pytest.raises(PayloadInvalid, match="twice"):
            parse(wrapped)


def test_decode_reads_what_the_standard_library_reads() -> None:
    """A document is ordinary JSON (spec P-06)."""
    text = '{"a":[1,2.5,"x",null,true]}'
    assert decode(Document(text)) == json.loads(text)
