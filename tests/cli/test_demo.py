"""The demo as a newcomer runs it: really killed, really counted, and gone without a trace when it is over."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import httpx
import pytest

from testigo.authority.actions import JobId
from testigo.authority.pause import Scope, pause
from testigo.demo import engine
from testigo.demo.handlers import KIND
from testigo.store.database import Database
from testigo.web.security.cookies import LOGIN_COOKIE
from testigo.web.security.forgery import CSRF_HEADER, csrf_of
from tests.cli.conftest import Cli
from tests.cli.process import Terminal, piped
from tests.invariants import check
from tests.worker.kit import await_state, await_that
from tests.world import World

NOWHERE = "postgresql://nobody@127.0.0.1:1/nowhere"
DEMO_SECONDS = 240.0
"""Here it shares the machine with other tests; alone it takes some seconds."""
WITNESSED = re.compile(r"^ \d:\d\d  (.+)$", flags=re.MULTILINE)
SUMMARY = """
  submitted      8  jobs were accepted; from then on none may be lost
  succeeded      8  jobs brought a result
  failed         0  jobs ended without one
  recovered      #  runs died with their process, and their jobs ran again
  lost           0  jobs have no end
  doubled        0  jobs have more than one end
  gaps           0  numbers are missing in the history of ## events

Nothing was lost, nothing was counted twice, and the history has no gap.
It took # seconds. The database is kept: look at it with
testigo jobs list --queue demo-# --url #
or in the panel with
testigo serve --url #
"""


def test_nothing_is_lost_by_the_kills_of_the_demo(tmp_path: Path) -> None:
    """A runner, a worker and the database are killed while they work; the invariants say the same as the demo.

    There is so much work that each of the three is met at some. It runs on a database of its own, whatever TESTIGO_URL
    says (spec D-02, D-03, B-10).
    """
    data = tmp_path / "data"
    ran = piped("demo", "engine", "--jobs", "160", "--data", str(data), "--json", url=NOWHERE)
    out, err = ran.communicate(timeout=DEMO_SECONDS)
    assert ran.returncode == 0, out + err
    told = json.loads(out)
    assert (told["submitted"], told["succeeded"], told["failed"]) == (160, 160, 0)
    assert (told["lost"], told["doubled"], told["gaps"]) == (0, 0, 0)
    assert told["killed"] == {"runners": 1, "workers": 1, "databases": 1}
    assert told["recovered"] >= 1, "what was killed had work"
    assert told["events"] >= 320 + told["recovered"]
    assert (told["findings"]["files"], told["findings"]["linted"]) == (160, 160)
    assert told["database"] == f"the embedded server in {data}"
    with Database(f"embedded:{data}") as kept:
        check(kept)


def test_a_server_of_the_user_s_own_is_left_alone(database_url: str) -> None:
    """There it stands in a schema of its own; the table fits the terminal, and so do all words but the URL's."""
    terminal = Terminal.of("demo", "engine", "--jobs", "8", "--url", database_url, url=NOWHERE)
    terminal.until("the workers leave")
    assert terminal.end() == 0, terminal.shown
    assert "the database is a server of yours, and is left alone" in terminal.shown
    assert re.search(r"RUNNING +DONE +LOST", terminal.shown)
    assert re.search(r"worker 1 +alive +\d+ +\d+ +\d+", terminal.shown)
    assert all(len(line.rstrip()) <= 80 for line in terminal.shown.splitlines() if "--url" not in line)
    _, _, summary = terminal.shown.replace("\r", "").rpartition("all processes are gone:\n")
    summary = re.sub(r"(recovered +)\d", r"\1#", re.sub(r"of \d\d events", "of ## events", summary))
    summary = re.sub(
        r".*testigo (jobs.+|serve )--url .+",
        r"testigo \1--url #",
        re.sub(r"demo-\w+", "demo-#", re.sub(r"took \d+", "took #", summary)),
    )
    assert summary == SUMMARY


def test_into_a_pipe_what_happens_is_a_line_each(tmp_path: Path) -> None:
    """Too little work to meet a run is said so, and nothing is made up."""
    (tmp_path / "one.py").write_text("x = 1\n")
    ran = piped("demo", "engine", "--path", str(tmp_path), url=NOWHERE, TMPDIR=str(tmp_path))
    out, err = ran.communicate(timeout=DEMO_SECONDS)
    assert (ran.returncode, err) == (0, ""), out + err
    assert "\x1b" not in out
    happened = WITNESSED.findall(out)
    assert happened[0] == "a PostgreSQL of the demo's own is set up"
    assert happened[-1] == "every file is done; the workers leave"
    assert "1 file was looked at: 6 bytes, 1 lines, 6 tokens." in out
    assert _left_in(tmp_path) == ["one.py"]


