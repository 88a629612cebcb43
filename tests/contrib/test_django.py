"""testigo in a Django project: the example with Django's own server, and what its parts promise."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.contrib.served import DJANGO_SHOP, django_environment, served, started
from tests.services import free_port
from tests.worker.kit import await_that

MANAGE = str(DJANGO_SHOP / "manage.py")

SET_UP = """
import os
os.environ["DJANGO_SETTINGS_MODULE"] = "shop.settings"
import django
django.setup()
from django.db import connection, transaction
from shop.jobs import app, invoice
from shop.models import Order
"""


def test_the_example_takes_orders_and_writes_invoices(fresh_database: str, tmp_path: Path) -> None:
    """Under runserver, with a worker beside it: an order is committed with its job, a refused one leaves none."""
    environment = django_environment(fresh_database)
    port = free_port()
    _manage("migrate", url=fresh_database)
    server = [MANAGE, "runserver", "--noreload", f"127.0.0.1:{port}"]
    with (
        served(server, port, environment, tmp_path / "server.log") as client,
        started([MANAGE, "testigo", "worker", "--runners", "1"], environment, tmp_path / "worker.log"),
    ):
        taken = client.post("/orders", json={"items": 3})
        assert taken.status_code == 201, taken.text
        assert client.post("/orders", json={"items": 101}).status_code == 409
        await_that(lambda: client.get("/orders/1").json()["state"] == "succeeded", "the invoice")
        assert client.get("/orders/1").json()["invoice"] == "3 items, 750 cents"
    assert _jobs(fresh_database) == [taken.json()["job"]]


def test_the_example_s_own_tests_pass(fresh_database: str) -> None:
    """With Django's test runner, which makes our schema in its database and sends our App there."""
    _manage("migrate", url=fresh_database)
    _manage("test", "shop", "--noinput", url=fresh_database)
    assert _jobs(fresh_database) == []


def test_a_job_follows_the_innermost_block_that_django_rolls_back(fresh_database: str) -> None:
    """Inside atomic() jobs come and go with their block; outside they are committed at once."""
    _manage("migrate", url=fresh_database)
    told = _python(
        """
class Enough(Exception): pass
with transaction.atomic():
    kept = invoice.submit(order=1)
    try:
        with transaction.atomic():
            gone = invoice.submit(order=2)
            raise Enough
    except Enough:
        pass
many = invoice.submit_many([{"order": 3}, {"order": 4}])
try:
    with transaction.atomic():
        also_gone = invoice.submit_many([{"order": 5}])
        raise Enough
except Enough:
    pass
print(sorted([kept.id, *(job.id for job in many)]))
from testigo.authority.read.jobs import jobs
print(sorted(job.id for job in app.database.run(jobs).items))
""",
        url=fresh_database,
    )
    expected, found = told.splitlines()
    assert found == expected


def test_a_run_begins_and_ends_with_connections_that_can_be_used(fresh_database: str) -> None:
    """What a run leaves broken does not meet the next one, and what Django would close after a request is closed."""
    _manage("migrate", url=fresh_database)
    told = _python(
        """
import asyncio
from testigo import AsyncContext, Context, State

@app.job("shop.cut", attempts=1)
def cut(ctx: Context) -> None:
    Order.objects.count()
    connection.connection.close()
    Order.objects.count()

@app.job("shop.count")
def count(ctx: Context) -> int:
    assert connection.connection is None
    return Order.objects.count()

@app.job("shop.acount")
async def acount(ctx: AsyncContext) -> int:
    return await Order.objects.acount()

broken, counted, awaited = cut.submit(), count.submit(), acount.submit()
assert app.run_until_idle() == 3
print(broken.state(), counted.result(0), awaited.result(0), connection.connection)
""",
        url=fresh_database,
    )
    assert told.split() == ["permanent_failure", "0", "0", "None"]


def test_settings_that_cannot_be_meant_are_refused_by_name(fresh_database: str) -> None:
    """`manage.py check` says what is wrong with TESTIGO; what nobody would read is refused."""
    for setting, words in (
        ('{"APPS": "shop.jobs:app"}', "TESTIGO['APPS']: There is no such setting."),
        ('{"SCHEMA": 7}', "TESTIGO['SCHEMA']: Text is needed."),
        ('{"DATABASE": "other"}', "TESTIGO['DATABASE']: DATABASES has no such alias."),
        ('{"DATABASE": "lite"}', "DATABASES['lite']: Its database is sqlite."),
        ("7", "TESTIGO: A dictionary is needed."),
    ):
        told = _python(
            f"""
from django.conf import settings
from django.core.management import call_command
from django.db import connections
connections.settings["lite"] = {{**connections.settings["default"], "ENGINE": "django.db.backends.sqlite3"}}
settings.TESTIGO = {setting}
try:
    call_command("check")
except Exception as error:
    print(error)
""",
            url=fresh_database,
        )
        assert "testigo.E001" in told
        assert words in told


def test_the_worker_is_given_what_only_its_keeper_may_know(fresh_database: str) -> None:
    """The URL of Django's database goes to the keeper in its environment, and not on its command line."""
    told = _python(
        """
from testigo.contrib.django.management.commands.testigo import _completed, _environment
from testigo.store.urls import server_url
connection.settings_dict.update(PASSWORD="p@ss/word", OPTIONS={"sslmode": "prefer", "pool": False})
print(_completed(["worker", "--slots", "2"]), _completed(["doctor"]))
url = server_url(_environment()["TESTIGO_URL"])
print(url.password, url.query["sslmode"], sorted(url.query))
""",
        url=fresh_database,
    )
    first, second = told.splitlines()
    assert first == "['worker', 'testigo.contrib.django.runner:app', '--slots', '2'] ['doctor']"
    assert second == "p@ss/word prefer ['host', 'port', 'sslmode']"


def test_a_command_that_fails_tells_its_status(fresh_database: str) -> None:
    """From a shell it is the program's own; `call_command` raises it."""
    environment = django_environment(fresh_database)
    command = [sys.executable, MANAGE, "testigo", "migrate", "--check"]
    assert subprocess.run(command, env=environment, capture_output=True, check=False).returncode == 1
    told = _python(
        """
from django.core.management import CommandError, call_command
try:
    call_command("testigo", "migrate", "--check")
except CommandError as error:
    print(error.returncode, error)
""",
        url=fresh_database,
    )
    assert told.splitlines()[-1] == "1 testigo migrate --check ended with status 1."


def test_without_django_it_says_what_to_install() -> None:
    """The error names the extra."""
    program = "import sys; sys.modules['django'] = None\nimport testigo.contrib.django"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "testigo.contrib.django needs Django: pip install 'testigo[django]'" in done.stderr


def _jobs(url: str) -> list[str]:
    answer = json.loads(_manage("testigo", "jobs", "list", "--json", url=url))
    return [job["id"] for job in answer["jobs"]]


def _manage(*arguments: str, url: str) -> str:
    return _run([MANAGE, *arguments], url)


def _python(program: str, *, url: str) -> str:
    return _run(["-c", SET_UP + program], url)


def _run(arguments: list[str], url: str) -> str:
    command = [sys.executable, "-W", "error", *arguments]
    environment = django_environment(url)
    done = subprocess.run(command, cwd=DJANGO_SHOP, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
