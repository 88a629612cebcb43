"""The server of one directory: found answering, started, stopped. Everything here is done under the door.

Whether a server lives is asked of the kernel: the postmaster and all its children hold the lock
`alive`, which they inherit. While it is held, a server runs, starts, stops, or leaves orphans that
must be waited for; when it is free, no process of an earlier server is left, and a new one may start.
"""

from __future__ import annotations

import logging
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psycopg

from testigo.errors import EmbeddedUnusable
from testigo.settings import EMBEDDED
from testigo.store.embedded.account import Account, account_for
from testigo.store.embedded.address import PORT, Address, forget, recall, remember, take_address
from testigo.store.embedded.binaries import ENVIRONMENT, Binaries, binaries_for
from testigo.store.embedded.cluster import (
    SUPERUSER,
    data_argument,
    has_room,
    make_cluster,
    refuse_other_major,
    unusable,
)
from testigo.store.embedded.locks import POLL_SECONDS, FileLock
from testigo.store.embedded.log import DISCREET, Log
from testigo.store.embedded.processes import Process, process, works_in
from testigo.store.embedded.unswayed import refuse_unknown_service, unswayed

__all__ = ["DATABASE", "Postmaster"]

logger = logging.getLogger(__name__)

DATABASE = "testigo"
"""The database and its owner, who is no superuser: the engine needs none elsewhere either."""

SETTINGS = {
    "listen_addresses": "",
    "port": str(PORT),
    "unix_socket_permissions": "0700",
    "cluster_name": "testigo",
    "fsync": "on",
    "full_page_writes": "on",
    **DISCREET,
}
"""What is not the user's to change, so it is on the command line, where it outweighs every file."""

PASSING = ("already exists", "still in use", "unexpected postmaster exit")
"""What PostgreSQL says of the lock file and the shared memory of another server's orphans, and what orphans say."""


