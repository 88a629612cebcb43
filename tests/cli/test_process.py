"""The command line as a shell has it: on terminals of 80 and 120 columns, in pipes, interrupted."""

from __future__ import annotations

import re
import signal
from datetime import UTC, datetime, timedelta
from importlib.metadata import entry_points

import pytest

from testigo.authority.claim import Lease
from testigo.authority.report import LogLine, Progress, report
from testigo.rules.documents import encode
from testigo.rules.outcomes import Degrade, Fail, Succeed
from tests.cli.process import PATIENCE_SECONDS, Terminal, piped
from tests.world import Worker, World, held

JOBS_80 = """\
ID                                    STATE               KIND               AGE
<                id                >  created             a-very-long-kind…   0s
<                id                >  ready               media.transcode     0s
<                id                >  running             media.transcode     0s
<                id                >  succeeded_degraded  media.transcode     0s
<                id                >  permanent_failure   media.transcode     0s
<                id                >  succeeded           media.transcode     0s
"""
JOBS_120 = """\
ID                                    STATE               KIND              QUEUE              AGE  FAILURES  WHY
<                id                >  created             a-very-long-kin…  a-long-queue-name   0s       0/3
<                id                >  ready               media.transcode   media               0s       0/3
<                id                >  running             media.transcode   media               0s       0/3
<                id                >  succeeded_degraded  media.transcode   media               0s       0/3
<                id                >  permanent_failure   media.transcode   media               0s       1/3  ValueError
<                id                >  succeeded           media.transcode   media               0s       0/3
"""
QUEUES_80 = """\
QUEUE              READY  LEASED  DELAYED  NEXT DUE  WORKERS  PAUSED
a-long-queue-name      0       0        1     in 4h        0
media                  1       1        0                  1
"""
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@pytest.fixture
def running(world: World) -> tuple[Worker, Lease]:
    """Six jobs, of which one runs."""
    transcode = {"kind": "media.transcode", "queue": "media", "payload": encode({"path": "a.mp4"})}
    for _ in range(4):
        world.submit(**transcode)
    worker = world.worker("media-1", ("media",), ("media.transcode",))
    done, failed, degraded, lease = worker.claim(4, starts=True).leases
    ends = (done, Succeed()), (failed, Fail("ValueError", "no", permanent=True)), (degraded, Degrade(encode(1), ("x",)))
    worker.settle(*ends)
    world.submit(**transcode)
    soon = datetime.now(UTC) + timedelta(hours=4, minutes=30)
    world.submit(kind="a-very-long-kind-of-work", queue="a-long-queue-name", run_at=soon)
    return worker, lease


@pytest.mark.parametrize(
    ("noun", "columns", "golden"), [("jobs", 80, JOBS_80), ("jobs", 120, JOBS_120), ("queues", 80, QUEUES_80)]
)
@pytest.mark.usefixtures("running")
def test_a_list_fits_a_terminal(database_url: str, noun: str, columns: int, golden: str) -> None:
    """As it was looked at: ids whole, the rest cut, no line wrapped."""
    terminal = Terminal.of(noun, "list", url=database_url, columns=columns)
    assert terminal.end() == 0
    assert re.sub(r" \ds", " 0s", _ID.sub("<" + "id".center(34) + ">", terminal.shown)) == golden


def test_no_color_is_plain_text(database_url: str, running: tuple[Worker, Lease]) -> None:
    """Also for the head of a table."""
    terminal = Terminal.of("jobs", "list", url=database_url, NO_COLOR="1")
    assert (terminal.end(), "\x1b" in terminal.raw) == (0, False)
    assert running[1].job_id in terminal.raw
    terminal = Terminal.of("jobs", "list", url=database_url)
    assert (terminal.end(), "\x1b[32msucceeded" in terminal.raw) == (0, True)


