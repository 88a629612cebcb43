"""A process that uses an embedded server, told what to do over a pipe, so that tests can kill it at any time.

with User(directory) as user:
    user.url            # when it has joined
    user.ask("SELECT 1")
    user.leave()        # or user.kill()
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg

from testigo.errors import Error
from testigo.store.embedded import EmbeddedServer
from testigo.store.embedded.address import forget

__all__ = ["User", "connect", "has_postmaster", "lives", "own_directory", "postmaster", "until"]

PATIENCE_SECONDS = 60.0


def connect(url: str, user: str = "testigo") -> psycopg.Connection:
    """An autocommit connection to an embedded server's URL."""
    return psycopg.connect(url.replace("+psycopg://testigo", f"://{user}"), autocommit=True)


def postmaster(directory: Path) -> int:
    """The pid of the server that runs on the directory, or ran there when it was killed."""
    return int((directory / "data" / "postmaster.pid").read_text().split()[0])


def has_postmaster(directory: Path) -> bool:
    """Whether a server has written its pid there: the file is made first, and then filled."""
    file = directory / "data" / "postmaster.pid"
    return file.exists() and bool(file.read_text().strip())


def lives(directory: Path) -> bool:
    """Whether any process of the directory's server is left: they all hold this lock."""
    with (directory / "alive").open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def until(condition: Callable[[], bool]) -> None:
    """Wait for what other processes bring about; AssertionError if they do not."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.002)


@contextmanager
def own_directory() -> Iterator[Path]:
    """A place for a server's directory, not yet made; whatever runs in it is stopped, then it is removed."""
    parent = Path(tempfile.mkdtemp(prefix="testigo-test-"))
    directory = parent / "it"
    try:
        yield directory
    finally:
        until(lambda: not (directory / "alive").exists() or _ended(directory))
        forget(directory / "server.json")
        shutil.rmtree(parent)


def _ended(directory: Path) -> bool:
    """Whether the directory's server has ended; told to if not, as soon as it has a pid to be told by."""
    if not lives(directory):
        return True
    with suppress(ProcessLookupError, FileNotFoundError, IndexError):
        os.kill(postmaster(directory), signal.SIGQUIT)
    return False


class User:
    """A process of its own, in a session of its own. `uid` makes it an ordinary user's (only root can)."""

    def __init__(self, directory: Path, *, uid: int | None = None, wait: bool = False) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(directory), str(uid or ""), "wait" if wait else ""],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._url: str | None = None

    @property
    def pid(self) -> int:
        """Its pid, which is its process group too."""
        return self._process.pid

    @property
    def url(self) -> str:
        """The server's URL, when it has joined; AssertionError with the code and message if it could not."""
        if self._url is None:
            answer = self._answer()
            assert "url" in answer, answer
            self._url = answer["url"]
        return self._url

    def begin(self) -> None:
        """Let a process that was made with `wait` join."""
        self._say("begin")

    def refusal(self) -> dict[str, Any]:
        """The code, message and remedy with which it could not join."""
        return self._answer()

    def ask(self, statement: str) -> Any:
        """The first column of the first row, over the connection that it keeps."""
        assert self.url
        return self._told(statement)["value"]

    def fork(self, *, a_user: bool = False) -> int:
        """Let it fork a child, which may use the directory in its own right; the pid. SIGUSR1 lets it leave and end."""
        assert self.url
        return int(self._told("fork a user" if a_user else "fork")["value"])

    def leave(self) -> None:
        """Let it close the server, then end."""
        self._end("leave")

    def exit(self) -> None:
        """Let its interpreter exit without closing the server."""
        self._end("exit")

    def kill(self) -> None:
        """SIGKILL, and wait for its end."""
        self._process.kill()
        self._process.wait()

    def interrupt_group(self) -> None:
        """SIGINT to its process group, as Ctrl-C sends it, and wait for its end."""
        os.killpg(self._process.pid, signal.SIGINT)
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    def _end(self, word: str) -> None:
        assert self.url
        self._say(word)
        assert self._process.wait() == 0

    def _told(self, word: str) -> dict[str, Any]:
        self._say(word)
        return self._answer()

    def _say(self, word: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(word) + "\n")
        self._process.stdin.flush()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "it ended without an answer"
        answer: dict[str, Any] = json.loads(line)
        return answer


def main(directory: str, uid: str, wait: str) -> None:
    """The process itself: join, then obey line by line."""
    if uid:
        os.setgroups([])
        os.setgid(int(uid))
        os.setuid(int(uid))
    if wait:
        assert sys.stdin.readline()
    try:
        server = EmbeddedServer.use(Path(directory))
    except Error as error:
        _tell(code=error.code, message=error.message, remedy=error.remedy)
        return
    _tell(url=server.url)
    connection = connect(server.url)
    for line in sys.stdin:
        match json.loads(line):
            case "leave":
                server.close()
                break
            case "exit":
                break
            case "fork":
                _tell(value=_forked(server, None))
            case "fork a user":
                _tell(value=_forked(server, Path(directory)))
            case statement:
                done = connection.execute(statement)
                row = done.fetchone() if done.description else None
                _tell(value=row[0] if row else None)


def _forked(server: EmbeddedServer, directory: Path | None) -> int:
    """A child that closes its copy of the parent's use and, given a directory, uses it itself, until SIGUSR1."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    ready, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            own = EmbeddedServer.use(directory) if directory else None
            server.close()
            os.write(told, b".")
            signal.sigwait([signal.SIGUSR1])
            if own:
                own.close()
        finally:
            os._exit(0)
    os.close(told)
    assert os.read(ready, 1) == b"."
    return pid


def _tell(**answer: Any) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
