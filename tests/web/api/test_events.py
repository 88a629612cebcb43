"""Streams of events over HTTP: read without a gap, and followed across a cut line."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx

from testigo.access.roles import Role
from testigo.rules.outcomes import Fail
from tests.web.api.asking import is_problem, submitted
from tests.web.conftest import Site
from tests.web.panel.stage import failed


def told(lines: Iterator[str]) -> Iterator[tuple[int, dict[str, object]]]:
    """The events of an answer that goes on: their ids and what they tell."""
    sequence = 0
    for line in lines:
        name, _, value = line.partition(": ")
        if name == "id":
            sequence = int(value)
        elif name == "data":
            yield sequence, json.loads(value)


def test_a_stream_is_read_from_a_cursor(site: Site) -> None:
    """Page by page, each event once, as CloudEvents; a cursor that cannot be is refused (spec B-03)."""
    viewer, operator = site.program(Role.VIEWER), site.program(Role.OPERATOR)
    jobs = [submitted(operator) for _ in range(3)]
    first = viewer.get("/api/v1/events", params={"stream": "q", "limit": 2}).json()
    second = viewer.get(first["next"]).json()
    events = first["items"] + second["items"]
    assert [event["subject"] for event in events] == jobs
    assert [int(event["sequence"]) for event in events] == [1, 2, 3]
    assert {event["specversion"] for event in events} == {"1.0"}
    assert second["next"] is None
    (stream,) = viewer.get("/api/v1/streams").json()["items"]
    assert (stream["name"], stream["floor"], stream["head"]) == ("q", 0, 3)
    for after in ("4", str(2**63), str(2**64)):
        answer = viewer.get("/api/v1/events", params={"stream": "q", "after": after})
        is_problem(answer, 422, "CURSOR_INVALID")
    is_problem(viewer.get("/api/v1/events", params={"stream": "nothing"}), 404, "NOT_FOUND")
    for params in ({}, {"stream": "a\x00"}, {"stream": "q", "after": "-1"}, {"stream": "q", "after": "9" * 5000}):
        is_problem(viewer.get("/api/v1/events", params=params), 422)


def test_a_stream_is_followed_across_a_cut_line(site: Site) -> None:
    """From the last id that was received on: no event is missed, and none comes twice (spec B-06)."""
    viewer, operator = site.program(Role.VIEWER), site.program(Role.OPERATOR)
    jobs = [submitted(operator) for _ in range(2)]
    asked = {"stream": "q", "after": "0"}
    with viewer.stream("GET", "/api/v1/events/live", params=asked) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        events = told(answer.iter_lines())
        received = [next(events), next(events)]
        jobs.append(submitted(operator))
        received.append(next(events))
    jobs += [submitted(operator) for _ in range(2)]
    last = {"Last-Event-ID": str(received[-1][0])}
    with viewer.stream("GET", "/api/v1/events/live", params=asked, headers=last) as answer:
        events = told(answer.iter_lines())
        received += [next(events), next(events)]
    assert [sequence for sequence, _ in received] == [1, 2, 3, 4, 5]
    assert [event["subject"] for _, event in received] == jobs


def test_a_stream_is_followed_from_now_on(site: Site) -> None:
    """Without a cursor, what was before is not told."""
    viewer, operator = site.program(Role.VIEWER), site.program(Role.OPERATOR)
    submitted(operator)
    with viewer.stream("GET", "/api/v1/events/live", params={"stream": "q"}) as answer:
        job_id = submitted(operator)
        sequence, event = next(told(answer.iter_lines()))
    assert (sequence, event["subject"]) == (2, job_id)


def as_browsers_part_them(answer: httpx.Response) -> Iterator[str]:
    """The lines of an answer: they end at LF, and not wherever `splitlines`, and so httpx, sees an end."""
    rest = ""
    for text in answer.iter_text():
        *lines, rest = (rest + text).split("\n")
        yield from lines


def test_words_that_part_lines_elsewhere_part_no_event(site: Site) -> None:
    """JSON holds U+2028 and U+2029 as they are, and no line of a stream of events ends there."""
    words = "one\u2028two\u2029three"
    failed(site.world, outcome=Fail("E", words, permanent=True))
    with site.program(Role.OPERATOR).stream(
        "GET", "/api/v1/events/live", params={"stream": "q", "after": "1"}
    ) as answer:
        sequence, event = next(told(as_browsers_part_them(answer)))
    assert (sequence, event["type"], event["data"]["message"]) == (2, "job.failed", words)  # type: ignore[index]


def test_what_cannot_be_followed_is_refused_before_it_begins(site: Site) -> None:
    """As a problem, and not as an answer that breaks off."""
    viewer, operator = site.program(Role.VIEWER), site.program(Role.OPERATOR)
    submitted(operator)

    def asked(headers: dict[bytes, bytes] | None = None, **params: str) -> httpx.Response:
        return viewer.get("/api/v1/events/live", params=params, headers=headers or {})

    is_problem(asked(stream="nothing"), 404, "NOT_FOUND")
    is_problem(asked(stream="q", after="9"), 422, "CURSOR_INVALID")
    for wrong in (b"x", b"-1", b"9" * 20, b"1\xb2"):
        is_problem(asked({b"Last-Event-ID": wrong}, stream="q"), 422)
