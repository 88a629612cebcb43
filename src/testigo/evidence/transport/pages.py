"""The findings of a sealed result, page by page: laid out by the server, and checked by whoever publishes them.

A page is at most 1,000 findings and 1 MiB, and its bytes are the RFC 8785 form of one object. Every check of spec D-07
and D-08 is a refusal of its own, which names page, ordinal, field and check.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, BinaryIO, NoReturn

from testigo.errors import Invalid, PageInvalid
from testigo.evidence.transport import wire
from testigo.evidence.transport.cursors import CURSOR
from testigo.evidence.transport.manifest import Manifest, refused
from testigo.rules.evidence.finding import Finding, Order
from testigo.rules.evidence.severity import SEVERITIES, Severity
from testigo.rules.identity import canonical, content_digest
from testigo.settings import EVIDENCE

__all__ = ["Laid", "Slice", "checked", "lay_out", "page_of"]

_ROOM_BYTES = EVIDENCE.page_bytes_max - 2 * 1024
"""What is left for findings beside the other members of a page."""
_MEMBERS = frozenset(
    {"v", "run", "request", "result", "cursor", "first", "count", "bytes", "digest", "findings", "next"}
)

# In canonical JSON a finding begins with its analyser, and no text holds a quote that is not escaped: so these
# are found between findings and nowhere else.
_OPENS, _CLOSES = b'"findings":[', b'],"first":'
_BETWEEN, _BROKEN = b'},{"analyser":', b'}\n{"analyser":'


@dataclass(frozen=True, slots=True)
class Slice:
    """The findings of one page: ordinals from `first`, and the place of their bytes among all."""

    first: int
    count: int
    at: int
    bytes: int
    digest: str


@dataclass(frozen=True, slots=True)
class Laid:
    """Findings as they were laid out: what the manifest says of the whole, and where its pages are."""

    findings: int
    bytes: int
    result: str
    summary: dict[Severity, int]
    slices: tuple[Slice, ...]


def lay_out(findings: Iterable[Finding], into: BinaryIO) -> Laid:
    """Write findings, which are in their order, as lines of canonical JSON, and say where the pages are."""
    whole = hashlib.sha256()
    summary: Counter[Severity] = Counter()
    slices: list[Slice] = []
    lines: list[bytes] = []
    at = size = 0

    def turn() -> None:
        nonlocal at, size
        body = b"".join(lines)
        whole.update(body)
        into.write(body)
        first = slices[-1].first + slices[-1].count if slices else 0
        slices.append(Slice(first, len(lines), at, len(body), content_digest(body)))
        at, size = at + len(body), 0
        lines.clear()

    for finding in findings:
        line = finding.canonical() + b"\n"
        if lines and (len(lines) == EVIDENCE.page_findings_max or size + len(line) > _ROOM_BYTES):
            turn()
        lines.append(line)
        size += len(line)
        summary[finding.severity] += 1
    if lines:
        turn()
    counted = {severity: summary[severity] for severity in SEVERITIES}
    return Laid(sum(counted.values()), at, f"sha256:{whole.hexdigest()}", counted, tuple(slices))


def page_of(
    run: str, request: str, result: str, slice_: Slice, lines: bytes, cursor: str, following: str | None
) -> bytes:
    """The page of a slice whose lines these are: what `cursor` opens, and `following` goes on from."""
    envelope = {
        "v": wire.VERSION,
        "run": run,
        "request": request,
        "result": result,
        "cursor": cursor,
        "first": slice_.first,
        "count": slice_.count,
        "bytes": slice_.bytes,
        "digest": slice_.digest,
        "next": following,
    }
    head, tail = canonical({**envelope, "findings": []}).split(b'"findings":[]', 1)
    return b"".join((head, _OPENS, lines.removesuffix(b"\n").replace(b"\n", b","), b"]", tail))


def checked(manifest: Manifest, bodies: Iterable[bytes]) -> Iterator[list[Finding]]:
    """The findings of each page, every check of it made before the first of them is given, and those of the whole
    after the last.

    Raises `PageInvalid` for a page; its facts name the `page` and `ordinal`, both from 0, and the `check`: size, json,
    canonical, members, version, run, request, result, cursor, next, first, count, bytes, digest, value, analyser,
    order, fingerprint, pages. Raises `ManifestInvalid` for the whole: pages, findings, bytes, result, summary.
    Memory is bounded by a page, however many there are (spec D-07, D-08).
    """
    with closing(_Stream(manifest)) as stream:
        for body in bodies:
            yield stream.page(body)
        stream.whole()


class _Stream:
    """What must be remembered from one page of a result to the next."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._pages = self._findings = self._bytes = 0
        self._whole = hashlib.sha256()
        self._summary: Counter[Severity] = Counter()
        self._cursor = manifest.cursor
        self._last: Order | None = None
        # Fingerprints are remembered in a file, past the few MiB that it keeps in memory.
        self._seen = sqlite3.connect("", isolation_level=None)
        self._seen.execute("CREATE TABLE seen (fingerprint BLOB PRIMARY KEY) WITHOUT ROWID")
        self._seen.execute("PRAGMA journal_mode = OFF")
        self._seen.execute("BEGIN")

    def close(self) -> None:
        self._seen.close()

    def page(self, body: bytes) -> list[Finding]:
        """The findings of the next page."""
        manifest = self._manifest
        if self._pages == manifest.pages:
            raise self._refused("pages", "next", f"the manifest says that there are {manifest.pages} pages")
        if len(body) > EVIDENCE.page_bytes_max:
            raise self._refused("size", "body", f"it takes more than {EVIDENCE.page_bytes_max} bytes")
        found = wire.parsed(body, self._refused)
        wire.members(found, _MEMBERS, self._refused)
        for name in ("run", "request", "result"):
            wire.same(found[name], getattr(manifest, name), name, name, self._refused)
        wire.same(found["cursor"], self._cursor, "cursor", "cursor", self._refused)
        wire.same(found["first"], self._findings, "first", "first", self._refused)
        values = found["findings"]
        if not isinstance(values, list) or not 1 <= len(values) <= EVIDENCE.page_findings_max:
            limit = EVIDENCE.page_findings_max
            raise self._refused("count", "findings", f"a list of 1 to {limit} findings is needed")
        wire.same(found["count"], len(values), "count", "count", self._refused)
        self._check_next(found["next"])
        findings = self._read(values)
        lines = self._lines(body, found)
        wire.same(found["bytes"], len(lines), "bytes", "bytes", self._refused)
        wire.same(found["digest"], content_digest(lines), "digest", "digest", self._refused)
        self._check_order(findings)
        self._check_unique(findings)
        self._summary.update(finding.severity for finding in findings)
        self._whole.update(lines)
        self._bytes += len(lines)
        self._findings += len(findings)
        self._pages += 1
        self._cursor = found["next"]
        return findings

    def whole(self) -> None:
        """Refuse a stream that is not, as a whole, what its manifest says."""
        manifest = self._manifest
        summary = {severity: self._summary[severity] for severity in SEVERITIES}
        wire.same(self._pages, manifest.pages, "pages", "pages", refused)
        wire.same(self._findings, manifest.findings, "findings", "findings", refused)
        wire.same(self._bytes, manifest.bytes, "bytes", "bytes", refused)
        wire.same(f"sha256:{self._whole.hexdigest()}", manifest.result, "result", "result", refused)
        wire.same(summary, dict(manifest.summary), "summary", "summary", refused)

    def _check_next(self, following: object) -> None:
        """A page that is not the last names the next, and nobody goes in circles."""
        if (self._pages + 1 == self._manifest.pages) != (following is None):
            raise self._refused("next", "next", "only the last page is followed by none")
        if following is not None and (not isinstance(following, str) or not CURSOR.fullmatch(following)):
            raise self._refused("next", "next", "it is no cursor")
        if following is not None and following == self._cursor:
            raise self._refused("next", "next", "it leads to this page again")

    def _read(self, values: list[Any]) -> list[Finding]:
        findings: list[Finding] = []
        for value in values:
            ordinal = self._findings + len(findings)
            try:
                finding = Finding.from_json(value)
            except Invalid as error:
                raise self._refused("value", error.field or "finding", error.message, ordinal) from None
            if finding.analyser != self._manifest.analyser:
                raise self._refused("analyser", "analyser", "it is another analyser's", ordinal)
            findings.append(finding)
        return findings

    def _lines(self, body: bytes, found: dict[str, Any]) -> bytes:
        """The canonical bytes of each finding and a line feed, taken out of a page that is written canonically."""
        if canonical(found) != body:
            self._refuse_form(body.decode(), found["findings"])
        begins, ends = body.index(_OPENS) + len(_OPENS), body.rindex(_CLOSES)
        lines = body[begins:ends].replace(_BETWEEN, _BROKEN) + b"\n"
        for n, line in enumerate(lines.splitlines(keepends=False)):
            if len(line) > EVIDENCE.finding_bytes_max:
                limit = EVIDENCE.finding_bytes_max
                raise self._refused("value", "finding", f"it takes more than {limit} bytes", self._findings + n)
        return lines

    def _refuse_form(self, text: str, values: list[Any]) -> NoReturn:
        """Find the first finding that is not written canonically; else it is the page around them."""
        opens = _OPENS.decode()
        at = text.find(opens) + len(opens)
        for n, value in enumerate(values):
            expected = canonical(value).decode()
            if text[at : at + len(expected)] == expected:
                at += len(expected) + 1
                continue
            try:
                json.JSONDecoder().raw_decode(text, at)
            except ValueError:
                break
            raise self._refused("canonical", "finding", "it is not in canonical form (RFC 8785)", self._findings + n)
        raise self._refused("canonical", "body", "it is not in canonical form (RFC 8785)")

    def _check_order(self, findings: Sequence[Finding]) -> None:
        orders = [finding.order() for finding in findings]
        if self._last is not None:
            orders.insert(0, self._last)
        for n, (one, other) in enumerate(pairwise(orders), self._findings + (self._last is None)):
            if one >= other:
                raise self._refused("order", "finding", "it does not come after the finding before it", n)
        self._last = orders[-1]

    def _check_unique(self, findings: Sequence[Finding]) -> None:
        prints = [(bytes.fromhex(finding.fingerprint[7:]),) for finding in findings]
        before = self._seen.total_changes
        try:
            self._seen.executemany("INSERT INTO seen VALUES (?)", prints)
        except sqlite3.IntegrityError:
            ordinal = self._findings + self._seen.total_changes - before
            raise self._refused("fingerprint", "fingerprint", "another finding of the result has it", ordinal) from None

    def _refused(self, check: str, field: str, why: str, ordinal: int | None = None) -> PageInvalid:
        place = f"Page {self._pages}" + ("" if ordinal is None else f", finding {ordinal}")
        return PageInvalid(
            f"{place} does not hold: {why}.",
            field=field,
            page=self._pages,
            ordinal=self._findings if ordinal is None else ordinal,
            check=check,
        )
