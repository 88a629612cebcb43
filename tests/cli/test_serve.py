"""`testigo serve`: processes that serve, say where, let their owner in, and stop whatever is open."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from testigo.access.roles import Role
from testigo.access.secret import Secret
from testigo.access.tokens import NewToken, create_token
from testigo.access.users import add_user, disable_user, users
from testigo.authority.actions import Action
from testigo.cli import serve
from testigo.store.database import Database
from tests.cli.conftest import Cli
from tests.cli.process import piped
from tests.web.listening import listened
from tests.worker.kit import PATIENCE_SECONDS, await_that, children_of
from tests.world import World

HOURS_SECONDS = "3600"


class Serving:
    """A server process, what it said first, and its log."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self.process = process
        self.log = log
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, log.read_text("utf-8")
        self.said = json.loads(line)
        self.url = self.said["panel"].removesuffix("/horizon")
        self.stack = ExitStack()

    def client(self, **headers: str) -> httpx.Client:
        """A client of it, once it answers."""
        client = self.stack.enter_context(httpx.Client(base_url=self.url, headers=headers, timeout=PATIENCE_SECONDS))
        await_that(lambda: _answers(client), "an answer of the server")
        return client

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Ask it to stop; its exit status."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_SECONDS)


def _answers(client: httpx.Client) -> bool:
    try:
        return client.get("/api/v1/health/live").status_code == 200
    except httpx.TransportError:
        return False


@contextmanager
def serving(log: Path, url: str, *arguments: str, **environment: str) -> Iterator[Serving]:
    """A server on a free port; whatever becomes of the test, none of its processes is left."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TESTIGO_")}
    command = [sys.executable, "-m", "testigo", "serve", "--port", "0", "--json", "--log-level", "debug", *arguments]
    with log.open("w") as errors:
        process = subprocess.Popen(
            command,
            env={**inherited, "TESTIGO_URL": url, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    try:
        server = Serving(process, log)
        with server.stack:
            yield server
    finally:
        left = [process.pid, *children_of(process.pid)]
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.communicate()


def token(world: World, role: Role = Role.ADMIN) -> str:
    """The text of a new token."""
    made, until = NewToken.new(), datetime.now(UTC) + timedelta(days=1)
    named = Secret.new().text[:8]
    world.db.run(create_token, named, role, until, made.secret.digest, id=made.id, action=world.action())
    return made.secret.text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_with_streams_open(world: World, database_url: str, tmp_path: Path, number: signal.Signals) -> None:
    """At once: it ends them itself, and does not wait until their readers have had enough."""
    world.submit(queue="q")
    with serving(tmp_path / "log", database_url, TESTIGO_WEB_STOP_SECONDS=HOURS_SECONDS) as server:
        client = server.client(Authorization=f"Bearer {token(world)}")
        with (
            listened(client, "/horizon/signals", params={"topics": "jobs"}) as signals,
            listened(client, "/api/v1/events/live", params={"stream": "q", "after": "0"}) as events,
        ):
            signals.event()
            events.event()
            assert server.stop(number) == 0
            assert signals.ends()
            assert events.ends()


def test_on_a_database_of_ones_own_a_link_logs_in_once(server_directory: Path, tmp_path: Path) -> None:
    """As administrator. To look at the link changes nothing, to use it twice neither; no log tells it."""
    with serving(tmp_path / "log", f"embedded:{server_directory / 'db'}") as server:
        client = server.client(Origin=server.url)
        assert client.get("/horizon").status_code == 401
        link = httpx.URL(server.said["login_link"])
        for _ in range(2):
            assert client.get(link).status_code == 200
        secret = link.params["link"]
        first = client.post("/horizon/login", data={"link": secret})
        assert first.status_code == 303
        assert client.get(first.headers["location"]).status_code == 200
        assert client.get("/api/v1/who").json()["role"] == "admin"
        client.cookies.clear()
        assert client.post("/horizon/login", data={"link": secret}).status_code == 401
        assert client.get("/horizon").status_code == 401
        assert server.stop(signal.SIGINT) == 0
        assert secret not in server.log.read_text("utf-8")


def test_whoever_starts_it_reads_what_is_waited_for(server_directory: Path) -> None:
    """That its embedded database starts, and nothing where that runs already."""
    url = f"embedded:{server_directory / 'db'}"
    assert _said_while_serving(url) == "starting the embedded database …\n"
    with Database(url) as db:
        db.run(users)
        assert _said_while_serving(url) == ""


def _said_while_serving(url: str) -> str:
    """What a server that was started and stopped told people, beside where it is."""
    process = piped("serve", "--port", "0", url=url)
    try:
        assert process.stdout is not None
        panel = process.stdout.readline().split(",")[0].removeprefix("The panel is at ")
        with httpx.Client(base_url=panel.removesuffix("/horizon"), timeout=PATIENCE_SECONDS) as client:
            await_that(lambda: _answers(client), "an answer of the server")
        process.terminate()
        _, said = process.communicate(timeout=PATIENCE_SECONDS)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0, said
    return said


def test_whoever_was_disabled_gets_no_link(server_directory: Path, tmp_path: Path) -> None:
    """The panel is served all the same: others may log in."""
    url = f"embedded:{server_directory / 'db'}"
    with Database(url) as db:
        for name in ("local", "ops"):  # the last administrator cannot be disabled
            db.run(add_user, name, Role.ADMIN, "a hash", action=Action("tester"))
        db.run(disable_user, "local", action=Action("tester"))
        with serving(tmp_path / "log", url) as server:
            assert server.said["login_link"] is None
            assert server.client().get("/horizon").status_code == 401
            assert server.stop() == 0


def test_several_processes_serve_and_none_is_left(world: World, database_url: str, tmp_path: Path) -> None:
    """One that dies is replaced; when the first is told to stop, all have."""
    with serving(tmp_path / "log", database_url, "--workers", "2") as server:
        client = server.client(Authorization=f"Bearer {token(world)}")
        await_that(lambda: len(children_of(server.process.pid)) == 2, "two processes")
        first = children_of(server.process.pid)
        os.kill(first[0], signal.SIGKILL)
        await_that(lambda: len(set(children_of(server.process.pid)) - {first[0]}) == 2, "another in its place")
        for _ in range(10):
            with httpx.Client(base_url=server.url, headers=client.headers, timeout=PATIENCE_SECONDS) as other:
                await_that(lambda other=other: _answers(other), "an answer")  # type: ignore[misc]
                assert other.get("/api/v1/who").status_code == 200
        own = children_of(server.process.pid)
        assert server.stop() == 0
        assert not any(_lives(pid) for pid in own)


def test_whose_first_process_is_killed_the_others_end(world: World, database_url: str, tmp_path: Path) -> None:
    """They hear that nobody looks after them any more."""
    with serving(tmp_path / "log", database_url, "--workers", "2") as server:
        server.client()
        own = children_of(server.process.pid)
        assert len(own) == 2
        os.kill(server.process.pid, signal.SIGKILL)
        await_that(lambda: not any(_lives(pid) for pid in own), "their end")


def test_it_says_how_to_let_somebody_in(world: World, database_url: str, tmp_path: Path) -> None:
    """On a server of the user's own no link is made; where nobody is a user yet, it says so."""
    with serving(tmp_path / "log", database_url) as server:
        assert server.said["login_link"] is None
        assert server.said["nobody"] is True


