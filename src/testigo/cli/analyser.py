"""`testigo analyser`: serve analysers to scans, and install those that live apart."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup

from testigo.cli import call
from testigo.cli.call import Call, command
from testigo.cli.failures import Misuse

if TYPE_CHECKING:
    from testigo.evidence.server.door import Server

__all__ = ["group"]

MIB = 1024**2


class ServesByDefault(TyperGroup):
    """Without a verb it serves: `testigo analyser --port 0` is `testigo analyser serve --port 0`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words after `analyser`."""
        is_help = bool(args) and args[0] in ("--help", "-h")
        if not args or (args[0].startswith("-") and not is_help):
            args = ["serve", *args]
        return super().parse_args(ctx, args)


group = call.group("analyser", "Serve analysers to scans, and install those that live apart.")
group.info.cls = ServesByDefault


class Serving(NamedTuple):
    """Where the server is, where results lie meanwhile, and whether programs are kept from the network."""

    address: str
    spool: str
    in_memory: bool
    network: str


class Installed(NamedTuple):
    """What was installed."""

    name: str
    version: str


@command(
    group,
    "serve",
    "analyser serve --root /srv/src",
    "analyser serve --socket /run/testigo/analyser.sock --root /srv/src --environment shop=/srv/shop/.venv",
    "analyser serve --root . --port 0 --json",
)
def serve(
    here: Call,
    socket: Annotated[
        Path | None, typer.Option("--socket", metavar="PATH", help="Listen at this Unix socket.", show_default="none")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            metavar="PORT",
            min=0,
            max=65_535,
            help="Listen at this port of 127.0.0.1; 0 takes a free one.",
            show_default="8040",
        ),
    ] = None,
    root: Annotated[
        list[Path] | None,
        typer.Option(
            "--root",
            metavar="PATH",
            help="Look below this folder, or at this report; may be repeated, and is needed.",
            show_default=False,
        ),
    ] = None,
    environment: Annotated[
        list[str] | None,
        typer.Option(
            "--environment",
            metavar="NAME=DIR",
            help="Run the Python of this environment for its bill of materials; may be repeated.",
            show_default="none",
        ),
    ] = None,
    spool: Annotated[
        Path | None,
        typer.Option("--spool", metavar="DIR", help="Keep results here.", show_default="in memory, if it has room"),
    ] = None,
    capacity: Annotated[
        int, typer.Option("--capacity", metavar="MIB", min=1, help="What all results may take together.")
    ] = 2048,
    run_capacity: Annotated[
        int, typer.Option("--run-capacity", metavar="MIB", min=1, help="What one run may take.")
    ] = 256,
    run_seconds: Annotated[
        float, typer.Option("--run-seconds", metavar="SECONDS", min=1, help="How long one program may run.")
    ] = 900.0,
    keep_seconds: Annotated[
        float, typer.Option("--keep-seconds", metavar="SECONDS", min=1, help="How long a result waits to be published.")
    ] = 3600.0,
    runs: Annotated[int, typer.Option("--runs", metavar="N", min=1, max=64, help="Runs at a time.")] = 2,
) -> None:
    """Run analysers for scans, and hand out what they find.

    Whoever asks proves to be of this installation by a token: what TESTIGO_ANALYSER_TOKEN says, else one of the
    installation's keys. It reads what lies below --root, and runs what came with testigo, what `analyser install` put
    into its place, and environments that --environment names; nothing that it is asked adds to that. Results are no
    durable storage: they wait to be published, and go when the server goes. Ctrl-C or SIGTERM stops it.
    """
    if socket is not None and port is not None:
        raise Misuse("It listens at --socket or at --port, not at both.")
    if not root:
        raise Misuse("It looks only where it is told: name a folder with --root, as often as there are such folders.")
    from testigo.evidence.server.roots import Granted
    from testigo.evidence.server.runs import Terms
    from testigo.evidence.server.serving import opened
    from testigo.evidence.transport import places

    url = here.place.url
    terms = Terms(
        at_once=runs,
        run_seconds=run_seconds,
        run_bytes=run_capacity * MIB,
        keep_seconds=keep_seconds,
        apart=places.apart(),
        keys=places.keys(url),
        granted=Granted(tuple(map(_there, root)), dict(map(_environment, environment or ()))),
    )
    at = places.PORT if port is None else port
    with opened(terms, places.token(url), port=at, path=socket, spool=spool, capacity_bytes=capacity * MIB) as server:
        told = _serving(server)
        here.answer(told._asdict(), lambda: _tell(told))
        server.serve_until_told()


@command(group, "install", "analyser install semgrep", "analyser install semgrep --json")
def install(
    here: Call,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The analyser: semgrep.", show_default=False)],
) -> None:
    """Install an analyser into an environment of its own.

    Its packages come from the index that pip is set to, and do not touch those of testigo.
    """
    from testigo.evidence.server.installing import install as install_apart
    from testigo.evidence.transport import places

    version = install_apart(name, places.apart())
    here.answer(Installed(name, version)._asdict(), lambda: print(f"{name} {version} is installed."))


def _there(root: Path) -> Path:
    if not root.exists():
        raise Misuse(f"There is no folder {root}, and no report.")
    return root.resolve()


def _environment(given: str) -> tuple[str, Path]:
    name, _, folder = given.partition("=")
    if not name or not (Path(folder) / "bin" / "python").exists():
        raise Misuse(f"--environment {given}: NAME=DIR is needed, DIR with a bin/python.")
    return name, Path(folder).absolute()


def _serving(server: Server) -> Serving:
    spool = server.runs.spool
    network = "none" if server.runs.confinement else "open"
    return Serving(server.address, str(spool.folder), spool.in_memory, network)


def _tell(told: Serving) -> None:
    print(f"Analysers are served at {told.address}.")
    where = "in memory" if told.in_memory else "on a disk, for there is no room in memory"
    print(f"Results wait in {told.spool}, {where}.")
    if told.network == "open":
        print("The system does not allow it to keep programs from the network.")
    print("Ctrl-C stops it.", flush=True)
