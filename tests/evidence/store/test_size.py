"""A hundred thousand findings in one transaction, and no more than a few pages of them in memory (issue 6)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from weakref import finalize

from testigo.evidence.findings import findings
from testigo.rules.evidence.finding import Finding
from testigo.rules.evidence.severity import SEVERITIES
from tests.evidence.store.kit import found, going, sealed
from tests.world import World

PAGES = 100
PAGE = 1_000


class Page(list[Finding]):
    """A page that can be followed to its end."""


def test_a_hundred_thousand_findings_are_published_page_by_page(world: World) -> None:
    """However many there are, the memory that they take is that of three pages (spec D-07)."""
    alive = most = 0

    def gone() -> None:
        nonlocal alive
        alive -= 1

    def pages() -> Iterator[Sequence[Finding]]:
        nonlocal alive, most
        for at in range(PAGES):
            page = Page(found(f"n{at}-{n}", SEVERITIES[n % 5]) for n in range(PAGE))
            alive += 1
            most = max(most, alive)
            finalize(page, gone)
            yield page
            del page

    run = going(world)
    answer = run.publish(sealed(findings=PAGES * PAGE, pages=pages))
    assert answer.findings == PAGES * PAGE
    assert most <= 3
    assert world.query("SELECT count(*) AS n FROM testigo.occurrence")[0].n == PAGES * PAGE
    page = world.db.run(findings, run.id, limit=1000).page
    assert (len(page.items), page.complete) == (1000, True)
