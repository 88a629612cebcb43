"""What each command prints for people, at 80 and at 120 columns: as it was looked at, and so it stays."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import pytest

from docs.generate.commands import commands
from testigo.authority.report import LogLine, Progress, report
from testigo.rules.documents import encode
from testigo.rules.outcomes import Degrade, Fail, Succeed
from tests.cli import administered, reviewed
from tests.cli.conftest import Cli
from tests.world import World, held

GOLDEN = Path(__file__).parent / "golden"
"""A file per width; one that is deleted is written anew by the test, which fails until it was looked at."""

_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
_PASSING = re.compile(r"━|-:--:--|^ready for ")
"""What a terminal shows only while a command goes on."""
_OWN = {
    re.compile(r"testigo_[0-9a-f]{32}_[0-9a-f]{64}"): "testigo_…",
    re.compile(r"postgresql://\S+"): "postgresql://…",
    re.compile(r"\d+ rows of \d+ tables"): "… rows of … tables",
}
"""What is another each time, or with each table that is added."""
_AGE = re.compile(r"(?<= )\d+s\b")


WIDTHS = (80, 120)
ELSEWHERE = {
    "testigo demo": "test_demo.py: test_nothing_is_lost_by_the_kills_of_the_demo",
    "testigo init": "test_init.py: test_its_job_runs",
    "testigo scan": "test_scan.py: test_the_gate_s_verdict_is_the_exit_status",
    "testigo analyses reprocess": "test_scan.py: test_an_analysis_is_done_again",
    "testigo worker": "test_worker.py: test_a_worker_runs_what_was_submitted",
    "testigo serve": "test_serve.py: test_on_a_database_of_ones_own_a_link_logs_in_once",
    "testigo doctor": "test_doctor.py: test_a_finding_is_told_with_its_reason_and_its_remedy",
    "testigo version": "test_installation.py: test_the_version_is_told_without_a_database",
    "testigo events tail": "test_process.py: test_a_tail_goes_on_until_ctrl_c",
    "testigo findings export": "test_findings.py: test_findings_are_exported",
    "testigo artifacts get": "test_artifacts.py: test_an_artifact_is_got_byte_by_byte",
    "testigo artifacts verify": "test_artifacts.py: test_an_artifact_is_verified_with_its_attestation",
    "testigo analyser serve": "test_analyser.py: test_it_says_where_it_is_and_stops_with_all_that_it_had",
    "testigo analyser install": "test_analyser.py: test_what_cannot_be_installed_is_not_there",
}
"""Commands that go on, hand out files or tell of the machine, and the test that looks at what each answers."""


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("of", ["", "evidence-", "administered-"])
def test_what_a_command_prints_stays_as_it_was_looked_at(
    cli: Cli, world: World, of: str, columns: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each command that only looks, and each that changes something, on an installation in which much has happened."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{administered.PASSWORD}\n"))
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")  # a table is cut to a terminal's width, and to no pipe's
    monkeypatch.setattr("testigo.cli.call._user", lambda: "ana")
    played = {"": _commands, "evidence-": reviewed.commands, "administered-": administered.commands}[of]
    told = "".join(_told(cli, *words) for words in played(world))
    file = GOLDEN / f"{of}{columns}.txt"
    if not file.exists():
        file.parent.mkdir(exist_ok=True)
        file.write_text(told, "utf-8")
        pytest.fail(f"{file} was not there; it is written now: look at it")
    assert told == file.read_text("utf-8")


@pytest.mark.parametrize("columns", WIDTHS)
def test_every_command_is_looked_at(columns: int) -> None:
    """Here at both widths, or by the test that is named for it (issue *The first hour*)."""
    told = "\n".join(file.read_text("utf-8") for file in GOLDEN.glob(f"*{columns}.txt"))
    known = [path for path, _ in commands()]
    here = {path for path in known if re.search(rf"^\$ {path}( |$)", told, re.MULTILINE)}
    assert sorted(here | ELSEWHERE.keys()) == sorted(known)
    assert not here & ELSEWHERE.keys()


@pytest.mark.parametrize("named", ELSEWHERE.values())
def test_whoever_is_named_for_a_command_is_there(named: str) -> None:
    """A test of this folder."""
    file, _, test = named.partition(": ")
    assert f"\ndef {test}(" in Path(__file__).with_name(file).read_text("utf-8")


def _commands(world: World) -> list[list[str]]:
    """Commands over six jobs: one of each ending, one that runs, one that waits for its try, one that only waits."""
    transcode = {"kind": "media.transcode", "queue": "media", "payload": encode({"path": "a.mp4", "height": 720})}
    jobs = [world.submit(**transcode, tags=("eu", "order:881"))[0] for _ in range(5)]
    worker = world.worker("host-a", ("media",), ("media.transcode",))
    leases = worker.claim(5, starts=True).leases
    at = world.query("SELECT now() AS now")[0].now
    running = leases[4]
    lines = [
        LogLine(held(running), 2, at, "info", "opened a.mp4"),
        LogLine(held(running), 3, at, "warning", "slow disk"),
    ]
    world.db.run(report, worker.id, [Progress(held(running), 1, at, 50.0, 200.0, "encoding")], lines)
    worker.settle(
        (leases[0], Succeed(encode({"frames": 1200}))),
        (leases[1], Fail("CODEC_MISSING", "no codec for av1", "Traceback (most recent call last): …", permanent=True)),
        (leases[2], Degrade(encode({"frames": 1100}), ("no sound",))),
        (leases[3], Fail("TIMEOUT", "payments answered 504", wait_seconds=5400)),
    )
    (waiting,) = world.submit(kind="mail", queue="mail", key="order-881", client="shop")
    done, failed, degraded, again, held_one = jobs
    return [
        ["jobs", "list"],
        ["jobs", "list", "--state", "permanent_failure"],
        *(["jobs", "show", job] for job in jobs),
        ["jobs", "show", failed, "--documents", "--events"],
        *(["jobs", "explain", job] for job in (done, failed, degraded, again, held_one, waiting)),
        ["jobs", "wait", done],
        ["jobs", "wait", failed],
        ["jobs", "wait", waiting, "--timeout", "0"],
        ["jobs", "log", held_one],
        ["jobs", "log", done],
        ["jobs", "cancel", held_one, waiting, done, "--note", "wrong input"],
        ["jobs", "retry", failed],
        ["queues", "pause", "mail", "--note", "the server is away"],
        ["queues", "list"],
        ["queues", "show", "mail"],
        ["queues", "resume", "mail"],
        ["kinds", "pause", "mail", "--note", "a broken template"],
        ["kinds", "list"],
        ["kinds", "resume", "mail"],
        ["workers", "list"],
        ["workers", "drain", "host-a", "--yes"],
        ["events", "list"],
        ["events", "list", "media"],
        ["jobs", "prune", "--yes"],
        ["migrate", "--check"],
    ]


def _told(cli: Cli, *words: str) -> str:
    ran = cli(*words)
    seen: dict[str, str] = {}

    def numbered(match: re.Match[str]) -> str:
        return seen.setdefault(match[0], f"00000000-0000-7000-8000-{len(seen) + 1:012}")

    said = _ESCAPES.sub("", ran.out + ran.err).splitlines()
    lines = [line for line in said if line.strip() and not _PASSING.search(line)]
    text = _ID.sub(numbered, "\n".join([f"$ testigo {' '.join(words)}", *lines, f"[{ran.status}]", ""]))
    text = _TIME.sub(lambda match: "2026-01-02T03:04:05.678901Z"[: len(match[0]) - 1].rstrip("Z") + "Z", text)
    for pattern, plain in _OWN.items():
        text = pattern.sub(plain, text)
    return _AGE.sub(lambda match: f"{'0s':>{len(match[0])}}", text) + "\n"
