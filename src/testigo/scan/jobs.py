"""The two kinds of a scan: `testigo.analyse` asks the analyser server for one part, `testigo.publish` publishes all.

An `analyse` job holds no credentials of the database: it knows the server by `TESTIGO_ANALYSER` and
`TESTIGO_ANALYSER_TOKEN`. What it returns is a pointer; the result stays sealed at the server until it is published.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from testigo.app import App
from testigo.errors import Busy, Error, Invalid, Missing, StoragePressure
from testigo.evidence.transport import places
from testigo.evidence.transport.client import WAIT_SECONDS_MAX, AnalyserClient
from testigo.evidence.transport.manifest import Manifest
from testigo.evidence.transport.request import Request
from testigo.rules import fields
from testigo.rules.discreet import discreet
from testigo.settings import LIMITS
from testigo.worker.context import Context
from testigo.worker.endings import Degraded, Permanent, RetryAfter

__all__ = ["Analysed", "Told", "analyse", "app", "limitation", "publish"]

ANALYSE_SECONDS = 3600.0
PUBLISH_SECONDS = 3600.0
ATTEMPTS = 6
CRASH_LIMIT = 20
"""A publication that dies leaves nothing, so it costs nothing but time to begin it again."""
LOOK_SECONDS = 5.0
"""How long one answer about a run is waited for: a run that is to stop finds out in between."""
ROOM_SECONDS = 5.0
"""Until a server that has no room is asked again."""

app = App("testigo")


@dataclass
class Analysed:
    """One part, as it is sealed at the server: exactly which result, how it ended, how many findings it has."""

    run: str
    request: str
    result: str
    outcome: str
    findings: int
    seconds: float


@dataclass
class Told:
    """What became of an analysis; `cleaned` results were acknowledged, or gone from the server by then."""

    state: str
    verdict: str
    findings: int
    repeated: int
    artifacts: int
    cleaned: int


@app.job("testigo.analyse", queue="testigo", timeout=ANALYSE_SECONDS, attempts=ATTEMPTS, crash_limit=ATTEMPTS)
def analyse(
    ctx: Context, analyser: str, root: str, files: list[str], options: dict[str, str]
) -> Analysed | Degraded[Analysed | None] | None:
    """Have one analyser look at files of a tree, and wait until its result is sealed.

    A server that cannot be asked to the last, or does not look there, is a limitation: the part is missing, and what
    others found is published.
    """
    request = Request(analyser, root, tuple(files), options)
    try:
        with AnalyserClient(places.address(), _token()) as client:
            return _sealed(ctx, client, request)
    except StoragePressure as error:
        raise RetryAfter(ROOM_SECONDS, error.message) from error
    except (Busy, Invalid, Missing) as error:
        if ctx.failures + 1 < ATTEMPTS and not isinstance(error, Invalid):
            raise
        return Degraded(None, limitations=[limitation("not analysed", error)])


@app.job(
    "testigo.publish",
    queue="testigo",
    timeout=PUBLISH_SECONDS,
    attempts=ATTEMPTS,
    crash_limit=CRASH_LIMIT,
    isolation="publisher",
)
def publish(ctx: Context, analysis: str) -> Told | Degraded[Told]:
    """Publish what the parts of an analysis left, once and whole; what is published already is only acknowledged."""
    from testigo.scan.publishing import Refused, published

    try:
        return published(ctx, analysis)
    except Refused as error:
        raise Permanent(error.code, error.message) from error


def limitation(what: str, error: Error) -> str:
    """What was left undone for an error, as a limitation of a job: its code and its words, without secrets."""
    said = " ".join(discreet(f"{what}: {error.code}: {error.message}").split())
    most = LIMITS.name_chars_max
    try:
        return fields.name(said if len(said) <= most else f"{said[: most - 1].rstrip()}…", field="limitation")
    except Invalid:  # it holds what nobody sees
        return f"{what}: {error.code}"


def _sealed(ctx: Context, client: AnalyserClient, request: Request) -> Analysed | None:
    told = client.ask(request)
    while told.manifest is None:
        if ctx.cancelled:
            client.cancel(told.run)
            return None
        ctx.progress(told.seconds, note=f"{request.analyser}: {told.state}")
        told = client.look(told.run, wait_seconds=min(LOOK_SECONDS, WAIT_SECONDS_MAX))
    told.manifest.check_request(request)
    return _pointer(told.manifest, told.seconds)


def _pointer(manifest: Manifest, seconds: float) -> Analysed:
    return Analysed(manifest.run, manifest.request, manifest.result, str(manifest.outcome), manifest.findings, seconds)


def _token() -> str:
    token = os.environ.get(places.TOKEN_VARIABLE)
    if not token:
        raise Permanent("no-token", f"A worker that serves scans is started with {places.TOKEN_VARIABLE}.")
    return token
