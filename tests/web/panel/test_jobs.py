"""The list of jobs shows what a search asks for, says what it understood, and never more than a role may see."""

from __future__ import annotations

import csv
import io

from testigo.access.roles import Role
from testigo.authority.submissions import NewJob
from testigo.rules.documents import Document
from tests.web.conftest import Site
from tests.web.panel.paper import paper, press
from tests.web.panel.stage import failed, plain_browser, running


def test_a_search_shows_what_it_found_and_what_it_understood(site: Site) -> None:
    """By each qualifier, through the form; each part can be taken away again."""
    (bad,) = failed(site.world, queue="mail", kind="mail.send", tags=("order:881",), client="shop")
    lease, _ = running(site.world, "host-a/17", queue="reports", kind="build")
    busy = lease.job_id
    (waiting,) = site.world.submit(NewJob(kind="sync", queue="x", payload=Document('{"order":{"id":881}}')))
    viewer = plain_browser(site, Role.OPERATOR)
    everything = paper(viewer.get("/horizon/jobs"))
    assert all(job in everything.html for job in (bad, busy, waiting))
    searched = {
        "kind:mail.send": bad,
        "queue:reports": busy,
        "state:failed": bad,
        "state:running,leased": busy,
        "tag:order:881": bad,
        "client:shop": bad,
        "worker:host-a/17": busy,
        "error:HTTPError": bad,
        "attempt>0": bad,
        "payload.order.id:881": waiting,
        f"id:{busy[:-1]}": busy,
        "state:ready after:1h": waiting,
    }
    for asked, only in searched.items():
        found = paper(press(viewer, everything.form("/horizon/jobs"), q=asked))
        assert [job for job in (bad, busy, waiting) if f"job-{job}" in found.html] == [only], asked
    both = paper(viewer.get("/horizon/jobs", params={"q": "queue:reports kind:build"}))
    without = paper(viewer.get(both.link("queue:reports")))
    assert "queue:reports" not in [address for _, address in without.links.items()]
    assert dict(without.form("/horizon/jobs").fields)["q"] == "kind:build"


def test_a_whole_id_leads_to_its_job(site: Site) -> None:
    """Whoever pastes one sees that job."""
    (job,) = site.world.submit()
    answer = site.as_(Role.VIEWER).get("/horizon/jobs", params={"q": job})
    assert (answer.status_code, answer.headers["location"]) == (303, f"/horizon/jobs/{job}")


def test_what_is_not_understood_is_refused_and_explained(site: Site) -> None:
    """The text stays as it was typed, beside all that could be searched for."""
    viewer = site.as_(Role.VIEWER)
    refused = paper(viewer.get("/horizon/jobs", params={"q": "colour:red"}), 422)
    assert "'colour' is no qualifier." in refused.text
    assert "the code of its last failure" in refused.text
    assert dict(refused.form("/horizon/jobs").fields)["q"] == "colour:red"
    meant = paper(viewer.get("/horizon/jobs", params={"q": "mail.send"}), 422)
    assert paper(viewer.get(meant.link("kind:mail.send"))).text
    for unfit in (
        "after=x",
        "q=queue:a&after=AAAA",
        "at=yesterday",
        "q=queue:a&at=2026-01-01T00:00:00%2B00:00&after=A",
    ):
        assert viewer.get(f"/horizon/jobs?{unfit}").status_code == 422, unfit


def test_pages_follow_one_another_though_time_goes_on(site: Site) -> None:
    """The window of a search begins where it began on its first page."""
    jobs = site.world.submit(*[NewJob(kind="work", queue="q") for _ in range(70)])
    viewer = site.as_(Role.VIEWER)
    first = paper(viewer.get("/horizon/jobs"))
    second = paper(viewer.get(first.link("Older")))
    shown = [[job for job in jobs if f"job-{job}" in page.html] for page in (first, second)]
    assert [len(each) for each in shown] == [50, 20]
    assert sorted([*shown[0], *shown[1]]) == sorted(jobs)
    assert paper(viewer.get(second.link("Newest"))).html.count('id="job-') == 50


def test_counts_stand_above_the_list(site: Site) -> None:
    """Each leads to the jobs that it counts."""
    site.world.submit(*[NewJob(kind="work", queue="q") for _ in range(3)])
    viewer = site.as_(Role.VIEWER)
    page = paper(viewer.get("/horizon/jobs"))
    assert "ready 3" in page.text
    assert paper(viewer.get(page.link("ready"))).html.count('id="job-') == 3


def test_a_viewer_neither_sees_nor_finds_what_payloads_hold(site: Site) -> None:
    """A search that answers yes or no would tell it as well."""
    (job,) = site.world.submit(NewJob(kind="work", queue="q", payload=Document('{"pin":"4711"}')))
    asked = {"q": "payload.pin:4711"}
    assert job in site.as_(Role.OPERATOR).get("/horizon/jobs", params=asked).text
    viewer = site.as_(Role.VIEWER)
    refused = viewer.get("/horizon/jobs", params=asked)
    assert job not in paper(refused, 422).html
    assert viewer.get("/horizon/jobs.csv", params=asked).status_code == 422
    assert viewer.get("/horizon/operations/choose", params=asked).status_code == 422


def test_a_file_holds_the_same_jobs_and_no_formula(site: Site) -> None:
    """A spreadsheet that opens it calculates nothing."""
    (job,) = site.world.submit(NewJob(kind="=cmd|' /C calc'!A0", queue="q", tags=("+1", "a,b")))
    answer = site.as_(Role.VIEWER).get("/horizon/jobs.csv", params={"q": "queue:q"})
    assert answer.headers["content-type"].startswith("text/csv")
    assert "attachment" in answer.headers["content-disposition"]
    (row,) = csv.DictReader(io.StringIO(answer.text, newline=""))
    assert (row["id"], row["state"], row["attempts"], row["finished_at"]) == (job, "ready", "3", "")
    assert row["kind"] == "'=cmd|' /C calc'!A0"
    assert row["tags"] == "'+1 a,b"