def test_a_port_in_use_is_said(cli: Cli) -> None:
    """In a sentence, with what to do, before anything is started; so is an address that is none of this machine's."""
    from testigo.web.serve import listening

    with listening("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        ran = cli("serve", "--port", str(port))
    assert ran.status == 2
    assert f"Port {port} of 127.0.0.1 is taken" in ran.err
    assert "--port" in ran.err
    ran = cli("serve", "--host", "192.0.2.1", "--port", "0")
    assert ran.status == 2
    assert "192.0.2.1:0 cannot be listened at: Cannot assign requested address.\n" in ran.err


def test_the_usual_port_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """To whoever took it between the look whether somebody answers there and the use of it."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody answers there, and nobody else may use it
        port = taken.getsockname()[1]
        monkeypatch.setattr(serve, "PORT", port)
        with serve.entrance_at("127.0.0.1", None) as entrance:
            assert entrance.getsockname()[1] != port


def test_a_setting_that_nobody_would_read_is_refused(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with those of a worker."""
    monkeypatch.setenv("TESTIGO_WEB_PUBLIK_URL", "https://ops.example.org")
    assert cli("serve").status == 11
    monkeypatch.delenv("TESTIGO_WEB_PUBLIK_URL")
    for url in ("ops.example.org", "ftp://ops.example.org", "https://", "https://ops.example.org/?a=b"):
        monkeypatch.setenv("TESTIGO_WEB_PUBLIC_URL", url)
        ran = cli("serve")
        assert ran.status == 11
        assert "public_url" in ran.err


def _lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
