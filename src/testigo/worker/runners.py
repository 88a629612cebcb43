"""The runners of a keeper: how many there are, which may take work, when each is replaced (spec P-20; field case R20).

Those that share their slots among runs are kept at a fixed number. Beside them stand runners for one
run alone: for kinds with `isolation="process"`, which use a runner up, and for jobs that were lost
before, so that one which kills its process takes no other with it. And where an application has kinds
that publish, there is one publisher, which runs them and nothing else (spec P-30).
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

from testigo.settings import Worker
from testigo.store.backend import Backend
from testigo.worker.child import PUBLISHER, Child
from testigo.worker.hello import Hello
from testigo.worker.protocol import encode_batch, encode_frame
from testigo.worker.runs import Run

__all__ = ["Runner", "Runners", "State"]

_log = logging.getLogger("testigo.worker")

BACKOFF_FIRST_SECONDS = 0.5
BACKOFF_CAP_SECONDS = 30.0
"""Between two tries to start a runner that cannot be started; the wait doubles."""
LOOK_SECONDS = 1.0
"""How often the age and the memory of runners are looked at."""
IDLE_SECONDS = 10.0
"""A runner for one run that nobody needs any more is let go after this."""

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class State(StrEnum):
    """Where a runner stands in its life."""

    STARTING = "starting"
    GREETED = "greeted"
    """It said hello; the session does not yet tell of its process."""
    READY = "ready"
    RETIRING = "retiring"
    DYING = "dying"


class Runner:
    """One runner, and the runs that it has."""

    def __init__(self, child: Child, slots: int, *, alone: bool = False, publishes: bool = False, now: float) -> None:
        self.child = child
        self.pid = child.pid
        self.slots = slots
        self.alone = alone
        self.publishes = publishes
        self.is_shared = not alone and not publishes
        self.state = State.STARTING
        self.runs: dict[int, Run] = {}
        self.hello: Hello | None = None
        self.born_at = now
        self.used_at = now
        self.taken = 0
        self.why_killed: str | None = None
        self.backends: tuple[Backend, ...] = ()
        """The server's processes behind the connections of a publisher, as it told of them."""

    @property
    def free(self) -> int:
        """How many runs it can take now."""
        return self.slots - len(self.runs) if self.state is State.READY else 0

    def give(self, runs: list[Run], now: float) -> float:
        """Send it these runs, in one frame; the limit of each counts from here. Returns the earliest."""
        rows: list[tuple[object, ...]] = []
        earliest = float("inf")
        mine = self.runs
        for run in runs:
            lease = run.lease
            run.runner = self
            run.limit_at = limit_at = now + lease.timeout_seconds
            if limit_at < earliest:
                earliest = limit_at
            mine[run.ticket] = run
            finish_by = None if lease.finish_by is None else lease.finish_by.isoformat()
            grant = (run.ticket, lease.kind, lease.queue, lease.job_id, lease.epoch, lease.failures, lease.losses)
            row = (*grant, lease.timeout_seconds, finish_by, lease.payload, lease.checkpoint, lease.trace)
            rows.append((*row, (lease.lease_id, run.term.session.id)) if self.publishes else row)
        self.taken += len(runs)
        self.used_at = now
        self.child.send(encode_batch("run", rows))
        return earliest

    def stop(self, run: Run, why: str, kill_at: float) -> None:
        """Ask one run to stop, and note when the runner is killed if it has not."""
        run.stopping, run.kill_at = why, kill_at
        self.child.send(encode_frame(["stop", run.ticket, why]))

    def kill(self, why: str) -> None:
        """Kill its group now; the end is read when the process is gone."""
        if self.state is not State.DYING:
            self.state = State.DYING
            self.why_killed = why
        self.child.kill()

    def hang_up(self) -> None:
        """It will say nothing more: it is exiting, with a status that no signal changes, or else is killed now."""
        if self.state is not State.RETIRING:
            self.state = State.DYING
        self.child.kill()

    def retire(self) -> None:
        """Let it finish what it runs and exit."""
        if self.state in (State.GREETED, State.READY):
            self.child.send(encode_frame(["retire"]))
            self.state = State.RETIRING
        elif self.state is State.STARTING:
            self.kill("retired")


