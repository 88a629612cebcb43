"""Whatever jobs and people brought with them is text on every page: it runs nowhere and hides nothing (R73, R76)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from testigo.access.roles import Role
from testigo.authority.actions import Action, JobId, new_id
from testigo.authority.cancel import cancel
from testigo.authority.pause import Scope, pause
from testigo.authority.report import LogLine, Progress, report
from testigo.authority.save import save
from testigo.authority.submissions import NewJob
from testigo.operations import OperationId, Selection, Verb, begin
from testigo.rules.documents import Document, encode
from testigo.rules.outcomes import Block, Degrade, Fail, Outcome, Succeed
from tests.web.conftest import Site
from tests.web.panel.paper import Paper, paper
from tests.web.panel.stage import ended, failed, running
from tests.world import held

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)

MARKUP = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\"'><svg/onload=alert(1)>",
    "javascript:alert(1)",
    "</pre></textarea></title><script>alert(1)</script>",
    "{{7*7}}{% raw %}",
    "' onmouseover='alert(1)",
)
"""What a browser would run, or leave an attribute or an element by, if it were not escaped."""

PAGES = (
    "/horizon", "/horizon/jobs", "/horizon/jobs?q=state:failed", "/horizon/failed", "/horizon/queues", "/horizon/kinds",
    "/horizon/workers", "/horizon/events", "/horizon/operations", "/horizon/audit", "/horizon/settings",
)  # fmt: skip

ASKED = {
    "/horizon/failed": ("queue", "since", "cause", "done"),
    "/horizon/events": ("stream", "type", "upto", "after"),
    "/horizon/audit": ("actor", "action", "object", "from", "verify"),
    "/horizon/jobs/{job}": ("done", "show", "run", "after"),
    "/horizon/operations/retry/confirm": ("id", "q", "reason"),
}
"""What the pages can be asked for, by their addresses."""

NOT_OURS = frozenset({"img", "iframe", "object", "embed", "base", "style", "math", "frame", "audio", "video"})
"""Elements that no template of ours has."""


def everywhere(site: Site, text: str) -> Iterator[JobId]:
    """Jobs that have this text wherever a text may be."""
    world, asked = site.world, {"queue": text, "kind": text, "tags": (text,), "client": text}
    payload = encode({text: [text], "n": 1})
    outcomes: list[Outcome] = [
        Fail(text, text, text, permanent=True),
        Block(text, text),
        Degrade(encode([text]), (text,)),
        Succeed(encode(text)),
    ]
    for outcome in outcomes:
        yield from ended(world, 1, outcome, payload=payload, key=f"{text}{new_id()}", **asked)
    lease, worker = running(world, text, payload=payload, **asked)
    told = Progress(held(lease), 1, NOON, 1.0, 2.0, text)
    site.db.run(report, worker.session.id, [told], [LogLine(held(lease), 1, NOON, text, text)])
    site.db.run(save, held(lease), encode({text: text}), number=1, action=worker.action())
    site.db.run(cancel, [lease.job_id], note=text, action=Action(text))
    yield lease.job_id
    site.db.run(pause, Scope.QUEUE, text, note=text, action=Action(text))
    yield from world.submit(NewJob(kind=text, queue=text, payload=payload, tags=(text,)))


def addresses(site: Site, jobs: list[JobId]) -> Iterator[str]:
    """Every page on which they are, and what may be done to them."""
    yield from PAGES
    for job in jobs:
        yield f"/horizon/jobs/{job}"
    for verb in Verb:
        yield from (f"/horizon/jobs/{job}/{verb}" for job in (jobs[0], jobs[-1]))
    name = OperationId(new_id())
    chosen = Selection(ids=tuple(jobs))
    site.db.run(begin, Verb.RETRY, chosen, reason=MARKUP[0], action=Action("user:admin"), operation_id=name)
    yield f"/horizon/operations/{name}"
    yield f"/horizon/operations/retry/confirm?id={jobs[0]}"


def check_inert(page: Paper, text: str, address: str) -> None:
    """The page has no element and no attribute that our templates have not, and what came from outside is escaped."""
    for tag, given in page.elements:
        assert tag not in NOT_OURS, (address, tag)
        assert not [name for name in given if name.startswith("on") or name == "style"], (address, tag, given)
        for name in ("href", "src", "action", "formaction"):
            value = given.get(name) or ""
            assert value == "" or value.startswith(("/", "?", "#")), (address, tag, value)
        if tag == "script":
            assert (given.get("src") or "").startswith("/horizon/static/"), address
    if "<" in text:
        assert text not in page.html, address


@pytest.mark.parametrize("text", MARKUP)
def test_markup_is_text_on_every_page(site: Site, text: str) -> None:
    """As payload, error, queue, kind, worker, tag, key, note, log, reason and search (field case R73)."""
    jobs = list(everywhere(site, text))
    site.db.run(cancel, [jobs[-1]], note=text, action=site.world.action())
    admin = site.as_(Role.ADMIN)
    seen = 0
    for address in addresses(site, jobs):
        answer = admin.get(address)
        assert answer.status_code in (200, 409), (address, answer.status_code)
        page = paper(answer, answer.status_code)
        check_inert(page, text, address)
        seen += text in page.text or " ".join(text.split()) in page.text
    assert seen > len(jobs)
    for query in ({"q": text}, {"q": f"queue:{text}"}, {"q": f'tag:"{text}"'}, {"q": f"{text}:x"}, {"after": text}):
        answer = admin.get("/horizon/jobs", params=query)
        assert answer.status_code in (200, 422)
        check_inert(paper(answer, answer.status_code), text, str(query))
    for place, names in ASKED.items():
        for name in names:
            address = place.format(job=jobs[0])
            answer = admin.get(address, params={name: text})
            assert answer.status_code < 500, (address, name)
            check_inert(paper(answer, answer.status_code), text, f"{address}?{name}")


def test_a_secret_that_jobs_hold_is_on_no_page_of_a_viewer(site: Site) -> None:
    """In payload, error, detail, checkpoint, output, log, progress and what a blocked job needs (field case R76)."""
    marker = f"s3cr3t-{new_id()}"
    document = encode({"pin": marker})
    jobs = [
        *failed(site.world, outcome=Fail("HTTPError", f"message {marker}", f"detail {marker}"), payload=document),
        *ended(site.world, 1, Block(f"reason {marker}", f"needs {marker}"), payload=document, queue="b"),
        *ended(site.world, 1, Succeed(document), payload=document, queue="c"),
    ]
    lease, worker = running(site.world, queue="d", payload=document)
    told = Progress(held(lease), 1, NOON, 1.0, 2.0, f"note {marker}")
    site.db.run(report, worker.session.id, [told], [LogLine(held(lease), 1, NOON, "INFO", f"log {marker}")])
    site.db.run(save, held(lease), Document(document), number=1, action=worker.action())
    jobs.append(lease.job_id)
    viewer, admin = site.as_(Role.VIEWER), site.as_(Role.ADMIN)
    streams = {row.stream: row.head for row in site.world.query("SELECT name AS stream, head FROM testigo.stream")}
    one = [
        f"/horizon/events/one?stream={name}&sequence={n}" for name, head in streams.items() for n in range(1, head + 1)
    ]
    of_streams = [f"/horizon/events?stream={name}" for name in streams]
    of_jobs = [f"/horizon/jobs/{job}" for job in jobs]
    files = [f"/horizon/jobs/{job}/{name}.json" for job in jobs for name in ("payload", "checkpoint", "output")]
    found = 0
    for address in (*PAGES, *of_jobs, *one, *of_streams, *files, "/horizon/jobs.csv?q=after:any"):
        assert marker not in viewer.get(address).text, address
        found += marker in admin.get(address).text
    assert found >= len(jobs)
