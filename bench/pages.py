"""Every page and every list over HTTP: milliseconds each, with what `bench.panel` has filled.

Whatever route the server has is asked, so that none is forgotten: one that is not listed here ends the run. The times
are a client's on the same machine, from the request to the last byte, so they are a little more than the server's.
"""

from __future__ import annotations

import http.client
import statistics as figures
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from fastapi.routing import iter_route_contexts

from bench.evidence import publish_one
from bench.harness import Row
from testigo.access.logins import log_in
from testigo.access.roles import Right, Role
from testigo.access.secret import Secret
from testigo.access.users import add_user
from testigo.authority.actions import Action
from testigo.authority.read import Filter, causes, jobs, sessions
from testigo.evidence.findings import findings
from testigo.operations import Selection, Verb, begin, stop
from testigo.rules.states import State
from testigo.settings import Web
from testigo.store.database import Database
from testigo.web.routes import Guarded
from testigo.web.security.cookies import LOGIN_COOKIE
from testigo.web.serve import Server, listening
from testigo.web.server import create

__all__ = ["over_http"]

PAGE_MS = 100.0
"""What the slowest page may take."""
LIST_MS = 50.0
"""What the slowest answer of the API may take."""

_TIMES = 7
_FINDINGS = 10_000
_GENEROUS = Web(requests_per_second=1e6, requests_burst=1_000_000)

_AS_IT_IS = ("",)

_ASKED: Mapping[str, tuple[str, ...]] = {
    "/api/v1/jobs": ("", "?queue=queue-3", "?state=permanent_failure", "?tag=nightly", "?cause={cause}", "?limit=1000"),
    "/api/v1/queues/{name:path}": ("queue-3",),
    "/api/v1/kinds/{name:path}": ("kind-7",),
    "/api/v1/projects/{name:path}": ("bench",),
    "/api/v1/receipts/{action:path}": ("{action}?actor=bench",),
    "/api/v1/events": ("?stream=queue-3", "?stream=queue-3&limit=1000"),
    "/api/v1/statistics": ("?by=kind&span=7d", "?by=queue&span=1h"),
    "/api/v1/statistics/{measure}": ("requested?span=7d", "wait?span=24h"),
    "/horizon": ("", "?span=24h", "?span=7d"),
    "/horizon/jobs": ("", "?q=queue:queue-3", "?q=state:failed", "?q=after:any+tag:nightly", "?q=cause:{cause}",
                      "?q=payload.order.id:-1"),
    "/horizon/operations/choose": ("?q=state:failed", "?q=queue:queue-3+after:any"),
    "/horizon/operations/cancel/confirm": ("?q=queue:queue-3+after:any",),
    "/horizon/operations/retry/confirm": ("?q=cause:{cause}+after:any", "?q=state:failed+after:any"),
    "/horizon/operations/unblock/confirm": ("?q=queue:queue-3+after:any",),
    "/horizon/operations/forget/confirm": ("?q=cause:{cause}+after:any",),
    "/horizon/failed": ("", "?since=any", "?since=30d&queue=queue-3"),
    "/horizon/events": ("", "?stream=queue-3", "?stream=queue-3&type=job.completed"),
    "/horizon/events/one": ("?stream=queue-3&sequence=7",),
    "/horizon/audit": ("", "?verify=0"),
    "/horizon/analyses/{analysis_id}/decide": ("?id={finding_id}.1&to=accepted_risk",),
    "/horizon/projects/show": ("?name=bench",),
    "/horizon/projects/gate": ("?name=bench",),
    "/horizon/queues/show": ("?name=queue-3",),
    "/horizon/queues/pause": ("?name=queue-3",),
    "/horizon/queues/resume": ("?name=queue-3",),
    "/horizon/kinds/pause": ("?name=kind-7",),
    "/horizon/kinds/resume": ("?name=kind-7",),
    "/horizon/workers/show": ("?session={session_id}",),
    "/horizon/workers/drain": ("?session={session_id}",),
    "/horizon/settings/users/disable": ("?name=admin",),
    "/horizon/settings/users/enable": ("?name=admin",),
    "/horizon/settings/tokens/revoke": ("?name=deploy",),
}  # fmt: skip
"""What follows the fixed part of a route's path, where it is not asked for as it is."""

