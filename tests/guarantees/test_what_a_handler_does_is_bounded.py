"""Promises 6 and 7 with real handlers: a limit and a cancel have the last word, and what a handler said is kept."""

from __future__ import annotations

import signal
from contextlib import ExitStack
from pathlib import Path

from testigo.authority.cancel import cancel
from testigo.rules.retries import Listed
from tests.guarantees.crew import crew, facts_of, told
from tests.worker.kit import await_end, await_state, await_that, new
from tests.world import World


def test_a_handler_that_hears_nothing_gives_up_its_only_slot(world: World, tmp_path: Path, database_url: str) -> None:
    """A handler that runs past its limit and hears nothing leaves `running` with that reason, its slot is free for the
    next job, and what it goes on doing is accepted by nobody (Promise 6; field cases R09, R16; spec P-22)."""
    with crew(tmp_path, database_url, "--slots", "1") as it:
        it.ready()
        (deaf,) = world.submit(new("deaf", timeout_seconds=0.3, attempts=1))
        await_state(world, deaf, "running")
        (next_one,) = world.submit(new("works"))
        assert await_end(world, deaf, next_one) == ["permanent_failure", "succeeded"]
        signs = len(told(tmp_path, "deaf"))
        (last,) = world.submit(new("one"))
        assert await_end(world, last) == ["succeeded"]
        assert len(told(tmp_path, "deaf")) == signs
    (failed,) = facts_of(world, deaf, "job.failed")
    assert failed["code"] == "TIMEOUT"


def test_what_is_cancelled_while_nobody_works_never_runs(world: World, tmp_path: Path, database_url: str) -> None:
    """Then four workers start: it never runs. What is cancelled right at its claim, by chance before or after it, has
    one end all the same, and ran no more than once (Promise 7; field cases R27, R28)."""
    early = world.submit(*(new("works") for _ in range(20)))
    receipts = world.db.run(cancel, early, action=world.action()).jobs
    assert {row.how for row in receipts} == {"cancelled"}
    with ExitStack() as workers:
        for one in [workers.enter_context(crew(tmp_path, database_url, name=f"worker-{at}")) for at in range(4)]:
            one.ready()
        late = []
        for _ in range(20):
            (job,) = world.submit(new("works"))
            world.db.run(cancel, [job], action=world.action())
            late.append(job)
        assert set(await_end(world, *late)) <= {"cancelled", "succeeded"}
    ran = [each.job_id for each in told(tmp_path, "did")]
    assert not set(early) & set(ran)
    assert {world.job(job).epoch for job in early} == {0}
    assert len(ran) == len(set(ran))
    for job in late:
        ends = [event for event in world.events(job) if event in ("job.cancelled", "job.completed")]
        assert ends == world.events(job)[-1:]


def test_a_run_that_fails_when_it_is_cancelled_is_not_retried(world: World, tmp_path: Path, database_url: str) -> None:
    """It raises an error that a retry would help: it is cancelled, and its worker takes the next job (Promise 7; field
    case R32)."""
    with crew(tmp_path, database_url, "--slots", "1") as it:
        it.ready()
        (job,) = world.submit(new("stops-by-failing", attempts=5))
        await_that(lambda: told(tmp_path, "began"))
        assert world.db.run(cancel, [job], action=world.action()).jobs[0].how == "requested"
        (next_one,) = world.submit(new("works"))
        assert await_end(world, job, next_one) == ["cancelled", "succeeded"]
        it.signal(signal.SIGTERM)
        assert it.wait() == 0
    assert world.job(job).epoch == 1


def test_a_failure_right_after_a_checkpoint_keeps_it(world: World, tmp_path: Path, database_url: str) -> None:
    """Three checkpoints within milliseconds, then an error: the next run begins at the third, since a save returns
    only after its commit (field case R36; spec P-04)."""
    with crew(tmp_path, database_url) as it:
        it.ready()
        (job,) = world.submit(new("saves", backoff=Listed((0.0,))))
        assert await_end(world, job) == ["succeeded"]
    row = world.job(job)
    assert (row.output, row.failures, row.epoch) == ("3", 1, 2)