class Postmaster:
    """The server whose data is in `directory`/data."""

    def __init__(self, directory: Path) -> None:
        self._data = directory / "data"
        self._address = directory / "server.json"
        self._alive = FileLock(directory / "alive")
        self._log = Log(directory / "server.log")
        self._refusal = ""

    def ensure(self, starts: Callable[[], object]) -> str:
        """The folder of the socket at which the server answers; started if no process of it is left.

        `starts` is called once before a start, which takes seconds where the database is yet to be made.

        Raises EmbeddedUnusable, with the end of the log, if it cannot be started or does not answer in time.
        """
        self._log.trim()
        began: int | None = None
        deadline = time.monotonic() + EMBEDDED.start_seconds
        while (address := self._answering()) is None:
            if time.monotonic() > deadline:
                raise self._silent()
            if self._alive.try_alone():
                try:
                    if began is None:
                        starts()
                    account, binaries = self._prepared()
                    if began is None:
                        deadline = time.monotonic() + EMBEDDED.start_seconds
                    else:
                        self._refuse_unless_passing(began)
                    began = self._log.size()
                    self._start(account, binaries)
                finally:
                    self._alive.close()
            time.sleep(POLL_SECONDS)
        return address.folder

    def stop(self) -> None:
        """Stop the server and wait until its last process is gone; a server that does not stop is left and logged."""
        address = recall(self._address)
        server = address.process if address is not None else None
        # A fast shutdown, then one that the next start recovers from; never SIGKILL, which leaves orphans.
        signals = [signal.SIGINT, signal.SIGQUIT]
        while not self._alive.try_alone():
            if not signals or server is None or not server.signal(signals.pop(0)):
                logger.warning("processes of the embedded server on %s are left", self._data)
                return
            if self._alive.alone(EMBEDDED.stop_seconds):
                break
        self._alive.close()
        forget(self._address)

    def break_off(self) -> None:
        """Stop a server whose start was broken off, if it had begun: as soon as it answers, for then it is known."""
        deadline = time.monotonic() + EMBEDDED.stop_seconds
        while not self._alive.try_alone():
            if self._answering() is not None or time.monotonic() > deadline:
                self.stop()
                return
            time.sleep(POLL_SECONDS)
        self._alive.close()

    def _answering(self) -> Address | None:
        """The address at which the server answers now, with its process, its database made; else None."""
        address = recall(self._address)
        pid, ready = _read_pidfile(self._data)
        if address is None or not ready or not self._meet(address.folder):
            return None
        seen = self._process(pid)
        if seen != address.process:
            address = Address(address.folder, seen)
            remember(self._address, address)
        return address

    def _meet(self, folder: str) -> bool:
        try:
            with psycopg.connect(
                host=folder,
                port=PORT,
                user=SUPERUSER,
                dbname="postgres",
                autocommit=True,
                connect_timeout=5,
                **unswayed(),
            ) as connection:
                _make_database(connection)
        except (psycopg.OperationalError, *_MADE_MEANWHILE) as error:
            self._refusal = str(error)
            refuse_unknown_service(self._refusal)
            return False
        return True

    def _process(self, pid: int) -> Process | None:
        """The postmaster, unless the file in which its account wrote its pid names somebody else."""
        return process(pid) if works_in(pid, self._data) else None

    def _prepared(self) -> tuple[Account, Binaries]:
        """Account, programs and a data directory that fit together."""
        account = account_for(self._data)
        binaries = binaries_for(account)
        if not os.path.lexists(self._data):
            make_cluster(self._data, binaries, account, self._alive.descriptor)
        refuse_other_major(self._data, binaries.major)
        return account, binaries

    def _start(self, account: Account, binaries: Binaries) -> None:
        """Let pg_ctl detach a postmaster that leads a session of its own and inherits nothing but `alive`."""
        self._remove_misleading_pidfile()
        folder = take_address(self._address, account).folder
        settings = {**SETTINGS, "unix_socket_directories": folder}
        options = shlex.join(word for name, value in settings.items() for word in ("-c", f"{name}={value}"))
        log = self._log.open()
        try:
            subprocess.run(
                [binaries.program("pg_ctl"), "start", "--no-wait", "--silent", "--options", options],
                check=True,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._data,
                # Not as --pgdata: pg_ctl would put that between double quotes into a line for the shell.
                env={**ENVIRONMENT, "PGDATA": data_argument(self._data, account)},
                user=account.user,
                group=account.group,
                extra_groups=account.groups,
                umask=0o077,
                start_new_session=True,
                pass_fds=[self._alive.descriptor],
                timeout=EMBEDDED.start_seconds,
            )
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            raise self._unusable("could not be started", self._log.tail()) from error
        finally:
            os.close(log)

    def _remove_misleading_pidfile(self) -> None:
        """Remove the pid of a killed postmaster, which PostgreSQL takes for a live one if the system knows that pid.

        It does where the pid was given to another process (after a container's restart that is the
        rule, for pids begin at 1 again), or where process 1 does not reap the dead. A postmaster
        works in its data directory; one whose backends are left is still refused, by its shared memory.
        """
        pid, _ = _read_pidfile(self._data)
        if pid and not works_in(pid, self._data):
            (self._data / "postmaster.pid").unlink()

    def _refuse_unless_passing(self, began: int) -> None:
        """Judge a server that ended before it answered, by what it has logged since."""
        words = self._log.tail(began)
        if words:
            was_killed = "starting PostgreSQL" in words and "FATAL" not in words and "PANIC" not in words
        else:
            was_killed = has_room(self._data)
        if not was_killed and not any(reason in words for reason in PASSING):
            raise self._unusable("ended as soon as it was started", words)
        time.sleep(20 * POLL_SECONDS)

    def _silent(self) -> EmbeddedUnusable:
        pid, _ = _read_pidfile(self._data)
        return self._unusable(
            f"(pid {pid}) did not answer within {EMBEDDED.start_seconds:g} s: either it recovers, or processes of "
            "an earlier one have not ended, or this process cannot see its socket",
            self._refusal or self._log.tail(),
        )

    def _unusable(self, what: str, words: str) -> EmbeddedUnusable:
        return unusable(f"The server on {self._data} {what}", words, self._data)


def _read_pidfile(data: Path) -> tuple[int, bool]:
    """The pid that a postmaster wrote into its directory, and whether it declares itself ready; 0 if there is none."""
    try:
        descriptor = os.open(data / "postmaster.pid", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return 0, False
    with os.fdopen(descriptor, "rb") as file:
        lines = file.read(4096).decode(errors="replace").splitlines()
    pid = int(lines[0]) if lines and lines[0].isascii() and lines[0].isdigit() else 0
    return pid, len(lines) > 7 and lines[7].strip() == "ready"


_MADE_MEANWHILE = (
    psycopg.errors.UniqueViolation,
    psycopg.errors.DuplicateDatabase,
    psycopg.errors.DuplicateObject,
)
"""What somebody was making who was killed in it, whose server process goes on with it: it is asked again."""


def _make_database(connection: psycopg.Connection) -> None:
    role, database = connection.execute(
        "SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = %(name)s),"
        "       EXISTS (SELECT FROM pg_database WHERE datname = %(name)s)",
        {"name": DATABASE},
    ).fetchall()[0]
    if not role:
        connection.execute(f"CREATE ROLE {DATABASE} LOGIN")
    if not database:
        connection.execute(f"CREATE DATABASE {DATABASE} OWNER {DATABASE}")
