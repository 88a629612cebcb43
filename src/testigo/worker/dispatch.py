"""Runs on their way through a keeper: given to runners, stopped at their limits, ended (spec P-20, P-22, case R20)."""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from testigo.authority.settle import NOTHING_KNOWN, Settlement
from testigo.authority.start import Held
from testigo.errors import Error, Invalid, ProtocolBroken
from testigo.rules.outcomes import Fail, Lose, Outcome, Release, RunFacts, Succeed
from testigo.settings import LIMITS
from testigo.worker.runners import Runner, Runners
from testigo.worker.runs import Run
from testigo.worker.wire import end_from_wire

__all__ = ["Dispatch"]

_PLAIN = ["succeed", "null"]
_NOTHING = Succeed()
_YEAR_9998 = 253_370_764_800.0
_BYTES_MAX = 2**53
NEVER = float("inf")


class Dispatch:
    """The keeper's table of runs. Only its main thread uses it.

    A run waits here, then is one runner's, and at its end is in `ended`, until the keeper hands it on.
    """

    def __init__(self, runners: Runners, *, kill_grace_seconds: float, wait_seconds: float) -> None:
        """A run that no runner took within `wait_seconds` is given back.

        Whoever watches runs counts its limit from the claim on, and would take it for one that does not stop.
        """
        self._runners = runners
        self._wait_seconds = wait_seconds
        self._kill_grace_seconds = kill_grace_seconds
        self._waiting: deque[Run] = deque()
        self._waiting_alone: deque[Run] = deque()
        self._waiting_published: deque[Run] = deque()
        self.ended: list[Run] = []
        """Runs whose end is known, for the settler."""
        self.dropped: list[Run] = []
        """Runs of which nothing is to be reported: their lease is lost and they were killed."""
        self.next_at = NEVER
        """When `enforce` should be called next, on the clock of `now`."""

    def __len__(self) -> int:
        return sum(map(len, self._lines)) + sum(len(runner.runs) for runner in self._runners)

    @property
    def _lines(self) -> tuple[deque[Run], ...]:
        """All that waits."""
        return self._waiting, self._waiting_alone, self._waiting_published

    def _line_of(self, run: Run) -> deque[Run]:
        if run.published:
            return self._waiting_published
        return self._waiting_alone if run.alone else self._waiting

    def take(self, runs: Iterable[Run], now: float) -> None:
        """Claimed runs: they wait for a runner."""
        until = now + self._wait_seconds
        for run in runs:
            run.limit_at = until
            self._line_of(run).append(run)
        self.next_at = min(self.next_at, until)
        self._runners.alone_wanted = len(self._waiting_alone)

    def feed(self, now: float) -> None:
        """Give what waits to the runners that have room."""
        if self._waiting:
            self._spread(self._runners.shared(), now)
        if self._waiting_alone:
            for runner in self._runners.idle_alone()[: len(self._waiting_alone)]:
                self._give(runner, [self._waiting_alone.popleft()], now)
            self._runners.alone_wanted = len(self._waiting_alone)

        if self._waiting_published:
            for runner in self._runners.idle_publishers():
                self._give(runner, [self._waiting_published.popleft()], now)

    def free(self) -> tuple[int, int, int]:
        """Free slots: of runners that share, of those for one run, of the publisher; what waits has its own already."""
        idle = len(self._runners.idle_alone()) - len(self._waiting_alone)
        shared = self._runners.room - len(self._waiting)
        # Jobs that were lost before wait in line for a few runners: no more is taken than can stand there.
        published = len(self._runners.idle_publishers()) - len(self._waiting_published)
        return shared + min(idle, 0), max(0, idle), max(0, published)

    def end(self, runner: Runner, rows: Any) -> None:
        """Takes in what a runner reports. Raises `ProtocolBroken` for what it cannot mean."""
        if not isinstance(rows, list):
            raise ProtocolBroken("ends are an array", field="ended")
        deployment = runner.hello.deployment if runner.hello else None
        runs, ended = runner.runs, self.ended
        for row in rows:
            try:
                ticket, end, started_at, run_seconds, peak = row
                run = runs.pop(ticket)
            except (KeyError, TypeError, ValueError):
                raise ProtocolBroken("an end names no run of this runner", field="ended") from None
            if not (_is_within(started_at, _YEAR_9998) and _is_within(run_seconds, LIMITS.seconds_max)):
                raise ProtocolBroken("an end tells of no time that can be", field="ended")
            if type(peak) is not int or not 0 <= peak < _BYTES_MAX:
                raise ProtocolBroken("an end tells of no memory that can be", field="ended")
            facts = RunFacts(deployment, datetime.fromtimestamp(started_at, UTC), run_seconds, None, peak)
            run.end = Settlement(run.lease, _NOTHING, facts) if end == _PLAIN else _settlement(run, end, facts)
            ended.append(run)

    def run_of(self, runner: Runner, ticket: object) -> Run | None:
        """The run that a runner names, if it has it."""
        return runner.runs.get(ticket) if isinstance(ticket, int) else None

    def stop(self, leases: Collection[Held], why: str, now: float) -> None:
        """Tell the runs of these leases to stop; what still waits ends at once.

        A job may have two runs here: one whose lease was lost and which goes on all the same, and the next. And
        a lease that is named may have no run any more, while the next has begun: that one is left alone.
        """
        named = {(lease.job_id, lease.epoch) for lease in leases}
        for run in [run for run in self._all() if (run.lease.job_id, run.lease.epoch) in named]:
            if run.runner is None:
                self._withdraw(run, why)
            elif run.stopping is None:
                self._stop(run, why, now)

    def stop_all(self, why: str, now: float) -> None:
        """Tell every run to stop."""
        self.give_back(why)
        for runner in self._runners:
            for run in runner.runs.values():
                if run.stopping is None:
                    self._stop(run, why, now)

    def give_back(self, why: str, runs: Iterable[Run] | None = None) -> None:
        """Release these runs, or all that wait: no runner has begun with them."""
        for run in list(self._all_waiting()) if runs is None else runs:
            self._close(run, Release(why))
        if runs is None:
            for line in self._lines:
                line.clear()
            self._runners.alone_wanted = 0

    def enforce(self, now: float) -> None:
        """Stop what is past its limit, and kill the runners of what was told to stop and did not (spec P-22)."""
        if now < self.next_at:
            return
        self.next_at = NEVER
        for waiting in self._lines:
            while waiting and now >= waiting[0].limit_at:
                self._close(waiting.popleft(), Release("no runner was free in time"))
            if waiting:
                self.next_at = min(self.next_at, waiting[0].limit_at)
        self._runners.alone_wanted = len(self._waiting_alone)
        for runner in self._runners:
            runs = [] if runner.why_killed else list(runner.runs.values())
            for run in runs:
                if run.stopping is None and now >= run.limit_at:
                    self._stop(run, "timeout", now)
            if any(run.stopping is not None and now >= run.kill_at for run in runs):
                runner.kill("stop")
                continue
            due = [run.limit_at if run.stopping is None else run.kill_at for run in runs]
            self.next_at = min(self.next_at, *due) if due else self.next_at

    def gone(self, runner: Runner, status: int, now: float) -> bool:
        """A runner has come to its end: so have its runs, each in its own way. False if nobody killed it."""
        for run in runner.runs.values():
            outcome = _verdict(run, runner, status, now)
            if outcome is None:
                self.dropped.append(run)
            else:
                self._close(run, outcome, exit_signal=-status if status < 0 else None)
        runner.runs.clear()
        return runner.why_killed is not None

    def _spread(self, runners: list[Runner], now: float) -> None:
        """The same number to each, as far as it has room: a batch is not one runner's alone."""
        while self._waiting and runners:
            share = -(-len(self._waiting) // len(runners))
            for runner in runners:
                count = min(share, runner.free, len(self._waiting))
                if count:
                    self._give(runner, [self._waiting.popleft() for _ in range(count)], now)
            runners = [runner for runner in runners if runner.free > 0]

    def _give(self, runner: Runner, runs: list[Run], now: float) -> None:
        runner.give(runs, now)
        self.next_at = min(self.next_at, *(run.limit_at for run in runs))
        if (
            runner.hello is not None and any(run.lease.kind in runner.hello.isolated for run in runs)
        ) or self._runners.is_spent(runner):
            runner.retire()

    def _stop(self, run: Run, why: str, now: float) -> None:
        assert run.runner is not None
        kill_at = now + self._kill_grace_seconds
        run.runner.stop(run, why, kill_at)
        self.next_at = min(self.next_at, kill_at)

    def _withdraw(self, run: Run, why: str) -> None:
        self._line_of(run).remove(run)
        self._runners.alone_wanted = len(self._waiting_alone)
        if why == "lease_lost":
            self.dropped.append(run)
        else:
            self._close(run, Release(why))

    def _close(self, run: Run, outcome: Outcome, *, exit_signal: int | None = None) -> None:
        facts = RunFacts(exit_signal=exit_signal) if exit_signal else NOTHING_KNOWN
        run.end = Settlement(run.lease, outcome, facts)
        self.ended.append(run)

    def _all(self) -> Iterator[Run]:
        for runner in self._runners:
            yield from runner.runs.values()
        yield from self._all_waiting()

    def _all_waiting(self) -> Iterator[Run]:
        for line in self._lines:
            yield from line


def _is_within(number: object, most: float) -> bool:
    return type(number) is float and 0 <= number <= most


def _settlement(run: Run, end: object, facts: RunFacts) -> Settlement:
    """The end that was reported; one that breaks a limit is a failure of its own run, with the limit's code."""
    try:
        outcome, children = end_from_wire(end)
    except Invalid as error:
        return Settlement(run.lease, Fail(error.code, _sentences(error)), facts)
    return Settlement(run.lease, outcome, facts, children=children)


def _sentences(error: Error) -> str:
    return f"{error.message} [{error.field}] {error.remedy}"


def _verdict(run: Run, runner: Runner, status: int, now: float) -> Outcome | None:
    """What is reported of a run whose runner is gone; None when nobody holds its lease any more."""
    if run.stopping == "lease_lost":
        return None
    match runner.why_killed:
        case None:
            return Lose("RUNNER_DIED", f"The runner {_ended_by(status)}.")
        case "stop" if run.stopping is None or now < run.kill_at:
            return Release("a sibling was stopped")
        case "stop":
            return _stopped(run)
        case "protocol":
            return Lose("PROTOCOL_BROKEN", "The runner broke the protocol and was killed.")
        case why:
            return Release(why)


def _stopped(run: Run) -> Outcome:
    if run.stopping == "timeout":
        seconds = run.lease.timeout_seconds
        return Fail("TIMEOUT", f"The run did not stop at its limit of {seconds:g} s, so its runner was killed.")
    if run.stopping == "cancelled":
        return Fail("CANCELLED", "The run did not stop when it was cancelled, so its runner was killed.")
    return Release("drained")


def _ended_by(status: int) -> str:
    if status >= 0:
        return f"exited with status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = "unknown"
    return f"was killed by signal {-status} ({name})"
