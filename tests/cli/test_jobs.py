"""`testigo jobs`: what is asked for is what is answered, in words and in JSON."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from testigo.authority.claim import Lease
from testigo.authority.report import LogLine, Progress, report
from testigo.authority.submissions import NewJob
from testigo.cli.written import moment
from testigo.errors import NotEnded
from testigo.rules.documents import encode
from testigo.rules.outcomes import Block, Degrade, Fail, Succeed
from testigo.settings import LIMITS
from tests.cli.conftest import Cli
from tests.world import Worker, World, held


def test_a_list_shows_the_newest_first_and_goes_on(cli: Cli, world: World) -> None:
    """Page by page, each job once; filters choose."""
    ids = [world.submit(kind=f"k{n % 2}", tags=("even",) if n % 2 == 0 else ())[0] for n in range(5)]
    first = cli("jobs", "list", "--limit", "3", "--json").json
    second = cli("jobs", "list", "--limit", "3", "--json", "--after", first["next"]).json
    assert [job["id"] for job in first["jobs"] + second["jobs"]] == ids[::-1]
    assert (first["complete"], second["next"]) == (True, None)
    assert [job["id"] for job in cli("jobs", "list", "--tag", "even", "--json").json["jobs"]] == ids[::-2]
    assert cli("jobs", "list", "--kind", "k1", "--state", "ready", "--json").json["jobs"][0]["kind"] == "k1"
    ran = cli("jobs", "list", "--limit", "3")
    assert ran.out.split()[:2] == ["ID", "STATE"]
    assert ids[4] in ran.out.splitlines()[1]
    assert f"--after {first['next']}" in ran.err


def test_a_list_that_looked_at_enough_says_where_to_go_on(cli: Cli, world: World) -> None:
    """What is asked for is rarer than one job in 10,000: the search is the caller's to continue."""
    (rare,) = world.submit(kind="rare")
    world.submit(*[NewJob("work", queue="q") for _ in range(LIMITS.walk_rows)])
    first = cli("jobs", "list", "--kind", "rare", "--json").json
    assert (first["jobs"], first["complete"]) == ([], False)
    ran = cli("jobs", "list", "--kind", "rare")
    assert (ran.out, ran.err) == ("", f"None so far.\n10,000 jobs were looked at; go on: --after {first['next']}\n")
    assert rare in cli("jobs", "list", "--kind", "rare", "--after", first["next"]).out


def test_an_empty_list_says_so(cli: Cli) -> None:
    """To people on stderr; to programs as an empty list."""
    ran = cli("jobs", "list")
    assert (ran.status, ran.out, ran.err) == (0, "", "No job matches.\n")
    assert cli("jobs", "list", "--json").json == {"jobs": [], "next": None, "complete": True}


def test_a_job_is_submitted_with_all_that_was_said(cli: Cli, world: World) -> None:
    """Its payload exactly, its contract, its dates."""
    noon = (datetime.now(UTC) + timedelta(hours=1)).replace(microsecond=0)
    (parent,) = world.submit()
    options = ["--queue", "q", "--key", "k", "--client", "me", "--priority", "-3", "--tag", "a", "--tag", "b"]
    dates = ["--run-at", moment(noon), "--finish-by", moment(noon + timedelta(hours=1))]
    more = ["--parent", parent, "--policy", "wait", "--attempts", "7", "--timeout", "9.5"]
    ran = cli("jobs", "submit", "work", "--payload", '{"a": 1e2}', *options, *dates, *more)
    job = world.job(ran.out.strip())
    assert (job.payload, job.queue, job.key, job.client, job.priority) == ('{"a": 1e2}', "q", "k", "me", -3)
    assert (job.tags, job.finish_by, job.attempts, job.timeout_seconds) == (
        ["a", "b"], noon + timedelta(hours=1), 7, 9.5,
    )  # fmt: skip


