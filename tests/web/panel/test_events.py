"""Streams and their events, the newest first, and one event whole."""

from __future__ import annotations

from testigo.access.roles import Role
from testigo.authority.submissions import NewJob
from testigo.rules.outcomes import Fail
from tests.web.conftest import Site
from tests.web.panel.paper import Paper, paper
from tests.web.panel.stage import failed


def test_a_stream_is_read_from_its_end_to_its_beginning(site: Site) -> None:
    """Each event once, page by page; other streams are beside it."""
    site.world.submit(*[NewJob(kind="work", queue="mail") for _ in range(120)])
    site.world.submit(NewJob(kind="work", queue="other"))
    viewer = site.as_(Role.VIEWER)
    page = paper(viewer.get("/horizon/events?stream=mail"))
    seen = [*shown(page)]
    while older := [to for said, to in page.links.items() if said.startswith("Older")]:
        page = paper(viewer.get(older[0]))
        seen += shown(page)
    assert seen == list(range(120, 0, -1))
    assert "other" in page.text


def shown(page: Paper) -> list[int]:
    """The sequences of the events that a page shows, in its order."""
    ids = [given.get("id") or "" for tag, given in page.elements if tag == "tr"]
    return [int(each.removeprefix("event-")) for each in ids if each.startswith("event-")]


def test_events_are_filtered_by_type_and_shown_whole(site: Site) -> None:
    """As whoever follows the stream is sent them, with the way to the job."""
    (job,) = failed(site.world, outcome=Fail("HTTPError", "502"))
    operator = site.as_(Role.OPERATOR)
    page = paper(operator.get("/horizon/events", params={"type": "job.failed"}))
    assert "job.requested" not in page.text.split("What it tells")[1]
    one = paper(operator.get("/horizon/events/one", params={"stream": "q", "sequence": "2"}))
    assert '"specversion": "1.0"' in one.text
    assert '"code": "HTTPError"' in one.text
    assert f"/horizon/jobs/{job}" in one.html
    assert "job.requested" in paper(operator.get(one.link("Before"))).text


def test_what_is_not_there_is_said_so(site: Site) -> None:
    """An installation without events, a stream without a name, an event that is still to come."""
    viewer = site.as_(Role.VIEWER)
    assert "Nothing has happened yet." in paper(viewer.get("/horizon/events")).text
    assert viewer.get("/horizon/events", params={"stream": "none"}).status_code == 404
    site.world.submit()
    for unfit, status in (
        ("stream=q%00", 422),
        ("stream=q&upto=-1", 422),
        ("stream=q&upto=99999999999999999999", 422),
        ("stream=q&after=%23x", 422),
    ):
        assert viewer.get(f"/horizon/events?{unfit}").status_code == status, unfit
    assert viewer.get("/horizon/events", params={"stream": "q", "upto": "0"}).status_code == 200
    for sequence, status in ((2, 404), (3, 422), (0, 422), (1, 200)):
        answer = viewer.get("/horizon/events/one", params={"stream": "q", "sequence": str(sequence)})
        assert answer.status_code == status, sequence


def test_a_viewer_is_not_told_what_handlers_worded(site: Site) -> None:
    """Neither in the list nor in the event."""
    failed(site.world, outcome=Fail("HTTPError", "message-s3cr3t"))
    one = {"stream": "q", "sequence": "2"}
    assert "s3cr3t" in site.as_(Role.OPERATOR).get("/horizon/events/one", params=one).text
    for address in ("/horizon/events", "/horizon/events/one?stream=q&sequence=2"):
        assert "s3cr3t" not in paper(site.as_(Role.VIEWER).get(address)).html
