"""A SARIF report, gone through twice: once for what its runs declare, once for their results."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from testigo.errors import EvidenceInvalid
from testigo.evidence.beneath import Place
from testigo.evidence.reported import Reading
from testigo.evidence.sarif.heads import Head, heads
from testigo.evidence.sarif.results import KEPT, result
from testigo.evidence.sarif.tools import tool_of
from testigo.evidence.streaming import Source, Walk

__all__ = ["read"]

TOOLS_NAMED = 5


def read(
    path: Path | Place,
    *,
    roots: tuple[str, ...],
    analyser: str = "sarif",
    tool: str | None = None,
    name: str | None = None,
) -> Iterator[Reading]:
    """The results of the report at `path`, and what it says could not be analysed or done, in their order.

    Any run may be empty, and there may be none. `roots` are the absolute paths that the scanned
    folder may have in the report, at least one; `analyser` is what the findings call it, and `name`
    what errors call the file. With a `tool`, as `tools` names it, only that one's runs are read.

    Raises EvidenceInvalid, naming the file and the place as a JSON pointer, when it comes to
    something that is refused: before the first result for a text that is not JSON or not SARIF
    2.1.0. A run that says of itself that it failed is refused, too: what it did not find proves nothing. So is a
    report with runs of which none is the tool's.
    """
    with Source(path, name=name) as source:
        found = heads(Walk(source), roots)
        asked = {n for n, head in enumerate(found) if tool is None or tool_of(head.rules.driver.name) == tool}
        if found and not asked:
            wrote = sorted({tool_of(head.rules.driver.name) or "a tool without a name" for head in found})
            raise EvidenceInvalid(
                f"{source.name} has no run of {tool or 'a tool without a name'}",
                field="analyser",
                limit=", ".join(wrote[:TOOLS_NAMED]),
            )
        for number, head in enumerate(found):
            if number in asked and head.failed is not None:
                raise EvidenceInvalid(
                    f"{source.name}, at /runs/{number}/invocations: {head.failed}",
                    field=f"/runs/{number}/invocations",
                    file=source.name,
                )
        walk = Walk(source)
        for member in walk.members():
            if member == "runs":
                for number in walk.elements():
                    if number in asked:
                        yield from _run(walk, found[number], analyser)


def _run(walk: Walk, head: Head, analyser: str) -> Iterator[Reading]:
    yield from head.unread
    for member in walk.members():
        if member == "results":
            for _ in walk.elements():
                place = walk.pointer
                found = _members(walk)
                try:
                    draft = result(found, head.rules, head.places, levels=head.levels, analyser=analyser)
                except EvidenceInvalid as error:
                    raise walk.refused(error.message, at=place, limit=error.limit, remedy=error.remedy) from error
                if draft is not None:
                    yield draft


def _members(walk: Walk) -> dict[str, Any]:
    """What is kept of the result that the walk stands at; of its locations, the first."""
    found: dict[str, Any] = {}
    for name in walk.members():
        if name in KEPT:
            found[name] = walk.value()
        elif name == "locations":
            for index in walk.elements():
                if index == 0:
                    found["location"] = walk.value()
    return found
