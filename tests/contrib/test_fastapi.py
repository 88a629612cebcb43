"""testigo in a FastAPI application: the example on a real server, and what its parts promise."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from fastapi import Depends, FastAPI

from testigo import App, Context, Database, Error, Job, JobFailed
from testigo.authority.actions import new_id
from testigo.authority.read.jobs import jobs
from testigo.contrib.fastapi import job_of, lifespan, problem
from testigo.errors import AuthorityUnavailable, KeyConflict, PayloadTooLarge, SchemaMismatch
from tests.contrib.served import ROOT, served, started
from tests.services import free_port
from tests.worker.kit import await_that

PROBLEM = "application/problem+json"


@pytest.fixture
def app(database_url: str) -> Iterator[App]:
    """An App on an installation of the test's own."""
    one = App("shop", database_url)
    yield one
    one.close()


def test_the_example_takes_orders_and_writes_invoices(fresh_database: str, tmp_path: Path) -> None:
    """Under uvicorn, with a worker beside it: an order is committed with its job, a refused one leaves none."""
    port = free_port()
    environment = {**os.environ, "TESTIGO_URL": fresh_database}
    server = ["-m", "uvicorn", "examples.fastapi_shop.web:api", "--port", str(port)]
    worker = ["-m", "testigo", "worker", "examples.fastapi_shop.jobs:app", "--runners", "1"]
    with served(server, port, environment, tmp_path / "server.log") as client:
        taken = client.post("/orders", json={"items": 3})
        assert taken.status_code == 201, taken.text
        order, job = taken.json()["order"], taken.json()["job"]
        waiting = client.get(f"/invoices/{job}")
        assert (waiting.status_code, waiting.json()["code"]) == (503, "NOT_ENDED")
        assert (waiting.headers["content-type"], waiting.headers["retry-after"]) == (PROBLEM, "1")
        assert client.post("/orders", json={"items": 101}).status_code == 409
        with started(worker, environment, tmp_path / "worker.log"):
            await_that(lambda: client.get(f"/invoices/{job}", params={"wait": 10}).is_success, "the invoice")
        assert client.get(f"/invoices/{job}").json() == {"order": order, "text": "3 items, 750 cents"}
    assert _jobs(fresh_database) == [job]


def test_a_server_does_not_start_on_a_database_that_is_away(tmp_path: Path) -> None:
    """Whoever starts it is told then, and not by the first request."""
    app = App("shop", f"postgresql://nobody@/none?host={tmp_path}")

    async def serve() -> None:
        async with lifespan(app)(FastAPI()):
            raise AssertionError("it started")

    with pytest.raises(AuthorityUnavailable):
        asyncio.run(serve())


def test_a_server_does_not_start_on_another_schema(fresh_database: str) -> None:
    """Unless it is told to bring it up to date; its Apps are closed when it ends."""
    app = App("shop", fresh_database)

    async def serve(*, migrate: bool) -> None:
        async with lifespan(app, migrate=migrate)(FastAPI()):
            assert app.run_until_idle is not None

    with pytest.raises(SchemaMismatch):
        asyncio.run(serve(migrate=False))
    asyncio.run(serve(migrate=True))
    asyncio.run(serve(migrate=False))


def test_an_id_from_outside_opens_only_jobs_of_the_route_s_kind(app: App) -> None:
    """Another kind's job, one that is not there and what is no id are not found; its own is."""

    @app.job("shop.public")
    def public(ctx: Context, number: int) -> int:
        return number

    @app.job("shop.secret")
    def secret(ctx: Context) -> str:
        return "the key of the safe"

    api = FastAPI()
    api.add_exception_handler(Error, problem)

    @api.get("/jobs/{job_id}")
    async def show(job: Job[int] = Depends(job_of(app, public))) -> int:  # noqa: B008  # its argument is a local name
        return await job.result_async(timeout=0)

    mine, others = public.submit(number=7), secret.submit()
    assert app.run_until_idle() == 2
    assert _get(api, f"/jobs/{mine.id}").json() == 7
    for absent in (others.id, new_id()):
        answer = _get(api, f"/jobs/{absent}")
        assert (answer.status_code, answer.json()["code"]) == (404, "NOT_FOUND")
        assert "safe" not in answer.text
    assert _get(api, "/jobs/1").status_code == 422


@pytest.mark.parametrize(
    ("error", "status", "retry_after"),
    [
        (KeyConflict("The key names other work.", field="key"), 409, None),
        (PayloadTooLarge("It is too large.", field="payload", limit="256 KiB"), 413, None),
        (AuthorityUnavailable("It does not answer."), 503, "1"),
    ],
)
def test_a_refusal_is_a_problem_that_tells_what_to_do(error: Error, status: int, retry_after: str | None) -> None:
    """Its status is the error's, and its members say what was refused and what helps."""
    answer = _refused(error)
    assert (answer.status_code, answer.headers["content-type"]) == (status, PROBLEM)
    assert answer.headers.get("retry-after") == retry_after
    told = answer.json()
    assert (told["status"], told["code"], told["detail"]) == (status, error.code, error.message)
    assert (told["remedy"], told.get("field"), told.get("limit")) == (error.remedy, error.field, error.limit)


def test_a_broken_installation_is_told_to_its_owner_alone(caplog: pytest.LogCaptureFixture) -> None:
    """The client gets a code; the log has the rest."""
    answer = _refused(SchemaMismatch("The schema at db.internal is old."))
    assert answer.status_code == 500
    assert answer.json() == {"title": "Internal Server Error", "status": 500, "code": "SCHEMA_MISMATCH"}
    assert "db.internal" in caplog.text


def test_what_a_handler_raised_is_not_told_to_strangers(app: App) -> None:
    """The client learns that its job failed; how, only whoever may look at the job."""

    @app.job("shop.fail", attempts=1)
    def fail(ctx: Context) -> int:
        raise ConnectionError("no route to db.internal")

    job = fail.submit()
    app.run_until_idle()
    with pytest.raises(JobFailed, match=r"db\.internal") as failed:
        job.result(timeout=0)
    answer = _refused(failed.value)
    assert (answer.status_code, answer.json()["code"]) == (409, "JOB_FAILED")
    assert "db.internal" not in answer.text
    assert job.id in answer.text


def test_without_fastapi_it_says_what_to_install() -> None:
    """The error names the extra."""
    program = "import sys; sys.modules['fastapi'] = None\nimport testigo.contrib.fastapi"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert "testigo.contrib.fastapi needs FastAPI: pip install 'testigo[fastapi]'" in done.stderr


def _refused(error: Error) -> httpx.Response:
    api = FastAPI()
    api.add_exception_handler(Error, problem)

    @api.get("/")
    async def refuse() -> None:
        raise error

    return _get(api, "/")


def _get(api: FastAPI, path: str) -> httpx.Response:
    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(api, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.get(path)

    return asyncio.run(ask())


def _jobs(url: str) -> list[str]:
    with Database(url) as db:
        return [job.id for job in db.run(jobs).items]
