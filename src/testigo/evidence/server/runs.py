"""The runs of one server: each asked for once, carried out by a process, kept until it is acknowledged.

The registry is memory, and dies with its server; so do its cursors (spec D-12, D-13).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import uuid
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from testigo.errors import Busy, Conflict, Error, NotFound
from testigo.evidence.analysers import analyser, analysers
from testigo.evidence.server.confined import Limits, how_confined
from testigo.evidence.server.roots import Granted
from testigo.evidence.server.spool import Spool
from testigo.evidence.server.work import Order, Sealed, artifact_path, failed
from testigo.evidence.transport import wire
from testigo.evidence.transport.client import RunState
from testigo.evidence.transport.cursors import Cursors
from testigo.evidence.transport.pages import Slice, page_of
from testigo.evidence.transport.request import Request
from testigo.rules.identity import canonical

__all__ = ["Runs", "Terms"]

READING_SECONDS = 900.0
"""How long a run may take beyond its program: to copy files, to read a report and to seal it."""
SWEEP_SECONDS = 5.0
LOOK_SECONDS = 0.1
"""How soon a run that was cancelled is ended."""
END_SECONDS = 20.0
"""How long it may take to end what it started, before it is killed: a busy machine has many processes to look at."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What a server grants: how many runs at once, how long and how large each, how long a result is kept, and what."""

    at_once: int = 2
    run_seconds: float = 900.0
    run_bytes: int = 256 * 1024**2
    keep_seconds: float = 3600.0
    apart: Path = Path("analysers")
    keys: Path | None = None
    granted: Granted = field(default_factory=Granted)


@dataclass(slots=True)
class _Run:
    """What is known of one run."""

    id: str
    request: Request
    folder: Path
    asked_at: float
    state: RunState = RunState.WAITING
    sealed: Sealed | None = None
    sealed_at: float = 0.0
    thread: threading.Thread | None = None
    gone: bool = False
    places: dict[int, int] = field(default_factory=dict)
    """The number of each page by the ordinal that it begins with."""