def test_what_does_not_end_is_lost_and_said_so(
    cli: Cli, database_url: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The demo waits a while for jobs that nobody runs, then counts them, and ends with status 1."""
    world.db.run(pause, Scope.KIND, KIND, note="a test", action=world.action())
    monkeypatch.setattr(engine, "STALL_SECONDS", 1.0)
    for options in (["--json"], []):
        ran = cli("demo", "engine", "--jobs", "8", "--url", database_url, "--schema", "testigo", *options)
        assert ran.status == 1, ran.err
        if options:
            assert (ran.json["submitted"], ran.json["succeeded"], ran.json["lost"]) == (2, 0, 2)
        else:
            assert "nothing has ended for 1 seconds, and the demo waits no longer" in ran.out
            assert "This must not be." in ran.out


@pytest.mark.needs_linux
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize(("name", "until"), [("engine", "workers start"), ("scan", "a worker start")])
def test_whoever_ends_the_demo_finds_nothing_left(
    tmp_path: Path, name: str, until: str, number: signal.Signals, status: int
) -> None:
    """No process, no file, no traceback."""
    terminal = Terminal.of("demo", name, "--jobs", "40", url=NOWHERE, TMPDIR=str(tmp_path))
    terminal.until(until)
    assert _processes_in(tmp_path)
    terminal.process.send_signal(number)
    assert terminal.end() == status, terminal.shown
    assert "Traceback" not in terminal.shown
    assert _left_in(tmp_path) == []
    assert _processes_in(tmp_path) == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nothing"], "There is no demo 'nothing'"),
        (["--data", "x", "--url", NOWHERE], "Choose one of --data and --url."),
        (["--path", "/nowhere"], "does not exist"),
        (["--jobs", "0"], "--jobs"),
    ],
)
def test_what_cannot_be_meant_is_refused(cli: Cli, arguments: list[str], told: str) -> None:
    """Before anything is started."""
    ran = cli("demo", *arguments)
    assert (ran.status, told in ran.err) == (2, True), ran.err


def _left_in(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def _processes_in(folder: Path) -> list[str]:
    """The processes that work in a folder or below it."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            where = (process / "cwd").readlink()
        except OSError:  # it is gone by now
            continue
        if where.is_relative_to(folder) and int(process.name) != os.getpid():
            found.append(f"{process.name} in {where}")
    return found


def test_a_demo_that_stays_shows_what_failed_and_lets_it_be_retried(tmp_path: Path) -> None:
    """The panel is open with a link that logs in; what failed is found there, and succeeds when retried."""
    data = tmp_path / "data"
    (tmp_path / "one.py").write_text("x = 1\n")
    source = str(tmp_path / "one.py")
    ran = piped("demo", "engine", "--path", source, "--data", str(data), "--stay", "--json", url=NOWHERE)
    assert ran.stdout is not None
    try:
        played, opened = json.loads(ran.stdout.readline()), json.loads(ran.stdout.readline())
        url = opened["panel"].removesuffix("/horizon")
        with httpx.Client(base_url=url, headers={"Origin": url}, timeout=DEMO_SECONDS) as client:
            link = httpx.URL(opened["login_link"]).params["link"]
            await_that(lambda: _logs_in(client, link), "an answer of the panel")
            client.headers[CSRF_HEADER] = csrf_of(client.cookies[LOGIN_COOKIE])
            failed = client.get("/api/v1/jobs", params={"state": "permanent_failure", "queue": played["queue"]})
            first, *others = failed.json()["items"]
            assert len(others) == 2
            assert "No such file" in client.get(f"/horizon/jobs/{first['id']}").text
            seen = client.get(f"/api/v1/jobs/{first['id']}")
            retried = client.post(f"/api/v1/jobs/{first['id']}/retry", headers={"If-Match": seen.headers["etag"]})
            assert retried.status_code < 300, retried.text
            with Database(f"embedded:{data}") as database:
                (successor,) = World(database).query("SELECT successor_id FROM testigo.successor")
                await_state(World(database), JobId(str(successor.successor_id)), "succeeded")
        ran.send_signal(signal.SIGINT)
        out, err = ran.communicate(timeout=DEMO_SECONDS)
    finally:
        ran.kill()
        ran.communicate()
    assert ran.returncode == 0, out + err


def _logs_in(client: httpx.Client, link: str) -> bool:
    try:
        return client.post("/horizon/login", data={"link": link}).status_code == 303
    except httpx.TransportError:
        return False
