"""The page of a job has all that is known of it, each document as it is kept, and no more than a role may see."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from html import unescape

from testigo.access.roles import Role
from testigo.authority.actions import JobId, new_id
from testigo.authority.deferred import settle_deferred
from testigo.authority.report import LogLine, Progress, report
from testigo.authority.reprocess import reprocess
from testigo.authority.save import save
from testigo.authority.settle import settle
from testigo.authority.submissions import NewJob
from testigo.rules.documents import Document
from testigo.rules.outcomes import Degrade, Fail, RunFacts, Succeed
from testigo.rules.retries import Constant
from tests.web.conftest import Site
from tests.web.panel.paper import Paper, paper
from tests.web.panel.stage import ended, failed, running
from tests.world import held, settlement

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
EXACT = '{"big":18446744073709551617,"none":[],"empty":{},"total":1e2,"minus":-0.0,"text":"a\\"{,b"}'


def page(site: Site, job_id: JobId, role: Role = Role.OPERATOR, **query: object) -> Paper:
    """The page of a job, for somebody of this role."""
    return paper(site.as_(role).get(f"/horizon/jobs/{job_id}", params={k: str(v) for k, v in query.items()}))


def test_a_run_that_goes_on_is_shown_with_its_owner_progress_and_log(site: Site) -> None:
    """Who has it, since when, how far it is, what it logged, and what it saved."""
    lease, worker = running(site.world, "host-a/17", tags=("order:881",), timeout_seconds=90.0, attempts=7)
    at = NOON + timedelta(seconds=30)
    told = Progress(held(lease), 1, NOON, 250.0, 1_000.0, "encoding <b>")
    lines = [LogLine(held(lease), n, at, level, f"line {n}") for n, level in ((1, "INFO"), (2, "ERROR"))]
    site.db.run(report, worker.session.id, [told], lines)
    site.db.run(save, held(lease), Document('{"position":4}'), number=1, action=worker.action())
    shown = page(site, lease.job_id)
    assert "host-a/17 runs it since" in shown.text
    assert "250 / 1 000 · encoding <b>" in shown.text
    assert "line 1" in shown.text
    assert "ERROR line 2" in shown.text
    assert '"position": 4' in unescape(shown.html)
    assert "0 of 7" in shown.text
    assert "90 s a run" in shown.text
    assert "Run 1: began at host-a/17" in shown.text
    assert "order:881" in shown.text


def test_what_a_job_went_through_is_told_in_order(site: Site) -> None:
    """Each run with how it ended, what followed, and what is known of it."""
    (job_id,) = site.world.submit(NewJob(kind="work", queue="q", attempts=2, backoff=Constant(3_600.0)))
    worker = site.world.worker("host-a/17")
    lease = worker.take()
    facts = RunFacts("4f2c", NOON, 12.5, 9, 88_000_000)
    failure = Fail("HTTPError", "502 from payments")
    action, rows = worker.action(), [settlement(lease, failure, facts=facts)]
    assert site.db.run(settle, rows, action=action).deferred == (0,)
    site.db.run(settle_deferred, [(0, rows[0])], action=action)
    shown = page(site, job_id)
    for said in (
        "Submitted by tester",
        "Run 1: began at host-a/17",
        "Run 1: failed with HTTPError",
        "failure 1 of 2; the next try in",
        "killed by signal 9",
        "release 4f2c",
        "502 from payments",
        "It failed with HTTPError, and waits for try 2 of 2",
    ):
        assert said in shown.text, said
    assert (
        shown.text.index("Submitted by tester") < shown.text.index("Run 1: began") < shown.text.index("Run 1: failed")
    )


def test_documents_are_shown_token_by_token_as_they_are_kept(site: Site) -> None:
    """No number is read and no string rewritten, and the file is the same bytes."""
    (job_id,) = site.world.submit(NewJob(kind="work", queue="q", payload=Document(EXACT)))
    shown = page(site, job_id).text
    for token in ('"big": 18446744073709551617', '"none": []', '"empty": {}', '"total": 1e2', '"minus": -0.0'):
        assert token in shown
    assert '"text": "a\\"{,b"' in shown
    answer = site.as_(Role.OPERATOR).get(f"/horizon/jobs/{job_id}/payload.json")
    assert answer.content == EXACT.encode()
    assert "attachment" in answer.headers["content-disposition"]
    assert site.as_(Role.OPERATOR).get(f"/horizon/jobs/{job_id}/output.json").status_code == 404
    assert site.as_(Role.OPERATOR).get(f"/horizon/jobs/{job_id}/__class__.json").status_code == 404


def test_a_large_document_is_shown_only_to_whoever_asks(site: Site) -> None:
    """The page says how large it is."""
    large = '{"text":"' + "x" * 70_000 + '"}'
    (job_id,) = site.world.submit(NewJob(kind="work", queue="q", payload=Document(large)))
    shown = page(site, job_id)
    assert "x" * 1_000 not in shown.html
    assert "70.0" in shown.text
    assert "x" * 70_000 in site.as_(Role.OPERATOR).get(shown.link("Show it here").partition("#")[0]).text


def test_a_viewer_sees_how_it_stands_and_nothing_of_what_it_holds(site: Site) -> None:
    """Names, states, counts and times; no payload, message, detail, output or log, nor their files."""
    (job_id,) = failed(
        site.world,
        outcome=Fail("HTTPError", "message-s3cr3t", "detail-s3cr3t"),
        payload=Document('{"pin":"payload-s3cr3t"}'),
    )
    seen, hidden = page(site, job_id, Role.OPERATOR), page(site, job_id, Role.VIEWER)
    for word in ("payload-s3cr3t", "message-s3cr3t", "detail-s3cr3t"):
        assert word in seen.html
        assert word not in hidden.html
    assert "HTTPError" in hidden.text
    assert "Your role does not see what jobs hold." in hidden.text
    assert "Retry" not in hidden.text
    assert site.as_(Role.VIEWER).get(f"/horizon/jobs/{job_id}/payload.json").status_code == 403


def test_relations_are_drawn_and_told_in_a_table(site: Site) -> None:
    """Parents, children, what it replaced and what replaced it: each a link, in both."""
    parents = site.world.submit(*[NewJob(kind="work", queue="q") for _ in range(2)])
    (middle,) = site.world.submit(NewJob(kind="work", queue="q", parents=tuple(parents)))
    children = site.world.submit(*[NewJob(kind="work", queue="q", parents=(middle,)) for _ in range(7)])
    site.world.admit()
    shown = page(site, middle)
    for other in (*parents, *children):
        assert f'href="/horizon/jobs/{other}"' in shown.html
    assert "3 more" in shown.text
    assert [tag for tag, _ in shown.elements].count("marker") == 1
    (old,) = failed(site.world, queue="other")
    new = site.db.run(reprocess, old, action=site.world.action()).job_id
    assert "replacement" in page(site, old).text
    assert "replaced" in page(site, new).text
    assert f'href="/horizon/jobs/{new}"' in page(site, old).html


def test_a_result_that_came_too_late_is_shown_as_evidence(site: Site) -> None:
    """What was reported, by which run, and where the job stood."""
    lease, worker = running(site.world)
    worker.succeed(lease)
    worker.settle_slowly((lease, Fail("TooLate", "a second word")))
    shown = page(site, lease.job_id)
    assert "Late results" in shown.text
    assert "they changed nothing" in shown.text


def test_the_end_is_told_with_its_limits_and_output(site: Site) -> None:
    """A job that succeeded within limitations names them."""
    (job_id,) = ended(site.world, 1, Degrade(Document('{"done":true}'), ("no thumbnails",)))
    shown = page(site, job_id)
    assert "It succeeded at" in shown.text
    assert "with limitations" in shown.text
    assert "Limitations: no thumbnails" in shown.text
    assert '"done": true' in shown.text


def test_an_address_alone_makes_no_result_true(site: Site) -> None:
    """Only an action of whoever looks, which changed this job, is told as done."""
    (job_id,) = ended(site.world, 1, Succeed())
    assert 'id="result"' not in page(site, job_id, done=new_id()).html
    actions = site.world.query("SELECT action FROM testigo.event WHERE subject = CAST(:id AS uuid)", id=job_id)
    assert all('id="result"' not in page(site, job_id, done=row.action).html for row in actions)


def test_what_is_no_job_is_said_so(site: Site) -> None:
    """With the status that programs expect."""
    viewer = site.as_(Role.VIEWER)
    assert viewer.get(f"/horizon/jobs/{new_id()}").status_code == 404
    assert viewer.get("/horizon/jobs/881").status_code == 422
    assert viewer.get(f"/horizon/jobs/{new_id()}/retry").status_code == 403
    assert site.as_(Role.OPERATOR).get(f"/horizon/jobs/{new_id()}/retry").status_code == 404
