"""What checking a result takes does not grow with the number of its findings (issue *Limits*)."""

from __future__ import annotations

import io
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

from testigo.evidence.transport.cursors import Cursors
from testigo.evidence.transport.pages import checked, lay_out, page_of
from tests.evidence.transport.results import REQUEST, RUN, finding, manifest

PAGE_BYTES = 1024**2


def _peak(count: int, file: io.BufferedRandom) -> int:
    """The most bytes that Python held while so many findings were laid out and checked."""
    cursors = Cursors()
    tracemalloc.start()
    try:
        laid = lay_out((finding(n) for n in range(count)), file)

        def cursor(position: int) -> str:
            return cursors.made(RUN, REQUEST.digest, laid.result, position)

        def bodies() -> Iterator[bytes]:
            for each in laid.slices:
                file.seek(each.at)
                end = each.first + each.count
                following = cursor(end) if end < laid.findings else None
                lines = file.read(each.bytes)
                yield page_of(RUN, REQUEST.digest, laid.result, each, lines, cursor(each.first), following)

        told = manifest(
            result=laid.result,
            findings=laid.findings,
            bytes=laid.bytes,
            pages=len(laid.slices),
            summary=laid.summary,
            cursor=cursor(0),
        )
        assert sum(len(page) for page in checked(told, bodies())) == count
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_is_bounded_by_a_page_whatever_the_number_of_findings(tmp_path: Path) -> None:
    """Ten times the findings take no page more."""
    with (tmp_path / "few").open("w+b") as few, (tmp_path / "many").open("w+b") as many:
        _peak(1000, few)  # what is loaded once
        few.seek(0)
        assert _peak(20_000, many) - _peak(2000, few) < PAGE_BYTES
