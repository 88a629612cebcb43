"""Runners are replaced when they are spent, and kept apart where a kind asks for it."""

from __future__ import annotations

import os
import signal
import urllib.request
from pathlib import Path

import pytest

from tests.worker.kit import await_end, await_that, new, worker
from tests.world import World

MODULE = """
import os
import time
from pathlib import Path
from testigo import App, AsyncContext, Context

app = App("jobs")
held = []

@app.job("pid", queue="q")
async def pid(ctx: AsyncContext) -> int:
    return os.getpid()

@app.job("alone", queue="q", isolation="process")
def alone(ctx: Context) -> int:
    return os.getpid()

@app.job("grows", queue="q")
async def grows(ctx: AsyncContext) -> int:
    held.append(bytearray(os.urandom(1024)) * 80_000)
    return os.getpid()

def together(job_id: str) -> int:
    # How many run at this moment, looked at for a while; at once when it is more than one.
    Path(f"{job_id}.runs").touch()
    ends_at = time.monotonic() + 3
    most = 0
    while time.monotonic() < ends_at and most <= 1:
        most = max(most, len(list(Path().glob("*.runs"))))
        time.sleep(0.02)
    Path(f"{job_id}.runs").unlink()
    return most

@app.job("alone-together", queue="q", isolation="process")
def alone_together(ctx: Context) -> int:
    return together(ctx.job_id)

@app.job("shared-together", queue="q")
def shared_together(ctx: Context) -> int:
    return together(ctx.job_id)
"""
ARGUMENTS = ("--runners", "1", "--slots", "2", "--queues", "q")


def outputs(world: World, *jobs: str) -> list[str]:
    """What these jobs made."""
    return [str(world.job(job).output) for job in jobs]


def test_a_runner_is_replaced_after_so_many_runs(world: World, tmp_path: Path, database_url: str) -> None:
    """None has more than it may, and none is cut short."""
    (tmp_path / "testigo.toml").write_text("[worker]\nrunner_jobs_max = 3\n", "utf-8")
    with worker(tmp_path, database_url, MODULE, *ARGUMENTS) as it:
        it.ready()
        jobs = world.submit(*(new("pid") for _ in range(9)))
        assert set(await_end(world, *jobs)) == {"succeeded"}
        pids = outputs(world, *jobs)
        assert len(set(pids)) >= 3
        assert max(pids.count(pid) for pid in pids) <= 4
        assert {world.job(job).losses for job in jobs} == {0}


def test_a_runner_is_replaced_when_it_has_grown(world: World, tmp_path: Path, database_url: str) -> None:
    """Once the run that made it grow has ended."""
    (tmp_path / "testigo.toml").write_text("[worker]\nrunner_memory_bytes_max = 100_000_000\n", "utf-8")
    with worker(tmp_path, database_url, MODULE, *ARGUMENTS) as it:
        it.ready()
        before = set(it.runners())
        (job,) = world.submit(new("grows"))
        assert await_end(world, job) == ["succeeded"]
        await_that(lambda: before - set(it.runners()))
        assert f"runner {world.job(job).output} is replaced: its memory" in it.log


def test_a_runner_is_replaced_when_it_is_old(world: World, tmp_path: Path, database_url: str) -> None:
    """Though it has had nothing to do."""
    (tmp_path / "testigo.toml").write_text("[worker]\nrunner_age_seconds_max = 0.5\n", "utf-8")
    with worker(tmp_path, database_url, MODULE, *ARGUMENTS) as it:
        it.ready()
        before = set(it.runners())
        await_that(lambda: it.runners() and not before & set(it.runners()))


def test_each_run_of_an_isolated_kind_has_a_process_of_its_own(world: World, tmp_path: Path, database_url: str) -> None:
    """And none of them is one that others share."""
    with worker(tmp_path, database_url, MODULE, *ARGUMENTS) as it:
        it.ready()
        jobs = world.submit(*(new("alone") for _ in range(4)), new("pid"))
        assert set(await_end(world, *jobs)) == {"succeeded"}
        assert len(set(outputs(world, *jobs))) == 5


def test_fresh_code_runs_after_a_change(world: World, tmp_path: Path, database_url: str) -> None:
    """Broken code in between is told, and costs nothing but time."""
    with worker(tmp_path, database_url, MODULE, *ARGUMENTS, "--reload") as it:
        it.ready()
        (tmp_path / "jobs.py").write_text("not python", "utf-8")
        it.said("cannot be loaded")
        (tmp_path / "jobs.py").write_text(MODULE.replace("os.getpid()", "-7"), "utf-8")
        os.utime(tmp_path / "jobs.py", (1, 1))

        def is_fresh() -> bool:
            (job,) = world.submit(new("pid"))
            await_end(world, job)
            return outputs(world, job) == ["-7"]

        await_that(is_fresh)


def test_metrics_are_served_where_they_are_asked_for(world: World, tmp_path: Path, database_url: str) -> None:
    """On this machine, at the port that the log names."""
    with worker(tmp_path, database_url, MODULE, *ARGUMENTS, "--metrics-port", "0") as it:
        it.ready()
        (job,) = world.submit(new("pid"))
        await_end(world, job)
        port = it.log.partition("metrics on 127.0.0.1:")[2].split()[0]

        def text() -> str:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
                return str(answer.read().decode())

        await_that(lambda: 'testigo_runs_ended_total{kind="pid",outcome="succeed"} 1.0' in text())
        assert "testigo_beat_age_seconds" in text()
        await_that(lambda: "testigo_hears_wake_ups 1.0" in text(), "the hearing of wake-ups")
        it.signal(signal.SIGTERM)
        assert it.wait() == 0


@pytest.mark.parametrize("kind", ["alone-together", "shared-together"])
def test_no_more_run_than_there_are_slots(world: World, tmp_path: Path, database_url: str, kind: str) -> None:
    """Though each run uses its runner up, and the next runner is there before the last has ended."""
    (tmp_path / "testigo.toml").write_text("[worker]\nrunner_jobs_max = 1\n", "utf-8")
    with worker(tmp_path, database_url, MODULE, *ARGUMENTS[:2], "--slots", "1", *ARGUMENTS[4:]) as it:
        it.ready()
        jobs = world.submit(new(kind), new(kind))
        assert set(await_end(world, *jobs)) == {"succeeded"}
        assert outputs(world, *jobs) == ["1", "1"]


def test_runners_that_know_other_kinds_are_replaced(world: World, tmp_path: Path, database_url: str) -> None:
    """One runner that began with new code makes its kinds claimed, so the others must know them, too."""
    told = "\nPath(f'{os.getpid()}.loaded').touch()\n"
    with worker(tmp_path, database_url, MODULE + told, "--runners", "2", *ARGUMENTS[2:]) as it:
        # Those that share their slots and the one that stands by for a run alone: none begins with the new code.
        await_that(lambda: len(list(tmp_path.glob("*.loaded"))) == 3, "the start of three runners")
        code = MODULE.replace('app.job("grows"', 'app.job("new"')
        (tmp_path / "jobs.py").write_text(code.replace("def grows", "def renamed_meanwhile"), "utf-8")
        os.kill(min(it.runners()), signal.SIGKILL)
        await_that(lambda: "its kinds are others by now" in it.log)
        jobs = world.submit(*(new("new") for _ in range(8)))
        assert set(await_end(world, *jobs)) == {"succeeded"}
        assert {world.job(job).epoch for job in jobs} == {1}
