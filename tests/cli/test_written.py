"""JSON is exact and stable; words for people are short; no terminal obeys what it is shown."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest

from testigo.authority.read import Count, JobSummary, LogPlace, Page
from testigo.cli.tables import Column, fit, print_facts, print_hanging, print_table
from testigo.cli.written import age, in_words, moment, number, size, span, to_json
from testigo.rules.documents import parse
from testigo.rules.states import State

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
ROWS = [("01a22e11-db65-7376-953b-9c503645fae8", "media.transcode", "a very long reason that nobody will read")]
COLUMNS: list[Column[tuple[str, str, str]]] = [
    Column("id", lambda row: row[0], whole=True),
    Column("kind", lambda row: row[1]),
    Column("why", lambda row: row[2]),
    Column("extra", lambda row: "more", wide=True, right=True),
]


def test_a_document_is_written_exactly_as_it_is_kept() -> None:
    """Numbers keep their digits, and a document of several lines stays on one (spec P-06)."""
    text = '{"a": 1e2,\n "b": -0.0, "c": 10000000000000000000000.10}'
    written = to_json({"payload": parse(text)})
    assert written == '{"payload": ' + text.replace("\n", " ") + "}"


def test_records_are_written_by_their_members() -> None:
    """Dataclasses, named tuples, words of closed sets and times, as deep as they come."""
    value = {"page": Page((LogPlace(1, 2),)), "state": State.READY, "n": Count(3, True), "at": NOON, "none": None}
    assert json.loads(to_json(value)) == {
        "page": {"items": [{"epoch": 1, "n": 2}], "next": None, "complete": True},
        "state": "ready",
        "n": {"n": 3, "more": True},
        "at": "2026-11-30T12:00:00Z",
        "none": None,
    }


def test_times_are_in_utc_whatever_their_zone() -> None:
    """14:00 in Madrid's summer is noon."""
    assert moment(NOON.astimezone(timezone(timedelta(hours=2)))) == "2026-11-30T12:00:00Z"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0s"), (59, "59s"), (60, "1m"), (3_599, "59m"), (7_200, "2h"), (86_400 * 3, "3d"), (-90, "in 1m")],
)
def test_an_age_is_in_the_largest_unit_that_fits(seconds: int, shown: str) -> None:
    """And what is to come says so."""
    assert age(NOON, NOON + timedelta(seconds=seconds)) == shown


def test_sizes_numbers_and_spans_are_short() -> None:
    """As people say them."""
    assert [size(n) for n in (0, 1023, 1024, 1536, 262_144, 5 * 1024**4)] == [
        "0 bytes", "1,023 bytes", "1 KiB", "1.5 KiB", "256 KiB", "5 TiB",
    ]  # fmt: skip
    assert size(None) == ""
    assert age(None, NOON) == ""
    assert (number(1200.0), number(0.5), span(61)) == ("1,200", "0.50", "1m")


def test_what_an_event_tells_is_one_line() -> None:
    """Without its state, what is nested, and what is not known."""
    assert in_words({"state": "ready", "epoch": 3, "backoff": {"type": "constant"}, "note": None}) == "epoch=3"


def test_no_terminal_obeys_what_it_is_shown() -> None:
    """Neither an escape nor a line break gets out of a cell."""
    assert fit("a\x1b[31mb\nc\x07") == "a\ufffd[31mb c\ufffd"


def test_a_pipe_gets_everything_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    """Every column, uncut, without styles."""
    print_table(COLUMNS, ROWS)
    head, row = capsys.readouterr().out.splitlines()
    assert head.split() == ["ID", "KIND", "WHY", "EXTRA"]
    assert row == f"{ROWS[0][0]}  {ROWS[0][1]}  {ROWS[0][2]}   more"


@pytest.mark.parametrize(
    ("columns", "row"),
    [
        (80, "01a22e11-db65-7376-953b-9c503645fae8  media.transcode  a very long reason that …"),
        (60, "01a22e11-db65-7376-953b-9c503645fae8  media.tra…  a very lo…"),
        (
            120,
            "01a22e11-db65-7376-953b-9c503645fae8  media.transcode  a very long reason that nobody will read   more",
        ),
    ],
)
def test_a_table_fits_its_terminal(
    columns: int, row: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ids stay whole, the widest of the others gives way first, and wide columns come where there is room."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(columns))
    print_table(COLUMNS, ROWS)
    shown = capsys.readouterr().out.splitlines()
    assert all(len(line) <= columns for line in shown)
    assert shown[1] == row


def test_wide_characters_are_cut_by_cells(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A character that takes two cells counts as two."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "20")
    print_table([Column("name", lambda row: row)], ["作業" * 10])
    assert capsys.readouterr().out.splitlines()[1] == "作業作業作業作業作 …"


def test_colours_are_for_terminals_that_want_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A state is coloured on a terminal, and plain under NO_COLOR."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    print_facts([("state", "succeeded")])
    assert "\x1b[32msucceeded" in capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    print_facts([("state", "succeeded")])
    assert capsys.readouterr().out == "state  succeeded\n"


def test_facts_keep_their_lines_and_leave_out_what_is_not_known(capsys: pytest.CaptureFixture[str]) -> None:
    """A traceback stands below its name."""
    print_facts([("error", "a\nb"), ("key", ""), ("kind", "k")])
    assert capsys.readouterr().out == "error  a\n       b\nkind   k\n"


def test_a_sentence_hangs_from_its_label(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """On a terminal; a pipe gets it on one line."""
    print_hanging("why: ", "one two three four")
    assert capsys.readouterr().out == "why: one two three four\n"
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "15")
    print_hanging("why: ", "one two three four")
    assert capsys.readouterr().out == "why: one two\n     three four\n"


def test_the_members_of_a_listed_job_are_these() -> None:
    """Programs read them: a name that goes is a break (issue *The first hour*)."""
    assert list(JobSummary.__dataclass_fields__) == [
        "id", "queue", "kind", "state", "reason", "client", "key", "tags", "priority", "revision", "epoch", "failures",
        "losses", "attempts", "created_at", "due_at", "started_at", "finished_at", "agent", "error_code",
        "error_message", "successor",
    ]  # fmt: skip
