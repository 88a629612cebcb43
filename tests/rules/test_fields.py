"""What names, orders or times a job is checked once, and refused by field and limit."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from enum import IntEnum, StrEnum
from fractions import Fraction
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testigo.errors import Invalid
from testigo.rules import fields
from testigo.settings import LIMITS

any_text = st.text(st.characters())


class Colour(StrEnum):
    """A text that is more than a text."""

    RED = "red"


class Size(IntEnum):
    """A number that is more than a number."""

    BIG = 3


class Nowhere(tzinfo):
    """A zone that knows no offset: a datetime in it counts as naive."""

    def utcoffset(self, _: datetime | None) -> timedelta | None:
        """Nothing."""
        return None

    dst = utcoffset

    def tzname(self, _: datetime | None) -> None:
        """Nothing."""


class Unfinished(Nowhere):
    """A zone that raises, as a bare tzinfo does."""

    def utcoffset(self, _: datetime | None) -> timedelta | None:
        """Refuse."""
        raise NotImplementedError


LINES: list[Callable[..., str]] = [fields.name, fields.key]


@pytest.mark.parametrize("check", LINES)
@pytest.mark.parametrize(
    "value",
    ["a", "media.transcode", "Ünïcode €😀", "a b", "order-17/\u03b1", "x" * 200, "\u06cc\u200c\u062e", "🏳️‍🌈"],
)
def test_one_line_of_text_is_taken_as_it_is(check: Callable[..., str], value: str) -> None:
    """Names and keys are compared exactly, so nothing is folded or trimmed (spec D-01)."""
    assert check(value, field="f") == value


@pytest.mark.parametrize("check", LINES)
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "text is needed, not nothing"),
        (7, "type int"),
        (b"queue", "type bytes"),
        (["q"], "type list"),
        ("", "empty"),
        (" a", "white space"),
        ("a ", "white space"),
        ("\u3000a", "white space"),
        (" ", "white space"),
        ("a\x00b", "U+0000 at 1"),
        ("a\nb", "U+000A at 1"),
        ("a\tb", "U+0009 at 1"),
        ("a\x1b[0m", "U+001B at 1"),
        ("a\x7f", "U+007F at 1"),
        ("a\x85b", "U+0085 at 1"),
        ("a\u2028b", "U+2028 at 1"),
        ("a\ud800", "U+D800 at 1"),
        ("\ud83d\ude00", "U+D83D at 0"),
    ],
)
def test_unfit_text_names_nothing(check: Callable[..., str], value: object, message: str) -> None:
    """What a page, a log or the store would show as something else is refused by field (field case R45)."""
    with pytest.raises(Invalid) as caught:
        check(value, field="tags[3]")
    assert caught.value.field == "tags[3]"
    assert message in caught.value.message


@pytest.mark.parametrize(
    "unseen", ["\u200b", "\u202e", "\u2066", "\u2060", "\ufeff", "\u00ad", "\u061c", "\u200e", "\U000e0041"]
)
def test_a_name_shows_all_that_it_holds(unseen: str) -> None:
    """Two that look alike are one, and none is shown as what it is not; a key, by which programs tell, may hold it."""
    with pytest.raises(Invalid, match=f"U\\+{ord(unseen):04X} at 2, which nobody sees"):
        fields.name(f"ad{unseen}min", field="name")
    assert fields.key(f"ad{unseen}min", field="key")


@pytest.mark.parametrize("joined", ["\u200d", "a\u200d", "\u200ca"])
def test_a_name_neither_begins_nor_ends_with_a_joiner(joined: str) -> None:
    """Between two characters it changes how they look."""
    with pytest.raises(Invalid, match="joiner"):
        fields.name(joined, field="name")


def test_a_name_has_at_most_200_characters() -> None:
    """Names are counted in characters, of whatever width."""
    assert fields.name("😀" * LIMITS.name_chars_max, field="queue")
    with pytest.raises(Invalid) as caught:
        fields.name("q" * 300, field="queue")
    assert (caught.value.field, caught.value.limit) == ("queue", "200 characters")


def test_a_key_has_at_most_512_bytes() -> None:
    """Keys live in an index, which counts bytes (spec D-01)."""
    assert fields.key("k" * LIMITS.key_bytes_max, field="key")
    assert fields.key("é" * (LIMITS.key_bytes_max // 2), field="key")
    for value in ("k" * 513, "é" * 257, "k" * 10_240, "😀" * 3_000_000):
        with pytest.raises(Invalid) as caught:
            fields.key(value, field="key")
        assert (caught.value.field, caught.value.limit) == ("key", "512 bytes")
        assert len(str(caught.value)) < 300


@pytest.mark.parametrize("check", LINES)
def test_a_text_that_is_more_than_a_text_becomes_one(check: Callable[..., str]) -> None:
    """What is returned is a plain str, for drivers choose by exact type."""
    assert type(check(Colour.RED, field="kind")) is str


@given(any_text)
def test_a_checked_line_is_storable(text: str) -> None:
    """Every text is refused by `Invalid`, or can be stored, indexed and shown on one line."""
    for check in LINES:
        try:
            line = check(text, field="f")
        except Invalid:
            continue
        assert line == text
        assert len(line.splitlines()) == 1
        assert len(line.encode()) <= LIMITS.name_chars_max * 4
        assert "\x00" not in line


@pytest.mark.parametrize(
    ("value", "utc"),
    [
        (datetime(2026, 5, 1, 12, tzinfo=UTC), datetime(2026, 5, 1, 12, tzinfo=UTC)),
        (datetime(2026, 5, 1, 12, tzinfo=timezone(timedelta(hours=2))), datetime(2026, 5, 1, 10, tzinfo=UTC)),
        (datetime(1970, 1, 1, tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC)),
        (datetime(9998, 12, 31, 23, 59, 59, 999_999, UTC), datetime(9998, 12, 31, 23, 59, 59, 999_999, UTC)),
        (datetime(9999, 1, 1, 1, tzinfo=timezone(timedelta(hours=2))), datetime(9998, 12, 31, 23, tzinfo=UTC)),
        (datetime(1969, 12, 31, 23, tzinfo=timezone(timedelta(hours=-1))), datetime(1970, 1, 1, tzinfo=UTC)),
    ],
)
def test_a_moment_is_returned_in_utc(value: datetime, utc: datetime) -> None:
    """A datetime with a zone is one point in time, whatever its zone (promise 9)."""
    moment = fields.moment(value, field="run_at")
    assert moment == utc
    assert moment.tzinfo is UTC


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (datetime(2026, 5, 1, 12), "no time zone"),  # noqa: DTZ001
        (datetime(2026, 5, 1, 12, tzinfo=Nowhere()), "no time zone"),
        (datetime(2026, 5, 1, 12, tzinfo=Unfinished()), "no time zone"),
        (datetime(9999, 1, 1, tzinfo=UTC), "out of range"),
        (datetime.max.replace(tzinfo=UTC), "out of range"),
        (datetime.max.replace(tzinfo=timezone(timedelta(hours=-2))), "out of range"),
        (datetime.min.replace(tzinfo=UTC), "out of range"),
        (datetime.min.replace(tzinfo=timezone(timedelta(hours=2))), "out of range"),
        (datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), "out of range"),
        (datetime(9998, 12, 31, 23, tzinfo=timezone(timedelta(hours=-2))), "out of range"),
        (date(2026, 5, 1), "type date"),
        ("2026-05-01T12:00:00Z", "type str"),
        (1_777_000_000, "type int"),
        (None, "nothing"),
    ],
)
def test_what_is_no_moment_of_the_calendar_is_refused(value: object, message: str) -> None:
    """A naive datetime, the year 9999 and other types are refused by field."""
    with pytest.raises(Invalid) as caught:
        fields.moment(value, field="run_at")
    assert caught.value.field == "run_at"
    assert message in caught.value.message


@given(st.datetimes(timezones=st.timezones() | st.just(UTC)))
def test_every_aware_datetime_is_a_moment_or_out_of_range(value: datetime) -> None:
    """No zone and no year raises anything but the refusal."""
    try:
        moment = fields.moment(value, field="run_at")
    except Invalid as error:
        limit = error.limit
    else:
        assert 1970 <= moment.year <= 9998
        assert moment == value.astimezone(UTC)  # the zones would call a wall time in a gap unequal to itself
        return
    assert limit == "the years 1970 to 9998, in UTC"


@pytest.mark.parametrize("value", [0, 1, 0.001, 5e-324, 120, 31_622_400, LIMITS.seconds_max])
def test_a_span_of_seconds_is_a_float(value: float) -> None:
    """Whole and broken numbers from zero to 366 days are spans."""
    span = fields.seconds(value, field="timeout")
    assert span == value
    assert type(span) is float


def test_minus_zero_seconds_is_zero() -> None:
    """Equal spans are written alike."""
    assert repr(fields.seconds(-0.0, field="wait")) == "0.0"


@pytest.mark.parametrize(
    "value",
    [
        *(float("nan"), float("inf"), -float("inf"), -1, -1e-9, 31_622_400.001, 10**400, -(10**400)),
        *(True, False, "1", None, Decimal(1), Fraction(1), timedelta(seconds=1), 1j),
    ],
)
def test_what_is_no_span_is_refused(value: object) -> None:
    """Not a number, without end, negative, beyond a year or of another type: refused by field."""
    with pytest.raises(Invalid) as caught:
        fields.seconds(value, field="timeout")
    assert caught.value.field == "timeout"


def test_a_span_may_have_to_be_above_zero() -> None:
    """A time-out of zero would end every run before it began."""
    for value in (0, 0.0, -0.0):
        with pytest.raises(Invalid) as caught:
            fields.seconds(value, field="timeout", zero=False)
        assert caught.value.limit == "more than 0 to 31622400"
    assert fields.seconds(0.1, field="timeout", zero=False) == 0.1


def test_a_whole_number_lies_between_its_bounds() -> None:
    """Both bounds are included."""
    for value in (1, 2, 3, Size.BIG):
        number = fields.whole(value, field="attempts", low=1, high=3)
        assert number == value
        assert type(number) is int


@pytest.mark.parametrize("value", [0, 4, -1, 2**64, True, False, 2.0, "2", None, Decimal(2), b"2"])
def test_what_is_no_whole_number_between_the_bounds_is_refused(value: object) -> None:
    """A bool and a float are not whole numbers, and the limit is named."""
    with pytest.raises(Invalid) as caught:
        fields.whole(value, field="attempts", low=1, high=3)
    assert caught.value.field == "attempts"
    if isinstance(value, int) and not isinstance(value, bool):
        assert caught.value.limit == "1 to 3"


ID = UUID("0192f0c4-7f7d-7c3e-8a51-3d5c1e0b9a77")


@pytest.mark.parametrize("value", [ID, str(ID), str(ID).upper()])
def test_an_identifier_is_a_uuid_or_its_text(value: object) -> None:
    """Both spellings of one id are one id."""
    assert fields.identifier(value, field="job") == ID


@pytest.mark.parametrize(
    "value",
    [
        *(
            "",
            "7",
            ID.hex,
            f"{{{ID}}}",
            f"urn:uuid:{ID}",
            f" {ID}",
            f"{ID}\n",
            "\u0660" * 8 + str(ID)[8:],
            "g" + str(ID)[1:],
        ),
        *(7, None, ID.bytes, ID.int, True),
    ],
)
def test_what_is_no_identifier_is_refused(value: object) -> None:
    """Only one spelling is taken, so that a log can be searched for it."""
    with pytest.raises(Invalid) as caught:
        fields.identifier(value, field="parents[0]")
    assert caught.value.field == "parents[0]"


NEARLY_IDS = st.sampled_from(
    [str(ID), str(ID).upper(), str(ID)[1:], str(ID)[:8] + "0" + str(ID)[9:], str(ID).replace("7", "-"), "-" * 36, ID, 7]
)


@given(st.lists(NEARLY_IDS | st.uuids().map(str) | st.text("0123456789abcdef-g\u0660", min_size=36, max_size=36)))
def test_a_batch_of_ids_is_told_as_each_of_them_is(values: list[object]) -> None:
    """Told of all at once, no one of them hides behind the others."""
    assert fields.are_ids(values) is all(map(fields.is_id, values))


TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.mark.parametrize("value", [TRACE, TRACE.replace("00-", "cc-", 1), f"{TRACE}-what-a-later-version-adds"])
def test_a_traceparent_is_taken(value: str) -> None:
    """That of this version of the W3C's, and of a later one, which may be longer."""
    fields.trace(value, field="trace")


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "00",
        TRACE.upper(),
        TRACE + "\n",
        TRACE + "-\x00",
        TRACE.replace("00-", "ff-", 1),
        TRACE.replace("4bf92f3577b34da6a3ce929d0e0e4736", "0" * 32),
        TRACE.replace("00f067aa0ba902b7", "0" * 16),
        f"{TRACE}-{'x' * LIMITS.trace_bytes_max}",
        TRACE.encode(),
    ],
)
def test_what_is_no_traceparent_is_refused(value: object) -> None:
    """Before a job carries it to a handler."""
    with pytest.raises(Invalid) as refused:
        fields.trace(value, field="jobs[0].trace")
    assert refused.value.field == "jobs[0].trace"


def test_a_refusal_says_what_where_and_how_much() -> None:
    """Code, field, limit and remedy stand in the message (spec model.md, *Errors*)."""
    with pytest.raises(Invalid) as caught:
        fields.whole(9, field="attempts", low=1, high=3)
    assert str(caught.value) == (
        "INVALID: the number is out of range [field: attempts] [limit: 1 to 3] "
        "Correct the named field and send the command again."
    )
