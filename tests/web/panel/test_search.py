"""A search is understood whole, or refused with what would have been right; nothing in it is guessed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testigo.authority.read.filters import Filter
from testigo.errors import Invalid
from testigo.rules.states import State
from testigo.web.panel.search import QUALIFIERS, Query, parse

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
DAY_AGO = NOW - timedelta(hours=24)
BACKSLASH = "\\"
ID = "0198f3c2-1111-7222-8333-444455556666"


def read(text: str) -> Query:
    """The query that a text is."""
    return parse(text, now=NOW)


def refused(text: str) -> Invalid:
    """The refusal of a text."""
    with pytest.raises(Invalid) as caught:
        read(text)
    return caught.value


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("kind:media.transcode", {"kind": "media.transcode"}),
        ("queue:mail", {"queue": "mail"}),
        ("QUEUE:mail", {"queue": "mail"}),
        ("tag:order:881", {"tag": "order:881"}),
        ('tag:"two words"', {"tag": "two words"}),
        (r'tag:"say \"no\" \\ yes"', {"tag": r"say \"no\" \ yes".replace(r"\"", '"')}),
        ("client:shop", {"client": "shop"}),
        ("worker:host-a/17", {"worker": "host-a/17"}),
        ("error:HTTPError", {"error": "HTTPError"}),
        ("state:running", {"states": (State.RUNNING,)}),
        ("state:running,ready", {"states": (State.READY, State.RUNNING)}),
        ("state:running state:ready", {"states": (State.READY, State.RUNNING)}),
        ("state:failed", {"states": (State.PERMANENT_FAILURE,)}),
        ("state:completed", {"states": (State.SUCCEEDED, State.SUCCEEDED_DEGRADED)}),
        ("state:cancelled", {"states": (State.CANCELLED,)}),
        (f"id:{ID}", {"id_prefix": ID}),
        (ID.upper(), {"id_prefix": ID}),
        ("id:0198F3", {"id_prefix": "0198f3"}),
        ("id:0198f3c2-11", {"id_prefix": "0198f3c2-11"}),
        ("attempt>2", {"failures_min": 3}),
        ("attempt>=2", {"failures_min": 2}),
        ("payload.order:881", {"payload": (("order",), "881")}),
        ("payload.items.0.Größe:x", {"payload": (("items", "0", "Größe"), "x")}),
        ("payload.n:18446744073709551617", {"payload": (("n",), "18446744073709551617")}),
        ("after:2h", {"created_after": NOW - timedelta(hours=2)}),
        ("after:3d", {"created_after": NOW - timedelta(days=3)}),
        ("after:2w", {"created_after": NOW - timedelta(weeks=2)}),
        ("after:any", {"created_after": None}),
        ("after:2026-11-29", {"created_after": datetime(2026, 11, 29, tzinfo=UTC)}),
        ("before:2026-11-29T08:30", {"created_before": datetime(2026, 11, 29, 8, 30, tzinfo=UTC)}),
        ("before:2026-11-29T08:30:15+01:00", {"created_before": datetime(2026, 11, 29, 7, 30, 15, tzinfo=UTC)}),
        ("before:15m", {"created_before": NOW - timedelta(minutes=15)}),
    ],
)
def test_each_qualifier_is_understood(text: str, meant: dict[str, Any]) -> None:
    """Its value, whatever is in it, goes where it belongs and nowhere else."""
    found = read(text).filter
    window = {} if meant.keys() & {"id_prefix", "created_after", "created_before"} else {"created_after": DAY_AGO}
    assert found == Filter(**window | meant)


def test_all_of_a_query_is_understood() -> None:
    """Words are told apart by white space, however much of it there is."""
    query = read("  state:running\tqueue:default   kind:Sync payload.order:881 ")
    assert query.filter == Filter(
        states=(State.RUNNING,),
        queue="default",
        kind="Sync",
        payload=(("order",), "881"),
        created_after=DAY_AGO,
    )
    assert str(query) == "state:running queue:default kind:Sync payload.order:881"


@pytest.mark.parametrize("text", ["", "   ", "queue:mail"])
def test_without_a_word_about_time_it_looks_at_the_newest_day_and_says_so(text: str) -> None:
    """The chip that says so can be taken away like any other."""
    query = read(text)
    assert query.filter.created_after == DAY_AGO
    (chip,) = [chip for chip in query.chips if chip.is_default]
    wider = read(chip.without)
    assert wider.filter.created_after is None
    assert not wider.default_window


@pytest.mark.parametrize("text", ["after:2h", "before:2d", "after:any", "id:0198f3", ID])
def test_who_names_a_time_or_a_job_gets_no_window(text: str) -> None:
    """A job that is named is looked for wherever it is."""
    assert not read(text).default_window
    assert not any(chip.is_default for chip in read(text).chips)


def test_a_chip_takes_away_its_own_word_only() -> None:
    """What is left is the query without it, in the same order."""
    query = read('state:running tag:"two words" after:2h')
    assert [chip.text for chip in query.chips] == ["state:running", 'tag:"two words"', "after:2h"]
    assert [chip.without for chip in query.chips] == [
        'tag:"two words" after:2h',
        "state:running after:2h",
        'state:running tag:"two words"',
    ]


def test_another_word_takes_the_place_of_one_with_the_same_qualifier() -> None:
    """So a link can say "the same, but of that state"."""
    assert read("state:running queue:mail state:ready").but("state:failed") == "queue:mail state:failed"


def test_a_whole_id_alone_is_a_job() -> None:
    """Whoever pastes an id wants that job, and not a list of one."""
    assert read(ID).job_id == ID
    assert read(f"id:{ID}").job_id == ID
    assert read("id:0198f3").job_id is None
    assert read(f"id:{ID} queue:q").job_id is None


def test_a_word_said_twice_is_said_once() -> None:
    """The same term twice asks for nothing more."""
    assert str(read("queue:a queue:a")) == "queue:a"


@pytest.mark.parametrize("text", ["queue:mail", "after:2h state:failed", "before:2d", "after:any tag:a", f"id:{ID}"])
def test_a_query_that_is_fixed_means_the_same_later_and_ends_when_it_was_read(text: str) -> None:
    """What is submitted after somebody looked is not what they chose."""
    query = read(text)
    fixed = parse(query.fixed, now=NOW + timedelta(hours=5))
    assert fixed.filter == replace(query.filter, created_before=query.filter.created_before or NOW)
    assert fixed.fixed == query.fixed


NAMES = ("queue", "kind", "tag", "client", "error")


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (" ".join([*(f"state:{state}" for state in State), *(f"{name}:x" for name in NAMES), "worker:x"]), (20, 299)),
        (" ".join([*(f"{name}:{'x' * 192}" for name in NAMES), "id:0123"]), (6, 1000)),
        (" ".join([*(f"{name}:{BACKSLASH * 95}" for name in NAMES), "id:0123"]), (6, 1000)),
    ],
    ids=["words", "characters", "signs that are written twice"],
)
def test_a_search_at_its_limits_can_be_fixed(text: str, size: tuple[int, int]) -> None:
    """Whatever finds jobs, all that match can be chosen: the times that this adds count towards no limit."""
    query = read(text)
    assert (len(query.terms), len(str(query))) == size
    for end in ("", " after:2026-11-29T00:00", " before:30m", " after:any before:2026-11-30T09:15:00.123456+00:00"):
        fixed = read(text + end).fixed
        assert read(fixed).fixed == fixed
    assert refused(f"{text} attempt>1").field == "q"


@pytest.mark.parametrize("name", ["kind", "queue", "tag", "client", "worker", "error", "payload.a"])
def test_two_values_for_what_a_job_has_one_of_are_refused(name: str) -> None:
    """No job would be found, and nobody would know why."""
    assert refused(f"{name}:a {name}:b").field == name.partition(".")[0]


@pytest.mark.parametrize("text", ["colour:red", "queues:mail", "arg.order:1", "payloads.a:1", "__class__:x"])
def test_an_unknown_qualifier_is_refused_with_those_that_are_known(text: str) -> None:
    """The refusal has all of them, and the nearest."""
    error = refused(text)
    assert error.limit == ", ".join(QUALIFIERS)
    if text.startswith("queues"):
        assert "queue?" in error.remedy


@pytest.mark.parametrize(
    ("text", "meant"), [("state:blocked", "blocked_by_quality"), ("state:runing", "running"), ("wor:a", "worker")]
)
def test_a_word_that_was_cut_short_or_misspelt_is_told_as_it_was_meant(text: str, meant: str) -> None:
    """What begins so comes before what merely looks alike."""
    assert refused(text).remedy == f"Did you mean {meant}?"


@pytest.mark.parametrize(
    ("text", "first"),
    [("media.transcode", "kind:media.transcode"), ("0198f3c2", "id:0198f3c2"), ('"two words"', 'kind:"two words"')],
)
def test_a_bare_word_is_refused_with_what_it_may_have_meant(text: str, first: str) -> None:
    """Each suggestion is a query that is understood."""
    suggestions = refused(text).facts["suggestions"]
    assert suggestions[0] == first
    for suggestion in suggestions:
        read(suggestion)


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("state:", "state"),
        ("state:runing", "state"),
        ("state:running,,ready", "state"),
        ("id:xyz", "id"),
        ("id:01", "id"),
        ("id:0198f3c2_", "id"),
        ("attempt:2", "attempt"),
        ("attempt>two", "attempt"),
        ("attempt>-1", "attempt"),
        ("attempt>99999999999999999999", "attempt"),
        ("attempt>٣", "attempt"),
        ("queue>3", "queue"),
        ("after:yesterday", "after"),
        ("after:24", "after"),
        ("after:99999999w", "after"),
        ("after:0001-01-01", "after"),
        ("before:2026-13-01", "before"),
        ("before:any", "before"),
        ("after:1h before:2h", "before"),
        ("payload.:1", "payload"),
        ("payload.a..b:1", "payload"),
        ("payload.a'b:1", "payload"),
        ("kind:" + "k" * 201, "kind"),
        ('kind:" padded "', "kind"),
        ('tag:"open', "tag"),
        ('"open', "q"),
        ("queue:a\x00b", "queue"),
        ("x" * 1_001, "q"),
        (" ".join(f"state:{one},{other}" for one in State for other in State), "q"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(text: str, field: str) -> None:
    """The refusal names the part that it is about."""
    assert refused(text).field == field


@given(st.text(max_size=80))
def test_any_text_is_understood_or_refused(text: str) -> None:
    """Nothing that is typed is a fault of ours; what is understood reads the same when it is written again."""
    try:
        query = read(text)
    except Invalid:
        return
    again = read(str(query))
    assert again == query
    for chip in query.chips:
        read(chip.without)


@given(st.text(st.characters(exclude_categories=["Cs", "Cc", "Cf", "Zl", "Zp"]), min_size=1, max_size=40))
def test_any_name_can_be_searched_for(name: str) -> None:
    """Whatever a tag may be, there is a query for it: the one that a link writes."""
    if name != name.strip():
        return
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    query = read(f'tag:"{escaped}"')
    assert query.filter.tag == name
    assert read(str(query)).filter.tag == name
