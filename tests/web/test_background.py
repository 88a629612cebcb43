"""What a server does by itself, where there is no worker: it admits, and wakes whoever has something to do by it."""

from __future__ import annotations

import threading

from testigo.authority.submissions import NewJob
from testigo.authority.submit import submit_many
from testigo.operations import Selection, Verb, begin
from tests.web.conftest import Site
from tests.worker.kit import await_that

PATIENCE_SECONDS = 90.0


def test_a_server_admits_what_nobody_else_does(site: Site) -> None:
    """A job that came with its caller's transaction, with no worker about (spec P-11)."""
    parent, *_ = site.world.submit()
    child = NewJob("work", queue="q", parents=(parent,))
    (row,) = site.db.run(submit_many, [child], action=site.world.action()).jobs
    await_that(lambda: site.world.events(row.job_id) != [], "the admission")
    assert site.world.query("SELECT 1 FROM testigo.admission") == []


def test_what_an_operation_does_wakes_whoever_can_go_on(site: Site) -> None:
    """The worker of a job that is cancelled hears of it, and need not wait for its next beat (spec D-20)."""
    (job,) = site.world.submit()
    worker = site.world.worker()
    worker.take()
    heard = threading.Event()
    await_that(lambda: site.db.listener.hears, "the listener")
    with site.db.listener.subscribed(f"session:{worker.id}", heard.set):
        site.db.run(begin, Verb.CANCEL, Selection(ids=(job,)), reason="wrong", action=site.world.action())
        assert heard.wait(PATIENCE_SECONDS)
