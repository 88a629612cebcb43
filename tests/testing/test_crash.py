"""Runs that a test loses at a chosen step, as if their process had died there (spec P-20, Promise 4)."""

from __future__ import annotations

import pytest

from testigo import App, AsyncContext, Context, JobFailed
from testigo.errors import Invalid
from testigo.journal.history import history
from testigo.testing import Trial, crash


class Steps:
    """A handler in each colour that saves three times, and the steps at which it was seen."""

    def __init__(self, app: App) -> None:
        self.seen: list[str] = []

        @app.job("sync", crash_limit=3)
        def sync(ctx: Context) -> int:
            try:
                for at in range(ctx.load(int) or 0, 3):
                    ctx.save(at + 1)
                    self.seen.append(f"saved {at + 1}")
                self.seen.append("returns")
                return ctx.losses
            finally:
                self.seen.append("cleans up")

        @app.job("async", crash_limit=3)
        async def on_loop(ctx: AsyncContext) -> int:
            try:
                for at in range(ctx.load(int) or 0, 3):
                    await ctx.save(at + 1)
                    self.seen.append(f"saved {at + 1}")
                self.seen.append("returns")
                return ctx.losses
            finally:
                self.seen.append("cleans up")

        self.handlers = {"sync": sync, "async": on_loop}


@pytest.fixture
def steps(app: App) -> Steps:
    """Those handlers."""
    return Steps(app)


@pytest.mark.parametrize("colour", ["sync", "async"])
@pytest.mark.parametrize(
    ("step", "seen"),
    [
        ({"before_save": 2}, ["saved 1", "saved 2", "saved 3"]),
        ({"after_save": 2}, ["saved 1", "saved 3"]),
        ({"before_end": True}, ["saved 1", "saved 2", "saved 3", "returns", "cleans up"]),
    ],
)
def test_a_run_is_lost_at_its_step_and_the_next_goes_on(
    app: App, steps: Steps, testigo: Trial, colour: str, step: dict[str, int], seen: list[str]
) -> None:
    """Nothing of the handler happens after it, no clean-up either; the next run begins at the last checkpoint."""
    handler = steps.handlers[colour]
    job = handler.submit()
    with crash(handler, **step):  # type: ignore[arg-type]
        assert app.run_until_idle() == 2
    assert job.result(timeout=0) == 1
    assert steps.seen == [*seen, "returns", "cleans up"]
    told = [event.type for event in testigo.database.run(history, job.id).events]
    assert told == ["job.requested", "job.lost", "job.completed"]


def test_a_job_that_is_lost_too_often_fails(app: App, steps: Steps) -> None:
    """Its crash limit is the last word, and no attempt was burnt (field case R20)."""
    handler = steps.handlers["sync"]
    job = handler.submit()
    with crash(handler, before_save=1, times=3):
        assert app.run_until_idle() == 3
    assert steps.seen == []
    with pytest.raises(JobFailed) as raised:
        job.result(timeout=0)
    assert raised.value.facts["reason"] == "crashes"


def test_a_crash_that_never_came_fails_the_test(app: App, steps: Steps) -> None:
    """Or the test would have shown nothing; and the plan is gone with it."""
    handler = steps.handlers["sync"]
    job = handler.submit()
    with pytest.raises(AssertionError, match="did not come"), crash(handler, after_save=4):
        app.run_until_idle()
    assert job.result(timeout=0) == 0


@pytest.mark.parametrize(
    "step",
    [
        {},
        {"before_save": 1, "before_end": True},
        {"before_save": 0},
        {"after_save": 1.5},
        {"before_end": 1, "times": 0},
    ],
)
def test_a_crash_is_planned_at_one_step(steps: Steps, step: dict[str, int]) -> None:
    """Which is named, and counted from 1 (INVALID)."""
    with pytest.raises(Invalid), crash(steps.handlers["sync"], **step):  # type: ignore[arg-type]
        pass


def test_a_handler_has_one_crash_at_a_time(app: App, steps: Steps) -> None:
    """A second one is refused, and the first one comes all the same (INVALID)."""
    handler = steps.handlers["async"]
    job = handler.submit()
    with crash(handler, before_end=True):
        with pytest.raises(Invalid, match="planned already"), crash(handler, after_save=1):
            pass
        app.run_until_idle()
    assert job.result(timeout=0) == 1
