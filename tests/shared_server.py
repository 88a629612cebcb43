"""What a whole test run has once, shared by all of its worker processes: a PostgreSQL of each version first.

The first test that needs a server starts a *keeper* process for it; the others find its URL in the
run's directory. The run's own process holds a lock on the file `run` for as long as it lives. Each
keeper waits for that lock, gets it when the run is over, however it ended, and stops its server.
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.services import postgres, server_directory

__all__ = ["run_directory", "shared_folder", "shared_server_url"]

ROOT = Path(__file__).parent.parent
CONNECTIONS = 400
"""Of each server; a test takes some fifty of them at the most, and there are as many tests as processes."""
KEEPERS: list[subprocess.Popen[str]] = []
"""The keepers that this process started; nobody waits for them, they end by themselves."""


@contextmanager
def run_directory() -> Iterator[Path]:
    """The directory of a new test run; when it is left, the run's servers stop and it is removed."""
    run = Path(tempfile.mkdtemp(prefix="testigo-run-"))
    try:
        with _locked(run / "run"):
            yield run
        with _locked(run / "keepers"):
            pass
    finally:
        shutil.rmtree(run, ignore_errors=True)


def shared_server_url(run: Path, name: str, bindir: Path) -> str:
    """The URL of the run's server `name`, which is started from `bindir` if nobody did so before."""
    url = run / f"{name}.url"
    with _locked(run / f"{name}.lock"):
        if not url.exists():
            command = [sys.executable, "-m", "tests.shared_server", str(run), str(bindir)]
            keeper = subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True
            )
            KEEPERS.append(keeper)
            assert keeper.stdout is not None
            with keeper.stdout:
                answer = keeper.stdout.readline().strip()
            if not answer:
                raise RuntimeError(f"the shared server {name} did not start; its keeper says why on stderr")
            url.write_text(answer)
    return url.read_text()


def shared_folder(run: Path, name: str, fill: Callable[[Path], object]) -> Path:
    """The run's folder `name`, with what `fill` puts into it if nobody did so before."""
    folder, is_filled = run / name, run / f"{name}.filled"
    with _locked(run / f"{name}.lock"):
        if not is_filled.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            fill(folder)
            is_filled.touch()
    return folder


def keep(run: Path, bindir: Path) -> None:
    """Be a keeper: start a server, print its URL, and stop it when the run is over."""
    with (
        _locked(run / "keepers", fcntl.LOCK_SH),
        server_directory() as directory,
        postgres(bindir, directory, max_connections=CONNECTIONS) as server,
    ):
        print(server.url, flush=True)
        with _locked(run / "run", fcntl.LOCK_SH):
            pass
    shutil.rmtree(run, ignore_errors=True)


@contextmanager
def _locked(file: Path, operation: int = fcntl.LOCK_EX) -> Iterator[None]:
    with file.open("a") as handle:
        fcntl.flock(handle, operation)
        try:
            yield
        finally:
            fcntl.flock(handle, fcntl.LOCK_UN)


if __name__ == "__main__":
    keep(Path(sys.argv[1]), Path(sys.argv[2]))