class Runs:
    """All runs; for any number of threads. What is not there raises `NotFound`.

    `confinement` says how programs are confined; it is empty where they are not.
    """

    def __init__(self, spool: Spool, terms: Terms) -> None:
        self.spool = spool
        self._terms = terms
        self._cursors = Cursors()
        self.confinement = how_confined()
        self._runs: dict[str, _Run] = {}
        self._asked: dict[str, str] = {}
        self._changed = threading.Condition()
        self._slots = threading.Semaphore(terms.at_once)
        self._closed = threading.Event()
        threading.Thread(target=self._sweep, name="testigo-sweep", daemon=True).start()

    def analysers(self) -> dict[str, str | None]:
        """The version of each analyser, None for one that is not installed."""
        found: dict[str, str | None] = {}
        for name, each in analysers(self._terms.apart).items():
            try:
                found[name] = each.version()
            except NotFound:
                found[name] = None
        return found

    def ask(self, request: Request) -> dict[str, Any]:
        """Begin a run, or tell the one that was begun for the same request. Raises `StoragePressure` for want of room.

        Raises `NotFound` for an analyser that nobody knows, and `Invalid` for what is not granted.
        """
        analyser(request.analyser, apart=self._terms.apart)
        self._terms.granted.check(request)
        with self._changed:
            if self._closed.is_set():
                raise Busy("The server stops.")
            known = self._asked.get(request.digest)
            if known is not None:
                return self._told(self._runs[known])
            run = _Run(str(uuid.uuid4()), request, Path(), time.monotonic())
            run.folder = self.spool.take(run.id, self._terms.run_bytes)
            self._runs[run.id] = run
            self._asked[request.digest] = run.id
            # The kernel ends a run's process with the thread that started it, so that is one that waits for it.
            run.thread = threading.Thread(target=self._carry, args=(run,), name=f"testigo-run-{run.id}", daemon=True)
            try:
                run.thread.start()
            except RuntimeError as error:  # there are too many
                self._forget(run)
                raise Busy("The server has no thread for a run now.") from error
            return self._told(run)

    def look(self, run_id: str, *, wait_seconds: float = 0.0) -> dict[str, Any]:
        """How far a run is; waits for its result so long."""
        with self._changed:
            run = self._run(run_id)
            self._changed.wait_for(
                lambda: run.state is RunState.SEALED or run.gone or self._closed.is_set(), timeout=wait_seconds
            )
            return self._told(self._run(run_id))

    def page(self, run_id: str, cursor: str) -> bytes:
        """The page that the cursor opens. Raises `CursorInvalid` for one that was not made for this result."""
        run, sealed = self._result(run_id)
        bound = (run.id, sealed.manifest.request, sealed.manifest.result)
        n = run.places.get(self._cursors.position(cursor, *bound))
        if n is None:
            raise NotFound("The result has no such page.", field="cursor")
        slice_ = sealed.slices[n]
        following = self._cursors.made(*bound, slice_.first + slice_.count) if n + 1 < len(sealed.slices) else None
        return page_of(*bound, slice_, _lines(run.folder, slice_), cursor, following)

    def artifact(self, run_id: str, digest: str) -> tuple[BinaryIO, int]:
        """The bytes of an artifact, or of an envelope, of a result, and how many there are."""
        run, sealed = self._result(run_id)
        for each in sealed.manifest.artifacts:
            if digest in (each.digest, each.attestation):
                try:
                    file = artifact_path(run.folder, digest).open("rb")
                except OSError as error:
                    raise _not_there() from error
                return file, os.fstat(file.fileno()).st_size
        raise NotFound("The result has no such artifact.", field="digest")

    def acknowledge(self, run_id: str, request: object, result: object) -> None:
        """Delete a result that is published. Raises `Conflict` if run, request and result are not of one result."""
        run, sealed = self._result(run_id)
        if (request, result) != (sealed.manifest.request, sealed.manifest.result):
            raise Conflict("What is acknowledged is not what this run found; nothing was deleted.", field="result")
        self._forget(run)

    def cancel(self, run_id: str) -> None:
        """End a run and forget it, whatever state it is in."""
        with self._changed:
            run = self._run(run_id)
        self._forget(run)

    def close(self) -> None:
        """End every run and forget everything."""
        self._closed.set()
        with self._changed:
            runs = list(self._runs.values())
        for run in runs:
            self._forget(run)
        for run in runs:
            if run.thread is not None:
                run.thread.join(2 * END_SECONDS)

    def _run(self, run_id: str) -> _Run:
        run = self._runs.get(run_id)
        if run is None:
            raise _not_there()
        return run

    def _result(self, run_id: str) -> tuple[_Run, Sealed]:
        with self._changed:
            run = self._run(run_id)
            if run.sealed is None:
                raise Busy("The run has no result yet.", remedy="Ask again when it is sealed.")
            return run, run.sealed

    def _told(self, run: _Run) -> dict[str, Any]:
        return {
            "v": wire.VERSION,
            "run": run.id,
            "request": run.request.digest,
            "state": run.state,
            "seconds": int(time.monotonic() - run.asked_at),
            "manifest": None if run.sealed is None else run.sealed.manifest.to_json(),
        }

    def _carry(self, run: _Run) -> None:
        """Carry a run out, when its turn has come; it ends sealed, unless it is forgotten before."""
        began = datetime.now(UTC)
        with self._slots:
            with self._changed:
                if run.gone:
                    return
                run.state = RunState.RUNNING
            why = self._worked(run)
        try:
            sealed = Sealed.read(run.folder)
            if (sealed.manifest.run, sealed.manifest.request) != (run.id, run.request.digest):
                raise ValueError("it is another run's")
        except (Error, OSError, ValueError, KeyError, TypeError):
            sealed = failed(run.id, run.request, began, why)
        manifest = sealed.manifest
        if manifest.cursor is not None:
            manifest = replace(manifest, cursor=self._cursors.made(run.id, manifest.request, manifest.result, 0))
        self.spool.settle(run.id)
        with self._changed:
            run.places = {slice_.first: n for n, slice_ in enumerate(sealed.slices)}
            run.sealed = replace(sealed, manifest=manifest)
            run.state, run.sealed_at = RunState.SEALED, time.monotonic()
            self._changed.notify_all()
        if run.gone:
            self.spool.drop(run.id)

    def _worked(self, run: _Run) -> str:
        """Have the process do it; what is to be said if it leaves no result."""
        terms = self._terms
        bounds = analyser(run.request.analyser, apart=terms.apart).bounds
        limits = Limits.of(bounds, seconds_max=terms.run_seconds, output_bytes_max=terms.run_bytes)
        order = Order(
            run=run.id,
            request=run.request.to_json(),
            apart=str(terms.apart),
            keys=None if terms.keys is None else str(terms.keys),
            limits=asdict(limits),
            confinement=self.confinement,
            in_memory=self.spool.in_memory,
            server=os.getpid(),
            granted=terms.granted.to_json(),
        )
        quiet = subprocess.DEVNULL
        try:
            (run.folder / "order").touch(mode=0o600)
            (run.folder / "order").write_bytes(canonical(_written(order)))
            process = subprocess.Popen(
                (sys.executable, "-I", "-m", "testigo.evidence.server.work", str(run.folder)),
                cwd="/",
                stdin=quiet,
                stdout=quiet,
                stderr=quiet,
                start_new_session=True,
            )
        except (OSError, Error) as error:
            return f"it could not be started: {type(error).__name__}"
        status = _awaited(run, process, limits.seconds + READING_SECONDS)
        return f"its process ended without a result, with status {status}"

    def _forget(self, run: _Run) -> None:
        with self._changed:
            run.gone = True
            self._runs.pop(run.id, None)
            if self._asked.get(run.request.digest) == run.id:
                del self._asked[run.request.digest]
            self._changed.notify_all()
        self.spool.drop(run.id)

    def _sweep(self) -> None:
        """Forget results that nobody acknowledged in time; the limit holds for all (spec D-12)."""
        keep = self._terms.keep_seconds
        while not self._closed.wait(min(SWEEP_SECONDS, keep)):
            with self._changed:
                old = [
                    run
                    for run in self._runs.values()
                    if run.state is RunState.SEALED and time.monotonic() - run.sealed_at > keep
                ]
            for run in old:
                self._forget(run)


def _written(order: Order) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(asdict(order)))
    return found


def _lines(folder: Path, slice_: Slice) -> bytes:
    try:
        with (folder / "findings" / "lines").open("rb") as file:
            file.seek(slice_.at)
            return file.read(slice_.bytes)
    except OSError as error:
        raise _not_there() from error


def _not_there() -> NotFound:
    return NotFound("There is no such run, or none any more.", field="run")


def _awaited(run: _Run, process: subprocess.Popen[bytes], seconds: float) -> int:
    """The status with which a run's process ends; in time, or when the run is gone, it is told to end its children."""
    until = time.monotonic() + seconds
    while not run.gone and time.monotonic() < until:
        with suppress(subprocess.TimeoutExpired):
            return process.wait(LOOK_SECONDS)
    process.terminate()
    try:
        return process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()
