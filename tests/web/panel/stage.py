"""What pages are looked at for: jobs that failed, run, wait and have ended, made by real commands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import httpx

from testigo.access.roles import Role
from testigo.authority.actions import JobId
from testigo.authority.claim import Lease
from testigo.authority.submissions import NewJob
from testigo.rules.outcomes import Block, Fail, Outcome, Succeed
from testigo.web.security.cookies import LOGIN_COOKIE
from tests.web.conftest import Site
from tests.world import Worker, World

__all__ = ["blocked", "ended", "failed", "plain_browser", "running"]

TRACE = 'Traceback (most recent call last):\n  File "sync.py", line 3, in sync\nHTTPError: 502'


def plain_browser(site: Site, role: Role) -> httpx.Client:
    """The browser of somebody of this role, which sends what forms hold and nothing else."""
    site.as_(role)
    return site.client({"Origin": site.url}, {LOGIN_COOKIE: site.secrets[role].text})


def failed(world: World, count: int = 1, *, outcome: Outcome | None = None, **given: Any) -> list[JobId]:
    """So many jobs that failed for good."""
    end = outcome or Fail("HTTPError", "502 from payments", TRACE)
    return ended(world, count, end, attempts=1, **given)


def blocked(world: World, **given: Any) -> JobId:
    """A job that is blocked."""
    return ended(world, 1, Block("a template is missing", "template 7"), **given)[0]


def ended(world: World, count: int, outcome: Outcome | None = None, **given: Any) -> list[JobId]:
    """So many jobs that ran, and ended so."""
    asked = {"kind": "work", "queue": "q", **given}
    jobs = world.submit(*[NewJob(**asked) for _ in range(count)])
    worker = world.worker(queues=(asked["queue"],), kinds=(asked["kind"],))
    for _ in jobs:
        lease = _mine(worker, jobs)
        worker.settle((lease, outcome or Succeed()))
    return jobs


def running(world: World, agent: str = "host-a/17", **given: Any) -> tuple[Lease, Worker]:
    """The lease of a job that runs, and the worker that has it."""
    asked = {"kind": "work", "queue": "q", **given}
    (job,) = world.submit(NewJob(**asked))
    worker = world.worker(agent, queues=(asked["queue"],), kinds=(asked["kind"],))
    return _mine(worker, [job]), worker


def _mine(worker: Worker, jobs: Sequence[JobId]) -> Lease:
    lease = worker.take()
    assert lease.job_id in jobs
    return lease