def test_waiting_shows_how_far_a_job_is(database_url: str, running: tuple[Worker, Lease]) -> None:
    """On one line that goes when the job has ended."""
    worker, lease = running
    now = datetime.now(UTC)
    for n, (done, at) in enumerate([(0.0, now - timedelta(seconds=60)), (50.0, now)], start=1):
        worker.db.run(report, worker.id, [Progress(held(lease), n, at, done, 100.0, "encoding")])
    terminal = Terminal.of("jobs", "wait", lease.job_id, url=database_url)
    terminal.until("50 of 100 (50%), ")
    assert "left encoding" in terminal.shown
    worker.settle((lease, Succeed(encode({"ok": True}))))
    assert terminal.end() == 0
    assert terminal.shown.endswith('output  {"ok":true}\n')


def test_waiting_on_a_terminal_ends_by_its_time(database_url: str, running: tuple[Worker, Lease]) -> None:
    """With the status of what goes on, and the seconds that were given."""
    terminal = Terminal.of("jobs", "wait", running[1].job_id, "--timeout", "0.5", url=database_url)
    assert terminal.end() == 14
    assert "has not ended in 0.5 seconds." in terminal.shown


def test_a_log_is_followed_to_the_end(database_url: str, running: tuple[Worker, Lease]) -> None:
    """Lines come as they are written, and the command ends with the job."""
    worker, lease = running
    following = piped("jobs", "log", lease.job_id, "--follow", url=database_url)
    assert following.stdout is not None
    for n in (1, 2):
        worker.db.run(report, worker.id, [], [LogLine(held(lease), n, datetime.now(UTC), "info", f"line {n}")])
        assert following.stdout.readline().endswith(f"run 1 info line {n}\n")
    worker.settle((lease, Succeed()))
    assert following.communicate(timeout=PATIENCE_SECONDS) == ("", "")
    assert following.returncode == 0


def test_a_tail_goes_on_until_ctrl_c(database_url: str, world: World) -> None:
    """Each event once, from where it was asked for; then status 130 and no traceback."""
    (first,) = world.submit()
    tailing = piped("events", "tail", "q", "--from", "0", "--json", url=database_url)
    assert tailing.stdout is not None
    assert first in tailing.stdout.readline()
    (second,) = world.submit()
    assert second in tailing.stdout.readline()
    tailing.send_signal(signal.SIGINT)
    assert tailing.communicate(timeout=PATIENCE_SECONDS) == ("", "")
    assert tailing.returncode == 130


def test_a_question_is_asked_on_a_terminal(database_url: str, world: World) -> None:
    """Who says no leaves with status 1, and Ctrl-C with 130; nothing was done. Who says yes gets it done."""
    (job_id,) = world.submit()
    for answer, status in (("n\n", 1), ("\x03", 130), ("y\n", 0)):
        assert world.state(job_id) == "ready"
        terminal = Terminal.of("jobs", "cancel", "--queue", "q", url=database_url)
        terminal.until("Cancel 1 job? [y/N]: ")
        terminal.say(answer) if answer != "\x03" else terminal.interrupt()
        assert terminal.end() == status, terminal.shown
        assert "Traceback" not in terminal.shown
    assert world.state(job_id) == "cancelled"


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_reader_that_goes_away_ends_it_quietly(database_url: str, world: World, options: list[str]) -> None:
    """As `| head` does."""
    for _ in range(4):
        world.submit(kind="k" * 200, queue="q" * 200)
    with piped("jobs", "list", *options, url=database_url) as ran:
        assert ran.stdout is not None
        assert ran.stderr is not None
        ran.stdout.close()
        assert ran.wait(PATIENCE_SECONDS) == 141
        assert ran.stderr.read() == ""


def test_what_the_terminal_cannot_show_is_no_error(database_url: str, world: World) -> None:
    """A name beyond ASCII on a terminal that has nothing else."""
    world.submit(kind="análisis")
    ran = piped("jobs", "list", url=database_url, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    out, err = ran.communicate(timeout=PATIENCE_SECONDS)
    assert (ran.returncode, err, "an?lisis" in out) == (0, "", True)


def test_the_script_is_installed() -> None:
    """`testigo` on the path is this."""
    (script,) = entry_points(group="console_scripts", name="testigo")
    assert script.value == "testigo.cli:main"