class Runners:
    """All runners of a keeper. Only its main thread uses this."""

    def __init__(self, arguments: list[str], options: Worker, count: int) -> None:
        """`count` runners share their slots; `arguments` are those of each."""
        self._arguments = arguments
        self._options = options
        self._count = count
        self._all: list[Runner] = []
        self._backoff_seconds = 0.0
        self._spawn_at = 0.0
        self._look_at = 0.0
        self.hello: Hello | None = None
        """What the newest of those that said something said."""
        self.credentials: tuple[str, str, dict[str, str]] | None = None
        """The URL, the schema and the variables that say more of both, for the publisher alone."""
        self.alone_wanted = 0
        """Runs that wait for a runner of their own."""
        self.closing = False
        """Whether no new runner is wanted."""

    def __iter__(self) -> Iterator[Runner]:
        return iter(list(self._all))

    def __len__(self) -> int:
        return len(self._all)

    @property
    def alone_max(self) -> int:
        """How many runners for one run there may be: as many as there are slots, for each takes the place of one."""
        return self._count * self._options.slots

    @property
    def room(self) -> int:
        """How many more runs those that share their slots take; one that retires keeps the places of its runs."""
        shared = [runner for runner in self._all if runner.is_shared]
        most = self._count * self._options.slots - sum(len(runner.runs) for runner in shared)
        return min(most, sum(runner.free for runner in shared))

    def shared(self) -> list[Runner]:
        """Those whose slots are shared and that can take a run now."""
        return [runner for runner in self._all if runner.is_shared and runner.free > 0]

    def idle_alone(self) -> list[Runner]:
        """Those for one run that wait for it."""
        return [runner for runner in self._all if runner.alone and runner.free > 0]

    def idle_publishers(self) -> list[Runner]:
        """The publisher, while it waits for something to publish."""
        return [runner for runner in self._all if runner.publishes and runner.free > 0]

    def tend(self, now: float) -> None:
        """Replace what is old, spawn what is missing, let go what is idle."""
        if now >= self._look_at:
            self._look_at = now + LOOK_SECONDS
            self._recycle(now)
        for runner in self._all:
            if runner.state is State.STARTING and now - runner.born_at > self._options.runner_start_seconds:
                _log.error("a runner did not say hello in %g s and is killed", self._options.runner_start_seconds)
                runner.kill("it did not start")
                self.delay(now)
        if not self.closing and now >= self._spawn_at:
            self._spawn_missing(now)

    def next_at(self, now: float) -> float | None:
        """When `tend` should be called next, on `time.monotonic`; None when nothing here depends on time."""
        times = [self._spawn_at] if self._spawn_at > now and not self.closing else []
        options = self._options
        for runner in self._all:
            if runner.state is State.STARTING:
                times.append(runner.born_at + options.runner_start_seconds + LOOK_SECONDS / 10)
            elif runner.state is State.READY and runner.alone and not runner.runs:
                times.append(max(self._look_at, runner.used_at + IDLE_SECONDS))
        if options.runner_memory_bytes_max or options.runner_age_seconds_max:
            times.append(self._look_at)
        return min(times, default=None)

    def greeted(self, runner: Runner, hello: Hello) -> Hello:
        """A runner has loaded the application; those that know other kinds of it than the newest are replaced.

        Each kind is claimed for all: a runner that does not know it would give its jobs back, again and again.
        Returns what the newest said.
        """
        runner.hello = hello
        runner.state = State.GREETED
        self._backoff_seconds = 0.0
        if runner.publishes and self.hello is not None:
            return self.hello
        said = [(each, each.hello) for each in self._all if each.hello is not None and not each.publishes]
        _, newest = max(said, key=lambda one: one[0].born_at)
        for each, its in said:
            if its.kinds != newest.kinds and each.state in (State.GREETED, State.READY):
                _log.info("runner %d is replaced: its kinds are others by now", each.pid)
                each.retire()
        self.hello = newest
        return newest

    def delay(self, now: float) -> None:
        """A runner could not be started: wait before the next, each time twice as long."""
        doubled = self._backoff_seconds * 2 or BACKOFF_FIRST_SECONDS
        self._backoff_seconds = min(BACKOFF_CAP_SECONDS, doubled)
        self._spawn_at = now + self._backoff_seconds

    def recycle_all(self) -> None:
        """Replace every runner, as after a change of the code."""
        self._spawn_at = self._backoff_seconds = 0.0
        for runner in self._all:
            runner.retire()

    def remove(self, runner: Runner) -> None:
        """A runner is gone."""
        runner.child.close()
        self._all.remove(runner)

    def end(self, grace_seconds: float) -> None:
        """Let go of every runner: those that rest exit by themselves, the others are killed."""
        until = time.monotonic() + grace_seconds
        for runner in self._all:
            runner.child.close()
        while any(not runner.child.has_exited() for runner in self._all) and time.monotonic() < until:
            time.sleep(0.005)
        for runner in self._all:
            runner.child.exit_status()

    def is_spent(self, runner: Runner) -> bool:
        """Whether a runner has had the runs that it may have: one of an isolated kind uses it up."""
        if 0 < self._options.runner_jobs_max <= runner.taken:
            return True
        isolated = runner.hello.isolated if runner.alone and runner.hello else {}
        return any(run.lease.kind in isolated for run in runner.runs.values())

    def _spawn_missing(self, now: float) -> None:
        serving = [runner for runner in self._all if runner.state not in (State.RETIRING, State.DYING)]
        for _ in range(self._count - sum(1 for runner in serving if runner.is_shared)):
            self._spawn(self._options.slots, now, alone=False)
        if self._publishes and not any(runner.publishes for runner in self._all):
            self._spawn_publisher(now)
        alone = [runner for runner in self._all if runner.alone]  # all are processes, those too that retire
        idle = sum(1 for runner in serving if runner.alone and not runner.runs)
        starting = sum(1 for runner in alone if runner.state is State.STARTING)
        wanted = max(self.alone_wanted, self._spares())
        # Many may be wanted after a crash, but short runs share a few: no more start at a time than run at a time.
        for _ in range(min(wanted - idle, self.alone_max - len(alone), self._count - starting)):
            self._spawn(1, now, alone=True)

    @property
    def _publishes(self) -> bool:
        return self.credentials is not None and self.hello is not None and bool(self.hello.published)

    def _spawn_publisher(self, now: float) -> None:
        child = Child(["--slots", "1"], program=PUBLISHER)
        child.send(encode_frame(["credentials", *(self.credentials or ())]))
        self._all.append(Runner(child, 1, publishes=True, now=now))

    def _spares(self) -> int:
        """Runners for one run that are kept ahead: one, where a kind asks for them."""
        return 1 if self.hello is not None and self.hello.isolated else 0

    def _spawn(self, slots: int, now: float, *, alone: bool) -> None:
        runner = Runner(Child(["--slots", str(slots), *self._arguments]), slots, alone=alone, now=now)
        self._all.append(runner)

    def _recycle(self, now: float) -> None:
        idle = [runner for runner in self.idle_alone() if now - runner.used_at > IDLE_SECONDS]
        for runner in idle[: max(0, len(self.idle_alone()) - max(self.alone_wanted, self._spares()))]:
            runner.retire()
        age, memory = self._options.runner_age_seconds_max, self._options.runner_memory_bytes_max
        for runner in self._all:
            if runner.state is not State.READY:
                continue
            if 0 < age <= now - runner.born_at:
                _log.info("runner %d is replaced: its age", runner.pid)
                runner.retire()
            elif 0 < memory <= _resident_bytes(runner.pid):
                _log.info("runner %d is replaced: its memory", runner.pid)
                runner.retire()


def _resident_bytes(pid: int) -> int:
    """The memory that a process has in the machine's; 0 where that cannot be told."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]) * _PAGE_BYTES
    except (OSError, IndexError, ValueError):
        return 0
