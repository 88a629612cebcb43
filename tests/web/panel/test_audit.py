"""Who did what, for whom it concerns; and whether the chain of it is whole."""

from __future__ import annotations

import csv
import io

import psycopg

from testigo.access.roles import Role
from testigo.authority.actions import new_id
from tests.web.conftest import Site
from tests.web.panel.paper import paper


def cancel(site: Site, role: Role, reason: str = "a test") -> str:
    """A job that somebody of this role tries to cancel."""
    (job,) = site.world.submit()
    sent = {"action_id": new_id(), "revision": str(site.world.job(job).revision), "reason": reason}
    site.as_(role).post(f"/horizon/jobs/{job}/cancel", data=sent)
    return job


def test_what_was_done_and_what_was_refused_is_there(site: Site) -> None:
    """By whom, to what, why and how it ended; searched by each of them."""
    done, denied = cancel(site, Role.OPERATOR, "wrong order"), cancel(site, Role.VIEWER)
    admin = site.as_(Role.ADMIN)
    page = paper(admin.get("/horizon/audit"))
    for said in ("user:operator", "jobs.cancel", "wrong order", "done"):
        assert said in page.text, said
    assert f"/horizon/jobs/{done}" in page.html
    for asked, rows in (
        ({"actor": "user:operator"}, 1),
        ({"action": "jobs.cancel", "object": f"job:{done}"}, 1),
        ({"object": f"job:{denied}", "actor": "user:operator"}, 0),
        ({"from": "2020-01-01", "to": "2020-01-02T10:00"}, 0),
        ({"from": "2020-01-01", "actor": "user:operator"}, 1),
    ):
        found = paper(admin.get("/horizon/audit", params=asked))
        assert found.text.count("wrong order") == rows, asked
    for unfit in ({"from": "yesterday"}, {"to": "2026-13-01"}, {"after": "x"}, {"verify": "-1"}, {"actor": "x" * 300}):
        assert admin.get("/horizon/audit", params=unfit).status_code == 422, unfit


def test_the_file_has_the_same_rows(site: Site) -> None:
    """And nothing that a spreadsheet would calculate."""
    job = cancel(site, Role.OPERATOR, "=1+1")
    answer = site.as_(Role.REVIEWER).get("/horizon/audit.csv", params={"action": "jobs.cancel"})
    (row,) = csv.DictReader(io.StringIO(answer.text, newline=""))
    assert (row["actor"], row["objects"], row["result"]) == ("user:operator", f"job:{job}", "done")
    assert row["reason"] == "'=1+1"


def test_a_row_that_was_changed_behind_our_back_is_found(site: Site, database_url: str) -> None:
    """The chain says at which row."""
    for _ in range(3):
        cancel(site, Role.OPERATOR)
    admin = site.as_(Role.ADMIN)
    assert "3 rows verified, and whole." in paper(admin.get("/horizon/audit", params={"verify": "0"})).text
    with psycopg.connect(database_url) as forger:
        forger.execute("ALTER TABLE testigo.audit DISABLE TRIGGER ALL")
        forger.execute("UPDATE testigo.audit SET reason = 'nothing to see' WHERE n = 2")
    assert "The chain is broken at row 2." in paper(admin.get("/horizon/audit", params={"verify": "0"})).text


def test_it_is_not_for_viewers(site: Site) -> None:
    """Neither the page nor the file, nor a link to them."""
    viewer = site.as_(Role.VIEWER)
    assert viewer.get("/horizon/audit").status_code == 403
    assert viewer.get("/horizon/audit.csv").status_code == 403
    assert "/horizon/audit" not in viewer.get("/horizon/jobs").text
