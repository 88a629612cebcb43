"""Each check of D-07 and D-08, violated alone, is a refusal of its own that names page, ordinal, field and check."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from testigo.errors import ManifestInvalid, PageInvalid
from testigo.evidence.transport.cursors import Cursors
from testigo.evidence.transport.pages import checked, lay_out, page_of
from testigo.rules.evidence.finding import Finding
from testigo.rules.evidence.severity import Severity
from testigo.rules.identity import canonical, content_digest
from testigo.settings import EVIDENCE
from tests.evidence.transport.results import REQUEST, RUN, Result, finding, manifest

OTHER = content_digest("other")
ELSEWHERE = "0190b5a2-0000-7000-8000-000000000002"


def _edited(page: int, **members: Any) -> Callable[[Result], None]:
    """What changes members of a page, and nothing else."""
    return lambda result: result.pages[page].update(members)


def _changed(page: int, at: int, **members: Any) -> Callable[[Result], None]:
    """What changes members of a finding and has everything else agree."""
    return lambda result: result.change(page, at, **members)


def _swapped(result: Result) -> None:
    result.pages[1]["findings"].reverse()
    result.fit()


def _swapped_over_pages(result: Result) -> None:
    one, other = result.pages[0]["findings"], result.pages[1]["findings"]
    one[-1], other[0] = other[0], one[-1]
    result.fit()


def _skipped(result: Result) -> None:
    result.pages[1]["first"] += 1


def _repeated(result: Result) -> None:
    result.pages[1]["first"] -= 1


def _page_twice(result: Result) -> None:
    result.bodies[2] = canonical(result.pages[1])


def _page_left_out(result: Result) -> None:
    result.bodies[1] = canonical(result.pages[2])


def _other_cursor(result: Result) -> None:
    result.pages[1]["cursor"] = Cursors().made(RUN, REQUEST.digest, OTHER, 2)


def _circle(result: Result) -> None:
    result.pages[1]["next"] = result.pages[1]["cursor"]


def _ends_early(result: Result) -> None:
    result.pages[1]["next"] = None


def _goes_on(result: Result) -> None:
    result.pages[2]["next"] = result.pages[0]["cursor"]


def _empty(result: Result) -> None:
    result.pages[1].update(findings=[], count=0)


def _spaced(result: Result) -> None:
    result.bodies[1] = canonical(result.pages[1]).replace(b'"count":2', b'"count": 2')


def _spaced_finding(result: Result) -> None:
    body = canonical(result.pages[1])
    at = body.rindex(b'"line":')
    result.bodies[1] = body[:at] + b'"line": ' + body[at + 7 :]


def _escaped(result: Result) -> None:
    result.bodies[1] = canonical(result.pages[1]).replace("ä".encode(), b"\\u00e4", 1)


def _twice_named(result: Result) -> None:
    result.bodies[1] = canonical(result.pages[1]).replace(b'"level":"note"', b'"level":"note","level":"note"', 1)


def _unsorted(result: Result) -> None:
    findings = [dict(sorted(value.items())) for value in result.pages[1]["findings"]]
    page = {**result.pages[1], "findings": findings}
    result.bodies[1] = json.dumps(page, ensure_ascii=False, separators=(",", ":")).encode()


def _cut(result: Result) -> None:
    result.bodies[1] = canonical(result.pages[1])[:-10]


def _not_utf8(result: Result) -> None:
    result.bodies[1] = canonical(result.pages[1]).replace("ä".encode(), b"\xff")


def _deep(result: Result) -> None:
    result.bodies[1] = b"[" * 200_000


def _larger(result: Result) -> None:
    result.bodies[1] = canonical(result.pages[1]) + b" " * EVIDENCE.page_bytes_max


def _too_many(result: Result) -> None:
    result.pages[1]["findings"] *= 501


def _huge_finding(result: Result) -> None:
    named = {f"m{n}": "\n" * 2000 for n in range(32)}
    result.change(1, 1, metadata=named, message="\n" * 16_000 + "x", snippet="\n" * 16_000 + "x")


def _same_fingerprint(result: Result) -> None:
    result.change(1, 1, fingerprint=result.pages[0]["findings"][0]["fingerprint"])


def _same_on_one_page(result: Result) -> None:
    result.change(1, 1, fingerprint=result.pages[1]["findings"][0]["fingerprint"])


def _same_order(result: Result) -> None:
    result.change(1, 1, **{**result.pages[1]["findings"][0], "message": "another"})


def _renamed(result: Result) -> None:
    result.pages[1]["further"] = 1


def _without(result: Result) -> None:
    del result.pages[1]["digest"]


PAGES: list[tuple[Callable[[Result], None], str, str, int, int]] = [
    (_edited(1, run=ELSEWHERE), "run", "run", 1, 2),
    (_edited(1, request=OTHER), "request", "request", 1, 2),
    (_edited(1, result=OTHER), "result", "result", 1, 2),
    (_edited(1, v=2), "version", "v", 1, 2),
    (_edited(1, v=True), "version", "v", 1, 2),
    (_renamed, "members", "further", 1, 2),
    (_without, "members", "digest", 1, 2),
    (_other_cursor, "cursor", "cursor", 1, 2),
    (_page_twice, "cursor", "cursor", 2, 4),
    (_page_left_out, "cursor", "cursor", 1, 2),
    (_circle, "next", "next", 1, 2),
    (_ends_early, "next", "next", 1, 2),
    (_goes_on, "next", "next", 2, 4),
    (_edited(1, next="no cursor"), "next", "next", 1, 2),
    (_skipped, "first", "first", 1, 2),
    (_repeated, "first", "first", 1, 2),
    (_edited(1, count=3), "count", "count", 1, 2),
    (_edited(1, findings="none"), "count", "findings", 1, 2),
    (_empty, "count", "findings", 1, 2),
    (_too_many, "count", "findings", 1, 2),
    (_edited(1, bytes=1), "bytes", "bytes", 1, 2),
    (_edited(1, bytes=1.0), "bytes", "bytes", 1, 2),
    (_edited(1, digest=OTHER), "digest", "digest", 1, 2),
    (_spaced, "canonical", "body", 1, 2),
    (_unsorted, "canonical", "body", 1, 2),
    (_spaced_finding, "canonical", "finding", 1, 3),
    (_escaped, "canonical", "finding", 1, 2),
    (_twice_named, "canonical", "finding", 1, 2),
    (_cut, "json", "body", 1, 2),
    (_not_utf8, "json", "body", 1, 2),
    (_deep, "json", "body", 1, 2),
    (lambda result: result.bodies.update({1: b"[]"}), "json", "body", 1, 2),
    (_larger, "size", "body", 1, 2),
    (_huge_finding, "value", "finding", 1, 3),
    (_changed(1, 1, severity="awful"), "value", "severity", 1, 3),
    (_changed(1, 1, line=2.5), "value", "line", 1, 3),
    (_changed(1, 1, message="nul \x01"), "value", "message", 1, 3),
    (_changed(1, 1, path="../out"), "value", "path", 1, 3),
    (_changed(1, 1, more=1), "value", "more", 1, 3),
    (_changed(1, 1, analyser="ruff"), "analyser", "analyser", 1, 3),
    (_swapped, "order", "finding", 1, 3),
    (_swapped_over_pages, "order", "finding", 1, 2),
    (_same_order, "order", "finding", 1, 3),
    (_same_fingerprint, "fingerprint", "fingerprint", 1, 3),
    (_same_on_one_page, "fingerprint", "fingerprint", 1, 3),
]


@pytest.mark.parametrize(("break_it", "check", "field", "page", "ordinal"), PAGES)
def test_a_page_is_refused_for_the_check_that_it_breaks(
    break_it: Callable[[Result], None], check: str, field: str, page: int, ordinal: int
) -> None:
    """Wrong identity, cursor, ordinal, count, size, hash, form, value, order or fingerprint (spec D-07)."""
    result = Result.of(2, 2, 2)
    break_it(result)
    with pytest.raises(PageInvalid) as refusal:
        result.read()
    error = refusal.value
    assert (error.facts["check"], error.field) == (check, field)
    assert (error.facts["page"], error.facts["ordinal"]) == (page, ordinal)


def _more_pages(result: Result) -> None:
    result.manifest = replace(result.manifest, pages=4)
    result.pages[2]["next"] = result.pages[0]["cursor"]


def _more_findings(result: Result) -> None:
    summary = {**result.manifest.summary, Severity.LOW: 7}
    result.manifest = replace(result.manifest, findings=7, summary=summary)


def _other_result(result: Result) -> None:
    result.manifest = replace(result.manifest, result=OTHER)
    for page in result.pages:
        page["result"] = OTHER


def _other_summary(result: Result) -> None:
    summary = {**result.manifest.summary, Severity.LOW: 5, Severity.HIGH: 1}
    result.manifest = replace(result.manifest, summary=summary)


def _other_bytes(result: Result) -> None:
    result.manifest = replace(result.manifest, bytes=result.manifest.bytes + 1)


@pytest.mark.parametrize(
    ("break_it", "check"),
    [
        (_more_pages, "pages"),
        (_more_findings, "findings"),
        (_other_bytes, "bytes"),
        (_other_result, "result"),
        (_other_summary, "summary"),
    ],
)
def test_the_whole_is_refused_for_what_it_is_not(break_it: Callable[[Result], None], check: str) -> None:
    """After the last page, before anything of it counts (spec D-08)."""
    result = Result.of(2, 2, 2)
    break_it(result)
    with pytest.raises(ManifestInvalid) as refusal:
        result.read()
    assert (refusal.value.facts["check"], refusal.value.field) == (check, check)


def test_a_page_more_than_the_manifest_counts_is_refused() -> None:
    """So nobody goes on for ever."""
    result = Result.of(2, 2)
    with pytest.raises(PageInvalid) as refusal:
        list(checked(result.manifest, [*result.written(), result.written()[1]]))
    assert (refusal.value.facts["check"], refusal.value.facts["page"]) == ("pages", 2)


def test_what_is_right_is_read_as_it_was_written() -> None:
    """Also where names are not ASCII, which canonical JSON orders as no encoder does, and texts look like JSON."""
    odd = {"metadata": {"\U0001f600": "a", "\uffee": "b", "ä": "c"}, "message": '},{"analyser":"x"},\n],"first":1'}
    result = Result.of(3, 1)
    result.change(0, 1, **odd)
    found = result.read()
    assert [each.to_json() for each in found] == [value for page in result.pages for value in page["findings"]]
    assert [each.to_json() for each in Result.of().read()] == []


def test_what_is_laid_out_is_what_is_checked() -> None:
    """By number and by size: pages are full, and none is larger than it may be."""
    small = [finding(n) for n in range(2500)]
    large = [finding(n, message="m" * 15_000, snippet="\n" * 15_000 + "s") for n in range(200)]
    for findings, sizes in ((small, [1000, 1000, 500]), (large, None)):
        found, pages = _carried(findings)
        assert found == findings
        assert sizes is None or pages == sizes
        assert max(pages) <= EVIDENCE.page_findings_max


def _carried(findings: list[Finding]) -> tuple[list[Finding], list[int]]:
    file = io.BytesIO()
    laid = lay_out(findings, file)
    cursors = Cursors()

    def cursor(position: int) -> str:
        return cursors.made(RUN, REQUEST.digest, laid.result, position)

    bodies = []
    for each in laid.slices:
        lines = file.getvalue()[each.at : each.at + each.bytes]
        end = each.first + each.count
        following = cursor(end) if end < laid.findings else None
        bodies.append(page_of(RUN, REQUEST.digest, laid.result, each, lines, cursor(each.first), following))
    assert max(map(len, bodies)) <= EVIDENCE.page_bytes_max
    told = manifest(
        result=laid.result,
        findings=laid.findings,
        bytes=laid.bytes,
        pages=len(bodies),
        summary=laid.summary,
        cursor=cursor(0),
    )
    pages = list(checked(told, bodies))
    return [each for page in pages for each in page], [len(page) for page in pages]