def test_a_payload_comes_from_a_file_or_from_stdin(
    cli: Cli, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be read is told by its name."""
    file = tmp_path / "payload.json"
    file.write_text('{"from": "a file"}\n')
    assert world.job(cli("jobs", "submit", "work", "--payload", f"@{file}").out.strip()).payload == '{"from": "a file"}'
    monkeypatch.setattr("sys.stdin", io.StringIO('["stdin"]'))
    assert world.job(cli("jobs", "submit", "work", "--payload", "-").out.strip()).payload == '["stdin"]'
    ran = cli("jobs", "submit", "work", "--payload", f"@{tmp_path}/none.json")
    assert (ran.status, "none.json cannot be read: No such file" in ran.err) == (11, True)
    file.write_bytes(b"\xff")
    assert "it is not UTF-8" in cli("jobs", "submit", "work", "--payload", f"@{file}").err


@pytest.mark.parametrize("text", ["tomorrow", "2026-12-24T00:00:00", "2026-13-01T00:00:00Z"])
def test_a_time_without_a_zone_names_none(cli: Cli, text: str) -> None:
    """Neither does a word."""
    assert cli("jobs", "submit", "work", "--run-at", text, "--json").error["field"] == "run_at"


def test_the_same_key_is_the_same_job(cli: Cli) -> None:
    """Submitted twice it is one job; with other content it is refused by the field's name."""
    first = cli("jobs", "submit", "work", "--key", "k", "--json").json
    second = cli("jobs", "submit", "work", "--key", "k", "--json").json
    assert (first["how"], second) == ("accepted", {"job": first["job"], "how": "existing"})
    ran = cli("jobs", "submit", "work", "--key", "k", "--payload", "1", "--json")
    assert (ran.status, ran.error["field"], ran.error["facts"]["job"]) == (12, "key", first["job"])
    assert cli("jobs", "submit", "", "--json").error["field"] == "kind"


def test_a_job_is_shown_as_it_stands(cli: Cli, world: World) -> None:
    """Its failure, its documents and what it went through."""
    world.submit(payload=encode({"path": "a"}), tags=("t",))
    worker = world.worker()
    lease = worker.take()
    worker.settle((lease, Fail("NO_CODEC", "none for h266", "Traceback\n  line 3", permanent=True)))
    ran = cli("jobs", "show", lease.job_id, "--documents", "--events")
    for line in ("state       permanent_failure", "error       NO_CODEC: none for h266", 'payload     {"path":"a"}'):
        assert line in ran.out.splitlines()
    assert "job.requested" in ran.out
    assert "job.failed" in ran.out
    shown = cli("jobs", "show", lease.job_id, "--documents", "--events", "--json").json
    assert (shown["job"]["state"], shown["phase"]) == ("permanent_failure", "failed")
    assert shown["job"]["documents"] == {"payload": {"path": "a"}, "checkpoint": None, "output": None}
    assert [event["type"] for event in shown["events"]] == ["job.requested", "job.failed"]
    assert "payload     12 bytes" in cli("jobs", "show", lease.job_id).out


def test_a_running_job_tells_of_its_holder_and_its_progress(cli: Cli, world: World) -> None:
    """Who has it, and how far it is."""
    worker, lease = _running(world)
    _progress(worker, lease, 1, 50.0, at=datetime.now(UTC) - timedelta(seconds=10))
    _progress(worker, lease, 2, 100.0, at=datetime.now(UTC))
    shown = cli("jobs", "show", lease.job_id).out
    assert f"held by     {worker.session.agent}" in shown
    assert "progress    100 of 200, 20s left" in shown


def test_a_job_is_explained_in_words(cli: Cli, world: World) -> None:
    """The state, why it does not run, and what else is in its way."""
    (job_id,) = world.submit()
    cli("queues", "pause", "q", "--note", "disk")
    ran = cli("jobs", "explain", job_id)
    assert ran.out.startswith("ready: The queue 'q' is paused since ")
    assert "\n  also: No open session serves the queue 'q'." in ran.out
    explained = cli("jobs", "explain", job_id, "--json").json
    assert [each["code"] for each in explained["blockers"]] == ["queue_paused", "unserved"]


def test_a_cancel_says_what_it_did(cli: Cli, world: World) -> None:
    """What waits is cancelled, what runs is asked to stop, what has ended stays; the note goes into the events."""
    _, lease = _running(world)
    (waiting,) = world.submit()
    (gone,) = world.submit()
    cli("jobs", "cancel", gone)
    rows = cli("jobs", "cancel", waiting, lease.job_id, gone, "--note", "wrong input", "--json").json["jobs"]
    assert [row["how"] for row in rows] == ["cancelled", "requested", "ended"]
    assert "note=wrong input" in cli("jobs", "show", waiting, "--events").out
    assert cli("jobs", "cancel", waiting).out == f"{waiting}  had ended before: nothing changed\n"


def test_many_are_cancelled_only_by_agreement(cli: Cli, world: World) -> None:
    """How many is said first; where nobody can be asked, nothing is done without --yes."""
    ids = [world.submit()[0] for _ in range(3)]
    (other,) = world.submit(kind="other")
    ran = cli("jobs", "cancel", "--kind", "work")
    assert (ran.status, ran.err) == (2, "USAGE: Cancel 3 jobs? Nobody can be asked here: say --yes.\n")
    assert {world.state(job_id) for job_id in ids} == {"ready"}
    ran = cli("jobs", "cancel", "--kind", "work", "--yes", "--json")
    assert sorted(row["job"] for row in ran.json["jobs"]) == sorted(ids)
    assert world.state(other) == "ready"
    assert cli("jobs", "cancel", "--kind", "work", "--yes").out == "No job matches; nothing was cancelled.\n"


def test_a_retry_is_a_new_job_in_the_old_ones_place(cli: Cli, world: World) -> None:
    """One that has a successor is refused; of many, such are passed over."""
    worker = world.worker()
    failed = [_failed(world, worker) for _ in range(2)]
    made = cli("jobs", "retry", failed[0], "--note", "codec", "--json").json["jobs"][0]
    assert (made["supersedes"], world.state(made["job"])) == (failed[0], "ready")
    ran = cli("jobs", "retry", failed[0])
    assert (ran.status, ran.out) == (12, "Nothing was retried.\n")
    ran = cli("jobs", "retry", "--queue", "q", "--yes")
    assert (ran.status, ran.out.split()[0]) == (0, failed[1])
    assert "1 job was passed over." in ran.err
    refused = cli("jobs", "retry", "--queue", "q", "--yes", "--json").json["refused"]
    assert [row["code"] for row in refused] == ["STATE_CONFLICT"] * 2


def test_blocked_jobs_go_back_to_work(cli: Cli, world: World) -> None:
    """Those that are named, all or none; or all that are blocked, by agreement. The note goes into the events."""
    worker = world.worker()
    named, other, third, ready = world.submit(*(NewJob("work", queue="q", priority=n) for n in range(4)))
    worker.settle(*((lease, Block("approval")) for lease in worker.claim(3).leases))
    ran = cli("jobs", "unblock", ready, named)
    assert (ran.status, ran.err.partition(":")[0], world.state(named)) == (12, "STATE_CONFLICT", "blocked_by_quality")
    ran = cli("jobs", "unblock", named, "--note", "signed")
    assert (ran.status, ran.out, world.state(named)) == (0, f"{named}  is ready again\n", "ready")
    assert "note=signed" in cli("jobs", "show", named, "--events").out
    assert cli("jobs", "unblock", "--kind", "work").status != 0
    assert cli("jobs", "unblock", "--kind", "work", "--yes", "--json").json["jobs"] == [third, other]
    assert cli("jobs", "unblock", "--kind", "work", "--yes").out == "No job matches; nothing was unblocked.\n"


def test_waiting_tells_the_output(cli: Cli, world: World) -> None:
    """Of a success, whole or degraded, exactly as it is kept."""
    world.submit(), world.submit()
    worker = world.worker()
    leases = worker.claim(2).leases
    worker.settle((leases[0], Succeed(encode({"n": 1}))), (leases[1], Degrade(encode(2), ("no audio",))))
    ran = cli("jobs", "wait", leases[0].job_id)
    assert (ran.status, ran.out) == (0, 'state   succeeded\noutput  {"n":1}\n')
    assert cli("jobs", "wait", leases[1].job_id, "--json").json["limitations"] == ["no audio"]


def test_waiting_ends_with_how_the_job_ended(cli: Cli, world: World) -> None:
    """16 where there is no output, with the failure's own words; 14 where it goes on."""
    failed = _failed(world, world.worker())
    ran = cli("jobs", "wait", failed, "--json")
    assert (ran.status, ran.json["state"], ran.error["code"]) == (16, "permanent_failure", "JOB_FAILED")
    assert ran.error["facts"]["error_code"] == "NO_CODEC"
    (job_id,) = world.submit()
    ran = cli("jobs", "wait", job_id, "--timeout", "0")
    assert (ran.status, ran.out, ran.err.partition(":")[0]) == (NotEnded.exit_status, "", NotEnded.code)
    cli("jobs", "cancel", job_id)
    assert cli("jobs", "wait", job_id).err.startswith("JOB_CANCELLED: ")


def test_a_log_is_shown_in_its_order(cli: Cli, world: World) -> None:
    """Run by run, line by line; no terminal obeys it."""
    worker, lease = _running(world)
    at = datetime(2026, 11, 30, tzinfo=UTC)
    lines = [LogLine(held(lease), n, at, "info", f"line {n}\x1b[2J") for n in (1, 2)]
    world.db.run(report, worker.id, [], lines)
    assert cli("jobs", "log", lease.job_id).out.splitlines() == [
        f"2026-11-30T00:00:00Z run 1 info line {n}\ufffd[2J" for n in (1, 2)
    ]
    assert [line["n"] for line in cli("jobs", "log", lease.job_id, "--json").lines] == [1, 2]
    worker.settle((lease, Succeed()))
    assert len(cli("jobs", "log", lease.job_id, "--follow").out.splitlines()) == 2


def test_pruning_says_how_many_before_it_removes_them(cli: Cli, world: World) -> None:
    """Without --yes nothing is done where nobody can be asked."""
    worker = world.worker()
    gone = [_failed(world, worker) for _ in range(2)]
    (stays,) = world.submit()
    ran = cli("jobs", "prune", "--older-than-days", "0")
    assert (ran.status, "Remove 2 jobs that ended more than 0 days ago?" in ran.err) == (2, True)
    assert world.state(gone[0]) == "permanent_failure"
    assert cli("jobs", "prune", "--json").json == {"found": 0, "more": False, "removed": 0}
    ran = cli("jobs", "prune", "--older-than-days", "0", "--yes", "--json")
    assert ran.json == {"found": 2, "more": False, "removed": 2}
    assert cli("jobs", "show", gone[0]).status == 13
    assert world.state(stays) == "ready"


def _running(world: World) -> tuple[Worker, Lease]:
    world.submit()
    worker = world.worker()
    (lease,) = worker.claim(1, starts=True).leases
    return worker, lease


def _failed(world: World, worker: Worker) -> str:
    world.submit()
    lease = worker.take()
    worker.settle((lease, Fail("NO_CODEC", "none for h266", permanent=True)))
    return lease.job_id


def _progress(worker: Worker, lease: Lease, n: int, done: float, at: datetime) -> None:
    worker.db.run(report, worker.id, [Progress(held(lease), n, at, done, 200.0, "encoding")])