_NEITHER = {
    "/api/v1/events/live": "a stream",
    "/horizon/signals": "a stream",
    "/horizon/jobs.csv": "a file of many pages",
    "/horizon/audit.csv": "a file of many pages",
    "/horizon/jobs/{job_id}/{name}.json": "a file",
    "/api/v1/jobs/by-key": "no job here has a key",
    "/api/v1/jobs/{job_id}/checkpoint": "no job here has one",
    "/api/v1/jobs/{job_id}/output": "no job here has one",
    "/horizon/jobs/{job_id}/cancel": "the job that is shown has ended",
    "/horizon/jobs/{job_id}/unblock": "the job that is shown is not blocked",
    "/api/v1/artifacts/{artifact_id}": "no analysis here has one",
    "/api/v1/artifacts/{artifact_id}/content": "no analysis here has one",
    "/api/v1/artifacts/{artifact_id}/attestation": "no analysis here has one",
    "/horizon/artifacts/{artifact_id}/download": "no analysis here has one",
    "/horizon/artifacts/{artifact_id}/attestation": "no analysis here has one",
    "/horizon/findings/{finding_id}/unexempt": "no finding here is exempt",
    "/horizon/analyses/{analysis_id}/cancel": "no analysis here goes on",
}
"""Routes that are no page and no list, or have nothing to show of what was filled."""


def over_http(db: Database, scale: float) -> Iterator[Row]:
    """The median of seven, of each page and each list."""
    found = _found(db, scale)
    with _served(db) as ask:
        for route in ask.routes:
            for address in _addresses(route):
                goal = LIST_MS if route.startswith("/api/") else PAGE_MS
                taken = ask.milliseconds(address.format_map(found))
                yield Row(f"GET {address}", taken, "ms", goal, lower_is_better=True)


def _found(db: Database, scale: float) -> dict[str, str]:
    """What stands for the parameters of paths, and in queries; an operation and an analysis are made for it."""
    failed = db.run(jobs, Filter(states=(State.PERMANENT_FAILURE,)), limit=1).items[0].id
    cause = db.run(causes).causes[0].id
    action = Action("bench")
    operation = db.run(begin, Verb.RETRY, Selection(wanted=Filter(cause=cause)), reason="bench", action=action)
    db.run(stop, operation.id, action=Action("bench"))
    analysis = publish_one(db, int(_FINDINGS * scale) + 1)
    return {
        "job_id": failed,
        "cause": cause,
        "action": action.id,
        "operation_id": operation.id,
        "session_id": db.run(sessions).items[0].id,
        "analysis_id": analysis,
        "finding_id": db.run(findings, analysis, limit=1).page.items[0].id,
    }


def _addresses(route: str) -> Iterator[str]:
    """What a route is asked for; what stands for its ids is put in later, so that figures keep their names."""
    if route in _NEITHER:
        return
    fixed = route.partition("{name:path}")[0].partition("{action:path}")[0].partition("{measure}")[0]
    rest = route.removeprefix(fixed).partition("}")[2]
    for asked in _ASKED.get(route, ("bench",) if fixed != route else _AS_IT_IS):
        yield fixed + asked + rest


class _Client:
    """Somebody who is logged in, on one connection; `routes` are those that only a right opens."""

    def __init__(self, port: int, secret: Secret, routes: list[str]) -> None:
        self.routes = routes
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._headers = {"Cookie": f"{LOGIN_COOKIE}={secret.text}"}

    def milliseconds(self, address: str) -> float:
        """How long an answer takes. Raises `RuntimeError` for one that is none."""
        taken = []
        for _ in range(_TIMES):
            started = time.perf_counter()
            self._connection.request("GET", address, headers=self._headers)
            answer = self._connection.getresponse()
            answer.read()
            taken.append((time.perf_counter() - started) * 1_000)
            if answer.status != http.client.OK:
                raise RuntimeError(f"{address} was answered with {answer.status}")
        return figures.median(taken)


def _needs(route: object) -> object:
    return route.needs if isinstance(route, Guarded) else None


@contextmanager
def _served(db: Database) -> Iterator[_Client]:
    """A server of this installation, and an administrator of it."""
    db.run(add_user, "admin", Role.ADMIN, action=Action("bench"))
    secret = Secret.new()
    db.run(log_in, "admin", secret.digest, epoch=1)
    app = create(db.given_url, schema=db.schema, settings=_GENEROUS)
    contexts = [each for each in iter_route_contexts(app.routes) if "GET" in (each.methods or ())]
    routes = sorted({each.path for each in contexts if each.path and isinstance(_needs(each.original_route), Right)})
    server, entrance = Server(app), listening("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [entrance]})
    thread.start()
    try:
        yield _Client(entrance.getsockname()[1], secret, routes)
    finally:
        server.should_exit = True
        thread.join()
